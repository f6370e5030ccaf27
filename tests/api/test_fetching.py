"""Addresses of pictures come from others: private, insecure, too large or slow ones are not fetched."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from medtest.api.drawn import fetching
from medtest.api.drawn.fetching import Fetcher, NotFetched, allowed, check_url, is_public


@contextmanager
def files(**answers: tuple[int, dict[str, str], bytes]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Serve files on this machine; yield the URL and the headers of all requests."""
    received: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append({name.lower(): value for name, value in self.headers.items()})
            status, headers, body = answers[self.path.strip("/").partition("?")[0]]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *message: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        server.server_close()


def fetched(url: str, *, loopback: bool = True, **more: Any) -> bytes:
    async def body() -> bytes:
        fetcher = Fetcher(loopback=loopback, pause=0.01, **more)
        try:
            return await fetcher.fetch(url)
        finally:
            await fetcher.close()

    return asyncio.run(body())


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "0.0.0.0",  # noqa: S104 - must not be reached
        "10.0.0.1",
        "172.16.3.4",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.2.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "2002:7f00:1::",
        "2001:db8::1",
    ],
)
def test_addresses_outside_the_open_internet(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"])
def test_addresses_of_the_open_internet(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_an_endpoint_on_this_machine_may_have_its_pictures_there_and_nowhere_private() -> None:
    assert allowed(ipaddress.ip_address("127.0.0.1"), loopback=True)
    assert not allowed(ipaddress.ip_address("127.0.0.1"), loopback=False)
    assert not allowed(ipaddress.ip_address("169.254.169.254"), loopback=True)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/a.png",
        "file:///etc/passwd",
        "ftp://example.com/a.png",
        "https://user:secret@example.com/a.png",
        "https:///a.png",
        "https://exa mple.com/a.png",
        "https://example.com:99999/a.png",
        "https://[::1/a.png",
        "//example.com/a.png",
        "",
        "https://example.com/" + "a" * 9000,
        "https://exämple.com/a.png",
    ],
)
def test_addresses_that_are_not_asked(url: str) -> None:
    with pytest.raises(NotFetched) as error:
        check_url(url, loopback=False)
    assert error.value.final and "example" not in str(error.value) and "secret" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/a.png",
        "https://localhost/a.png",
        "https://2130706433/a.png",
        "https://0x7f.1/a.png",
        "https://[::1]/a.png",
        "https://[::ffff:127.0.0.1]/a.png",
        "https://169.254.169.254/latest/meta-data",
    ],
)
def test_private_addresses_are_not_connected_to_however_they_are_written(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NotFetched, match="not public"):
        fetched(url, loopback=False)


def test_behind_a_proxy_written_out_addresses_are_checked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    for url in ("https://10.0.0.1/a.png", "https://localhost/a.png", "https://metadata.internal/a.png"):
        with pytest.raises(NotFetched, match="not public"):
            fetched(url, loopback=False)


def test_a_name_that_points_to_this_machine_is_refused_at_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is looked up at the connection, and only checked addresses are connected to."""
    hosts: list[str] = []
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.delenv("HTTPS_PROXY", raising=False)

    def look(self: Any, host: str, port: int, **more: Any) -> Any:
        hosts.append(host)

        async def found() -> list[Any]:
            # One address is public, the other is not: any private one refuses all.
            return [(socket.AF_INET, 1, 6, "", (address, port)) for address in ("8.8.8.8", "10.1.2.3")]

        return found()

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", look)
    with pytest.raises(NotFetched, match="not public"):
        fetched("https://pictures.example/a.png", loopback=False)
    assert hosts == ["pictures.example"]


def test_redirects_are_followed_by_the_same_rules() -> None:
    with files(
        a=(302, {"location": "/b"}, b""),
        b=(200, {}, b"picture"),
        out=(302, {"location": "https://192.168.0.1/a.png"}, b""),
        ftp=(302, {"location": "ftp://example.com/a"}, b""),
        loop=(302, {"location": "/loop"}, b""),
        nowhere=(302, {}, b""),
    ) as (base, received):
        assert fetched(f"{base}/a?sig=abc") == b"picture"
        assert "authorization" not in received[0] and received[0]["host"] == base.removeprefix("http://")
        with pytest.raises(NotFetched, match="not public"):
            fetched(f"{base}/out")
        with pytest.raises(NotFetched, match="not https"):
            fetched(f"{base}/ftp")
        with pytest.raises(NotFetched, match="more than 3"):
            fetched(f"{base}/loop")
        with pytest.raises(NotFetched, match="no target"):
            fetched(f"{base}/nowhere")


def test_too_large_pictures_are_dropped_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "MOST_BYTES", 1000)
    with files(
        stated=(200, {"content-length": "4000"}, b"x" * 4000),
        unstated=(200, {}, b"x" * 4000),
        fine=(200, {}, b"x" * 1000),
    ) as (base, _):
        for name in ("stated", "unstated"):
            with pytest.raises(NotFetched, match="larger than"):
                fetched(f"{base}/{name}")
        assert len(fetched(f"{base}/fine")) == 1000


def test_temporary_failures_are_tried_again_and_others_are_not() -> None:
    with files(gone=(404, {}, b""), busy=(503, {}, b""), coded=(200, {"content-encoding": "gzip"}, b"x")) as (
        base,
        received,
    ):
        with pytest.raises(NotFetched, match="HTTP 404"):
            fetched(f"{base}/gone")
        assert len(received) == 1
        with pytest.raises(NotFetched, match="HTTP 503"):
            fetched(f"{base}/busy")
        assert len(received) == 4
        with pytest.raises(NotFetched, match="encoding"):
            fetched(f"{base}/coded")
    with pytest.raises(NotFetched, match="connection failed"):
        fetched(f"{base}/gone")

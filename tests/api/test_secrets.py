"""Keys and pictures are shown nowhere: canaries in every channel that a person or a file could see."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from api_parts import ask_all, campaign, picture, questions

from medtest.api.calls.client import Caller, Endpoint
from medtest.api.calls.request import CallState, Parameters, Request
from medtest.api.calls.retry import Retries
from medtest.api.drawn import keepers
from medtest.api.faulty.server import Faults, serving
from medtest.core.errors import UserMistakes

CANARY = 'canary/k3y+"quoted"\\=='
PLAIN_CANARY = "zq-canary-0123456789-secret"
PARAMETERS = Parameters(model="simulated")


@pytest.mark.parametrize(
    "faults", [Faults(), Faults(key="other"), Faults(reset=1), Faults(error=1), Faults(truncated=1)]
)
def test_a_whole_campaign_shows_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: Faults, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CANARY_KEY", PLAIN_CANARY)
    shown = io.StringIO()
    handler = logging.StreamHandler(shown)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    rules = Retries(attempts=2, first_pause=0.01, call_seconds=5)
    try:
        with (
            serving(faults) as server,
            campaign(tmp_path, server.base_url, key_variable="CANARY_KEY", retries=rules) as running,
        ):
            got = list(running.iterate(questions(3)))
            shown.write(repr(got) + repr(running.caller) + repr(running.caller.endpoint) + running.progress().line())
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    printed = capfd.readouterr()
    shown_texts = [shown.getvalue(), printed.out, printed.err]
    assert "send_request_headers" in shown.getvalue()  # the logs were on
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    coded = picture().data_url().split(",")[1][:40]
    for secret in (PLAIN_CANARY, coded, "base64,iVBOR"):
        assert not any(secret in text for text in shown_texts)
        assert not any(secret.encode() in content for content in files)
    assert not any(b"question 0" in content for content in files)  # nor prompts
    assert not any(picture().png[:60] in content for content in files)


def test_the_key_reaches_the_server_and_only_the_environment_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_KEY", "first")
    with serving(Faults(key=PLAIN_CANARY)) as server:
        endpoint = Endpoint(base_url=server.base_url, key_variable="CANARY_KEY")
        caller = Caller(endpoint, PARAMETERS)
        # Set after the caller was created: it is read when a request leaves.
        monkeypatch.setenv("CANARY_KEY", PLAIN_CANARY)
        import asyncio

        async def body() -> None:
            reply = await caller.call(Request(address="a", prompt="p"))
            assert reply.state == CallState.ANSWERED
            assert PLAIN_CANARY not in str(vars(caller)) + str(vars(caller._http)) + str(vars(caller._http._opened))
            await caller.close()

        asyncio.run(body())


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-" + "".join(["can", "ary"]) + "12345678901234",  # the line itself is in the traceback
        "".join(["can", "ary"]) + "0123456789abcdef",
        "".join(["can", "ary"]) + "password",
        "".join(["CAN", "ARY"]) + "IOSFODNN7EXAMPLE",
    ],
)
def test_a_key_in_the_place_of_its_variable_is_not_repeated(key: str) -> None:
    with pytest.raises(UserMistakes) as caught:
        Caller(Endpoint(base_url="http://127.0.0.1:1/v1", key_variable=key), PARAMETERS)
    shown = "".join(traceback.format_exception(caught.value))
    assert "canary" not in shown.lower()
    assert "environment variable" in shown


@pytest.mark.parametrize(
    "url",
    [
        "https://user:{}@host.example/v1",
        "https://host.example/v1?key={}",
        "https://host.example/v1#{}",
        "user:{}@host.example",
        "http://10.0.0.1/v1?token={}",
    ],
)
def test_an_address_with_a_secret_in_it_is_refused_and_not_repeated(url: str) -> None:
    secret = "".join(["can", "ary"])
    with pytest.raises(UserMistakes) as caught:
        Caller(Endpoint(base_url=url.format(secret), send_images=True), PARAMETERS)
    assert [mistake.key for mistake in caught.value.mistakes] == ["base_url"]
    assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_a_variable_that_is_not_set_is_named() -> None:
    (mistake,) = Endpoint(base_url="http://127.0.0.1:1/v1", key_variable="OPENAI_API_KEY_2026X").mistakes()
    assert "OPENAI_API_KEY_2026X is not set" in mistake.found


@pytest.mark.parametrize(
    ("endpoint", "keys"),
    [
        (Endpoint(base_url="http://example.org/v1", send_images=True), ["base_url"]),
        (Endpoint(base_url="http://10.0.0.5:8000/v1", send_images=True), ["base_url"]),
        (Endpoint(base_url="https://example.org/v1"), ["send_images"]),
        (Endpoint(base_url="http://localhost.example.org/v1"), ["base_url", "send_images"]),
        (Endpoint(base_url="http://127.0.0.1@example.org/v1", send_images=True), ["base_url"]),
        (Endpoint(base_url="ftp://127.0.0.1/v1"), ["base_url"]),
        (Endpoint(base_url="nonsense", send_images=True), ["base_url"]),
        (Endpoint(base_url="http://[::1]:8000/v1"), []),
        (Endpoint(base_url="http://127.0.0.9:8000/v1"), []),
        (Endpoint(base_url="https://example.org/v1", send_images=True), []),
        (Endpoint(base_url="http://localhost/v1", key_variable="SURELY_NOT_SET_1"), ["key_variable"]),
    ],
)
def test_where_requests_may_go(endpoint: Endpoint, keys: list[str]) -> None:
    assert [mistake.key for mistake in endpoint.mistakes()] == keys


@pytest.mark.parametrize(
    "url", ["http://[::1/v1", "https://host:abc/v1", "https://host:99999/v1", "https://ho st/v1", "https://host/v1 "]
)
def test_a_malformed_address_is_one_message(url: str) -> None:
    with pytest.raises(UserMistakes) as caught:
        Caller(Endpoint(base_url=url), PARAMETERS)
    assert [mistake.key for mistake in caught.value.mistakes] == ["base_url"]


def test_text_alone_may_leave_without_send_images() -> None:
    import asyncio

    endpoint = Endpoint(base_url="https://example.invalid/v1")
    assert endpoint.mistakes(pictures=False) == []
    caller = Caller(endpoint, PARAMETERS, pictures=False)
    reply = asyncio.run(caller.call(Request(address="a", prompt="p", pictures=(picture(),))))
    assert "send_images" in reply.reason  # and no request was sent


def test_redirects_are_not_followed(tmp_path: Path) -> None:
    import http.server
    import threading

    class Away(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(307)
            self.send_header("location", target)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with serving() as other:
        target = other.base_url + "/chat/completions"
        away = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Away)
        threading.Thread(target=away.serve_forever, daemon=True).start()
        try:
            (got,) = ask_all(tmp_path, f"http://127.0.0.1:{away.server_address[1]}/v1", questions(1))
        finally:
            away.shutdown()
            away.server_close()
        assert got.state == CallState.ERROR
        assert "307" in got.reason
        assert other.counts["received"] == 0


def test_a_proxy_is_used_for_other_hosts_and_not_for_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio
    import socket
    import threading

    heard: list[bytes] = []
    proxy = socket.create_server(("127.0.0.1", 0))

    def listen() -> None:
        while True:
            try:
                connection, _ = proxy.accept()
            except OSError:
                return
            with connection:
                heard.append(connection.recv(4096))

    threading.Thread(target=listen, daemon=True).start()
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving() as server:
        (got,) = ask_all(tmp_path, server.base_url, questions(1))
    assert got.state == CallState.ANSWERED
    assert heard == []

    async def body() -> None:
        caller = Caller(Endpoint(base_url="https://example.invalid/v1"), PARAMETERS, pictures=False, call_seconds=5)
        reply = await caller.call(Request(address="a", prompt="p"))
        assert reply.state is None
        await caller.close()

    asyncio.run(body())
    proxy.close()
    assert heard
    assert heard[0].startswith(b"CONNECT example.invalid:443")


def test_the_command_line_holds_no_key() -> None:
    """The key is only in the environment: only the keeper of drawn images starts a process, without the key."""
    room = Path(__file__).parents[2] / "medtest" / "api"
    code = "".join(path.read_text(encoding="utf-8") for path in room.rglob("*.py"))
    starts = [path.name for path in room.rglob("*.py") if "subprocess" in path.read_text(encoding="utf-8")]
    assert starts == ["keepers.py"]
    assert not any("KEY" in name for name in keepers._HANDED_ON)
    assert code.count("os.environ") == code.count("os.environ.get(") > 0
    assert "getenv" not in code
    env = {**os.environ, "PYTHONPATH": str(room.parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", "import sys, medtest.api.campaign; print('openai' in sys.modules)"],
        capture_output=True,
        text=True,
        env=env,
        check=True,
    )
    assert done.stdout.strip() == "False"  # loaded at its use

"""Request checks for the study server: hosts, sizes and headers.

The pages need no inline script or style, other origins, frames or devices. The content security policy says so, and
browsers then block anything that a comment or a file name might inject.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from medtest.core.errors import typed_error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 16 * 1024
"""Maximum size of a request body, well above an answer with the longest comment."""

MAX_PATH = 512

HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), usb=(), payment=(), interest-cohort=()",
    "x-robots-tag": "noindex, nofollow",
    "cache-control": "no-store",
}

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")


@dataclass(frozen=True, kw_only=True)
class Site:
    """Address of a study.

    Attributes:
        url: Start of the links, without a trailing slash.
        hosts: Accepted ``Host`` headers, which excludes pages of other names that point here.
        origins: Origins from which answers are accepted.
        secure: Whether the cookie is sent over TLS only.
    """

    url: str
    hosts: frozenset[str]
    origins: frozenset[str]
    secure: bool


def site_of(host: str, port: int, url: str = "") -> Site:
    """Return the address of a study.

    Args:
        host: Address to listen on.
        port: Port to listen on.
        url: URL typed by annotators, if a proxy or another machine is in between; required for non-loopback hosts.

    Raises:
        UserMistakes: The host is reachable by others and there is no ``url``.
    """
    if url:
        scheme, name = _typed(url)
        own = {f"{loopback}:{port}" for loopback in _LOOPBACK}
        return Site(
            url=f"{scheme}://{name}",
            hosts=frozenset({name, *own}),
            origins=frozenset({f"{scheme}://{name}"}),
            secure=scheme == "https",
        )
    if host not in ("127.0.0.1", "localhost", "::1"):
        fix = "say what annotators type: --url https://study.example.org (a proxy with TLS in front, see docs)"
        raise typed_error("--host", host, "127.0.0.1", fix)
    shown = f"[{host}]" if ":" in host else host
    hosts = {f"{name}:{port}" for name in _LOOPBACK} | (set(_LOOPBACK) if port == 80 else set())
    return Site(
        url=f"http://{shown}:{port}",
        hosts=frozenset(hosts),
        origins=frozenset(f"http://{name}" for name in hosts),
        secure=False,
    )


def _typed(url: str) -> tuple[str, str]:
    """Return scheme and host of a typed URL as sent by browsers: in lower case, without the default port.

    Raises:
        UserMistakes: It is not a host address.
    """
    try:
        parts = urlsplit(url.strip())
        good = parts.scheme in _PORTS and bool(parts.hostname) and _HOST.fullmatch(parts.netloc) is not None
        port = parts.port
    except ValueError:  # "https://[", or a port that is not a number
        good, port = False, None
    if not good or parts.path.strip("/") or parts.query or parts.fragment:
        allowed = "https://host or https://host:port, without a path"
        raise typed_error("--url", url, allowed)
    name = parts.netloc.lower()
    return parts.scheme, name.rpartition(":")[0] if port == _PORTS[parts.scheme] else name


class Guard:
    """ASGI middleware that refuses unknown hosts and large requests, and adds the headers to every response.

    Args:
        app: The application behind it.
        site: Address of the study.
    """

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(k, v) for k, v in message.get("headers", []) if k.decode("latin-1") not in HEADERS]
                headers += [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message = {**message, "headers": headers}
            await send(message)

        refused = self._refused(scope)
        if refused is None:
            await self._app(scope, receive, with_headers)
            return
        status, words = refused
        plain = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        await with_headers({"type": "http.response.start", "status": status, "headers": plain})
        await with_headers({"type": "http.response.body", "body": words.encode()})

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        headers = {k.lower(): v for k, v in scope["headers"]}
        if headers.get(b"host", b"").decode("latin-1").lower() not in self._site.hosts:
            return 421, "This study is not served under that name."
        if len(scope.get("raw_path") or scope["path"].encode()) > MAX_PATH or len(scope["query_string"]) > MAX_PATH:
            return 414, "That address is too long."
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MAX_BODY:
            return 413, "That is more than an answer can hold."
        return None

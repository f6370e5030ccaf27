"""HTTP exchange with an endpoint: key header, limits of time and size, and error handling.

The key is read from the named environment variable when the request is sent, and is not stored. Redirects are not
followed, because they would send key and pictures to another host.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from medtest.api.calls.endpoint import Endpoint
from medtest.api.calls.retry import Reply, Trouble
from medtest.api.redact import reason_of
from medtest.api.wire.base import MIB, Received, Sending, Wire

if TYPE_CHECKING:
    import httpx2

_NO_KEY = "none"
_HIDDEN = "[hidden]"
_ACCOUNT = (("OpenAI-Organization", "OPENAI_ORG_ID"), ("OpenAI-Project", "OPENAI_PROJECT_ID"))
"""OpenAI's optional headers, and the environment variables from which its own client fills them."""
MOST_SHOWN = 200
"""Maximum characters shown of a model's name or of an error."""


class TooLong(Exception):
    """Reply longer than its kind of endpoint allows."""


class NotSent(Exception):
    """Missing reply. The cause is the library's exception."""


def _key_auth(endpoint: Endpoint, wire: Wire) -> httpx2.Auth:
    import httpx2

    class KeyAuth(httpx2.Auth):
        """Adds the key to a request as it leaves."""

        def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
            key = os.environ.get(endpoint.key_variable, "").strip() if endpoint.key_variable else ""
            name, value = wire.key_header(key or _NO_KEY)
            request.headers[name] = value
            try:
                yield request
            finally:
                request.headers[name] = _HIDDEN

    return KeyAuth()


class Http:
    """Exchanges with one endpoint; used inside one event loop.

    Args:
        endpoint: The endpoint.
        wire: Its kind.
        connections: Number of open connections.
        call_seconds: Time limit of an exchange.
    """

    def __init__(self, endpoint: Endpoint, wire: Wire, *, connections: int, call_seconds: float) -> None:
        self.endpoint, self.wire = endpoint, wire
        self._connections, self._seconds = connections, call_seconds
        self._opened: httpx2.AsyncClient | None = None

    def client(self) -> httpx2.AsyncClient:
        """Return the library's client, created on first use."""
        if self._opened is None:
            import httpx2

            account = {}
            if f".{urlsplit(self.endpoint.base_url).hostname or ''}".endswith(".openai.com"):
                account = {name: value for name, where in _ACCOUNT if (value := os.environ.get(where))}
            self._opened = httpx2.AsyncClient(
                auth=_key_auth(self.endpoint, self.wire),
                headers={"accept": "application/json", "user-agent": "medtest", **account},
                timeout=httpx2.Timeout(self._seconds, connect=min(10.0, self._seconds), pool=None),
                limits=httpx2.Limits(max_connections=self._connections, max_keepalive_connections=self._connections),
                # A proxy is for other hosts; requests to this machine go there directly.
                trust_env=not self.endpoint.loopback,
                follow_redirects=False,
            )
        return self._opened

    async def close(self) -> None:
        """Close the connections."""
        if self._opened is not None:
            await self._opened.aclose()
            self._opened = None

    def request(self, sending: Sending) -> httpx2.Request:
        """Build the complete request.

        Raises:
            Exception: It cannot be built.
        """
        url = self.endpoint.base_url.rstrip("/") + sending.path
        headers, content, files = dict(sending.headers), None, None
        if sending.body is not None:
            text = json.dumps(sending.body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            content, headers = text.encode(), {"content-type": "application/json", **headers}
        if sending.form is not None:
            files = {name: (None, value.encode()) for name, value in sending.form.items()}
        return self.client().build_request(sending.method, url, headers=headers, content=content, files=files)

    async def send(self, request: httpx2.Request) -> Received:
        """Return the reply, with any status.

        Raises:
            TooLong: Its body is longer than :attr:`Wire.most_bytes`.
            NotSent: No complete reply came.
        """
        try:
            response = await self.client().send(request, stream=True)
            try:
                content = await _whole(response, self.wire.most_bytes)
            finally:
                await response.aclose()
        except TooLong:
            raise
        except Exception as error:
            raise NotSent from error
        return Received(status=response.status_code, headers=lower(response.headers), content=content)


async def _whole(response: httpx2.Response, max_bytes: int) -> bytes:
    parts, size = [], 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > max_bytes:
            raise TooLong(f"the reply is longer than {max_bytes // MIB} MB")
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def unsent(cause: BaseException, seconds: float, *, allowed: float) -> Reply:
    """Convert a missing reply to a :class:`Reply`.

    Args:
        cause: The library's exception, or :class:`TimeoutError`.
        seconds: Time since sending.
        allowed: Time limit of a call.
    """
    import httpx2

    if isinstance(cause, TimeoutError | httpx2.TimeoutException):
        # The connect timeout is shorter; in that case nothing was sent.
        connecting = isinstance(cause, httpx2.ConnectTimeout)
        return Reply(
            trouble=Trouble.TIMEOUT,
            seconds=seconds,
            reason="cannot connect in time" if connecting else f"no whole answer within {allowed:g} s",
            maybe_billed=not connecting,
            unreached=connecting,
        )
    name = type(cause).__name__
    unreached = name in ("ConnectError", "ProxyError")
    return Reply(
        trouble=Trouble.CONNECTION,
        seconds=seconds,
        reason=f"the connection failed ({name}: {reason_of(cause, MOST_SHOWN)})",
        maybe_billed=not unreached and name != "UnsupportedProtocol",
        unreached=unreached,
    )


def lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with names in lower case."""
    return {name.lower(): value for name, value in headers.items()}

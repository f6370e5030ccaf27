"""Fetching of pictures from untrusted URLs: https only, no private addresses, limited in size, at once.

The host is resolved here, all its addresses are checked, and the connection goes to one of the checked addresses, so
that a name whose resolution changes in between gains nothing. TLS still checks the host's name. Redirects follow the
same rules. If the endpoint itself is on this machine, its pictures may be too.

Behind a proxy (``HTTPS_PROXY``) the proxy resolves names and connects: literal addresses are checked here, and names
are left to the proxy.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import urllib.request
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from medtest.api.wire.base import MIB
from medtest.api.wire.drawing import MOST_BYTES

if TYPE_CHECKING:
    import httpcore2

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 3
_MOST_LETTERS = 8192
_TRIES = 3
_PAUSE = 0.5
_SECONDS = 60.0
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_INNER = ("sixtofour", "ipv4_mapped")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class NotFetched(Exception):
    """Picture that cannot be fetched; the message gives the reason, without its address.

    Attributes:
        final: Whether another try would fail too.
    """

    def __init__(self, why: str, *, final: bool = True) -> None:
        super().__init__(why)
        self.final = final


def is_public(address: Address) -> bool:
    """Return True if an address is on the public internet and not a route to a private one (RFC 6890, 6052, 3056)."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = next((embedded for name in _INNER if (embedded := getattr(address, name)) is not None), None)
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast and not address.is_reserved


def allowed(address: Address, *, loopback: bool) -> bool:
    """Return True if a picture may be fetched from an address.

    Args:
        address: Address of the host.
        loopback: Whether the endpoint is on this machine.
    """
    return is_public(address) or (loopback and address.is_loopback)


def check_url(url: str, *, loopback: bool) -> str:
    """Return the host of a picture's URL.

    Raises:
        NotFetched: It is not an https URL with a host, or contains user information.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise NotFetched("its address is not valid") from None
    if len(url) > _MOST_LETTERS or not host or not url.isascii() or any(sign.isspace() for sign in url):
        raise NotFetched("its address is not valid")
    if parts.scheme != "https" and not (loopback and parts.scheme == "http"):
        raise NotFetched(f"its address is {parts.scheme or 'nothing'} and not https")
    if "@" in parts.netloc:
        raise NotFetched("its address names a user")
    return host


async def looked_up(host: str, port: int, *, loopback: bool) -> list[str]:
    """Return the addresses of a host, after checking that all are allowed.

    Raises:
        NotFetched: There are none, or one is not allowed.
    """
    try:
        addresses = [ipaddress.ip_address(host)]
    except ValueError:
        loop = asyncio.get_running_loop()
        try:
            rows = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise NotFetched(f"its host is not found ({type(error).__name__})", final=False) from None
        addresses = [ipaddress.ip_address(str(row[4][0]).partition("%")[0]) for row in rows]
    if not addresses:
        raise NotFetched("its host has no address", final=False)
    for address in addresses:
        if not allowed(address, loopback=loopback):
            raise NotFetched("its host has an address that is not public")
    return list(dict.fromkeys(str(address) for address in addresses))


def _backend(*, loopback: bool) -> httpcore2.AsyncNetworkBackend:
    import httpcore2

    class CheckedAddress(httpcore2.AnyIOBackend):
        """Connects to addresses resolved and checked here, never to names."""

        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Iterable[Any] | None = None,
        ) -> httpcore2.AsyncNetworkStream:
            failed: Exception | None = None
            for address in await looked_up(host, port, loopback=loopback):
                try:
                    return await super().connect_tcp(address, port, timeout, local_address, socket_options)
                except httpcore2.ConnectError as error:
                    failed = error
            raise failed or httpcore2.ConnectError("no address")

    return CheckedAddress()


class Fetcher:
    """Fetches pictures; used inside one event loop.

    Args:
        loopback: Whether the endpoint is on this machine: its pictures may then be too, even over plain http.
        connections: Number of open connections.
        seconds: Time limit of one try.
        pause: Seconds before the second try; doubles with each further one.
    """

    def __init__(
        self, *, loopback: bool, connections: int = 32, seconds: float = _SECONDS, pause: float = _PAUSE
    ) -> None:
        self.loopback = loopback
        self._connections, self._seconds, self._pause = connections, seconds, pause
        self._pool: httpcore2.AsyncConnectionPool | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._pool is not None:
            await self._pool.aclose()
            self._pool = None

    async def fetch(self, url: str) -> bytes:
        """Return the content of a URL, at most :data:`MOST_BYTES`.

        Raises:
            NotFetched: It cannot be fetched, after three tries if another may help.
        """
        for attempt in range(1, _TRIES + 1):
            try:
                async with asyncio.timeout(self._seconds):
                    return await self._follow_redirects(url)
            except TimeoutError:
                error = NotFetched(f"it did not arrive within {self._seconds:g} s", final=False)
            except NotFetched as raised:
                error = raised
            if error.final or attempt == _TRIES:
                raise error
            await asyncio.sleep(self._pause * 2 ** (attempt - 1))
        raise AssertionError

    async def _follow_redirects(self, url: str) -> bytes:
        for _ in range(_MOST_REDIRECTS + 1):
            host = check_url(url, loopback=self.loopback)
            status, where, content = await self._request(url, host)
            if status not in _REDIRECTS:
                return content
            if not where:
                raise NotFetched("its redirect has no target")
            url = urljoin(url, where)
        raise NotFetched(f"its address redirects more than {_MOST_REDIRECTS} times")

    async def _request(self, url: str, host: str) -> tuple[int, str, bytes]:
        """Return the status, the target of a redirect, and the content of a success."""
        pool = self._connections_to(host)
        headers = [(b"Host", _host_header(url)), (b"User-Agent", b"medtest"), (b"Accept", b"image/*")]
        parts: list[bytes] = []
        size = 0
        try:
            async with pool.stream("GET", url, headers=headers) as response:
                fields = {name.lower(): value for name, value in response.headers}
                if response.status in _REDIRECTS:
                    return response.status, fields.get(b"location", b"").decode("latin-1"), b""
                if response.status != 200:
                    raise NotFetched(f"HTTP {response.status}", final=response.status not in _AGAIN)
                if fields.get(b"content-encoding", b"identity") not in (b"identity", b""):
                    raise NotFetched("it has an encoding that was not requested")
                stated = fields.get(b"content-length", b"0")
                if stated.isdigit() and int(stated) > MOST_BYTES:
                    raise NotFetched(f"it is larger than {MOST_BYTES // MIB} MB")
                async for part in response.aiter_stream():
                    size += len(part)
                    if size > MOST_BYTES:
                        raise NotFetched(f"it is larger than {MOST_BYTES // MIB} MB")
                    parts.append(part)
        except (NotFetched, TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001 - any failure of library or server
            why = error.__cause__ if isinstance(error.__cause__, NotFetched) else None
            raise why or NotFetched(f"the connection failed ({type(error).__name__})", final=False) from None
        return 200, "", b"".join(parts)

    def _connections_to(self, host: str) -> httpcore2.AsyncConnectionPool:
        import httpcore2

        if self._pool is None:
            proxy = _proxy(host)
            more: dict[str, Any] = {"max_connections": self._connections}
            if proxy and not self.loopback:
                self._pool = httpcore2.AsyncHTTPProxy(proxy_url=proxy, **more)
            else:
                backend = _backend(loopback=self.loopback)
                self._pool = httpcore2.AsyncConnectionPool(network_backend=backend, **more)
        if isinstance(self._pool, httpcore2.AsyncHTTPProxy):
            _check_written_out(host)
        return self._pool


def _proxy(host: str) -> str:
    """Return the environment's proxy for https, "" if there is none or it excludes this host."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get("https", "") or proxies.get("all", "")
    return proxy if proxy and not urllib.request.proxy_bypass(host) else ""


def _check_written_out(host: str) -> None:
    """Reject hosts that a proxy must not be asked for: addresses that are not public, and names of this machine."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith((".localhost", ".local", ".internal")):
        raise NotFetched("its host is not public")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return
    if not is_public(address):
        raise NotFetched("its host has an address that is not public")


def _host_header(url: str) -> bytes:
    parts = urlsplit(url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    usual = {"https": 443, "http": 80}[parts.scheme]
    return (shown if parts.port in (None, usual) else f"{shown}:{parts.port}").encode("ascii")

"""One call to an OpenAI-compatible server, through the openai client, that ends in a :class:`Reply` whatever happens.

The client's own retries are off: ours decide. The key is read from the named environment variable when the request
leaves and is kept nowhere. Pictures go out as PNG data URLs. Plain HTTP is for loopback alone; pictures leave this
machine only with ``send_images``. Redirects are not followed: they would carry key and pictures to another host.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from medtest.api.answers import NotAnAnswer, decoded, error_of, read_body
from medtest.api.body import request_body
from medtest.api.redact import guard, guard_logs, names_variable, reason_of, redact, redacted
from medtest.api.request import CallState, Parameters, Request
from medtest.api.retry import AGAIN, Reply, Trouble
from medtest.errors import Mistake, UserMistakes

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

_NO_KEY = "none"
_BROKE = 3
"""Statuses 500 to calls with a schema, before any answer to one, after which a server is asked in words."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILTERED = ("content_filter", "content_policy", "moderation")
_SCHEMA_WORDS = ("response_format", "json_schema", "structured", "text.format", "schema")
_NO_CREDIT_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "arrearage"})
"""OpenAI's codes, and Alibaba Cloud's for an account that is behind with payment."""
_MOST_SHOWN, _MOST_READ = 200, 20_000
"""Characters of a model's name or of an error that are shown, and of an error that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where requests go.

    Attributes:
        base_url: ``https://host/v1``; ``http`` only to loopback.
        key_variable: Name of the environment variable that holds the key; "" for servers without one.
        send_images: The user's word that pictures may leave this machine.
        name: What stands for the address in content keys, where the address is a new one each time (a server that
            medtest starts itself); "" for the address.
    """

    base_url: str
    key_variable: str = ""
    send_images: bool = False
    name: str = ""

    @property
    def provider(self) -> str:
        """What content keys call it."""
        return self.name or self.base_url

    @property
    def limited_as(self) -> str:
        """What a server's limits go by: scheme, host, port and the key's variable. Not for showing."""
        parts = urlsplit(self.base_url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
        return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port} {self.key_variable}"

    @property
    def loopback(self) -> bool:
        """Whether the host is this machine, by its name or address alone (no name is looked up)."""
        try:
            host = urlsplit(self.base_url).hostname or ""
        except ValueError:
            return False
        if host == "localhost":
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def mistakes(self, where: str = "configuration", *, pictures: bool = True) -> list[Mistake]:
        """Return what is wrong with it, for requests with or without pictures.

        The key's variable must be set; its value is not looked at.
        """
        found: list[Mistake] = []
        shown = redact(self.base_url)
        if set("@?#") & set(self.base_url):
            shown = "an address with user name, password or query (not shown)"
        try:
            parts = urlsplit(self.base_url)
            port_is_one = parts.port != 0
        except ValueError:  # brackets without an address, a port that is no number or too large
            parts, port_is_one = urlsplit(""), False
        usable = parts.scheme in ("http", "https") and parts.hostname and port_is_one
        if (
            not usable
            or "@" in parts.netloc
            or parts.query
            or parts.fragment
            or any(sign.isspace() for sign in self.base_url)
        ):
            found.append(
                Mistake(where=where, key="base_url", found=shown, allowed="https://host/v1, without user or query")
            )
            return found + self._key_mistakes(where)
        if parts.scheme == "http" and not self.loopback:
            found.append(
                Mistake(
                    where=where,
                    key="base_url",
                    found=shown,
                    allowed="https, or http to 127.0.0.1 or localhost",
                    fix="plain http would show the key and the pictures to everyone on the way",
                )
            )
        if pictures and not self.loopback and not self.send_images:
            found.append(
                Mistake(
                    where=where,
                    key="send_images",
                    found="false",
                    fix=f"say send_images=true if the pictures may be sent to {parts.hostname}: they may be patients'",
                    needed="send_images=true",
                )
            )
        found += self._key_mistakes(where)
        return found

    def _key_mistakes(self, where: str) -> list[Mistake]:
        if not self.key_variable:
            return []
        allowed = "the name of an environment variable that holds the key"
        if not _VARIABLE.fullmatch(self.key_variable):
            # What stands there may be the key itself: it is not repeated.
            return [Mistake(where=where, key="key_variable", found="something else (not shown)", allowed=allowed)]
        if os.environ.get(self.key_variable, "").strip():
            return []
        if not names_variable(self.key_variable):
            # Nor is what could be a key by its letters; names of variables are in capitals by custom.
            found = "a variable that is not set (not shown: it could be the key itself)"
            return [Mistake(where=where, key="key_variable", found=found, allowed=allowed)]
        name = self.key_variable
        unset = f"{name} is not set"
        return [Mistake(where=where, key="key_variable", found=unset, fix=f"export {name}=…", needed=name)]


def _key_auth(endpoint: Endpoint) -> httpx2.Auth:
    import httpx2

    class KeyAuth(httpx2.Auth):
        """Puts the key on a request as it leaves."""

        def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
            key = os.environ.get(endpoint.key_variable, "").strip() if endpoint.key_variable else ""
            request.headers["Authorization"] = f"Bearer {key or _NO_KEY}"
            if not f".{urlsplit(endpoint.base_url).hostname or ''}".endswith(".openai.com"):
                # The openai client takes these from the environment; they are nobody else's business.
                for name in ("OpenAI-Organization", "OpenAI-Project"):
                    request.headers.pop(name, None)
            try:
                yield request
            finally:
                request.headers["Authorization"] = "Bearer [hidden]"

    return KeyAuth()


class Caller:
    """Sends requests to one endpoint; use it inside one event loop and close it.

    Args:
        endpoint: Where to.
        parameters: The model and its parameters.
        max_in_flight: Connections kept open.
        call_seconds: Longest duration of a call.
        pictures: Whether requests will have pictures.
        where: Place that a mistake's message names.

    Raises:
        UserMistakes: The endpoint is not usable.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        parameters: Parameters,
        *,
        max_in_flight: int = 32,
        call_seconds: float = 120.0,
        pictures: bool = True,
        where: str = "configuration",
    ) -> None:
        mistakes = endpoint.mistakes(where, pictures=pictures)
        if parameters.api not in ("chat", "responses"):
            mistakes.append(Mistake(where=where, key="api", found=repr(parameters.api), allowed="chat, responses"))
        if mistakes:
            raise UserMistakes(mistakes)
        guard(endpoint.key_variable)
        guard_logs()
        self.endpoint, self.parameters = endpoint, parameters
        self.call_seconds = call_seconds
        self.takes_schema = True
        self._schema_answered, self._schema_broke = False, 0
        self._connections = max_in_flight
        self._opened: AsyncOpenAI | None = None

    def __repr__(self) -> str:
        return f"Caller({redact(self.endpoint.base_url)}, {self.parameters.model})"

    def _client(self) -> AsyncOpenAI:
        if self._opened is None:
            import httpx2
            from openai import AsyncOpenAI

            http = httpx2.AsyncClient(
                auth=_key_auth(self.endpoint),
                timeout=httpx2.Timeout(self.call_seconds, connect=min(10.0, self.call_seconds), pool=None),
                limits=httpx2.Limits(max_connections=self._connections, max_keepalive_connections=self._connections),
                # A proxy is for other hosts; what goes to this machine goes there directly.
                trust_env=not self.endpoint.loopback,
                follow_redirects=False,
            )
            self._opened = AsyncOpenAI(
                api_key=_NO_KEY, base_url=self.endpoint.base_url, max_retries=0, http_client=http
            )
        return self._opened

    async def close(self) -> None:
        """Close the connections."""
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def call(self, request: Request) -> Reply:
        """Send a request once.

        Returns:
            What came of it; nothing but cancellation is raised.
        """
        if request.pictures and not (self.endpoint.loopback or self.endpoint.send_images):
            return Reply(trouble=Trouble.REJECTED, reason="pictures may not leave this machine: send_images is false")
        plain = request.answer_model is not None and not self.takes_schema
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            client, body = self._client(), request_body(request, self.parameters, plain=plain)
            began = clock()  # what it takes to make a body is no time of the server's
            async with asyncio.timeout(self.call_seconds):
                status, headers, content = await self._send(client, body)
        except Exception as error:  # noqa: BLE001 - whatever a client or a server does is a reply, not a crash
            return self._trouble(error, request, plain, clock() - began)
        seconds = clock() - began
        try:
            found = read_body(
                decoded(content),
                api=self.parameters.api,
                answer_model=request.answer_model,
                plain=plain or request.words_do,
            )
        except (ValueError, NotAnAnswer, RecursionError) as error:
            kind = headers.get("content-type", "no content type")
            why = reason_of(error) if isinstance(error, NotAnAnswer) else f"the body is cut short or no JSON ({kind})"
            return Reply(
                trouble=Trouble.BROKEN,
                status=status,
                headers=headers,
                seconds=seconds,
                reason=redact(why),
                maybe_billed=True,
            )
        self._schema_answered = self._schema_answered or (request.answer_model is not None and not plain)
        return Reply(
            status=status,
            headers=headers,
            state=found.state,
            # A server may repeat what it was sent; the ledger, the cache and the records keep what it says.
            text=redact(found.text),
            parsed=redacted(found.parsed),
            plain=plain,
            model=redact(found.model)[:_MOST_SHOWN],
            prompt_tokens=found.prompt_tokens,
            completion_tokens=found.completion_tokens,
            seconds=seconds,
            reason=redact(found.reason),
            maybe_billed=True,
        )

    async def _send(self, client: AsyncOpenAI, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        import httpx2

        body |= body.pop("extra_body", {})
        path = "/responses" if self.parameters.api == "responses" else "/chat/completions"
        # The client's own methods look through every field for values to convert, which took 40 % of a call's
        # processor time and changes nothing here: the body is JSON already.
        response = await client.post(path, cast_to=httpx2.Response, body=body)
        return response.status_code, _lower(response.headers), response.content

    def _trouble(self, error: Exception, request: Request, plain: bool, seconds: float) -> Reply:
        import openai

        if isinstance(error, openai.APIStatusError):
            return self._status(error, request, plain, seconds)
        if isinstance(error, TimeoutError | openai.APITimeoutError):
            late = f"no whole answer within {self.call_seconds:g} s"
            # The connect timeout is shorter; then nothing was sent.
            connecting = type(error.__cause__).__name__ == "ConnectTimeout"
            return Reply(
                trouble=Trouble.TIMEOUT,
                seconds=seconds,
                reason="cannot connect in time" if connecting else late,
                maybe_billed=not connecting,
                unreached=connecting,
            )
        if isinstance(error, openai.APIConnectionError):
            cause = error.__cause__ or error
            name = type(cause).__name__
            unreached = name in ("ConnectError", "ProxyError")
            return Reply(
                trouble=Trouble.CONNECTION,
                seconds=seconds,
                reason=f"the connection failed ({name}: {reason_of(cause, _MOST_SHOWN)})",
                maybe_billed=not unreached and name != "UnsupportedProtocol",
                unreached=unreached,
            )
        return Reply(
            trouble=Trouble.REJECTED,
            seconds=seconds,
            reason=f"the request cannot be made ({type(error).__name__}: {reason_of(error, _MOST_SHOWN)})",
        )

    def _breaks_on_schemas(self, status: int) -> bool:
        """Say whether a server that has answered nothing by schema seems to break on it, without a word of why.

        A lone 500 may be an accident, and is tried again as it is.
        """
        self._schema_broke += status == 500
        return status in (400, 415, 422, 501) or self._schema_broke >= _BROKE

    def _status(self, error: Any, request: Request, plain: bool, seconds: float) -> Reply:
        status = int(error.status_code)
        headers = _lower(error.response.headers)
        try:
            code, message = error_of(decoded(error.response.content))
        except (ValueError, RecursionError):
            code, message = "", ""
        words = f"{code} {message}".lower()
        shown = " ".join(redact((message or code)[:_MOST_READ]).split())[:_MOST_SHOWN]
        reason = f"HTTP {status}" + (f": {shown}" if shown else "")
        common: dict[str, Any] = {"status": status, "headers": headers, "seconds": seconds, "reason": reason}
        if _without_credit(status, code.lower(), words):
            return Reply(trouble=Trouble.NO_CREDIT, **common)
        if status == 429:
            return Reply(trouble=Trouble.THROTTLED, **common)
        if status in (400, 403) and any(word in words for word in _FILTERED):
            return Reply(state=CallState.CONTENT_FILTER, text="", **common)
        structured = request.answer_model is not None and not plain
        if structured and request.words_do and not self._schema_answered and self._breaks_on_schemas(status):
            self.takes_schema = False
            return Reply(trouble=Trouble.NO_SCHEMA, **common)
        if status in AGAIN:
            return Reply(trouble=Trouble.STATUS, **common)
        if structured and status in (400, 404, 415, 422, 501) and any(word in words for word in _SCHEMA_WORDS):
            self.takes_schema = False
            return Reply(trouble=Trouble.NO_SCHEMA, **common)
        if plain and request.words_do and not self._schema_answered:
            self.takes_schema = True  # it was not the schema
        return Reply(trouble=Trouble.REJECTED, **common)


def _without_credit(status: int, code: str, words: str) -> bool:
    """Whether a server says that nobody pays: an empty account is mended neither by waiting nor by another question."""
    if status == 402:  # RFC 9110 section 15.5.3, Payment Required
        return True
    if status == 429 and "insufficient_quota" in words:
        return True
    # Of other statuses the code alone: what a message says may be the question's own words.
    return status in (400, 403, 429) and code in _NO_CREDIT_CODES


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}

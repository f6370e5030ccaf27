"""Calls to an endpoint that always end in a :class:`Reply`.

Differences between endpoints are in :mod:`medtest.api.wire`. Plain HTTP is for loopback only; pictures leave this
machine only with ``send_images``, prompts for pictures only with ``send_prompts``. A picture returned as a URL is
fetched at once (:mod:`medtest.api.drawn.fetching`), a task is polled until it is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from medtest.api.calls.endpoint import Endpoint
from medtest.api.calls.request import CallState, Parameters, Request
from medtest.api.calls.retry import AGAIN, Reply, Trouble
from medtest.api.calls.transport import MOST_SHOWN, Http, NotSent, TooLong, unsent
from medtest.api.drawn.fetching import Fetcher, NotFetched
from medtest.api.redact import guard, guard_logs, reason_of, redact, redacted
from medtest.api.wire import WIRES
from medtest.api.wire.answers import NotAnAnswer, ReplyContent, TaskEnded
from medtest.api.wire.base import Received
from medtest.core.errors import Mistake, UserMistakes

__all__ = ["Caller", "Endpoint"]

_BROKE = 3
"""Number of statuses 500 to calls with a schema, before any answer to one, after which plain words are requested."""
_SCHEMA_WORDS = ("response_format", "json_schema", "structured", "text.format", "schema")
_NO_CREDIT_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "arrearage"})
"""OpenAI's codes, and Alibaba Cloud's for an overdue account."""
_MOST_READ = 20_000
"""Characters of an error that are processed."""
_POLL_GROWTH, _POLL_MOST = 1.5, 5.0
"""Growth of the pauses between polls of a task, and their limit relative to the first pause."""
_UNFIT = frozenset({400, 404, 413, 415, 422, 501})
"""Statuses by which a server may reject a field of a request, or its value."""
_NO_TASK = frozenset({404, 410})

Begun = Callable[[str], None]
"""Receives a task's id before it is polled."""


class Caller:
    """Sends requests to one endpoint; use it inside one event loop and close it.

    Args:
        endpoint: The endpoint.
        parameters: The model and its parameters.
        max_in_flight: Number of open connections.
        call_seconds: Time limit of a call.
        pictures: Whether requests will have pictures.
        where: Place named in the messages of mistakes.
        poll_seconds: First pause between two polls of a task.

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
        poll_seconds: float = 3.0,
    ) -> None:
        wire = WIRES.get(parameters.api)
        draws = wire is not None and wire.draws
        mistakes = endpoint.mistakes(where, pictures=pictures and not draws, prompts=draws)
        if wire is None:
            mistakes.append(Mistake(where=where, key="api", found=repr(parameters.api), allowed=", ".join(WIRES)))
        if mistakes or wire is None:
            raise UserMistakes(mistakes)
        guard(endpoint.key_variable)
        guard_logs()
        self.endpoint, self.parameters, self.wire = endpoint, parameters, wire
        self.call_seconds, self.poll_seconds = call_seconds, poll_seconds
        self.takes_schema = self.takes_likely = True
        self._schema_answered, self._schema_broke = False, 0
        self._http = Http(endpoint, wire, connections=max_in_flight, call_seconds=call_seconds)
        self._fetcher = Fetcher(loopback=endpoint.loopback, connections=max_in_flight)

    def __repr__(self) -> str:
        return f"Caller({redact(self.endpoint.base_url)}, {self.parameters.model})"

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()
        await self._fetcher.close()

    async def call(self, request: Request, *, task: str = "", begun: Begun | None = None) -> Reply:
        """Send a request once.

        Args:
            request: The request.
            task: Id of a task that an earlier call started: it is polled, and nothing is started.
            begun: Receives the id of a task that this call starts.

        Returns:
            The reply. Only cancellation and exceptions of ``begun`` are raised.
        """
        if request.pictures and not (self.endpoint.loopback or self.endpoint.send_images):
            return Reply(trouble=Trouble.REJECTED, reason="pictures may not leave this machine: send_images is false")
        if self.wire.draws and not (self.endpoint.loopback or self.endpoint.send_prompts):
            return Reply(trouble=Trouble.REJECTED, reason="prompts may not leave this machine: send_prompts is false")
        plain = request.answer_model is not None and not self.takes_schema
        if request.most_likely and not self.takes_likely:
            request = replace(request, most_likely=0)
        clock = asyncio.get_running_loop().time
        began = clock()
        task_ids = [task]
        try:
            sending = self.wire.polling(task) if task else self.wire.sending(request, self.parameters, plain=plain)
            prepared = self._http.request(sending)
        except Exception as error:  # noqa: BLE001 - any failure of a library becomes a reply
            return _unbuilt(error, clock() - began)
        began = clock()  # the time to create the body does not count as the server's
        try:
            async with asyncio.timeout(self.call_seconds):
                if task:
                    return await self._poll(request, task, began)
                received = await self._http.send(prepared)
                reply, content = self._read(request, received, plain, clock() - began)
                if content is None:
                    return reply
                if content.task:
                    task_ids = [content.task]
                    if begun is not None:
                        begun(content.task)
                    return await self._poll(request, content.task, began)
                return await self._with_picture(request, reply, content, began)
        except (TimeoutError, NotSent, TooLong) as error:
            cause = error.__cause__ if isinstance(error, NotSent) and error.__cause__ is not None else error
            seconds = clock() - began
            if isinstance(error, TooLong):
                return Reply(
                    trouble=Trouble.BROKEN, seconds=seconds, reason=str(error), maybe_billed=True, complete=True
                )
            return replace(unsent(cause, seconds, allowed=self.call_seconds), task=task_ids[0])

    # ---------------------------------------------------------------------------------------------- reading replies

    def _read(
        self, request: Request, received: Received, plain: bool, seconds: float
    ) -> tuple[Reply, ReplyContent | None]:
        """Return the reply, and its content if it is a success."""
        if not 200 <= received.status < 300:
            return self._status(received, request, plain, seconds), None
        headers = received.headers
        try:
            content = self.wire.read(received, request, self.parameters, plain=plain)
            if (
                self.wire.draws
                and content.state == CallState.ANSWERED
                and not (content.drawn or content.url or content.task)
            ):
                content = replace(
                    content, state=CallState.CONTENT_FILTER, reason="the service answered with no picture"
                )
        except TaskEnded as error:
            why = self._without_prompt(reason_of(error), request)
            return replace(self._broken(received, why, seconds), trouble=Trouble.STATUS), None
        except (ValueError, NotAnAnswer, RecursionError) as error:
            kind = headers.get("content-type", "no content type")
            why = reason_of(error) if isinstance(error, NotAnAnswer) else f"the body is truncated or not JSON ({kind})"
            return self._broken(received, self._without_prompt(why, request), seconds), None
        self._schema_answered = self._schema_answered or (request.answer_model is not None and not plain)
        more = tuple(self._replied(received, request, other, plain, seconds) for other in content.more)
        reply = self._replied(received, request, content, plain, seconds)
        pictures = reply.pictures + sum(other.pictures for other in more)
        return replace(reply, more=more, pictures=pictures), content

    def _replied(
        self, received: Received, request: Request, content: ReplyContent, plain: bool, seconds: float
    ) -> Reply:
        # A server may repeat what it was sent, and ledger, cache and records store its words.
        answer = redacted(content.answer()) | {"plain": plain, "model": redact(content.model)[:MOST_SHOWN]}
        answer["reason"] = self._without_prompt(answer["reason"], request)
        return Reply(
            status=received.status,
            headers=received.headers,
            state=content.state,
            seconds=seconds,
            maybe_billed=True,
            drawn=content.drawn,
            pictures=int(bool(content.drawn or content.url)),
            **answer,
        )

    @staticmethod
    def _broken(received: Received, why: str, seconds: float) -> Reply:
        return Reply(
            trouble=Trouble.BROKEN,
            status=received.status,
            headers=received.headers,
            seconds=seconds,
            reason=redact(why),
            maybe_billed=True,
            complete=True,
        )

    def _without_prompt(self, text: str, request: Request) -> str:
        """Return words about a generation request without its prompt, which a service may repeat."""
        return text.replace(request.prompt, "[prompt]") if self.wire.draws and request.prompt else text

    # ------------------------------------------------------------------------------------------- pictures and tasks

    async def _with_picture(self, request: Request, reply: Reply, content: ReplyContent, began: float) -> Reply:
        """Return the reply with its pictures, fetched if only their URLs came; further ones that fail are left out."""
        done = await self._fetched(reply, content, began)
        more = [await self._fetched(other, part, began) for other, part in zip(reply.more, content.more, strict=True)]
        return replace(done, more=tuple(other for other in more if other.state is not None))

    async def _fetched(self, reply: Reply, content: ReplyContent, began: float) -> Reply:
        if not content.url:
            return reply
        clock = asyncio.get_running_loop().time
        try:
            drawn = await self._fetcher.fetch(content.url)
        except NotFetched as error:
            trouble = Trouble.REJECTED if error.final else Trouble.BROKEN
            why = f"the picture cannot be fetched: {reason_of(error)}"
            return replace(reply, state=None, trouble=trouble, reason=why, seconds=clock() - began, pictures=0)
        return replace(reply, drawn=drawn, seconds=clock() - began)

    async def _poll(self, request: Request, task: str, began: float) -> Reply:
        """Poll a task until it is done; failed polls are ignored, because the task continues."""
        clock = asyncio.get_running_loop().time
        pause = self.poll_seconds
        sending = self.wire.polling(task)
        while True:
            try:
                received = await self._http.send(self._http.request(sending))
            except NotSent:
                received = None
            if received is not None and received.status in _NO_TASK:
                return Reply(
                    trouble=Trouble.STATUS,
                    status=received.status,
                    seconds=clock() - began,
                    reason=f"the service no longer knows the task (HTTP {received.status})",
                    maybe_billed=True,
                )
            if received is not None and received.status not in AGAIN:
                reply, content = self._read(request, received, False, clock() - began)
                if content is not None and not content.task:
                    done = await self._with_picture(request, reply, content, began)
                    return replace(done, task=task) if done.trouble == Trouble.BROKEN else done
                if content is None and (reply.state is not None or received.status < 300):
                    if reply.trouble != Trouble.BROKEN:  # ended; only a truncated body is requested again
                        return reply
                elif content is None:  # the poll was refused, not the task
                    return replace(reply, task=task, maybe_billed=True)
            await asyncio.sleep(pause)
            pause = min(pause * _POLL_GROWTH, _POLL_MOST * self.poll_seconds)

    # -------------------------------------------------------------------------------------------------- errors

    def _breaks_on_schemas(self, status: int) -> bool:
        """Return True if a server that has never answered by schema seems to fail on schemas without saying so.

        A single 500 may be an accident, and is retried unchanged.
        """
        self._schema_broke += status == 500
        return status in (400, 415, 422, 501) or self._schema_broke >= _BROKE

    def _status(self, received: Received, request: Request, plain: bool, seconds: float) -> Reply:
        status, headers = received.status, received.headers
        try:
            code, message = self.wire.error(received)
        except (ValueError, RecursionError):
            code, message = "", ""
        message = self._without_prompt(message, request)
        words = f"{code} {message}".lower()
        shown = " ".join(redact((message or code)[:_MOST_READ]).split())[:MOST_SHOWN]
        reason = f"HTTP {status}" + (f": {shown}" if shown else "")
        common: dict[str, Any] = {"status": status, "headers": headers, "seconds": seconds, "reason": reason}
        if _without_credit(status, code.lower(), words):
            return Reply(trouble=Trouble.NO_CREDIT, **common)
        if status == 429:
            return Reply(trouble=Trouble.THROTTLED, **common)
        if self.wire.filtered(status, code.lower(), words):
            return Reply(state=CallState.CONTENT_FILTER, text="", **common)
        if request.most_likely and status in _UNFIT and "logprob" in words:
            self.takes_likely = False
            return Reply(trouble=Trouble.NO_LIKELY, **common)
        structured = request.answer_model is not None and not plain
        if structured and request.words_do and not self._schema_answered and self._breaks_on_schemas(status):
            self.takes_schema = False
            return Reply(trouble=Trouble.NO_SCHEMA, **common)
        if status in AGAIN:
            return Reply(trouble=Trouble.STATUS, **common)
        if structured and status in (400, 404, 415, 422, 501) and any(word in words for word in _SCHEMA_WORDS):
            self.takes_schema = False
            return Reply(trouble=Trouble.NO_SCHEMA, **common)
        if request.count > 1 and status in _UNFIT:
            return Reply(trouble=Trouble.NO_SEVERAL, **common)
        if plain and request.words_do and not self._schema_answered:
            self.takes_schema = True  # the schema was not the cause
        return Reply(trouble=Trouble.REJECTED, **common)


def _unbuilt(error: Exception, seconds: float) -> Reply:
    return Reply(
        trouble=Trouble.REJECTED,
        seconds=seconds,
        reason=f"the request cannot be made ({type(error).__name__}: {reason_of(error, MOST_SHOWN)})",
    )


def _without_credit(status: int, code: str, words: str) -> bool:
    """Return True if the account is empty, which neither waiting nor another question can fix."""
    if status == 402:  # RFC 9110 section 15.5.3, Payment Required
        return True
    if status == 429 and "insufficient_quota" in words:
        return True
    # For other statuses only the code counts, because the message may quote the question.
    return status in (400, 403, 429) and code in _NO_CREDIT_CODES

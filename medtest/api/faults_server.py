"""An OpenAI-shaped server on loopback whose faults are switchable: for tests, benchmarks and the simulated laboratory.

``python -m medtest.api.faults_server --latency 0.05 --rate 10 --burst 10`` prints its address and serves until it is
ended. It speaks ``/v1/models``, ``/v1/chat/completions`` and ``/v1/responses``, with usage, bearer key and errors in
the provider's form; ``/faults`` (GET) gives what it counted, ``/faults`` (PUT, JSON) sets faults anew.

It writes HTTP/1.1 itself: resets, cut bodies and dripping ones are below what a web framework lets one do.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import math
import random
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from email.utils import formatdate
from typing import Any

Answer = Callable[[Mapping[str, Any]], str]
_WORDS = ("Yes.", "No.", "2", "None", "polyp", "upper left", "pink; red", "11-20mm", "Paris Is", "Not relevant")
_MOST_BYTES = 2**26


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What the server does; shares are probabilities per request, drawn from ``seed`` in the order of arrival.

    Attributes:
        latency: Seconds before an answer.
        jitter: Further seconds at most, drawn evenly.
        rate: Requests per second that it allows; None for no limit.
        burst: Requests that it allows at once under a limit.
        window: Seconds of a fixed window in which ``rate * window`` requests are allowed, instead of a steady refill.
        headers: Whether every answer under a limit says what is left (``x-ratelimit-…-requests``).
        retry_after: ``seconds``, ``date`` or ``none``: what a 429 says about coming back.
        too_many: Share of 429 without any limit.
        error: Share of 500.
        reset: Share of connections reset instead of an answer.
        truncated: Share of bodies cut short, half of them with a length that says so.
        wrong_type: Share of HTML pages with status 200.
        slow: Share of bodies that drip over ``slow_seconds``.
        slow_seconds: Duration of a dripping body.
        refusal: Share of refusals.
        filtered: Share of content filter stops.
        length: Share of length stops.
        takes_schema: Whether structured output is supported; 400 else.
        key: The bearer key that it wants; "" for any.
        seed: Of the draws.
    """

    latency: float = 0.0
    jitter: float = 0.0
    rate: float | None = None
    burst: int = 10
    window: float = 0.0
    headers: bool = True
    retry_after: str = "seconds"
    too_many: float = 0.0
    error: float = 0.0
    reset: float = 0.0
    truncated: float = 0.0
    wrong_type: float = 0.0
    slow: float = 0.0
    slow_seconds: float = 3.0
    refusal: float = 0.0
    filtered: float = 0.0
    length: float = 0.0
    takes_schema: bool = True
    key: str = ""
    seed: int = 0


SHARES = ("too_many", "error", "reset", "truncated", "wrong_type", "slow", "refusal", "filtered", "length")


def default_answer(body: Mapping[str, Any]) -> str:
    """Return an answer drawn by the request's content: the same content has the same answer."""
    content = json.dumps([body.get(name) for name in ("model", "messages", "input", "seed")], sort_keys=True)
    digest = hashlib.sha256(content.encode()).digest()
    word = _WORDS[digest[0] % len(_WORDS)]
    shape = _schema(body)
    if shape is None:
        return f"{word} ({digest.hex()[:12]})"
    return json.dumps({name: _filled(part, word) for name, part in shape.get("properties", {}).items()})


def _filled(part: Mapping[str, Any], word: str) -> Any:
    kinds: dict[str, Any] = {"integer": len(word), "number": 0.5, "boolean": word == "Yes.", "array": []}
    return kinds.get(str(part.get("type")), word)


def _schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found = (body.get("response_format") or {}).get("json_schema") or (body.get("text") or {}).get("format")
    return found.get("schema") if isinstance(found, Mapping) else None


class _Limiter:
    """The limit that the server keeps: a steady refill, or fixed windows."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.full = float(faults.burst) if not faults.window else max(1.0, (faults.rate or 0) * faults.window)
        self.level = self.full
        self.at = time.monotonic()

    def admit(self) -> tuple[bool, dict[str, str], float]:
        """Return whether a request is allowed, the headers, and seconds until the next will be."""
        faults, now = self.faults, time.monotonic()
        if faults.rate is None:
            return True, {}, 0.0
        if faults.window:
            if now - self.at >= faults.window:
                self.level, self.at = self.full, now
            allowed = self.level >= 1
            self.level -= float(allowed)
            reset = wait = self.at + faults.window - now
        else:
            self.level = min(self.full, self.level + (now - self.at) * faults.rate)
            self.at = now
            allowed = self.level >= 1
            self.level -= float(allowed)
            reset, wait = (self.full - self.level) / faults.rate, max(0.0, 1 - self.level) / faults.rate
        stated = {
            "x-ratelimit-limit-requests": str(int(self.full)),
            "x-ratelimit-remaining-requests": str(int(self.level)),
            "x-ratelimit-reset-requests": f"{math.ceil(reset * 1000)}ms",
        }
        return allowed, stated if faults.headers else {}, wait


class FaultServer:
    """The server; start it inside an event loop, or with :func:`serving` from ordinary code.

    Args:
        faults: What it does.
        answer: Makes the words of an answer from a request's body; it may take time, off the event loop if it is slow.
        port: 0 for a free one.

    Attributes:
        counts: What happened: ``received``, ``answered``, ``limited`` and the names of faults.
        answered: How often each content was answered in full, by SHA-256 of the body.
    """

    def __init__(self, faults: Faults | None = None, *, answer: Answer = default_answer, port: int = 0) -> None:
        self.answer, self.port = answer, port
        self.counts: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.set(faults or Faults())

    def set(self, faults: Faults) -> None:
        """Switch faults; the draws begin anew."""
        self.faults = faults
        self._draw = random.Random(faults.seed)  # noqa: S311 - faults, no secrets
        self._limiter = _Limiter(faults)

    @property
    def base_url(self) -> str:
        """The address for a client."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def start(self) -> None:
        """Listen on loopback."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=2**20, backlog=512)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._server is not None:
            self._server.close()
            for task in tuple(self._open):
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)
            await self._server.wait_closed()
            self._server = None

    # ------------------------------------------------------------------------------------------------------- HTTP

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._open.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ValueError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            if task is not None:
                self._open.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request and say whether the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        size = int(headers.get("content-length", "0"))
        if size > _MOST_BYTES:
            return False
        content = await reader.readexactly(size)
        path = path.split("?")[0].rstrip("/")
        if path == "/faults":
            return await self._faults(writer, method, content)
        if self.faults.key and headers.get("authorization") != f"Bearer {self.faults.key}":
            shown = headers.get("authorization", "")
            return await self._error(writer, 401, "invalid_api_key", f"Incorrect API key provided: {shown}.")
        if path.endswith("/models"):
            return await self._json(writer, 200, {"object": "list", "data": [{"id": "simulated", "object": "model"}]})
        if method != "POST" or not path.endswith(("/chat/completions", "/responses")):
            return await self._error(writer, 404, "not_found", f"no {method} {path}")
        return await self._model(writer, content, chat=path.endswith("/chat/completions"))

    async def _faults(self, writer: asyncio.StreamWriter, method: str, content: bytes) -> bool:
        if method == "PUT":
            self.set(replace(self.faults, **json.loads(content)))
        doubled = sum(count - 1 for count in self.answered.values())
        stated = {"faults": asdict(self.faults), "counts": dict(self.counts), "doubled": doubled}
        return await self._json(writer, 200, stated)

    async def _model(self, writer: asyncio.StreamWriter, content: bytes, *, chat: bool) -> bool:
        self.counts["received"] += 1
        faults = self.faults
        allowed, stated, wait = self._limiter.admit()
        fault = self._fault()
        await asyncio.sleep(faults.latency + faults.jitter * self._draw.random())
        if not allowed or fault == "too_many":
            self.counts["too_many" if allowed else "limited"] += 1
            return await self._error(
                writer, 429, "rate_limit_exceeded", "Rate limit reached.", {**stated, **self._come_back(wait)}
            )
        body = json.loads(content)
        if _schema(body) is not None and not faults.takes_schema:
            self.counts["no_schema"] += 1
            return await self._error(writer, 400, "invalid_request_error", "response_format is not supported", stated)
        if fault:
            self.counts[fault] += 1
        if fault == "reset":
            return self._reset(writer)
        if fault == "error":
            return await self._error(writer, 500, "server_error", "The server had an error.", stated)
        if fault == "wrong_type":
            await self._write(writer, 200, b"<html><body>Bad gateway</body></html>", {"content-type": "text/html"})
            return True
        reply = json.dumps(self._completion(body, fault, chat=chat, size=len(content))).encode()
        return await self._deliver(writer, reply, fault, stated, hashlib.sha256(content).hexdigest())

    async def _deliver(
        self, writer: asyncio.StreamWriter, reply: bytes, fault: str, stated: dict[str, str], digest: str
    ) -> bool:
        if fault == "truncated":
            half = reply[: len(reply) // 2]
            announced = len(reply) if self._draw.random() < 0.5 else len(half)
            await self._write(writer, 200, half, stated, announced=announced)
            return announced == len(half)
        self.counts["answered"] += 1
        self.answered[digest] += 1
        if fault == "slow":
            await self._write(writer, 200, b"", stated, announced=len(reply))
            for start in range(0, len(reply), max(1, len(reply) // 20)):
                await asyncio.sleep(self.faults.slow_seconds / 20)
                writer.write(reply[start : start + max(1, len(reply) // 20)])
                await writer.drain()
            return True
        await self._write(writer, 200, reply, stated)
        return True

    def _fault(self) -> str:
        point = self._draw.random()
        for name in SHARES:
            point -= float(getattr(self.faults, name))
            if point < 0:
                return name
        return ""

    def _come_back(self, wait: float) -> dict[str, str]:
        if self.faults.retry_after == "none":
            return {}
        seconds = max(1, math.ceil(wait))
        if self.faults.retry_after == "date":
            # Dates have whole seconds: one more, or it would name a moment too early.
            return {"retry-after": formatdate(time.time() + seconds + 1, usegmt=True)}
        return {"retry-after": str(seconds)}

    def _completion(self, body: Mapping[str, Any], fault: str, *, chat: bool, size: int) -> dict[str, Any]:
        text = self.answer(body)
        refusal = "I'm sorry, I can't help with that." if fault == "refusal" else None
        text = "" if refusal or fault == "filtered" else text[: len(text) // 2] if fault == "length" else text
        count = {"question": max(1, size // 400), "answer": max(1, len(text) // 4)}
        model = str(body.get("model"))
        if chat:
            finish = {"length": "length", "filtered": "content_filter"}.get(fault, "stop")
            message = {"role": "assistant", "content": None if refusal else text, "refusal": refusal}
            usage = {
                "prompt_tokens": count["question"],
                "completion_tokens": count["answer"],
                "total_tokens": sum(count.values()),
            }
            choice = {"index": 0, "message": message, "finish_reason": finish}
            kind = {"id": "chatcmpl-simulated", "object": "chat.completion", "created": int(time.time())}
            return {**kind, "model": model, "choices": [choice], "usage": usage}
        part = {"type": "refusal", "refusal": refusal} if refusal else {"type": "output_text", "text": text}
        why = {"length": "max_output_tokens", "filtered": "content_filter"}.get(fault)
        output = {"type": "message", "role": "assistant", "content": [part]}
        usage = {"input_tokens": count["question"], "output_tokens": count["answer"]}
        kind = {"id": "resp_simulated", "object": "response", "status": "incomplete" if why else "completed"}
        details = {"incomplete_details": {"reason": why} if why else None}
        return {**kind, **details, "model": model, "output": [output], "usage": usage}

    async def _error(
        self, writer: asyncio.StreamWriter, status: int, code: str, message: str, more: dict[str, str] | None = None
    ) -> bool:
        return await self._json(writer, status, {"error": {"message": message, "type": code, "code": code}}, more)

    async def _json(
        self, writer: asyncio.StreamWriter, status: int, body: object, more: dict[str, str] | None = None
    ) -> bool:
        await self._write(writer, status, json.dumps(body).encode(), more or {})
        return True

    @staticmethod
    async def _write(
        writer: asyncio.StreamWriter, status: int, body: bytes, headers: Mapping[str, str], announced: int | None = None
    ) -> None:
        length = len(body) if announced is None else announced
        lines = {"content-type": "application/json", "content-length": str(length), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"HTTP/1.1 {status} Simulated\r\n{head}\r\n".encode() + body)
        await writer.drain()

    @staticmethod
    def _reset(writer: asyncio.StreamWriter) -> bool:
        raw: socket.socket | None = writer.get_extra_info("socket")
        if raw is not None:
            # Lingering for 0 s makes closing a reset (RST) instead of an end (FIN).
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        return False


@contextlib.contextmanager
def serving(faults: Faults | None = None, *, answer: Answer = default_answer, port: int = 0) -> Iterator[FaultServer]:
    """Run a server in a thread of this process and stop it whatever happens."""
    server = FaultServer(faults, answer=answer, port=port)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="medtest-faults", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def main() -> None:
    """Serve until the process is ended; the first line printed is the address."""
    parser = argparse.ArgumentParser(prog="python -m medtest.api.faults_server", description="A server with faults.")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    for field in fields(Faults):
        name = "--" + field.name.replace("_", "-")
        if isinstance(field.default, bool):
            parser.add_argument(name, action=argparse.BooleanOptionalAction, default=field.default)
        else:
            kind = type(field.default) if field.default is not None else float
            parser.add_argument(name, type=kind, default=field.default)
    chosen = vars(parser.parse_args())
    port = int(chosen.pop("port"))

    async def live() -> None:
        server = FaultServer(Faults(**chosen), port=port)
        await server.start()
        sys.stdout.write(server.base_url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(live())


if __name__ == "__main__":
    main()

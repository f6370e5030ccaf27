"""OpenAI-compatible loopback server with configurable faults, for tests, benchmarks and the simulated laboratory.

``python -m medtest.api.faulty.server --latency 0.05 --rate 10 --burst 10`` prints its address and serves until it is
terminated. It supports ``/v1/models``, ``/v1/chat/completions`` and ``/v1/responses``, with usage, bearer key and
errors in the provider's format; ``/faults`` (GET) returns its counters, ``/faults`` (PUT, JSON) changes the faults.

It implements HTTP/1.1 itself, because resets, truncated bodies and dripping ones are below the level of a web
framework.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields, replace
from email.utils import formatdate
from typing import Any, TypeVar

from medtest.api.faulty.answers import (
    Answer,
    BadRequest,
    PictureEndpoint,
    Refusal,
    asked_schema,
    default_answer,
    drawn_reply,
)
from medtest.api.faulty.faults import SHARES, Faults, Limiter, completion

T = TypeVar("T")
Door = Callable[[bytes], object]
"""Receives the body of a PUT and returns the JSON response; raises :class:`BadRequest` like answer functions."""
_MOST_BYTES = 2**26
_SAYS = ("/chat/completions", "/responses")
_DRAWS = "/images/generations"


class FaultServer:
    """Server; start it inside an event loop, or with :func:`serving` from synchronous code.

    Args:
        faults: Its faults.
        answer: Creates the words of an answer from a request's body. It may return :class:`Refusal` and raise
            :class:`BadRequest`.
        port: 0 for a free one.
        threads: Number of threads for ``answer``, so that a slow one blocks nothing; 0 calls it in the event loop.
        model: The model's name in ``/v1/models``.
        doors: Further paths that accept a PUT, behind the same key.
        draws: Image generator behind ``/v1/images/generations``; None for a server without one. Of the faults,
            ``refusal`` is then a 400 that names the policy, ``filtered`` a reply without a picture, and ``length`` has
            no effect.

    Attributes:
        counts: Number of events: ``received``, ``answered``, ``limited`` and the names of faults.
        came: Number of requests with each content, by SHA-256 of the body.
        answered: Number of complete answers to each content.
    """

    def __init__(
        self,
        faults: Faults | None = None,
        *,
        answer: Answer = default_answer,
        port: int = 0,
        threads: int = 0,
        model: str = "simulated",
        doors: Mapping[str, Door] | None = None,
        draws: PictureEndpoint | None = None,
    ) -> None:
        self.answer, self.port, self.model = answer, port, model
        self.doors = dict(doors or {})
        self.draws = draws
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="answers") if threads else None
        self.counts: Counter[str] = Counter()
        self.came: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.set(faults or Faults())

    def set(self, faults: Faults) -> None:
        """Switch faults and restart the random draws."""
        self.faults = faults
        self._draw = random.Random(faults.seed)  # noqa: S311 - faults, no secrets
        self._limiter = Limiter(faults)
        self._slots = None if faults.slots is None else asyncio.Semaphore(faults.slots)

    @property
    def base_url(self) -> str:
        """Address for clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def start(self) -> None:
        """Listen on loopback."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=2**20, backlog=512)
        self.port = int(self._server.sockets[0].getsockname()[1])
        if self.draws is not None:
            self.draws.base_url = self.base_url

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._server is not None:
            self._server.close()
            for task in tuple(self._open):
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)
            await self._server.wait_closed()
            self._server = None
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

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
        """Answer one request and return True if the connection continues."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        size = int(headers.get("content-length", "0"))
        if size > _MOST_BYTES:
            return False
        content = await reader.readexactly(size)
        path = path.split("?")[0].rstrip("/")
        if headers.get("host", "").lower() not in self._own_names():
            # DNS rebinding: a page whose name was pointed at this machine sends that name here.
            return await self._error(writer, 421, "misdirected_request", "This server answers to loopback alone.")
        if path == "/faults":
            return await self._faults(writer, method, content)
        if method == "GET" and self.draws is not None and (lies := self.draws.file(path)) is not None:
            await self._write(writer, 200, lies[1], {"content-type": lies[0]})  # its name is the key
            return True
        if self.faults.key and headers.get("authorization") != f"Bearer {self.faults.key}":
            shown = headers.get("authorization", "")
            return await self._error(writer, 401, "invalid_api_key", f"Incorrect API key provided: {shown}.")
        if path.endswith("/models"):
            return await self._json(writer, 200, {"object": "list", "data": [{"id": self.model, "object": "model"}]})
        if path in self.doors and method == "PUT":
            return await self._door(writer, self.doors[path], content)
        ends = _SAYS if self.draws is None else (*_SAYS, _DRAWS)
        if method != "POST" or not path.endswith(ends):
            return await self._error(writer, 404, "not_found", f"no {method} {path}")
        return await self._model(writer, content, path)

    def _own_names(self) -> frozenset[str]:
        """Return the names by which local clients may address this server (RFC 9110 sections 7.2 and 15.5.20)."""
        return frozenset(f"{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]"))

    async def _faults(self, writer: asyncio.StreamWriter, method: str, content: bytes) -> bool:
        if method == "PUT":
            self.set(replace(self.faults, **json.loads(content)))
        doubled = sum(count - 1 for count in self.answered.values())
        stated = {"faults": asdict(self.faults), "counts": dict(self.counts), "doubled": doubled}
        return await self._json(writer, 200, stated)

    async def _door(self, writer: asyncio.StreamWriter, door: Door, content: bytes) -> bool:
        try:
            response = door(content)
        except BadRequest as error:
            return await self._error(writer, error.status, error.code, str(error))
        return await self._json(writer, 200, response)

    async def _in_pool(self, make: Callable[..., T], *arguments: object) -> T:
        if self._pool is None:
            return make(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._pool, make, *arguments)

    async def _reply(self, body: Mapping[str, Any], path: str, fault: str, size: int) -> bytes:
        """Return the body of an answer."""
        if self.draws is not None and path.endswith(_DRAWS):
            return await self._in_pool(drawn_reply, self.draws, body, fault)
        words = await self._in_pool(self.answer, body)
        declined = str(words) if isinstance(words, Refusal) else None
        chat = path.endswith("/chat/completions")
        return json.dumps(completion(body, words, fault, declined=declined, chat=chat, size=size)).encode()

    async def _model(self, writer: asyncio.StreamWriter, content: bytes, path: str) -> bool:
        self.counts["received"] += 1
        digest = hashlib.sha256(content).hexdigest()
        self.came[digest] += 1
        faults = self.faults
        if faults.valid_for is not None and self.counts["answered"] >= faults.valid_for:
            self.counts["revoked"] += 1
            await asyncio.sleep(faults.latency)
            return await self._error(writer, faults.invalid_status, "invalid_api_key", "The API key was revoked.")
        if faults.credit is not None and self.counts["answered"] >= faults.credit:
            self.counts["unpaid"] += 1
            await asyncio.sleep(faults.latency)
            code = "insufficient_quota" if faults.no_credit_status == 429 else "payment_required"
            message = "You exceeded your current quota, please check your plan and billing details."
            return await self._error(writer, faults.no_credit_status, code, message)
        allowed, stated, wait = self._limiter.admit(asyncio.get_running_loop().time())
        fault = self._fault()
        await self._work(faults.latency + faults.jitter * self._draw.random(), queued=allowed)
        if not allowed or fault == "too_many":
            self.counts["too_many" if allowed else "limited"] += 1
            return await self._error(
                writer, 429, "rate_limit_exceeded", "Rate limit reached.", {**stated, **self._retry_headers(wait)}
            )
        try:
            body = json.loads(content)
        except ValueError:
            return await self._error(writer, 400, "invalid_request_error", "The body is not a JSON.", stated)
        if not isinstance(body, dict):
            return await self._error(writer, 400, "invalid_request_error", "The body is not an object.", stated)
        if asked_schema(body) is not None and not faults.takes_schema:
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
        try:
            reply = await self._reply(body, path, fault, len(content))
        except BadRequest as error:
            self.counts["bad_request"] += 1
            return await self._error(writer, error.status, error.code, str(error), stated)
        except Exception as error:  # noqa: BLE001 - a server returns 500 for any failure behind it
            self.counts["broken"] += 1
            return await self._error(writer, 500, "server_error", f"The model broke ({type(error).__name__}).", stated)
        return await self._deliver(writer, reply, fault, stated, digest)

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

    async def _work(self, seconds: float, *, queued: bool) -> None:
        if self._slots is None or not queued:
            await asyncio.sleep(seconds)
            return
        async with self._slots:
            await asyncio.sleep(seconds)

    def _fault(self) -> str:
        point = self._draw.random()
        for name in SHARES:
            point -= float(getattr(self.faults, name))
            if point < 0:
                return name
        return ""

    def _retry_headers(self, wait: float) -> dict[str, str]:
        if self.faults.retry_after == "none":
            return {}
        seconds = max(1, math.ceil(wait))
        if self.faults.retry_after == "date":
            # Dates have whole seconds: add one, otherwise the moment would be too early.
            return {"retry-after": formatdate(time.time() + seconds + 1, usegmt=True)}
        return {"retry-after": str(seconds)}

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
            # With a linger time of 0 s, closing sends a reset (RST) instead of an end (FIN).
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        return False


@contextlib.contextmanager
def serving(faults: Faults | None = None, *, answer: Answer = default_answer, port: int = 0) -> Iterator[FaultServer]:
    """Run a server in a thread of this process and stop it at the end."""
    with serving_server(FaultServer(faults, answer=answer, port=port)) as server:
        yield server


@contextlib.contextmanager
def serving_server(server: FaultServer) -> Iterator[FaultServer]:
    """Run a server that was created but not started, as :func:`serving` does."""
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
    parser = argparse.ArgumentParser(prog="python -m medtest.api.faulty.server", description="A server with faults.")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    for field in fields(Faults):
        name = "--" + field.name.replace("_", "-")
        if isinstance(field.default, bool):
            parser.add_argument(name, action=argparse.BooleanOptionalAction, default=field.default)
        else:
            kind = type(field.default) if field.default is not None else float if field.name == "rate" else int
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

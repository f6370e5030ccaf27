"""Pictures per second through the API room beside the bare openai client, at 512×512 PNG from an instant server.

``python benchmarks/pictures.py`` starts a server of its own, as a process, that answers ``/v1/images/generations`` at
once with one of a few PNG files in base64. The bare client decodes the JSON and the base64 and throws the picture away;
ours also decodes the picture, hashes its pixels, writes the file to disk (fsync, rename) and both ledger and cache,
processors stand beside.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import cv2
import numpy as np
import psutil

from benchmarks._sizes import options
from medtest.api.calls.client import Caller, Endpoint
from medtest.api.calls.request import Parameters, Request
from medtest.api.campaign import Campaign
from medtest.api.drawn.keepers import Keepers
from medtest.api.drawn.kept import KeptPictures
from medtest.api.pacing.rate_limiter import RateLimiter
from medtest.api.store.cache import Cache
from medtest.api.store.ledger import Ledger
from medtest.core.files.by_content import encode

PARAMETERS = Parameters(model="instant", temperature=None, max_tokens=None, api="images")
TARGET = 0.75
LEAST = 128
"""Pixels of the smallest side for which :func:`picture` has shapes."""
WARM = 80
"""Pictures before the clock starts: the processes that help are started by then, as in a run of any length."""


def picture(number: int, size: int) -> np.ndarray:
    """Return a picture with shapes and a little noise, as renderers draw them: about 1 bit a pixel to pack."""
    draw = np.random.default_rng(number)
    slope = np.linspace(60, 180, size)[:, None] + np.linspace(0, 40, size)[None]
    found = np.repeat(slope[:, :, None], 3, axis=2)
    for _ in range(12):
        x, y, r = (int(value) for value in draw.integers((0, 0, 20), (size, size, size // 6)))
        cv2.circle(found, (x, y), r, tuple(float(value) for value in draw.integers(0, 256, 3)), -1)
    return np.clip(found + draw.normal(0, 2, found.shape), 0, 255).astype(np.uint8)


async def serve(size: int, kinds: int) -> None:
    """Answer every request with one of a few replies that are made beforehand; the address goes to standard output."""
    replies = []
    for number in range(kinds):
        png = base64.b64encode(encode("images", picture(number, size))).decode()
        usage = {"input_tokens": 10, "output_tokens": 272, "total_tokens": 282}
        body = json.dumps({"created": 0, "data": [{"b64_json": png}], "usage": usage}).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        replies.append(head + body)
    count = 0

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
                await reader.readexactly(length)
                count += 1
                writer.write(replies[count % kinds])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=2**20)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await server.serve_forever()


@contextmanager
def instant(size: int, kinds: int) -> Iterator[str]:
    """Start the server as a process and return its address."""
    command = [sys.executable, __file__, "--serve", f"--size={size}", f"--kinds={kinds}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def processor_seconds() -> float:
    """Return the user and system time of this process and of those that help it."""
    spent = os.times()
    helping = [one.cpu_times() for one in psutil.Process().children() if "medtest.api.drawn.keeper" in one.cmdline()]
    return spent.user + spent.system + sum(times.user + times.system for times in helping)


async def bare(base_url: str, count: int, in_flight: int, name: str) -> tuple[float, float]:
    """Return wall and processor seconds of the openai client alone, the pictures thrown away."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0) as client:
        slots = asyncio.Semaphore(in_flight)

        async def one(index: int) -> None:
            async with slots:
                reply = await client.images.generate(model="instant", prompt=f"{name} {index}", n=1)
                base64.b64decode((reply.data or [])[0].b64_json or "")

        await one(-1)
        began, spent = time.perf_counter(), processor_seconds()
        await asyncio.gather(*(one(index) for index in range(count)))
        return time.perf_counter() - began, processor_seconds() - spent


@asynccontextmanager
async def campaign(base_url: str, in_flight: int, threads: int) -> AsyncIterator[Campaign]:
    """Make a campaign with a fresh ledger, cache and store."""
    caller = Caller(Endpoint(base_url=base_url), PARAMETERS, max_in_flight=in_flight, call_seconds=120)
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger(Path(folder) / "ledger.sqlite") as ledger,
        Cache(Path(folder) / "answers.sqlite") as cache,
    ):
        helpers = Keepers(Path(folder) / "pictures", size=None, most=threads)
        kept = KeptPictures(Path(folder) / "pictures", Path(folder) / "shared", threads=threads, helpers=helpers)
        limiter = RateLimiter(max_in_flight=in_flight)
        yield Campaign(caller, ledger, cache=cache, limiter=limiter, pictures=kept)
        await caller.close()
        kept.close()


async def ours(base_url: str, count: int, in_flight: int, name: str, threads: int) -> tuple[float, float]:
    """Return wall and processor seconds of a campaign."""
    async with campaign(base_url, in_flight, threads) as made:
        warm = [Request(address=f"warm/{index}", prompt=f"{name} warm {index}") for index in range(WARM)]
        assert all([outcome.picture async for outcome in made.outcomes(warm)])  # noqa: S101 - its helpers are up then
        requests = (Request(address=f"{name}/{index}", prompt=f"{name} {index}") for index in range(count))
        began, spent = time.perf_counter(), processor_seconds()
        found = [outcome async for outcome in made.outcomes(requests)]
        wall, used = time.perf_counter() - began, processor_seconds() - spent
        good = [outcome for outcome in found if outcome.state == "answered" and outcome.picture]
        assert len(good) == count  # noqa: S101 - a figure of what failed is none
        return wall, used


def main() -> None:
    """Compare by turns and print both rates, their ratio and whether it reaches the target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pictures", type=int, default=400)
    parser.add_argument("--size", type=int, default=512, help=f"side in pixels, {LEAST} or more")
    parser.add_argument("--kinds", type=int, default=64, help="different pictures that the server has")
    parser.add_argument("--in-flight", type=int, default=16)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = options(parser, pictures=12, passes=1, size=LEAST, kinds=4)
    if chosen.size < LEAST:
        parser.error(f"--size is {chosen.size}; it must be {LEAST} or more, for smaller shapes cannot be drawn")
    if chosen.serve:
        asyncio.run(serve(chosen.size, chosen.kinds))
        return
    best: dict[str, tuple[float, float]] = {}
    with instant(chosen.size, chosen.kinds) as base_url:
        for turn in range(chosen.passes):
            for name in ("bare", "ours"):
                label = f"{name}{turn}"
                if name == "bare":
                    got = asyncio.run(bare(base_url, chosen.pictures, chosen.in_flight, label))
                else:
                    got = asyncio.run(ours(base_url, chosen.pictures, chosen.in_flight, label, chosen.threads))
                best[name] = min(best.get(name, got), got)
    for name, (wall, used) in best.items():
        rate = chosen.pictures / wall
        print(f"{name}: {rate:6.1f} pictures/s, {1000 * used / chosen.pictures:5.1f} ms of processor a picture")
    ratio = best["bare"][0] / best["ours"][0]
    print(f"ours / bare: {ratio:.2f} (target {TARGET}) at {chosen.size}x{chosen.size}, {chosen.in_flight} in flight")


if __name__ == "__main__":
    main()

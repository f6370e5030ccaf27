"""Requests per second through the API room beside the bare openai client, and what limits and faults cost.

``python -m benchmarks.api [--calls N] [--limited N] [--slow N] [--faulty N] [--flat N] [--in-flight N] [--only NAME
…]``; each scenario runs against a fault server in a process of its own on the same machine, with 33 KB pictures, cache
and ledger on:

- ``throughput``: 50 ms and 250 ms of latency, the bare client (``max_retries=0``, a semaphore) and a campaign by
  turns in one run, best of each; requests per second, their ratio, the share of the ideal (in flight / latency), and
  processor time per call on the client's side, which other programs on the machine disturb least;
- ``product``: the same with a whole suite run in the place of the campaign (follow-ups made, answers judged, records
  written); the rate counts from the loaded worker on, the processor time a call is what a long run takes more than a
  short one (best of each, after one that warms), so that starting a worker counts in neither;
- ``limits``: a server that allows 10/s (burst 10): with rate-limit headers, with Retry-After alone, with neither;
- ``slow``: a server of one slot at 1.2 s a call that works on what was given up too (108 calls take 130 s one after
  another; ``call_seconds`` of 2, 5 and 20), and one that states 60 a minute and allows 6 in 6 s; some minutes;
- ``faults``: 5 % 429, 2 % 500, 1 % reset, 1 % truncated, 1 % slow: calls lost and doubled;
- ``memory``: resident memory at the quarters of a long campaign.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks import _noise_suite as noise
from benchmarks._sizes import options
from medtest.api.calls.client import Caller, Endpoint
from medtest.api.calls.request import Parameters, Picture, Request
from medtest.api.calls.retry import Retries
from medtest.api.campaign import Campaign
from medtest.api.pacing.rate_limiter import RateLimiter
from medtest.api.store.cache import Cache
from medtest.api.store.ledger import Ledger
from medtest.api.wire.words import request_body

PICTURE = Picture.of(np.random.default_rng(0).integers(0, 256, (100, 110, 3), dtype=np.uint8))
PARAMETERS = Parameters(model="simulated")
SCENARIOS = ("throughput", "product", "limits", "slow", "faults", "memory")


@contextlib.contextmanager
def server(**faults: object) -> Iterator[str]:
    """Start a fault server in a process of its own and give its address."""
    line = [sys.executable, "-m", "medtest.api.faulty.server"]
    for name, value in faults.items():
        flag = "--" + name.replace("_", "-")
        line += [flag if value else "--no-" + flag[2:]] if isinstance(value, bool) else [flag, str(value)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def told(base_url: str) -> dict[str, Any]:
    """Return what the server counted."""
    with urllib.request.urlopen(base_url.replace("/v1", "/faults")) as answer:  # noqa: S310 - loopback
        found: dict[str, Any] = json.load(answer)
        return found


def questions(count: int, name: str) -> Iterator[Request]:
    """Requests whose contents all differ."""
    for index in range(count):
        yield Request(address=f"{name}/{index}", prompt=f"{name} {index}: is there a polyp?", pictures=(PICTURE,))


def processor_seconds() -> float:
    """Return this process's user and system time."""
    spent = os.times()
    return spent.user + spent.system


async def bare(base_url: str, count: int, in_flight: int, name: str) -> tuple[float, float]:
    """Return wall and processor seconds of the openai client alone."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0) as client:
        slots = asyncio.Semaphore(in_flight)

        async def one(request: Request) -> None:
            async with slots:
                await client.chat.completions.create(**request_body(request, PARAMETERS))

        await one(next(questions(1, name + "-warm")))
        began, spent = time.perf_counter(), processor_seconds()
        await asyncio.gather(*(one(request) for request in questions(count, name)))
        return time.perf_counter() - began, processor_seconds() - spent


@contextlib.contextmanager
def campaign(base_url: str, in_flight: int, rules: Retries | None = None) -> Iterator[Campaign]:
    """Make a campaign with a fresh ledger and cache."""
    import openai  # noqa: F401 - loading it takes seconds and is no part of a rate

    rules = rules or Retries()
    caller = Caller(Endpoint(base_url=base_url), PARAMETERS, max_in_flight=in_flight, call_seconds=rules.call_seconds)
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger(Path(folder) / "ledger.sqlite") as ledger,
        Cache(Path(folder) / "cache.sqlite") as cache,
    ):
        yield Campaign(caller, ledger, cache=cache, limiter=RateLimiter(max_in_flight=in_flight), retries=rules)


async def ours(base_url: str, count: int, in_flight: int, name: str) -> tuple[float, float]:
    """Return wall and processor seconds of a campaign, its slow start included."""
    with campaign(base_url, in_flight) as made:
        await made.caller.call(next(questions(1, name + "-warm")))
        began, spent = time.perf_counter(), processor_seconds()
        states = [outcome.state async for outcome in made.outcomes(questions(count, name))]
        wall = time.perf_counter() - began
        assert len(states) == count and set(states) == {"answered"}  # noqa: S101 - a figure of what failed is none
        await made.caller.close()
        return wall, processor_seconds() - spent


def throughput(chosen: argparse.Namespace) -> None:
    """Compare with the bare client, by turns."""
    for latency in (0.05, 0.25):
        best: dict[str, tuple[float, float]] = {}
        with server(latency=latency) as base_url:
            for turn in range(chosen.passes):
                for name, measure in (("bare", bare), ("ours", ours)):
                    label = f"{name}{turn}"
                    got = asyncio.run(measure(base_url, chosen.calls, chosen.in_flight, label))
                    best[name] = tuple(map(min, best.get(name, got), got))  # type: ignore[assignment]
        ideal = chosen.in_flight / latency
        rate = {name: chosen.calls / wall for name, (wall, _) in best.items()}
        spent = {name: 1000 * cpu / chosen.calls for name, (_, cpu) in best.items()}
        print(
            f"{1000 * latency:.0f} ms, {chosen.in_flight} in flight, {chosen.calls} calls:"
            f" bare {rate['bare']:.0f}/s, ours {rate['ours']:.0f}/s, ratio {rate['ours'] / rate['bare']:.2f};"
            f" {rate['ours'] / ideal:.0%} of the ideal {ideal:.0f}/s (bare {rate['bare'] / ideal:.0%});"
            f" client processor ms per call: bare {spent['bare']:.2f}, ours {spent['ours']:.2f}",
            flush=True,
        )


def product(chosen: argparse.Namespace) -> None:
    """Compare a suite run with the bare client, by turns."""
    seeds = max(2, round(chosen.calls / noise.CALLS_A_SEED))
    for latency in (0.05, 0.25):
        bare_best: tuple[float, float] | None = None
        short: list[noise.Measured] = []
        runs: list[noise.Measured] = []
        calls = seeds * noise.CALLS_A_SEED
        with server(latency=latency) as base_url:
            noise.product(base_url, 1, chosen.in_flight)  # what the first run of a process loads is no part of a call
            for turn in range(chosen.passes):
                got = asyncio.run(bare(base_url, calls, chosen.in_flight, f"product{turn}"))
                bare_best = got if bare_best is None else (min(bare_best[0], got[0]), min(bare_best[1], got[1]))
                short.append(noise.product(base_url, 1, chosen.in_flight))
                runs.append(noise.product(base_url, seeds, chosen.in_flight))
        assert bare_best is not None  # noqa: S101 - at least one pass
        ideal = chosen.in_flight / latency
        alone, suite = calls / bare_best[0], calls / min(run.seconds for run in runs)
        print(
            f"product, {1000 * latency:.0f} ms, {chosen.in_flight} in flight, {calls} calls:"
            f" bare {alone:.0f}/s, suite {suite:.0f}/s, ratio {suite / alone:.2f};"
            f" {suite / ideal:.0%} of the ideal {ideal:.0f}/s (bare {alone / ideal:.0%});"
            f" processor ms per call: bare client {1000 * bare_best[1] / calls:.2f}, suite (both processes, making"
            f" follow-ups, judging and writing included) {_per_call(short, runs)}",
            flush=True,
        )


def _per_call(short: Sequence[noise.Measured], long: Sequence[noise.Measured]) -> str:
    """Return the milliseconds of processor time that a call of the long runs adds to the short ones."""
    more = min(run.processor for run in long) - min(run.processor for run in short)
    calls = long[0].calls - short[0].calls
    return f"{1000 * more / calls:.2f}" if more > 0 else f"unknown ({calls} calls are too few to tell from chance)"


def limits(chosen: argparse.Namespace) -> None:
    """Count refusals of a server that allows 10/s."""
    for title, how in (
        ("rate-limit headers", {"headers": True, "retry_after": "seconds"}),
        ("Retry-After alone", {"headers": False, "retry_after": "seconds"}),
        ("neither", {"headers": False, "retry_after": "none"}),
    ):
        with server(latency=0.05, rate=10, burst=10, **how) as base_url:
            with campaign(base_url, chosen.in_flight) as made:
                began = time.perf_counter()
                states = [outcome.state for outcome in made.iterate(questions(chosen.limited, "limit"))]
                wall = time.perf_counter() - began
            counts = told(base_url)["counts"]
        refused = counts.get("limited", 0)
        print(
            f"10/s, {title}: {chosen.limited} calls in {wall:.1f} s ({chosen.limited / wall:.1f}/s),"
            f" lost {chosen.limited - states.count('answered')},"
            f" {refused} of {counts['received']} attempts refused ({refused / counts['received']:.1%})",
            flush=True,
        )


def slow(chosen: argparse.Namespace) -> None:
    """Count what comes back late, and what is refused, of servers that are slower or stricter than they look."""
    one = {"slots": 1, "latency": 1.2}
    short = {"rate": 1.0, "burst": 60, "hidden": 6, "hidden_seconds": 6.0, "latency": 0.25}
    for title, how, seconds in (
        *((f"one slot, 1.2 s a call, call_seconds {limit:g}", one, limit) for limit in (2.0, 5.0, 20.0)),
        ("60/min stated, 6 in 6 s, Retry-After", {**short, "retry_after": "seconds"}, 20.0),
        ("60/min stated, 6 in 6 s, no word", {**short, "retry_after": "none"}, 20.0),
    ):
        with server(**how) as base_url:
            with campaign(base_url, chosen.in_flight, Retries(call_seconds=seconds)) as made:
                began = time.perf_counter()
                got = list(made.iterate(questions(chosen.slow, "slow")))
                wall = time.perf_counter() - began
            counts = told(base_url)["counts"]
        answered = [outcome for outcome in got if outcome.state == "answered"]
        late = counts["received"] - counts.get("limited", 0) - len(answered)
        print(
            f"{title}: {len(answered)} of {chosen.slow} answered in {wall:.0f} s, {late} calls given up,"
            f" {counts.get('limited', 0)} of {counts['received']} refused; most calls of a question"
            f" {max(outcome.attempts for outcome in got)}; seconds of an answer, median"
            f" {np.median([outcome.seconds for outcome in answered]) if answered else float('nan'):.1f}",
            flush=True,
        )


def faults(chosen: argparse.Namespace) -> None:
    """Count what a mix of faults loses and doubles."""
    mix = {"too_many": 0.05, "error": 0.02, "reset": 0.01, "truncated": 0.01, "slow": 0.01, "retry_after": "none"}
    with server(latency=0.05, slow_seconds=2.0, **mix) as base_url:
        with campaign(base_url, chosen.in_flight) as made:
            began = time.perf_counter()
            seen = [(outcome.address, outcome.state) for outcome in made.iterate(questions(chosen.faulty, "fault"))]
            wall = time.perf_counter() - began
            totals, line = made.ledger.totals(), made.progress().line()
        stated = told(base_url)
    answered = sum(state == "answered" for _, state in seen)
    print(
        f"fault mix: {chosen.faulty} calls in {wall:.1f} s, lost {chosen.faulty - answered},"
        f" doubled {len(seen) - len({address for address, _ in seen})} (by the server's count {stated['doubled']}),"
        f" may be billed twice {totals.doubtful}; {stated['counts']}\n  {line}",
        flush=True,
    )


def memory(chosen: argparse.Namespace) -> None:
    """Print resident memory along a long campaign."""
    process, sizes = psutil.Process(), []
    with server() as base_url, campaign(base_url, chosen.in_flight) as made:
        for index, _ in enumerate(made.iterate(questions(chosen.flat, "flat")), start=1):
            if index % max(1, chosen.flat // 8) == 0:
                sizes.append(process.memory_info().rss / 2**20)
    shown = ", ".join(f"{size:.0f}" for size in sizes)
    print(f"memory, {chosen.flat} calls, MB at each eighth: {shown}", flush=True)


def main() -> None:
    """Run the scenarios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1500, help="calls of a throughput pass")
    parser.add_argument("--passes", type=int, default=3, help="throughput passes of each client")
    parser.add_argument("--limited", type=int, default=200, help="calls under a limit")
    parser.add_argument("--slow", type=int, default=108, help="calls of slow and strict servers")
    parser.add_argument("--faulty", type=int, default=5000, help="calls under the fault mix")
    parser.add_argument("--flat", type=int, default=60000, help="calls of the memory scenario")
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, default=SCENARIOS)
    chosen = options(parser, calls=40, passes=1, limited=12, slow=2, faulty=60, flat=200)
    for name in chosen.only:
        scenarios = (throughput, product, limits, slow, faults, memory)
        next(one for one in scenarios if one.__name__ == name)(chosen)


if __name__ == "__main__":
    main()

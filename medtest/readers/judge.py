"""A model over an API that reads answers that the parser could not read: the optional judge of ``unparsed``.

It uses the same presets, limits, cache and ledger as systems under test, and only words are sent to it. Its prompts,
and the rules for which of its replies are accepted, are in :mod:`medtest.readers.meaning`.
"""

from __future__ import annotations

import hashlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from types import FrameType
from typing import Any, ClassVar
from urllib.parse import urlsplit

from medtest.api.budget import estimate
from medtest.api.calls.request import CallState, Outcome, Request
from medtest.api.campaign import Campaign
from medtest.api.pacing.rate_limiter import RateLimiter
from medtest.api.store.cache import Cache
from medtest.api.store.ledger import Ledger, doubtful_words
from medtest.api.wire.answers import parse_structured
from medtest.core.cases import Json
from medtest.core.errors import ExitCode, FolderInUse, MedtestError, Mistake, OutputProblem
from medtest.language.questions.answers.values.answer import State
from medtest.language.questions.values import Kind
from medtest.language.questions.wording import MOST_WORDS
from medtest.readers.base import Reader, ReadingJob, Readings
from medtest.readers.meaning import (
    NEEDS,
    REVISION,
    SYSTEM_PROMPT,
    JudgeReply,
    Reading,
    Unread,
    columns_of,
    reading_of,
    unread_of,
)
from medtest.systems.answering.asking import BudgetLimits
from medtest.systems.answering.misplaced_keys import unnamed
from medtest.systems.answering.openai_compatible import CACHE, OpenAICompatible

LEDGER = "judge.sqlite"
"""Name of the judge's ledger in a run's folder."""
NAME = "judge"
_WAIT_SECONDS = 10.0
_TOLD_SECONDS = 0.5


class Stopped(Exception):
    """The user stopped the judge before the last answer."""


class Judge(Reader[Unread, Reading]):
    """Reads textual answers that the parser cannot read.

    Args:
        model: A model over an API that is not opened yet.
        limits: Cost limits for the readings of one run; None for no limit.
    """

    task: ClassVar[str] = "answer"
    columns: ClassVar[tuple[str, ...]] = ("state", "said", "evidence")
    needs: ClassVar[tuple[str, ...]] = NEEDS
    second: ClassVar[bool] = True

    def __init__(self, model: OpenAICompatible, limits: BudgetLimits | None = None) -> None:
        super().__init__(f"{model.name}/{model.settings.model}", model.settings)
        self.model, self.limits = model, limits or BudgetLimits()

    def check(self) -> list[Mistake]:
        """Return mistakes for a missing address, model name or key, or a missing price for a budget in dollars."""
        own, endpoint = self.model.settings, self.model.endpoint()
        mistakes = unnamed(own, endpoint, NAME, f"{NAME}.", model=f"{NAME}.model_name", pictures=False)
        if self.limits.max_usd is not None and self.model.price() is None:
            fix = f"use {NAME}.max_calls, or give the price in conf/model/"
            mistakes.append(Mistake(where=NAME, key=f"{NAME}.max_usd", found="no price of the model", fix=fix))
        return mistakes

    def fingerprint(self) -> dict[str, Json]:
        """Return everything the readings depend on: provider, model and generation parameters."""
        endpoint = self.model.endpoint()
        provider = hashlib.sha256(endpoint.provider.rstrip("/").encode()).hexdigest()
        parameters = asdict(self.model.parameters()) | {"extra": dict(self.model.settings.extra)}
        return {"revision": REVISION, "provider": provider, "parameters": parameters}

    def notice(self) -> str:
        """Describe who reads, and state that only words are sent."""
        endpoint = self.model.endpoint()
        where = "on this machine" if endpoint.loopback else f"at {urlsplit(endpoint.base_url).netloc}"
        return f"{self.name} {where} reads answers in which medtest finds no value; their words are sent, no image."

    def quote(self) -> str:
        """Describe the maximum cost of one call: the longest words that a record stores and a reply of full length."""
        text = "x" * MOST_WORDS
        longest_of_kinds = [Unread(item="", kind=str(kind), question=text, words=text) for kind in Kind]
        longest = max(longest_of_kinds, key=lambda unread: len(unread.prompt()))
        most, price = estimate(self._request("", longest), self.model.parameters()), self.model.price()
        tokens = f"about {most.prompt:,} tokens sent and {most.completion:,} back"
        cost = "no price is known" if price is None else f"${price.of(most.prompt, most.completion, most.pictures):.4f}"
        return f"One call for each such answer, at most {tokens}: {cost}."

    def announce(self, count: int) -> str:
        """Return the line shown before the judge is asked."""
        return f"A judge reads {count:,} answers. {self.notice()}"

    def nothing(self) -> str:
        """Return the line shown if the parser has read everything."""
        return f"medtest read every answer; {self.name} was not needed."

    def summary(self, readings: Readings, total: int) -> str:
        """Return the line shown afterwards: how much was read, how much of it was rejected, and the cost."""
        read = sum(reading.state != State.UNPARSED for reading in readings.facts.values())
        doubted = sum(bool(reading.doubt) for reading in readings.facts.values())
        words = f"{self.name} read {read:,} of {total:,} answers in which medtest finds no value"
        if doubted:
            words += "; 1 reading is not accepted" if doubted == 1 else f"; {doubted:,} readings are not accepted"
        return f"{words} ({_paid(readings)}); tables/answers_judged.csv has each."

    def recorded(self, row: Mapping[str, Any]) -> Unread | None:
        """Return the words of a record if the parser found no value in them."""
        return unread_of(row)

    def readings(self, contents: Sequence[Unread], job: ReadingJob) -> Readings:
        """Return the model's readings of words; each is asked about once.

        After the first Ctrl-C (or SIGTERM), calls in progress are completed, because they are already paid for; a
        second one abandons them.

        Args:
            contents: The words.
            job: The ledger is in the run's folder; the cache of answers is in the folder shared by all runs.

        Returns:
            The readings. If a budget, the server, the disk or the user stops the judge early, they are partial and
            ``problem`` gives the reason: the results of a run do not depend on its judge. If it read none of the words,
            the code reports too many errors, because checks based on its readings, including gates, would see only the
            remaining answers.
        """
        readings: dict[Unread, Reading] = {}
        outcomes: list[Outcome] = []
        problem, code = "", ExitCode.OK
        try:
            for unread, outcome in self._outcomes(contents, job):
                outcomes.append(outcome)
                reading = _reading(unread, outcome)
                if reading is not None:
                    readings[unread] = reading
        except Stopped:
            if remaining := len(contents) - len(outcomes):
                problem = (
                    f"{self.name} was stopped before {remaining} of {len(contents)} answers; run the same command"
                    " again to continue."
                )
                code = ExitCode.INTERRUPTED
        except (OutputProblem, FolderInUse, MedtestError) as stopped:
            problem, code = self._words(stopped), stopped.exit_code
        silent = len(outcomes) - len(readings)
        if not problem and silent:
            reason = next(
                (outcome.reason for outcome in outcomes if outcome.state == CallState.ERROR), "no usable reply"
            )
            problem = f"{self.name} gave no reading of {silent} of {len(contents)} answers: {reason}"
            code = ExitCode.OK if readings else ExitCode.TOO_MANY_ERRORS
        called = [outcome for outcome in outcomes if outcome.source == "call"]
        return Readings(
            reader=self.name,
            recorded=unread_of,
            columns=columns_of(readings),
            facts=readings,
            marks=True,
            calls=sum(outcome.attempts for outcome in called),
            cost_usd=_cost(outcomes),
            paid_usd=_cost(called),
            account=doubtful_words(job.folder / LEDGER, self.name),
            problem=problem,
            code=code,
        )

    def _words(self, stopped: MedtestError) -> str:
        return f"{self.name} was stopped: {str(stopped).replace('budget.', f'{NAME}.')}"

    def _outcomes(self, unread: Sequence[Unread], job: ReadingJob) -> Iterator[tuple[Unread, Outcome]]:
        model = self.model
        with Ledger(job.folder / LEDGER, wait=_WAIT_SECONDS) as ledger, Cache(job.shared / CACHE, job.cache) as cache:
            budget = model.budget(ledger, self.limits, NAME)
            limiter = RateLimiter(max_in_flight=model.settings.max_in_flight)
            campaign = model.campaign(model.caller(NAME, pictures=False), ledger, cache, budget, limiter)
            unread_by_address = {_address(entry): entry for entry in unread}
            with _reporting_progress(campaign, job.progress), _stopping_gently(campaign, job.stopping) as stopped:
                for outcome in campaign.iterate(
                    self._request(address, entry) for address, entry in unread_by_address.items()
                ):
                    yield unread_by_address[outcome.address], outcome
            if stopped:
                raise Stopped

    def _request(self, address: str, unread: Unread) -> Request:
        own = self.model.settings
        return Request(
            address=address,
            prompt=unread.prompt(),
            system=SYSTEM_PROMPT,
            seed=0 if own.seed == "case" else None,
            answer_model=JudgeReply,
        )


def _paid(readings: Readings) -> str:
    """Describe what was paid now; calls from an earlier session or run were paid then."""
    if not readings.calls:
        return "nothing was paid this time" + ("" if readings.problem else ": all replies were stored")
    calls = "1 call" if readings.calls == 1 else f"{readings.calls:,} calls"
    if readings.paid_usd is None:
        return calls
    earlier = (readings.cost_usd or 0.0) - readings.paid_usd
    return f"{calls}, ${readings.paid_usd:.4f}" + (f"; ${earlier:.4f} was paid before" if earlier > 0 else "")


def _cost(outcomes: Sequence[Outcome]) -> float | None:
    costs = [outcome.cost_usd for outcome in outcomes if outcome.cost_usd is not None]
    return sum(costs) if costs else None


@contextmanager
def _reporting_progress(campaign: Campaign, progress: Callable[[str], None]) -> Iterator[None]:
    """Report the progress of the calls until the block ends."""
    over = threading.Event()

    def live() -> None:
        while not over.wait(_TOLD_SECONDS):
            with suppress(RuntimeError):  # a counter was being added during the copy
                progress(campaign.progress().line())

    thread = threading.Thread(target=live, name="judge-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _stopping_gently(campaign: Campaign, stopping: Callable[[], None]) -> Iterator[list[int]]:
    """After the first Ctrl-C or SIGTERM, start no further calls; after a second one, abort at once.

    Yields:
        The signals received so far.
    """
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    earlier = {number: signal.getsignal(number) for number in numbers}

    def stop(number: int, frame: FrameType | None) -> None:
        if signals:
            raise KeyboardInterrupt
        signals.append(number)
        # Not in this thread: the signal may arrive while it holds a lock that the stop needs.
        threading.Thread(target=campaign.stop, daemon=True).start()
        stopping()

    for number in numbers:
        signal.signal(number, stop)
    try:
        yield signals
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _address(unread: Unread) -> str:
    """Return a reading's key in the ledger: the hash of the content, without the case or the patient."""
    text = "\n".join((unread.item, unread.kind, unread.question, unread.words))
    return f"{NAME}/{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _reading(unread: Unread, outcome: Outcome) -> Reading | None:
    """Return the reading from a call; None if the reply does not have the requested form."""
    parsed = outcome.parsed
    if not isinstance(parsed, Mapping) and outcome.state == CallState.ANSWERED:
        parsed, _ = parse_structured(outcome.text, JudgeReply)
    return reading_of(parsed, unread) if isinstance(parsed, Mapping) else None

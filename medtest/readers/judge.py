"""A model over an API that reads what the parser of answers could not: the optional judge of ``unparsed``.

It is a system like those under test, with the same presets, limits, cache and ledger; only words are sent to it. What
it is asked and what of its replies is believed is :mod:`medtest.readers.meaning`'s.
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

from medtest.api.budget import planned_cost
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
"""The judge's ledger in a run's folder."""
NAME = "judge"
_WAIT_SECONDS = 10.0
_TOLD_SECONDS = 0.5


class Stopped(Exception):
    """The user stopped it before the last answer."""


class Judge(Reader[Unread, Reading]):
    """Reads answers in words that the parser cannot read.

    Args:
        model: A model over an API, not opened.
        limits: What one run's readings may cost; None for no limit.
    """

    task: ClassVar[str] = "answer"
    columns: ClassVar[tuple[str, ...]] = ("state", "said", "evidence")
    needs: ClassVar[tuple[str, ...]] = NEEDS
    second: ClassVar[bool] = True

    def __init__(self, model: OpenAICompatible, limits: BudgetLimits | None = None) -> None:
        super().__init__(f"{model.name}/{model.settings.model}", model.settings)
        self.model, self.limits = model, limits or BudgetLimits()

    def check(self) -> list[Mistake]:
        """Return what is missing: the address, the model's name, the key, the price of a budget in dollars."""
        own, endpoint = self.model.settings, self.model.endpoint()
        found = unnamed(own, endpoint, NAME, f"{NAME}.", model=f"{NAME}.model_name", pictures=False)
        if self.limits.max_usd is not None and self.model.price() is None:
            fix = f"use {NAME}.max_calls, or give the price in conf/model/"
            found.append(Mistake(where=NAME, key=f"{NAME}.max_usd", found="no price of the model", fix=fix))
        return found

    def fingerprint(self) -> dict[str, Json]:
        """Return all that its readings depend on: provider, model, parameters of generation."""
        endpoint = self.model.endpoint()
        provider = hashlib.sha256(endpoint.provider.rstrip("/").encode()).hexdigest()
        parameters = asdict(self.model.parameters()) | {"extra": dict(self.model.settings.extra)}
        return {"revision": REVISION, "provider": provider, "parameters": parameters}

    def notice(self) -> str:
        """Say who reads, and that words alone are sent."""
        endpoint = self.model.endpoint()
        where = "on this machine" if endpoint.loopback else f"at {urlsplit(endpoint.base_url).netloc}"
        return f"{self.name} {where} reads answers in which medtest finds no value; their words are sent, no image."

    def quote(self) -> str:
        """Say what one call costs at most: the longest words that a record keeps, and a reply of full length."""
        text = "x" * MOST_WORDS
        asked = [Unread(item="", kind=str(kind), question=text, words=text) for kind in Kind]
        longest = max(asked, key=lambda one: len(one.prompt()))
        planned = planned_cost([self._request("", longest)], self.model.parameters(), self.model.price())
        tokens = f"about {planned.prompt_tokens:,} tokens sent and {planned.completion_tokens:,} back"
        price = "no price is known" if planned.usd_most is None else f"${planned.usd_most:.4f}"
        return f"One call for each such answer, at most {tokens}: {price}."

    def announce(self, count: int) -> str:
        """Return the line before it is asked."""
        return f"{count:,} answers to be read by a judge. {self.notice()}"

    def nothing(self) -> str:
        """Return the line where the parser read everything."""
        return f"medtest read every answer; {self.name} was not asked."

    def summary(self, readings: Readings, asked: int) -> str:
        """Return the line after it was asked: what it read, what of that is not believed, what it cost."""
        read = sum(one.state != State.UNPARSED for one in readings.found.values())
        doubted = sum(bool(one.doubt) for one in readings.found.values())
        words = f"{self.name} read {read:,} of {asked:,} answers in which medtest finds no value"
        if doubted:
            words += "; 1 reading is not believed" if doubted == 1 else f"; {doubted:,} readings are not believed"
        return f"{words} ({_paid(readings)}); tables/answers_judged.csv has each."

    def recorded(self, row: Mapping[str, Any]) -> Unread | None:
        """Return the words of a record, where the parser found no value in them."""
        return unread_of(row)

    def readings(self, contents: Sequence[Unread], job: ReadingJob) -> Readings:
        """Return what the model reads from words; each is asked about once.

        The first Ctrl-C (or SIGTERM) lets calls under way end, for they are paid for; a second one gives them up.

        Args:
            contents: The words.
            job: The ledger lies in the run's folder, answers by content in the one that all runs share.

        Returns:
            The readings. Where a budget, the server, the disk or the user ends it early they are those that are there,
            and ``problem`` says why: a run's results do not depend on its judge. Where it read nothing of all words the
            code is that of too many errors: what is judged by its readings, a gate too, stands on the others alone.
        """
        found: dict[Unread, Reading] = {}
        outcomes: list[Outcome] = []
        problem, code = "", ExitCode.OK
        try:
            for one, outcome in self._outcomes(contents, job):
                outcomes.append(outcome)
                reading = _reading(one, outcome)
                if reading is not None:
                    found[one] = reading
        except Stopped:
            if left := len(contents) - len(outcomes):
                problem = f"{self.name} was stopped before {left} of {len(contents)} answers; the same command goes on."
                code = ExitCode.INTERRUPTED
        except (OutputProblem, FolderInUse, MedtestError) as stopped:
            problem, code = self._words(stopped), stopped.exit_code
        silent = len(outcomes) - len(found)
        if not problem and silent:
            reason = next((one.reason for one in outcomes if one.state == CallState.ERROR), "no usable reply")
            problem = f"{self.name} gave no reading of {silent} of {len(contents)} answers: {reason}"
            code = ExitCode.OK if found else ExitCode.TOO_MANY_ERRORS
        called = [one for one in outcomes if one.source == "call"]
        return Readings(
            reader=self.name,
            recorded=unread_of,
            columns=columns_of(found),
            found=found,
            marks=True,
            calls=sum(one.attempts for one in called),
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
        with Ledger(job.folder / LEDGER, wait=_WAIT_SECONDS) as ledger, Cache(job.shared / CACHE, job.cache) as kept:
            budget = model.budget(ledger, self.limits, NAME)
            limiter = RateLimiter(max_in_flight=model.settings.max_in_flight)
            campaign = model.campaign(model.caller(NAME, pictures=False), ledger, kept, budget, limiter)
            asked = {_address(one): one for one in unread}
            with _told(campaign, job.progress), _stopped_gently(campaign, job.stopping) as stopped:
                for outcome in campaign.iterate(self._request(address, one) for address, one in asked.items()):
                    yield asked[outcome.address], outcome
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
    """Return what was paid now; what was asked in an earlier session or run was paid then."""
    if not readings.calls:
        return "nothing was paid now" + ("" if readings.problem else ": all were asked before")
    calls = "1 call" if readings.calls == 1 else f"{readings.calls:,} calls"
    if readings.paid_usd is None:
        return calls
    earlier = (readings.cost_usd or 0.0) - readings.paid_usd
    return f"{calls}, ${readings.paid_usd:.4f}" + (f"; ${earlier:.4f} was paid before" if earlier > 0 else "")


def _cost(outcomes: Sequence[Outcome]) -> float | None:
    costs = [one.cost_usd for one in outcomes if one.cost_usd is not None]
    return sum(costs) if costs else None


@contextmanager
def _told(campaign: Campaign, progress: Callable[[str], None]) -> Iterator[None]:
    """Tell how the calls stand until the block ends."""
    over = threading.Event()

    def live() -> None:
        while not over.wait(_TOLD_SECONDS):
            with suppress(RuntimeError):  # a counter was being added while they were copied
                progress(campaign.progress().line())

    thread = threading.Thread(target=live, name="judge-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _stopped_gently(campaign: Campaign, stopping: Callable[[], None]) -> Iterator[list[int]]:
    """Let the first Ctrl-C or SIGTERM begin no further call, and a second one end everything at once.

    Yields:
        The signals so far.
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
        # Not in this thread: the signal may have come while it holds a lock that a stop takes.
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
    """Return what a ledger keeps a reading under: the content's hash, which names no case and no patient."""
    text = "\n".join((unread.item, unread.kind, unread.question, unread.words))
    return f"{NAME}/{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _reading(unread: Unread, outcome: Outcome) -> Reading | None:
    """Return what came of a call; None where there is no reply in the form that was asked for."""
    parsed = outcome.parsed
    if not isinstance(parsed, Mapping) and outcome.state == CallState.ANSWERED:
        parsed, _ = parse_structured(outcome.text, JudgeReply)
    return reading_of(parsed, unread) if isinstance(parsed, Mapping) else None

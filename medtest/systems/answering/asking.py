"""Base class of systems that answer questions about images: many at a time, in any order, each once.

A classifier answers a batch at once. A model over an API answers hundreds of concurrent calls in any order, so this
kind of system pulls questions from a stream and yields answers as they arrive. The runner decides which questions are
open, evaluates the answers and writes the records.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeGuard

from medtest.core.cases import Address, AnswerOutput, Ask, Image, PictureOutput, Prompt
from medtest.core.errors import MedtestError
from medtest.core.probes import Need
from medtest.core.records import SIMULATED, is_simulated
from medtest.systems.base import Missing, RawAnswer, System


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """One call to a system: an image with one question, an image with all its questions, or a prompt.

    Attributes:
        number: Number of the call within this process; the answer refers to it.
        label: Displayable address of the case (ids hashed if the suite requires it), with the question or ``together``;
            the ledger's key for the answer.
        addresses: Address of every question's case. Networks must not use them; a server's seed comes from
            :attr:`seed`.
        image: uint8 RGB H×W×3, read-only.
        sha256: SHA-256 of the image (:func:`medtest.core.cases.image_sha256`).
        asks: The questions, one per address.
        together: Whether all questions are asked in one call.
        seed: Seed of the answer's random numbers, 0 to 2³¹ - 1, derived from the suite's seed and the case's address:
            the same whenever the case is run again, different for each repeat.
        prompt: Prompt of a case whose input is one; such a case has no image, one address and no question.
        again: Number of earlier calls of a search with this very input.
        repeats: For prompts, numbers of the repetitions of this input that the run asks for, its own among them.
        source_prompt: Prompt of the source case, if the input is a prompt; systems with sessions may announce it as the
            earlier prompt.
        most_likely: For a single question of yes or no, number of likely tokens to return with their log-probabilities,
            by a system that :attr:`AskingSystem.tells_likely`.
    """

    number: int
    label: str
    addresses: tuple[Address, ...]
    image: Image = field(repr=False)
    sha256: str
    asks: tuple[Ask, ...]
    together: bool = False
    seed: int = 0
    prompt: Prompt | None = None
    source_prompt: Prompt | None = None
    again: int = 0
    repeats: tuple[int, ...] = ()
    most_likely: int = 0

    @property
    def required_prompt(self) -> Prompt:
        """The prompt.

        Raises:
            MedtestError: The call has no prompt but asks about an image.
        """
        if self.prompt is None:
            raise MedtestError("an image generator needs prompts; these seeds are images")
        return self.prompt

    @property
    def repeat(self) -> int:
        """Number of the repetition of this exact input: 0 for sources and follow-ups, 1, 2 … for ``unchanged``."""
        case = self.addresses[0]
        return 0 if case.is_source else case.repeat + 1 + self.again


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Result of a call.

    Attributes:
        number: Number of the call.
        outputs: One per question, or one for the prompt; a string gives the reason of an ERROR, ``Missing`` of a SKIP.
        seconds: Duration; None for cached answers.
        failed_usd: Cost of calls that ended in an ERROR; None without a price.
        attempts: Number of those calls.
    """

    number: int
    outputs: tuple[AnswerOutput | PictureOutput | Missing | str, ...]
    seconds: float | None = None
    failed_usd: float | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """Spending limits of a run for one system, over all its sessions; None for no limit."""

    max_usd: float | None = None
    max_calls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Upper bound on the cost of a plan's calls.

    Attributes:
        calls: Number of calls.
        prompt_tokens: Estimate of the tokens sent.
        completion_tokens: Maximum number of tokens returned.
        usd: Their cost, None without a price.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None = None


class AskingSystem(System):
    """System that answers questions about images.

    Attributes:
        own_limits: Whether it limits the time of every call itself (servers); otherwise it is killed after
            ``batch_seconds`` of silence.
        silent_seconds: With ``own_limits``: longest time without any answer while calls are open. Open calls then
            become ERROR, so that a lost answer is not awaited forever.
        simulated: Whether it is a simulation that represents no product: all its results are marked, and never share a
            table with a real system.
        tells_likely: Whether it can return the log-probabilities of likely tokens.
    """

    tasks: ClassVar[tuple[str, ...]] = ("answer",)
    probed: ClassVar[Need] = Need.NOTHING
    draws_calls: ClassVar[bool] = True
    own_limits: ClassVar[bool] = False
    silent_seconds: float = 3600.0
    simulated: ClassVar[bool] = False
    tells_likely: ClassVar[bool] = False

    @property
    def record_name(self) -> str:
        """Name in records; a simulation's ends with ``-simulated``, so that it shows in every table."""
        name = super().record_name
        return name if not self.simulated or is_simulated(name) else f"{name}{SIMULATED}"

    def keep_in(self, folder: Path, shared: Path, *, budget: BudgetLimits, cache: str) -> None:
        """Set storage folders; called in the worker before :meth:`open`.

        Args:
            folder: The run folder, locked by the run: ledger of questions and payments.
            shared: Folder shared by all runs: answers by content.
            budget: Spending limits.
            cache: ``use``, ``refresh`` or ``off``: whether answers are read from and written to the cache.
        """
        return

    @abstractmethod
    def ask(self, calls: Iterable[Asking | None]) -> Iterator[Asked]:
        """Answer a stream of calls, in any order.

        Args:
            calls: Iterated as fast as the system can use them, from any single thread; None means that no call is
                available yet (work on those received and ask again soon). It ends when the run ends.

        Yields:
            One :class:`Asked` for every call, except those that :meth:`stop` prevented.

        Calls in flight are yielded before any of these errors; calls that were not yielded are not recorded.

        Raises:
            BudgetReached: No further call is allowed.
            ServerClosed: A server asks for a longer pause than a question may last.
            MedtestError: The server stops for another reason that no single question caused (:mod:`medtest.api.stops`).
        """

    def stop(self) -> None:
        """Start no further call, because the user stopped the run; from any thread, possibly before :meth:`ask`.

        Calls in flight finish and are yielded as usual, and :meth:`ask` ends with them. The stream ends too, so a
        system that handles one call after the other need do nothing. Calls received but not started need no answer.
        """
        return

    def quote(self, calls: Iterable[tuple[Asking, int]]) -> Quote | None:
        """Return an upper bound on the calls' cost without sending any; None if nothing is paid or counted.

        Args:
            calls: One example of every kind of call, and the number of calls of that kind.
        """
        return None

    def counters(self) -> str:
        """Return the progress of :meth:`ask` in short form ("in flight 8 · waiting 2 · $0.31"), from any thread."""
        return ""

    def account(self, folder: Path) -> str:
        """Return a final remark on the calls once the run has ended, one line, or an empty string.

        Args:
            folder: The run folder, as in :meth:`keep_in`; no worker uses it any more.
        """
        return ""

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Raise an error: a system of this kind answers questions only.

        Raises:
            MedtestError: Always.
        """
        raise MedtestError(f"{self.record_name} answers questions; it needs seeds that ask some")


def draws_calls(system: System) -> TypeGuard[AskingSystem]:
    """Return True if a system pulls its calls from a stream instead of receiving batches."""
    return type(system).draws_calls

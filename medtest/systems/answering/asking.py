"""What a system is that answers questions about images: many at a time, in any order, each once.

A classifier answers a batch when it is handed one. A model over an API answers hundreds of calls at once, each when it
likes, so here the system draws questions from a stream and yields answers as they come. Which questions are open,
what follows from an answer and what is written of it is the runner's.
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
from medtest.systems.base import RawAnswer, System


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """One call to a system: an image and one question, or all questions of the image together; or a prompt.

    Attributes:
        number: Of the call within this process; the answer names it.
        label: The case's address as it may be shown (ids hashed where the suite wants that), with the question or
            ``together``: what a ledger keeps answers under.
        addresses: Address of every question's case; networks must not look at them, a server's seed comes of
            :meth:`seed`.
        image: uint8 RGB H×W×3, read-only.
        sha256: SHA-256 of the image (:func:`medtest.core.cases.image_sha256`).
        asks: The questions, one for each address.
        together: All in one call.
        seed: Seed of the answer's random numbers, 0 to 2³¹ - 1, from the suite's seed and the case's address: the same
            whenever the case is run again, another for each repeat.
        prompt: Where the case's input is a prompt, that: there is no image then, one address, and no question.
        source_prompt: The seed's own prompt, where the case's input is one; a system that tells sessions apart may say
            that it came before.
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

    @property
    def repeat(self) -> int:
        """Number of the asking of this very input: 0 for sources and follow-ups, 1, 2 … for ``unchanged``."""
        case = self.addresses[0]
        return 0 if case.is_source else case.repeat + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came of a call.

    Attributes:
        number: The call's.
        outputs: One for each question, or for the prompt; a text says why there is none (an ERROR of that case).
        seconds: How long it took; None where the answer was kept from before.
    """

    number: int
    outputs: tuple[AnswerOutput | PictureOutput | str, ...]
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """What a run may spend on one system, over all its sessions; None for no limit."""

    max_usd: float | None = None
    max_calls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What a plan's calls would need at most.

    Attributes:
        calls: Calls.
        prompt_tokens: Estimate of the tokens sent.
        completion_tokens: Most tokens that can come back.
        usd: What they cost, None without a price.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None = None


class AskingSystem(System):
    """A system that answers questions about images.

    Attributes:
        own_limits: It bounds the time of every call itself (servers); else one that is silent for ``batch_seconds``
            is killed.
        silent_seconds: Where it has ``own_limits``: longest time for which nothing may come of any call while some are
            open. Calls that are open then become ERROR: an answer that was dropped must not be waited for without end.
        simulated: It is a simulation that stands for no product: everything made with it says so, and never shares
            a table with a real one.
    """

    tasks: ClassVar[tuple[str, ...]] = ("answer",)
    probed: ClassVar[Need] = Need.NOTHING
    draws_calls: ClassVar[bool] = True
    own_limits: ClassVar[bool] = False
    silent_seconds: float = 3600.0
    simulated: ClassVar[bool] = False

    @property
    def record_name(self) -> str:
        """Name in records; that of a simulation ends with ``-simulated``, so that no table can hide it."""
        name = super().record_name
        return name if not self.simulated or is_simulated(name) else f"{name}{SIMULATED}"

    def keep_in(self, folder: Path, shared: Path, *, budget: BudgetLimits, cache: str) -> None:
        """Say where it may keep things; called in the worker before :meth:`open`.

        Args:
            folder: The run's own folder, locked by the run: a ledger of what was asked and paid.
            shared: A folder that all runs share: answers by content.
            budget: What it may spend.
            cache: ``use``, ``refresh`` or ``off``: whether answers by content are taken and kept.
        """
        return

    @abstractmethod
    def ask(self, calls: Iterable[Asking | None]) -> Iterator[Asked]:
        """Answer a stream of calls, in any order.

        Args:
            calls: Drawn as fast as the system can use them, from any one thread; None means that nothing is there yet
                (what was drawn should be worked on, and the next be asked for soon). It ends when the run ends.

        Yields:
            One :class:`Asked` for every call, those apart that :meth:`stop` keeps from being begun.

        Raises:
            BudgetReached: No further call is allowed; what was under way was yielded before.
            ServerClosed: A server asks for a longer pause than a question may last; the same.
            MedtestError: What it was asked ends for another reason that is no fault of a single question's
                (:mod:`medtest.api.stops`); the same. What was not yielded is not recorded.
        """

    def stop(self) -> None:
        """Begin no further call: the user stopped the run; from any thread, perhaps before :meth:`ask`.

        Calls under way shall end and be yielded as usual, and :meth:`ask` with them. The stream ends too: a system that
        works on one call after the other need do nothing. Calls that were drawn and are not begun need no answer.
        """
        return

    def quote(self, calls: Iterable[tuple[Asking, int]]) -> Quote | None:
        """Return what calls would need, without sending any; None where nothing is paid or counted.

        Args:
            calls: One example of every kind of call, and how many of the kind there are.
        """
        return None

    def counters(self) -> str:
        """Return the progress of :meth:`ask` in a few words ("in flight 8 · waiting 2 · $0.31"), from any thread."""
        return ""

    def account(self, folder: Path) -> str:
        """Return what is to be said of the calls once the run has ended, one line, or an empty string.

        Args:
            folder: The run's own folder, as in :meth:`keep_in`; no worker holds it any more.
        """
        return ""

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Refuse: a system of this kind is asked questions.

        Raises:
            MedtestError: Always.
        """
        raise MedtestError(f"{self.record_name} answers questions; it needs seeds that ask some")


def draws_calls(system: System) -> TypeGuard[AskingSystem]:
    """Say whether a system draws its calls from a stream, and is not handed batches."""
    return type(system).draws_calls

"""What can go wrong, one class per kind of mistake, each with the message a person reads.

Every class derives from :class:`MedtestError`; the command line prints ``str(error)`` and ends with
``error.exit_code``, without a traceback. Anything else that escapes is a defect of medtest itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """How a run ends, as design and README promise it to scripts."""

    OK = 0
    GATE_NOT_HELD = 1
    MISTAKE = 2
    TOO_MANY_ERRORS = 3
    NOT_TRACKED = 4
    BUDGET = 5
    INTERRUPTED = 130


SEVERITY_ORDER: tuple[ExitCode, ...] = (
    ExitCode.INTERRUPTED,
    ExitCode.MISTAKE,
    ExitCode.TOO_MANY_ERRORS,
    ExitCode.BUDGET,
    ExitCode.NOT_TRACKED,
    ExitCode.GATE_NOT_HELD,
    ExitCode.OK,
)
"""Exit codes from the gravest to the mildest: a multirun ends with the first that occurs."""


class MedtestError(Exception):
    """Base of every error whose message is meant for the user."""

    exit_code: ExitCode = ExitCode.MISTAKE


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One thing the user has to mend.

    Attributes:
        where: File or place, relative or as typed ("suites/polyp.yaml", "command line").
        line: Line in that file, from 1; None where there is none.
        key: Dotted key ("relations.blur.severities"), or "" for the whole file.
        found: What stands there now, short.
        allowed: What may stand there.
        nearest: The nearest allowed name, when there is one worth suggesting.
        fix: One sentence that says how to mend it.
        misfit: Whether a system answers otherwise than the suite's seeds ask, or none is named: the suite is for other
            systems.
        needed: What a run needs here and a plan does not, as one types or exports it ("send_images=true"); "" for a
            mistake of both.
    """

    where: str
    line: int | None = None
    key: str = ""
    found: str = ""
    allowed: str = ""
    nearest: str | None = None
    fix: str = ""
    misfit: bool = False
    needed: str = ""

    def __str__(self) -> str:
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        head = f"{place}: {self.key}" if self.key else place
        parts = [head]
        if self.found:
            parts.append(f"  found:   {self.found}")
        if self.nearest:
            parts.append(f"  did you mean: {self.nearest}")
        if self.allowed:
            parts.append(f"  allowed: {self.allowed}")
        if self.fix:
            parts.append(f"  to mend: {self.fix}")
        return "\n".join(parts)

    def as_error(self) -> UserMistakes:
        """Return the error of this mistake alone."""
        return UserMistakes([self])


class UserMistakes(MedtestError):
    """All mistakes of one check at once.

    Args:
        mistakes: What has to be mended; at least one.
        heading: First line of the message; a count is used when it is left out.
    """

    def __init__(self, mistakes: Iterable[Mistake], heading: str = "") -> None:
        self.mistakes: tuple[Mistake, ...] = tuple(mistakes)
        count = len(self.mistakes)
        self.heading = heading or ("1 mistake" if count == 1 else f"{count} mistakes")
        super().__init__(self.heading)

    def __str__(self) -> str:
        return "\n".join([f"{self.heading}:", *(str(m) for m in self.mistakes)])


class MissingSystemLibrary(MedtestError):
    """A library of the operating system that a dependency needs is not installed."""


class FolderInUse(MedtestError):
    """Another process holds the lock of the output folder."""


class OutputProblem(MedtestError):
    """The output folder cannot be written (full disk, read-only, not a folder)."""


class NotTracked(MedtestError):
    """Results are whole on disk but MLflow could not take them."""

    exit_code = ExitCode.NOT_TRACKED


class Interrupted(MedtestError):
    """The user stopped the run; what was finished is kept."""

    exit_code = ExitCode.INTERRUPTED


class NotApplicable(Exception):
    """A relation cannot be applied to this seed; the case becomes SKIP with this reason."""


class BadOutput(Exception):
    """A system gave something that is not an answer (wrong shape, NaN); the case becomes ERROR."""


class OtherClasses(BadOutput):
    """A classifier gave scores of another number of classes than were asked for.

    Attributes:
        count: How many.
    """

    def __init__(self, reason: str, count: int) -> None:
        super().__init__(reason)
        self.count = count


def nearest_name(name: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed name that resembles ``name`` most, or None when none does."""
    found = difflib.get_close_matches(str(name).lower(), list(allowed), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return "; did you mean NAME?" for a sentence about a name that there is not, before it lists what there is.

    Args:
        name: The unknown name.
        allowed: The names that there are, in any case of letters.

    Returns:
        The end of the sentence; a full stop where no name is near.
    """
    by_lower = {known.lower(): known for known in reversed(list(allowed))}
    near = nearest_name(name, by_lower)
    return "." if near is None else f"; did you mean {by_lower[near]}?"

"""Error classes, one per kind of mistake, with messages for the user.

Every class derives from :class:`MedtestError`; the command line prints ``str(error)`` and exits with
``error.exit_code``, without a traceback. Any other exception that escapes is a defect of medtest.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line, documented in the README for use in scripts."""

    OK = 0
    GATE_FAILED = 1
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
    ExitCode.GATE_FAILED,
    ExitCode.OK,
)
"""Exit codes from the most to the least severe: a multirun exits with the first that occurs."""


class MedtestError(Exception):
    """Base class of errors whose message is meant for the user."""

    exit_code: ExitCode = ExitCode.MISTAKE


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """Mistake that the user has to correct.

    Attributes:
        where: File or place, relative or as typed ("suites/polyp.yaml", "command line").
        line: Line in that file, from 1; None if unknown.
        key: Dotted key ("relations.blur.severities"), or "" for the whole file.
        found: The present value, shortened.
        allowed: The allowed values.
        nearest: The nearest allowed name, if one is close enough to suggest.
        fix: One sentence that explains the correction.
        misfit: True if the suite's seeds do not suit the system, or no system is named: the suite is for other systems.
        needed: Setting that a run needs but a plan does not, as typed or exported ("send_images=true"); "" for a
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
            parts.append(f"  fix:     {self.fix}")
        return "\n".join(parts)

    def as_error(self) -> UserMistakes:
        """Return an error that holds only this mistake."""
        return UserMistakes([self])


def typed_mistake(key: str, found: str = "", allowed: str = "", fix: str = "", nearest: str | None = None) -> Mistake:
    """Return a mistake on the command line; see :class:`Mistake`."""
    return Mistake(where="command line", key=key, found=found, allowed=allowed, fix=fix, nearest=nearest)


def typed_error(
    key: str, found: str = "", allowed: str = "", fix: str = "", nearest: str | None = None
) -> UserMistakes:
    """Return the error for one mistake on the command line; see :class:`Mistake`."""
    return typed_mistake(key, found, allowed, fix, nearest=nearest).as_error()


class UserMistakes(MedtestError):
    """All mistakes found by one check.

    Args:
        mistakes: The mistakes; at least one.
        heading: First line of the message; defaults to a count.
    """

    def __init__(self, mistakes: Iterable[Mistake], heading: str = "") -> None:
        self.mistakes: tuple[Mistake, ...] = tuple(mistakes)
        count = len(self.mistakes)
        self.heading = heading or ("1 mistake" if count == 1 else f"{count} mistakes")
        super().__init__(self.heading)

    def __str__(self) -> str:
        return "\n".join([f"{self.heading}:", *(str(m) for m in self.mistakes)])


class MissingSystemLibrary(MedtestError):
    """Raised if a system library required by a dependency is not installed."""


class FolderInUse(MedtestError):
    """Raised if another process holds the lock of the output folder."""


class OutputProblem(MedtestError):
    """Raised if the output folder is not writable (full disk, read-only, not a folder)."""


class NotTracked(MedtestError):
    """Raised if the results are complete on disk, but MLflow could not record them."""

    exit_code = ExitCode.NOT_TRACKED


class Interrupted(MedtestError):
    """Raised if the user stopped the run; finished cases are kept."""

    exit_code = ExitCode.INTERRUPTED


class NotApplicable(Exception):
    """Raised if a relation is not applicable to this seed; the case becomes SKIP with this reason."""


class LesionInvisible(NotApplicable):
    """Raised by a relation if no setting of a severity leaves the lesion visible."""

    def __init__(self, reason: str = "at this strength the lesion would be invisible") -> None:
        super().__init__(reason)


class TargetUnreachable(NotApplicable):
    """Raised by a calibrated relation if no value of its parameter meets a target of similarity on this seed."""


class BadOutput(Exception):
    """Raised for an invalid answer of a system (wrong shape, NaN); the case becomes ERROR."""


class OtherClasses(BadOutput):
    """Raised if a classifier returns scores for a different number of classes than requested.

    Attributes:
        count: The number returned.
    """

    def __init__(self, reason: str, count: int) -> None:
        super().__init__(reason)
        self.count = count


def nearest_name(name: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed name closest to ``name``, or None if none is close."""
    matches = difflib.get_close_matches(str(name).lower(), list(allowed), n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return "; did you mean NAME?" to end a sentence about an unknown name, before the list of known names.

    Args:
        name: The unknown name.
        allowed: The existing names, in any letter case.

    Returns:
        The end of the sentence; a full stop if no name is close.
    """
    by_lower = {candidate.lower(): candidate for candidate in reversed(list(allowed))}
    nearest = nearest_name(name, by_lower)
    return "." if nearest is None else f"; did you mean {by_lower[nearest]}?"

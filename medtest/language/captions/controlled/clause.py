"""State of reading a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Clause:
    """State of reading a sentence; groups are indices of entities.

    Attributes:
        main: Subject of the sentence.
        cur: Subject of the last verb; None before any verb.
        last: Entities named last.
        last_role: Predicate under which they were named, "" for a subject.
        last_subjects: Subjects of that predicate.
        pending: Predicate that waits for its object, with its subjects.
        joined: True directly after "and" or a comma.
        relative: Antecedent of "that" or "who".
        connected: True directly after "while" or "as".
        drops: True if the next noun is not visible ("without a hat").
        silent: True if the picture itself was the subject ("photo showing").
    """

    main: list[int] = field(default_factory=list)
    cur: list[int] | None = None
    last: list[int] = field(default_factory=list)
    last_role: str = ""
    last_subjects: list[int] = field(default_factory=list)
    pending: tuple[str, list[int]] | None = None
    joined: bool = False
    relative: list[int] | None = None
    connected: bool = False
    drops: bool = False
    silent: bool = False

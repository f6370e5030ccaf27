"""Where the reading of a sentence stands."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Clause:
    """Where the reading of a sentence stands; groups are indices of entities.

    Attributes:
        main: The subject of the sentence.
        cur: The subject of the verb that was read last; None before any verb.
        last: The things named last.
        last_role: The predicate under which they were named, "" for a subject.
        last_subjects: Whose object they are.
        pending: A predicate that waits for its object, with its subjects.
        joined: Whether "and" or a comma has just been read.
        relative: The subject that "that" or "who" stands for.
        connected: Whether "while" or "as" has just been read.
        drops: Whether the next thing is not seen ("without a hat").
        silent: Whether the picture itself was the subject ("photo showing").
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

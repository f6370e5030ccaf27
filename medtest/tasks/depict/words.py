"""Texts next to two pictures: the prompts, their change, and the errors of the picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from medtest.core.records import text_in
from medtest.core.scenes import NamedTriple
from medtest.tasks.depict.oracle import WHY
from medtest.tasks.depict.rules import PAPER, RELEASED, STRICT, Broken, against_source, against_truth
from medtest.tasks.depict.views import PoolChange, SceneLook, change_of, look_of, said_of

COLUMNS: tuple[str, ...] = (
    *("prompt", "pool", "effect", "picture", "answer_state", "answer_why", "revised_prompt", "scene", "tells"),
    *("source_picture", "source_scene", "source_tells", "source_state", "why"),
)
"""Text columns of the oracle of scenes from which texts and panels are built."""

Words = tuple[tuple[str, str], ...]
"""Headings and texts, in order."""
_MOST = 3


def words_of(record: Mapping[str, Any], source: Mapping[str, Any] | None) -> Words:
    """Return the texts of a follow-up's case.

    Args:
        record: Record of the follow-up, with :data:`COLUMNS`.
        source: Record of the source; None if unknown.
    """
    pairs = [("source", text_in(source or {}, "prompt")), ("follow-up", text_in(record, "prompt"))]
    pairs.append(("change", change_words(change_of(text_in(record, "effect")))))
    state = text_in(record, "answer_state")
    if state and state != "answered":
        pairs.append(("no picture", f"{state.replace('_', ' ')}: {text_in(record, 'answer_why')}".rstrip(": ")))
    for heading, broken in broken_of(record):
        pairs.append((heading, broken_words(broken)))
    if text_in(record, "revised_prompt"):
        pairs.append(("drawn instead, as the service says", text_in(record, "revised_prompt")))
    if why := text_in(record, "why"):
        pairs.append(("not judged", WHY[why]))
    return tuple((name, text) for name, text in pairs if text)


def broken_of(record: Mapping[str, Any]) -> list[tuple[str, tuple[Broken, ...]]]:
    """Return the errors of a follow-up's picture, against the source's and against its own prompt."""
    scene = look_in(record, "")
    if scene is None or not record.get("pool"):
        return []
    source_scene = look_in(record, "source_")
    pool, change = said_of(str(record["pool"])), change_of(text_in(record, "effect"))
    errors = []
    if source_scene is not None:
        for rule in (STRICT, PAPER, RELEASED):
            broken = against_source(rule, source_scene, scene, pool, change).broken
            if broken:
                errors.append((f"against the source ({rule})", broken))
                break
    broken = against_truth(scene, pool, change).broken
    return [*errors, *([("against its own prompt", broken)] if broken else [])]


def look_in(record: Mapping[str, Any], prefix: str) -> SceneLook | None:
    """Return the scene of a record's picture (or its source's), or None."""
    scene = record.get(f"{prefix}scene")
    return look_of(str(scene), str(record.get(f"{prefix}tells") or "")) if scene else None


def broken_words(broken: Iterable[Broken]) -> str:
    """Return the errors as one line, one of each kind first; relations are written as triples in brackets."""
    errors = list(broken)
    first = {error.kind: error for error in reversed(errors)}
    order = [
        *(error for error in errors if first[error.kind] is error),
        *(error for error in errors if first[error.kind] is not error),
    ]
    parts = [f"{named(error.names)} {error.words}" for error in order[:_MOST]]
    suffix = [f"and {len(errors) - _MOST} more"] if len(errors) > _MOST else []
    return "; ".join([*parts, *suffix])


def named(parts: tuple[str, ...]) -> str:
    """Return a class, a class with an attribute, or a triple as text."""
    return f"({', '.join(parts)})" if len(parts) == 3 else " ".join(parts)


def change_words(change: PoolChange) -> str:
    """Return the change of a prompt's pool as one line."""
    pairs, gone, new = change.pairs
    removed, added = change.removed.copy(), change.added.copy()
    parts = []
    for was, is_ in dict.fromkeys(
        (a, b) for first, second in pairs for a, b in zip(first, second, strict=True) if a != b
    ):
        parts.append(f"{_listed(_only(removed, was))} becomes {_listed(_only(added, is_))}")
        del removed[was], added[is_]
    if not pairs and removed and added:
        parts.append(f"{_listed(removed)} becomes {_listed(added)}")
    else:
        parts += [f"{sign} {_listed(names)}" for sign, names in (("-", removed), ("+", added)) if names]
    parts += [f"- {_triples(gone)}"] if gone else []
    parts += [f"+ {_triples(new)}"] if new else []
    changed = [", ".join(f"{value} {name}" for name, value in sorted(side)) for side in (change.lost, change.gained)]
    if all(changed):
        parts.append(f"{changed[0]} becomes {changed[1]}")
    else:
        parts += [f"{sign} {words}" for sign, words in zip("-+", changed, strict=True) if words]
    return "; ".join(parts)


def _only(names: Counter[str], name: str) -> Counter[str]:
    return Counter({name: names[name] or 1})


def _listed(names: Counter[str]) -> str:
    return ", ".join(name if count == 1 else f"{name} ({count})" for name, count in sorted(names.items()))


def _triples(triples: Counter[NamedTriple]) -> str:
    return ", ".join(named(triple) for triple in sorted(triples))

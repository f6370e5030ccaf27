"""``only=relation:blur,severity:3``: the part of the plan that a call executes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from medtest.core.cases import UNCHANGED, SeedRef
from medtest.core.errors import Mistake, UserMistakes, nearest_name, typed_error, typed_mistake
from medtest.suite.model import Selection
from medtest.suite.reading.safety import short

_ONLY: Mapping[str, str] = {
    "relation": "relations",
    "severity": "severities",
    "dataset": "datasets",
    "seed": "seeds",
    "question": "questions",
}
_HIGHEST = 5


def selection_of(only: Any, values: Mapping[str, Any], mistakes: list[Mistake]) -> Selection:
    """Return the part chosen by ``only=``.

    Args:
        only: The option as given.
        values: The composed suite with its relations.
        mistakes: List to which mistakes are added.
    """
    if not isinstance(only, (str, list)):
        return Selection()
    items = [str(item) for item in only] if isinstance(only, list) else only.split(",")
    block = values.get("relations")
    ids = [UNCHANGED, *(name for name, item in block.items() if item is not False)] if isinstance(block, dict) else []
    sets = [str(name) for name in values["seeds"]] if isinstance(values.get("seeds"), dict) else []
    choices: dict[str, set[Any]] = {name: set() for name in _ONLY.values()}
    for item in items:
        word, colon, value = item.strip().partition(":")
        word, value = word.strip(), value.strip()
        if word not in _ONLY or not colon or not value:
            suggestion = _interpret(item.strip(), ids, sets)
            mistakes.append(
                typed_mistake(
                    "only",
                    short(item),
                    "relation:ID, severity:N, dataset:ID, seed:ID, question:ID, separated by commas",
                    "" if suggestion else f"to choose an image: seed:{short(item, 40)}",
                    nearest=suggestion,
                )
            )
        elif word == "severity":
            if value.isdecimal() and int(value) <= _HIGHEST:
                choices["severities"].add(int(value))
            else:
                mistakes.append(typed_mistake("only", short(item), "severity:0 to severity:5"))
        else:
            choices[_ONLY[word]].add(value)
    for name in sorted(choices["relations"] - set(ids)):
        mistakes.append(typed_mistake("only", f"relation:{name}", ", ".join(ids), nearest=nearest_name(name, ids)))
    return Selection(**{name: frozenset(chosen) for name, chosen in choices.items()})


def _interpret(item: str, relations: Sequence[str], datasets: Sequence[str]) -> str | None:
    """Return the interpretation of an item without a kind, or with a misspelled one: ``blur`` is ``relation:blur``."""
    for name, names in (("relation", relations), ("dataset", datasets)):
        if item in names:
            return f"{name}:{item}"
    if item.isdecimal():
        return f"severity:{item}" if int(item) <= _HIGHEST else None
    parsed = re.fullmatch(r"([A-Za-z]+)(?:\s*[:= ]\s*(.+)|(\d))", item)
    kind = nearest_name(parsed[1], _ONLY) if parsed else None
    if parsed is not None and kind is not None:
        return f"{kind}:{parsed[2] or parsed[3]}"
    nearest = nearest_name(item, relations)
    return None if nearest is None else f"relation:{nearest}"


def check_selection(
    only: Selection, refs: Iterable[SeedRef], shown: Callable[[SeedRef], str] = lambda ref: ref.seed_id
) -> None:
    """Check the data sets, seeds and questions of ``only=``, which are known once they are listed.

    Args:
        only: The selection, seeds by their plain ids.
        refs: All seeds.
        shown: Returns the displayed id of a seed.

    Raises:
        UserMistakes: There is no such data set, seed or question.
    """
    if not (only.datasets or only.seeds or only.questions):
        return
    listed = list(refs)
    existing = {
        "dataset": {ref.dataset: ref.dataset for ref in listed},
        "seed": {ref.seed_id: shown(ref) for ref in listed},
        "question": {item: item for ref in listed for item in ref.items if item},
    }
    requested = {"dataset": only.datasets, "seed": only.seeds, "question": only.questions}
    mistakes = [
        typed_mistake(
            "only",
            short(f"{kind}:{name}"),
            short(", ".join(existing[kind].values()), 400) or f"nothing: these seeds have no {kind}s",
            nearest=nearest_name(name, existing[kind].values()),
        )
        for kind, names in requested.items()
        for name in sorted(names - set(existing[kind]))
    ]
    if mistakes:
        raise UserMistakes(mistakes)


def nothing_chosen(only: Selection) -> UserMistakes:
    """Return the mistake for a selection that leaves no case."""
    items = [
        *(f"relation:{name}" for name in sorted(only.relations)),
        *(f"severity:{level}" for level in sorted(only.severities)),
        *(f"dataset:{name}" for name in sorted(only.datasets)),
        *(f"seed:{name}" for name in sorted(only.seeds)),
        *(f"question:{name}" for name in sorted(only.questions)),
    ]
    fix = "plan=true without only= shows relations and severities; relations in published mode have severity 0"
    return typed_error("only", ", ".join(items) or "nothing", "a selection with at least one case", fix)

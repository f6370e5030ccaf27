"""GenEval's prompts: its ``evaluation_metadata.jsonl``, whose metadata are the pool (D. Ghosh et al., NeurIPS 2023).

One object a line: ``{"tag", "include": [{"class", "count", "color"?, "position"?: [relation, index]}], "exclude"?,
"prompt"}``. ``exclude`` gives the count that is too many, which exact counts imply, so the pool ignores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, ClassVar, Literal

from medtest.core.plugins import PartSettings
from medtest.core.scenes import Entity, Pool, pool_of
from medtest.language.captions.vocabulary import Vocabulary, vg150
from medtest.language.questions.question_files import short
from medtest.seeds.captions.base import Candidate, Prompts
from medtest.seeds.captions.files import LONGEST_CAPTION, MOST_CAPTIONS, CaptionRow, json_of, stop, text_of
from medtest.seeds.captions.source import FiledPrompts, FiledSettings
from medtest.seeds.folders.layout import shown

TAG = "tag"
MOST_INCLUDED = 20
MOST_COUNT = 100
LONGEST_CLASS = 60
_ALLOWED = "GenEval's evaluation_metadata.jsonl: one object a line with tag, include and prompt"


class GenEvalSettings(FiledSettings):
    """Settings of GenEval; prompts keep their own words by default, as GenEval's published figures do.

    Attributes:
        words: ``own`` or ``template``.
    """

    words: Literal["template", "own"] = "own"


class GenEval(FiledPrompts):
    """GenEval's prompts with their metadata; the tag is a stratum, each prompt its own cluster."""

    Settings: ClassVar[type[PartSettings]] = GenEvalSettings
    holds: ClassVar[str] = "GenEval's evaluation_metadata.jsonl"
    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".json")

    settings: GenEvalSettings

    def _look(self, listing: Prompts) -> None:
        path = self._file()
        where = shown(PurePosixPath(path.name))
        content = json_of(text_of(path, where), where)
        rows = content if isinstance(content, list) else [content]
        if len(rows) > MOST_CAPTIONS:
            raise stop(where, f"{len(rows):,} prompts", f"at most {MOST_CAPTIONS:,}")
        bad: list[CaptionRow] = []
        for number, row in enumerate(rows, 1):
            try:
                listing.candidates.append(_candidate(row, number - 1))
            except ValueError as error:
                bad.append(CaptionRow(place=f"line {number}", wrong=str(error)))
                self._keep_place(f"{number - 1:05d}", bad[-1], where, listing)
        if len(bad) == len(rows):
            raise stop(where, bad[0].wrong if bad else "no prompt", _ALLOWED)


def _candidate(row: Any, index: int) -> Candidate:
    if not isinstance(row, Mapping):
        raise ValueError(f"{short(row)} where an object is expected")
    text, tag, include = row.get("prompt"), row.get("tag"), row.get("include")
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST_CAPTION:
        raise ValueError(f"prompt is {short(text)}")
    if not isinstance(tag, str) or not tag or len(tag) > LONGEST_CLASS:
        raise ValueError(f"tag is {short(tag)}")
    if not isinstance(include, list) or not 1 <= len(include) <= MOST_INCLUDED:
        raise ValueError(f"include is {short(include)}; a list of 1 to {MOST_INCLUDED} is expected")
    return Candidate(
        seed_id=f"{index:05d}", text=" ".join(text.split()), pool=pool_of_metadata(include), strata=((TAG, tag),)
    )


def pool_of_metadata(include: list[Any]) -> Pool:
    """Return the pool of a prompt's metadata.

    Args:
        include: The metadata's ``include``; ``position`` is a relation to an entry given by its index.

    Returns:
        The pool with medtest's class names, ``below`` as ``under``; the first of two related classes is the subject.

    Raises:
        ValueError: An entry is invalid; the message gives the reason.
    """
    vocabulary = vg150()
    entities = [_entity(entry, vocabulary) for entry in include]
    triples: list[tuple[int, str, int]] = []
    for at, entry in enumerate(include):
        position = entry.get("position")
        if position is None:
            continue
        predicate, other = _position(position, vocabulary)
        if predicate is None or other not in range(len(include)) or other == at:
            raise ValueError(f"position is {short(position)}; [relation, index of another class] is expected")
        triples.append((at, predicate, other))
    order = list(
        dict.fromkeys([end for triple in triples for end in (triple[0], triple[2])] + list(range(len(entities))))
    )
    place = {old: new for new, old in enumerate(order)}
    return pool_of([entities[at] for at in order], [(place[a], predicate, place[b]) for a, predicate, b in triples])


def _position(position: Any, vocabulary: Vocabulary) -> tuple[str | None, int]:
    """Return the relation and index of a position; None and -1 if it is invalid."""
    relation, other = position if isinstance(position, list) and len(position) == 2 else (None, None)
    index = other if isinstance(other, int) and not isinstance(other, bool) else -1
    return vocabulary.predicate_of(relation) if isinstance(relation, str) else None, index


def _entity(entry: Any, vocabulary: Vocabulary) -> Entity:
    if not isinstance(entry, Mapping):
        raise ValueError(f"include holds {short(entry)} where an object is expected")
    name, count, colour = entry.get("class"), entry.get("count"), entry.get("color")
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_CLASS:
        raise ValueError(f"class is {short(name)}")
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_COUNT:
        raise ValueError(f"count of {name!r} is {short(count)}; 1 to {MOST_COUNT} is expected")
    if colour is not None and (not isinstance(colour, str) or not colour.strip() or len(colour) > LONGEST_CLASS):
        raise ValueError(f"color of {name!r} is {short(colour)}")
    plain = " ".join(name.lower().split())
    return Entity(
        name=vocabulary.class_of(plain) or plain,
        count=count,
        attributes=() if colour is None else (colour.strip().lower(),),
    )

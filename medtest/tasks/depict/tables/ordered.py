"""Ordered findings beside seen ones, picture by picture, for the report of orders of medical pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from medtest.core.scenes import SIDES
from medtest.results.records.records_io import Records
from medtest.tasks.depict.oracle import ANSWERED
from medtest.tasks.depict.tables.cases import MODALITY
from medtest.tasks.depict.tables.findings import sides_of
from medtest.tasks.depict.views import Said, SceneLook, look_of, said_of, shown_with

AS_ORDERED, MISSED, DRAWN, WRONG_SIDE = "as ordered", "missed", "drawn though negated", "wrong side"
OTHERWISE, UNTOLD, OPEN = "not as ordered", "cannot tell", "open"
WRONG: Final = (MISSED, DRAWN, WRONG_SIDE, OTHERWISE)
"""Verdicts on a finding that differs from its order, worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedPicture:
    """One picture of an order.

    Attributes:
        address: Address of its case.
        relation: Relation of its case.
        prompt: Words that were sent; "" if they are not kept.
        picture: SHA-256 of its pixels.
        findings: For each finding that its prompt orders, excludes or calls uncertain: the order, such as "left
            effusion" or "no edema"; what the reader sees; and the verdict, one of :data:`AS_ORDERED`, :data:`WRONG`,
            :data:`UNTOLD`, or :data:`OPEN` for an uncertain finding.
        unasked: Findings that are seen and that the prompt does not name.
    """

    address: str
    relation: str
    prompt: str
    picture: str
    findings: tuple[tuple[str, str, str], ...]
    unasked: tuple[str, ...]

    @property
    def wrong(self) -> int:
        """Number of findings that differ from their order."""
        return sum(verdict in WRONG for _, _, verdict in self.findings)


def ordered_pictures(records: Records, most: int) -> list[OrderedPicture]:
    """Return pictures of orders, those with most differences first, then in the order of the records.

    Args:
        records: Records of one system.
        most: Largest number of pictures.
    """
    pictures: list[OrderedPicture] = []
    for frame in (records.sources, records.followups):
        if MODALITY in frame.columns and "scene" in frame.columns:
            drawn = frame[(frame["answer_state"] == ANSWERED) & frame[MODALITY].notna() & frame["scene"].notna()]
            pictures += [_picture(record) for record in drawn.to_dict("records") if record["scene"]]
    pictures.sort(key=lambda picture: -picture.wrong)
    return pictures[:most]


def _picture(record: Mapping[Any, Any]) -> OrderedPicture:
    prompt, look = said_of(str(record["pool"])), look_of(str(record["scene"]), str(record.get("tells") or ""))
    named = {*prompt.names, *prompt.absent, *prompt.uncertain}
    return OrderedPicture(
        address=str(record.get("address") or ""),
        relation=str(record["relation"]),
        prompt=str(record.get("prompt") or ""),
        picture=str(record.get("picture") or ""),
        findings=tuple(_findings(prompt, look)),
        unasked=tuple(sorted(_seen(look, name) for name in look.names if name not in named)),
    )


def _findings(prompt: Said, look: SceneLook) -> Iterator[tuple[str, str, str]]:
    for name in prompt.names:
        attributes = [attribute for finding, attribute in prompt.attributes if finding == name]
        number = prompt.names[name] if name in prompt.stated and prompt.names[name] > 1 else None
        is_detectable = look.tells.names(name)
        verdict = _verdict(name, attributes, prompt, look) if is_detectable else UNTOLD
        yield _words(name, attributes, number), _seen(look, name), verdict
    for name in sorted(prompt.absent):
        verdict = UNTOLD if not look.tells.names(name) else DRAWN if look.names[name] else AS_ORDERED
        yield f"no {_words(name)}", _seen(look, name), verdict
    for name in sorted(prompt.uncertain):
        yield f"possibly {_words(name)}", _seen(look, name), OPEN


def _verdict(name: str, attributes: Iterable[str], prompt: Said, look: SceneLook) -> str:
    """Return the verdict on an ordered finding whose presence the reader can tell."""
    if not look.names[name]:
        return MISSED
    detectable = [attribute for attribute in attributes if look.tells.describes(attribute, name)]
    lacking = [attribute for attribute in detectable if not shown_with(look, prompt, name, attribute)]
    sides = sides_of(look, name)
    if sides and any(attribute in SIDES[:2] and {attribute} == set(SIDES[:2]) - sides for attribute in lacking):
        return WRONG_SIDE
    other_number = look.tells.counts and name in prompt.stated and look.names[name] != prompt.names[name]
    return OTHERWISE if lacking or other_number else AS_ORDERED


def _seen(look: SceneLook, name: str) -> str:
    if not look.tells.names(name):
        return UNTOLD
    count = look.names[name]
    attributes = sorted(attribute for finding, attribute in look.attributes if finding == name)
    return _words(name, attributes, count if count > 1 else None) if count else "not seen"


def _words(name: str, attributes: Iterable[str] = (), number: int | None = None) -> str:
    parts = (*(() if number is None else (str(number),)), *attributes, name.replace("_", " "))
    return " ".join(parts)

"""Writing of orders in the controlled English."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from medtest.language.captions import inflection
from medtest.language.orders.order import Order, OrderedFinding
from medtest.language.orders.vocabulary import FindingWords, vocabulary

_SIDE_LAST = {"left": "on the left", "right": "on the right", "bilateral": "on both sides", "midline": "in the midline"}


@dataclass(frozen=True, kw_only=True)
class Wording:
    """Choice among equivalent words.

    Attributes:
        modality: Index of the phrase for the kind of picture; counts around.
        nouns: Noun by finding; the canonical one otherwise.
        unit: Unit of sizes, ``mm`` or ``cm``.
        side_last: Whether sides follow the noun ("on the left") instead of preceding it.
        telegraphic: Whether findings follow a colon without articles and "showing".
    """

    modality: int = 0
    nouns: Mapping[str, str] = field(default_factory=dict)
    unit: str = "mm"
    side_last: bool = False
    telegraphic: bool = False


def write_order(order: Order, wording: Wording = Wording()) -> str:
    """Write an order without contradictions as one sentence that reads back as the same order.

    Ordered findings come first, then uncertain and negated ones, each in the order's sequence; an order whose findings
    are in that sequence reads back unchanged.
    """
    modality = vocabulary().modalities[order.modality]
    phrases = modality.phrases(order.region)
    head = phrases[wording.modality % len(phrases)]
    before = [vocabulary().styles[order.style][0]] if order.style else []
    before += ["normal"] if order.normal else []
    head = " ".join([*before, head])
    patient = patient_words(order)
    head += f" of {patient}" if patient else ""
    head += f", {modality.scanners[order.scanner][0]}" if order.scanner else ""
    ordered, others = (
        [finding for finding in order.findings if (finding.presence == "ordered") == is_ordered]
        for is_ordered in (True, False)
    )
    others.sort(key=lambda finding: finding.presence == "negated")
    clauses = [_listed([finding_words(finding, wording) for finding in ordered])] if ordered else []
    clauses += [finding_words(finding, wording) for finding in others]
    if not clauses:
        return f"{head[:1].upper()}{head[1:]}."
    begin = ": " if wording.telegraphic else ", showing " if order.scanner else " showing "
    return f"{head[:1].upper()}{head[1:]}{begin}{'; '.join(clauses)}."


def patient_words(order: Order) -> str:
    """Return the words for age and sex: "a 64-year-old woman", "a man"; "" without either."""
    sex = vocabulary().sexes[order.sex][0] if order.sex else ""
    if order.age is None:
        return f"a {sex}" if sex else ""
    article = "an" if str(order.age).startswith("8") or order.age in (11, 18) else "a"
    return f"{article} {order.age}-year-old {sex or 'patient'}"


def finding_words(finding: OrderedFinding, wording: Wording = Wording()) -> str:
    """Return the words of one finding: "two red left lung nodules of 8 mm", "no pneumothorax", "possible pneumonia"."""
    words = vocabulary().findings[finding.name]
    noun = wording.nouns.get(finding.name, words.words[0])
    plural = words.counted and finding.presence != "negated" and finding.count != 1
    adjectives = [finding.colour, "" if wording.side_last else finding.side or ""]
    phrase = " ".join([*(word for word in adjectives if word), words.plural(noun) if plural else noun])
    if finding.size_mm is not None:
        phrase += f" of {size_words(finding.size_mm, wording.unit)}"
    phrase += f" Paris {finding.paris}" if finding.paris else ""
    phrase += f" {_SIDE_LAST[finding.side]}" if finding.side and wording.side_last else ""
    return f"{_lead(finding, words, phrase, wording)}{phrase}"


def size_words(millimetres: float, unit: str) -> str:
    """Return a size in millimetres or centimetres."""
    return f"{millimetres / 10:g} cm" if unit == "cm" else f"{millimetres:g} mm"


def _lead(finding: OrderedFinding, words: FindingWords, phrase: str, wording: Wording) -> str:
    """Return negation, doubt, number or article with a blank; "" for none."""
    count = finding.count if words.counted else None
    number = ""
    if count is not None and count > 1:
        number = vocabulary().numbers[count] if count < len(vocabulary().numbers) else str(count)
    if finding.presence == "negated":
        return "no "
    if finding.presence == "uncertain":
        return f"possible {number} " if number else "possible "
    if number:
        return f"{number} "
    has_article = not words.mass and not (words.counted and count is None) and not wording.telegraphic
    return f"{inflection.article(phrase)} " if has_article else ""


def _listed(phrases: Sequence[str]) -> str:
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"

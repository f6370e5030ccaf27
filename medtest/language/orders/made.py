"""Made orders, by number: what simulated services can draw, in varied wordings.

Three in four orders are plain: one or two findings, often with a third one negated. The others are cases of their own:
an uncertain finding, "normal", or statements that contradict each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from medtest.core.portable import key_generator
from medtest.language.orders.order import Order, OrderedFinding
from medtest.language.orders.vocabulary import FindingWords, vocabulary
from medtest.language.orders.writing import Wording, finding_words, write_order
from medtest.phantoms.questions.plan import pick

MODALITIES: tuple[str, ...] = tuple(vocabulary().modalities)
_ENDOSCOPIC = vocabulary().modalities["endoscopy"].findings.values()
_TOOLS = tuple(words.name for words in _ENDOSCOPIC if words.tool)
_REGIONS = ("colon", "colon", "colon", "colon", "stomach", "pylorus", "oesophagus")
_SIZES = (4.0, 8.0)
_MOST = 3
_CASES = (("plain", 0.76), ("uncertain", 0.1), ("normal", 0.08), ("contradictory", 0.06))
_SIDED = ("one", "pair")


def make(index: int, suite_seed: int, *, modalities: Sequence[str] = MODALITIES, special: bool = True) -> str:
    """Return the text of an order by its number, independent of how many are made.

    Args:
        index: Its number.
        suite_seed: The suite's seed.
        modalities: Kinds of pictures, in turn.
        special: Whether some orders are uncertain, normal or contradictory; False makes plain ones alone.
    """
    rng = key_generator([int(suite_seed), "orders", int(index)])
    modality = modalities[index % len(modalities)]
    chance = float(rng.random())
    order = _order(rng, modality)
    order = replace(
        order,
        age=int(rng.integers(25, 90)) if rng.random() < 0.3 else None,
        sex=("female", "male")[int(rng.integers(2))] if rng.random() < 0.4 else "",
        scanner=pick(rng, sorted(vocabulary().modalities[modality].scanners)) if rng.random() < 0.2 else "",
    )
    wording = _wording(rng, order)
    case = _case(chance) if special else "plain"
    if case == "uncertain":
        first, *others = order.findings
        order = replace(order, findings=(*others, replace(first, presence="uncertain")))
        order = _in_sequence(order)
    if case == "normal":
        order = replace(order, findings=(), normal=True)
    text = write_order(order, wording)
    if case == "contradictory":
        text = _contradicted(text, order.findings[0], wording)
    return text


def _case(chance: float) -> str:
    for name, share in _CASES:
        if chance < share:
            return name
        chance -= share
    return "plain"


def _order(rng: np.random.Generator, modality: str) -> Order:
    """Return an order of one or two findings that may be in one picture, often with another one negated."""
    words = vocabulary().modalities[modality]
    region = ""
    if modality == "endoscopy":
        region = pick(rng, _REGIONS)
        names = _endoscopic(rng, region)
        others = [name for name in ("polyp", *_diseases(region), *_TOOLS) if name not in names]
    else:
        size = 1 if modality == "capsule" else int(rng.integers(1, 3))
        sided = [name for name in sorted(words.findings) if words.findings[name].sides in _SIDED]
        names = [str(name) for name in rng.choice(sorted(words.findings), size=size, replace=False)]
        if sided and rng.random() < 0.6:
            names = list(dict.fromkeys((pick(rng, sided), *names)))[:size]
        others = [name for name in sorted(words.findings) if name not in names]
    findings = [_ordered(rng, words.findings[name]) for name in names]
    if rng.random() < 0.5:
        findings.append(OrderedFinding(name=pick(rng, others), presence="negated"))
    return Order(modality=modality, region=region, findings=tuple(findings))


def _endoscopic(rng: np.random.Generator, region: str) -> list[str]:
    chance = float(rng.random())
    diseases = _diseases(region)
    main = pick(rng, diseases) if diseases and (region == "oesophagus" or chance < 0.15) else "polyp"
    return [main, pick(rng, _TOOLS)] if rng.random() < 0.3 else [main]


def _diseases(region: str) -> tuple[str, ...]:
    """Return the diseases of a region; they are not drawn beside polyps."""
    return tuple(words.name for words in _ENDOSCOPIC if words.name != "polyp" and region in words.regions)


def _ordered(rng: np.random.Generator, words: FindingWords) -> OrderedFinding:
    """Return an ordered finding; sizes are stated for single ones alone, because several large ones have no room."""
    several = int(rng.integers(2, _MOST + 1)) if rng.random() < 0.35 else 1
    count = several if words.counted else None
    sides = ("left", "right", "bilateral") if words.sides == "pair" else ("left", "right")
    return OrderedFinding(
        name=words.name,
        side=sides[int(rng.integers(len(sides)))] if words.sides in _SIDED and rng.random() < 0.85 else None,  # type: ignore[arg-type]
        count=count,
        size_mm=_SIZES[int(rng.integers(2))] if words.typed and count == 1 else None,
        paris=pick(rng, tuple(vocabulary().paris)) if words.typed and rng.random() < 0.5 else "",
        colour=pick(rng, vocabulary().lists["colours"]) if words.coloured and rng.random() < 0.7 else "",
    )


def _wording(rng: np.random.Generator, order: Order) -> Wording:
    nouns = {
        finding.name: pick(rng, vocabulary().findings[finding.name].nouns)
        for finding in order.findings
        if rng.random() < 0.4
    }
    return Wording(
        modality=int(rng.integers(6)) if rng.random() < 0.5 else 0,
        nouns=nouns,
        unit="cm" if rng.random() < 0.2 else "mm",
        side_last=bool(rng.random() < 0.3),
        telegraphic=bool(rng.random() < 0.3),
    )


def _in_sequence(order: Order) -> Order:
    """Return the order with its findings in the sequence in which they are written."""
    place = {"ordered": 0, "uncertain": 1, "negated": 2}
    return replace(order, findings=tuple(sorted(order.findings, key=lambda finding: place[finding.presence])))


def _contradicted(text: str, finding: OrderedFinding, wording: Wording) -> str:
    """Return a text that says of a finding what it cannot have: two Paris types, two sides, or to be absent as well."""
    phrase = finding_words(finding, wording)
    sides = vocabulary().findings[finding.name].sides
    if finding.name == "polyp":
        return text.replace(phrase, f"{phrase}, {'flat' if finding.paris == 'Ip' else 'pedunculated, flat'}", 1)
    if sides in ("one", "pair", "midline", "both"):
        return text.replace(phrase, f"{phrase} on the {'right' if finding.side == 'left' else 'left'}", 1)
    return f"{text[:-1]}; no {vocabulary().findings[finding.name].words[0]}."

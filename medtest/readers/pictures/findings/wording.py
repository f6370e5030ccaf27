"""Words of questions about the findings of orders."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from medtest.core.scenes import SIDES
from medtest.language.captions.inflection import article
from medtest.language.orders import vocabulary
from medtest.language.orders.contents import PARIS, SIZES

_ONE_SIDE: Final = SIDES[:2]
_PLURALS: Final = frozenset({"hemorrhoids", "biopsy forceps"})
_LIKE: Final = {
    "left": "on the patient's left side",
    "right": "on the patient's right side",
    "bilateral": "on both sides of the patient",
    "<5mm": "smaller than 5 mm",
    "5-10mm": "from 5 to 10 mm large",
    "11-20mm": "from 11 to 20 mm large",
    ">20mm": "larger than 20 mm",
}


def noun_of(name: str) -> str:
    """Return the noun of a class in questions: an order's finding in full ("pleural effusion"), others unchanged."""
    finding = vocabulary().findings.get(name)
    return name if finding is None else finding.words[0]


def plurals_of(name: str) -> str | None:
    """Return the plural noun of a finding; None for a class that is none."""
    finding = vocabulary().findings.get(name)
    return None if finding is None else finding.plural(finding.words[0])


def any_of(name: str) -> str | None:
    """Return the noun of a finding with its article or "any"; None for a class that is none."""
    finding = vocabulary().findings.get(name)
    if finding is None:
        return None
    noun = finding.words[0]
    return f"any {noun}" if finding.mass else f"{article(noun)} {noun}"


def is_plural(name: str) -> bool:
    """Return True for a finding whose noun is a plural."""
    return name in _PLURALS


def counted(name: str) -> bool | None:
    """Return whether instances of a finding are counted; None for a class that is none."""
    finding = vocabulary().findings.get(name)
    return None if finding is None else finding.counted


def like(attribute: str) -> str:
    """Return the predicate of a question for an attribute: spelt-out sides, sizes and Paris types, others unchanged."""
    return f"of type {attribute}" if attribute.startswith("Paris ") else _LIKE.get(attribute, attribute)


def with_others(attributes: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return attributes, and the others of their kind for findings of orders.

    Asking for all detects a wrong side, size, Paris type or colour, and shows whether the picture of the source has
    the one that a changed prompt orders.
    """
    named = set(attributes)
    findings = vocabulary().findings
    kinds = ((SIDES, _ONE_SIDE), *((kind, kind) for kind in (SIZES, PARIS, vocabulary().lists["colours"])))
    return named | {
        (name, other)
        for name, attribute in named
        if name in findings
        for kind, others in kinds
        if attribute in kind
        for other in others
    }

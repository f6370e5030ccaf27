"""Parsing of clinical prompts: clauses between separators, a noun in each, and the words beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from medtest.core.files.paths import read_yaml

NOUNS = Path(__file__).with_name("nouns.yaml")
FILM, SCOPE, CAPSULE = "film", "scope", "capsule"
SOME = 2
"""Number of things drawn for a plural without a number."""
MOST_OF_A_KIND = 9
_MOST_CHARACTERS, _MOST_DIGITS = 8000, 9
_BREAK = re.compile(r"([,;:]|\.(?!\d)|\b(?:or|nor|and|but|with(?! size)|showing|shows|demonstrating|depicting)\b)")
_NO = re.compile(r"\b(no|not|zero|without|absence|negative for|free of)\b")
_MAYBE = re.compile(r"\b(possibl[ey]|probable|suspected|suspicion|questionable|cannot exclude)\b")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(mm|cm)\b")
_AGE = re.compile(r"\b(\d{1,3}) ?(?:year|y/o|yo\b|[fm]\b)")
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_LETTERS = ((r"\bL\b", "left"), (r"\bR\b", "right"))
_BOTH = re.compile(r"\b(bilateral|bilat|both|left and right)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFinding:
    """Finding that a prompt names.

    Attributes:
        name: Name in ``nouns.yaml``.
        plain: Whether the prompt uses its plain name.
        presence: ``wanted``, ``unwanted`` or ``perhaps``.
        side: ``left``, ``right``, ``bilateral``, or "".
        count: Number of instances.
        millimetres: Diameter; None if not named.
        type: Paris type in small letters, or "".
        colour: A colour, or "".
    """

    name: str
    plain: bool = True
    presence: str = "wanted"
    side: str = ""
    count: int = 1
    millimetres: float | None = None
    type: str = ""
    colour: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClinicalPrompt:
    """Content of a clinical prompt.

    Attributes:
        picture: :data:`FILM`, :data:`SCOPE` or :data:`CAPSULE`.
        region: Region of an endoscopy, or "".
        findings: Findings in the order of the prompt.
        bystanders: Words for age, sex and scanner.
        portable: Whether a portable scanner is named.
    """

    picture: str
    region: str = ""
    findings: tuple[NamedFinding, ...] = ()
    bystanders: tuple[str, ...] = ()
    portable: bool = False


@cache
def nouns() -> dict[str, Any]:
    """Return the content of ``nouns.yaml``."""
    return dict(read_yaml(NOUNS))


@lru_cache(maxsize=4096)
def understood_order(prompt: str) -> ClinicalPrompt | None:
    """Return the content of a prompt for a medical picture; None for any other prompt."""
    text = prompt[:_MOST_CHARACTERS]
    for letter, word in _LETTERS:
        text = re.sub(letter, word, text)
    text = " ".join(text.lower().replace("-", " ").replace("’", "'").split())
    words = nouns()
    picture = next((kind for kind, names in words["pictures"].items() if any(name in text for name in names)), "")
    if not picture:
        return None
    region = next((name for name, stems in words["regions"].items() if any(stem in text for stem in stems)), "")
    people = [word for word in words["people"] if re.search(rf"\b{word}\b", text)]
    letters = re.findall(r"\b([FM])\b|\d([FM])\b", prompt)
    scanners = [word for word in words["scanners"] if word in text]
    return ClinicalPrompt(
        picture=picture,
        region=region if picture == SCOPE else "",
        findings=_findings(_BOTH.sub("bilateral", text), picture),
        bystanders=(*_AGE.findall(text), *people, *(a or b for a, b in letters), *scanners),
        portable=any(word in text for word in words["portable"]),
    )


def _findings(text: str, picture: str) -> tuple[NamedFinding, ...]:
    pieces = _BREAK.split(text)
    clauses = list(zip(["", *pieces[1::2]], pieces[::2], strict=True))
    findings: list[NamedFinding] = []
    presence = "wanted"
    for number, (joint, clause) in enumerate(clauses):
        match = _noun(clause, picture)
        if match is None:
            if findings and joint not in (".", ";", ":"):
                findings[-1] = _described(findings[-1], clause)
            continue
        name, plain, plural, rest = match
        if _NO.search(clause):
            presence = "unwanted"
        elif _MAYBE.search(clause):
            presence = "perhaps"
        elif joint not in ("or", "nor") and not (joint == "," and _listed(clauses[number + 1 :])):
            presence = "wanted"
        count = _count(rest) or (SOME if plural else 1)
        findings.append(_described(NamedFinding(name=name, plain=plain, presence=presence, count=count), rest))
    return tuple(findings)


def _listed(clauses: list[tuple[str, str]]) -> bool:
    """Return True if a list goes on to an "or", so that its negation reaches all of it."""
    for joint, clause in clauses:
        if joint in ("or", "nor"):
            return True
        if joint != "," or _NO.search(clause) or _MAYBE.search(clause):
            return False
    return False


@cache
def _patterns(picture: str) -> list[tuple[re.Pattern[str], str, bool]]:
    """Return a pattern for each noun, longest first, with its finding and whether it is the plain name."""
    names = [
        (noun, name, number == 0)
        for name, all_nouns in nouns()[picture]["findings"].items()
        for number, noun in enumerate(all_nouns)
    ]
    names.sort(key=lambda entry: -len(entry[0]))
    return [(re.compile(rf"(?<![\w']){re.escape(noun)}(s|es|e)?\b"), name, plain) for noun, name, plain in names]


def _noun(clause: str, picture: str) -> tuple[str, bool, bool, str] | None:
    """Return a clause's finding, whether by its plain name, whether in the plural, and the rest of the clause."""
    for pattern, name, plain in _patterns(picture):
        match = pattern.search(clause)
        if match is not None:
            rest = f"{clause[: match.start()]} # {clause[match.end() :]}"
            return name, plain, bool(match.group(1)), rest
    return None


def _count(rest: str) -> int:
    """Return the number before a noun, 0 for none."""
    before = _AGE.sub(" ", _SIZE.sub(" ", rest.split("#")[0]))
    for word in reversed(before.split()):
        if word.isdecimal():
            return min(int(word[:_MOST_DIGITS]), MOST_OF_A_KIND)
        if word in _NUMBERS[1:]:
            return _NUMBERS.index(word)
        if word in ("single", "solitary", "a", "an"):
            return 1
    return 0


def _described(finding: NamedFinding, text: str) -> NamedFinding:
    """Return a finding with the side, size, type and colour that a text names."""
    words = nouns()
    size = _SIZE.search(text)
    side = next((side for side in ("bilateral", "left", "right") if re.search(rf"\b{side}\b", text)), "")
    types = [kind for name, kind in words["types"].items() if re.search(rf"\b{name}\b", text)]
    colours = [colour for colour in words["colours"] if re.search(rf"\b{colour}\b", text)]
    return replace(
        finding,
        side=side or finding.side,
        millimetres=finding.millimetres if size is None else float(size[1]) * (10.0 if size[2] == "cm" else 1.0),
        type=types[0] if types else finding.type,
        colour=colours[0] if colours else finding.colour,
    )

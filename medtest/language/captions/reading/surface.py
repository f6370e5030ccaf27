"""Surface of a prompt: a command at its beginning, and style tags between commas, from ``surface.yaml``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from medtest.core.files.paths import read_yaml
from medtest.language.captions.controlled.lexicon import known_noun, lexicon
from medtest.language.captions.controlled.prepositions import continues
from medtest.language.captions.controlled.tokens import STOP

FILE = Path(__file__).with_name("surface.yaml")
_ASKING = r"(?:please\s+)?(?:(?:can|could|would|will)\s+you\s+(?:please\s+)?)?(?:please\s+)?"
_WISH = r"(?:i\s+(?:want|need|would\s+like|wish\s+for)|i'd\s+like)(?:\s+you\s+to\s+(?:{verbs}))?(?:\s+to\s+see)?"
_ARTICLES = ("a", "an", "the")
_OPENS = r"(?:an?|the|one|two|three|four|five|six|seven|eight|nine|ten|some|several|many|my|his|her|their|our|\d+)"
_LINKS = r"(?:of|showing|with|depicting|that\s+shows|which\s+shows|where|featuring)"
_RATIO = re.compile(
    r"(?:--\w+(?:\s+[\w:.]+)?|\d+\s*[x:]\s*\d+|f/?\d+(?:\.\d+)?|(?:24|28|35|50|85|100|105|135|200)\s?mm"
    r"|\d+\s?mm\s+(?:lens|film|photo\w*)|iso\s?\d+|\d+k(?:\s+\w+)?)",
    re.I,
)
"""Parameters of services, ratios, and settings of cameras."""


_CONTINUES = frozenset(
    ("and", "or", "but", "not", "nor", "while", "with", "in", "on", "at", "by", "who", "which", "that", "near")
)
"""Words that continue the part before a comma."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSurface:
    """Parts of a prompt, verbatim.

    Attributes:
        command: The command; "" for none.
        tags: Style tags.
        parts: What is left, split at commas.
        listed: True if the parts are a list of things without "and", as beside tags.
        regions: Parts of the body named as the subject of a picture of medicine ("chest" of "Chest X-ray").
        medical: True if the prompt names a picture of medicine.
    """

    command: str = ""
    tags: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    listed: bool = False
    regions: tuple[str, ...] = ()
    medical: bool = False


@dataclass(frozen=True, kw_only=True)
class _Lists:
    tags: frozenset[str]
    tag_words: frozenset[str]
    tag_starts: tuple[str, ...]
    modalities: frozenset[str]
    modality_words: frozenset[str]
    body_regions: frozenset[str]
    command: re.Pattern[str]
    picture: re.Pattern[str]
    kind: re.Pattern[str]


def surface_of(text: str) -> PromptSurface:
    """Return the parts of a prompt."""
    lists = _lists()
    stripped = text.strip()
    command = lists.command.match(stripped)
    lead = command.group().strip() if command else ""
    rest = stripped[command.end() :] if command else stripped
    tags: list[str] = _kind_of_picture(lead, lists)
    picture = lists.picture.match(rest)
    if picture is not None:
        if picture.group("what").strip():
            tags.append(" ".join(picture.group("what").split()))
        rest = rest[picture.end() :]
    rest, regions, modality = _without_modality(rest, lists)
    tags += modality
    parts: list[str] = []
    for part in re.split(r"\s*[,;|]\s*", rest.strip().rstrip("?!")):
        plain = part.strip().rstrip(".").strip()
        if not plain:
            continue
        if (parts or tags or regions) and _is_tag(plain.lower(), lists):
            tags.append(plain)
        else:
            parts.append(part.strip())
    listed = _is_list(parts, bool(tags) or bool(modality))
    return PromptSurface(
        command=lead,
        tags=tuple(tags),
        parts=tuple(parts),
        listed=listed,
        regions=tuple(regions),
        medical=bool(modality),
    )


def _kind_of_picture(command: str, lists: _Lists) -> list[str]:
    """Return the kind of picture that a command asks for if it says more than "a picture"."""
    kind = lists.kind.search(command)
    if kind is None or kind.group("what").lower() in ("picture", "image", "photo", "scene", "shot", "pic"):
        return []
    return [kind.group("what")]


def _is_list(parts: list[str], has_tags: bool) -> bool:
    """Return True if the parts are separate things: no "and" opens one, and none continues the part before it."""
    if (
        len(parts) < 2
        or any(map(_is_unfinished, parts[:-1]))
        or any(_continues(part.lower().split()) for part in parts[1:])
    ):
        return False
    return has_tags or not any(re.search(r"\b(?:and|or)\b", part) for part in parts)


def _continues(words: list[str]) -> bool:
    """Return True if a part describes the part before it: "and a dog", "wearing a hat", but not "flying cars"."""
    if not words or words[0] in _CONTINUES:
        return True
    if known_noun(words[0]) or {"VG", "VN"}.isdisjoint(lexicon().verb(words[0])):
        return False
    opens = lexicon()["articles"] | lexicon()["definite"] | lexicon()["possessives"]
    following = words[1] if len(words) > 1 else STOP
    return following in opens or following in lexicon().numbers or not continues(following)


def _is_unfinished(part: str) -> bool:
    """Return True if a noun must follow a part: "a dirty", before "rundown kitchen"."""
    last = part.lower().split()[-1]
    lists = lexicon()
    opens = lists["articles"] | lists["possessives"] | lists["definite"] | lists["adjectives"] | lists["colours"]
    return last in opens and not known_noun(last)


def _is_tag(part: str, lists: _Lists) -> bool:
    words = part.split()
    if {"and", "or", "with"} & set(words) and part not in lists.tags:
        return False
    if words[-1] in ("view", "projection") and all(word in lists.modality_words for word in words[:-1]):
        return True
    if part in lists.tags or _RATIO.fullmatch(part) or part.startswith(lists.tag_starts):
        return True
    return (
        len(words) <= 5
        and not {words[-1], words[0]}.isdisjoint(lists.tag_words)
        or bool(len(words) <= 3 and not lists.tag_words.isdisjoint(words))
    )


def _without_modality(text: str, lists: _Lists) -> tuple[str, list[str], list[str]]:
    """Return a text without the picture of medicine that it begins with, its body regions, and the picture's words."""
    first = re.split(r"[,;:]", text, maxsplit=1)[0]
    words = first.split()
    size = 0
    picture_words = lists.modalities | lists.modality_words
    while size < len(words) and (
        words[size].lower().strip(".") in picture_words or (not size and words[0].lower() in _ARTICLES)
    ):
        size += 1
    named = [word.lower().strip(".") for word in words[:size]]
    if lists.modalities.isdisjoint(named):
        return text, [], []
    following = " ".join(words[size:])
    link = re.match(r"(?:showing|shows|with|of|demonstrating|revealing|depicting)\s+", following)
    if following and link is None:
        return text, [], []
    regions = [word for word in named if word in lists.body_regions]
    tag = [word for word in words[:size] if word.lower() not in (*lists.body_regions, *_ARTICLES)]
    rest = following[link.end() :] if link else following
    return (rest + text[len(first) :]).lstrip(" ,;:"), regions, [" ".join(tag)]


@cache
def _lists() -> _Lists:

    content = read_yaml(FILE)
    verbs, sure = ("|".join(content[name].split()) for name in ("commands", "sure_commands"))
    pictures = "|".join(f"{word}s?" for word in content["pictures"].split())
    described = r"(?:[\w-]+\s+){0,3}?"
    a_picture = rf"(?:an?\s+|the\s+)?{described}(?:{pictures})\s+{_LINKS}\s+"
    wish = _WISH.format(verbs=verbs)
    command = re.compile(
        rf"{_ASKING}(?:{wish}\s+{a_picture}|{wish}\s+(?={_OPENS}\b)|(?:{verbs})(?:\s+me|\s+us)?\s+{a_picture}"
        rf"|(?:{verbs})(?:\s+me|\s+us)?:?\s+(?={_OPENS}\b)|(?:{sure})(?:\s+me|\s+us)?:?\s+(?=\w))",
        re.I,
    )
    picture = re.compile(
        rf"(?:an?\s+|the\s+)?(?P<what>{described}(?:{pictures}))\s+(?:of|depicting|showing)\s+(?=\w)", re.I
    )
    return _Lists(
        tags=frozenset(" ".join(tag.split()) for tag in content["tags"].split("|")),
        tag_words=frozenset(content["tag_words"].split()),
        tag_starts=tuple(f"{start.strip()} " for start in content["tag_starts"].split("|")),
        modalities=frozenset(content["modalities"].split()),
        modality_words=frozenset(content["modality_words"].split()),
        body_regions=frozenset(content["body_regions"].split()),
        command=command,
        picture=picture,
        kind=re.compile(rf"\b(?:an?|the)\s+(?P<what>{described}(?:{pictures}))\s+{_LINKS}$", re.I),
    )

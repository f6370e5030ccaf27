"""Wording of changed pools: templates, and synonyms of a prompt's own words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from medtest.core.errors import NotApplicable
from medtest.core.scenes import Pool, Prompt
from medtest.language.captions import inflection
from medtest.language.captions.render import Unsayable, render
from medtest.language.captions.vocabulary import vg150

if TYPE_CHECKING:
    from medtest.language.captions.enrich import Enricher

_LEAD = re.compile(r"(an?|the) (photo|photograph|picture|image|drawing|painting) of (?=\S)", re.I)
_THERE = ("There is ", "There are ")


def said(pool: Pool, source: Prompt) -> str:
    """Return the template wording of a pool; it starts with "a photo of …" if the source does.

    Raises:
        NotApplicable: No template can word the pool.
    """
    text, why = _by_templates(pool)
    if why:
        raise NotApplicable(f"no template can phrase the changed prompt: {why}")
    lead = _LEAD.match(source.text)
    if lead is None or text.startswith(_THERE) or text.count(".") != 1:
        return text
    stop = "." if source.text.rstrip().endswith(".") else ""
    return f"{lead.group()}{text[:1].lower()}{text[1:-1]}{stop}"


@lru_cache(maxsize=1)
def enricher(folder: str) -> Enricher:
    """Return the masked language model of a folder, loaded once per process.

    Raises:
        UserMistakes: The folder holds no such model.
    """
    from medtest.language.captions.enrich import Enricher

    return Enricher(Path(folder).expanduser())


@lru_cache(maxsize=1024)
def _by_templates(pool: Pool) -> tuple[str, str]:
    """Return the wording of a pool, or the reason for having none; cached for sampling and applying."""
    try:
        return render(pool), ""
    except Unsayable as error:
        return "", str(error)


def reworded(source: Prompt, words: Mapping[str, str]) -> str:
    """Return a prompt's text with other words for some of its classes, adjusting articles.

    Args:
        source: The prompt.
        words: The word to use, by class.

    Returns:
        The text; all other words are unchanged.
    """
    text = source.text
    for name, word in words.items():
        text = _replace_word(text, name, word)
    return text


def named_in(text: str, name: str) -> str | None:
    """Return the word, in singular, by which a text names a class; None if it does not."""
    match = _pattern(name).search(text)
    return None if match is None else _singular(name, match.group("word"))


def _replace_word(text: str, name: str, word: str) -> str:
    def put(match: re.Match[str]) -> str:
        old = match.group("word")
        many = old.lower() in {vg150().plural(item) for item in _words(name)} and old.lower() not in _words(name)
        new = inflection.plural(word) if many else word
        before = match.group("before") or ""
        if before.strip().lower() in ("a", "an"):
            article = inflection.article(new)
            before = f"{article.capitalize() if before[0].isupper() else article}{before.lstrip('aAnN')}"
        elif old[0].isupper():
            new = new[:1].upper() + new[1:]
        return f"{before}{new}"

    return _pattern(name).sub(put, text)


@lru_cache(maxsize=4096)
def _pattern(name: str) -> re.Pattern[str]:
    words = _words(name)
    forms = sorted({form for item in words for form in (item, vg150().plural(item))}, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?P<before>an?\s+)?(?P<word>{'|'.join(map(re.escape, forms))})(?!\w)", re.I)


def _words(name: str) -> tuple[str, ...]:
    return tuple(item.lower() for item in vg150().synonyms(name))


def _singular(name: str, word: str) -> str:
    by_form = {form: item for item in _words(name) for form in (vg150().plural(item), item)}
    return by_form.get(word.lower(), word.lower())

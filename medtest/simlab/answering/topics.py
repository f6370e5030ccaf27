"""Topics of questions, by the product's own interpretation of their words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from medtest.core.files.paths import read_yaml


class Topic(StrEnum):
    """Topics that the product can answer."""

    PROCEDURE = "procedure"
    REMOVED = "removed"
    EASY = "easy"
    BOX = "box"
    TEXT = "text"
    ABNORMALITY_COLOUR = "abnormality_colour"
    LANDMARK_COLOUR = "landmark_colour"
    FINDING_COUNT = "finding_count"
    POLYP_COUNT = "polyp_count"
    TOOL_COUNT = "tool_count"
    ABNORMALITY_PLACE = "abnormality_place"
    TOOL_PLACE = "tool_place"
    LANDMARK_PLACE = "landmark_place"
    ABNORMALITIES = "abnormalities"
    LANDMARKS = "landmarks"
    TOOLS = "tools"
    SIZE = "size"
    POLYP_TYPE = "polyp_type"
    SHOWN = "shown"
    """Whether a named thing is there, or has a named trait; no rule, but :attr:`PromptQuestion.claim` has the names."""
    UNKNOWN_THING = "unknown_thing"
    """Place, number, colour, size or type of a thing that the product does not know, which it therefore denies."""


COUNTS = frozenset({Topic.FINDING_COUNT, Topic.POLYP_COUNT, Topic.TOOL_COUNT})
PLACES = frozenset({Topic.ABNORMALITY_PLACE, Topic.TOOL_PLACE, Topic.LANDMARK_PLACE})
COLOURS = frozenset({Topic.ABNORMALITY_COLOUR, Topic.LANDMARK_COLOUR})
LISTS = frozenset({Topic.ABNORMALITIES, Topic.LANDMARKS, Topic.TOOLS})
CLOSED = frozenset({Topic.REMOVED, Topic.EASY, Topic.BOX, Topic.TEXT, Topic.SHOWN})
ABOUT_TOOLS = frozenset({Topic.TOOL_COUNT, Topic.TOOL_PLACE, Topic.TOOLS})

WORDS = read_yaml(Path(__file__).with_name("words.yaml"))
"""The product's vocabulary, ``words.yaml``."""
_RULES = [(Topic(topic), [re.compile(word) for word in words]) for topic, *words in WORDS["rules"]]
_PRESUMES = re.compile(WORDS["presumes"])
_SIZE_OF_OTHER = re.compile(WORDS["size_of_other"])
_CLAIMS = tuple(re.compile(WORDS[name]) for name in ("shown", "described"))
_SENTENCE = re.compile(r"[^.?!\n]*\?")
_LISTED = re.compile(
    r"^\s*(?:[-*]\s+)?(?:(?P<number>\d{1,3})[.):]\s+)?(?:[*`\"']{0,2}(?P<name>[A-Za-z_]\w{0,60})[*`\"']{0,2}:\s+)?"
    r"(?P<text>[^\n?]{3,300}\?)"
)
_LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class PromptQuestion:
    """A question of a prompt.

    Attributes:
        key: List entry of the question ("polyps", else "3"), or "".
        text: Sentence of the question.
        topic: Topic; None if the product does not know it.
        claim: Of :attr:`Topic.SHOWN`, the name of a thing, and its size class or Paris type or "".
    """

    key: str
    text: str
    topic: Topic | None
    claim: tuple[str, str] = ("", "")


@lru_cache(maxsize=4096)
def topic_of(text: str) -> Topic | None:
    """Return the topic of a question; None if no rule fits."""
    low = " ".join(text.lower().split())
    for topic, words in _RULES:
        if all(word.search(low) for word in words):
            return topic
    return None


def _asked(key: str, text: str) -> PromptQuestion:
    """Return a question with its topic: a claim about a known thing, else by the rules."""
    claim = _claim(" ".join(text.lower().split()))
    topic = _topic_asked(text) if claim is None else Topic.SHOWN
    return PromptQuestion(key, text.strip(), topic, claim or ("", ""))


def _claim(low: str) -> tuple[str, str] | None:
    """Return the known thing that a question names, and its trait or ""; None for any other question."""
    for pattern in _CLAIMS:
        if (match := pattern.match(low)) is not None:
            words = match.groupdict()
            thing, trait = WORDS["known"].get(words["thing"]), WORDS["traits"].get(words.get("trait"))
            if thing is not None and ("trait" not in words or trait is not None):
                return thing, trait or ""
    return None


def _topic_asked(text: str) -> Topic | None:
    """Return the topic of a question that was asked, which may presume an unknown thing."""
    low, topic = " ".join(text.lower().split()), topic_of(text)
    if topic == Topic.SIZE and _SIZE_OF_OTHER.search(low):
        return Topic.UNKNOWN_THING
    return Topic.UNKNOWN_THING if topic is None and _PRESUMES.search(low) else topic


@lru_cache(maxsize=4096)
def questions_in(prompt: str) -> tuple[PromptQuestion, ...]:
    """Return the questions of a prompt in order, each with its list entry.

    A line with a question mark is a question; a line outside a list may have several. A prompt without a question mark
    is one question.
    """
    shown = prompt[:_LONGEST]
    questions: list[PromptQuestion] = []
    for line in shown.splitlines():
        if "?" not in line:
            continue
        listed = _LISTED.match(line)
        key = (listed["name"] or listed["number"] or "") if listed is not None else ""
        sentences = [listed["text"]] if listed is not None and key else _SENTENCE.findall(line)
        questions += [_asked(key, sentence) for sentence in sentences]
    understood = [question for question in questions if question.topic is not None]
    if understood or questions:
        return tuple(understood or questions[-1:])
    return (_asked("", shown),)

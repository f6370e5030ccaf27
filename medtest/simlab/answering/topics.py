"""What a question is about, by the product's own reading of its words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

import yaml


class Topic(StrEnum):
    """What the product has something to say about."""

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


COUNTS = frozenset({Topic.FINDING_COUNT, Topic.POLYP_COUNT, Topic.TOOL_COUNT})
PLACES = frozenset({Topic.ABNORMALITY_PLACE, Topic.TOOL_PLACE, Topic.LANDMARK_PLACE})
COLOURS = frozenset({Topic.ABNORMALITY_COLOUR, Topic.LANDMARK_COLOUR})
LISTS = frozenset({Topic.ABNORMALITIES, Topic.LANDMARKS, Topic.TOOLS})
CLOSED = frozenset({Topic.REMOVED, Topic.EASY, Topic.BOX, Topic.TEXT})
ABOUT_TOOLS = frozenset({Topic.TOOL_COUNT, Topic.TOOL_PLACE, Topic.TOOLS})

WORDS = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))
"""The product's own words, ``words.yaml``."""
_RULES = [(Topic(topic), [re.compile(word) for word in words]) for topic, *words in WORDS["rules"]]
_SENTENCE = re.compile(r"[^.?!\n]*\?")
_LISTED = re.compile(
    r"^\s*(?:[-*]\s+)?(?:(?P<number>\d{1,3})[.):]\s+)?(?:[*`\"']{0,2}(?P<name>[A-Za-z_]\w{0,60})[*`\"']{0,2}:\s+)?"
    r"(?P<text>[^\n?]{3,300}\?)"
)
_LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class PromptQuestion:
    """One question of a prompt.

    Attributes:
        key: What it is listed under ("polyps", else "3"), or "".
        text: Its sentence.
        topic: What it is about; None where the product does not know.
    """

    key: str
    text: str
    topic: Topic | None


@lru_cache(maxsize=4096)
def topic_of(text: str) -> Topic | None:
    """Return what a question is about; None where no rule fits."""
    low = " ".join(text.lower().split())
    for topic, words in _RULES:
        if all(word.search(low) for word in words):
            return topic
    return None


@lru_cache(maxsize=4096)
def questions_in(prompt: str) -> tuple[PromptQuestion, ...]:
    """Return the questions of a prompt in their order, each with what it is listed under.

    A line is a question where it holds a question mark; of several in a line that is not part of a list, each counts.
    A prompt without any question mark is one question.
    """
    shown = prompt[:_LONGEST]
    found: list[PromptQuestion] = []
    for line in shown.splitlines():
        if "?" not in line:
            continue
        listed = _LISTED.match(line)
        key = (listed["name"] or listed["number"] or "") if listed is not None else ""
        sentences = [listed["text"]] if listed is not None and key else _SENTENCE.findall(line)
        found += [PromptQuestion(key, one.strip(), topic_of(one)) for one in sentences]
    known = [one for one in found if one.topic is not None]
    if known or found:
        return tuple(known or found[-1:])
    return (PromptQuestion("", shown.strip(), topic_of(shown)),)

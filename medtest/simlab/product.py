"""The product: a picture and a prompt in, words out, the same words whenever the same is asked."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.simlab.answering.draws import Draws
from medtest.simlab.answering.phrasing import STYLES, filled, phrase
from medtest.simlab.answering.topics import PromptQuestion, questions_in, topic_of
from medtest.simlab.defects import Defects, Utterance, number_of, with_defects
from medtest.simlab.seeing.sight import NOT_RELEVANT, PictureTraits, Sight, answers

Picture = NDArray[np.uint8]
Truth = Mapping[str, Sequence[str]]
"""Question to its answers, any wording of the question."""

_KEPT = 4096


def picture_sha256(picture: Picture) -> str:
    """Return SHA-256 of a picture's shape and pixels, hexadecimal: PNG's compression makes no difference."""
    digest = hashlib.sha256(repr(picture.shape).encode())
    digest.update(np.ascontiguousarray(picture).data)
    return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the product is set.

    Attributes:
        seed: Of all its draws.
        defects: What is wrong with it.
        styles: How it puts its answers, some of :data:`medtest.simlab.answering.phrasing.STYLES`.
    """

    seed: int = 0
    defects: Defects = field(default_factory=Defects)
    styles: tuple[str, ...] = STYLES


class Product:
    """Answers questions about pictures.

    Args:
        settings: How it is set.
        reader: Looks at a picture and says what it believes; called once a picture, from any thread.
    """

    def __init__(self, settings: Settings, reader: Callable[[Picture], Sight]) -> None:
        self.settings = settings
        self._reader = reader
        self._seen: OrderedDict[str, Future[Sight]] = OrderedDict()
        self._truths: dict[str, dict[object, tuple[str, ...]]] = {}
        self._lock = threading.Lock()

    def learn(self, sha256: str, truth: Truth) -> None:
        """Take the true answers to a picture, which are then said instead of what is seen (``reader: truth``).

        Args:
            sha256: As :func:`picture_sha256` gives it.
            truth: Answers by question.
        """
        told: dict[object, tuple[str, ...]] = {}
        for text, words in truth.items():
            if words:
                told[topic_of(text) or text.strip()] = tuple(str(word) for word in words)
        with self._lock:
            self._truths.setdefault(sha256, {}).update(told)

    def see(self, picture: Picture, sha256: str | None = None) -> Sight:
        """Return what the product believes of a picture; read once, whoever asks."""
        key = sha256 or picture_sha256(picture)
        with self._lock:
            found = self._seen.get(key)
            mine = found is None
            if found is None:
                found = self._seen[key] = Future()
                if len(self._seen) > _KEPT:
                    self._seen.popitem(last=False)
        if mine:
            try:
                found.set_result(self._reader(picture))
            except BaseException as error:
                found.set_exception(error)
                raise
        return found.result()

    def say(self, question: PromptQuestion, sight: Sight, sha256: str, seed: int) -> Utterance:
        """Return what it says to one question, before it is put into words.

        Args:
            question: The question.
            sight: What it believes of the picture.
            sha256: The picture's.
            seed: The request's.
        """
        if question.topic is None:
            return Utterance((NOT_RELEVANT,))
        told = self._truths.get(sha256, {}).get(question.topic)
        words = told if told is not None else answers(sight, question.topic)
        return self._defective(words, question, sight.traits, sha256, seed)

    def _defective(
        self, words: tuple[str, ...], question: PromptQuestion, traits: PictureTraits, sha256: str, seed: int
    ) -> Utterance:
        assert question.topic is not None  # noqa: S101 - its callers have looked
        steady = Draws(self.settings.seed, sha256, question.topic)
        fresh = Draws(self.settings.seed, sha256, question.topic, seed)
        return with_defects(words, question.topic, traits, self.settings.defects, steady=steady, fresh=fresh)

    def answer_as(self, words: Sequence[str], text: str, *, traits: PictureTraits, sha256: str, seed: int = 0) -> str:
        """Answer one question with given plain words, so that only the defects err: no picture is looked at.

        Args:
            words: What a sound product would say.
            text: The question.
            traits: What the picture is like.
            sha256: The picture's.
            seed: The request's.
        """
        question = PromptQuestion("", text, topic_of(text))
        if question.topic is None:
            return phrase(Utterance(tuple(words)), None, Draws(self.settings.seed, sha256, text, seed))
        said = self._defective(tuple(words), question, traits, sha256, seed)
        return phrase(said, question.topic, self._wording(question, sha256, seed), self.settings.styles)

    def answer(self, picture: Picture, prompt: str, *, seed: int = 0, schema: Mapping[str, Any] | None = None) -> str:
        """Answer a prompt about a picture.

        Args:
            picture: uint8 RGB H×W×3.
            prompt: One question, or a list of several.
            seed: The request's.
            schema: JSON schema that the answer must have; None for words.
        """
        sha256 = picture_sha256(picture)
        sight = self.see(picture, sha256)
        asked = questions_in(prompt)
        if schema is not None:
            return json.dumps(self._structured(schema, asked, sight, sha256, seed), ensure_ascii=False)
        if len(asked) == 1:
            said = self.say(asked[0], sight, sha256, seed)
            return phrase(said, asked[0].topic, self._wording(asked[0], sha256, seed), self.settings.styles)
        return self._list(asked, sight, sha256, seed)

    def _wording(self, question: PromptQuestion, sha256: str, seed: int) -> Draws:
        return Draws(self.settings.seed, sha256, question.topic, seed, "words")

    def _list(self, asked: Sequence[PromptQuestion], sight: Sight, sha256: str, seed: int) -> str:
        """Return one answer a question, in lines or as one object, under the keys in which they were asked."""
        found: dict[str, str] = {}
        for number, question in enumerate(asked, start=1):
            said = self.say(question, sight, sha256, seed)
            key = question.key if question.key else str(number)
            found[key] = filled(said, question.topic, self._wording(question, sha256, seed))
        shape = Draws(self.settings.seed, sha256, seed).one_of("list", ("lines", "json"))
        if shape == "json":
            return json.dumps(found, ensure_ascii=False)
        return "\n".join(
            f"{key}: {answer}" if not key.isdigit() else f"{key}. {answer}" for key, answer in found.items()
        )

    # ------------------------------------------------------------------------------------------- structured answers

    def _structured(
        self, schema: Mapping[str, Any], asked: Sequence[PromptQuestion], sight: Sight, sha256: str, seed: int
    ) -> dict[str, Any]:
        """Fill an object's fields: each by the question that its name or description means, or else by its place."""
        root, properties = schema, schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        matched: dict[str, Any] = {}
        answering = [name for name in properties if not _aside(name)]
        for name, part in properties.items():
            part = _resolved(part, root)
            if part.get("type") == "object":
                nested = {**part, "$defs": root.get("$defs", {})}
                matched[name] = self._structured(nested, asked, sight, sha256, seed)
                continue
            question = _meant(name, part, asked, answering)
            if question is None:
                matched[name] = _empty(part)
                continue
            said = self.say(question, sight, sha256, seed)
            text = filled(said, question.topic, self._wording(question, sha256, seed))
            matched[name] = _typed(part, text, said, question, root)
        return matched


def _aside(name: str) -> bool:
    return name.lower() in ("confidence", "explanation", "reason", "reasoning", "evidence", "notes")


def _resolved(part: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(part, Mapping):
        return {}
    reference = part.get("$ref")
    if isinstance(reference, str):
        found = root.get("$defs", {}).get(reference.rsplit("/", 1)[-1])
        return found if isinstance(found, Mapping) else {}
    for choices in (part.get("anyOf"), part.get("oneOf")):
        if isinstance(choices, list):
            kept = [one for one in choices if isinstance(one, Mapping) and one.get("type") != "null"]
            words = [word for one in kept[1:] for word in one.get("enum", ())]
            more = {"description": part.get("description", ""), "nullable": len(kept) < len(choices), "words": words}
            return {**_resolved(kept[0], root), **more} if kept else {}
    return part


def _meant(
    name: str, part: Mapping[str, Any], asked: Sequence[PromptQuestion], answering: Sequence[str]
) -> PromptQuestion | None:
    """Return the question that a field is for: by its key, by its description, by its place, by its name."""
    if _aside(name):
        return None
    if len(asked) == 1:
        return asked[0]
    for question in asked:
        if question.key and question.key.lower() == name.lower():
            return question
    description = part.get("description")
    if isinstance(description, str) and (topic := topic_of(description)) is not None:
        return next((one for one in asked if one.topic == topic), PromptQuestion(name, description, topic))
    if len(answering) == len(asked):
        return asked[answering.index(name)]
    topic = topic_of(name.replace("_", " "))
    return None if topic is None else PromptQuestion(name, name, topic)


def _typed(
    part: Mapping[str, Any], text: str, said: Utterance, question: PromptQuestion, root: Mapping[str, Any]
) -> Any:
    """Return an answer in a field's type; what does not apply is null or an empty list where that is allowed."""
    kind, choices = part.get("type"), part.get("enum")
    nothing = not said.refused and text.strip().lower() in ("none", "no", "not relevant")
    instead = "refused" if said.refused else text.strip().lower()
    if instead in part.get("words", ()):
        return instead
    if isinstance(choices, list):
        return next((one for one in choices if str(one).lower() == text.lower()), choices[-1])
    if kind == "array":
        items = _resolved(part.get("items"), root)
        if items.get("type") == "object":
            named = ("id", "name", "question")
            return [{one: question.key if one.lower() in named else text for one in items.get("properties", {})}]
        return [] if nothing else [text] if said.refused else list(said.words)
    if kind in ("integer", "number"):
        number = number_of(text)
        return number if number is not None else None if part.get("nullable") else 0
    if kind == "boolean":
        return text.lower().startswith("yes")
    return None if nothing and part.get("nullable") else text


def _empty(part: Mapping[str, Any]) -> Any:
    kinds: dict[str, Any] = {"integer": 0, "number": 0.5, "boolean": False, "array": [], "null": None}
    return kinds.get(str(part.get("type")), "")

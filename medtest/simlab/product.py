"""The answering product: a picture and a prompt in, words out, deterministic for equal requests."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.api.faulty.answers import Weighed
from medtest.core.recent import Recent
from medtest.simlab.answering.draws import Draws
from medtest.simlab.answering.phrasing import STYLES, filled, phrase
from medtest.simlab.answering.topics import CLOSED, PromptQuestion, Topic, questions_in, topic_of
from medtest.simlab.defects import Defects, Utterance, number_of, with_defects
from medtest.simlab.seeing.sight import NO, NONE, NOT_RELEVANT, YES, PictureTraits, Sight, answers, shows, sureness

Picture = NDArray[np.uint8]
Truth = Mapping[str, Sequence[str]]
"""Answers by question, in any wording."""

_KEPT = 4096


def picture_sha256(picture: Picture) -> str:
    """Return the hexadecimal SHA-256 of a picture's shape and pixels, independent of PNG compression."""
    digest = hashlib.sha256(repr(picture.shape).encode())
    digest.update(np.ascontiguousarray(picture).data)
    return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the product.

    Attributes:
        seed: Seed of all draws.
        defects: Defects of its answers.
        styles: Styles of its answers, some of :data:`medtest.simlab.answering.phrasing.STYLES`.
    """

    seed: int = 0
    defects: Defects = field(default_factory=Defects)
    styles: tuple[str, ...] = STYLES


class Product:
    """Answers questions about pictures.

    Args:
        settings: Settings of the product.
        reader: Returns what it sees in a picture; called once per picture, from any thread.
    """

    def __init__(self, settings: Settings, reader: Callable[[Picture], Sight]) -> None:
        self.settings = settings
        self._reader = reader
        self._seen: Recent[str, Future[Sight]] = Recent(_KEPT)
        self._truths: dict[str, dict[object, tuple[str, ...]]] = {}
        self._lock = threading.Lock()

    def learn(self, sha256: str, truth: Truth) -> None:
        """Register the true answers to a picture, which are then used instead of what is seen (``reader: truth``).

        Args:
            sha256: Hash from :func:`picture_sha256`.
            truth: Answers by question.
        """
        truths: dict[object, tuple[str, ...]] = {}
        for text, words in truth.items():
            if words:
                truths[topic_of(text) or text.strip()] = tuple(str(word) for word in words)
        with self._lock:
            self._truths.setdefault(sha256, {}).update(truths)

    def see(self, picture: Picture, sha256: str | None = None) -> Sight:
        """Return the product's view of a picture, which is read once for all callers."""
        key = sha256 or picture_sha256(picture)
        with self._lock:
            future = self._seen.get(key)
            is_new = future is None
            if future is None:
                future = self._seen[key] = Future()
        if is_new:
            try:
                future.set_result(self._reader(picture))
            except BaseException as error:
                future.set_exception(error)
                raise
        return future.result()

    def say(
        self, question: PromptQuestion, sight: Sight, sha256: str, seed: int, defects: Defects | None = None
    ) -> Utterance:
        """Return the answer to one question, before it is phrased.

        Args:
            question: The question.
            sight: What it sees in the picture.
            sha256: Hash of the picture.
            seed: Seed of the request.
            defects: Defects of the answer; None for the product's.
        """
        traits = sight.traits
        if question.topic is None:
            return Utterance((NOT_RELEVANT,))
        if question.topic == Topic.UNKNOWN_THING:
            return Utterance((NONE,))
        if question.topic == Topic.SHOWN:
            return self._defective(shows(sight, *question.claim), question, traits, sha256, seed, defects)
        truth = self._truths.get(sha256, {}).get(question.topic)
        words = truth if truth is not None else answers(sight, question.topic)
        return self._defective(words, question, traits, sha256, seed, defects)

    def _defective(
        self,
        words: tuple[str, ...],
        question: PromptQuestion,
        traits: PictureTraits,
        sha256: str,
        seed: int,
        defects: Defects | None = None,
    ) -> Utterance:
        assert question.topic is not None  # noqa: S101 - checked by its callers
        about = (question.topic, *(part for part in question.claim if part))
        steady = Draws(self.settings.seed, sha256, *about)
        fresh = Draws(self.settings.seed, sha256, *about, seed)
        return with_defects(words, question.topic, traits, defects or self.settings.defects, steady=steady, fresh=fresh)

    def answer_as(self, words: Sequence[str], text: str, *, traits: PictureTraits, sha256: str, seed: int = 0) -> str:
        """Phrase an answer of given words to one question, with defects but without a picture.

        Args:
            words: Answer of a product without defects.
            text: The question.
            traits: Traits of the picture.
            sha256: Hash of the picture.
            seed: Seed of the request.
        """
        question = PromptQuestion("", text, topic_of(text))
        if question.topic is None:
            return phrase(Utterance(tuple(words)), None, Draws(self.settings.seed, sha256, text, seed))
        utterance = self._defective(tuple(words), question, traits, sha256, seed)
        return phrase(utterance, question.topic, self._wording(question, sha256, seed), self.settings.styles)

    def answer(self, picture: Picture, prompt: str, *, seed: int = 0, schema: Mapping[str, Any] | None = None) -> str:
        """Answer a prompt about a picture.

        Args:
            picture: uint8 RGB H×W×3.
            prompt: One question, or a list of several.
            seed: Seed of the request.
            schema: JSON schema of the answer; None for text.
        """
        sha256 = picture_sha256(picture)
        sight = self.see(picture, sha256)
        questions = questions_in(prompt)
        if schema is not None:
            words = json.dumps(self._structured(schema, questions, sight, sha256, seed), ensure_ascii=False)
            return self._weighed(words, questions[0], sight, sha256) if len(questions) == 1 else words
        if len(questions) == 1:
            utterance = self.say(questions[0], sight, sha256, seed)
            words = phrase(
                utterance, questions[0].topic, self._wording(questions[0], sha256, seed), self.settings.styles
            )
            return self._weighed(words, questions[0], sight, sha256)
        return self._list(questions, sight, sha256, seed)

    def _weighed(self, words: str, question: PromptQuestion, sight: Sight, sha256: str) -> str:
        """Return an answer to a question of yes or no with the probabilities of the word that decides it.

        They follow from how sure the product is of what it sees, and from the rates of the defects that differ between
        requests: a changed answer, and a refusal, which begins with another word.
        """
        if question.topic not in CLOSED:
            return words
        defects = self.settings.defects
        lasting = replace(defects, nondeterminism=0.0, refusals=0.0)
        usual, *_ = " ".join(self.say(question, sight, sha256, 0, lasting).words).capitalize().split()
        sure = sureness(sight, question.claim[0]) if usual in (YES, NO) else 1.0
        changed = defects.nondeterminism * sure + (1.0 - defects.nondeterminism) * (1.0 - sure)
        spoken, other = 1.0 - defects.refusals, NO if usual == YES else YES
        return Weighed(words, {usual: spoken * (1.0 - changed), other: spoken * changed, "I": defects.refusals})

    def _wording(self, question: PromptQuestion, sha256: str, seed: int) -> Draws:
        return Draws(self.settings.seed, sha256, question.topic, seed, "words")

    def _list(self, questions: Sequence[PromptQuestion], sight: Sight, sha256: str, seed: int) -> str:
        """Return one answer per question, in lines or as one object, under the keys of the prompt."""
        by_key: dict[str, str] = {}
        for number, question in enumerate(questions, start=1):
            utterance = self.say(question, sight, sha256, seed)
            key = question.key if question.key else str(number)
            by_key[key] = filled(utterance, question.topic, self._wording(question, sha256, seed))
        shape = Draws(self.settings.seed, sha256, seed).one_of("list", ("lines", "json"))
        if shape == "json":
            return json.dumps(by_key, ensure_ascii=False)
        return "\n".join(
            f"{key}: {answer}" if not key.isdigit() else f"{key}. {answer}" for key, answer in by_key.items()
        )

    # ------------------------------------------------------------------------------------------- structured answers

    def _structured(
        self, schema: Mapping[str, Any], questions: Sequence[PromptQuestion], sight: Sight, sha256: str, seed: int
    ) -> dict[str, Any]:
        """Fill an object's fields, each by the question that its name or description matches, or else by position."""
        root, properties = schema, schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        matched: dict[str, Any] = {}
        answering = [name for name in properties if not _is_remark(name)]
        for name, part in properties.items():
            part = _resolved(part, root)
            if part.get("type") == "object":
                nested = {**part, "$defs": root.get("$defs", {})}
                matched[name] = self._structured(nested, questions, sight, sha256, seed)
                continue
            question = _question_of_field(name, part, questions, answering)
            if question is None:
                matched[name] = _empty(part)
                continue
            utterance = self.say(question, sight, sha256, seed)
            text = filled(utterance, question.topic, self._wording(question, sha256, seed))
            matched[name] = _in_field_type(part, text, utterance, question, root)
        return matched


def _is_remark(name: str) -> bool:
    return name.lower() in ("confidence", "explanation", "reason", "reasoning", "evidence", "notes")


def _resolved(part: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(part, Mapping):
        return {}
    reference = part.get("$ref")
    if isinstance(reference, str):
        definition = root.get("$defs", {}).get(reference.rsplit("/", 1)[-1])
        return definition if isinstance(definition, Mapping) else {}
    for choices in (part.get("anyOf"), part.get("oneOf")):
        if isinstance(choices, list):
            non_null = [choice for choice in choices if isinstance(choice, Mapping) and choice.get("type") != "null"]
            words = [word for choice in non_null[1:] for word in choice.get("enum", ())]
            more = {
                "description": part.get("description", ""),
                "nullable": len(non_null) < len(choices),
                "words": words,
            }
            return {**_resolved(non_null[0], root), **more} if non_null else {}
    return part


def _question_of_field(
    name: str, part: Mapping[str, Any], questions: Sequence[PromptQuestion], answering: Sequence[str]
) -> PromptQuestion | None:
    """Return the question of a field: by its key, by its description, by its position, by its name."""
    if _is_remark(name):
        return None
    if len(questions) == 1:
        return questions[0]
    for question in questions:
        if question.key and question.key.lower() == name.lower():
            return question
    description = part.get("description")
    if isinstance(description, str) and (topic := topic_of(description)) is not None:
        return next(
            (question_asked for question_asked in questions if question_asked.topic == topic),
            PromptQuestion(name, description, topic),
        )
    if len(answering) == len(questions):
        return questions[answering.index(name)]
    topic = topic_of(name.replace("_", " "))
    return None if topic is None else PromptQuestion(name, name, topic)


def _in_field_type(
    part: Mapping[str, Any], text: str, utterance: Utterance, question: PromptQuestion, root: Mapping[str, Any]
) -> Any:
    """Return an answer in a field's type; if it does not apply, null or an empty list where allowed."""
    kind, choices = part.get("type"), part.get("enum")
    nothing = not utterance.refused and text.strip().lower() in ("none", "no", "not relevant")
    instead = "refused" if utterance.refused else text.strip().lower()
    if instead in part.get("words", ()):
        return instead
    if isinstance(choices, list):
        return next((choice for choice in choices if str(choice).lower() == text.lower()), choices[-1])
    if kind == "array":
        items = _resolved(part.get("items"), root)
        if items.get("type") == "object":
            named = ("id", "name", "question")
            return [
                {
                    property_name: question.key if property_name.lower() in named else text
                    for property_name in items.get("properties", {})
                }
            ]
        return [] if nothing else [text] if utterance.refused else list(utterance.words)
    if kind in ("integer", "number"):
        number = number_of(text)
        return number if number is not None else None if part.get("nullable") else 0
    if kind == "boolean":
        return text.lower().startswith("yes")
    return None if nothing and part.get("nullable") else text


def _empty(part: Mapping[str, Any]) -> Any:
    kinds: dict[str, Any] = {"integer": 0, "number": 0.5, "boolean": False, "array": [], "null": None}
    return kinds.get(str(part.get("type")), "")

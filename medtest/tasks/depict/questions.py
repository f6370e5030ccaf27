"""Questions that a prompt asks about its picture, and which of them depend on others.

After DSG (J. Cho et al., Davidsonian Scene Graph, ICLR 2024, section 3): whether a thing is red, there twice, or on
another thing is a question only if the things are there. DSG's published scores count such questions as wrong if the
thing is missing; here they are not asked, so that one missing thing is one error. ACTesting's figures
(:mod:`medtest.tasks.depict.rules`) know no dependencies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import fmean
from typing import Final

from medtest.tasks.depict.rules import ATTRIBUTES, COUNTS, ENTITIES, RELATIONS
from medtest.tasks.depict.views import Said, SceneLook, shown_with

ABSENT: Final = "absent"
QUESTION_KINDS: Final = (ENTITIES, ATTRIBUTES, COUNTS, RELATIONS, ABSENT)
"""Kinds of questions; ``absent`` asks whether what the prompt excludes is not there."""

LEAST_CHANCE: Final = 1e-6
"""Smallest probability in a geometric mean: beliefs have six digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureQuestion:
    """A question about one picture.

    Attributes:
        kind: One of :data:`QUESTION_KINDS`.
        names: Names: a class, an attribute with its class, or a triple.
        right: Whether the picture shows it; None if the question is not asked or cannot be told.
        depends_on: The missing class because of which it is not asked; "" for none.
        soft: Probability, by the reader's model, of the answer that is right; None if it tells none, or ``right`` is
            None.
        neither: Probability of neither yes nor no.
    """

    kind: str
    names: tuple[str, ...]
    right: bool | None
    depends_on: str = ""
    soft: float | None = None
    neither: float = 0.0


def questions_about(after: SceneLook, prompt: Said) -> Iterator[PictureQuestion]:
    """Yield all questions of a prompt about its picture.

    Args:
        after: Scene of the picture.
        prompt: Content of the prompt.
    """
    tells = after.tells
    for name in prompt.names:
        yield _question(ENTITIES, (name,), (), after, is_detectable=tells.names(name), right=after.names[name] > 0)
    for (name, attribute), count in prompt.attributes.items():
        detected, required = shown_with(after, prompt, name, attribute), min(count, after.names[name])
        is_detectable = tells.describes(attribute, name)
        yield _question(
            ATTRIBUTES, (attribute, name), (name,), after, is_detectable=is_detectable, right=detected >= required
        )
    for name in sorted(prompt.stated):
        right = after.names[name] == prompt.names[name]
        stated = str(prompt.names[name])
        yield _question(COUNTS, (name,), (name,), after, is_detectable=tells.counts, right=right, stated=stated)
    for triple in prompt.triples:
        ends = (triple[0], triple[2])
        yield _question(
            RELATIONS, triple, ends, after, is_detectable=tells.relates(triple), right=triple in after.triples
        )
    for name in sorted(prompt.absent):
        yield _question(ABSENT, (name,), (), after, is_detectable=tells.names(name), right=not after.names[name])


def soft_score(questions: Iterable[PictureQuestion], mean: str) -> float | None:
    """Return the mean probability of the right answers to a picture's questions; None without any.

    Args:
        questions: The questions.
        mean: ``mean`` or ``geometric``.
    """
    soft = [question.soft for question in questions if question.soft is not None]
    if not soft:
        return None
    return fmean(soft) if mean == "mean" else exp(fmean(log(max(chance, LEAST_CHANCE)) for chance in soft))


def _question(
    kind: str,
    names: tuple[str, ...],
    needs: Sequence[str],
    after: SceneLook,
    *,
    is_detectable: bool,
    right: bool,
    stated: str = "",
) -> PictureQuestion:
    missing = next((name for name in needs if after.tells.names(name) and not after.names[name]), "")
    answerable = is_detectable and not missing and all(after.tells.names(name) for name in needs)
    question = PictureQuestion(kind=kind, names=names, right=right if answerable else None, depends_on=missing)
    key = (ENTITIES if kind == ABSENT else kind, *names, *([stated] if stated else []))
    if not answerable or key not in after.beliefs:
        return question
    yes, neither = after.beliefs[key]
    return replace(question, soft=1.0 - yes if kind == ABSENT else yes, neither=neither)

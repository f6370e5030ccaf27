"""Options for creating a study, all checked at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medtest.core.errors import UserMistakes, nearest_name, typed_error, typed_mistake
from medtest.study.questions import StudyKind

Share = Annotated[float, Field(ge=0, le=0.5)]


class StudyOptions(BaseModel):
    """Options of ``medtest study make``, typed as ``key=value``.

    Attributes:
        kind: pairs (source and follow-up, two questions), artefacts (one frame, nine boxes) or blind (one frame, real
            or made; ``blind=true`` chooses it).
        per_relation: Follow-ups drawn of each relation; by default 100 for pairs and none for artefacts. In a blind
            study frames of each relation, 10 by default, half of them real.
        frames: Source frames drawn in a study of artefacts.
        annotators: Number of annotators, each with a link.
        raters: Number of annotators who see each item; all by default.
        repeat: Share of an annotator's items that are repeated, to measure self-agreement.
        catch: Share of hidden catch items.
        training: Items of the training round; 0 leaves it out.
        draw: Seed of the draw and the orders; the suite's own by default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: StudyKind = StudyKind.PAIRS
    per_relation: Annotated[int, Field(ge=0, le=100_000)] | None = None
    frames: Annotated[int, Field(ge=0, le=1_000_000)] = 200
    annotators: Annotated[int, Field(ge=1, le=1000)] = 3
    raters: Annotated[int, Field(ge=1, le=1000)] | None = None
    repeat: Share = 0.1
    catch: Share = 0.05
    training: Annotated[int, Field(ge=0, le=20)] = 4
    draw: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None

    @property
    def drawn(self) -> int:
        """Number of follow-ups of each relation."""
        if self.per_relation is not None:
            return self.per_relation
        return 100 if self.kind.compares else 0

    @property
    def real(self) -> int:
        """Number of real frames beside each relation's follow-ups in a blind study."""
        return self.drawn // 2 if self.kind.is_blind else 0

    @property
    def seen_by(self) -> int:
        """Number of annotators who see an item."""
        return self.annotators if self.raters is None else min(self.raters, self.annotators)


BLIND = "blind"
DECK: Mapping[str, str] = {"kind": StudyKind.BLIND.value, "per_relation": "10", "catch": "0", "training": "0"}
"""Options of ``blind=true``, the ready deck. A training round would teach how made frames look."""

KEYS: tuple[str, ...] = (*StudyOptions.model_fields, BLIND)
REVIEW_KEYS: tuple[str, ...] = ("annotators", "raters", "repeat", "draw")
"""Options of a second look, which draws no follow-ups and has neither training nor catch items."""


def study_options(typed: Mapping[str, str]) -> StudyOptions:
    """Return the typed options.

    Raises:
        UserMistakes: Values are invalid; all are reported at once.
    """
    blind = typed.get(BLIND, "false").lower()
    if blind not in ("true", "false"):
        raise typed_error(BLIND, blind, "true, false")
    typed = {key: text for key, text in typed.items() if key != BLIND}
    if blind == "true" or typed.get("kind") == StudyKind.BLIND:
        if typed.get("kind", StudyKind.BLIND) != StudyKind.BLIND:
            fix = "leave one of them out"
            raise typed_error("kind", f"{typed['kind']} beside blind=true", BLIND, fix)
        typed = {**DECK, **typed}
    try:
        options = StudyOptions.model_validate(typed)
    except ValidationError as error:
        mistakes = []
        for detail in error.errors(include_url=False):
            key = str(detail["loc"][0])
            allowed = ", ".join(StudyKind) if key == "kind" else str(detail["msg"]).removeprefix("Input should be ")
            nearest = nearest_name(typed.get(key, ""), list(StudyKind)) if key == "kind" else None
            mistakes.append(typed_mistake(key, typed.get(key, ""), allowed, nearest=nearest))
        raise UserMistakes(dict.fromkeys(mistakes)) from error
    if options.kind.is_blind and (options.catch or options.training):
        key = "catch" if options.catch else "training"
        allowed = "0 in a blind study, whose items all have a known answer"
        raise typed_error(key, typed[key], allowed)
    if options.raters is not None and options.raters > options.annotators:
        allowed = f"1 to {options.annotators}, as many as there are annotators"
        raise typed_error("raters", str(options.raters), allowed)
    return options


def review_options(tokens: Sequence[str]) -> tuple[StudyOptions, str]:
    """Return the typed options of a second look, and the target folder or "".

    Args:
        tokens: ``key=value``.

    Raises:
        UserMistakes: A key is not allowed, or a value is invalid.
    """
    allowed = (*REVIEW_KEYS, "to")
    values = dict(token.partition("=")[::2] for token in tokens)
    wrong = [
        typed_mistake(key, values[key], f"with --review: {', '.join(allowed)}", nearest=nearest_name(key, allowed))
        for key in values
        if key not in allowed
    ]
    if wrong:
        raise UserMistakes(wrong)
    to = values.pop("to", "")
    return study_options({"annotators": "1", "repeat": "0", "training": "0", "catch": "0", **values}), to

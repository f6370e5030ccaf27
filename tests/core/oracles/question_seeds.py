"""A seed with one of the 18 questions and an empty picture, for tests of judging."""

from __future__ import annotations

import numpy as np

from medtest.core.cases import Ask, PreparedSeed, SeedRef
from medtest.language.questions.questions import by_name

BLANK = np.zeros((9, 9), np.bool_)


def ask_of(name: str, *truth: str) -> Ask:
    """Return an official question by its short name, with its true answers; none for an unlabelled image."""
    question = by_name(name)
    assert question is not None
    return Ask(item=name, text=question.text, kind=question.kind.value, id=question.id, truth=truth or None)


def seed_of(ask: Ask) -> PreparedSeed:
    """Return a seed with this question."""
    return PreparedSeed(
        ref=SeedRef(dataset="d", seed_id="s", items=(ask.item,)),
        image=np.zeros((9, 9, 3), np.uint8),
        mask=None,
        original_mask=None,
        frame=BLANK,
        grey=BLANK.astype(np.float32),
        kind="answer",
        asks=(ask,),
    )

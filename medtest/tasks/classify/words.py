"""Captions of a classified picture: expected and answered labels."""

from __future__ import annotations

from medtest.core.cases import LabelOutput, PreparedSeed
from medtest.core.tasks.base import CaseAnswer

FLIPS = "flips"
"""Measure of flips between frames, by which systems are compared."""
MOST = 3
"""Largest number of labels written out."""


def label_words(answer: CaseAnswer) -> str:
    """Return the labels of an answer with their probabilities, or the reason why there is none."""
    output = answer.output
    if not isinstance(output, LabelOutput):
        return answer.reason or "not asked"
    if not output.labels:
        return "answer: none of the findings"
    probabilities = (
        dict(zip(output.classes.names, output.probabilities, strict=True)) if output.probabilities is not None else {}
    )
    labels = sorted(output.labels, key=lambda name: -float(probabilities.get(name, 0.0)))
    words = [f"{name} {float(probabilities[name]):.2f}" if name in probabilities else name for name in labels[:MOST]]
    return f"answer: {', '.join(words)}" + (f" and {len(labels) - MOST} more" if len(labels) > MOST else "")


def expected_words(seed: PreparedSeed) -> str:
    """Return the expected labels of a seed."""
    if seed.labels is None:
        return "expected: not known"
    suffix = f" and {len(seed.labels) - MOST} more" if len(seed.labels) > MOST else ""
    return f"expected: {', '.join(seed.labels[:MOST]) or 'none of the findings'}{suffix}"

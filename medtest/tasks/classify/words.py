"""What stands below a picture whose label was asked for: what was expected, and what was answered."""

from __future__ import annotations

from medtest.core.cases import LabelOutput, PreparedSeed
from medtest.core.tasks.base import CaseAnswer

FLIPS = "flips"
"""The measure of flips from frame to frame, in which systems are compared."""
MOST = 3
"""At most this many of several labels are written out."""


def label_words(answer: CaseAnswer) -> str:
    """Return the labels of an answer with their probabilities, or why there is none."""
    output = answer.output
    if not isinstance(output, LabelOutput):
        return answer.reason or "not asked"
    if not output.labels:
        return "answer: none of the findings"
    given = (
        dict(zip(output.classes.names, output.probabilities, strict=True)) if output.probabilities is not None else {}
    )
    named = sorted(output.labels, key=lambda name: -float(given.get(name, 0.0)))
    words = [f"{name} {float(given[name]):.2f}" if name in given else name for name in named[:MOST]]
    return f"answer: {', '.join(words)}" + (f" and {len(named) - MOST} more" if len(named) > MOST else "")


def expected_words(seed: PreparedSeed) -> str:
    """Return what is expected of a seed."""
    if seed.labels is None:
        return "expected: not known"
    more = f" and {len(seed.labels) - MOST} more" if len(seed.labels) > MOST else ""
    return f"expected: {', '.join(seed.labels[:MOST]) or 'none of the findings'}{more}"

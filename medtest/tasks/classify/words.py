"""Captions of a classified picture: expected and answered labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from medtest.core.cases import LabelOutput, PreparedSeed
from medtest.core.records import text_in
from medtest.core.tasks.base import CaseAnswer
from medtest.tasks.classify.oracle import JOINT

FLIPS = "flips"
"""Measure of flips between frames, by which systems are compared."""
MOST = 3
"""Largest number of labels written out."""
MOST_BARS = 8
"""Largest number of classes with probabilities in the report's browser."""


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


def browsed_labels(record: Mapping[str, Any], source: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return labels and probabilities of a case for the report's browser (:meth:`TaskDrawing.browsed`).

    Args:
        record: Record of the follow-up, with the texts of the oracle of labels.
        source: Record of the source; None if unknown.
    """
    columns = {"source": "source_label", "follow-up": "label", "expected": "expected"}
    texts = {name: record.get(column) for name, column in columns.items()}
    words = [[name, str(text) or "none of the findings"] for name, text in texts.items() if text is not None]
    before, after = (_probabilities(one) for one in (source or {}, record))
    expected = str(record.get("expected") or "").split(JOINT)
    largest = sorted({**before, **after}, key=lambda name: -max(before.get(name, 0.0), after.get(name, 0.0)))
    bars = [[name, before.get(name), after.get(name), name in expected] for name in largest[:MOST_BARS]]
    short = " → ".join(text for name, text in words if name != "expected")
    return {"words": words, "bars": bars, "short": short}


def _probabilities(record: Mapping[str, Any]) -> dict[str, float]:
    values = json.loads(text_in(record, "probabilities") or "{}")
    return {str(name): round(float(value), 4) for name, value in values.items()}

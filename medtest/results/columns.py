"""The columns of the tables, in their order; what several tables share stands here once."""

from __future__ import annotations

from typing import TypeAlias

Columns: TypeAlias = tuple[str, ...]

CRITERION: Columns = ("score", "threshold", "against")
"""When a case counts as a violation."""
INTERVAL: Columns = ("ci_low", "ci_high")
COUNTS: Columns = ("cases", "violations")
RATE: Columns = ("efr_percent", *INTERVAL, "ci_method")

EFR: Columns = (
    "dataset",
    "relation",
    "group",
    "severity",
    *CRITERION,
    *COUNTS,
    *RATE,
    "generated",
    "efr_generated_percent",
    "errors",
    "skipped",
    "source_failed",
)
"""``tables/efr.csv``: the contract of the results."""

STRATA: Columns = ("stratum", "value", "dataset", "relation", *CRITERION, *COUNTS, *RATE)
"""``tables/strata.csv``."""

SEVERITY: Columns = (
    "dataset",
    "relation",
    "group",
    "severity",
    "scale",
    "score",
    "against",
    "cases",
    "mean",
    *INTERVAL,
    "source_mean",
)
"""``tables/severity.csv``."""

FACTORS: Columns = ("factor", "unit", "quartile", "from", "to", *CRITERION, "cases", "clusters", "violations", *RATE)
"""``tables/factors.csv``."""

FACTOR_MODEL: Columns = ("term", "kind", "unit", "odds_ratio", *INTERVAL, "p_value", *COUNTS, "clusters", "note")
"""``tables/factors_model.csv``."""

FLIPS: Columns = (
    "dataset",
    "relation",
    "severity",
    "rule",
    "frames",
    "sequences",
    "fp",
    *INTERVAL,
    "rfp",
    "errors",
    "skipped",
)
"""``tables/flip_probability.csv``."""

FLIP_FRAMES: Columns = (
    "dataset",
    "relation",
    "severity",
    "frame",
    "rule",
    "comparisons",
    "fp",
    *INTERVAL,
    "accuracy",
)
"""``tables/flip_frames.csv``."""

MEASURES: Columns = ("accuracy", "kappa", "f1", "label_share", "auroc", "fall")
"""How good a classifier is; each with its interval."""

CLASSIFICATION: Columns = (
    "dataset",
    "relation",
    "group",
    "severity",
    "cases",
    *(f"{measure}{end}" for measure in MEASURES for end in ("", "_low", "_high")),
    "became_wrong",
    "became_right",
    "p_mcnemar",
    "p_holm",
    "efr_source_percent",
    "efr_truth_percent",
    "errors",
    "skipped",
)
"""``tables/classification.csv``."""

CLASSES: Columns = (
    "dataset",
    "relation",
    "class",
    "cases",
    "positives",
    "answered_positive",
    "true_positives",
    "recall",
    "recall_low",
    "recall_high",
    "precision",
    "auroc",
    "auroc_low",
    "auroc_high",
)
"""``tables/classes.csv``."""

CONFUSION: Columns = ("dataset", "relation", "expected", "answered", "cases")
"""``tables/confusion.csv``."""

CORRUPTION_ERROR: Columns = (
    "dataset",
    "relation",
    "severities",
    "cases",
    "error",
    "error_low",
    "error_high",
    "source_error",
    "reference_error",
    "ce",
    "relative_ce",
)
"""``tables/corruption_error.csv``."""

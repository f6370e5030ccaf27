"""Record schema: one row per executed case, with columns that other tools may rely on.

The fixed columns come first, then the oracle's score columns (``dice``, ``source_dice``, ``self_dice`` …) and texts
(``label``, ``expected`` …), then columns for later tables (``factor_*``). All results are pure functions of these rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from medtest.core.address import address_text

Row: TypeAlias = dict[str, object]

FIXED_COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("suite", pa.string()),
    ("suite_version", pa.string()),
    ("system", pa.string()),
    ("dataset", pa.string()),
    ("seed_id", pa.string()),
    ("cluster", pa.string()),
    ("item", pa.string()),
    ("relation", pa.string()),
    ("group", pa.string()),
    ("severity", pa.int16()),
    ("scale", pa.float64()),
    ("frame", pa.int32()),
    ("repeat", pa.int32()),
    ("address", pa.string()),
    ("params", pa.string()),
    ("source_sha256", pa.string()),
    ("followup_sha256", pa.string()),
    ("answer_sha256", pa.string()),
    ("verdict", pa.string()),
    ("reason_code", pa.string()),
    ("reason", pa.string()),
    ("oracle_revision", pa.int32()),
    ("elapsed_ms", pa.float64()),
)
"""Name and Arrow type of the columns of every record, in order."""

KEY_COLUMNS: tuple[str, ...] = ("dataset", "seed_id", "relation", "severity", "frame", "repeat", "item")
"""Columns that identify a case within one system's folder."""

ADDRESS = "address"
"""The key as one text, as printed in reports and accepted by ``medtest replay``."""

REVISION = "oracle_revision"
"""Revision of the oracle's class that judged the record; 0 if a score is missing that the oracle now provides."""

ANSWER = "answer_sha256"
"""SHA-256 of the answer kept in the run's folder (:mod:`medtest.runner.records.answers`); "" if none is kept."""

UNEQUAL_COLUMNS: tuple[str, ...] = ("elapsed_ms", "seconds", "attempts")
"""Columns that may differ between two runs with equal records: durations of the case and its call, and the number of
calls.
"""

PICTURES = "pictures"
"""Subfolder of a system's run that keeps pictures of a text-to-image system, named by the SHA-256 of their pixels."""

SIMULATED = "-simulated"
"""Suffix of the names of systems that simulate a product: their results are labelled as simulated and never share a
table with real ones.
"""

SEED_FACTORS: tuple[str, ...] = (
    "factor_polyp_area",
    "factor_polyp_count",
    "factor_polyp_distance",
    "factor_brightness",
    "factor_contrast",
    "factor_visible_area",
)
"""Factor columns of a seed.

Area as fraction of the field, number of lesions, distance of the lesion's centroid from the field's centre in field
radii, mean and standard deviation of grey levels (0–255) in the field, visible fraction of the image.
"""

LABEL_FACTORS: tuple[str, ...] = (
    "factor_brightness",
    "factor_contrast",
    "factor_sharpness",
    "factor_salient_area",
    "factor_lesion_area",
    "factor_visible_area",
)
"""Factor columns of seeds that expect a label.

Mean and standard deviation of grey levels (0–255) in the field, variance of their Laplacian (low if the image is
blurred), fractions of the field that are salient and that are lesion (null without a mask), visible fraction of the
image.
"""

ANSWER_FACTORS: tuple[str, ...] = LABEL_FACTORS
"""Factor columns of seeds that ask questions; the lesion is the region that must not be covered."""

CASE_FACTORS: tuple[str, ...] = ("factor_object_area", "factor_lesion_distance")
"""Factor columns of the follow-up: object area as fraction of the field, distance from it to the nearest lesion pixel
in pixels; null without an object or a lesion.
"""

VISIBILITY_COLUMNS: tuple[str, ...] = ("visibility", "source_visibility", "scale_applied")
"""Columns on what can still be seen of a lesion: its visibility in this image and in the source
(:mod:`medtest.preparation.visibility`), null where no mask is expected; the scale that was applied, where it was weaker
than the severity's own ``scale``.
"""

CRAFTING_COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("crafted_on", pa.string()),
    ("linf", pa.float64()),
    ("l2", pa.float64()),
    ("ssim", pa.float64()),
    ("loss_before", pa.float64()),
    ("loss_after", pa.float64()),
    ("zero_gradient", pa.float64()),
    ("float_label", pa.string()),
    ("queries", pa.float64()),
    ("attack_reference", pa.string()),
    ("smallest_epsilon", pa.float64()),
    ("found_by", pa.string()),
    ("attack_note", pa.string()),
    ("probe_gap", pa.float64()),
    ("repeat_gap", pa.float64()),
)
"""Additional columns of suites with a relation that needs a system.

The system on which a follow-up was crafted; its distances to the source (levels of 255 and structural similarity; for
every follow-up); the values of :class:`medtest.core.cases.Crafting`. On source cases ``probe_gap``, the largest
difference between the probabilities of the system's probe and of its answer, and ``repeat_gap``, the same between its
answer and a repeated one.
"""


REMOVED, KEPT, CHANCE = "removed", "kept", "kept_by_chance"
CONTROL_COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    (REMOVED, pa.string()),
    (KEPT, pa.float64()),
    (CHANCE, pa.float64()),
)
"""Additional columns of suites with a control (:mod:`medtest.core.oracles.controls`).

What was removed, the share of the source's answer that is kept, and the same of the expected answers of both cases if
another case is shown.
"""


SEARCH_COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("search", pa.string()),
    ("queries", pa.float64()),
    ("crafted_on", pa.string()),
)
"""Additional columns of suites with a search; two of them are also in :data:`CRAFTING_COLUMNS`.

For a query of a search: its kind (:data:`medtest.relations.calibration.searching.queries.QUERIES`), its number within
the search from 1, and the system whose answers chose it; null for every other case.
"""


def made_columns(*, crafts: bool, searches: bool) -> tuple[tuple[str, pa.DataType], ...]:
    """Return the columns on how follow-ups were made on a system."""
    crafting, searching = (CRAFTING_COLUMNS if crafts else ()), (SEARCH_COLUMNS if searches else ())
    return tuple({**dict(crafting), **dict(searching)}.items())


def addresses(columns: Mapping[str, Iterable[Any]]) -> list[str]:
    """Return the addresses of records.

    Args:
        columns: The key columns, with ids as the records show them.
    """
    return [address_text(*key) for key in zip(*(columns[name] for name in KEY_COLUMNS), strict=True)]


def is_simulated(system: str) -> bool:
    """Return True if a system's name in records is that of a simulation."""
    return system.endswith(SIMULATED)


def schema(
    scores: tuple[str, ...],
    self_scores: tuple[str, ...],
    strata: tuple[str, ...] = (),
    *,
    texts: tuple[str, ...] = (),
    measures: tuple[str, ...] = (),
    factors: tuple[str, ...] = SEED_FACTORS,
    crafts: bool = False,
    controls: bool = False,
    searches: bool = False,
) -> pa.Schema:
    """Return the Arrow schema of records with these score columns (float64) and texts, all nullable.

    Args:
        scores: The oracle's scores; each has a ``source_`` column beside it.
        self_scores: Scores that also compare with the answer to the source.
        strata: Metadata columns that stratify tables.
        texts: The oracle's text columns.
        measures: The oracle's number columns other than scores.
        factors: Factor columns that belong to the seed.
        crafts: True to include :data:`CRAFTING_COLUMNS`, for suites with a relation that needs a system.
        controls: True to include :data:`CONTROL_COLUMNS`, for suites with a control.
        searches: True to include :data:`SEARCH_COLUMNS`, for suites with a search.
    """
    names = [*scores, *(f"source_{s}" for s in scores), *(f"self_{s}" for s in self_scores)]
    fields = [pa.field(name, kind) for name, kind in FIXED_COLUMNS]
    fields += [pa.field(name, pa.float64()) for name in names]
    fields += [pa.field(name, pa.string()) for name in texts]
    fields += [pa.field(name, pa.float64()) for name in measures]
    fields += [pa.field(name, kind) for name, kind in (CONTROL_COLUMNS if controls else ())]
    fields += [pa.field(name, pa.float64()) for name in (*factors, *CASE_FACTORS, *VISIBILITY_COLUMNS)]
    fields += [pa.field(name, kind) for name, kind in made_columns(crafts=crafts, searches=searches)]
    fields += [pa.field(f"stratum_{name}", pa.string()) for name in strata]
    return pa.schema(fields)


def text_in(record: Mapping[str, Any], name: str) -> str:
    """Return a record's text; "" if it has none."""
    return str(record.get(name) or "")

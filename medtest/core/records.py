"""The record: one row per executed case, the columns that other tools may rely on, and how rows are stored.

The fixed columns stand first, then the oracle's score columns (``dice``, ``source_dice``, ``self_dice`` …) and texts
(``label``, ``expected`` …), then what later tables need (``factor_*``). Everything a user ever sees is a pure function
of these rows.
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
    ("reason", pa.string()),
    ("oracle_revision", pa.int32()),
    ("elapsed_ms", pa.float64()),
)
"""Name and Arrow type of the columns every record has, in order."""

KEY_COLUMNS: tuple[str, ...] = ("dataset", "seed_id", "relation", "severity", "frame", "repeat", "item")
"""What identifies a case within one system's folder."""

ADDRESS = "address"
"""The same in one text, as reports print it and ``medtest replay`` takes it; records of the version before lack it."""

REVISION = "oracle_revision"
"""The revision of the oracle's class that judged the record; 0 where a score is missing that the oracle gives since."""

ANSWER = "answer_sha256"
"""SHA-256 of the answer that the run's folder keeps (:mod:`medtest.runner.records.answers`); "" where it keeps none."""

UNEQUAL_COLUMNS: tuple[str, ...] = ("elapsed_ms", "seconds", "attempts")
"""Columns that may differ between two runs whose records are called equal: how long a case and its call took, and how
often the call was sent."""

SOURCE_FAILED = "source case failed"
"""How the reason of a follow-up begins whose source case is an ERROR. Such a follow-up is SKIP and not ERROR, for the
system is blamed once, at the source; ``source_failed`` of the tables and the runner's error percentage count it, and
a resumed run does it again together with its source."""

PICTURES = "pictures"
"""Folder of a system's run that keeps what a text-to-image system drew, by the SHA-256 of its pixels."""

SIMULATED = "-simulated"
"""How the names of systems end that simulate a product: what is made with them says so, and shares no table with
anything real."""

NO_PREDICTION = "no prediction"
"""How the reason of a SKIP begins where the system has no answer for the case, or none for its source."""

SEED_FACTORS: tuple[str, ...] = (
    "factor_polyp_area",
    "factor_polyp_count",
    "factor_polyp_distance",
    "factor_brightness",
    "factor_contrast",
    "factor_visible_area",
)
"""Factor columns that belong to the seed: area as fraction of the field, lesions counted, distance of the lesion's
centroid from the field's centre in field radii, mean and standard deviation of grey levels (0–255) in the field,
visible fraction of the image."""

LABEL_FACTORS: tuple[str, ...] = (
    "factor_brightness",
    "factor_contrast",
    "factor_sharpness",
    "factor_salient_area",
    "factor_lesion_area",
    "factor_visible_area",
)
"""The same of seeds that expect a label: mean and standard deviation of grey levels (0–255) in the field, variance of
their Laplacian (low where the image is blurred), fraction of the field that stands out, that is lesion (null without a
mask), visible fraction of the image."""

ANSWER_FACTORS: tuple[str, ...] = LABEL_FACTORS
"""The same of seeds that ask questions; the lesion is what the seed says must not be covered."""

CASE_FACTORS: tuple[str, ...] = ("factor_object_area", "factor_lesion_distance")
"""Factor columns that belong to the follow-up: object area as fraction of the field, distance from it to the nearest
lesion pixel in pixels; null where there is no object or no lesion."""


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
"""Columns of suites that have a relation which needs a system, and of no others: on which system a follow-up was
crafted; its distances to the source (levels of 255 and structural similarity; of every follow-up); what
:class:`medtest.core.crafting.Crafting` tells. On source cases ``probe_gap``, by how much the probabilities of the
system's probe differ from its answer's at most, and ``repeat_gap``, the same between its answer and another asking."""


def addresses(columns: Mapping[str, Iterable[Any]]) -> list[str]:
    """Return the addresses of records.

    Args:
        columns: The key columns, with ids as the records show them.
    """
    return [address_text(*key) for key in zip(*(columns[name] for name in KEY_COLUMNS), strict=True)]


def is_simulated(system: str) -> bool:
    """Say whether a system's name in records is that of a simulation."""
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
) -> pa.Schema:
    """Return the Arrow schema of records with these score columns (float64) and texts, all nullable.

    Args:
        scores: The oracle's scores; each has a ``source_`` column beside it.
        self_scores: Those that also compare with the answer to the source.
        strata: Metadata columns that stratify tables.
        texts: The oracle's text columns.
        measures: The oracle's number columns that are no scores.
        factors: Factor columns that belong to the seed.
        crafts: Whether any relation needs a system: :data:`CRAFTING_COLUMNS` are there.
    """
    names = [*scores, *(f"source_{s}" for s in scores), *(f"self_{s}" for s in self_scores)]
    fields = [pa.field(name, kind) for name, kind in FIXED_COLUMNS]
    fields += [pa.field(name, pa.float64()) for name in names]
    fields += [pa.field(name, pa.string()) for name in texts]
    fields += [pa.field(name, pa.float64()) for name in measures]
    fields += [pa.field(name, pa.float64()) for name in (*factors, *CASE_FACTORS)]
    fields += [pa.field(name, kind) for name, kind in (CRAFTING_COLUMNS if crafts else ())]
    fields += [pa.field(f"stratum_{name}", pa.string()) for name in strata]
    return pa.schema(fields)


def text_in(record: Mapping[str, Any], name: str) -> str:
    """Return a record's text; "" where it has none."""
    return str(record.get(name) or "")

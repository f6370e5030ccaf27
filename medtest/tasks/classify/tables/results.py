"""All tables of a classifier, made together from the records of one system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtest.core.cases import Classes
from medtest.results.columns import seeds_of
from medtest.results.cube.axes import Axes, axes
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables.attack_labels import attack_label_table
from medtest.tasks.classify.tables.cells import cases_of
from medtest.tasks.classify.tables.class_tables import class_table, confusion_table
from medtest.tasks.classify.tables.classification import classification_table
from medtest.tasks.classify.tables.corruption_error import corruption_error_table
from medtest.tasks.classify.tables.decisions import classes_of, has_labels
from medtest.tasks.classify.tables.films import FilmSequence, worst_sequences
from medtest.tasks.classify.tables.flips import flip_table, frame_table

if TYPE_CHECKING:
    import pandas as pd

_FIXED = ("flip_probability.csv",)
"""Tables whose columns are fixed: they do not say whether seeds are made images."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """What rates are relative to: the tables of another system on the same seeds and relations.

    Attributes:
        name: The system's name in its records.
        flips: Its flip probabilities.
        corruption_error: Its corruption errors.
    """

    name: str
    flips: pd.DataFrame
    corruption_error: pd.DataFrame


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelTables:
    """The tables of a classifier.

    Attributes:
        classes: What it can answer.
        classification: Accuracy and its kin by relation and severity.
        per_class: Recall, precision and AUROC of every class.
        confusion: Confusion matrices; empty where several labels may be true.
        flips: Flip probabilities of sequences; empty without any.
        flip_frames: The same frame by frame.
        corruption_error: Errors over levels; empty without any.
        attack_labels: Each label under attack; empty where one label alone is true, or nothing attacks.
        films: The sequences that flip most.
        reference: Name of the system that ``rfp`` and ``ce`` are relative to, or "".
        phantom: Whether any of the seeds are made images.
    """

    classes: Classes
    classification: pd.DataFrame
    per_class: pd.DataFrame
    confusion: pd.DataFrame
    flips: pd.DataFrame
    flip_frames: pd.DataFrame
    corruption_error: pd.DataFrame
    attack_labels: pd.DataFrame
    films: tuple[FilmSequence, ...] = ()
    reference: str = ""
    phantom: bool = False

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return every table by its file name."""
        named = {
            "classification.csv": self.classification,
            "classes.csv": self.per_class,
            "confusion.csv": self.confusion,
            "flip_probability.csv": self.flips,
            "flip_frames.csv": self.flip_frames,
            "corruption_error.csv": self.corruption_error,
            **({} if self.attack_labels.empty else {"attack_labels.csv": self.attack_labels}),
        }
        kind = seeds_of(phantom=self.phantom)
        return {name: frame if name in _FIXED else frame.assign(**kind) for name, frame in named.items()}


def label_tables(
    records: Records,
    place: Axes | None = None,
    *,
    reference: Reference | None = None,
    phantom: bool = False,
    thresholds: Sequence[float] = (0.5,),
) -> LabelTables | None:
    """Return the tables of a classifier, or None where the records are of another kind of system.

    Args:
        records: Records of one system.
        place: What :func:`medtest.results.cube.axes.axes` gave for these records; None makes it.
        reference: What ``rfp`` and ``ce`` are relative to.
        phantom: Whether any of the seeds are made images.
        thresholds: Where a probability of one of several labels becomes a yes, in the table on attacks.
    """
    if records.followups.empty or not has_labels(records):
        return None
    found = axes(records) if place is None else place
    cases = cases_of(records, found)
    return LabelTables(
        classes=classes_of(records),
        classification=classification_table(records, found, cases),
        per_class=class_table(records, found, cases),
        confusion=confusion_table(records, found, cases),
        flips=flip_table(records, found, reference=None if reference is None else reference.flips),
        flip_frames=frame_table(records, found),
        corruption_error=corruption_error_table(
            records, found, cases, reference=None if reference is None else reference.corruption_error
        ),
        attack_labels=attack_label_table(records, found, cases, thresholds),
        films=worst_sequences(records, found),
        reference="" if reference is None else reference.name,
        phantom=phantom,
    )


def reference_of(records: Records) -> Reference | None:
    """Return what other systems' rates can be relative to, or None where the records are of no classifier.

    Args:
        records: Records of the reference system.
    """
    if records.followups.empty or not has_labels(records):
        return None
    place = axes(records)
    return Reference(
        name=str(records.followups["system"].iloc[0]),
        flips=flip_table(records, place),
        corruption_error=corruption_error_table(records, place),
    )

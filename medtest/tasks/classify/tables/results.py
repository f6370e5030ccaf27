"""Tables of a classifier, built from the records of one system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medtest.core.cases import Classes
from medtest.core.deferred import pd
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

_FIXED = ("flip_probability.csv",)
"""Tables with fixed columns, which do not say whether seeds are phantoms."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """Reference of relative rates: the tables of another system on the same seeds and relations.

    Attributes:
        name: Name of the system in its records.
        flips: Its flip probabilities.
        corruption_error: Its corruption errors.
    """

    name: str
    flips: pd.DataFrame
    corruption_error: pd.DataFrame


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelTables:
    """Tables of a classifier.

    Attributes:
        classes: Classes of its answers.
        classification: Accuracy and related measures by relation and severity.
        per_class: Recall, precision and AUROC of every class.
        confusion: Confusion matrices; empty with several labels.
        flips: Flip probabilities of sequences; empty without any.
        flip_frames: Flip probabilities by frame.
        corruption_error: Errors over levels; empty without any.
        attack_labels: Labels under attack; empty for exclusive classes or without attacks.
        films: Sequences with most flips.
        reference: Name of the reference system of ``rfp`` and ``ce``, or "".
        phantom: True if any seeds are phantoms.
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
        tables = {
            "classification.csv": self.classification,
            "classes.csv": self.per_class,
            "confusion.csv": self.confusion,
            "flip_probability.csv": self.flips,
            "flip_frames.csv": self.flip_frames,
            "corruption_error.csv": self.corruption_error,
            **({} if self.attack_labels.empty else {"attack_labels.csv": self.attack_labels}),
        }
        kind = seeds_of(phantom=self.phantom)
        return {name: frame if name in _FIXED else frame.assign(**kind) for name, frame in tables.items()}


def label_tables(
    records: Records,
    place: Axes | None = None,
    *,
    reference: Reference | None = None,
    phantom: bool = False,
    thresholds: Sequence[float] = (0.5,),
) -> LabelTables | None:
    """Return the tables of a classifier, or None if the records are of another kind of system.

    Args:
        records: Records of one system.
        place: Axes of these records from :func:`medtest.results.cube.axes.axes`; None computes them.
        reference: Reference of ``rfp`` and ``ce``.
        phantom: True if any seeds are phantoms.
        thresholds: Probability thresholds for multi-label answers, in the table on attacks.
    """
    if records.followups.empty or not has_labels(records):
        return None
    cells = axes(records) if place is None else place
    cases = cases_of(records, cells)
    return LabelTables(
        classes=classes_of(records),
        classification=classification_table(records, cells, cases),
        per_class=class_table(records, cells, cases),
        confusion=confusion_table(records, cells, cases),
        flips=flip_table(records, cells, reference=None if reference is None else reference.flips),
        flip_frames=frame_table(records, cells),
        corruption_error=corruption_error_table(
            records, cells, cases, reference=None if reference is None else reference.corruption_error
        ),
        attack_labels=attack_label_table(records, cells, cases, thresholds),
        films=worst_sequences(records, cells),
        reference="" if reference is None else reference.name,
        phantom=phantom,
    )


def reference_of(records: Records) -> Reference | None:
    """Return the reference for rates of other systems, or None if the records are not of a classifier.

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

"""Task of classification: one label, or several, of a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Classes, LabelOutput, Output, PreparedSeed
from medtest.core.deferred import pd
from medtest.core.errors import BadOutput, MedtestError
from medtest.core.files.arrays import packed, unpacked
from medtest.core.tasks.base import (
    AskedSystem,
    Border,
    Case,
    CaseAnswer,
    Panels,
    Scoring,
    Storage,
    SystemInput,
    Task,
    TaskDrawing,
    TaskReport,
    TaskTables,
)
from medtest.core.tasks.border import CUT
from medtest.core.tasks.results import Graded, TaskResults
from medtest.preparation.factors import picture_factors
from medtest.systems.classification.answers import check_label, classes_misfit
from medtest.tasks.classify.words import FLIPS, browsed_labels, expected_words, label_words
from medtest.tasks.segment.kept import mask_arrays, mask_of


class LabelBorder(Border):
    """Checks of scores and labels, see :mod:`medtest.systems.classification.answers`."""

    def factors(self, seed: PreparedSeed) -> dict[str, float | None]:
        """Return light, sharpness, saliency, lesion size if known, visible area."""
        return picture_factors(seed)

    def check(self, raw: Any, shown: SystemInput, system: AskedSystem) -> LabelOutput:
        """Return the answer in the seeds' classes.

        Raises:
            BadOutput: It is invalid; :class:`medtest.core.errors.OtherClasses` if the number of classes differs.
        """
        if shown.classes is None:
            raise BadOutput("was asked for a label of a seed that has no classes")
        return check_label(
            raw, expected=shown.classes, own=system.classes, form=system.answer_form, shape=shown.image.shape[:2]
        )

    def misfit(self, own: Classes | None, requested: Classes) -> str:
        """Return the reason why a system's classes do not match the seeds', or ""; their order is ignored."""
        return classes_misfit(own, requested)


class LabelStorage(Storage):
    """Stored labels and probabilities."""

    def keep(self, output: Output, seed: PreparedSeed, *, maps: bool) -> bytes | None:
        """Return labels and probabilities, and the lesion's mask if the system gives one."""
        if not isinstance(output, LabelOutput):
            return None
        arrays = {} if output.mask is None else mask_arrays(output.mask, seed, maps=maps)
        if output.probabilities is not None:
            arrays["probabilities"] = output.probabilities
        return packed(arrays, {"labels": list(output.labels)})

    def restore(self, stored: bytes, seed: PreparedSeed, shown: SystemInput) -> LabelOutput:
        """Return the stored answer, in the seeds' classes.

        Raises:
            MedtestError: It is not an answer of this task, or has other classes.
        """
        arrays, words = unpacked(stored)
        probabilities = arrays.pop("probabilities", None)
        labels = tuple(str(name) for name in words.get("labels", ()))
        classes = shown.classes
        if classes is None or not set(labels) <= set(classes.names):
            raise MedtestError("a stored answer names a label that is none of the seeds' classes")
        if probabilities is not None and probabilities.shape != (len(classes.names),):
            raise MedtestError("a stored answer has another number of classes than the seeds")
        mask = mask_of(arrays) if arrays else None
        return LabelOutput(classes=classes, labels=labels, probabilities=probabilities, mask=mask)


class LabelScoring(Scoring):
    """Differences of probabilities, correctness of labels and flips."""

    def probability_gaps(self, probabilities: Output | NDArray[np.float64], answer: Output) -> NDArray[np.float64]:
        """Return the differences of the classes' probabilities, float64 C."""
        if not isinstance(answer, LabelOutput):
            raise TypeError(f"an answer of kind {answer.kind} has no classes")
        own, reference = (np.asarray(_shares(value), np.float64) for value in (probabilities, answer))
        if answer.probabilities is not None:
            return np.abs(own - reference)
        is_true = reference > CUT
        if answer.classes.multi:
            return np.where((own > CUT) != is_true, np.abs(own - CUT), 0)
        return np.where(is_true, own.max() - own, 0)

    def graded(self, records: Any, place: Any) -> Graded | None:
        """Return accuracy or, with several labels, right decisions; with AUROC."""
        from medtest.tasks.classify.tables.graded import graded

        return graded(records, place)

    def decided(self, records: Any, frame: pd.DataFrame) -> pd.DataFrame:
        """Return whether labels are right or, with several labels, the share of right decisions."""
        from medtest.tasks.classify.tables.graded import decided

        return decided(records, frame)

    def flip_probability(self, records: Any) -> float | None:
        """Return the flip probability over all types of perturbation, rule ``auto``."""
        from medtest.tasks.classify.tables.flips import overall

        return overall(records)


class LabelDrawing(TaskDrawing):
    """Pictures with labels as captions."""

    outlined: ClassVar[str] = "lesion"

    def region(self, output: Output) -> NDArray[np.bool_] | None:
        """Return the lesion's mask, if the system gives one."""
        return output.mask.mask if isinstance(output, LabelOutput) and output.mask is not None else None

    def expected_words(self, seed: PreparedSeed) -> str:
        """Return the expected labels."""
        return expected_words(seed)

    def answer_words(self, answer: CaseAnswer) -> str:
        """Return the labels with their probabilities."""
        return label_words(answer)

    def browsed(self, record: Mapping[str, Any], source: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the labels, and the classes with their probabilities, the largest first."""
        return browsed_labels(record, source)

    def panels(self, case: Case) -> Panels:
        """Return source and follow-up with the answers below each, and the expected labels below the source."""
        panels = super().panels(case)
        source, *others = panels.panels
        source = replace(source, name=f"{source.name}\n{self.expected_words(case.seed)}")
        return replace(panels, panels=[source, *others])


class LabelTaskTables(TaskTables):
    """Tables of accuracy, classes, flips and errors."""

    names: ClassVar[tuple[str, ...]] = (
        *("classification", "classes", "confusion"),
        *("flip_probability", "flip_frames", "corruption_error", "attack_labels"),
    )
    categories: ClassVar[tuple[str, ...]] = ("expected",)
    measures: ClassVar[Mapping[str, tuple[str, str]]] = {FLIPS: ("Flips from frame to frame, by type", "all types")}

    def results(self, records: Any, context: Any) -> TaskResults:
        """Return accuracy, classes, flips and errors; empty for records without answers."""
        from medtest.tasks.classify.results import LabelResults
        from medtest.tasks.classify.tables.results import label_tables

        tables = label_tables(
            records,
            context.place,
            reference=context.reference,
            phantom=context.phantom,
            thresholds=context.label_thresholds,
        )
        return TaskResults() if tables is None else LabelResults(tables)

    def reference(self, records: Any) -> Any:
        """Return the flips and errors as reference for other systems."""
        from medtest.tasks.classify.tables.results import reference_of

        return reference_of(records)

    def differences(self, sides: Mapping[str, Any], place: Any) -> Iterable[tuple[Any, Sequence[Any]]]:
        """Yield flips between frames, by type."""
        from medtest.tasks.classify.differences import flip_differences

        return flip_differences(sides, place)

    def before_after(self, before: Any, after: Any, order: Sequence[str], family: str) -> tuple[pd.DataFrame, int]:
        """Return accuracy and related measures before and after further training."""
        from medtest.tasks.classify.tables.before_after import pair, table_of

        labels = pair(before, after, order=order)
        return table_of(labels, family), labels.unpaired


class LabelReport(TaskReport):
    """Heat maps of several systems."""

    def side_by_side(self, systems: Sequence[tuple[str, TaskResults]]) -> Sequence[Mapping[str, Any]]:
        """Return the flip probabilities of all systems."""
        from medtest.tasks.classify.report.heat import system_heat
        from medtest.tasks.classify.results import LabelResults

        return system_heat([(name, result.tables) for name, result in systems if isinstance(result, LabelResults)])


class ClassifyTask(Task):
    """Systems answer with scores or labels."""

    name: ClassVar[str] = "label"
    output: ClassVar[type[Output]] = LabelOutput
    oracle: ClassVar[str] = "labels"
    folder: ClassVar[str] = "predictions"
    border: ClassVar[Border] = LabelBorder()
    storage: ClassVar[Storage] = LabelStorage()
    scoring: ClassVar[Scoring] = LabelScoring()
    drawing: ClassVar[TaskDrawing] = LabelDrawing()
    tables: ClassVar[TaskTables] = LabelTaskTables()
    report: ClassVar[TaskReport] = LabelReport(
        strip_words="Below each image: the system's answer; below the source also the expected answer."
    )


def _shares(answer: Any) -> Any:
    """Return the probabilities of an answer, 0 and 1 for labels without probabilities; other values unchanged."""
    if not isinstance(answer, LabelOutput):
        return answer
    return (
        [name in answer.labels for name in answer.classes.names]
        if answer.probabilities is None
        else answer.probabilities
    )

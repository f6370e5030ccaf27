"""Validation of a classifier's answers.

An answer has one of these forms, or is a :class:`~medtest.systems.base.LabelAnswer` of one of them and a mask:

* ``probabilities``: C floats in [0, 1], in the order of the system's classes. For exclusive classes they sum to 1
  (± 0.001).
* ``logits``: C finite floats; softmax (exclusive classes) or the logistic function (several labels) is applied here, in
  double precision.
* Either of these as an object of name and number, in any order.
* ``labels``: the index or the name of a class; with several labels, a list of them or C booleans.

Axes of length 1 at either end are dropped. The class with the largest score is the label; a tie for the largest score
is not a decision. With several labels, those above 0.5 are true.

Anything else (another length, NaN, an unknown name, a tie, an exception) is a fault of the system under test: the case
becomes an ERROR with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Classes, LabelOutput
from medtest.core.errors import BadOutput, OtherClasses, nearest_name
from medtest.core.tasks.border import CUT, SLACK, as_array, check_mask
from medtest.phantoms.classes import in_words_of, places
from medtest.systems.base import LabelAnswer

SUM_SLACK = 1e-3
"""Largest deviation of the sum of probabilities of exclusive classes from 1."""


def check_label(
    raw: Any, *, expected: Classes, own: Classes | None, form: str, shape: tuple[int, int] | None = None
) -> LabelOutput:
    """Return a system's raw answer as a classification in the seeds' classes.

    Args:
        raw: The answer, in a form described in the module's docstring.
        expected: Classes of the seeds.
        own: Classes of the system, in the order of its scores; None for those of the seeds.
        form: One of :data:`medtest.systems.base.ANSWER_FORMS`.
        shape: Height and width of the prepared image, for masks.

    Raises:
        BadOutput: It is not a valid answer; the message gives the reason.
    """
    scores, given_mask = (raw.scores, raw.mask) if isinstance(raw, LabelAnswer) else (raw, None)
    classes = expected if own is None else in_words_of(own, expected)
    if isinstance(scores, Mapping):
        classes = in_words_of(Classes(names=tuple(str(name) for name in scores), multi=expected.multi), expected)
        scores = [float(v) if isinstance(v, int | float) and not isinstance(v, bool) else v for v in scores.values()]
    misfit = classes_misfit(classes, expected)
    if misfit:
        raise BadOutput(misfit)
    mask = None if given_mask is None or shape is None else check_mask(given_mask, shape)
    if form == "labels":
        labels = expected.ordered(_named(scores, classes))
        return LabelOutput(classes=expected, labels=labels, mask=mask)
    values = _scores(scores, len(classes.names))[list(places(classes, expected))]
    labels, probabilities = _decided(values, expected, form)
    return LabelOutput(classes=expected, labels=labels, probabilities=probabilities, mask=mask)


def classes_misfit(own: Classes | None, expected: Classes) -> str:
    """Return the reason why a system's classes do not match the seeds', or "". Case is ignored.

    Exclusive classes must be the same; with several labels, the system may have more.
    """
    if own is None:
        return ""
    own = in_words_of(own, expected)
    if own.multi != expected.multi:
        exclusive, multiple = "exactly one is true", "several may be true"
        return (
            f"has classes of which {multiple if own.multi else exclusive}; "
            f"of the seeds' {multiple if expected.multi else exclusive}"
        )
    absent = [name for name in expected.names if name not in own.names]
    extra = [] if expected.multi else [name for name in own.names if name not in expected.names]
    if not absent and not extra:
        return ""
    parts = [f"does not know {', '.join(absent)}"] if absent else []
    parts += [f"knows {', '.join(extra)}, which the seeds do not have"] if extra else []
    return f"{' and '.join(parts)} (its classes: {_shown(own)}; the seeds': {_shown(expected)})"


def _shown(classes: Classes) -> str:
    return ", ".join(classes.names[:20]) + (" …" if len(classes.names) > 20 else "")


# --- scores -----------------------------------------------------------------------------------------------------


def _scores(raw: Any, count: int) -> NDArray[np.float64]:
    array = as_array(raw, f"{count} scores")
    flat = np.squeeze(array)
    flat = flat.reshape(1) if flat.ndim == 0 else flat
    if flat.shape != (count,):
        reason = f"gave shape {array.shape}; one score for each of {count} classes is expected"
        raise OtherClasses(reason, flat.size) if flat.ndim == 1 and flat.size else BadOutput(reason)
    if not np.issubdtype(flat.dtype, np.floating):
        raise BadOutput(f"gave dtype {array.dtype}; floats are expected (labels are another form of answer)")
    values = flat.astype(np.float64)
    if not np.isfinite(values).all():
        raise BadOutput("gave NaN" if np.isnan(values).any() else "gave an infinite value")
    return values


def _decided(values: NDArray[np.float64], classes: Classes, form: str) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    if form == "logits":
        # Ties are checked on the logits, because large ones may round to the same probability.
        probabilities = probabilities_of(values, multi=classes.multi)
        is_true = values > 0
    else:
        probabilities = _probabilities(values, exclusive=not classes.multi)
        is_true = probabilities > CUT
    if classes.multi:
        labels = tuple(name for name, yes in zip(classes.names, is_true, strict=True) if yes)
        return labels, probabilities.astype(np.float32)
    best = np.flatnonzero(values == values.max())
    if len(best) > 1:
        tied = ", ".join(classes.names[index] for index in best[:4])
        raise BadOutput(f"gave the same largest score to {len(best)} classes ({tied}): that is not a decision")
    return (classes.names[int(best[0])],), probabilities.astype(np.float32)


def _probabilities(values: NDArray[np.float64], *, exclusive: bool) -> NDArray[np.float64]:
    low, high = float(values.min()), float(values.max())
    if low < -SLACK or high > 1 + SLACK:
        raise BadOutput(
            f"gave values from {low:.4g} to {high:.4g}; probabilities in [0, 1] are expected (logits are another form)"
        )
    total = float(values.sum())
    if exclusive and abs(total - 1) > SUM_SLACK:
        raise BadOutput(f"gave probabilities that sum to {total:.6g}; exactly one class is true, so 1 is expected")
    return np.clip(values, 0.0, 1.0)


def probabilities_of(logits: NDArray[np.float64], *, multi: bool) -> NDArray[np.float64]:
    """Return the softmax of logits, or their logistic function if several classes may be true."""
    # exp of a number that is never positive cannot overflow
    powers: NDArray[np.float64] = np.exp(-np.abs(logits) if multi else logits - logits.max())
    return np.where(logits >= 0, 1.0, powers) / (1.0 + powers) if multi else powers / powers.sum()


# --- labels -----------------------------------------------------------------------------------------------------


def _named(raw: Any, classes: Classes) -> list[str]:
    """Return the names in an answer of form ``labels``."""
    if classes.multi:
        return _several(raw, classes)
    items = _items(raw)
    if len(items) != 1:
        raise BadOutput(f"gave {len(items)} labels where exactly one is expected")
    return [_name(items[0], classes)]


def _several(raw: Any, classes: Classes) -> list[str]:
    items = _items(raw)
    if items and all(isinstance(item, bool | np.bool_) for item in items):
        if len(items) != len(classes.names):
            raise BadOutput(f"gave {len(items)} booleans for {len(classes.names)} classes")
        return [name for name, yes in zip(classes.names, items, strict=True) if yes]
    return [_name(item, classes) for item in items]


def _items(raw: Any) -> Sequence[Any]:
    if isinstance(raw, str | int | np.integer):
        return [raw]
    if isinstance(raw, list | tuple | set | frozenset):
        return list(raw)
    array = np.asarray(as_array(raw, "a label"))
    return list(np.atleast_1d(np.squeeze(array)))


def _name(item: Any, classes: Classes) -> str:
    if isinstance(item, str):  # includes numpy.str_
        matches = [name for name in classes.names if name.casefold() == item.casefold()]
        if item not in classes.names and len(matches) == 1:
            return matches[0]
        if item not in classes.names:
            near = nearest_name(item, classes.names)
            hint = f" (did it mean {near}?)" if near else ""
            raise BadOutput(f"gave the label {item[:60]!r}{hint}, which is none of {_shown(classes)}")
        return str(item)
    if isinstance(item, bool | np.bool_) or not isinstance(item, int | np.integer):
        raise BadOutput(f"gave {type(item).__name__} where the index or the name of a class is expected")
    if not 0 <= int(item) < len(classes.names):
        raise BadOutput(f"gave the index {int(item)}; 0 to {len(classes.names) - 1} are classes")
    return classes.names[int(item)]

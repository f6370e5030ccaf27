"""Probes of systems, for relations that attack a system and for analyses of its internals.

A probe covers everything between the pixels of a prepared image and the logits of the seeds' classes. For a torch
network the path is differentiable, through the stages of :class:`medtest.systems.pytorch.torch_system.TorchSystem`; the
official resize of 8-bit pixels is imitated (:mod:`medtest.systems.pytorch.pixels`). Any other system that runs is
called unchanged, with pixels rounded to 8 bits, and provides scores only. :func:`probe_gap` measures the difference
between the two paths on the sources of a run.

Use ``with probe.attached():`` around many consecutive calls, so that the network's modules are inspected only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, Classes, Image, Output
from medtest.core.deferred import torch
from medtest.core.errors import BadOutput, MedtestError
from medtest.core.probes import NO_GRADIENT, Need, Probe
from medtest.core.tasks.base import SystemInput, task_of
from medtest.core.tasks.border import as_array, check_mask
from medtest.phantoms.classes import in_words_of, places
from medtest.systems.base import LabelAnswer, Missing, System
from medtest.systems.pytorch.pixels import logits_of
from medtest.systems.pytorch.torch_system import TorchSystem, tensor_of

if TYPE_CHECKING:
    from torch import Tensor

NOWHERE = Address(dataset="probe", seed_id="pixels")
"""Address of a probe's calls, which no case has."""


def probe_of(
    system: System,
    *,
    classes: Classes | None = None,
    kind: str = "",
    digest: str = "",
    began: Callable[[], None] | None = None,
) -> Probe:
    """Return a probe of an opened system.

    Args:
        system: The system, opened, with the seeds' task as its ``kind``.
        classes: The seeds' classes, for labels.
        kind: Name of the seeds' task, "" for the task with which the system was opened.
        digest: Digest of the system's class, settings and weights.
        began: Called before every call of the network, to detect calls that hang.

    Raises:
        MedtestError: The system offers nothing, or its classes do not match the seeds'.
    """
    inner = system.inner
    if kind and kind != inner.kind:
        raise MedtestError(f"{system.record_name} was opened for {inner.kind}; a probe for {kind} is asked")
    offers = inner.offers()
    if offers is Need.NOTHING:
        raise MedtestError(f"{system.record_name} gives neither scores nor gradients to be attacked by")
    if inner.task.labels:
        if classes is None:
            raise MedtestError(f"{system.record_name}: a probe of labels needs the seeds' classes")
        misfit = inner.task.border.misfit(inner.classes, classes)
        if misfit:
            raise MedtestError(f"{system.record_name} {misfit}")
    options: dict[str, Any] = {"digest": digest, "began": began or _nothing}
    options["classes"] = classes if inner.task.labels else None
    if isinstance(inner, TorchSystem) and offers is Need.GRADIENTS:
        return GradientProbe(inner, name=system.record_name, **options)
    return ScoreProbe(inner, name=system.record_name, **options)


def _nothing() -> None:
    """Do nothing: the calls are not monitored."""


class _SystemProbe:
    """Common part of both kinds of probe; see :class:`medtest.core.probes.Probe`."""

    gives: Need

    def __init__(
        self, system: Any, *, name: str, classes: Classes | None, digest: str, began: Callable[[], None]
    ) -> None:
        self.name, self.digest, self.classes = name, digest, classes
        self.kind: str = system.kind
        self.device = "cpu"
        self._system = system
        self._began = began

    def _checked(self, images: Tensor) -> None:
        if images.ndim != 4 or images.shape[1] != 3 or not images.is_floating_point():
            shape = tuple(images.shape)
            raise ValueError(f"a probe takes float B×3×H×W in [0, 1], not {images.dtype} of shape {shape}")


class GradientProbe(_SystemProbe):
    """Logits of a torch network, differentiable with respect to the pixels only.

    If a network returns only probabilities (``gives: probabilities`` of a library's), logits are recovered from them:
    values that its sigmoid or softmax has rounded away have no gradient. Networks of medtest are read before that step.
    """

    gives = Need.GRADIENTS

    def __init__(self, system: TorchSystem, **options: Any) -> None:
        super().__init__(system, **options)
        self.device = system.device
        self._attached = 0
        self._plain = False
        own = system.classes if self.classes is not None else None
        self._count = len((own or self.classes or Classes(names=())).names)
        # Computed once, because a library's classes are read from its files.
        order = () if own is None or self.classes is None else places(own, self.classes)
        self._order = None if order == tuple(range(self._count)) or own is None else list(order)

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Prepare the network for many calls, and restore it at the end; see :class:`medtest.core.probes.Probe`.

        Raises:
            BadOutput: The network has changed its own weights in the meantime.
        """
        from medtest.systems.pytorch.untouched import untouched

        if self._attached:
            yield
            return
        with untouched(self._system.network, self.device):
            self._attached += 1
            try:
                yield
            finally:
                self._attached -= 1

    def logits(self, images: Tensor) -> Tensor:
        """Return logits; see :class:`medtest.core.probes.Probe`.

        Raises:
            BadOutput: The network returned NaN, a wrong shape, or nothing that depends on the pixels.
        """
        self._checked(images)
        with self.attached(), torch.autocast(images.device.type, enabled=False):
            most = self._system.largest_batch
            parts = torch.split(images, most) if most and len(images) > most else (images,)
            batches = [self._asked(part) for part in parts]
            logits = torch.cat(batches) if len(batches) > 1 else batches[0]
        if not bool(torch.isfinite(logits.detach()).all()):
            raise BadOutput("gave NaN" if bool(logits.detach().isnan().any()) else "gave an infinite value")
        if images.requires_grad and torch.is_grad_enabled() and not logits.requires_grad:
            raise BadOutput(f"gave scores of which {NO_GRADIENT}: it detaches them on the way")
        return logits

    def _asked(self, images: Tensor) -> Tensor:
        """Run one batch; tensors created in inference mode are copied if the network fails on them."""
        from medtest.systems.pytorch.untouched import PlainTensors

        self._began()
        if not self._plain:
            try:
                return self._through(images)
            except RuntimeError as error:
                if "inference tensor" not in str(error).lower():
                    raise
                self._plain = True
        with PlainTensors():
            return self._through(images)

    def _through(self, images: Tensor) -> Tensor:
        system: TorchSystem = self._system
        pixels = system.fitted_pixels(images)
        # An in-place activation must not write into the caller's pixels.
        pixels = pixels.clone() if pixels.data_ptr() == images.data_ptr() else pixels
        if self.classes is None:
            size = (int(images.shape[2]), int(images.shape[3]))
            return _shaped(system.lesion_logits(pixels, size), (len(images), *size))
        logits = system.label_logits(pixels, multi=self.classes.multi)
        logits = _shaped(logits, (len(images), self._count))
        return logits if self._order is None else logits[:, self._order]


class ScoreProbe(_SystemProbe):
    """Scores of any system that runs, through ``predict`` with 8-bit pixels."""

    gives = Need.SCORES

    def attached(self) -> AbstractContextManager[None]:
        """Do nothing: no preparation is needed."""
        return nullcontext()

    def logits(self, images: Tensor) -> Tensor:
        """Return logits of the pixels rounded to 8 bits, without gradient; see :class:`medtest.core.probes.Probe`.

        Raises:
            BadOutput: An answer is invalid.
        """
        from medtest.systems.pytorch.untouched import same_random_numbers

        self._checked(images)
        levels = (images.detach() * 255).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)
        shown = [np.ascontiguousarray(picture) for picture in levels.cpu().numpy()]
        with same_random_numbers(self.device):
            self._began()
            raw = self._system.predict(shown, [NOWHERE] * len(shown))
        if len(raw) != len(shown):
            raise BadOutput(f"gave {len(raw)} answers for {len(shown)} images")
        return torch.stack([self._logits(answer, image) for answer, image in zip(raw, shown, strict=True)])

    def _logits(self, raw: Any, image: Image) -> Tensor:

        if isinstance(raw, Missing):
            raise BadOutput(f"has no answer: {raw.reason}")
        if self.classes is None:
            return logits_of(torch.from_numpy(check_mask(raw, image.shape[:2]).probability), multi=True)
        self._system.task.border.check(raw, SystemInput(image=image, classes=self.classes), self._system)
        scores = raw.scores if isinstance(raw, LabelAnswer) else raw
        values = torch.from_numpy(self._in_order(scores, self.classes))
        if self._system.answer_form != "logits":
            values = logits_of(values.clamp(0, 1), multi=self.classes.multi)
        return values.float()

    def _in_order(self, scores: Any, expected: Classes) -> NDArray[np.float64]:
        """Return checked scores in the order of the seeds' classes."""
        own = self._system.classes
        if isinstance(scores, Mapping):
            own = in_words_of(Classes(names=tuple(map(str, scores)), multi=expected.multi), expected)
            scores = list(scores.values())
        values = np.atleast_1d(np.squeeze(as_array(scores, "scores"))).astype(np.float64)
        return values if own is None else values[list(places(own, expected))]


def _shaped(logits: Any, shape: tuple[int, ...]) -> Tensor:
    tensor = tensor_of(logits)
    if tuple(tensor.shape) != shape:
        sides = "×".join(map(str, shape))
        raise BadOutput(f"gave scores of shape {tuple(tensor.shape)} where {sides} are expected")
    return tensor


# --- difference to the official path ------------------------------------------------------------------------------


def probe_gap(probe: Probe, image: Image, answer: Output) -> float:
    """Return the largest difference, over classes or pixels, between the probe's probabilities and a recorded answer.

    Args:
        probe: The probe.
        image: uint8 H×W×3: a prepared source.
        answer: The same system's checked answer from ``predict``.

    Returns:
        For answers without probabilities (labels only, a binary mask), the difference is the distance by which the
        probe's probability is on the wrong side of the decision.
    """
    pixels = torch.from_numpy(image.copy()).permute(2, 0, 1)[None].to(probe.device).float().div(255)
    with torch.no_grad():
        logits = probe.logits(pixels)[0].double()
    several = probe.classes is None or probe.classes.multi
    probabilities = logits.sigmoid() if several else logits.softmax(dim=0)
    return float(task_of(probe.kind).scoring.probability_gaps(probabilities.cpu().numpy(), answer).max())


def output_gap(first: Output, second: Output) -> float:
    """Return the largest difference between two checked answers to the same image, as in :func:`probe_gap`."""
    return float(task_of(first.kind).scoring.probability_gaps(first, second).max())

"""An ONNX graph as a system under test."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.cases import Address, Image, ImageSpec, Json
from medtest.errors import BadOutput, MedtestError, Mistake
from medtest.systems.adapters.graph_images import processed
from medtest.systems.adapters.label_answers import classes_of
from medtest.systems.adapters.tensors import GraphSettings, answer_form, answers_of, encode
from medtest.systems.archives import check_graph
from medtest.systems.base import RawAnswer, System
from medtest.systems.files import cached_sha256, file_mistakes, user_path

MISSING = "model=onnx needs onnxruntime: pip install 'medtest[onnx]'"
_DTYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(uint8)": "uint8",
}


class OnnxSettings(GraphSettings):
    """Settings of an ONNX graph; see :class:`medtest.systems.adapters.tensors.GraphSettings`."""


class Onnx(System):
    """An ONNX graph with one image input, run by onnxruntime.

    A fixed batch size in the graph is respected (short batches are padded with their last image), a fixed image size is
    taken from the graph unless ``size`` says otherwise.
    """

    digest_name: ClassVar[str] = "medtest.systems.adapters.onnx:Onnx"
    Settings = OnnxSettings
    tasks: ClassVar[tuple[str, ...]] = ("mask", "image", "label")
    needs_device = True

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self.classes = classes_of(settings)
        self.answer_form = answer_form(settings)
        self._session: Any = None
        self._input = ""
        self._dtype = "float32"
        self._size: tuple[int, int] | None = None
        self._batch: int | None = None
        self._channels = 3

    def check(self) -> Sequence[Mistake]:
        """Return what is wrong with the path, or that onnxruntime is missing."""
        found = file_mistakes(self.settings.path, where=self.name, key="path", suffixes=(".onnx",))
        if find_spec("onnxruntime") is None:
            found.append(Mistake(where=self.name, found="onnxruntime is not installed", fix=MISSING))
        return found

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the graph's file."""
        return {"file_sha256": cached_sha256(user_path(self.settings.path))}

    def open(self, *, device: str, threads: int) -> None:
        """Load the graph; see :class:`medtest.systems.base.System`.

        Raises:
            MedtestError: onnxruntime is missing, the file is no graph it can run, or the graph takes no image.
        """
        try:
            import onnxruntime
        except ImportError as error:
            raise MedtestError(MISSING) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = max(1, threads)
        options.inter_op_num_threads = 1
        # Without this its threads spin between calls and take the cores from the workers beside it.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        path = user_path(self.settings.path)
        check_graph(path)
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=_providers(device))
        except Exception as error:  # noqa: BLE001 - onnxruntime raises many classes of its own for a bad file
            raise MedtestError(f"{path.name}: onnxruntime cannot run this graph: {str(error)[:300]}") from error
        self._inspect(path.name)

    def _inspect(self, file: str) -> None:
        """Read from the graph what its image input is like."""
        inputs = self._session.get_inputs()
        images = [one for one in inputs if len(one.shape) == 4]
        if len(inputs) != 1 or len(images) != 1:
            shapes = ", ".join(f"{one.name} {one.shape}" for one in inputs)
            raise MedtestError(f"{file}: one image input with four axes is expected; the graph takes {shapes}")
        only = images[0]
        if only.type not in _DTYPES:
            raise MedtestError(f"{file}: the input is {only.type}; {', '.join(_DTYPES)} can be given")
        channels = only.shape[1 if self.settings.layout == "nchw" else 3]
        self._channels = 1 if channels == 1 else 3
        allowed = (1, 3) if self.settings.gives == "image" else (3,)
        if isinstance(channels, int) and channels not in allowed:
            other = {"nchw": "nhwc", "nhwc": "nchw"}[self.settings.layout]
            elsewhere = only.shape[3 if self.settings.layout == "nchw" else 1] == 3
            fix = f"layout={other} is what fits" if elsewhere else "medtest gives RGB images, of three channels"
            raise MedtestError(
                f"{file}: with layout={self.settings.layout} the input {only.shape} takes {channels} channels; {fix}"
            )
        self._input, self._dtype = only.name, _DTYPES[only.type]
        self._batch = only.shape[0] if isinstance(only.shape[0], int) and only.shape[0] > 0 else None
        sides = only.shape[2:4] if self.settings.layout == "nchw" else only.shape[1:3]
        if self.settings.size is not None:
            self._size = (self.settings.size[0], self.settings.size[1])
        elif all(isinstance(side, int) and side > 0 for side in sides):
            self._size = (int(sides[0]), int(sides[1]))

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return one map per image, at the size the graph gives, or its scores."""
        if self._session is None:
            raise MedtestError(f"{self.name} was asked before it was opened")
        answers: list[RawAnswer] = []
        for group in _groups(images, one_size=self._size is not None, most=self._batch):
            padded = [*group, *([group[-1]] * ((self._batch or len(group)) - len(group)))]
            given = self._session.run(None, {self._input: encode(padded, self.settings, self._size, self._dtype)})
            found = answers_of(given, self.settings, len(padded), labels=self.task.labels)
            answers.extend(found[: len(group)])
        return answers

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Return each image of a series as the graph processes it (``gives: image``)."""
        if self._session is None:
            raise MedtestError(f"{self.name} was asked before it was opened")
        if self.settings.gives != "image":
            raise BadOutput(f"gives={self.settings.gives} is for masks; gives=image is what this suite needs")
        return [
            processed(image, spec, self.settings, self._channels, self._run)
            for image, spec in zip(images, specs, strict=True)
        ]

    def _run(self, batch: NDArray[np.float32]) -> Sequence[NDArray[Any]]:
        """Run the graph on a batch of one, padded where its batch size is fixed."""
        padded = np.repeat(batch, self._batch or 1, axis=0)
        padded = np.clip(np.rint(padded), 0, 255).astype(np.uint8) if self._dtype == "uint8" else padded
        padded = padded.astype(self._dtype)
        return [np.asarray(one)[:1] for one in self._session.run(None, {self._input: padded})]

    def close(self) -> None:
        """Let go of the session."""
        self._session = None


def _providers(device: str) -> list[Any]:
    if not device.startswith("cuda"):
        return ["CPUExecutionProvider"]
    number = int(device.partition(":")[2] or 0)
    return [("CUDAExecutionProvider", {"device_id": number}), "CPUExecutionProvider"]


def _groups(images: Sequence[Image], *, one_size: bool, most: int | None) -> list[list[Image]]:
    """Cut a batch where the graph's fixed batch size or images of other sizes demand it, keeping the order."""
    groups: list[list[Image]] = []
    for image in images:
        full = most is not None and bool(groups) and len(groups[-1]) == most
        if groups and not full and (one_size or groups[-1][-1].shape == image.shape):
            groups[-1].append(image)
        else:
            groups.append([image])
    return groups

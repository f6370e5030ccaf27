"""ONNX graph as a system under test."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, Image
from medtest.core.errors import MedtestError, Mistake
from medtest.systems.adapters.graph import ExportedGraph
from medtest.systems.adapters.tensors import GraphSettings, answers_of, encode, resized
from medtest.systems.base import RawAnswer
from medtest.systems.checkpoints.archives import check_graph
from medtest.systems.files import file_mistakes, user_path
from medtest.systems.pytorch.torch_system import groups

MISSING = "model=onnx needs onnxruntime: pip install 'medtest[onnx]'"
DTYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(uint8)": "uint8",
}
"""Supported input types, by onnxruntime's names."""


class Onnx(ExportedGraph):
    """ONNX graph with one image input, run by onnxruntime.

    A fixed batch size in the graph is respected (short batches are padded with their last image), a fixed image size is
    taken from the graph unless ``size`` overrides it.
    """

    Settings = GraphSettings
    settings: GraphSettings
    file_format: ClassVar[str] = "onnx"
    _session: Any = None
    _input = ""
    _dtype = "float32"
    _size: tuple[int, int] | None = None
    _batch: int | None = None
    _channels = 3

    @property
    def channels(self) -> int:
        """Number of input channels of the graph."""
        return self._channels

    def check(self) -> Sequence[Mistake]:
        """Return the problems of the path, or a missing onnxruntime."""
        mistakes = file_mistakes(self.settings.path, where=self.name, key="path", suffixes=(".onnx",))
        if find_spec("onnxruntime") is None:
            mistakes.append(Mistake(where=self.name, found="onnxruntime is not installed", fix=MISSING))
        return mistakes

    def open(self, *, device: str, threads: int) -> None:
        """Load the graph; see :class:`medtest.systems.base.System`.

        Raises:
            MedtestError: onnxruntime is missing, cannot run the file, or the graph has no image input.
        """
        path = user_path(self.settings.path)
        self._session = open_session(path, device=device, threads=threads, missing=MISSING)
        self._inspect(path.name)

    def _inspect(self, file: str) -> None:
        """Read the properties of the graph's image input."""
        inputs = self._session.get_inputs()
        images = [entry for entry in inputs if len(entry.shape) == 4]
        if len(inputs) != 1 or len(images) != 1:
            shapes = ", ".join(f"{entry.name} {entry.shape}" for entry in inputs)
            raise MedtestError(f"{file}: one image input with four axes is expected; the graph takes {shapes}")
        only = images[0]
        if only.type not in DTYPES:
            raise MedtestError(f"{file}: the input is {only.type}; {', '.join(DTYPES)} can be given")
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
        self._input, self._dtype = only.name, DTYPES[only.type]
        self._size = self.size
        self._batch = only.shape[0] if isinstance(only.shape[0], int) and only.shape[0] > 0 else None
        sides = only.shape[2:4] if self.settings.layout == "nchw" else only.shape[1:3]
        if self._size is None and all(isinstance(side, int) and side > 0 for side in sides):
            self._size = (int(sides[0]), int(sides[1]))

    @property
    def session(self) -> Any:
        """Inference session of the opened graph.

        Raises:
            MedtestError: It is not open.
        """
        if self._session is None:
            raise MedtestError(f"{self.name} is not open")
        return self._session

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return one map per image, at the graph's output size, or its scores."""
        size, most = self._size, self._batch
        shown = (
            images if size is None else [resized(image, size, antialias=self.settings.antialias) for image in images]
        )
        answers: list[RawAnswer] = []
        for group in groups(shown, most):
            padded = [*group, *([group[-1]] * ((most or len(group)) - len(group)))]
            outputs = self.session.run(None, {self._input: encode(padded, self.settings, dtype=self._dtype)})
            answers.extend(answers_of(outputs, self.settings, len(padded), labels=self.task.labels)[: len(group)])
        return answers

    def run(self, batch: NDArray[np.float32]) -> Sequence[NDArray[Any]]:
        """Run the graph on a picture of a series, repeated to fill a fixed batch size."""
        padded = np.repeat(batch, self._batch or 1, axis=0)
        padded = np.clip(np.rint(padded), 0, 255).astype(np.uint8) if self._dtype == "uint8" else padded
        return [np.asarray(output)[:1] for output in self.session.run(None, {self._input: padded.astype(self._dtype)})]

    def close(self) -> None:
        """Release the session."""
        self._session = None


def open_session(path: Path, *, device: str, threads: int, missing: str) -> Any:
    """Return an ``onnxruntime.InferenceSession`` of a graph, after checking its declared sizes.

    Args:
        path: The graph's file.
        device: ``cpu`` or ``cuda:N``.
        threads: Intra-op threads.
        missing: Message if onnxruntime is not installed.

    Raises:
        MedtestError: onnxruntime is missing, or cannot run the file.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise MedtestError(missing) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = max(1, threads)
    options.inter_op_num_threads = 1
    # Otherwise its threads spin between calls and take the cores from neighbouring workers.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    check_graph(path)
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=_providers(device))
    except Exception as error:
        raise MedtestError(f"{path.name}: onnxruntime cannot run this graph: {str(error)[:300]}") from error


def _providers(device: str) -> list[Any]:
    if not device.startswith("cuda"):
        return ["CPUExecutionProvider"]
    number = int(device.partition(":")[2] or 0)
    return [("CUDAExecutionProvider", {"device_id": number}), "CPUExecutionProvider"]

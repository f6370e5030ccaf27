"""A TorchScript archive as a system under test."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.cases import Address, Image, ImageSpec, Json
from medtest.errors import BadOutput, MedtestError, Mistake
from medtest.systems.adapters.graph_images import processed
from medtest.systems.adapters.label_answers import classes_of
from medtest.systems.adapters.tensors import GraphSettings, answer_form, answers_of, encode
from medtest.systems.archives import check_archive
from medtest.systems.base import RawAnswer, System
from medtest.systems.files import cached_sha256, file_mistakes, user_path

if TYPE_CHECKING:
    from torch.jit import ScriptModule


class TorchScriptSettings(GraphSettings):
    """Settings of a TorchScript archive; see :class:`medtest.systems.adapters.tensors.GraphSettings`.

    An archive does not say which size it takes: give ``size`` unless any will do.
    """


class TorchScript(System):
    """A network saved by ``torch.jit.save``. The archive is a program: only run one whose origin you trust."""

    digest_name: ClassVar[str] = "medtest.systems.adapters.torchscript:TorchScript"
    Settings = TorchScriptSettings
    tasks: ClassVar[tuple[str, ...]] = ("mask", "image", "label")
    needs_device = True

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self.classes = classes_of(settings)
        self.answer_form = answer_form(settings)
        self._module: ScriptModule | None = None
        self._device = "cpu"

    def check(self) -> Sequence[Mistake]:
        """Return what is wrong with the path."""
        return file_mistakes(self.settings.path, where=self.name, key="path", suffixes=(".pt", ".pth", ".ts", ".jit"))

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the archive."""
        return {"file_sha256": cached_sha256(user_path(self.settings.path))}

    def open(self, *, device: str, threads: int) -> None:
        """Load the archive; see :class:`medtest.systems.base.System`.

        Raises:
            MedtestError: It is no archive that torch can load.
        """
        import torch

        torch.set_num_threads(max(1, threads))
        path = user_path(self.settings.path)
        check_archive(path)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch announces that TorchScript will go; archives are still about
                self._module = torch.jit.load(str(path), map_location=device).eval()  # type: ignore[no-untyped-call]
        except (RuntimeError, ValueError, OSError) as error:
            raise MedtestError(
                f"{path.name}: not a TorchScript archive (torch.jit.save makes one; for a state dict use "
                f"model=pranet checkpoint=…): {str(error).splitlines()[0][:200]}"
            ) from error
        self._device = device

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return one map per image, at the size the network gives, or its scores."""
        import torch

        if self._module is None:
            raise MedtestError(f"{self.name} was asked before it was opened")
        size = None if self.settings.size is None else (self.settings.size[0], self.settings.size[1])
        alike = size is not None or len({image.shape for image in images}) == 1
        answers: list[RawAnswer] = []
        for group in [list(images)] if alike else [[image] for image in images]:
            with torch.inference_mode():
                given = self._module(torch.from_numpy(encode(group, self.settings, size)).to(self._device))
            answers.extend(answers_of(_arrays(given), self.settings, len(group), labels=self.task.labels))
        return answers

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Return each image of a series as the network processes it (``gives: image``)."""
        if self.settings.gives != "image":
            raise BadOutput(f"gives={self.settings.gives} is for masks; gives=image is what this suite needs")
        return [
            processed(image, spec, self.settings, 1 if self.settings.channels == "grey" else 3, self._run)
            for image, spec in zip(images, specs, strict=True)
        ]

    def _run(self, batch: NDArray[np.float32]) -> Sequence[NDArray[Any]]:
        import torch

        if self._module is None:
            raise MedtestError(f"{self.name} was asked before it was opened")
        with torch.inference_mode():
            return _arrays(self._module(torch.from_numpy(batch).to(self._device)))

    def close(self) -> None:
        """Let go of the network."""
        self._module = None


def _arrays(given: Any) -> list[NDArray[Any]]:
    """Return what a network gave as arrays: a tensor, or a list, tuple or dictionary of tensors in its order."""
    import torch

    if isinstance(given, torch.Tensor):
        given = [given]
    elif isinstance(given, dict):
        given = list(given.values())
    if not isinstance(given, list | tuple) or not all(isinstance(one, torch.Tensor) for one in given):
        raise BadOutput(f"gave {type(given).__name__} where a tensor or a list of tensors is expected")
    return [np.asarray(one.detach().float().cpu() if one.is_floating_point() else one.cpu()) for one in given]

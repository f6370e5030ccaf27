"""Files of trained generators: their content, location and lookup.

A generator belongs to one system (whose digest covers class, settings and weights), to the classes and the side of its
training images, and to its settings. These alone identify it before anything is loaded: first among those written by
``medtest train gap`` (``outputs/generators/SYSTEM/DATA/SETTINGS/`` below ``MEDTEST_HOME``), then among the shipped ones
(``medtest/weights/gap-*.safetensors``, whose systems are listed in ``gap.json``).
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.cases import Classes
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError
from medtest.core.files import read_object
from medtest.core.files.paths import home, package_folder
from medtest.core.files.tensors import described, read_tensors, write_tensors

if TYPE_CHECKING:
    from torch import Tensor

    from medtest.relations.adversarial.generators.network import PerturbationGenerator

FORMAT = "medtest-generator-1"
FOLDER = "generators"
FILE = "generator.safetensors"
SHIPPED = "gap.json"
"""File that lists, for each shipped generator, the digests of the systems it was trained against."""
_DIGITS = 12


@dataclass(frozen=True, kw_only=True)
class GeneratorSettings:
    """Settings of a generator's training.

    Attributes:
        linf: Bound of its perturbations in training, in levels of 255.
        universal: One perturbation for all images.
        target: Target labels; empty if untargeted.
        variant: ``paper``, or ``released`` like the published code.
    """

    linf: float = 11.0
    universal: bool = False
    target: tuple[str, ...] = ()
    variant: str = "paper"

    def described(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return {**asdict(self), "linf": float(self.linf), "target": list(self.target)}

    @property
    def folder(self) -> str:
        """Folder name of such a generator, readable if possible."""
        words = [f"linf{self.linf:g}", *(["universal"] if self.universal else [])]
        words += [f"target-{_digest(sorted(self.target))}"] if self.target else []
        words += [self.variant] if self.variant != "paper" else []
        return "-".join(words)

    def typed(self) -> str:
        """Return the settings as arguments of ``medtest train gap``."""
        words = [f"linf={self.linf:g}", *(["universal=true"] if self.universal else [])]
        words += [shlex.quote(f"target={'|'.join(self.target)}")] if self.target else []
        words += [f"variant={self.variant}"] if self.variant != "paper" else []
        return " ".join(words)


@dataclass(frozen=True, kw_only=True)
class GeneratorInfo:
    """Metadata stored in a generator's file.

    Attributes:
        settings: Settings of its training.
        shape: Its architecture, as JSON values.
        classes: Classes of its training data.
        mean: Channel means of the attacked network's normalisation of pixels in [0, 1], for ``released``; 3 numbers.
        std: Channel standard deviations of that normalisation.
        pattern: Seed of the fixed input of a universal generator.
        data: SHA-256 of its training cases.
        note: Free text of the trainer.
    """

    settings: GeneratorSettings
    shape: Mapping[str, Any]
    classes: Classes
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    pattern: int = 0
    data: str = ""
    note: str = ""

    @property
    def side(self) -> int:
        """Side of its input images in pixels."""
        return int(self.shape["side"])


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def data_digest(classes: Classes, side: int) -> str:
    """Return the digest of the image properties that a generator depends on: classes and side in pixels."""
    return _digest({"classes": list(classes.names), "multi": classes.multi, "side": side})


def generators_folder(system: str) -> Path:
    """Return the folder of all generators trained locally against a system, by its digest."""
    return home() / "outputs" / FOLDER / system


def training_folder(system: str, classes: Classes, side: int, settings: GeneratorSettings) -> Path:
    """Return the training folder of one generator; its weights are in :data:`FILE` there."""
    return generators_folder(system) / data_digest(classes, side) / settings.folder


def found_files(system: str, settings: GeneratorSettings) -> list[Path]:
    """Return the files of a system's generators with these settings, for any data; shipped ones come last.

    Args:
        system: Digest of the system.
        settings: Settings of their training.
    """
    trained = sorted(generators_folder(system).glob(f"*/{settings.folder}/{FILE}"))
    return [*trained, *(path for path in _shipped(system) if _settings_of(path) == settings)]


def _shipped(system: str) -> list[Path]:
    folder = package_folder() / "weights"
    listed = read_object(folder / SHIPPED)
    names = sorted(name for name, systems in listed.items() if isinstance(systems, list) and system in systems)
    return [path for path in (folder / f"{name}.safetensors" for name in names) if path.is_file()]


def _settings_of(path: Path) -> GeneratorSettings | None:
    try:
        return read_info(path).settings
    except MedtestError:
        return None


def fitting(files: Sequence[Path], classes: Classes, side: int) -> Path | None:
    """Return the first generator file for these classes and this side; None without one."""
    for path in files:
        info = read_info(path)
        if info.classes == classes and info.side == side:
            return path
    return None


def save_generator(path: Path, state: Mapping[str, Tensor], info: GeneratorInfo) -> None:
    """Write a generator's weights in half precision, atomically."""
    facts = {
        "format": FORMAT,
        **info.settings.described(),
        "shape": dict(info.shape),
        "classes": list(info.classes.names),
        "multi": info.classes.multi,
        "mean": list(info.mean),
        "std": list(info.std),
        "pattern": info.pattern,
        "data": info.data,
        "note": info.note,
    }
    write_tensors(path, state, facts)


def read_info(path: Path) -> GeneratorInfo:
    """Return the metadata of a generator's file without loading its weights.

    Raises:
        MedtestError: The file is not a generator.
    """
    with described(path, FORMAT, "these are no weights of a generator of perturbations") as facts:
        settings = GeneratorSettings(
            linf=float(facts["linf"]),
            universal=bool(facts["universal"]),
            target=tuple(map(str, facts["target"])),
            variant=str(facts["variant"]),
        )
        if settings.variant not in ("paper", "released") or not 0 < settings.linf <= 255:
            raise ValueError(f"variant {settings.variant}, linf {settings.linf}")
        mean, std = (tuple(float(value) for value in facts[key]) for key in ("mean", "std"))
        if len(mean) != 3 or len(std) != 3:
            raise ValueError("mean and std have three numbers each")
        return GeneratorInfo(
            settings=settings,
            shape=dict(facts["shape"]),
            classes=Classes(names=tuple(map(str, facts["classes"])), multi=bool(facts["multi"])),
            mean=mean,
            std=std,
            pattern=int(facts["pattern"]),
            data=str(facts["data"]),
            note=str(facts["note"]),
        )


def load_generator(path: Path) -> tuple[PerturbationGenerator, GeneratorInfo]:
    """Return the generator of a file, float32, in evaluation mode, and its metadata.

    Raises:
        MedtestError: The file is not a generator, or its weights do not fit its metadata.
    """
    from medtest.relations.adversarial.generators.network import GeneratorShape, PerturbationGenerator

    info = read_info(path)
    shape = GeneratorShape.of(info.shape)
    state = read_tensors(path)
    with torch.device("meta"):  # uses no memory before the weights are known to fit, and draws no random numbers
        network = PerturbationGenerator(shape)
    shapes = {name: value.shape for name, value in network.state_dict().items()}
    if shapes != {name: value.shape for name, value in state.items()}:
        raise MedtestError(f"{path.name}: the weights do not fit the generator they describe")
    network.load_state_dict(state, assign=True)
    return network.eval(), info

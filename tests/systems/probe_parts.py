"""Systems of every kind, with the images on which their probes are compared with predict."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))
from library_parts import NAMES, system_of
from tiny_networks import mask2former, segformer, timm_folder, unet, vit, write_bundle

from medtest.core.cases import Address, Classes, Output
from medtest.core.tasks.base import SystemInput
from medtest.phantoms.classes import CAPSULE, CHEST, DERMOSCOPY, FUNDUS
from medtest.systems.base import System
from medtest.systems.pytorch.probe import probe_of

HERE = Address(dataset="d", seed_id="s")
THREE = Classes(names=tuple(reversed(NAMES)))
"""The seeds' order is not the networks'."""
MANY = Classes(names=tuple(NAMES[:2]), multi=True)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A system to be probed.

    Attributes:
        make: Function that writes its files into a folder and returns it, closed.
        side: Side of images that need no resize.
        resized: Height and width of images that need one; None if any size is used unresized.
        gap: Largest difference of a probability there.
        classes: Classes of the seeds.
        squared: Whether images are prepared to a square.
    """

    make: Callable[[Path], System]
    side: int
    resized: tuple[int, int] | None = None
    gap: float = 0.01
    classes: Classes | None = None
    squared: bool = True


def picture(height: int, width: int, seed: int = 3) -> NDArray[np.uint8]:
    """Return a smooth picture of many colours."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(30, 226, (max(2, height // 24), max(2, width // 24), 3)).astype(np.float32)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(np.rint(smooth), 0, 255).astype(np.uint8)


def opened(case: Case, folder: Path, **changed: Any) -> System:
    """Return its system, opened."""
    system = case.make(folder)
    system.squared = case.squared
    system.open(device="cpu", threads=1)
    return system


def official(system: System, images: list[NDArray[np.uint8]], classes: Classes | None) -> list[Output]:
    """Return the system's answers, checked at the border."""
    raw = system.predict(images, [HERE] * len(images))
    return [
        system.task.border.check(raw_answer, SystemInput(image=image, classes=classes), system)
        for raw_answer, image in zip(raw, images, strict=True)
    ]


def pixels_of(*images: NDArray[np.uint8]) -> torch.Tensor:
    """Return images as a probe takes them."""
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float().div(255)


def probabilities(probe: Any, images: torch.Tensor) -> NDArray[np.float64]:
    """Return the probe's probabilities."""
    with torch.no_grad():
        logits = probe.logits(images).double()
    several = probe.classes is None or probe.classes.multi
    return (logits.sigmoid() if several else logits.softmax(dim=1)).numpy()


def probed(system: System, case: Case) -> Any:
    """Return a probe."""
    return probe_of(system, classes=case.classes)


# --- networks in files ----------------------------------------------------------------------------------------------


def _torchvision(folder: Path, name: str = "squeezenet1_1", **changed: Any) -> System:
    from torchvision import models

    torch.manual_seed(2)
    network: Any = getattr(models, name)(num_classes=3)
    with torch.no_grad():  # random weights hardly tell classes apart
        for weight in list(network.parameters())[-2:]:
            weight.mul_(20)
    torch.save(network.state_dict(), folder / "net.pth")
    settings = {"architecture": name, "checkpoint": str(folder / "net.pth"), "classes": NAMES, **changed}
    return system_of("torchvision", **settings)


def _timm(folder: Path, **changed: Any) -> System:
    configured = {"crop_mode": "center", "crop_pct": 0.9, "interpolation": "bicubic"}
    timm_folder(folder / "m", names=NAMES, **configured)
    return system_of("timm", path=str(folder / "m"), **changed)


def _vit(folder: Path, **changed: Any) -> System:
    vit(folder, NAMES)
    return system_of("huggingface", path=str(folder), **changed)


def _vit_through(folder: Path, processor: str, **configured: Any) -> System:
    import transformers

    vit(folder, NAMES)
    getattr(transformers, processor)(**configured).save_pretrained(folder)
    return system_of("huggingface", path=str(folder))


def _vit_cropped(folder: Path) -> System:
    sides = {"size": {"shortest_edge": 40}, "crop_size": {"height": 32, "width": 32}}
    return _vit_through(folder, "CLIPImageProcessor", **sides)


def _vit_blue_first(folder: Path) -> System:
    sides = {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}
    return _vit_through(folder, "MobileViTImageProcessor", **sides)


def _vit_many(folder: Path) -> System:
    vit(folder, NAMES, problem_type="multi_label_classification")
    return system_of("huggingface", path=str(folder))


def _segformer(folder: Path) -> System:
    segformer(folder)
    return system_of("huggingface", "mask", path=str(folder), threshold=0.6)


def _query(folder: Path) -> System:
    mask2former(folder, 3)
    return system_of("huggingface", "mask", path=str(folder), lesion=2)


def _smp(folder: Path, classes: int = 1, **changed: Any) -> System:
    unet(folder, classes)
    return system_of("smp", "mask", path=str(folder), **changed)


def _monai(folder: Path, **changed: Any) -> System:
    write_bundle(folder)
    return system_of("monai", "mask", path=str(folder), **changed)


def script(folder: Path, network: nn.Module, side: int, **changed: Any) -> System:
    """Save a network as a TorchScript archive and return it as a system."""
    path = folder / "net.pt"
    torch.jit.trace(network.eval(), torch.zeros(1, 3, side, side)).save(str(path))  # type: ignore[no-untyped-call]
    return system_of("torchscript", changed.pop("kind", "mask"), path=str(path), **changed)


def _script_maps(folder: Path) -> System:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Conv2d(3, 3, 5, padding=2), nn.ReLU(inplace=True), nn.Conv2d(3, 3, 1))
    order = {"channels": "bgr", "mean": [0.1, 0.2, 0.3], "std": [0.2, 0.3, 0.4], "scale": 128.0, "channel": 2}
    return script(folder, network, 64, size=[64, 64], **order)


class _Inverted(nn.Sequential):
    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        inverted: torch.Tensor = super().forward(pixels.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return inverted


def _script_shares(folder: Path) -> System:
    torch.manual_seed(1)
    network = _Inverted(nn.Conv2d(3, 2, 3, padding=1), nn.Sigmoid()).eval()
    path = folder / "net.pt"
    torch.jit.trace(network, torch.zeros(1, 64, 64, 3)).save(str(path))  # type: ignore[no-untyped-call]
    return system_of("torchscript", "mask", path=str(path), gives="probability", layout="nhwc")


def _script_labels(folder: Path) -> System:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Conv2d(3, 3, 3), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Softmax(dim=1))
    return script(folder, network, 48, kind="label", gives="probability", classes=NAMES)


CASES: Mapping[str, Case] = {
    "attnmel": Case(make=lambda _: system_of("attnmel"), side=224, classes=DERMOSCOPY),
    "attnmel official": Case(
        make=lambda _: system_of("attnmel"), side=320, resized=(300, 350), classes=DERMOSCOPY, squared=False
    ),
    "inceptionv3_dr": Case(
        make=lambda _: system_of("inceptionv3_dr"), side=224, resized=(250, 300), classes=FUNDUS, squared=False
    ),
    "chexnet": Case(make=lambda _: system_of("chexnet"), side=224, classes=CHEST),
    "chexnet ten crops": Case(
        make=lambda _: system_of("chexnet", crops=10), side=256, resized=(280, 300), classes=CHEST, squared=False
    ),
    "chexnet official": Case(
        make=lambda _: system_of("chexnet"), side=256, resized=(280, 300), classes=CHEST, squared=False
    ),
    "agdn": Case(make=lambda _: system_of("agdn"), side=320, resized=(300, 280), classes=CAPSULE, squared=False),
    "dsinet": Case(make=lambda _: system_of("dsinet"), side=256, resized=(300, 280), classes=CAPSULE, squared=False),
    "pranet": Case(make=lambda _: system_of("pranet", "mask"), side=256, resized=(320, 400)),
    "pranet official": Case(
        make=lambda _: system_of("pranet", "mask", protocol="official", threshold=0.4), side=256, resized=(300, 280)
    ),
    "sanet": Case(make=lambda _: system_of("sanet", "mask"), side=256, resized=(512, 512)),
    "sanet official": Case(
        make=lambda _: system_of("sanet", "mask", protocol="official"), side=256, resized=(300, 280), gap=0.05
    ),
    "tganet": Case(make=lambda _: system_of("tganet", "mask", threshold=0.3), side=256, resized=(200, 180)),
    "tganet official": Case(make=lambda _: system_of("tganet", "mask", protocol="official"), side=256),
    "ssformer": Case(make=lambda _: system_of("ssformer", "mask"), side=224, resized=(300, 260)),
    "torchvision": Case(
        make=lambda folder: _torchvision(folder, size=64, input="as_is"), side=64, resized=(80, 90), classes=THREE
    ),
    "torchvision official": Case(
        make=lambda folder: _torchvision(folder, "resnet18", size=64, interpolation="lanczos"),
        side=73,
        resized=(90, 80),
        classes=THREE,
        squared=False,
    ),
    "torchvision merged": Case(
        make=lambda folder: _torchvision(
            folder, size=64, input="as_is", labels={"nevus": "benign", "keratosis": "benign"}
        ),
        side=64,
        classes=Classes(names=("benign", "melanoma")),
    ),
    "torchvision several": Case(
        make=lambda folder: _torchvision(
            folder, size=64, input="as_is", multi=True, labels={"nevus": "Benign", "keratosis": "Benign"}
        ),
        side=64,
        classes=Classes(names=("benign",), multi=True),
    ),
    "timm": Case(make=_timm, side=177, resized=(200, 220), classes=THREE, squared=False, gap=0.05),
    "timm squared": Case(make=_timm, side=160, classes=THREE),
    "vit": Case(make=_vit, side=32, resized=(48, 60), classes=THREE),
    "vit several": Case(make=_vit_many, side=32, resized=(48, 60), classes=MANY),
    "vit cropped": Case(make=_vit_cropped, side=40, resized=(60, 84), classes=THREE, squared=False),
    "vit blue first": Case(make=_vit_blue_first, side=36, resized=(60, 84), classes=THREE, squared=False),
    "segformer": Case(make=_segformer, side=64, resized=(96, 80)),
    "mask2former": Case(make=_query, side=64, resized=(96, 80), gap=0.05),
    "smp": Case(make=_smp, side=64, resized=(70, 90)),
    "smp classes": Case(make=lambda folder: _smp(folder, 3, lesion=[0, 2], threshold=0.4), side=64),
    "smp softmax": Case(make=lambda folder: _smp(folder, 3, lesion=[0, 2], activation="softmax"), side=64),
    "monai": Case(make=lambda folder: _monai(folder, preprocessing="default"), side=64),
    "monai transforms": Case(make=_monai, side=64, resized=(96, 80)),
    "torchscript": Case(make=_script_maps, side=64, resized=(128, 96)),
    "torchscript probabilities": Case(make=_script_shares, side=64),
    "torchscript labels": Case(make=_script_labels, side=48, classes=THREE),
}
REPEATED = {"chexnet official", "pranet official", "sanet official", "tganet official"}
"""Cases whose networks other cases open too."""
"""Every network that is a system, and the ways of each to its input."""

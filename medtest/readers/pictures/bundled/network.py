"""The network of the reader for drawn scenes, its weights on disk, and its output maps.

Fully convolutional and without anchors, after CenterNet (X. Zhou et al., "Objects as Points", 2019): the map of each
class peaks at the centres of its objects. As in FCOS (Z. Tian et al., 2019), cells predict the distances to the box's
four edges, and small and large objects have separate maps, so that an object inside another one uses other cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.core.errors import MedtestError
from medtest.core.files.tensors import described, read_tensors, write_tensors
from medtest.systems.checkpoints.weights import distinct_names

FORMAT: Final = "medtest-scenes-1"
SIDE: Final = 256
"""Side length in pixels of its input pictures."""
STRIDES: Final = (8, 16)
"""Pixels between the cells of the maps for small and for large objects."""
SMALL_TO, LARGE_FROM = 84.0, 44.0
"""Maximum size of objects in the maps for small objects, and minimum size in the maps for large ones.

Sizes are square roots of areas in pixels. Objects in between are in both maps: with a single limit, objects near
it would get half a score in each.
"""
_MOST_STRIDES: Final = 6.0
"""Logarithm of the largest distance of an edge in strides; keeps exponentials finite."""
_MOST_NAMES: Final = 500


@dataclass(frozen=True, kw_only=True)
class SceneNetInfo:
    """Description stored in a file of weights.

    Attributes:
        classes: Names of the classes, in the order of the maps.
        colours: Names of the colours, in their order.
        widths: Channels of the five encoder stages, each at half the resolution of the previous one.
        neck: Channels of the maps used for prediction.
        threshold: Minimum score of an object, determined by validation.
        note: Free text from the training.
    """

    classes: tuple[str, ...]
    colours: tuple[str, ...]
    widths: tuple[int, ...] = (20, 32, 64, 128, 192)
    neck: int = 96
    threshold: float = 0.3
    note: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class SceneMaps:
    """Output of the network for one of :data:`STRIDES`.

    Attributes:
        heat: Logits B×classes×h×w of an object's centre.
        edges: B×4×h×w: distances in pixels of the left, top, right and bottom edge from the cell's centre, 0 or more.
        colours: Logits B×colours×h×w.
    """

    heat: Tensor
    edges: Tensor
    colours: Tensor


def _norm(inner: int, outer: int, *, stride: int = 1, kernel: int = 3) -> nn.Sequential:
    """Return a convolution followed by normalization."""
    convolution = nn.Conv2d(inner, outer, kernel, stride=stride, padding=kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outer))


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.two = _norm(width, width), _norm(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x + self.two(functional.relu(self.one(x))))


class _Stage(nn.Module):
    """Halves the resolution, then refines."""

    def __init__(self, inner: int, outer: int, blocks: int) -> None:
        super().__init__()
        self.down = _norm(inner, outer, stride=2)
        self.blocks = nn.Sequential(*(_Residual(outer) for _ in range(blocks)))

    def forward(self, x: Tensor) -> Tensor:
        return self.blocks(functional.relu(self.down(x)))


class _Head(nn.Module):
    """Predicts for every cell the class centred there, the box edges and the colour."""

    def __init__(self, width: int, classes: int, colours: int, stride: int) -> None:
        super().__init__()
        self.parts = (classes, 4, colours)
        self.stride = stride
        self.tower = _norm(width, width)
        self.last = nn.Conv2d(width, sum(self.parts), 1)

    def forward(self, x: Tensor) -> SceneMaps:
        heat, edges, colours = self.last(functional.relu(self.tower(x))).float().split(self.parts, dim=1)
        distances = torch.exp(edges.clamp(-_MOST_STRIDES, _MOST_STRIDES)) * self.stride
        return SceneMaps(heat=heat, edges=distances, colours=colours)


class SceneNet(nn.Module):
    """The network for drawn scenes.

    Args:
        info: Its description.
    """

    BLOCKS: Final = (0, 1, 2, 2, 1)

    def __init__(self, info: SceneNetInfo) -> None:
        super().__init__()
        inner = (3, *info.widths[:-1])
        stages = zip(inner, info.widths, self.BLOCKS, strict=True)
        self.stages = nn.ModuleList(_Stage(inner_width, two, blocks) for inner_width, two, blocks in stages)
        neck = info.neck
        self.across = nn.ModuleList(_norm(width, neck, kernel=1) for width in info.widths[2:])
        self.smooth = nn.ModuleList(_norm(neck, neck) for _ in STRIDES)
        self._heads = [_Head(neck, len(info.classes), len(info.colours), stride) for stride in STRIDES]
        self.heads = nn.ModuleList(self._heads)

    def begin(self, prior: float) -> None:
        """Initialize the last layers for a stable start of training: rare peaks, edges a few strides away.

        Args:
            prior: Logit of a peak.
        """
        for head in self._heads:
            nn.init.normal_(head.last.weight, std=0.01)
            assert head.last.bias is not None  # noqa: S101 - for mypy
            peaks = head.parts[0]
            nn.init.constant_(head.last.bias[:peaks], prior)
            nn.init.constant_(head.last.bias[peaks : peaks + 4], 1.0)

    def forward(self, pixels: Tensor) -> list[SceneMaps]:
        """Return the maps for each stride.

        Args:
            pixels: float B×3×H×W RGB in [0, 1]; H and W are multiples of 32.
        """
        x = (pixels - 0.5) * 4.0
        levels = []
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        third, fourth, fifth = (across(level) for across, level in zip(self.across, levels[2:], strict=True))
        fourth = functional.relu(self.smooth[1](functional.relu(fourth + _twice(fifth))))
        third = functional.relu(self.smooth[0](functional.relu(third + _twice(fourth))))
        return [self.heads[0](third), self.heads[1](fourth)]


def _twice(x: Tensor) -> Tensor:
    return functional.interpolate(x, scale_factor=2.0, mode="nearest")


def save_scene_net(path: Path, state: Mapping[str, Tensor], info: SceneNetInfo) -> None:
    """Write weights in half precision, atomically."""
    write_tensors(path, state, {"format": FORMAT, **asdict(info)})


def read_scene_info(path: Path) -> SceneNetInfo:
    """Return the description in a file of weights.

    Raises:
        MedtestError: The file is not such a file.
    """
    with described(path, FORMAT, "these are not weights of a reader of drawn scenes") as facts:
        info = SceneNetInfo(
            classes=distinct_names(facts["classes"], _MOST_NAMES),
            colours=distinct_names(facts["colours"], _MOST_NAMES),
            widths=tuple(_width(value) for value in facts["widths"]),
            neck=_width(facts["neck"]),
            threshold=float(facts["threshold"]),
            note=str(facts["note"]),
        )
        if (
            not (info.classes and info.colours)
            or len(info.widths) != len(SceneNet.BLOCKS)
            or not 0 < info.threshold < 1
        ):
            raise ValueError(f"widths {info.widths}, threshold {info.threshold}")
        return info


def _width(value: Any) -> int:
    width = int(value)
    if not 4 <= width <= 1024:
        raise ValueError(f"a width of {width}")
    return width


def load_scene_net(path: Path) -> tuple[SceneNet, SceneNetInfo]:
    """Return the network of a file in float32 and evaluation mode, and the file's description.

    Raises:
        MedtestError: The file does not belong to medtest, or its weights do not match its description.
    """
    info = read_scene_info(path)
    state = read_tensors(path)
    network = SceneNet(info)
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise MedtestError(f"{path.name}: its weights are of another network: {str(error)[:300]}") from error
    return network.eval().to(memory_format=torch.channels_last), info

"""What a network's layers give in a forward pass, read by hooks that are gone afterwards. Imports torch.

A hook sees the very tensor that the next layer gets. An activation that works in place (``ReLU(inplace=True)``) writes
into it afterwards, so every capture is a copy made at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from medtest.core.errors import Mistake, UserMistakes, nearest_name

_LISTED = 8


@dataclass
class Captured:
    """What layers gave in the last forward pass.

    Attributes:
        outputs: By layer, its output: the first tensor where it gives several. A layer that ran several times in the
            pass (one activation in several places) keeps its last output.
        order: Layers as they ran.
    """

    outputs: dict[str, Tensor] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    def clear(self) -> None:
        """Forget a pass."""
        self.outputs.clear()
        self.order.clear()


@contextmanager
def captured(network: nn.Module, layers: Sequence[str]) -> Iterator[Captured]:
    """Read layers of a network in every forward pass within; no hook stays, whatever happens there.

    Args:
        network: The network.
        layers: Names as ``named_modules`` gives them, "" for the network itself.

    Yields:
        What was read; each pass overwrites the layers that it ran.

    Raises:
        UserMistakes: There is no such layer.
    """
    modules = found_layers(network, layers)
    kept = Captured()

    def keeping(name: str) -> Any:
        def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
            tensor = first_tensor(output)
            if tensor is not None:
                kept.outputs[name] = tensor.detach().clone()
                kept.order.append(name)

        return keep

    handles = []
    try:
        for name, module in modules.items():
            handles.append(module.register_forward_hook(keeping(name)))
        yield kept
    finally:
        for handle in handles:
            handle.remove()


def found_layers(network: nn.Module, layers: Sequence[str], *, where: str = "command line") -> dict[str, nn.Module]:
    """Return the modules of layers.

    Args:
        network: The network.
        layers: Their names.
        where: What a mistake says of where they were named.

    Raises:
        UserMistakes: There is no such layer: one mistake with the nearest names.
    """
    known = dict(network.named_modules())
    known.pop("", None)
    missing = [name for name in layers if name and name not in known]
    if missing:
        raise UserMistakes([_unknown(name, known, where) for name in missing])
    return {name: known[name] if name else network for name in layers}


def _unknown(name: str, known: Mapping[str, Any], where: str) -> Mistake:
    parts = name.split(".")
    at = max((n for n in range(len(parts)) if ".".join(parts[:n]) in known or not n), default=0)
    prefix = ".".join(parts[:at])
    below = [one for one in known if not prefix or one.startswith(f"{prefix}.")]
    shown = [one for one in below if one.count(".") == at][:_LISTED]
    more = f" … ({len(known)} in all)" if len(known) > len(shown) else ""
    return Mistake(
        where=where,
        key="layers",
        found=f"the layer {name}",
        allowed=", ".join(shown) + more,
        nearest=nearest_name(name, below) or nearest_name(name, known),
        fix="print(dict(network.named_modules())) lists a network's layers; layers=[a,b] takes several",
    )


def first_tensor(output: Any) -> Tensor | None:
    """Return the first floating tensor of B rows among what a layer gave, None where it gave none."""
    if isinstance(output, Tensor):
        return output if output.is_floating_point() and output.ndim > 1 else None
    values = output.values() if isinstance(output, Mapping) else output if isinstance(output, list | tuple) else ()
    return next((found for one in values if (found := first_tensor(one)) is not None), None)


def pooled(features: Tensor, images: int) -> Tensor:
    """Return one vector an image of a layer's output, float32 B×C: the mean over places, tokens and crops.

    Args:
        features: N×C×h×w (channels first) or N×T×C (tokens) or N×C, N a multiple of ``images`` where each is cropped
            several times.
        images: B.

    Raises:
        ValueError: N is no multiple of B.
    """
    if len(features) % images:
        raise ValueError(f"a layer gave {len(features)} rows for {images} images")
    flat = features.float()
    flat = flat.mean(dim=1) if flat.ndim == 3 else flat.flatten(2).mean(dim=2) if flat.ndim > 3 else flat
    return flat.reshape(images, -1, flat.shape[-1]).mean(dim=1)


def as_map(features: Tensor, shape: tuple[int, int]) -> Tensor | None:
    """Return one map an image of a layer's output, float32 N×h×w: the mean over channels; None where it has no places.

    Args:
        features: N×C×h×w, or N×T×C, whose tokens are laid on a grid of the image's proportions, leading ones left out.
        shape: Height and width of what the network was given.
    """
    if features.ndim == 4:
        return features.float().mean(dim=1)
    if features.ndim != 3:
        return None
    grid = token_grid(int(features.shape[1]), shape)
    if grid is None:
        return None
    rows, columns = grid
    tokens = features[:, -rows * columns :].float().mean(dim=2)
    return tokens.reshape(len(features), rows, columns)


def token_grid(tokens: int, shape: tuple[int, int], most: int = 8) -> tuple[int, int] | None:
    """Return the grid of patches among so many tokens, rows and columns; None where none fits.

    Args:
        tokens: Patches and at most ``most`` leading tokens (class, registers).
        shape: Height and width of the image in pixels: the grid has their proportions.
        most: Leading tokens there may be.
    """
    for rows in range(int((tokens * shape[0] / shape[1]) ** 0.5) + 1, 1, -1):
        columns = round(rows * shape[1] / shape[0])
        left = tokens - rows * columns
        if columns > 1 and 0 <= left <= most and abs(rows * shape[1] - columns * shape[0]) < shape[1]:
            return rows, columns
    return None


def is_scripted(network: nn.Module) -> bool:
    """Whether a network is a TorchScript program, whose inner layers call no hooks."""
    return isinstance(network, torch.jit.ScriptModule | torch.jit.ScriptFunction)

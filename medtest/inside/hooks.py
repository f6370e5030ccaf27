"""Outputs of a network's layers in a forward pass, read by temporary hooks. Imports torch.

A hook receives the same tensor as the next layer. An in-place activation (``ReLU(inplace=True)``) overwrites it
afterwards, so every capture is copied immediately.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from medtest.core.errors import Mistake, UserMistakes, nearest_name, typed_mistake

_LISTED = 8
_MOST_LEADING = 8
"""Maximum number of leading tokens (class, registers) of a transformer."""


@contextmanager
def captured(network: nn.Module, layers: Sequence[str]) -> Iterator[dict[str, Tensor]]:
    """Read layers of a network in every forward pass within the block; hooks are always removed.

    Args:
        network: The network.
        layers: Names as in ``named_modules``, "" for the network itself.

    Yields:
        Output by layer, in the order in which layers first ran: the first tensor if it returns several. A layer that
        ran several times (one activation in several places, or several passes) keeps its last output.

    Raises:
        UserMistakes: There is no such layer.
    """
    modules = found_layers(network, layers)
    outputs: dict[str, Tensor] = {}

    def keeping(name: str) -> Any:
        def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
            tensor = first_tensor(output)
            if tensor is not None:
                outputs[name] = tensor.detach().clone()

        return keep

    handles = []
    try:
        for name, module in modules.items():
            handles.append(module.register_forward_hook(keeping(name)))
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def found_layers(network: nn.Module, layers: Sequence[str]) -> dict[str, nn.Module]:
    """Return the modules of layers.

    Args:
        network: The network.
        layers: Their names.

    Raises:
        UserMistakes: Layers do not exist; one mistake each, with the nearest names.
    """
    modules = dict(network.named_modules())
    modules.pop("", None)
    missing = [name for name in layers if name and name not in modules]
    if missing:
        raise UserMistakes([_unknown(name, modules) for name in missing])
    return {name: modules[name] if name else network for name in layers}


def _unknown(name: str, modules: Mapping[str, Any]) -> Mistake:
    parts = name.split(".")
    at = max((n for n in range(len(parts)) if ".".join(parts[:n]) in modules or not n), default=0)
    prefix = ".".join(parts[:at])
    below = [module for module in modules if not prefix or module.startswith(f"{prefix}.")]
    shown = [module for module in below if module.count(".") == at][:_LISTED]
    more = f" … ({len(modules)} in all)" if len(modules) > len(shown) else ""
    nearest = nearest_name(name, below) or nearest_name(name, modules)
    fix = "print(dict(network.named_modules())) lists a network's layers; layers=[a,b] takes several"
    return typed_mistake("layers", f"the layer {name}", ", ".join(shown) + more, fix, nearest)


def first_tensor(output: Any) -> Tensor | None:
    """Return the first floating-point tensor with at least two dimensions in a layer's output, or None."""
    if isinstance(output, Tensor):
        return output if output.is_floating_point() and output.ndim > 1 else None
    values = output.values() if isinstance(output, Mapping) else output if isinstance(output, list | tuple) else ()
    return next((tensor for value in values if (tensor := first_tensor(value)) is not None), None)


def pooled(features: Tensor, images: int) -> Tensor:
    """Return one vector per image of a layer's output, float32 B×C: the mean over positions, tokens and crops.

    Args:
        features: N×C×h×w (channels first) or N×T×C (tokens) or N×C, N a multiple of ``images`` where each is cropped
            several times.
        images: Number of images B.

    Raises:
        ValueError: N is not a multiple of B.
    """
    if len(features) % images:
        raise ValueError(f"a layer gave {len(features)} rows for {images} images")
    flat = features.float()
    flat = flat.mean(dim=1) if flat.ndim == 3 else flat.flatten(2).mean(dim=2) if flat.ndim > 3 else flat
    return flat.reshape(images, -1, flat.shape[-1]).mean(dim=1)


def as_map(features: Tensor, shape: tuple[int, int]) -> Tensor | None:
    """Return one map per image of a layer's output, float32 N×h×w: the mean over channels; None without positions.

    Args:
        features: N×C×h×w, or N×T×C, whose tokens are arranged on a grid of the image's proportions, without leading
            ones.
        shape: Height and width of the network's input.
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


def token_grid(tokens: int, shape: tuple[int, int]) -> tuple[int, int] | None:
    """Return rows and columns of the grid of patches among tokens; None if none fits.

    Args:
        tokens: Patches and at most eight leading tokens (class, registers).
        shape: Height and width of the image in pixels, which set the proportions of the grid.
    """
    for rows in range(int((tokens * shape[0] / shape[1]) ** 0.5) + 1, 1, -1):
        columns = round(rows * shape[1] / shape[0])
        leading = tokens - rows * columns
        if columns > 1 and 0 <= leading <= _MOST_LEADING and abs(rows * shape[1] - columns * shape[0]) < shape[1]:
            return rows, columns
    return None


def is_scripted(network: nn.Module) -> bool:
    """Return True if a network is a TorchScript program, whose inner layers call no hooks."""
    return isinstance(network, torch.jit.ScriptModule | torch.jit.ScriptFunction)

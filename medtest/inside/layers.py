"""Selection of inspected layers: published names, defaults for known families, and any network's own.

Robust-Benchmark (Xu et al., Medical Image Analysis 2021, figures 6 and 7) names AttnMel's layers by their position in
VGG-16 with batch norms, ``feature(13) relu``; these names are translated. Layers of other networks are found in a
forward pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from medtest.inside.hooks import captured, found_layers

if TYPE_CHECKING:
    from torch import nn

_VGG = re.compile(r"features?[.(]?(\d+)\)?(?:[ ._]?relu)?")
_BLOCKS = (2, 2, 3, 3, 3)
"""Convolutions in each block of VGG-16; each has a norm and an activation, and a pool ends the block."""
_FAMILIES: tuple[tuple[str, ...], ...] = (
    ("conv_block2", "conv_block4", "conv_block5"),
    *(
        tuple(f"{stem}features.{name}" for name in ("transition1", "transition2", "transition3", "norm5"))
        for stem in ("", "densenet121.")
    ),
    *(tuple(f"{stem}{name}" for name in ("maxpool2", "Mixed_5d", "Mixed_6e", "Mixed_7c")) for stem in ("", "model.")),
    *(tuple(f"{stem}layer{n}" for n in (1, 2, 3, 4)) for stem in ("", "model.", "backbone.", "encoder.")),
)
"""Layers of known families; the first entry found completely is used. AttnMel's are those of figures 6 and 7."""
MOST = 4


def translated(name: str, network: nn.Module) -> str:
    """Return a layer's name in the network; AttnMel also accepts positions in VGG-16 (``feature(13) relu``).

    The pools of the published network are functions here; the position of a pool means the activation before it.
    """
    typed = name.strip()
    names = {own for own, _ in network.named_modules()}
    if typed in names:
        return typed
    match = _VGG.fullmatch(typed.lower())
    if match is None or "conv_block1" not in names:
        return typed
    place = int(match[1])
    for number, convolutions in enumerate(_BLOCKS, 1):
        if place < 3 * convolutions:
            return f"conv_block{number}.{place}"
        if place == 3 * convolutions:
            return f"conv_block{number}"
        place -= 3 * convolutions + 1
    return typed


def chosen_layers(network: nn.Module, requested: Sequence[str], run: Callable[[], Any]) -> list[str]:
    """Return the layers to inspect.

    Args:
        network: The network.
        requested: Names, published or the network's own; empty for defaults.
        run: Runs a forward pass.

    Raises:
        UserMistakes: There is no such layer.
    """
    if requested:
        names = list(dict.fromkeys(translated(name, network) for name in requested))
        found_layers(network, names)
        return names
    modules = dict(network.named_modules())
    for family in _FAMILIES:
        if all(name in modules for name in family):
            return list(family)
    return _seen(network, run)


def _seen(network: nn.Module, run: Callable[[], Any]) -> list[str]:
    """Return the last layer at each of the deepest sizes, or evenly spaced blocks for tokens."""
    names = [name for name, module in network.named_modules() if name]
    with captured(network, names) as outputs:
        run()
    maps = {name: tuple(output.shape[2:]) for name, output in outputs.items() if output.ndim == 4}
    maps = {name: size for name, size in maps.items() if min(size) > 1}
    tokens = [name for name, output in outputs.items() if output.ndim == 3]
    if len(tokens) > len(maps):
        blocks = _blocks(tokens)
        return [blocks[round((n + 1) * len(blocks) / MOST) - 1] for n in range(min(MOST, len(blocks)))]
    last = {size: name for name, size in maps.items()}
    return list(last.values())[-MOST:] if maps else list(outputs)[-1:]


def _blocks(names: Sequence[str]) -> list[str]:
    """Return the repeated blocks of a transformer: the outermost layers whose names end in a number."""
    ended = [name for name in names if name.rpartition(".")[2].isdigit()]
    depth = min((name.count(".") for name in ended), default=0)
    blocks = [name for name in ended if name.count(".") == depth]
    return blocks or list(names)

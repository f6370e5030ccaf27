"""Which layers are looked at: published names, those that are sensible for a family, and any network's own.

Robust-Benchmark (Xu et al., Medical Image Analysis 2021, figures 6 and 7) names AttnMel's layers by their place in
VGG-16 with batch norms, ``feature(13) relu``; they are translated. Which layers a network has is seen in a pass.
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
"""Layers of known families; the first of which all are there is taken: AttnMel's are those of figures 6 and 7."""
MOST = 4


def translated(name: str, network: nn.Module) -> str:
    """Return a layer's name in the network: of AttnMel also the published place in VGG-16 (``feature(13) relu``).

    The pools of the published network are functions in ours; the place of a pool means the activation before it.
    """
    given = name.strip()
    known = {own for own, _ in network.named_modules()}
    if given in known:
        return given
    match = _VGG.fullmatch(given.lower())
    if match is None or "conv_block1" not in known:
        return given
    place = int(match[1])
    for number, convolutions in enumerate(_BLOCKS, 1):
        if place < 3 * convolutions:
            return f"conv_block{number}.{place}"
        if place == 3 * convolutions:
            return f"conv_block{number}"
        place -= 3 * convolutions + 1
    return given


def chosen_layers(network: nn.Module, wanted: Sequence[str], run: Callable[[], Any]) -> list[str]:
    """Return the layers to look at.

    Args:
        network: The network.
        wanted: Names, published or the network's own; none for sensible ones.
        run: Runs a forward pass.

    Raises:
        UserMistakes: There is no such layer.
    """
    if wanted:
        names = list(dict.fromkeys(translated(name, network) for name in wanted))
        found_layers(network, names)
        return names
    known = dict(network.named_modules())
    for family in _FAMILIES:
        if all(name in known for name in family):
            return list(family)
    return _seen(network, run)


def _seen(network: nn.Module, run: Callable[[], Any]) -> list[str]:
    """Return the last layer at each of the deepest sizes, or blocks at equal distances among those of tokens."""
    names = [name for name, module in network.named_modules() if name]
    with captured(network, names) as kept:
        run()
        maps = {name: tuple(kept.outputs[name].shape[2:]) for name in kept.order if kept.outputs[name].ndim == 4}
        maps = {name: size for name, size in maps.items() if min(size) > 1}
        tokens = {name: kept.outputs[name].shape[1:] for name in kept.order if kept.outputs[name].ndim == 3}
        order = list(dict.fromkeys(kept.order))
    if len(tokens) > len(maps):
        blocks = _blocks(list(tokens))
        return [blocks[round((n + 1) * len(blocks) / MOST) - 1] for n in range(min(MOST, len(blocks)))]
    last: dict[tuple[int, ...], str] = {}
    for name in (one for one in order if one in maps):
        last[maps[name]] = name
    return list(last.values())[-MOST:] if maps else order[-1:]


def _blocks(names: Sequence[str]) -> list[str]:
    """Return the repeated blocks of a transformer: the highest layers whose names end in a number."""
    ended = [name for name in names if name.rpartition(".")[2].isdigit()]
    depth = min((name.count(".") for name in ended), default=0)
    found = [name for name in ended if name.count(".") == depth]
    return found or list(names)

"""Which networks there are: the published ones by name, their compact siblings, and both from a plain description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, TypeAlias, get_args, get_type_hints

from torch import nn

from medtest.errors import MedtestError, nearest_name
from medtest.systems.segmentation.networks.mit import MitConfig
from medtest.systems.segmentation.networks.pranet import PraNet, PraNetConfig
from medtest.systems.segmentation.networks.res2net import Res2NetConfig
from medtest.systems.segmentation.networks.sanet import SANet, SANetConfig
from medtest.systems.segmentation.networks.ssformer import SSFORMER_L, SSFORMER_S, SSFormer, SSFormerConfig
from medtest.systems.segmentation.networks.tganet import TGANet, TGANetConfig

NetworkConfig: TypeAlias = PraNetConfig | SANetConfig | TGANetConfig | SSFormerConfig

PUBLISHED: dict[str, NetworkConfig] = {
    "pranet": PraNetConfig(),
    "sanet": SANetConfig(),
    "tganet": TGANetConfig(),
    "ssformer_s": SSFORMER_S,
    "ssformer_l": SSFORMER_L,
}
"""The published networks."""

_SMALL_RES2NET = Res2NetConfig(
    stem=(16, 16, 32), planes=(24, 40, 72, 112), blocks=(2, 2, 3, 2), base_width=32, classes=0
)

COMPACT: dict[str, NetworkConfig] = {
    "pranet": PraNetConfig(
        backbone=_SMALL_RES2NET,
        channels=24,
        coarse_width=64,
        coarse_kernel=3,
        fine_width=32,
    ),
    "sanet": SANetConfig(backbone=_SMALL_RES2NET, channels=64),
    "tganet": TGANetConfig(backbone=_SMALL_RES2NET, channels=24, squeeze=4, own_words=True),
    "ssformer": SSFormerConfig(
        backbone=MitConfig(
            widths=(32, 64, 128, 192), depths=(2, 2, 3, 2), heads=(1, 2, 4, 6), drop_path=0.05, stem=(16, 24)
        ),
        embed=48,
        unused_fuse=False,
    ),
}
"""Small siblings of the same classes, whose trained weights ship with medtest."""

_CLASSES: dict[str, tuple[type[nn.Module], type[Any]]] = {
    "pranet": (PraNet, PraNetConfig),
    "sanet": (SANet, SANetConfig),
    "tganet": (TGANet, TGANetConfig),
    "ssformer": (SSFormer, SSFormerConfig),
}


def make(config: NetworkConfig) -> nn.Module:
    """Return an untrained network of this description, in evaluation mode."""
    network: nn.Module = _CLASSES[family_of(config)][0](config)
    return network.eval()


def family_of(config: NetworkConfig) -> str:
    """Return the family of a configuration: ``pranet``, ``sanet``, ``tganet`` or ``ssformer``."""
    return next(family for family, (_, kind) in _CLASSES.items() if isinstance(config, kind))


def published(name: str) -> nn.Module:
    """Return the untrained published network of this name, in evaluation mode.

    Raises:
        MedtestError: There is no such network.
    """
    if name not in PUBLISHED:
        near = nearest_name(name, PUBLISHED)
        hint = f"; did you mean {near}?" if near else ""
        raise MedtestError(f"no network is called {name!r}; there are {', '.join(PUBLISHED)}{hint}")
    return make(PUBLISHED[name])


def describe(config: NetworkConfig) -> dict[str, Any]:
    """Return a network's description as JSON values, with its family under ``family``."""
    return {"family": family_of(config), **asdict(config)}


def from_description(description: Mapping[str, Any]) -> NetworkConfig:
    """Return the configuration that :func:`describe` wrote.

    Raises:
        MedtestError: The description is not one of ours.
    """
    values = dict(description)
    family = values.pop("family", None)
    if family not in _CLASSES:
        raise MedtestError(f"the weights describe a network of an unknown family: {family!r}")
    config: NetworkConfig = _rebuild(_CLASSES[family][1], values)
    return config


def _rebuild(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """Make a configuration dataclass from JSON values; lists become tuples, nested objects nested configurations."""
    hints = get_type_hints(kind)
    unknown = sorted(set(values) - {item.name for item in fields(kind)})
    if unknown:
        raise MedtestError(f"the weights describe a network with unknown settings: {', '.join(unknown)}")
    made: dict[str, Any] = {}
    for key, value in values.items():
        hint = hints[key]
        if isinstance(value, Mapping):
            made[key] = _rebuild(_kind_of(hint, value), value)
        else:
            made[key] = tuple(value) if isinstance(value, list) else value
    return kind(**made)


def _kind_of(hint: Any, values: Mapping[str, Any]) -> type[Any]:
    """Return the configuration dataclass of a type hint, and of several the one whose settings these are."""
    kinds = [k for k in (get_args(hint) or (hint,)) if isinstance(k, type) and is_dataclass(k)]
    fitting = [kind for kind in kinds if {item.name for item in fields(kind)} >= set(values)]
    if not kinds:
        raise MedtestError("the weights describe a network with settings where a value belongs")
    return max(fitting or kinds, key=lambda kind: len({item.name for item in fields(kind)} & set(values)))

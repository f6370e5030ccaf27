"""Registry of networks of every kind: published ones by name, compact siblings, and descriptions of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, TypeAlias, get_args, get_type_hints

from torch import nn

from medtest.core.errors import MedtestError, did_you_mean
from medtest.systems.classification.networks.agdn import AGDN, AGDNConfig
from medtest.systems.classification.networks.attnmel import AttnMel, AttnMelConfig
from medtest.systems.classification.networks.chexnet import CheXNet, CheXNetConfig
from medtest.systems.classification.networks.dsinet import DSINet, DSINetConfig
from medtest.systems.classification.networks.inception import InceptionConfig, InceptionDR
from medtest.systems.classification.networks.lesions import LesionNet, LesionNetConfig
from medtest.systems.classification.networks.xception import XceptionConfig
from medtest.systems.segmentation.networks.mit import MitConfig
from medtest.systems.segmentation.networks.pranet import PraNet, PraNetConfig
from medtest.systems.segmentation.networks.res2net import Res2NetConfig
from medtest.systems.segmentation.networks.sanet import SANet, SANetConfig
from medtest.systems.segmentation.networks.ssformer import SSFORMER_L, SSFORMER_S, SSFormer, SSFormerConfig
from medtest.systems.segmentation.networks.tganet import TGANet, TGANetConfig

NetworkConfig: TypeAlias = Any
"""Configuration of a network family: a frozen dataclass of numbers, strings, booleans, tuples of them and further
such dataclasses, so that it can be stored as JSON.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Networks of one class that differ in their configurations.

    Attributes:
        network: Class of the networks; created from a configuration, untrained.
        published: The published networks' configurations by name.
        compact: The configuration of the small network whose weights ship with medtest.
    """

    network: type[nn.Module]
    published: Mapping[str, NetworkConfig]
    compact: NetworkConfig


_SMALL_RES2NET = Res2NetConfig(
    stem=(16, 16, 32), planes=(24, 40, 72, 112), blocks=(2, 2, 3, 2), base_width=32, classes=0
)
_SMALL_MIT = MitConfig(
    widths=(32, 64, 128, 192), depths=(2, 2, 3, 2), heads=(1, 2, 4, 6), drop_path=0.05, stem=(16, 24)
)
_SMALL_XCEPTION = XceptionConfig(stem=(8, 16), entry=(24, 48, 96), middle=3, last=112, tail=(112, 112, 128))

SEGMENTATION: dict[str, Family] = {
    "pranet": Family(
        network=PraNet,
        published={"pranet": PraNetConfig()},
        compact=PraNetConfig(backbone=_SMALL_RES2NET, channels=24, coarse_width=64, coarse_kernel=3, fine_width=32),
    ),
    "sanet": Family(
        network=SANet, published={"sanet": SANetConfig()}, compact=SANetConfig(backbone=_SMALL_RES2NET, channels=64)
    ),
    "tganet": Family(
        network=TGANet,
        published={"tganet": TGANetConfig()},
        compact=TGANetConfig(backbone=_SMALL_RES2NET, channels=24, squeeze=4, own_words=True),
    ),
    "ssformer": Family(
        network=SSFormer,
        published={"ssformer_s": SSFORMER_S, "ssformer_l": SSFORMER_L},
        compact=SSFormerConfig(backbone=_SMALL_MIT, embed=48, unused_fuse=False),
    ),
}
CLASSIFICATION: dict[str, Family] = {
    "agdn": Family(
        network=AGDN,
        published={"agdn": AGDNConfig()},
        compact=AGDNConfig(first=12, growth=12, bottleneck=3, layers=(1, 4, 8, 6)),
    ),
    "dsinet": Family(
        network=DSINet,
        published={"dsinet": DSINetConfig()},
        compact=DSINetConfig(
            backbone=_SMALL_XCEPTION, shortcut=12, aspp=24, head=16, points=50, gate=25, cls=(112, 112, 128), context=16
        ),
    ),
    "attnmel": Family(
        network=AttnMel,
        published={"attnmel": AttnMelConfig()},
        compact=AttnMelConfig(widths=(8, 24, 48, 96, 192), attention_width=64),
    ),
    "inceptionv3_dr": Family(
        network=InceptionDR,
        published={"inceptionv3_dr": InceptionConfig()},
        # Without the auxiliary head, which needs inputs of 299 pixels and is not in the recipe's loss.
        compact=InceptionConfig(sixteenths=5, auxiliary=False),
    ),
    "chexnet": Family(
        network=CheXNet,
        published={"chexnet": CheXNetConfig()},
        compact=CheXNetConfig(growth=16, blocks=(4, 8, 16, 12), stem=32),
    ),
    "capsule_findings": Family(network=LesionNet, published={}, compact=LesionNetConfig()),
}
FAMILIES: dict[str, Family] = SEGMENTATION | CLASSIFICATION
"""Families by name, which is also the name of the system and of its compact weights."""

PUBLISHED: dict[str, NetworkConfig] = {
    name: config for family in FAMILIES.values() for name, config in family.published.items()
}
"""Configurations of the published networks."""

COMPACT: dict[str, NetworkConfig] = {name: family.compact for name, family in FAMILIES.items()}
"""Configurations of the small siblings, by family, whose trained weights ship with medtest."""


def make(config: NetworkConfig) -> nn.Module:
    """Return an untrained network with this configuration, in evaluation mode."""
    network: nn.Module = FAMILIES[family_of(config)].network(config)
    return network.eval()


def family_of(config: NetworkConfig) -> str:
    """Return the name of the family of a configuration."""
    return next(name for name, family in FAMILIES.items() if type(config) is type(family.compact))


def published(name: str) -> nn.Module:
    """Return the untrained published network of this name, in evaluation mode.

    Raises:
        MedtestError: Unknown network.
    """
    if name not in PUBLISHED:
        meant = did_you_mean(name, PUBLISHED)
        raise MedtestError(f"no network is called {name!r}{meant} There are {', '.join(PUBLISHED)}")
    return make(PUBLISHED[name])


def describe(config: NetworkConfig) -> dict[str, Any]:
    """Return a network's description as JSON values, with its family under ``family``."""
    return {"family": family_of(config), **asdict(config)}


def from_description(description: Mapping[str, Any]) -> NetworkConfig:
    """Return the configuration of a description by :func:`describe`.

    Raises:
        MedtestError: The description is not one of medtest's.
    """
    values = dict(description)
    family = values.pop("family", None)
    if family not in FAMILIES:
        raise MedtestError(f"the weights describe a network of an unknown family: {family!r}")
    return _rebuild(type(FAMILIES[family].compact), values)


def _rebuild(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """Create a configuration dataclass from JSON values; lists become tuples, nested objects nested configurations."""
    hints = get_type_hints(kind)
    unknown = sorted(set(values) - {item.name for item in fields(kind)})
    if unknown:
        raise MedtestError(f"the weights describe a network with unknown settings: {', '.join(unknown)}")
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        hint = hints[key]
        if isinstance(value, Mapping):
            arguments[key] = _rebuild(_kind_of(hint, value), value)
        else:
            arguments[key] = tuple(value) if isinstance(value, list) else value
    return kind(**arguments)


def _kind_of(hint: Any, values: Mapping[str, Any]) -> type[Any]:
    """Return the configuration dataclass of a type hint, or the best match for the settings among several."""
    kinds = [k for k in (get_args(hint) or (hint,)) if isinstance(k, type) and is_dataclass(k)]
    fitting = [kind for kind in kinds if {item.name for item in fields(kind)} >= set(values)]
    if not kinds:
        raise MedtestError("the weights describe a network with settings where a value belongs")
    return max(fitting or kinds, key=lambda kind: len({item.name for item in fields(kind)} & set(values)))

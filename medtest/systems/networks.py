"""Which networks there are, of every kind: published ones by name, compact siblings, and descriptions of both.

A family is added in the registry of its room (``segmentation/networks``, ``classification/networks``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, TypeAlias, get_args, get_type_hints

from torch import nn

from medtest.errors import MedtestError, nearest_name
from medtest.systems.checkpoints.families import Family
from medtest.systems.classification.networks.registry import FAMILIES as CLASSIFICATION
from medtest.systems.segmentation.networks.registry import FAMILIES as SEGMENTATION

NetworkConfig: TypeAlias = Any
"""A configuration of one of the families: a frozen dataclass."""

FAMILIES: dict[str, Family] = {family.name: family for family in (*SEGMENTATION, *CLASSIFICATION)}

PUBLISHED: dict[str, NetworkConfig] = {
    name: config for family in FAMILIES.values() for name, config in family.published.items()
}
"""The published networks."""

COMPACT: dict[str, NetworkConfig] = {name: family.compact for name, family in FAMILIES.items()}
"""Small siblings of the same classes, by family, whose trained weights ship with medtest."""


def make(config: NetworkConfig) -> nn.Module:
    """Return an untrained network of this description, in evaluation mode."""
    network: nn.Module = FAMILIES[family_of(config)].network(config)
    return network.eval()


def family_of(config: NetworkConfig) -> str:
    """Return the name of the family of a configuration."""
    return next(name for name, family in FAMILIES.items() if isinstance(config, family.config))


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
    if family not in FAMILIES:
        raise MedtestError(f"the weights describe a network of an unknown family: {family!r}")
    return _rebuild(FAMILIES[family].config, values)


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

"""Network, transforms and inferer of a MONAI bundle, created from plain data by an allow-list of harmless classes.

Anything else is rejected. Networks are classes of ``monai.networks`` and ``torch.nn`` that derive from
``torch.nn.Module``; the allowed transforms, which are arithmetic and geometry of arrays, are listed one by one.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from medtest.core.deferred import torch
from medtest.systems.adapters.bundles.bundle_config import TARGET, NotPlain

if TYPE_CHECKING:
    from torch import nn

NETWORK_HOMES = ("monai.networks.nets", "monai.networks.blocks", "monai.networks.layers", "torch.nn")
_MADE_IN = ("monai.networks.nets.", "monai.networks.blocks.", "monai.networks.layers.", "torch.nn.modules.")
TRANSFORMS = frozenset(
    {
        "CastToType",
        "ClipIntensityPercentiles",
        "Compose",
        "DivisiblePad",
        "EnsureChannelFirst",
        "EnsureType",
        "Flip",
        "Identity",
        "NormalizeIntensity",
        "RepeatChannel",
        "Resize",
        "ResizeWithPadOrCrop",
        "Rotate90",
        "ScaleIntensity",
        "ScaleIntensityRange",
        "ScaleIntensityRangePercentiles",
        "ShiftIntensity",
        "SpatialPad",
        "SqueezeDim",
        "ToTensor",
        "Transpose",
    }
)
"""Array transforms of MONAI (and their dictionary forms) that access nothing but their array."""
LOADER = "LoadImage"
OLD_NAMES = {"AsChannelFirst": "EnsureChannelFirst"}
INFERERS = frozenset({"SimpleInferer", "SlidingWindowInferer"})
_FETCHES = re.compile(r"pretrain|download|url", re.IGNORECASE)
_READS = re.compile(r"(^|_)(path|file|dir|folder|checkpoint|ckpt)s?$", re.IGNORECASE)
_SOURCES = re.compile(r"(^|_)(repo|filename)s?(_|$)|^path(_|$)|_file$", re.IGNORECASE)
"""Parameters of classes that always read files or repositories (MONAI's Transchex)."""
_LARGEST = 100_000
_SIZES = frozenset({"spatial_size", "k", "repeats"})
_LARGEST_SIDE = 8192


def base_name(target: str) -> tuple[str, bool]:
    """Return a transform's name without module and dictionary suffix, and whether it had the suffix."""
    name = target.rpartition(".")[2]
    for suffix in ("Dict", "d", "D"):
        stem = name.removesuffix(suffix)
        if stem != name and (stem in TRANSFORMS or stem in OLD_NAMES or stem in (LOADER, "Activations", "AsDiscrete")):
            return stem, True
    return name, False


def make_network(described: Any, at: str = "network_def") -> nn.Module:
    """Return the untrained network of a resolved description.

    Raises:
        NotPlain: It names a class that is not allowed.
    """
    network = _component(described, at)
    if not isinstance(network, torch.nn.Module):
        raise NotPlain(f"{at} names no network")
    return network


def check_network(described: object, at: str = "network_def") -> None:
    """Check names and arguments of a network's description without importing anything.

    Raises:
        NotPlain: It names a class that is not allowed.
    """
    if isinstance(described, Mapping):
        target = described.get(TARGET)
        if target is not None and not _network_home(str(target)):
            raise NotPlain(f"{at} names {str(target)[:80]!r}, which is not a network of monai.networks or torch.nn")
        for key, value in described.items():
            if _READS.search(key) and isinstance(value, str):
                raise NotPlain(f"{at}::{key} names a file: {value[:60]!r}")
            check_network(value, f"{at}::{key}")
    elif isinstance(described, Sequence) and not isinstance(described, str):
        for index, value in enumerate(described):
            check_network(value, f"{at}::{index}")
    elif isinstance(described, int) and abs(described) > _LARGEST:
        raise NotPlain(f"{at} is {described}: too large for a network")


def _network_home(target: str) -> bool:
    module, _, name = target.rpartition(".")
    homes = tuple(f"{home}." for home in NETWORK_HOMES)
    return name.isidentifier() and (not module or module in NETWORK_HOMES or module.startswith(homes))


def _component(value: Any, at: str) -> Any:
    if isinstance(value, list):
        return [_component(part, f"{at}::{index}") for index, part in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    arguments = {key: _component(part, f"{at}::{key}") for key, part in value.items() if not key.startswith("_")}
    if TARGET not in value:
        return arguments
    if value.get("_disabled_") in (True, "true", "True"):
        return None
    network_class = _network_class(str(value[TARGET]), at)
    return network_class(**_without_downloads(network_class, arguments, at))


def _without_downloads(network_class: type[Any], arguments: dict[str, Any], at: str) -> dict[str, Any]:
    """Return a class's arguments with downloads of weights disabled, because all weights come from the bundle.

    Raises:
        NotPlain: The class reads files or repositories itself.
    """
    safe = dict(arguments)
    for name, parameter in inspect.signature(network_class).parameters.items():
        if _SOURCES.search(name):
            raise NotPlain(f"{at} names {network_class.__name__}, which reads additional files ({name})")
        value = safe.get(name, parameter.default)
        if _FETCHES.search(name) and value is not inspect.Parameter.empty:  # EfficientNetBN downloads by default
            safe[name] = False if isinstance(value, bool) else None
    return safe


def _network_class(target: str, at: str) -> Any:
    module, _, name = target.rpartition(".")
    for home in [module] if module else NETWORK_HOMES:
        try:
            candidate = getattr(importlib.import_module(home), name, None)
        except ImportError:
            continue
        genuine = isinstance(candidate, type) and issubclass(candidate, torch.nn.Module)
        if genuine and candidate is not None and f"{candidate.__module__}.".startswith(_MADE_IN):
            return candidate
    raise NotPlain(f"{at} names {target[:80]!r}, which the installed MONAI and torch do not have as a network")


def listed_transforms(described: Any, at: str) -> list[dict[str, Any]]:
    """Return the transforms of a resolved description as a flat list, checked by name.

    Raises:
        NotPlain: It is not a chain of allowed transforms.
    """
    if isinstance(described, Mapping) and base_name(str(described.get(TARGET, "")))[0] == "Compose":
        extra = [key for key in described if key not in (TARGET, "transforms", "map_items", "unpack_items", "lazy")]
        if extra:
            raise NotPlain(f"{at} has {extra[0]!r}")
        inner = described.get("transforms", [])
        return [
            transform for i, item in enumerate(inner) for transform in listed_transforms(item, f"{at}::transforms::{i}")
        ]
    if isinstance(described, list):
        return [transform for i, item in enumerate(described) for transform in listed_transforms(item, f"{at}::{i}")]
    if not isinstance(described, Mapping) or not isinstance(described.get(TARGET), str):
        raise NotPlain(f"{at} is not a transform")
    if described.get("_disabled_") in (True, "true", "True"):
        return []
    target = str(described[TARGET])
    name, _ = base_name(target)
    module = target.rpartition(".")[0]
    if (module and not f"{module}.".startswith("monai.transforms.")) or (
        name not in TRANSFORMS and name != LOADER and name not in OLD_NAMES
    ):
        raise NotPlain(f"{at} is {target[:80]!r}, which is not a supported transform")
    for key in _SIZES.intersection(described):
        sides = described[key] if isinstance(described[key], list) else [described[key]]
        if any(isinstance(side, bool) or not isinstance(side, int) or abs(side) > _LARGEST_SIDE for side in sides):
            raise NotPlain(f"{at}::{key} is {str(described[key])[:60]}, which is not a size in pixels")
    return [dict(described)]


def make_transform(described: Mapping[str, Any], key: str) -> Any:
    """Return a transform of :func:`listed_transforms` in its dictionary form.

    Args:
        described: The transform.
        key: The image's key, for array transforms.

    Raises:
        NotPlain: The installed MONAI does not accept it.
    """
    from monai import transforms

    name, has_keys = base_name(str(described[TARGET]))
    arguments = {key: value for key, value in described.items() if not key.startswith("_")}
    if name in OLD_NAMES:
        name, arguments = OLD_NAMES[name], {key: value for key, value in arguments.items() if key == "keys"}
    if not has_keys:
        arguments["keys"] = key
    try:
        return getattr(transforms, f"{name}d")(**{"allow_missing_keys": True, **arguments})
    except Exception as error:
        raise NotPlain(f"{described[TARGET]} cannot be made: {type(error).__name__}: {str(error)[:200]}") from error


def make_inferer(described: Any) -> Any:
    """Return the inferer of a resolved description.

    Raises:
        NotPlain: It is not allowed, or MONAI does not accept it.
    """
    from monai import inferers

    target = str(described.get(TARGET, "")) if isinstance(described, Mapping) else ""
    module, _, name = target.rpartition(".")
    if name not in INFERERS or (module and not f"{module}.".startswith("monai.inferers.")):
        raise NotPlain(f"the inferer is {target[:80]!r}, which is not supported")
    arguments = {key: value for key, value in described.items() if not key.startswith("_")}
    try:
        return getattr(inferers, name)(**{**arguments, **({"progress": False} if "progress" in arguments else {})})
    except Exception as error:
        raise NotPlain(f"the inferer cannot be made: {type(error).__name__}: {str(error)[:200]}") from error

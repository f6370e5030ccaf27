"""Plan of the parts of a MONAI bundle to run, from its files only: network, weights, pre- and postprocessing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from medtest.core.errors import MedtestError
from medtest.systems.adapters.bundles.bundle_config import TARGET, NotPlain, plain, raw
from medtest.systems.adapters.bundles.bundle_files import CONFIGS, METADATA, SCRIPT, STATE, BundleFiles
from medtest.systems.adapters.bundles.bundle_parts import LOADER, base_name, check_network, listed_transforms

NETWORKS = ("network_def", "network", "net")
_LOADER_KEYS = (TARGET, "keys", "reverse_indexing", "ensure_channel_first", "_disabled_")
_DEVICES = ("device", "sw_device")

Wanted: TypeAlias = Literal["auto", "bundle", "default"]


@dataclass(frozen=True, kw_only=True)
class Before:
    """Preprocessing of an image before the network.

    Attributes:
        transforms: The bundle's transforms after loading, as data; None for medtest's own preprocessing.
        key: The image's key in the bundle's dictionaries.
        swapped: Whether rows are the network's last axis, as in MONAI's image readers.
        reason: Reason why the bundle's own are not used.
    """

    transforms: tuple[Mapping[str, Any], ...] | None = None
    key: str = "image"
    swapped: bool = False
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class After:
    """Postprocessing of the network's output.

    Attributes:
        activation: Its activation, "" if none is stated.
        argmax: Whether the class with the largest score wins.
        threshold: Its threshold, None if not stated.
        left_out: Names of its transforms that medtest does not apply.
    """

    activation: Literal["", "sigmoid", "softmax"] = ""
    argmax: bool = False
    threshold: float | None = None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BundlePlan:
    """Parts of a bundle to run.

    Attributes:
        config_name: Name of the configuration file.
        config: The unresolved configuration.
        network_key: The entry that describes the network; "" for a TorchScript archive.
        network: The network's description as plain data; None if it is not plain and the user trusts the bundle.
        weights: The file of weights, or the TorchScript archive.
        before: Preprocessing.
        after: Postprocessing.
        inferer: The inferer as plain data, or None for one plain forward pass.
        inferer_reason: Reason why the bundle's own inferer is not used.
        names: Names of the classes, None if the bundle does not state their number.
        channels: Number of input channels.
    """

    config_name: str
    config: Mapping[str, Any]
    network_key: str
    network: Any
    weights: str
    before: Before
    after: After
    inferer: Any
    inferer_reason: str
    names: tuple[str, ...] | None
    channels: int


def plan_bundle(files: BundleFiles, *, system: str, trust: bool, preprocessing: Wanted) -> BundlePlan:
    """Plan the parts of a bundle to run.

    Args:
        files: The bundle's files.
        system: The system's id, for messages.
        trust: Whether the user allows the bundle to run code.
        preprocessing: ``bundle`` requires its transforms, ``default`` ignores them.

    Raises:
        MedtestError: It cannot be run, or not without trust; the message gives the reason.
    """
    name = files.first(CONFIGS)
    if name is None:
        raise MedtestError(f"{files.path.name}: no {CONFIGS[0]} (or .yaml); it is not a MONAI bundle")
    config = files.table(name)
    metadata_name = files.first(METADATA)
    metadata = files.table(metadata_name) if metadata_name else {}
    key, network, weights = _network(files, config, system=system, trust=trust)
    before = _before(config, preprocessing, trust=trust)
    inferer, inferer_reason = _inferer(config)
    _flat(files, network, metadata)
    return BundlePlan(
        config_name=name,
        config=config,
        network_key=key,
        network=network,
        weights=weights,
        before=before,
        after=_after(config),
        inferer=inferer,
        inferer_reason=inferer_reason,
        names=_names(network, metadata),
        channels=_channels(network, metadata),
    )


def _network(files: BundleFiles, config: Mapping[str, Any], *, system: str, trust: bool) -> tuple[str, Any, str]:
    """Return the network's entry, its plain description and the file of weights."""
    state, script = files.first(STATE), files.first(SCRIPT)
    key = next((name for name in NETWORKS if name in config), "")
    reason = f"{CONFIGS[0]} describes no network ({', '.join(NETWORKS)})"
    if key and state:
        try:
            described = plain(config, key)
            check_network(described, key)
            if not isinstance(described, Mapping) or TARGET not in described:
                raise NotPlain(f"{key} names no class")
        except NotPlain as error:
            reason = str(error)
            if trust:
                return key, None, state
        else:
            return key, described, state
    if script and trust:
        return "", None, script
    if not state and not script:
        raise MedtestError(f"{files.path.name}: no weights ({STATE[0]}, or {SCRIPT[0]})")
    if not state:
        reason = f"its network is a TorchScript archive ({SCRIPT[0]}), which is a program"
    raise MedtestError(
        f"{files.path.name}: medtest runs no code of a bundle by default: {reason}. If you trust its authors as "
        f"you trust a program you install, add systems.{system}.trust=true"
    )


def _before(config: Mapping[str, Any], choice: Wanted, *, trust: bool) -> Before:
    if choice == "default":
        return Before(reason="as you asked")
    try:
        if "preprocessing" not in config:
            raise NotPlain("the bundle has no preprocessing")
        if trust:
            return _trusted_before(config)
        transforms = listed_transforms(plain(config, "preprocessing", _trim_loader), "preprocessing")
        return _after_loading(transforms)
    except NotPlain as error:
        if choice == "bundle":
            raise MedtestError(f"the bundle's preprocessing cannot be used: {error}") from error
        return Before(reason=str(error))


def _trusted_before(config: Mapping[str, Any]) -> Before:
    """Return unresolved transforms with their positions, to be created by MONAI's own parser."""
    try:
        return _after_loading(listed_transforms(plain(config, "preprocessing", _trim_loader), "preprocessing"))
    except NotPlain:
        pass
    listed = raw(config, "preprocessing::transforms")
    if not isinstance(listed, list) or not all(isinstance(transform, Mapping) for transform in listed):
        raise NotPlain("preprocessing::transforms is not a list of transforms")
    placed = []
    for index, transform in enumerate(listed):
        loads = base_name(str(transform.get(TARGET, "")))[0] == LOADER
        keys = plain({**config, "_keys_": transform.get("keys", "")}, "_keys_")
        placed.append({**(_trim_loader(transform) if loads else {**transform, "_place_": index}), "keys": keys})
    return _after_loading(placed)


def _trim_loader(transform: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Reduce a loading transform to its relevant settings, because the picture is already loaded."""
    if base_name(str(transform.get(TARGET, "")))[0] != LOADER:
        return transform
    settings = {key: transform[key] for key in _LOADER_KEYS if key in transform}
    if str(transform.get("reader", "")).endswith("NumpyReader"):
        settings["reverse_indexing"] = False
    return settings


def _after_loading(listed: list[Any]) -> Before:
    key, swapped, rest = "", False, []
    for transform in listed:
        name, _ = base_name(str(transform.get(TARGET, "")))
        keys = transform.get("keys", "")
        key = key or str(keys[0] if isinstance(keys, list) and keys else keys or "")
        if name != LOADER:
            rest.append(transform)
            continue
        swapped = transform.get("reverse_indexing", True) is not False
        if transform.get("ensure_channel_first") is True:
            rest.append({TARGET: "EnsureChannelFirst"})
    if key.startswith(("@", "$", "%")):
        raise NotPlain(f"the image's key is {key[:60]!r}")
    return Before(transforms=tuple(rest), key=key or "image", swapped=swapped)


def _after(config: Mapping[str, Any]) -> After:
    listed = raw(config, "postprocessing::transforms")
    activation: Literal["", "sigmoid", "softmax"] = ""
    argmax, threshold, left_out = False, None, []
    for transform in listed if isinstance(listed, list) else []:
        target = str(transform.get(TARGET, "?")) if isinstance(transform, Mapping) else "?"
        name, _ = base_name(target)
        if name == "Activations":
            activation = (
                "softmax" if transform.get("softmax") is True else "sigmoid" if transform.get("sigmoid") is True else ""
            )
        elif name == "AsDiscrete":
            argmax = argmax or transform.get("argmax") is True
            cut = transform.get("threshold")
            if isinstance(cut, float | int) and not isinstance(cut, bool) and 0 < cut < 1:
                threshold = float(cut)
        elif name not in ("Invert", "Invertd", "SaveImage", "SaveImaged", "EnsureType", "ToTensor"):
            left_out.append(target[:60])
    return After(activation=activation, argmax=argmax, threshold=threshold, left_out=tuple(left_out))


def _inferer(config: Mapping[str, Any]) -> tuple[Any, str]:
    inferer = raw(config, "inferer")
    if not isinstance(inferer, Mapping):
        return None, ""
    trimmed = {key: value for key, value in inferer.items() if key not in _DEVICES}
    try:
        return plain({**config, "inferer": trimmed}, "inferer"), ""
    except NotPlain as error:
        return None, str(error)


def _outputs(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(raw(metadata, "network_data_format::outputs::pred"))


def _inputs(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(raw(metadata, "network_data_format::inputs::image"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _names(network: Any, metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    described = _mapping(network)
    counts = [described.get(key) for key in ("out_channels", "num_classes", "classes")]
    counts.append(_outputs(metadata).get("num_channels"))
    count = next(
        (number for number in counts if isinstance(number, int) and not isinstance(number, bool) and number > 0), None
    )
    if count is None:
        return None
    named = {str(key): str(value) for key, value in _mapping(_outputs(metadata).get("channel_def")).items()}
    if count == 1 and len(named) == 2:  # some describe the values of a binary map here instead of its channels
        return (named.get("1", "class 0"),)
    return tuple(named.get(str(index), f"class {index}") for index in range(count))


def _channels(network: Any, metadata: Mapping[str, Any]) -> int:
    channels = _mapping(network).get("in_channels", _inputs(metadata).get("num_channels", 3))
    if channels not in (1, 3):
        raise MedtestError(f"the bundle's network takes {channels!r} channels; medtest gives three (RGB) or one (grey)")
    return int(channels)


def _flat(files: BundleFiles, network: Any, metadata: Mapping[str, Any]) -> None:
    shape = _inputs(metadata).get("spatial_shape")
    solid = _mapping(network).get("spatial_dims", _mapping(network).get("dimensions", 2)) == 3
    if solid or (network is None and isinstance(shape, list) and len(shape) == 3):
        raise MedtestError(f"{files.path.name}: its network takes volumes; medtest gives single images")

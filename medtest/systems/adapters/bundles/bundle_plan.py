"""What of a MONAI bundle is run, decided from its files alone: network, weights, transforms before and after."""

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
    """What is done to an image before the network.

    Attributes:
        transforms: The bundle's transforms after loading, as data; None for medtest's own preprocessing.
        key: The image's key in the bundle's dictionaries.
        swapped: Whether the network sees rows as its last axis, as MONAI's readers load pictures.
        reason: Why the bundle's own are not used.
    """

    transforms: tuple[Mapping[str, Any], ...] | None = None
    key: str = "image"
    swapped: bool = False
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class After:
    """What the bundle does to the network's output.

    Attributes:
        activation: Its activation, "" where it states none.
        argmax: Whether the class with the largest score wins.
        threshold: Where it cuts, None where it does not say.
        left_out: Names of its transforms that medtest does not apply.
    """

    activation: Literal["", "sigmoid", "softmax"] = ""
    argmax: bool = False
    threshold: float | None = None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BundlePlan:
    """What of a bundle is run.

    Attributes:
        config_name: Its configuration's file.
        config: The configuration as it stands.
        network_key: The entry that describes the network; "" where a TorchScript archive is run.
        network: The network's description as plain data; None where it is not plain and the user trusts the bundle.
        weights: The file of weights, or the TorchScript archive.
        before: What is done before the network.
        after: What is done after it.
        inferer: The inferer as plain data, or None for one plain forward pass.
        inferer_reason: Why the bundle's own inferer is not used.
        names: Names of the classes, None where the bundle does not say how many there are.
        channels: Channels the network takes.
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
    """Decide what of a bundle is run.

    Args:
        files: The bundle's files.
        system: The system's id, for messages.
        trust: Whether the user lets the bundle run code.
        preprocessing: ``bundle`` insists on its transforms, ``default`` leaves them.

    Raises:
        MedtestError: Nothing of it can be run, or not without trust; the message says why.
    """
    name = files.first(CONFIGS)
    if name is None:
        raise MedtestError(f"{files.path.name}: no {CONFIGS[0]} (or .yaml); it is no MONAI bundle")
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
    key = next((one for one in NETWORKS if one in config), "")
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
        f"{files.path.name}: medtest runs no code of a bundle unless you say so: {reason}. If you trust its authors as "
        f"you trust a program you install, add systems.{system}.trust=true"
    )


def _before(config: Mapping[str, Any], wanted: Wanted, *, trust: bool) -> Before:
    if wanted == "default":
        return Before(reason="as you asked")
    try:
        if "preprocessing" not in config:
            raise NotPlain("the bundle has no preprocessing")
        if trust:
            return _trusted_before(config)
        found = listed_transforms(plain(config, "preprocessing", _trim_loader), "preprocessing")
        return _after_loading(found)
    except NotPlain as error:
        if wanted == "bundle":
            raise MedtestError(f"the bundle's preprocessing cannot be used as it stands: {error}") from error
        return Before(reason=str(error))


def _trusted_before(config: Mapping[str, Any]) -> Before:
    """Return the transforms as they stand, each with its place, for MONAI's own parser to make."""
    try:
        return _after_loading(listed_transforms(plain(config, "preprocessing", _trim_loader), "preprocessing"))
    except NotPlain:
        pass
    listed = raw(config, "preprocessing::transforms")
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise NotPlain("preprocessing::transforms is no list of transforms")
    placed = []
    for index, one in enumerate(listed):
        loads = base_name(str(one.get(TARGET, "")))[0] == LOADER
        keys = plain({**config, "_keys_": one.get("keys", "")}, "_keys_")
        placed.append({**(_trim_loader(one) if loads else {**one, "_place_": index}), "keys": keys})
    return _after_loading(placed)


def _trim_loader(given: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Leave of a loading transform what matters here: the picture is loaded already."""
    if base_name(str(given.get(TARGET, "")))[0] != LOADER:
        return given
    kept = {key: given[key] for key in _LOADER_KEYS if key in given}
    if str(given.get("reader", "")).endswith("NumpyReader"):
        kept["reverse_indexing"] = False
    return kept


def _after_loading(found: list[Any]) -> Before:
    key, swapped, rest = "", False, []
    for one in found:
        name, _ = base_name(str(one.get(TARGET, "")))
        keys = one.get("keys", "")
        key = key or str(keys[0] if isinstance(keys, list) and keys else keys or "")
        if name != LOADER:
            rest.append(one)
            continue
        swapped = one.get("reverse_indexing", True) is not False
        if one.get("ensure_channel_first") is True:
            rest.append({TARGET: "EnsureChannelFirst"})
    if key.startswith(("@", "$", "%")):
        raise NotPlain(f"the image's key is {key[:60]!r}")
    return Before(transforms=tuple(rest), key=key or "image", swapped=swapped)


def _after(config: Mapping[str, Any]) -> After:
    listed = raw(config, "postprocessing::transforms")
    activation: Literal["", "sigmoid", "softmax"] = ""
    argmax, threshold, left_out = False, None, []
    for one in listed if isinstance(listed, list) else []:
        target = str(one.get(TARGET, "?")) if isinstance(one, Mapping) else "?"
        name, _ = base_name(target)
        if name == "Activations":
            activation = "softmax" if one.get("softmax") is True else "sigmoid" if one.get("sigmoid") is True else ""
        elif name == "AsDiscrete":
            argmax = argmax or one.get("argmax") is True
            cut = one.get("threshold")
            if isinstance(cut, float | int) and not isinstance(cut, bool) and 0 < cut < 1:
                threshold = float(cut)
        elif name not in ("Invert", "Invertd", "SaveImage", "SaveImaged", "EnsureType", "ToTensor"):
            left_out.append(target[:60])
    return After(activation=activation, argmax=argmax, threshold=threshold, left_out=tuple(left_out))


def _inferer(config: Mapping[str, Any]) -> tuple[Any, str]:
    found = raw(config, "inferer")
    if not isinstance(found, Mapping):
        return None, ""
    trimmed = {key: value for key, value in found.items() if key not in _DEVICES}
    try:
        return plain({**config, "inferer": trimmed}, "inferer"), ""
    except NotPlain as error:
        return None, str(error)


def _outputs(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(raw(metadata, "network_data_format::outputs::pred"))


def _inputs(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(raw(metadata, "network_data_format::inputs::image"))


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _names(network: Any, metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    described = _mapping(network)
    counts = [described.get(key) for key in ("out_channels", "num_classes", "classes")]
    counts.append(_outputs(metadata).get("num_channels"))
    count = next((one for one in counts if isinstance(one, int) and not isinstance(one, bool) and one > 0), None)
    if count is None:
        return None
    given = {str(key): str(value) for key, value in _mapping(_outputs(metadata).get("channel_def")).items()}
    if count == 1 and len(given) == 2:  # some describe the values of a binary map there, not its channels
        return (given.get("1", "class 0"),)
    return tuple(given.get(str(index), f"class {index}") for index in range(count))


def _channels(network: Any, metadata: Mapping[str, Any]) -> int:
    found = _mapping(network).get("in_channels", _inputs(metadata).get("num_channels", 3))
    if found not in (1, 3):
        raise MedtestError(f"the bundle's network takes {found!r} channels; medtest gives three (RGB) or one (grey)")
    return int(found)


def _flat(files: BundleFiles, network: Any, metadata: Mapping[str, Any]) -> None:
    shape = _inputs(metadata).get("spatial_shape")
    solid = _mapping(network).get("spatial_dims", _mapping(network).get("dimensions", 2)) == 3
    if solid or (network is None and isinstance(shape, list) and len(shape) == 3):
        raise MedtestError(f"{files.path.name}: its network takes volumes; medtest gives single images")

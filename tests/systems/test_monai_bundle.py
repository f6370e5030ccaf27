"""MONAI bundles: the same answers as in MONAI, and no code of a bundle runs unless it is trusted."""

from __future__ import annotations

import json
import pickle
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from medtest.core.cases import Address
from medtest.core.errors import MedtestError
from medtest.core.plugins import part
from medtest.systems.adapters.bundles.bundle_config import NotPlain, plain
from medtest.systems.adapters.bundles.bundle_parts import _SOURCES, check_network, listed_transforms, make_network
from medtest.systems.base import System

sys.path.insert(0, str(Path(__file__).parent))
from tiny_networks import AFTER, BEFORE, NETWORK, write_bundle

pytestmark = pytest.mark.skipif(find_spec("monai") is None, reason="MONAI is not installed (an extra)")


def _system(path: Path, **settings: Any) -> System:
    info = part("systems", "monai")
    kind = info.load()
    system: System = kind("monai", kind.Settings(**{**info.defaults, "path": str(path), **settings}))
    return pickle.loads(pickle.dumps(system))  # as a worker gets it  # noqa: S301


def _picture() -> np.ndarray:
    coarse = np.random.default_rng(0).integers(0, 256, (8, 10, 3), dtype=np.uint8)
    return cv2.resize(coarse, (160, 128), interpolation=cv2.INTER_CUBIC)


def _answer(system: System) -> np.ndarray:
    assert not system.check()
    system.open(device="cpu", threads=1)
    first, second = system.predict([_picture(), _picture()], [Address(dataset="d", seed_id="s")] * 2)
    assert np.array_equal(first, second)
    return np.asarray(first)


def _of_monai(folder: Path, scratch: Path) -> np.ndarray:
    """Return the lesion's probability as MONAI's own parser, transforms and inferer give it, from a file."""
    import torch
    from monai.bundle import ConfigParser
    from monai.transforms import Activationsd, Invertd

    cv2.imwrite(str(scratch / "image.png"), _picture()[..., ::-1])
    parser = ConfigParser()
    parser.read_config(str(folder / "configs" / "inference.json"))
    network = parser.get_parsed_content("network_def")
    network.load_state_dict(torch.load(folder / "models" / "model.pt", weights_only=True)["model"])
    network.eval()
    before = parser.get_parsed_content("preprocessing")
    data = before({"image": str(scratch / "image.png")})
    with torch.no_grad():
        data["pred"] = parser.get_parsed_content("inferer")(data["image"][None], network)[0]
    data = Activationsd(keys="pred", softmax=True)(data)
    data = Invertd(keys="pred", transform=before, orig_keys="image", nearest_interp=False)(data)
    return np.asarray(data["pred"])[1].T  # MONAI's pictures have columns first


def test_a_bundle_answers_as_monai_does(tmp_path: Path) -> None:
    folder = tmp_path / "a bundle [1]=x"
    write_bundle(folder)
    system = _system(folder)
    assert system.notice() == ""
    answer = _answer(system)
    expected = _of_monai(folder, tmp_path)
    assert answer.shape == (128, 160)
    assert expected.std() > 0.01
    assert answer == pytest.approx(expected, abs=1e-5)
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        for path in folder.rglob("*.*"):
            archive.write(path, f"zoo/it/{path.relative_to(folder)}")
    zipped = _system(tmp_path / "b.zip")
    assert np.array_equal(_answer(zipped), answer)
    assert zipped.fingerprint() == system.fingerprint()
    trusted = _system(folder, trust=True)
    assert np.array_equal(_answer(trusted), answer)
    assert "may run code" in trusted.notice()
    assert trusted.fingerprint() != system.fingerprint()


def test_yaml_names_and_medtests_own_preprocessing(tmp_path: Path) -> None:
    import torch
    import yaml
    from monai.networks.nets import UNet

    config = write_bundle(tmp_path, postprocessing={"_target_": "Compose", "transforms": [AFTER[0]]})
    (tmp_path / "configs" / "inference.json").unlink()
    (tmp_path / "configs" / "inference.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    metadata = {"network_data_format": {"outputs": {"pred": {"channel_def": {"0": "polyp", "1": "background"}}}}}
    (tmp_path / "configs" / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    network = UNet(2, 3, 2, [4, 8, 8], [2, 2]).eval()
    network.load_state_dict(torch.load(tmp_path / "models" / "model.pt", weights_only=True)["model"])
    system = _system(tmp_path, preprocessing="default", mean=[0.5] * 3)
    ready = _picture().astype(np.float32).transpose(2, 0, 1)[None] / 255 - 0.5
    with torch.no_grad():
        from monai.inferers import SlidingWindowInferer

        scores = SlidingWindowInferer([64, 64], 2)(torch.from_numpy(ready), network)
    assert _answer(system) == pytest.approx(scores.softmax(1)[0, 0].numpy(), abs=1e-5)
    assert "medtest's own preprocessing" in system.notice()
    with pytest.raises(MedtestError, match="no class 'polyps'; did you mean polyp"):
        _system(tmp_path, lesion="polyps").open(device="cpu", threads=1)


def test_code_in_the_preprocessing_is_left_out_with_a_notice_or_refused(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    evil = {"_target_": "Lambdad", "keys": "image", "func": f"$lambda x: __import__('os').mkdir({str(touched)!r}) or x"}
    write_bundle(tmp_path / "b", preprocessing={"_target_": "Compose", "transforms": [*BEFORE, evil]})
    system = _system(tmp_path / "b")
    assert "is an expression" in system.notice()
    _answer(system)
    (mistake,) = _system(tmp_path / "b", preprocessing="bundle").check()
    assert "preprocessing cannot be used" in mistake.found
    assert not touched.exists()
    trusted = _system(tmp_path / "b", trust=True)
    trusted.open(device="cpu", threads=1)
    trusted.predict([_picture()], [Address(dataset="d", seed_id="s")])
    assert touched.exists()


def _evil_networks(touched: Path) -> list[dict[str, Any]]:
    return [
        {**NETWORK, "out_channels": f"$__import__('os').mkdir({str(touched)!r}) or 2"},
        {"_target_": "os.mkdir", "path": str(touched)},
        {"_target_": "subprocess.run", "args": ["touch", str(touched)]},
        {"_target_": "builtins.exec", "object": "1"},
        {"_target_": "monai.bundle.download", "name": "x"},
        {"_target_": "monai.networks.nets.os.mkdir", "path": str(touched)},
        {"_target_": "torch.nn.Module.__init__.__globals__", "a": 1},
        {"_target_": "torch.nn.modules.module.torch.load", "f": "x"},
        {**NETWORK, "_requires_": f"$__import__('os').mkdir({str(touched)!r})"},
        {**NETWORK, "act": {"_target_": "os.mkdir", "path": str(touched)}},
        {**NETWORK, "act": "%other.json::x"},
        {**NETWORK, "act": "@act"},
        {**NETWORK, "_mode_": "debug"},
        {**NETWORK, "weights_path": "/etc/passwd"},
        {**NETWORK, "channels": [4, 8, 10**9]},
    ]


@pytest.mark.parametrize("index", range(15))
def test_networks_that_would_run_code_are_refused(index: int, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    write_bundle(tmp_path / "b", network_def=_evil_networks(touched)[index], act="@network_def::act")
    system = _system(tmp_path / "b")
    messages = " ".join(str(mistake) for mistake in system.check())
    try:
        system.open(device="cpu", threads=1)
    except MedtestError as error:
        messages += str(error)
    else:
        pytest.fail("it opened")
    assert messages
    assert not touched.exists()


def test_the_rules_for_plain_data() -> None:
    bomb: Any = ["x"]
    for _ in range(40):
        bomb = [bomb, bomb]
    for config, reason in (
        ({"a": "$1"}, "expression"),
        ({"a": ["x", {"b": "  @c"}]}, None),
        ({"a": "@b", "b": "@a"}, "refers to itself"),
        ({"a": "@missing"}, "there is no"),
        ({"a": "@b + 1", "b": 1}, "more than an entry|there is no"),
        ({"a": bomb}, "too large or too deep"),
        ({"a": "@b::1", "b": ["x", "$y"]}, "expression"),
    ):
        if reason is None:
            assert plain(config, "a") == ["x", {"b": "  @c"}]
            continue
        with pytest.raises(NotPlain, match=reason):
            plain(config, "a")
    assert plain({"a": {"n": "@b#c::0"}, "b": {"c": [{"_desc_": "$no", "v": 1}]}}, "a") == {"n": {"v": 1}}
    for evil in ("monai.transforms.utils.os.system", "numpy.load", "Lambdad", "LoadImaged.__init__", "torch.load"):
        with pytest.raises(NotPlain):
            listed_transforms([{"_target_": evil, "keys": "image"}], "p")
    with pytest.raises(NotPlain, match="not a size in pixels"):
        listed_transforms([{"_target_": "Resized", "keys": "image", "spatial_size": [10**9, 10**9]}], "p")


def test_networks_fetch_nothing() -> None:
    described = {"_target_": "FlexibleUNet", "in_channels": 3, "out_channels": 1, "backbone": "efficientnet-b0"}
    check_network({**described, "pretrained": True})
    network = make_network({**described, "pretrained": True, "decoder_channels": [8, 8, 8, 8, 8]})
    assert sum(p.numel() for p in network.parameters()) > 1e6
    inner = {"_target_": "torch.nn.Sequential"}
    assert not list(make_network(inner).parameters())
    with pytest.raises(NotPlain, match="names no network"):
        make_network({"spatial_dims": 2})


def test_no_network_for_segmentation_is_mistaken_for_one_that_reads_files() -> None:
    """SwinUNETR's use_checkpoint is about memory; only Transchex names its own repository."""
    import inspect

    from monai.networks import nets

    kinds = [kind for kind in vars(nets).values() if isinstance(kind, type)]
    assert len(kinds) > 80
    refused = {
        network_kind.__name__
        for network_kind in kinds
        if any(_SOURCES.search(name) for name in inspect.signature(network_kind).parameters)
    }
    assert refused == {"Transchex"}


def test_networks_that_download_by_default_get_settings_against_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """EfficientNetBN downloads by default; Transchex loads a repository or file that the description names."""
    import socket

    def refused(*_: Any) -> None:
        pytest.fail("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    network = make_network({"_target_": "EfficientNetBN", "model_name": "efficientnet-b0", "in_channels": 3})
    assert sum(p.numel() for p in network.parameters()) > 1e6
    described = {"_target_": "monai.networks.nets.Transchex", "in_channels": 3, "img_size": [32, 32], "num_classes": 1}
    described |= {"patch_size": [32, 32], "num_language_layers": 1, "num_vision_layers": 1, "num_mixed_layers": 1}
    for more in ({}, {"path_or_repo_id": "stranger/network"}):
        with pytest.raises(NotPlain, match="reads additional files"):
            make_network({**described, **more})


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"network_def": {**NETWORK, "spatial_dims": 3}}, "takes volumes"),
        ({"network_def": {**NETWORK, "in_channels": 4}}, "takes 4 channels"),
        ({"network_def": {**NETWORK, "channels": [4, 8, 16]}}, "not weights of UNet"),
        ({"network_def": {**NETWORK, "chanels": [4]}}, "cannot be built.*chanels"),
    ],
)
def test_a_mismatch_is_a_clear_message(changed: dict[str, Any], reason: str, tmp_path: Path) -> None:
    write_bundle(tmp_path, **changed)
    system = _system(tmp_path)
    messages = " ".join(str(mistake) for mistake in system.check())
    if not messages:
        with pytest.raises(MedtestError) as caught:
            system.open(device="cpu", threads=1)
        messages = str(caught.value).replace("\n", " ")
    import re

    assert re.search(reason, messages)


def test_files_other_than_bundles_are_mistakes(tmp_path: Path) -> None:
    def messages(path: Path, **settings: Any) -> str:
        return " ".join(str(mistake) for mistake in _system(path, **settings).check())

    assert "no such file" in messages(tmp_path / "x.zip")
    assert "no configs/inference.json" in messages(tmp_path)
    (tmp_path / "x.zip").write_bytes(b"no zip")
    assert "neither a folder nor a zip" in messages(tmp_path / "x.zip")
    write_bundle(tmp_path / "b", weights=False)
    assert "no weights" in messages(tmp_path / "b")
    (tmp_path / "b" / "models" / "model.pt").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert "git lfs pull" in messages(tmp_path / "b")
    (tmp_path / "b" / "configs" / "inference.json").write_text("[" * 100_000, encoding="utf-8")
    assert "cannot be read" in messages(tmp_path / "b")


def test_a_torchscript_archive_needs_trust(tmp_path: Path) -> None:
    import torch
    from monai.networks.nets import UNet

    write_bundle(tmp_path)
    (tmp_path / "models" / "model.pt").rename(tmp_path / "models" / "state.pth")
    network = UNet(2, 3, 2, [4, 8, 8], [2, 2]).eval()
    network.load_state_dict(torch.load(tmp_path / "models" / "state.pth", weights_only=True)["model"])
    torch.jit.trace(network, torch.zeros(1, 3, 64, 64)).save(str(tmp_path / "models" / "model.ts"))
    (mistake,) = _system(tmp_path).check()
    assert "TorchScript" in mistake.found
    assert "add systems.monai.trust=true" in mistake.found  # a key that the command line takes
    answer = _answer(_system(tmp_path, trust=True))
    (tmp_path / "models" / "state.pth").rename(tmp_path / "models" / "model.pt")
    assert answer == pytest.approx(_answer(_system(tmp_path)), abs=1e-4)

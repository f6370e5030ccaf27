"""Weights of classifiers trained under attack: chosen by a setting, with their own image size and cards."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from medtest.cli.training.defences import known_weights
from medtest.core.files import paths
from medtest.core.plugins import part
from medtest.systems.checkpoints.weights import WeightsInfo, load_network, read_info, save_weights
from medtest.systems.pytorch.networks import COMPACT, describe, make

SHIPPED = sorted((paths.package_folder() / "weights").glob("*-compact-*.safetensors"))


def system_of(family, **settings):
    kind = part("systems", family).load()
    return kind(family, kind.Settings(input="as_is", **settings))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["attnmel", "inceptionv3_dr", "chexnet"])
def test_weights_store_the_size_of_their_images(tmp_path, family):
    state = make(COMPACT[family]).state_dict()
    description = describe(COMPACT[family])
    for name, resized in (("plain", False), ("own", True)):
        info = WeightsInfo(network=description, size=96, resized=resized)
        save_weights(tmp_path / f"{name}.safetensors", state, info)
        info_read = read_info(tmp_path / f"{name}.safetensors")
        assert (info_read.size, info_read.resized, info_read.defence) == (96, resized, {})
    image = np.random.default_rng(0).integers(0, 256, (160, 160, 3), dtype=np.uint8)
    own, plain = (system_of(family, checkpoint=str(tmp_path / f"{name}.safetensors")) for name in ("own", "plain"))
    for system in (own, plain):
        system.open(device="cpu", threads=1)
    assert own.fitted(image).shape == (96, 96, 3)
    assert plain.fitted(image).shape == ((96, 96, 3) if family == "attnmel" else (160, 160, 3))
    assert own.fitted(image[:96, :96]).shape == (96, 96, 3)


def test_defences_are_written_where_there_is_one(tmp_path):
    facts = {"name": "mpadvt", "variant": "paper", "from_sha256": "0" * 64}
    info = WeightsInfo(network=describe(COMPACT["attnmel"]), size=224, defence=facts)
    save_weights(tmp_path / "a.safetensors", make(COMPACT["attnmel"]).state_dict(), info)
    assert read_info(tmp_path / "a.safetensors").defence == facts


def test_unknown_defended_weights_are_one_mistake(tmp_path, monkeypatch):
    package = tmp_path / "package"
    (package / "weights").mkdir(parents=True)
    monkeypatch.setattr("medtest.systems.checkpoints.network.package_folder", lambda: package)
    (package / "weights" / "attnmel-compact-standard.safetensors").write_bytes(b"")
    (mistake,) = system_of("attnmel", weights="maadvt").check()
    assert mistake.key == "weights" and mistake.allowed == "compact, standard" and "defence=maadvt" in mistake.fix
    (mistake,) = system_of("attnmel", weights="maadvt", checkpoint="a.pth").check()
    assert "give one of the two" in mistake.fix
    assert not system_of("attnmel").check() and not system_of("attnmel", weights="standard").check()


def test_the_setting_names_the_system():
    kind = part("systems", "attnmel").load()
    assert kind.Settings().counted()["weights"] == "compact"
    assert kind.Settings(weights="mpadvt").counted()["weights"] == "mpadvt"
    assert system_of("attnmel", weights="mpadvt").record_name == "attnmel-compact-mpadvt"
    assert system_of("attnmel").record_name == "attnmel-compact"


@pytest.mark.slow
@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_weights_are_described_and_have_a_card(file):
    assert file.stat().st_size <= 5_000_000
    _, info = load_network(file)
    family, _, method = file.stem.partition("-compact-")
    compact = file.with_name(f"{family}-compact.safetensors")
    sha = hashlib.sha256(file.read_bytes()).hexdigest()
    undefended = hashlib.sha256(compact.read_bytes()).hexdigest()
    assert info.network["family"] == family and info.defence["name"] == method
    assert info.defence["from_sha256"] == undefended
    card = file.with_suffix(".md").read_text(encoding="utf-8")
    assert sha in card and undefended in card and f"weights={method}" in card
    assert known_weights([])[0][sha].undefended == undefended

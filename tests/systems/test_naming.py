"""Names of systems: typed by the user, derived from files, or the systems' own names."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from medtest.core.address import ID_PATTERN
from medtest.core.errors import UserMistakes
from medtest.suite.compose import load
from medtest.systems.naming import clean, identity, refused


def names(*typed: str) -> list[str]:
    """Return the record names of a call's systems."""
    suite = load("polyp_seg", ["seeds.phantoms.count=1", *typed]).suite
    return [system.record_name for system in suite.build_systems().values()]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        (["model=callable", "target=/some/where/my_net.py:segment"], "my_net-segment"),
        (["model=callable", "target=package.networks:predict"], "networks-predict"),
        (["model=onnx", "path=/nets/Release 3 (final).v2.onnx"], "release-3-final-v2-onnx"),
        (["model=torchscript", "path=net.pt"], "net-torchscript"),
        (["model=predictions", "folder=/maps/of_pranet/"], "of_pranet"),
        (["model=smp", "checkpoint=/nets/unet.pth"], "unet"),
        (["model=sanet", "checkpoint=/nets/best.pth"], "sanet-best"),
        (["model=sanet", "checkpoint=/nets/SANet-128.pth"], "sanet-128"),
        (["model=sanet"], "sanet-compact"),
        (["model=sanet", "name=v2"], "v2"),
        (["model=callable", "target=a.py:f", "name=2024"], "2024"),
        (["+systems.mine={use: onnx, path: /nets/net.onnx}", "~systems.pranet", "~systems.ssformer"], "mine"),
        (["model=onnx", "path=/nets/net-onnx.onnx"], "net-onnx"),
        (["model=onnx", "path=/nets/x-simulated.onnx"], "x_simulated-onnx"),
        (["model=onnx", "path=/nets/CON.onnx"], "model-con-onnx"),
        (["model=onnx", "path=/nets/alpha_sigma.onnx"], "model-alpha_sigma-onnx"),
    ],
)
def test_a_name_is_made_from_the_typed_options(typed: list[str], name: str) -> None:
    assert names(*typed) == [name]


def test_a_folder_names_nothing_where_ids_are_hashed(tmp_path: Path) -> None:
    # folders may carry names of patients
    maps = tmp_path / "doe_jane"
    maps.mkdir()
    typed = ["seeds.phantoms.count=1", "model=predictions", f"folder={maps}"]
    for hashed, name, file in ((False, "doe_jane", {"file": "doe_jane"}), (True, "predictions", {})):
        suite = load("polyp_seg", [*typed, *(["privacy={seed_ids: hashed}"] if hashed else [])]).suite
        (system,) = suite.build_systems().values()
        assert system.record_name == name
        assert {key: value for key, value in identity(system, folders=not hashed).items() if key == "file"} == file


def test_the_name_changes_no_digest_and_no_suite_yaml() -> None:
    plain = load("polyp_seg", ["model=sanet"]).suite
    called = load("polyp_seg", ["model=sanet", "name=v2"]).suite
    assert called.composed == plain.composed
    assert [plan.settings for plan in called.systems] == [plan.settings for plan in plain.systems]


def test_equal_stems_in_one_call_get_digits_of_the_sha256(tmp_path: Path) -> None:
    (tmp_path / "net.pt").write_bytes(b"one")
    maps = tmp_path / "maps" / "net"
    maps.mkdir(parents=True)
    typed = [f"systems.smp.checkpoint={tmp_path}/net.pt", f"systems.predictions.folder={maps}"]
    first, second = names("model=[smp,predictions]", *typed)
    assert first == f"net-{hashlib.sha256(b'one').hexdigest()[:4]}"
    assert second.startswith("net-") and second != first


def test_one_network_in_two_formats_has_two_names() -> None:
    typed = ["systems.onnx.path=/nets/n.onnx", "systems.torchscript.path=/nets/n.pt"]
    assert names("model=[onnx,torchscript]", *typed) == ["n-onnx", "n-torchscript"]


@pytest.mark.parametrize(
    "text", ["сеть", "сеть-2", "模型", "ß", "é" * 90, "a" * 300, "...", "-_-", "Ünet_3", "a\x00b", "\N{GRINNING FACE}"]
)
def test_every_name_fits_the_pattern_and_stays_distinct(text: str) -> None:
    assert ID_PATTERN.fullmatch(clean(text))
    assert clean(text) != clean(f"{text}я")
    assert len({clean("сеть"), clean("сетка"), clean("модель"), clean("")}) == 4
    assert clean("Modèle.v2") == "modele-v2"


@pytest.mark.parametrize("name", ["V2", "", "my net", "-x", "a" * 65, "net-simulated", "nul", "alpha_sigma-1", "a/b"])
def test_an_invalid_name_is_one_mistake(name: str) -> None:
    assert refused(name)
    with pytest.raises(UserMistakes) as caught:
        names("model=sanet", f"name={name}")
    (mistake,) = caught.value.mistakes
    assert (mistake.key, mistake.where) == ("name", "command line")
    assert "small letters, digits, _ and -" in mistake.allowed


def test_one_name_for_several_systems_is_one_mistake() -> None:
    with pytest.raises(UserMistakes) as caught:
        names("model=[sanet,pranet]", "name=v2")
    (mistake,) = caught.value.mistakes
    assert (mistake.key, mistake.found) == ("name", "2 systems (sanet, pranet)")


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        (["model=openai_compatible", "model_name=qwen/Qwen2.5-VL-7B"], "qwen2-5-vl-7b"),
        (["model=vllm", "model_name=/srv/models/llava-1.6/"], "llava-1-6"),
        (["model=gpt_4o"], "gpt_4o"),
        (["model=gpt_4o", "model_name=gpt-4o-mini"], "gpt-4o-mini"),
        (["model=simlab"], "simlab-simulated"),
        (["model=simlab", "name=mine"], "mine-simulated"),
    ],
)
def test_a_model_over_an_api_has_the_name_of_the_model_on_its_server(typed: list[str], name: str) -> None:
    remote = "openai" in typed[0]
    where = ["base_url=https://me:secret@host.example:8443/v1"] if remote else []
    (system,) = load("medvqa", [*where, *typed]).suite.build_systems().values()
    assert system.record_name == name
    if remote:
        assert identity(system) == {"model": "qwen/Qwen2.5-VL-7B", "host": "host.example:8443"}


def test_a_long_name_is_cut_before_its_format() -> None:
    (name,) = names("model=onnx", f"path=/nets/{'n' * 80}.onnx")
    assert len(name) <= 64
    assert name.startswith("nnn") and name.endswith("-onnx")

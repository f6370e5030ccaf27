from __future__ import annotations

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from medtest.cli.training.commands import app
from medtest.core.errors import MedtestError
from medtest.core.files import paths
from medtest.systems.checkpoints.weights import WeightsInfo, load_network, read_info, save_weights
from medtest.systems.pytorch import networks

COMPACT = networks.COMPACT["ssformer"]


def _weights(path: Path) -> torch.nn.Module:
    torch.manual_seed(1)
    network = networks.make(COMPACT)
    save_weights(path, network.state_dict(), WeightsInfo(network=networks.describe(COMPACT), size=96, note="a test"))
    return network


def test_weights_keep_their_description_and_round_to_half_precision(tmp_path: Path) -> None:
    network = _weights(tmp_path / "w.safetensors")
    loaded, info = load_network(tmp_path / "w.safetensors")
    assert (info.size, info.threshold, info.note) == (96, 0.5, "a test")
    for key, value in network.state_dict().items():
        expected = value.half().float() if value.is_floating_point() else value
        assert torch.equal(loaded.state_dict()[key], expected)
    _weights(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "w.safetensors").read_bytes()


def test_foreign_weights_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(2)}, tmp_path / "a.safetensors")
    with pytest.raises(MedtestError, match="do not name their network"):
        read_info(tmp_path / "a.safetensors")
    (tmp_path / "b.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(MedtestError, match="not a safetensors file"):
        read_info(tmp_path / "b.safetensors")
    state = networks.make(networks.COMPACT["pranet"]).state_dict()
    info = WeightsInfo(network=networks.describe(COMPACT), size=96)
    save_weights(tmp_path / "c.safetensors", state, info)
    with pytest.raises(MedtestError, match="do not fit the network they describe"):
        load_network(tmp_path / "c.safetensors")


@pytest.mark.slow
def test_a_release_copies_scores_and_writes_the_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    monkeypatch.setattr("medtest.training.release.package_folder", lambda: package)
    monkeypatch.setattr("medtest.systems.checkpoints.network.package_folder", lambda: package)
    _weights(tmp_path / "w.safetensors")
    (tmp_path / "commands.txt").write_text("medtest train model=ssformer\n", encoding="utf-8")
    arguments = ["release", "--network", "ssformer", "--weights", str(tmp_path / "w.safetensors")]
    arguments += ["--commands", str(tmp_path / "commands.txt"), "--phantoms", "3", "--threshold", "0.6"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    card = (package / "weights" / "ssformer-compact.md").read_text(encoding="utf-8")
    assert "medtest train model=ssformer" in card
    assert "| unseen phantoms | 3 |" in card
    assert "cut at 0.6" in card
    assert "CC BY 4.0" in card
    assert read_info(package / "weights" / "ssformer-compact.safetensors").threshold == 0.6


def test_bundled_weights_have_their_card_and_fit_the_bounds() -> None:
    folder = paths.package_folder() / "weights"
    for family in networks.SEGMENTATION:
        file = folder / f"{family}-compact.safetensors"
        assert file.stat().st_size <= 10_000_000
        network, info = load_network(file)
        assert sum(p.numel() for p in network.parameters()) <= 4_000_000
        card = file.with_suffix(".md").read_text(encoding="utf-8")
        import hashlib

        assert hashlib.sha256(file.read_bytes()).hexdigest() in card, "the card is of other weights"
        assert f"{info.size}×{info.size}" in card

from __future__ import annotations

import os
import time
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from forked_program import Program
from hypothesis import given
from hypothesis import strategies as st
from training_pairs import write_pairs

from medtest.core.errors import MedtestError
from medtest.systems.checkpoints.inputs import IMAGENET
from medtest.systems.checkpoints.weights import load_network, read_info
from medtest.training.run import train
from medtest.training.scores import bootstrap, dice_and_iou
from medtest.training.segmentation.augment import Augmentation, augment
from medtest.training.segmentation.data import PairBatches, Pairs
from medtest.training.segmentation.losses import batch_dice_loss, border_weights, deep_loss, dice_loss, structure_loss
from medtest.training.settings.options import SegmentationOptions


def _pairs(count: int, size: int = 40) -> Pairs:
    rng = np.random.default_rng(1)
    masks = np.zeros((count, size, size), np.uint8)
    for mask in masks:
        x, y = rng.integers(10, size - 10, 2)
        cv2.circle(mask, (int(x), int(y)), 8, 255, -1)
    images = np.repeat(masks[..., None] // 2, 3, axis=3) + rng.integers(0, 90, (count, size, size, 3)).astype(np.uint8)
    return Pairs(images=images, masks=masks, names=tuple(map(str, range(count))))


def _folder(root: Path, count: int = 8) -> Path:
    return write_pairs(root, _pairs(count, 96))


# ------------------------------------------------------------------------------------------------------------ losses


def test_border_weights_match_average_pooling() -> None:
    mask = _pairs(1, 90).masks[0]
    truth = torch.from_numpy((mask > 127).astype(np.float32))[None, None]
    pooled = torch.nn.functional.avg_pool2d(truth, 31, stride=1, padding=15)
    assert np.abs(border_weights(mask) - (1 + 5 * (pooled - truth).abs())[0, 0].numpy()).max() < 1e-5


def test_structure_loss_by_hand() -> None:
    logits = torch.tensor([[[[0.0, 2.0]]]])
    truth = torch.tensor([[[[0.0, 1.0]]]])
    weights = torch.tensor([[[[1.0, 3.0]]]])
    entropy = (1 * np.log(2) + 3 * np.log(1 + np.exp(-2))) / 4
    p = 1 / (1 + np.exp(-2))
    iou = 1 - (3 * p + 1) / ((1 * 0.5 + 3 * (p + 1)) - 3 * p + 1)
    assert structure_loss(logits, truth, weights).item() == pytest.approx(entropy + iou, abs=1e-6)


def test_deep_supervision_adds_a_share_of_the_auxiliary_maps() -> None:
    torch.manual_seed(0)
    truth, weights = (torch.rand(1, 1, 8, 8) > 0.5).float(), torch.ones(1, 1, 8, 8)
    auxiliary_map, last = torch.randn(1, 1, 8, 8), torch.randn(1, 1, 8, 8)
    alone = deep_loss(last, truth, weights, auxiliary=0.5)
    both = deep_loss((auxiliary_map, last), truth, weights, auxiliary=0.5)
    extra = structure_loss(auxiliary_map[..., ::2, ::2], truth[..., ::2, ::2], weights[..., ::2, ::2])
    assert both.item() == pytest.approx((alone + 0.5 * extra).item(), abs=1e-6)


# -------------------------------------------------------------------------------------------------------------- data


@given(seed=st.integers(0, 2**31), size=st.sampled_from([32, 48, 64]))
def test_image_and_mask_move_together(seed: int, size: int) -> None:
    side = 64
    mask = np.zeros((side, side), np.uint8)
    cv2.ellipse(mask, (28, 36), (16, 9), 30, 0, 360, 255, -1)
    image = np.repeat(mask[..., None], 3, axis=2)
    still = Augmentation(colour=0, blur=0, noise=0)
    moved, moved_mask = augment(np.random.default_rng(seed), image, mask, size=size, changes=still)
    assert moved.shape == (size, size, 3)
    assert set(np.unique(moved_mask)) <= {0, 255}
    assert np.array_equal(moved[..., 1] > 127, moved_mask > 127)


def test_changes_are_reproducible_and_cover_both_directions() -> None:
    pairs = _pairs(1, 64)
    changes = Augmentation()
    first = [
        augment(np.random.default_rng(s), pairs.images[0], pairs.masks[0], size=64, changes=changes)[0]
        for s in range(200)
    ]
    again = augment(np.random.default_rng(7), pairs.images[0], pairs.masks[0], size=64, changes=changes)[0]
    assert np.array_equal(first[7], again)
    brightness = np.array([image[image.max(2) > 0].mean() for image in first]) / pairs.images[0].mean()
    assert brightness.min() < 0.75
    assert brightness.max() > 1.2


def test_a_batch_depends_only_on_seed_and_step_and_every_pair_passes_once_per_round() -> None:
    pairs = _pairs(6)
    plain = Augmentation(zoom=(1, 1), shift=0, tilt=0, colour=0, blur=0, noise=0)
    batches = PairBatches([(pairs, 2)], sizes=[40], seed=4, changes=plain)
    other = PairBatches([(pairs, 2)], sizes=[40], seed=4, changes=plain)
    other.batch(9)
    assert np.array_equal(batches.batch(3)[0], other.batch(3)[0])
    areas = sorted(float(batches.batch(step)[1][i].sum()) for step in range(3) for i in range(2))
    assert areas == sorted(float((mask > 127).sum()) for mask in pairs.masks)
    assert not np.array_equal(batches.batch(0)[0], batches.batch(3)[0])


def test_sets_are_mixed_in_their_shares_and_normalised() -> None:
    dark, light = _pairs(3), _pairs(3)
    light = Pairs(images=np.full_like(light.images, 255), masks=light.masks, names=light.names)
    plain = Augmentation(zoom=(1, 1), shift=0, tilt=0, colour=0, blur=0, noise=0)
    batch = PairBatches([(dark, 3), (light, 1)], sizes=[32], seed=0, changes=plain).batch(0)[0]
    assert batch.shape == (4, 3, 32, 32)
    white = (1 - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])
    assert batch[3, :, 16, 16] == pytest.approx(white, abs=1e-4)
    assert (batch[:3].max(axis=(1, 2, 3)) < 2.2).all()
    assert IMAGENET.tensor(np.zeros((1, 2, 2, 3), np.uint8))[0, 0, 0, 0] == pytest.approx(-0.485 / 0.229, abs=1e-5)


# ------------------------------------------------------------------------------------------------------------ scores


def test_dice_and_iou_by_hand() -> None:
    a = np.array([[True, True, False, False]])
    b = np.array([[True, False, True, False]])
    assert dice_and_iou(a, b) == (0.5, pytest.approx(1 / 3))
    assert dice_and_iou(~a & a, ~a & a) == (1.0, 1.0)
    assert dice_and_iou(~a & a, b) == (0.0, 0.0)


def test_bootstrap_agrees_with_scipy() -> None:
    from scipy.stats import bootstrap as reference

    values = np.random.default_rng(2).beta(5, 2, 50)
    own = bootstrap(values)
    expected = reference((values,), np.mean, n_resamples=10_000, method="percentile", rng=1).confidence_interval
    assert own.mean == pytest.approx(values.mean())
    assert (own.low, own.high) == (pytest.approx(expected.low, abs=0.005), pytest.approx(expected.high, abs=0.005))


# ---------------------------------------------------------------------------------------------------------- training


def _options(root: Path, **more: object) -> SegmentationOptions:
    values: dict[str, object] = {
        "network": "ssformer", "data": [root], "held_out": 2, "steps": 4, "batch": 2, "size": 64, "sizes": [64, 96],
        "warmup": 2, "validate_every": 2, "threads": 1, "mlflow": False,
    }  # fmt: skip
    return SegmentationOptions.model_validate({**values, **more})


def _state(folder: Path) -> dict[str, torch.Tensor]:
    state = torch.load(folder / "state.pt", weights_only=True)
    return {**state["network"], **{f"average.{key}": value for key, value in state["average"].items()}}


def _train(root: Path, out: Path) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    train(_options(root), out, progress=lambda _: time.sleep(0.2))


@pytest.mark.slow
def test_a_stopped_training_continues_to_the_same_weights(tmp_path: Path) -> None:
    """The network has dropout and dropped paths, so every source of random numbers counts."""
    root = _folder(tmp_path / "data")
    whole = train(_options(root), tmp_path / "whole")
    train(_options(root), tmp_path / "parts", stop=lambda step: step == 1)
    resumed = train(_options(root), tmp_path / "parts")
    first, second = _state(tmp_path / "whole"), _state(tmp_path / "parts")
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert (whole.best_step, whole.best_score) == (resumed.best_step, resumed.best_score)
    assert whole.weights.read_bytes() == resumed.weights.read_bytes()
    network, info = load_network(whole.weights)
    assert info.size == 64
    assert sum(p.numel() for p in network.parameters()) == sum(
        value.numel() for key, value in first.items() if not key.startswith("average.") and "running_" not in key
        and not key.endswith("num_batches_tracked")
    )  # fmt: skip


@pytest.mark.slow
def test_a_killed_training_continues_to_the_same_weights(tmp_path: Path) -> None:
    root = _folder(tmp_path / "data")
    train(_options(root), tmp_path / "whole")
    call = f"from pathlib import Path; from test_training import _train; _train(Path({str(root)!r}), Path({{!r}}))"
    for delay in (0.0, 0.4):
        process = Program(call.format(str(tmp_path / "killed")), modules=("torch", "torchvision"))
        deadline = time.monotonic() + 120
        while not (tmp_path / "killed" / "state.pt").is_file() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(delay)
        process.kill()
        process.communicate()
    train(_options(root), tmp_path / "killed")
    first, second = _state(tmp_path / "whole"), _state(tmp_path / "killed")
    assert all(torch.equal(first[key], second[key]) for key in first)


@pytest.mark.slow
def test_a_state_of_other_options_or_data_is_refused(tmp_path: Path) -> None:
    root = _folder(tmp_path / "data")
    train(_options(root, steps=2), tmp_path / "out")
    with pytest.raises(MedtestError, match="other options"):
        train(_options(root, steps=2, rate=0.5), tmp_path / "out")
    (tmp_path / "out" / "state.pt").write_bytes(b"torn")
    with pytest.raises(MedtestError, match="cannot be read"):
        train(_options(root, steps=2), tmp_path / "out")
    again = train(_options(root, steps=2), tmp_path / "out", resume=False)
    assert read_info(again.weights).size == 64


@pytest.mark.slow
def test_training_starts_from_other_weights(tmp_path: Path) -> None:
    root = _folder(tmp_path / "data")
    first = train(_options(root, steps=2), tmp_path / "one")
    still = {"rate": 1e-12, "steps": 1, "validate_every": 1, "average": 0}
    second = train(_options(root, start_from=tmp_path / "one", **still), tmp_path / "two")
    first_state, second_state = (
        load_network(first.weights)[0].state_dict(),
        load_network(second.weights)[0].state_dict(),
    )
    assert all(
        torch.allclose(first_state[key], second_state[key], atol=2e-3)
        for key in first_state
        if "running" not in key and "num" not in key
    )
    with pytest.raises(MedtestError, match="another network"):
        train(_options(root, network="pranet", start_from=first.weights), tmp_path / "three")


@pytest.mark.slow
def test_phantoms_are_drawn_once_and_both_kinds_are_validated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from medtest.training.segmentation import train as segmentation

    monkeypatch.setattr(segmentation, "VALIDATION_PHANTOMS", 2)
    root = _folder(tmp_path / "data")
    facts: list[dict[str, float]] = []
    options = _options(root, steps=2, phantoms=3, phantom_share=0.5)
    train(options, tmp_path / "out", progress=lambda point: facts.append(point.facts))
    assert set(facts[-1]) == {"real", "phantoms"}
    files = sorted((tmp_path / "out" / "phantoms").iterdir())
    assert len(files) == 2
    before = [file.stat().st_mtime_ns for file in files]
    train(options, tmp_path / "out", resume=False)
    assert [file.stat().st_mtime_ns for file in files] == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"network": "unet"}, "no compact network"),
        ({"data": []}, "nothing to train on"),
        ({"held_out": 8}, "too few"),
    ],
)
def test_mismatching_options_are_mistakes(change: dict[str, object], reason: str, tmp_path: Path) -> None:
    root = _folder(tmp_path / "data")
    with pytest.raises(MedtestError, match=reason):
        train(_options(root, **change), tmp_path / "out")


@pytest.mark.slow
def test_a_training_is_logged_to_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow

    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    root = _folder(tmp_path / "data")
    options = _options(root, steps=4, mlflow=True)
    train(options, tmp_path / "out", stop=lambda step: step == 2)
    result = train(options, tmp_path / "out")
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}")
    (run,) = client.search_runs([client.get_experiment_by_name("medtest-training").experiment_id])
    assert run.info.run_id == result.run_id
    assert run.info.status == "FINISHED"
    assert run.data.params["network"] == "ssformer"
    assert run.data.params["pairs_real"] == "6"
    assert [m.step for m in client.get_metric_history(run.info.run_id, "val_dice_real")] == [2, 4]
    assert "ssformer.safetensors" in [f.path for f in client.list_artifacts(run.info.run_id)]


def test_dice_losses_by_hand() -> None:
    """Three of four pixels are found among five, then one of one: 2 · 3 of 9 and 2 · 1 of 2."""
    truth, answer = torch.zeros(2, 1, 3, 3), torch.zeros(2, 1, 3, 3)
    truth[0].view(-1)[:4] = answer[0].view(-1)[1:6] = truth[1].view(-1)[:1] = answer[1].view(-1)[:1] = 1
    logits = 200 * (answer - 0.5)
    assert dice_loss(logits, truth).item() == pytest.approx(((1 - 6 / 10) + (1 - 2 / 3)) / 2)
    assert batch_dice_loss(logits, truth).item() == pytest.approx(1 - (2 * 4 + 1) / (11 + 1))

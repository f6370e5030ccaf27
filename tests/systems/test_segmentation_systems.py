from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from medtest.core.cases import Address
from medtest.core.errors import MedtestError
from medtest.core.plugins import part
from medtest.core.tasks.border import check_mask
from medtest.systems.pytorch import networks
from medtest.systems.segmentation.network import SegmentationNetwork

ADDRESS = Address(dataset="set", seed_id="a1")


def _system(family: str, name: str | None = None, **settings: Any) -> SegmentationNetwork:
    info = part("systems", family)
    kind = info.load()
    system: SegmentationNetwork = kind(name or family, kind.Settings(**{**info.defaults, **settings}))
    return pickle.loads(pickle.dumps(system))  # noqa: S301 - as a worker gets it


def _images(*shapes: tuple[int, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [rng.integers(0, 255, (*shape, 3)).astype(np.uint8) for shape in shapes]


def _ask(system: SegmentationNetwork, images: list[np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(answer) for answer in system.predict(images, [ADDRESS] * len(images))]


FAMILIES = ["pranet", "sanet", "tganet", "ssformer"]


@pytest.fixture(params=FAMILIES)
def compact(request: pytest.FixtureRequest) -> SegmentationNetwork:
    system = _system(request.param)
    system.open(device="cpu", threads=1)
    return system


@pytest.mark.slow
def test_the_compact_network_has_its_name_and_answers_at_the_images_size(compact: SegmentationNetwork) -> None:
    assert compact.record_name == f"{compact.name}-compact"
    assert compact.record_name in compact.notice()
    assert "\n" not in compact.notice()
    assert not compact.check()
    content = compact.compact_weights.read_bytes()
    assert compact.fingerprint() == {"weights_sha256": hashlib.sha256(content).hexdigest()}
    assert len(content) <= 10_000_000
    answers = _ask(compact, _images((512, 512), (288, 384), (200, 150)))
    for answer, shape in zip(answers, [(512, 512), (288, 384), (200, 150)], strict=True):
        assert answer.dtype == np.float32
        assert check_mask(answer, shape).native is None


@pytest.mark.slow
def test_an_answer_does_not_depend_on_the_batch(compact: SegmentationNetwork) -> None:
    images = _images(*[(512, 512)] * 3)
    together = _ask(compact, images)
    for image, answer in zip(images, together, strict=True):
        assert np.abs(_ask(compact, [image])[0] - answer).max() < 1e-4


@pytest.mark.slow
def test_memory_layout_changes_speed_and_not_the_answer(compact: SegmentationNetwork) -> None:
    other = _system(compact.name, channels_last=False)
    other.open(device="cpu", threads=1)
    images = _images((512, 512))
    assert np.abs(_ask(compact, images)[0] - _ask(other, images)[0]).max() < 1e-4


@pytest.mark.parametrize("threshold", [0.2, 0.7])
def test_a_threshold_cuts_at_its_value(threshold: float) -> None:
    plain, moved = _system("pranet", threshold=0.5), _system("pranet", threshold=threshold)
    for system in (plain, moved):
        system.open(device="cpu", threads=1)
    ramp = np.zeros((96, 96, 3), np.uint8)
    ramp[:, :, 0] = np.linspace(0, 255, 96).astype(np.uint8)
    before, after = _ask(plain, [ramp])[0], _ask(moved, [ramp])[0]
    assert np.array_equal(check_mask(after, (96, 96)).mask, before > np.float32(threshold))
    order = np.argsort(before, axis=None)
    assert (np.diff(after.ravel()[order]) >= 0).all()


def test_asking_before_opening_is_a_mistake() -> None:
    with pytest.raises(MedtestError, match="is not open"):
        _ask(_system("pranet"), _images((64, 64)))


def test_a_name_of_the_user_stays() -> None:
    assert _system("pranet", name="v2").record_name == "v2"


def test_a_missing_checkpoint_is_a_mistake(tmp_path: Path) -> None:
    (mistake,) = _system("pranet", checkpoint=str(tmp_path / "PraNet-19.pth")).check()
    assert "no such file" in mistake.found
    (tmp_path / "PraNet-19.docx").write_bytes(b"x")
    (mistake,) = _system("pranet", checkpoint=str(tmp_path / "PraNet-19.docx")).check()
    assert ".pth" in mistake.allowed
    (tmp_path / "PraNet-19.pth").touch()
    (mistake,) = _system("pranet", checkpoint=str(tmp_path / "PraNet-19.pth")).check()
    assert "empty" in mistake.found
    (tmp_path / "PraNet-19.pth").write_bytes(b"<!DOCTYPE html><title>Sign in</title>")
    (mistake,) = _system("pranet", checkpoint=str(tmp_path / "PraNet-19.pth")).check()
    assert "web page" in mistake.found


def test_sanets_own_checkpoint_has_no_suffix(tmp_path: Path) -> None:
    torch.save({"predict.bias": torch.zeros(1)}, tmp_path / "model-128")
    assert not _system("sanet", checkpoint=str(tmp_path / "model-128")).check()


def _bilinear(logits: np.ndarray, size: tuple[int, int], *, corners: bool) -> np.ndarray:
    """Resize by hand, one pixel at a time, as torch documents both conventions."""
    out = np.empty(size)
    for row in range(size[0]):
        for column in range(size[1]):
            place = []
            for index, new, old in ((row, size[0], logits.shape[0]), (column, size[1], logits.shape[1])):
                at = index * (old - 1) / (new - 1) if corners else max(0.0, (index + 0.5) * old / new - 0.5)
                low = min(int(at), old - 1)
                place.append((low, min(low + 1, old - 1), at - low))
            (y0, y1, fy), (x0, x1, fx) = place
            top = logits[y0, x0] * (1 - fx) + logits[y0, x1] * fx
            bottom = logits[y1, x0] * (1 - fx) + logits[y1, x1] * fx
            out[row, column] = top * (1 - fy) + bottom * fy
    return out


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


LOGITS = np.array([[-4.0, 4.0, 1.0], [-2.0, 6.0, -0.5]])


@pytest.mark.parametrize("family", FAMILIES)
def test_official_post_processing(family: str) -> None:
    """PraNet resizes the logit and stretches; SANet corrects; TGANet stays at its size; SSFormer cuts."""
    got = _system(family, protocol="official")._probability(torch.tensor(LOGITS[None], dtype=torch.float32), (5, 7))
    if family == "pranet":
        p = _sigmoid(_bilinear(LOGITS, (5, 7), corners=False))
        expected = (p - p.min()) / (p.max() - p.min() + 1e-8)
    elif family == "sanet":
        z = _bilinear(LOGITS, (5, 7), corners=True)
        z[z > 0] /= (z > 0).mean()
        z[z < 0] /= (z < 0).mean()
        expected = _sigmoid(z)
    elif family == "tganet":
        expected = _sigmoid(LOGITS)
    else:
        expected = _bilinear(_sigmoid(LOGITS), (5, 7), corners=False) > 0.5
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() < 1e-5
    common = _system(family, protocol="common")._probability(torch.tensor(LOGITS[None], dtype=torch.float32), (2, 3))
    assert np.abs(common - _sigmoid(LOGITS)).max() < 1e-6


def test_sanets_correction_keeps_every_sign_and_takes_maps_of_one_sign() -> None:
    system = _system("sanet", protocol="official")
    for logits in (np.full((2, 3), 3.0), np.full((2, 3), -3.0), np.zeros((2, 3))):
        got = system._probability(torch.tensor(logits[None], dtype=torch.float32), (4, 4))
        assert np.allclose(got, _sigmoid(logits[0, 0]), atol=1e-6)
    got = system._probability(torch.tensor(LOGITS[None], dtype=torch.float32), (5, 7))
    assert np.array_equal(got > 0.5, _bilinear(LOGITS, (5, 7), corners=True) > 0)


def test_ssformers_mean_over_thresholds_is_its_scripts_number() -> None:
    """(255 · Dice + Dice of the whole image) / 256, since the map is one of zeros and ones."""
    from medtest.tasks.segment.oracle import mean_over_thresholds

    system = _system("ssformer", protocol="official")
    got = system._probability(torch.tensor(LOGITS[None], dtype=torch.float32), (8, 12))
    truth = np.zeros((8, 12), np.bool_)
    truth[:, 5:10] = True
    mask = got > 0.5
    dice = 2 * (mask & truth).sum() / (mask.sum() + truth.sum())
    whole = 2 * truth.sum() / (truth.size + truth.sum())
    mean, _ = mean_over_thresholds((got * 255).astype(np.uint8), truth)
    assert mean == pytest.approx((255 * dice + whole) / 256, abs=1e-9)


@pytest.mark.parametrize("family", ["sanet", "tganet"])
def test_official_resizing_is_opencvs_without_antialiasing(family: str) -> None:
    import cv2

    system = _system(family, protocol="official")
    system._size = 64
    (image,) = _images((300, 200))
    tensor = system.inputs([system.fitted(image)])[0].numpy()
    if family == "sanet":
        resized = cv2.resize(image, (64, 64), interpolation=cv2.INTER_LINEAR) / 255
        expected = (resized - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    else:  # as cv2.imread gives it: blue first
        expected = cv2.resize(np.ascontiguousarray(image[..., ::-1]), (64, 64)) / 255
    assert np.abs(tensor - expected.transpose(2, 0, 1)).max() < 1e-5


@pytest.mark.parametrize("family", FAMILIES)
def test_the_common_protocol_averages_areas_and_keeps_the_networks_normalisation(family: str) -> None:
    import cv2

    system = _system(family, protocol="common")
    system._size = 64
    (image,) = _images((256, 128))
    resized = cv2.resize(image, (64, 64), interpolation=cv2.INTER_AREA) / 255
    blue_first = resized[..., ::-1]
    normalised = (resized - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    expected = blue_first if family == "tganet" else normalised
    assert np.abs(system.inputs([system.fitted(image)])[0].numpy() - expected.transpose(2, 0, 1)).max() < 1e-5


@pytest.mark.parametrize("settings", [{"fuse_norms": False}, {"precision": "bfloat16"}, {"channels_last": False}])
def test_options_for_speed_hardly_change_the_answer(settings: dict[str, Any]) -> None:
    exact, fast = _system("sanet"), _system("sanet", **settings)
    images = _images((200, 200))
    for system in (exact, fast):
        system.open(device="cpu", threads=1)
    moved = np.abs(_ask(exact, images)[0] - _ask(fast, images)[0]).max()
    assert moved < (0.1 if "precision" in settings else 1e-4)


def test_weights_that_medtest_trained_run_as_a_checkpoint(tmp_path: Path) -> None:
    bundled = _system("sanet")
    path = tmp_path / "mine.safetensors"
    path.write_bytes(bundled.compact_weights.read_bytes())
    trained = _system("sanet", checkpoint=str(path))
    assert trained.record_name == "sanet-compact-trained"
    assert trained.protocol == "common"
    assert trained.notice() == ""
    assert trained.fingerprint() == bundled.fingerprint()
    images = _images((96, 128))
    for system in (bundled, trained):
        system.open(device="cpu", threads=1)
    assert np.array_equal(_ask(bundled, images)[0], _ask(trained, images)[0])
    with pytest.raises(MedtestError, match="weights of sanet, not of pranet"):
        _system("pranet", checkpoint=str(path)).open(device="cpu", threads=1)


def test_a_published_tganet_needs_its_word_vectors(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pth"
    torch.save({"nothing": torch.zeros(1)}, path)
    (mistake,) = _system("tganet", checkpoint=str(path)).check()
    assert mistake.key == "label_vectors"
    assert "lacks the five word vectors" in mistake.found
    assert "BPEmb" in mistake.allowed
    with pytest.raises(MedtestError, match="lacks the five word vectors"):
        _system("tganet", checkpoint=str(path)).open(device="cpu", threads=1)
    np.save(tmp_path / "v.npy", np.zeros((4, 300)))
    (mistake,) = _system("tganet", checkpoint=str(path), label_vectors=str(tmp_path / "v.npy")).check()
    assert "4×300 found" in mistake.found
    (mistake,) = _system("tganet", label_vectors=str(tmp_path / "v.npy")).check()
    assert "carries its word vectors itself" in mistake.found
    (mistake,) = _system("tganet", checkpoint=str(path), label_vectors=str(tmp_path / "w.npy")).check()
    assert (mistake.key, mistake.nearest) == ("label_vectors", "v.npy")
    settings = {"label_vectors": str(tmp_path / "v.npy"), "label_pieces": str(tmp_path / "bpe.model")}
    (mistake,) = _system("tganet", checkpoint=str(path), **settings).check()
    assert mistake.key == "label_pieces"
    assert "no such file" in mistake.found


@pytest.mark.slow
def test_a_published_tganet_runs_with_word_vectors(tmp_path: Path) -> None:
    import cv2

    torch.manual_seed(1)
    network = networks.published("tganet")
    vectors = np.random.default_rng(0).standard_normal((5, 300)).astype(np.float32)
    torch.save(network.state_dict(), tmp_path / "checkpoint.pth")
    np.save(tmp_path / "v.npy", vectors)
    settings = {"checkpoint": str(tmp_path / "checkpoint.pth"), "label_vectors": str(tmp_path / "v.npy")}
    system = _system("tganet", **settings)
    assert not system.check()
    assert system.record_name == "tganet"
    assert set(system.fingerprint()) == {"weights_sha256", "label_vectors_sha256"}
    system.open(device="cpu", threads=1)
    images = _images((300, 400), (300, 400))
    blue_first = np.stack([cv2.resize(np.ascontiguousarray(image[..., ::-1]), (256, 256)) / 255 for image in images])
    with torch.inference_mode():
        x = torch.from_numpy(blue_first.astype(np.float32)).permute(0, 3, 1, 2)
        expected = torch.sigmoid(network(x, torch.from_numpy(vectors).expand(2, -1, -1))[0])[:, 0].numpy()
    for answer, expected_map in zip(_ask(system, images), expected, strict=True):
        assert answer.shape == (256, 256)
        assert np.abs(answer - expected_map).max() < 1e-4


def test_official_resizing_is_pillows() -> None:
    from PIL import Image
    from torchvision.transforms.functional import pil_to_tensor, resize

    system = _system("pranet", protocol="official")
    system._size = 64
    (image,) = _images((300, 200))
    reference = resize(
        Image.fromarray(image), [64, 64]
    )  # torchvision's default on Pillow images, as the authors use it
    assert np.array_equal(system.fitted(image), pil_to_tensor(reference).permute(1, 2, 0).numpy())


@pytest.mark.slow
def test_a_published_checkpoint_runs_under_its_own_name(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = networks.published("ssformer_s")
    path = tmp_path / "SSFormer [S] epoch=9.pth"
    torch.save({f"module.{key}": value for key, value in network.state_dict().items()}, path)
    system = _system("ssformer", checkpoint=str(path))
    assert system.record_name == "ssformer_s"
    assert system.notice() == ""
    assert system.fingerprint() == {"weights_sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    system.open(device="cpu", threads=1)
    (image,) = _images((400, 500))
    with torch.inference_mode():
        x = torch.from_numpy(np.array(system.fitted(image))).float().permute(2, 0, 1)[None] / 255
        x = (x - torch.tensor([0.485, 0.456, 0.406])[:, None, None]) / torch.tensor([0.229, 0.224, 0.225])[
            :, None, None
        ]
        expected = torch.nn.functional.interpolate(torch.sigmoid(network(x)), size=(400, 500), mode="bilinear")[0, 0]
    level = float(expected.median())  # an untrained network's map lies wholly on one side of 0.5
    cut = _system("ssformer", checkpoint=str(path), threshold=level)
    cut.open(device="cpu", threads=1)
    clear = np.abs(expected.numpy() - level) > 1e-4
    answer = _ask(cut, [image])[0]
    assert np.array_equal(np.unique(answer), [0, 1])
    assert clear.mean() > 0.5
    assert np.array_equal(answer[clear] > 0.5, expected.numpy()[clear] > level)
    named = _system("ssformer_l", checkpoint=str(path))
    assert named.record_name == "ssformer_l"
    with pytest.raises(MedtestError, match="this looks like ssformer_s"):
        named.open(device="cpu", threads=1)
    (mistake,) = _system("ssformer_l").check()
    assert "model=ssformer" in mistake.fix
    wrong = _system("pranet", checkpoint=str(path))
    with pytest.raises(MedtestError, match="this looks like ssformer_s"):
        wrong.open(device="cpu", threads=1)

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from medtest.cases import Address
from medtest.errors import MedtestError
from medtest.plugins import part
from medtest.systems.border import check_mask
from medtest.systems.segmentation.network import SegmentationNetwork
from medtest.systems.segmentation.networks import registry

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
    return [np.asarray(one) for one in system.predict(images, [ADDRESS] * len(images))]


@pytest.fixture(params=["pranet", "ssformer"])
def compact(request: pytest.FixtureRequest) -> SegmentationNetwork:
    system = _system(request.param)
    system.open(device="cpu", threads=1)
    return system


def test_the_compact_network_says_so_and_answers_at_the_images_size(compact: SegmentationNetwork) -> None:
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


def test_an_answer_does_not_depend_on_the_batch(compact: SegmentationNetwork) -> None:
    images = _images(*[(512, 512)] * 3)
    together = _ask(compact, images)
    for image, answer in zip(images, together, strict=True):
        assert np.abs(_ask(compact, [image])[0] - answer).max() < 1e-4


def test_memory_layout_changes_speed_and_not_the_answer(compact: SegmentationNetwork) -> None:
    other = _system(compact.name, channels_last=False)
    other.open(device="cpu", threads=1)
    images = _images((512, 512))
    assert np.abs(_ask(compact, images)[0] - _ask(other, images)[0]).max() < 1e-4


@pytest.mark.parametrize("threshold", [0.2, 0.7])
def test_a_threshold_cuts_where_it_says(threshold: float) -> None:
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
    with pytest.raises(MedtestError, match="before it was opened"):
        _ask(_system("pranet"), _images((64, 64)))


def test_a_name_of_the_users_own_stays() -> None:
    assert _system("pranet", name="v2").record_name == "v2"


def test_a_checkpoint_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    (mistake,) = _system("pranet", checkpoint=str(tmp_path / "PraNet-19.pth")).check()
    assert "no such file" in mistake.found
    (tmp_path / "PraNet-19.docx").write_bytes(b"x")
    (mistake,) = _system("pranet", checkpoint=str(tmp_path / "PraNet-19.docx")).check()
    assert ".pth" in mistake.allowed
    (tmp_path / "PraNet-19.pth").touch()
    (mistake,) = _system("pranet", checkpoint=str(tmp_path / "PraNet-19.pth")).check()
    assert "empty" in mistake.found


@pytest.mark.parametrize("family", ["pranet", "ssformer"])
def test_official_post_processing(family: str) -> None:
    """PraNet resizes the logit and stretches the map to 0…1; SSFormer resizes the probability."""
    system = _system(family, protocol="official")
    logits = torch.tensor([[[-4.0, 4.0], [-2.0, 6.0]]])
    got = system._probability(logits, (4, 4))
    if family == "pranet":
        big = torch.nn.functional.interpolate(logits[None], size=(4, 4), mode="bilinear")[0, 0]
        p = (1 / (1 + torch.exp(-big))).numpy()
        wanted = (p - p.min()) / (p.max() - p.min() + 1e-8)
    else:
        p = 1 / (1 + np.exp(-logits[0].numpy()))
        wanted = torch.nn.functional.interpolate(torch.tensor(p)[None, None], size=(4, 4), mode="bilinear")[
            0, 0
        ].numpy()
    assert np.abs(got - wanted).max() < 1e-6
    common = _system(family, protocol="common")._probability(logits, (2, 2))
    assert np.abs(common - 1 / (1 + np.exp(-logits[0].numpy()))).max() < 1e-6


def test_official_resizing_is_pillows(monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image
    from torchvision.transforms.functional import pil_to_tensor, resize

    system = _system("pranet", protocol="official", size=64)
    system._size = 64
    (image,) = _images((300, 200))
    reference = resize(
        Image.fromarray(image), [64, 64]
    )  # torchvision's default on Pillow images, as the authors use it
    assert np.array_equal(system._resize_official(image), pil_to_tensor(reference).permute(1, 2, 0).numpy())


@pytest.mark.slow
def test_a_published_checkpoint_runs_under_its_own_name(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = registry.published("ssformer_s")
    path = tmp_path / "SSFormer [S] epoch=9.pth"
    torch.save({f"module.{key}": value for key, value in network.state_dict().items()}, path)
    system = _system("ssformer", checkpoint=str(path))
    assert system.record_name == "ssformer_s"
    assert system.notice() == ""
    assert system.fingerprint() == {"weights_sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    system.open(device="cpu", threads=1)
    (image,) = _images((400, 500))
    with torch.inference_mode():
        x = torch.from_numpy(system._resize_official(image)).float().permute(2, 0, 1)[None] / 255
        x = (x - torch.tensor([0.485, 0.456, 0.406])[:, None, None]) / torch.tensor([0.229, 0.224, 0.225])[
            :, None, None
        ]
        wanted = torch.nn.functional.interpolate(torch.sigmoid(network(x)), size=(400, 500), mode="bilinear")[0, 0]
    assert np.abs(_ask(system, [image])[0] - wanted.numpy()).max() < 1e-4
    wrong = _system("pranet", checkpoint=str(path))
    with pytest.raises(MedtestError, match="this looks like ssformer_s"):
        wrong.open(device="cpu", threads=1)

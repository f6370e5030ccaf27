"""Calibrated relations meet their targets of similarity, with fixed draws, or give the reason why not."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from skimage.metrics import structural_similarity

from medtest.core.cases import Address, FollowUp, ImageSpec, PreparedSeed, ReasonCode, Seed, SeedRef
from medtest.core.errors import NotApplicable, TargetUnreachable
from medtest.preparation import prepare
from medtest.preparation.similarity import ssim
from medtest.relations.base import Relation
from medtest.relations.calibration.positions import Positions, parameters
from medtest.relations.calibration.relation import Calibrated
from medtest.relations.levels import Level, LeveledSettings
from medtest.runner.units.made_case import not_made
from medtest.testing import SUITE_SEED, check_relation, load_relation, synthetic_seed

TARGETS = [0.95, 0.8, 0.65]


def calibrated(name: str, targets: list[float] = TARGETS, **settings: Any) -> Calibrated:
    parameter = settings.pop("parameter", None)
    relation = load_relation(name, calibrate={"ssim": targets, "parameter": parameter}, **settings)
    assert isinstance(relation, Calibrated)
    return relation


def address_of(seed: PreparedSeed, severity: int) -> Address:
    return Address(dataset="d", seed_id=seed.ref.seed_id, relation="r", severity=severity)


def make_follow_up(relation: Relation, seed: PreparedSeed, severity: int) -> FollowUp:
    return relation.follow_up(seed, severity, relation.generator(address_of(seed, severity), SUITE_SEED))


def similarity(seed: PreparedSeed, follow_up: FollowUp) -> float:
    """Return the mean of scikit-image's map over the field, without the window's margin."""
    options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 255}
    first, second = seed.image.astype(float), follow_up.image.astype(float)
    _, values = structural_similarity(first, second, channel_axis=-1, full=True, **options)
    return float(values[5:-5, 5:-5][~seed.frame[5:-5, 5:-5]].mean())


@pytest.mark.parametrize(
    ("name", "parameter", "settings"),
    [
        ("gaussian_noise", "sigma", {}),
        ("contrast", "level", {}),
        ("saturation", "brightness", {"parameter": "brightness"}),
        ("smoke", "level", {}),
        (
            "perturb",
            "sigma",
            {"transform": "torchvision.GaussianBlur", "params": {"kernel_size": 13}, "levels": {1: {"sigma": 0.5}}},
        ),
        (  # one step below the mildest level is far below 0
            "perturb",
            "sigma",
            {"transform": "torchvision.GaussianNoise", "levels": {1: {"sigma": 0.05}, 2: {"sigma": 0.5}}},
        ),
    ],
)
def test_targets_are_met_within_a_hundredth(name: str, parameter: str, settings: dict[str, Any]) -> None:
    relation = calibrated(name, **settings)
    assert relation.severities() == (1, 2, 3)
    seed = synthetic_seed(3)
    solved = []
    for severity, target in enumerate(TARGETS, start=1):
        try:
            follow_up = make_follow_up(relation, seed, severity)
        except TargetUnreachable:
            continue
        solved.append(severity)
        stated = follow_up.params["calibrated"]
        assert isinstance(stated, dict) and stated["parameter"] == parameter and stated["target"] == target
        assert follow_up.scale == pytest.approx(1 - target)
        assert similarity(seed, follow_up) == pytest.approx(target, abs=0.01)
        assert similarity(seed, follow_up) == pytest.approx(stated["ssim"], abs=1e-4)
        replayed = relation.apply(seed, follow_up.params)
        assert (replayed.sha256, replayed.scale) == (follow_up.sha256, follow_up.scale)
    assert 1 in solved and len(solved) >= 2


def test_all_targets_share_their_draws_and_do_not_depend_on_one_another() -> None:
    relation, fresh = calibrated("gaussian_noise"), calibrated("gaussian_noise")
    seed = synthetic_seed(1)
    follow_ups = [make_follow_up(relation, seed, severity) for severity in (1, 2, 3)]
    assert len({follow_up.params["noise_seed"] for follow_up in follow_ups}) == 1
    sigmas = [float(str(follow_up.params["sigma"])) for follow_up in follow_ups]
    assert all(mild < strong for mild, strong in pairwise(sigmas))
    alone = make_follow_up(fresh, synthetic_seed(1), 3)
    assert alone.params == follow_ups[2].params and alone.sha256 == follow_ups[2].sha256


def test_messages_do_not_depend_on_other_targets() -> None:
    def words(severities: list[int]) -> str:
        relation, seed = calibrated("white_balance", [0.95, 0.9, 0.1]), synthetic_seed(2)
        for severity in severities:
            try:
                make_follow_up(relation, seed, severity)
            except TargetUnreachable as reason:
                last = reason
        code = not_made(address_of(seed, 3), last).reason.code
        assert code == ReasonCode.TARGET_UNREACHABLE
        return str(last)

    assert words([3]) == words([1, 2, 3])
    assert words([3]).startswith("SSIM 0.1 is out of reach of cut (") and "at cut 0.5" in words([3])


def test_the_strongest_setting_meets_a_target_that_it_nearly_reaches() -> None:
    seed = synthetic_seed(2)
    with pytest.raises(TargetUnreachable) as error:
        make_follow_up(calibrated("white_balance", [0.1]), seed, 1)
    *_, strongest = re.findall(r"([\d.]+) at cut", str(error.value))
    follow_up = make_follow_up(calibrated("white_balance", [round(float(strongest) - 0.004, 3)]), seed, 1)
    solved = follow_up.params["calibrated"]
    assert isinstance(solved, dict) and solved["value"] == 0.7  # its bound


class StripeLevel(Level):
    """One severity."""

    width: float


class Stripe(Relation):
    """Darkens a stripe whose width falls again beyond 20 pixels."""

    Settings = LeveledSettings[StripeLevel]

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        return {"width": self.settings.levels[severity].width}

    def apply(self, seed: PreparedSeed, params: Any) -> FollowUp:
        width = int(params["width"])
        image = seed.image.copy()
        image[30 : 30 + (width if width <= 20 else max(0, 30 - width))] //= 4
        return FollowUp(image=image, params=params, scale=float(width))


def test_a_similarity_that_rises_again_is_refused_with_the_curve() -> None:
    levels = {1: {"width": 5.0}, 2: {"width": 20.0}, 3: {"width": 29.0}, 4: {"width": 30.0}}
    settings = Stripe.Settings(levels=levels, severities=[1], calibrate={"ssim": [0.8, 0.3]})
    relation, seed = Calibrated(Stripe(settings)), synthetic_seed(0)
    with pytest.raises(NotApplicable, match=r"does not fall steadily with width: .* at width 20, .* at width 29"):
        make_follow_up(relation, seed, 2)
    assert make_follow_up(relation, seed, 1).params["calibrated"]


def test_positions_are_levels_and_what_lies_between_and_beyond() -> None:
    positions = Positions.of(load_relation("saturation"), "level")
    assert parameters(positions.relation) == ("brightness", "contrast", "saturation")
    assert positions.values(2.0) == {"brightness": 1.19, "contrast": 1.10, "saturation": 1.07}
    assert positions.values(2.5)["brightness"] == pytest.approx(1.245)
    assert positions.values(0.0)["brightness"] == pytest.approx(1.09 - 0.10)
    assert positions.values(68.0) == {"brightness": 2.5, "contrast": 2.5, "saturation": 1.7}  # their bounds
    jpeg = Positions.of(load_relation("jpeg"), None)
    assert jpeg.parameter == "quality" and all(isinstance(jpeg.shown(at), int) for at in (1.3, 2.7))


def test_a_weakened_setting_does_not_count_as_met() -> None:
    relation = calibrated("instrument", [0.95, 0.5])
    for number in range(4):
        seed = synthetic_seed(number, height=128, width=128)
        for severity in (1, 2):
            try:
                follow_up = make_follow_up(relation, seed, severity)
            except NotApplicable:
                continue
            assert "scale_applied" not in follow_up.params
            assert similarity(seed, follow_up) == pytest.approx([0.95, 0.5][severity - 1], abs=0.01)


def test_a_calibrated_relation_keeps_the_contract() -> None:
    check_relation(calibrated("contrast", [0.9]), synthetic_seed(0))


def test_volumes_of_floats_are_calibrated_slice_by_slice() -> None:
    rng = np.random.default_rng(0)
    smooth = np.stack([np.add.outer(np.arange(40.0), 3 * np.arange(40.0)) - 80 for _ in range(3)])
    volume = (smooth + rng.normal(0, 5, smooth.shape)).astype(np.float32)
    spec = ImageSpec(dtype="float32", low=-200, high=300, axes="zyx")
    seed = prepare(Seed(ref=SeedRef(dataset="d", seed_id="s"), image=volume, kind="image", spec=spec), size=None)
    follow_up = make_follow_up(calibrated("gaussian_noise", [0.8]), seed, 1)
    assert ssim(follow_up.image, volume, spec) == pytest.approx(0.8, abs=0.01)

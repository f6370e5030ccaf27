"""Transforms of other libraries as relations, with torchvision, always installed, and a library of the tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import cv2
import numpy as np
import pytest
from pydantic import ValidationError

from medtest.core.address import image_sha256
from medtest.core.cases import Address, Image
from medtest.core.errors import MedtestError, NotApplicable
from medtest.core.oracles.moves import moved_image, moved_points
from medtest.core.plugins import AT_KEY, WrongSetting
from medtest.relations.perturb import library as libraries
from medtest.relations.perturb.library import NO_COMPANIONS, Companions, Moves, TransformLibrary
from medtest.relations.perturb.movement import coordinates, effect_of
from medtest.relations.perturb.relation import Perturb
from medtest.relations.perturb.values import as_picture
from medtest.testing import SUITE_SEED, check_relation, load_relation, synthetic_seed

SIZE = {"height": 128, "width": 160}


def perturb(transform: str, levels: Mapping[int, Mapping[str, Any]] | None = None, **params: Any) -> Perturb:
    relation = load_relation("perturb", transform=transform, levels=levels or {1: {}}, params=params)
    assert isinstance(relation, Perturb)
    return relation


def mistakes(transform: str, levels: Mapping[int, Any] | None = None, **params: Any) -> list[WrongSetting]:
    with pytest.raises(ValidationError) as caught:
        perturb(transform, levels, **params)
    (detail,) = caught.value.errors()
    assert detail["type"] == AT_KEY
    return list(detail["ctx"]["mistakes"])


class Shift3:
    """Shifts the picture without declaring it."""

    def __init__(self, pixels: int = 3) -> None:
        self.pixels = pixels


class Cells:
    """Distorts the picture by cells without declaring it."""


class Blurred:
    """Blurs the picture."""

    def __init__(self, sigma: float = 2.0) -> None:
        self.sigma = sigma


class Noisy:
    """Adds noise."""


class Pasted:
    """Pastes a square."""


class HomemadeLibrary(TransformLibrary):
    """Library that states that nothing moves."""

    module: ClassVar[str] = "json"
    packages: ClassVar[tuple[str, ...]] = ("numpy",)

    def candidates(self) -> Iterator[type]:
        yield from (Shift3, Cells, Blurred, Noisy, Pasted)

    def moves(self, kind: type) -> Moves:
        return Moves.NEVER

    def change(
        self, kind: type, arguments: Mapping[str, Any], seed: int, image: Image, companions: Companions
    ) -> tuple[Any, Companions]:
        transform, rng = kind(**arguments), np.random.default_rng(seed)
        changed = image.copy()
        if isinstance(transform, Shift3):
            changed = np.roll(image, transform.pixels, axis=1)
        if isinstance(transform, Cells):
            # The same as albumentations.GridDistortion does to a picture, without a path of masks.
            height, width = image.shape[:2]
            knots = np.linspace(0, width - 1, 6) + np.concatenate([[0], rng.uniform(-0.3, 0.3, 4) * width / 5, [0]])
            columns = np.interp(np.arange(width), np.linspace(0, width - 1, 6), knots).astype(np.float32)
            rows = np.arange(height, dtype=np.float32)[:, None]
            places = np.broadcast_arrays(columns[None], rows)
            changed = cv2.remap(image, *(np.ascontiguousarray(each) for each in places), cv2.INTER_LINEAR)
        if isinstance(transform, Blurred):
            changed = cv2.GaussianBlur(image, (0, 0), transform.sigma)
        if isinstance(transform, Noisy):
            return image + rng.normal(0, 30, image.shape), NO_COMPANIONS
        if isinstance(transform, Pasted):
            changed[20:60, 30:70] = rng.integers(0, 255, 3)
        return changed, NO_COMPANIONS


@pytest.fixture
def homemade(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    from medtest.relations.perturb.transform import transform_of

    point = EntryPoint(name="homemade", value=f"{__name__}:HomemadeLibrary", group=libraries.GROUP)
    monkeypatch.setattr(libraries, "entry_points", lambda group: [point] if group == libraries.GROUP else [])
    for cached in (libraries.library_names, libraries.library_of, transform_of):
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in (libraries.library_names, libraries.library_of, transform_of):
        cached.cache_clear()


@pytest.mark.usefixtures("homemade")
@pytest.mark.parametrize("name", ["Blurred", "Noisy", "Pasted"])
def test_transforms_that_move_nothing_pass(name: str) -> None:
    assert check_relation(perturb(f"homemade.{name}"), synthetic_seed(1, **SIZE), may_skip=True)


@pytest.mark.usefixtures("homemade")
@pytest.mark.parametrize(("name", "pixels"), [("Shift3", 3.0), ("Cells", None)])
def test_undeclared_movement_is_refused(name: str, pixels: float | None) -> None:
    (wrong,) = mistakes(f"homemade.{name}")
    assert "it moves pixels, and its library does not move masks alike" in wrong.allowed
    assert pixels is None or f"{pixels:.1f} px" in wrong.allowed


@pytest.mark.usefixtures("homemade")
def test_a_shift_below_a_pixel_and_a_half_turn_are_distinguished() -> None:
    assert perturb("homemade.Shift3", pixels=1)
    assert mistakes("homemade.Shift3", pixels=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transform", "params", "kind"),
    [
        ("torchvision.RandomInvert", {}, "none"),
        ("torchvision.GaussianBlur", {"kernel_size": 5}, "none"),
        ("torchvision.RandomErasing", {"scale": [0.02, 0.03]}, "none"),
        ("torchvision.RandomHorizontalFlip", {}, "move"),
        ("torchvision.RandomAffine", {"degrees": 10, "translate": [0.05, 0.05]}, "move"),
        ("torchvision.RandomPerspective", {"distortion_scale": 0.2}, "move"),
        ("torchvision.ElasticTransform", {"alpha": 40.0}, "warp"),
    ],
)
def test_contract_and_effect(transform: str, params: dict[str, Any], kind: str) -> None:
    follow_ups = check_relation(perturb(transform, **params), synthetic_seed(2, **SIZE), may_skip=True)
    assert {each.effect.kind for each in follow_ups} <= {kind}
    relation = perturb(transform, **params)
    pattern = synthetic_seed(2, **SIZE, framed=False)
    follow = None
    for repeat in range(6):
        try:
            params_of = relation.sample(pattern, 1, np.random.default_rng(repeat))
            follow = relation.apply(pattern, params_of)
            break
        except NotApplicable:
            continue
    assert follow is not None and follow.effect.kind == kind


def test_the_flip_of_another_library_is_the_exact_matrix() -> None:
    seed = synthetic_seed(3, **SIZE, framed=False)
    relation = perturb("torchvision.RandomHorizontalFlip")
    follow = relation.apply(seed, relation.sample(seed, 1, np.random.default_rng(1)))
    assert follow.effect.data["matrix"] == [[-1.0, 0.0, seed.width - 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert np.array_equal(follow.image, seed.image[:, ::-1])
    assert np.array_equal(moved_image(seed.image, follow.effect), follow.image)


@pytest.mark.parametrize(
    "matrix",
    [
        [[1.0, 0.0, 5.0], [0.0, 1.0, -3.0], [0.0, 0.0, 1.0]],
        [[0.9, 0.1, 3.0], [-0.1, 0.9, 8.0], [0.0, 0.0, 1.0]],
        [[1.0, 0.05, 0.0], [0.0, 1.0, 0.0], [0.0005, 0.0, 1.0]],
    ],
)
@pytest.mark.parametrize("sampling", [cv2.INTER_LINEAR, cv2.INTER_NEAREST])
def test_a_matrix_is_found_again(matrix: list[list[float]], sampling: int) -> None:
    moved = cv2.warpPerspective(coordinates(120, 150), np.array(matrix), (150, 120), flags=sampling)
    effect = effect_of(np.asarray(moved, np.float32))
    assert effect.kind == "move"
    points = np.array([[30.0, 40.0], [75.0, 60.0], [100.0, 90.0]])
    expected = cv2.perspectiveTransform(points[None], np.array(matrix))[0]
    tolerance = 0.02 if sampling == cv2.INTER_LINEAR else 0.3
    np.testing.assert_allclose(moved_points(points, effect), expected, atol=tolerance)


def test_a_repeated_edge_is_refused() -> None:
    mirrored = cv2.warpAffine(
        coordinates(120, 150), np.array([[1.0, 0, 40], [0, 1.0, 0]]), (150, 120), borderMode=cv2.BORDER_REFLECT
    )
    with pytest.raises(NotApplicable, match="repeats, mirrors or folds"):
        effect_of(np.asarray(mirrored, np.float32))


def test_draws_are_those_of_the_address_and_shared_by_levels() -> None:
    relation = perturb("torchvision.GaussianNoise", {1: {"sigma": 0.02}, 2: {"sigma": 0.08}})
    seed = synthetic_seed(4, **SIZE)
    addresses = [Address(dataset="d", seed_id="s", relation="n", severity=severity) for severity in (1, 2)]
    drawn = [relation.sample(seed, each.severity, relation.generator(each, SUITE_SEED)) for each in addresses]
    assert drawn[0]["seed"] == drawn[1]["seed"]
    assert (relation.scale_unit, drawn[1]["scale"]) == ("sigma", 0.08)
    stronger = {**drawn[0], "arguments": {**drawn[0]["arguments"], "sigma": 0.08}}
    assert stronger["arguments"] == drawn[1]["arguments"]
    varied = relation.apply(seed, stronger)
    assert image_sha256(varied.image) == relation.apply(seed, drawn[1]).sha256


def test_the_generator_of_torch_is_left_as_it_was() -> None:
    import torch

    relation, seed = perturb("torchvision.GaussianNoise"), synthetic_seed(5, **SIZE)
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    relation.apply(seed, relation.sample(seed, 1, np.random.default_rng(0)))
    assert torch.equal(torch.rand(1), expected)


def test_versions_are_in_the_digest() -> None:
    import torchvision

    versions = perturb("torchvision.RandomInvert").fingerprint()["library"]
    assert versions["torchvision"] == torchvision.__version__.partition("+")[0]
    assert set(versions) == {"torchvision", "torch"}


def test_values_are_clipped_and_rounded() -> None:
    like = np.zeros((2, 3, 3), np.uint8)
    floats = np.array([-5.0, 0.4, 0.6, 254.6, 300.0, 128.5], np.float32).reshape(2, 3)
    picture = as_picture(floats, like)
    assert picture.dtype == np.uint8 and picture.shape == like.shape
    assert picture[..., 0].ravel().tolist() == [0, 0, 1, 255, 255, 128]
    large = as_picture(np.array([[1e10, -1e10], [3e38, -0.0]], np.float32), np.zeros((2, 2, 3), np.uint8))
    assert large[..., 0].tolist() == [[255, 0], [255, 0]]
    three = as_picture(np.repeat(floats[..., None], 3, axis=2), like)
    assert np.array_equal(three, picture)


def test_wrong_pictures_are_refused() -> None:
    like = np.zeros((8, 8, 3), np.uint8)
    for wrong in (np.zeros((4, 8, 3), np.uint8), np.zeros((8, 8, 2), np.uint8)):
        with pytest.raises(Exception, match="makes a picture of"):
            as_picture(wrong, like)
    for value in (np.nan, np.inf):
        with pytest.raises(Exception, match="not finite"):
            as_picture(np.full((8, 8, 3), value, np.float32), like)


# --- mistakes of suites -----------------------------------------------------------------------------------------


def only(transform: str, levels: Mapping[int, Any] | None = None, **params: Any) -> WrongSetting:
    (wrong,) = mistakes(transform, levels, **params)
    return wrong


def test_an_unknown_class_and_library_name_the_nearest() -> None:
    assert only("torchvision.RandomInvrt").nearest == "torchvision.RandomInvert"
    assert only("torchvison.RandomInvert").nearest == "torchvision.RandomInvert"
    assert only("os.system").allowed.startswith("albumentations.CLASS, ")
    assert only("torchvision.Lambda").key == ("transform",)  # no class of pictures
    assert "it changes the size of the picture" in only("torchvision.Resize").allowed


def test_arguments_are_checked_against_the_signature() -> None:
    unknown = only("torchvision.GaussianNoise", {2: {"sigme": 0.1}})
    assert unknown.key == ("levels", "2", "sigme")
    assert (unknown.found, unknown.nearest) == ("the argument sigme", "sigma")
    assert only("torchvision.GaussianNoise", {1: {"sigma": "much"}}).allowed == "a number"
    assert only("torchvision.GaussianNoise", {1: {"sigma": True}}).allowed == "a number"
    assert only("torchvision.RandomHorizontalFlip", p="0.5").key == ("params", "p")
    missing = only("torchvision.GaussianBlur")
    assert missing.key == ("levels", "1", "kernel_size")
    assert missing.found == "nothing"
    refused = only("torchvision.GaussianBlur", {1: {"kernel_size": 4}})
    assert "Kernel size value should be an odd and positive number" in refused.allowed


@pytest.mark.parametrize(
    "value",
    [print, 1e300, float("nan"), "x" * 2000, [0.0] * 2000, {1: 2}],
    ids=["callable", "huge", "nan", "text", "list", "mapping"],
)
def test_arguments_are_plain_data(value: Any) -> None:
    wrong = only("torchvision.ColorJitter", {1: {"brightness": value}})
    assert "plain data" in wrong.allowed
    assert value is not print or wrong.found == "a function"


def test_all_mistakes_are_reported_at_once() -> None:
    wrong_settings = mistakes("torchvision.GaussianNoise", {1: {"sigme": 1.0}, 2: {"sigma": "x", "inplace": True}})
    assert [wrong.key for wrong in wrong_settings] == [
        ("levels", "1", "sigme"),
        ("levels", "2", "sigma"),
        ("levels", "2", "inplace"),
    ]


def test_severities_need_levels_and_run_all_by_default() -> None:
    relation = perturb("torchvision.GaussianNoise", {1: {"sigma": 0.1}, 3: {"sigma": 0.2}})
    assert relation.severities() == (1, 3)
    with pytest.raises(ValidationError, match="not 2"):
        load_relation("perturb", transform="torchvision.RandomInvert", severities=[2])
    with pytest.raises(ValidationError, match="not 0"):
        load_relation("perturb", transform="torchvision.RandomInvert", levels={0: {}})
    with pytest.raises(ValidationError) as caught:
        load_relation("perturb", transform="torchvision.RandomInvert", levels={"mild": {}})
    assert len(caught.value.errors()) == 1


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from medtest.relations.perturb.transform import transform_of

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for library, install in (("monai", "medtest[monai]"), ("torchio", "medtest[torchio]"), ("nrtk", "medtest[nrtk]")):
        transform_of.cache_clear()
        wrong = only(f"{library}.Anything")
        assert "it is not installed" in wrong.allowed
        assert wrong.fix == f"pip install '{install}'"
    transform_of.cache_clear()


@pytest.mark.parametrize(("package", "number"), [("albumentationsx", "2.0.11"), ("albumentations", "2.5.1")])
def test_the_successor_of_albumentations_is_refused(package: str, number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    from medtest.relations.perturb import albumentations
    from medtest.relations.perturb.transform import transform_of

    def version(name: str) -> str:
        if name != package:
            raise PackageNotFoundError
        return number

    monkeypatch.setattr(albumentations, "version", version)
    transform_of.cache_clear()
    wrong = only("albumentations.RandomFog")
    transform_of.cache_clear()
    assert f"AlbumentationsX {number} is installed, whose licence is AGPL-3.0" in wrong.allowed
    assert "pip uninstall albumentationsx" in wrong.fix
    assert "AGPL-3.0" in only("albumentationsx.RandomFog").fix


def test_policies_without_masks_are_refused_where_answers_have_places() -> None:
    relation = perturb("torchvision.TrivialAugmentWide")
    assert relation.unfit_for("mask") is not None
    assert relation.unfit_for("label") is None
    assert relation.unfit_for("answer") is None
    assert perturb("torchvision.RandomAffine", degrees=5).unfit_for("mask") is None


def test_every_mistake_of_a_suite_has_its_line(tmp_path: Any) -> None:
    from medtest.core.errors import UserMistakes
    from medtest.suite.compose import load_suite

    suite = tmp_path / "bad.yaml"
    suite.write_text(
        "extends: polyp_seg\nname: bad\nversion: '1'\nrelations:\n"
        "  noise: {relation: perturb, transform: torchvision.GaussianNoise, levels: {1: {sigma: x}, 2: {sigme: 1}}}\n"
        "  policy: {relation: perturb, transform: torchvision.RandAugment}\n"
        "  system: {relation: perturb, transform: os.system}\n"
        "  path: {relation: perturb, transform: os.path.join}\n"
        "  other: {use: perturb, transform: torchvision.RandomInvert}\n"
    )
    with pytest.raises(UserMistakes) as caught:
        load_suite(str(suite))
    text = str(caught.value)
    for line, key in [
        (5, "relations.noise.levels.1.sigma"),
        (5, "relations.noise.levels.2.sigme"),
        (6, "relations.policy.transform"),
        (7, "relations.system.transform"),
        (8, "relations.path.transform"),
        (9, "relations.other"),
    ]:
        assert f"bad.yaml:{line}: {key}\n" in text
    assert "write relation: perturb in place of use: perturb" in text
    assert "Traceback" not in text


def test_a_machine_without_the_library_says_so_in_one_line() -> None:
    # Workers receive checked settings and do not check them again.
    settings = perturb("torchvision.RandomHorizontalFlip", p=1.0).settings
    with pytest.raises(MedtestError, match="CLASS"):
        Perturb(settings.model_copy(update={"transform": "gone.Flip"}))

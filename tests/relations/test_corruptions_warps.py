"""Warps against SciPy's sampling at places computed by hand, against torchvision, and the crop of a wider picture."""

from __future__ import annotations

import numpy as np
import pytest
from corruption_parts import built, frame_of, frame_params, level_of, seed_of, sequence_of, smooth_picture
from PIL import Image
from scipy.ndimage import map_coordinates

from medtest.core.oracles.moves import move_mask
from medtest.relations.corruptions.base import Corruption
from medtest.relations.corruptions.geometric import Geometric
from medtest.relations.corruptions.warp import crop_corner

GEOMETRIC = ("rotate", "scale", "shear", "tilt", "translate")
STARTS = {"rotate": -15, "scale": 0.40, "shear": -15, "tilt": -15, "translate": -20}
STEPS = {"rotate": 1, "scale": 0.025, "shear": 1, "tilt": 1, "translate": 1}


def where_from(name: str, value: float, size: tuple[int, int], x: np.ndarray, y: np.ndarray, depth: float = 0.0):
    """Return the origin of pixel (x, y) of the warped picture, by school geometry and not by matrices."""
    width, height = size
    cx, cy = (width - 1) / 2, (height - 1) / 2
    u, v = x - cx, y - cy
    angle = np.deg2rad(value)
    if name == "rotate":  # clockwise on the screen, so back is anticlockwise
        return cx + u * np.cos(angle) + v * np.sin(angle), cy - u * np.sin(angle) + v * np.cos(angle)
    if name == "scale":
        return cx + u / value, cy + v / value
    if name == "shear":
        return cx + u + v * np.tan(angle), y
    if name == "translate":
        return x - value, y
    # A ray from the eye through the screen meets the turned plane: solve for its coordinates (p, q).
    f = np.hypot(width, height)
    a, b = (x - width / 2) / f, (y - height / 2) / f
    s, c = np.sin(angle), np.cos(angle)
    # turned point: X = c p - s d; Y = -s (s p + c d) + c q; Z = c (s p + c d) + s q, seen at (X, Y) / (Z + f)
    m11, m12, r1 = c - a * c * s, -a * s, a * (f + c * c * depth) + s * depth
    m21, m22, r2 = -s * s - b * c * s, c - b * s, b * (f + c * c * depth) + s * c * depth
    det = m11 * m22 - m12 * m21
    return (r1 * m22 - m12 * r2) / det + width / 2, (m11 * r2 - m21 * r1) / det + height / 2


def sampled(picture: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return bilinear samples by SciPy, and a mask of those that are inside by a pixel."""
    planes = [map_coordinates(picture[..., k].astype(float), [y, x], order=1, mode="nearest") for k in range(3)]
    height, width = picture.shape[:2]
    inside = (x >= 0) & (x <= width - 1) & (y >= 0) & (y <= height - 1)
    return np.stack(planes, axis=-1), inside


def values_of(name: str) -> list[float]:
    return {
        "rotate": [-15, -6, 0.5, 7, 33],
        "scale": [0.4, 0.625, 0.95, 1.1, 1.9],
        "shear": [-15, -6, 0.5, 9, 40],
        "tilt": [-15, -6, 0.5, 12, 40],
        "translate": [-20, -11, 0.5, 3.25, 17],
    }[name]


@pytest.mark.parametrize("name", GEOMETRIC)
@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("shape", [(151, 200), (128, 97)])
def test_every_pixel_comes_from_where_geometry_says(name: str, number: int, shape: tuple[int, int]) -> None:
    relation = built(name)
    assert isinstance(relation, Geometric)
    value = float(values_of(name)[number])
    seed = seed_of(smooth_picture(*shape, random=number))
    follow = relation.apply(seed, {relation.parameter: value, "scale": 1.0})
    rows, columns = np.mgrid[0 : shape[0], 0 : shape[1]].astype(float)
    x, y = where_from(name, value, (shape[1], shape[0]), columns, rows)
    expected, inside = sampled(seed.image, x, y)
    assert inside.sum() > 1000
    assert np.abs(follow.image - expected)[inside].max() <= 0.52
    beyond = (x < -1) | (x > shape[1]) | (y < -1) | (y > shape[0])
    assert not follow.image[beyond].any()


@pytest.mark.parametrize("name", GEOMETRIC)
def test_corners_go_where_geometry_says_and_the_mask_with_them(name: str) -> None:
    relation = built(name)
    assert isinstance(relation, Geometric)
    height, width = 160, 224
    for value in values_of(name):
        seed = seed_of(smooth_picture(height, width))
        follow = relation.apply(seed, {relation.parameter: float(value), "scale": 1.0})
        matrix = np.array(follow.effect.data["matrix"])
        assert follow.effect.kind == "move"
        for corner in ((0, 0), (width - 1, 0), (0, height - 1), (width - 1, height - 1)):
            target = matrix @ [*corner, 1.0]
            target = target[:2] / target[2]
            back = where_from(name, float(value), (width, height), np.float64(target[0]), np.float64(target[1]))
            assert np.allclose(back, corner, atol=1e-9)
        white = np.zeros((height, width, 3), np.uint8)
        white[50:110, 70:150] = 255
        moved = relation.apply(seed_of(white), follow.params).image[..., 0] > 127
        mask = move_mask(white[..., 0] > 0, matrix)
        assert np.count_nonzero(moved != mask) < 0.06 * mask.sum()


@pytest.mark.parametrize(("name", "value"), [("rotate", -7.0), ("rotate", 12.0), ("shear", 10.0), ("shear", -4.0)])
def test_torchvision_agrees(name: str, value: float) -> None:
    from torchvision.transforms import InterpolationMode  # imports torch's compiler, which takes seconds
    from torchvision.transforms import functional as transforms

    image = smooth_picture(144, 180)
    relation = built(name)
    warped = relation.apply(seed_of(image), {"degrees": value, "scale": 1.0}).image
    options = {"angle": value, "shear": [0.0, 0.0]} if name == "rotate" else {"angle": 0.0, "shear": [value, 0.0]}
    expected = transforms.affine(
        Image.fromarray(image), translate=[0, 0], scale=1.0, interpolation=InterpolationMode.BILINEAR, **options
    )
    away = (np.abs(np.asarray(expected).astype(int) - warped) > 1).any(axis=-1)
    # Pillow fills one pixel at the edge in another way.
    assert away.mean() < 0.02
    assert not away[40:100, 50:130].any()


def test_torchvision_agrees_on_scale_and_shift() -> None:
    from torchvision.transforms import InterpolationMode  # imports torch's compiler, which takes seconds
    from torchvision.transforms import functional as transforms

    image = smooth_picture(144, 180)
    for factor in (0.6, 1.35):
        warped = built("scale").apply(seed_of(image), {"factor": factor, "scale": 1.0}).image
        expected = transforms.affine(
            Image.fromarray(image), 0.0, [0, 0], factor, [0.0], interpolation=InterpolationMode.BILINEAR
        )
        assert np.abs(np.asarray(expected).astype(int) - warped)[50:94, 60:120].max() <= 1
    warped = built("translate").apply(seed_of(image), {"pixels": -13.0, "scale": 1.0}).image
    assert np.array_equal(warped, np.asarray(transforms.affine(Image.fromarray(image), 0.0, [-13, 0], 1.0, [0.0])))


def test_half_a_pixel_is_the_mean_of_two() -> None:
    image = np.repeat(np.arange(0, 240, 2, dtype=np.uint8)[None, :, None], 3, axis=2).repeat(40, axis=0)
    shifted = built("translate").apply(seed_of(image), {"pixels": 0.5, "scale": 1.0}).image
    assert np.array_equal(shifted[:, 1:], image[:, 1:] - 1)


@pytest.mark.parametrize("variant", ["released", "imagenet_p"])
@pytest.mark.parametrize("name", GEOMETRIC)
@pytest.mark.parametrize("difficulty", [1, 3])
def test_published_frames_of_the_wide_picture(name: str, variant: str, difficulty: int) -> None:
    wide = smooth_picture(256, 341, random=3)
    seed = seed_of(wide[16:240, 58:282], wide)
    relation = sequence_of(name, variant, severities=[difficulty])
    rows, columns = np.mgrid[0:256, 0:341].astype(float)
    for frame in (0, 4, 9):
        value = STARTS[name] + STEPS[name] * frame * difficulty
        follow = frame_of(relation, seed, frame, difficulty)
        assert follow.params[{"scale": "factor", "translate": "pixels"}.get(name, "degrees")] == pytest.approx(value)
        x, y = where_from(name, value, (341, 256), columns, rows, depth=1.0 if name == "tilt" else 0.0)
        expected, inside = (part[16:240, 58:282] for part in sampled(wide, x, y))
        assert inside.mean() > 0.1
        assert np.abs(follow.image - expected)[inside].max() <= 0.52


@pytest.mark.parametrize("name", GEOMETRIC)
def test_identity_is_exact(name: str) -> None:
    wide = smooth_picture(61, 90)
    for seed in (seed_of(smooth_picture(51, 77)), seed_of(wide[5:56, 6:83], wide)):
        relation = built(name)
        assert isinstance(relation, Geometric)
        warped = relation.apply(seed, {relation.parameter: relation.identity, "scale": 0.0}).image
        assert np.array_equal(warped, seed.image)


def test_the_crop_is_found_however_halves_were_rounded() -> None:
    wide = smooth_picture(61, 90)
    for top in (5, 6):
        for left in (6, 7):
            seed = seed_of(wide[top : top + 50, left : left + 77], wide)
            assert crop_corner(seed) == (top, left)


def test_the_wide_picture_comes_in_from_beyond_the_crop() -> None:
    wide = smooth_picture(256, 256)
    seed = seed_of(wide[16:240, 16:240], wide)
    relation = sequence_of("translate")
    follow = frame_of(relation, seed, 9)
    assert follow.params["pixels"] == 9
    assert np.array_equal(follow.image, wide[16:240, 7:231])
    alone = frame_of(relation, seed_of(seed.image), 9)
    assert not alone.image[:, :9].any()
    assert np.array_equal(alone.image[:, 9:], seed.image[:, :-9])


@pytest.mark.parametrize("name", GEOMETRIC)
def test_paper_frames_grow_by_equal_steps_from_identity(name: str) -> None:
    relation = sequence_of(name)
    assert isinstance(relation, Geometric)
    seed = seed_of(smooth_picture(224, 230))
    for difficulty in (1, 2, 5):
        for frame in range(1, 10):
            params = frame_params(relation, seed, frame, difficulty)
            departure = frame * difficulty * STEPS[name]
            assert params[relation.parameter] == pytest.approx(relation.identity + departure)
            assert params["scale"] == pytest.approx(departure)


def test_pixels_of_a_shift_grow_with_the_shorter_side() -> None:
    for raw, factor in ((False, 2.0), (True, 1.0)):
        relation: Corruption = sequence_of("translate", raw=raw)
        follow = frame_of(relation, seed_of(smooth_picture(448, 500)), 3)
        assert follow.params["pixels"] == 3 * factor
        assert follow.scale == 3


def test_both_sides_are_drawn() -> None:
    seed = seed_of(smooth_picture(64, 64))
    for name in ("rotate", "shear", "tilt", "translate"):
        relation = built(name)
        assert isinstance(relation, Geometric)
        signs = {np.sign(float(level_of(relation, seed, 2, repeat).params[relation.parameter])) for repeat in range(12)}
        assert signs == {-1.0, 1.0}

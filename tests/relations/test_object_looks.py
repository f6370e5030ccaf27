"""Looks of pasted objects: brightness, edges, size and turn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from object_parts import NAMES, draws, flat_seed, follow, pasting, seed_of, solid_of

from medtest.relations.objects.cutouts import Variant, cutout, pose, size_factor, size_step, visible_box
from medtest.relations.objects.library import SOLID, load_library
from medtest.relations.objects.placing import FieldLook, brightness_gain, field_look, likeness
from medtest.relations.placement import keep_out


def test_likeness_is_the_normalised_gaussian_of_the_differences() -> None:
    infos = load_library().kind("feces")[:2]
    near = infos[0].model_copy(
        update={"field_brightness": 0.46, "field_contrast": 0.17, "field_colour": [0.5, 0.3, 0.2]}
    )
    far = near.model_copy(update={"field_brightness": 0.46 + 0.08, "field_contrast": 0.17 + 0.06})
    look = FieldLook(brightness=0.46, contrast=0.17, colour=(0.5, 0.3, 0.2), pixels=1)
    # One standard deviation off in brightness and one in contrast: exp(-(1 + 1) / 2) against 1.
    assert likeness(look, [near, far]) == pytest.approx([1 / (1 + np.exp(-1)), np.exp(-1) / (1 + np.exp(-1))])
    assert likeness(look, [far, far]) == pytest.approx([0.5, 0.5])


def test_the_gain_is_the_bounded_ratio_of_the_fields() -> None:
    info = load_library().kind("blood")[0].model_copy(update={"field_brightness": 0.4})
    for brightness, expected in ((0.4, 1.0), (0.3, 0.75), (0.05, 0.5), (0.9, 1.4)):
        look = FieldLook(brightness=brightness, contrast=0.1, colour=(0.5, 0.3, 0.2), pixels=1)
        assert brightness_gain(look, info, (0.5, 1.4)) == expected


def test_the_field_is_measured_without_the_frame() -> None:
    seed = seed_of(0)
    look = field_look(seed)
    inside = seed.image[~seed.frame].astype(float)
    luma = inside @ [0.299, 0.587, 0.114] / 255
    assert look.brightness == pytest.approx(luma.mean(), abs=0.003)
    assert look.contrast == pytest.approx(luma.std(), abs=0.003)
    assert look.colour == pytest.approx(inside.mean(axis=0) / inside.mean(axis=0).sum(), abs=1e-4)
    assert look.pixels == len(inside)


@pytest.mark.parametrize("name", ["feces", "blood"])
def test_brightness_follows_the_target(name: str) -> None:
    paster = pasting(name)
    dark, bright = flat_seed(60), flat_seed(150)
    params = follow(paster, bright, 0).params
    dimmer = json.loads(json.dumps(params))
    for item in dimmer["objects"]:
        item["gain"] *= 0.5
    solid = solid_of(paster, bright, paster.apply(bright, params))
    full = paster.apply(bright, params).image[solid].mean()
    # Half-transparent pieces show the field, which does not get darker.
    assert paster.apply(bright, dimmer).image[solid].mean() < 0.85 * full
    assert {item["gain"] for item in follow(paster, dark, 0).params["objects"]} == {  # type: ignore[union-attr]
        brightness_gain(field_look(dark), paster.infos[0], (0.5, 1.4))
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_grey_mask_bounds_brightness_in_the_dark(name: str) -> None:
    paster = pasting(name)
    lit, half = flat_seed(), flat_seed(dark_half=True)
    severity, repeat = draws(paster)[3]
    params = follow(paster, lit, severity, repeat).params
    bright, dim = paster.apply(lit, params).image, paster.apply(half, params).image
    solid = solid_of(paster, lit, paster.apply(lit, params))
    left = solid.copy()
    left[:, lit.width // 2 :] = False
    right = solid & ~left
    assert np.array_equal(dim[right], bright[right])
    if left.any():
        ratio = dim[left].mean() / bright[left].mean()
        assert paster.settings.grey_floor - 0.02 <= ratio < 0.92


@pytest.mark.parametrize("name", NAMES)
def test_pasting_is_the_over_operator(name: str) -> None:
    """Compared with floating-point blending of the cut-outs, within the rounding of three 8-bit steps."""
    paster = pasting(name)
    seed = flat_seed()
    severity, repeat = draws(paster)[2]
    result = follow(paster, seed, severity, repeat)
    expected = seed.image.astype(np.float64)
    allowed = ~keep_out(seed, margin=round(paster.settings.margin * seed.height))
    for item in result.params["objects"]:  # type: ignore[union-attr]
        info = paster.library.info(name, item["name"])  # type: ignore[index, call-overload]
        variant = Variant(info=info, angle=item["angle"], step=item["size"], flip=item["flip"])  # type: ignore[index, call-overload, arg-type]
        piece = cutout(paster.library, variant, round(paster.settings.edge_blur * seed.height, 2))
        height, width = piece.alpha.shape[:2]
        layer = np.zeros((seed.height + 2 * 800, seed.width + 2 * 800, 6))
        top, left = item["y"] + piece.offset[1] + 800, item["x"] + piece.offset[0] + 800  # type: ignore[index, call-overload, operator]
        layer[top : top + height, left : left + width, :3] = piece.colour
        layer[top : top + height, left : left + width, 3:] = piece.alpha / 255
        layer = layer[800:-800, 800:-800] * allowed[..., None]
        expected = np.minimum(layer[..., :3] * item["gain"], 255 * layer[..., 3:]) + expected * (1 - layer[..., 3:])  # type: ignore[index, call-overload]
    assert np.abs(result.image - expected).max() <= 1.5 * len(result.params["objects"]) + 1  # type: ignore[arg-type]


def centroid(alpha: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """Return the alpha-weighted middle (x, y) in pixels, corners at integers."""
    rows, columns = np.mgrid[: alpha.shape[0], : alpha.shape[1]] + 0.5
    return np.array([(columns * alpha).sum(), (rows * alpha).sum()]) / alpha.sum()


def test_a_turned_and_scaled_cutout_lies_where_its_pose_says() -> None:
    library = load_library()
    for name, angle, step, flip in (
        ("clip_deployed", 0, 0, False),
        ("snare_open", 40, -5, True),
        ("drain_tube", 250, 3, False),
    ):
        variant = Variant(info=library.info("instrument", name), angle=angle, step=step, flip=flip)
        picture = library.picture("instrument", name)
        where = pose(library, variant, 0.0)
        piece = cutout(library, variant, 0.0)
        middle = centroid(picture[..., 3]) / picture.shape[1::-1]
        centre = centroid(piece.alpha[..., 0]) + piece.offset
        assert where.place(middle[None])[0] == pytest.approx(centre, abs=0.25)
        area = np.count_nonzero(piece.alpha[..., 0] >= SOLID)
        assert area == pytest.approx(variant.pixels, rel=0.04)
        left, top, width, height = visible_box(library, variant, where)
        rows, columns = np.nonzero(piece.visible)
        assert left <= columns.min() + piece.offset[0]
        assert columns.max() + piece.offset[0] < left + width
        assert top <= rows.min() + piece.offset[1]
        assert rows.max() + piece.offset[1] < top + height


def test_size_steps_are_powers() -> None:
    info = load_library().kind("blood")[0]
    assert size_factor(0) == 1.0
    assert size_factor(8) == pytest.approx(2.0)
    assert size_step(info, info.pixels * 4) == 8
    assert size_step(info, info.pixels / 4) == -8

"""The black frame: shapes drawn here, phantoms with truth, and real images if they are available."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.core.files.images import read_rgb
from medtest.phantoms.colon import FRAME_KINDS, colon_rng, make_colon
from medtest.preparation.field_shape import Box, Cut, Ellipse, FieldShape
from medtest.preparation.frame import find_frame, fit_field

SHARED = Path(os.environ.get("MEDTEST_SHARED", Path(__file__).parents[2].parent / "shared"))
REAL = SHARED / "data" / "polyp" / "kvasir_seg" / "test" / "images"


def iou_of_field(frame, truth):
    return np.count_nonzero(~frame & ~truth) / np.count_nonzero(~frame | ~truth)


def tissue(height, width, seed=0, level=150):
    """Return a reddish texture with shading, as JPEG leaves it."""
    rng = np.random.default_rng(seed)
    noise = cv2.resize(rng.normal(0, 25, (height // 16, width // 16)).astype(np.float32), (width, height))
    red = np.clip(level + noise, 0.35 * level, 255)
    return np.dstack([red, red * 0.7, red * 0.6]).astype(np.uint8)


def jpeg(image, quality=80):
    _, data = cv2.imencode(".jpg", image[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.ascontiguousarray(cv2.imdecode(data, cv2.IMREAD_COLOR)[:, :, ::-1])


def polygon(height, width, points):
    """Return a mask of the outside of a polygon in pixels, drawn by OpenCV and not by our own rasteriser."""
    canvas = np.zeros((height, width), np.uint8)
    cv2.fillPoly(canvas, [np.round(np.array(points)).astype(np.int32)], 1)
    return canvas == 0


def octagon(height, width, box=(0, 0, None, None), cuts=(90, 90, 90, 90)):
    left, top, right, bottom = box[0], box[1], box[2] or width - 1, box[3] or height - 1
    tl, tr, bl, br = cuts
    return polygon(
        height,
        width,
        [(left + tl, top), (right - tr, top), (right, top + tr), (right, bottom - br), (right - br, bottom)]
        + [(left + bl, bottom), (left, bottom - bl), (left, top + tl)],
    )


def framed(truth, *, seed=0, level=150, quality=80):
    image = tissue(*truth.shape, seed=seed, level=level)
    image[truth] = 0
    return jpeg(image, quality)


# ------------------------------------------------------------------------------------------------ drawn by hand


@pytest.mark.parametrize("size", [(288, 384), (500, 574), (531, 622), (576, 720), (1072, 1920)])
def test_octagon_is_found_at_every_size_real_sets_have(size):
    cut = int(0.22 * size[0])
    truth = octagon(*size, cuts=(cut, cut, cut, int(0.6 * cut)))
    assert iou_of_field(find_frame(framed(truth)), truth) > 0.985


@pytest.mark.parametrize("radius", [0.48, 0.55, 0.62])
def test_circle_also_where_the_image_cuts_it(radius):
    height, width = 500, 620
    y, x = np.mgrid[:height, :width]
    truth = np.hypot(x - 300, y - 255) > radius * height
    shape = fit_field(framed(truth))
    assert iou_of_field(shape.frame(height, width), truth) > 0.985
    assert shape.ellipse is not None


def test_stretched_circle_is_an_ellipse_and_aspect_keeps_it_one():
    y, x = np.mgrid[:500, :620]
    truth = np.hypot(x - 310, y - 250) > 245
    small = cv2.resize(framed(truth), (512, 512), interpolation=cv2.INTER_AREA)
    small_truth = cv2.resize(truth.astype(np.uint8), (512, 512), interpolation=cv2.INTER_NEAREST) > 0
    assert iou_of_field(fit_field(small, aspect=620 / 500).frame(512, 512), small_truth) > 0.985
    assert iou_of_field(find_frame(small), small_truth) > 0.98


def test_rectangle_with_unequal_margins():
    truth = np.ones((480, 640), np.bool_)
    truth[31:470, 57:633] = False
    frame = find_frame(framed(truth))
    assert iou_of_field(frame, truth) > 0.99


def test_steps_and_l_shapes_of_displays_are_frame():
    truth = octagon(531, 622)
    truth[350:, :210] = True
    truth[430:, :290] = True
    frame = find_frame(framed(truth))
    assert iou_of_field(frame, truth) > 0.985
    assert frame[360:, :200].all()
    assert frame[440:, :280].all()


@pytest.mark.parametrize("colour", [(18, 163, 134), (4, 63, 20), (0, 0, 220)])
def test_coloured_display_boxes_are_frame(colour):
    truth = octagon(576, 720, cuts=(120, 120, 120, 120))
    image = tissue(576, 720)
    image[truth] = 0
    image[400:545, 10:250] = colour
    cv2.putText(image, "1 2 3", (60, 500), cv2.FONT_HERSHEY_SIMPLEX, 1.5, (240, 240, 240), 3)
    frame = find_frame(jpeg(image))
    assert frame[405:540, 15:245].mean() > 0.99


def test_dark_lumen_at_the_frame_stays_field():
    truth = octagon(531, 622, cuts=(140, 140, 140, 140))
    image = tissue(531, 622).astype(np.float32)
    y, x = np.mgrid[:531, :622]
    for cx, cy in ((560, 60), (0, 260), (330, 530)):
        image *= np.clip(np.hypot(x - cx, y - cy) / 100 - 0.25, 0.02, 1)[..., None]
    image[truth] = 0
    frame = find_frame(jpeg(image.astype(np.uint8)))
    assert np.count_nonzero(image.max(axis=2)[~truth] < 6) > 3000, "the lumens must be as black as the frame"
    assert iou_of_field(frame, truth) > 0.985


def test_dark_corner_of_an_image_without_frame_is_no_frame():
    y, x = np.mgrid[:480, :600]
    image = tissue(480, 600) * np.clip(np.hypot(x - 20, y - 30) / 260, 0.01, 1)[..., None]
    image *= np.clip(np.hypot(x - 590, y - 470) / 200, 0.02, 1)[..., None]
    assert find_frame(jpeg(image.astype(np.uint8))).mean() < 0.002


def test_image_without_frame_has_none():
    shape = fit_field(jpeg(tissue(531, 622)))
    assert shape.kind == "none"
    assert not shape.frame(531, 622).any()


def test_text_and_icons_on_the_frame_stay_frame():
    truth = octagon(531, 800, box=(200, 0, 799, 530), cuts=(120, 120, 120, 120))
    image = tissue(531, 800)
    image[truth] = 0
    for row in range(5):
        text = "12/03/2015 Name:"[: 16 - row]
        cv2.putText(image, text, (5, 60 + 30 * row), cv2.FONT_HERSHEY_SIMPLEX, 0.6, (255,) * 3, 1)
    frame = find_frame(jpeg(image))
    assert iou_of_field(frame, truth) > 0.985
    assert frame[:, :190].all()


@pytest.mark.parametrize(("level", "quality"), [(60, 75), (35, 90), (150, 35)])
def test_underexposed_and_much_compressed_images(level, quality):
    truth = octagon(531, 622, cuts=(120, 120, 120, 120))
    assert iou_of_field(find_frame(framed(truth, level=level, quality=quality)), truth) > 0.98


def test_dark_grey_frame():
    truth = octagon(531, 622, box=(60, 20, 600, 500))
    image = tissue(531, 622)
    image[truth] = (19, 18, 20)
    assert iou_of_field(find_frame(jpeg(image)), truth) > 0.985


def test_nothing_visible_is_all_frame():
    assert find_frame(np.zeros((200, 300, 3), np.uint8)).all()


@pytest.mark.parametrize("size", [(1, 1), (2, 900), (900, 3), (17, 16)])
def test_odd_sizes_do_not_break_it(size):
    rng = np.random.default_rng(1)
    for image in (np.zeros((*size, 3), np.uint8), rng.integers(0, 256, (*size, 3), dtype=np.uint8)):
        assert find_frame(image).shape == size


# ------------------------------------------------------------------------------------------------------- shapes


@given(
    bulge=st.floats(0, 0.45),
    across=st.floats(0.05, 0.5),
    down=st.floats(0.05, 0.5),
)
def test_cut_reaches_from_side_to_side_and_never_outward(bulge, across, down):
    cut = Cut(across=across, down=down, bulge=bulge)
    y = np.linspace(0, down, 60)
    reach = cut.reach(y)
    assert reach[0] == pytest.approx(across, abs=1e-9)
    assert reach[-1] == pytest.approx(0, abs=1e-9)
    assert (np.diff(reach) <= 1e-9).all()
    assert (reach <= across * (1 - y / down) + 1e-9).all(), "it bulges towards the corner"


def test_full_bulge_is_a_quarter_circle_to_about_one_per_cent():
    y = np.linspace(0, 1, 500)
    x = Cut(across=1, down=1, bulge=0.414).reach(y)
    assert np.abs(np.hypot(1 - x, 1 - y) - 1).max() < 0.0125


def test_frame_of_an_ellipse_follows_its_equation():
    shape = FieldShape(ellipse=Ellipse(x=0.5, y=0.45, across=0.3, down=0.4))
    height, width = 211, 307
    y, x = np.mgrid[:height, :width]
    u, v = ((x + 0.5) / width - 0.5) / 0.3, ((y + 0.5) / height - 0.45) / 0.4
    assert np.count_nonzero(shape.frame(height, width) != (u**2 + v**2 > 1)) <= 4


def test_frame_of_a_box_with_inset():
    shape = FieldShape(box=Box(left=0.1, top=0.2, right=0.9, bottom=1), insets=(Box(left=0, top=0.5, right=0.5),))
    frame = shape.frame(10, 10)
    truth = np.ones((10, 10), np.bool_)
    truth[2:, 1:9] = False
    truth[5:, :5] = True
    assert (frame == truth).all()


# -------------------------------------------------------------------------------------------- phantoms and real


@pytest.mark.slow
@pytest.mark.parametrize("kind", FRAME_KINDS)
def test_phantoms_with_truth(kind):
    scores = []
    for index in range(4):
        rng = colon_rng(20, "frames", index)
        phantom = make_colon(rng, size=((432, 487), (288, 384))[index % 2], frame=kind)
        scores.append(iou_of_field(find_frame(phantom.image), phantom.frame))
    assert min(scores) > 0.97


@pytest.mark.slow
def test_phantoms_of_every_kind_and_size():
    scores = []
    for index in range(120):
        phantom = make_colon(colon_rng(21, "frames", index))
        scores.append(iou_of_field(find_frame(phantom.image), phantom.frame))
    assert np.mean(scores) > 0.99
    assert np.mean(np.array(scores) >= 0.97) >= 0.95


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason="the real images are not here (set MEDTEST_SHARED)")
def test_real_images_have_little_light_on_the_frame_and_little_black_in_the_field():
    wrong = []
    for path in sorted(REAL.iterdir()):
        image = read_rgb(path)
        light = cv2.blur(image.max(axis=2), (5, 5))
        frame = find_frame(image)
        lit = np.count_nonzero(frame & (light > 60)) / frame.size
        black = np.count_nonzero(~frame & (light < 8)) / frame.size
        if lit > 0.012 or black > 0.012 or not frame.any():
            wrong.append((path.name, round(lit, 4), round(black, 4)))
    assert len(wrong) <= 2, wrong

"""Text: its pattern, its places, its letters."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import ImageFont
from scipy import ndimage

from medtest.core.cases import PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.files.paths import conf_folder
from medtest.relations.clinical.overlay import RIM, Text
from medtest.relations.clinical.overlay_text import SQUARE, draw_lines, glyph, line_width, set_block
from medtest.testing import synthetic_seed

LINE = re.compile(
    r"\d\d/\d\d/\d{4}|\d\d:\d\d:\d\d|<00:\d\d:\d\d>|CVP:\d+|Cr:N    Eh:A\d|Cr:N  Ce:\d|ID: \d{8}|Sex: [MF]   Age: \d\d"
    rf"|D\.O\.B\.: \d\d/\d\d/\d{{4}}|{SQUARE}{{3}}/{SQUARE}{{3}}|\d/\d|SN: \d{{7}}|Zm: \d\.\dx|AGC: \d   Iris: [PA]"
    r"|Dr: \d{3}|Facility: \d\d-\d"
)


def text(**changes: object) -> Text:
    content = yaml.safe_load((conf_folder() / "relations" / "text.yaml").read_text(encoding="utf-8"))
    defaults = {key: value for key, value in content.items() if key not in ("class", "summary")}
    return Text(Text.Settings(**{**defaults, **changes}))


def boxes(params: dict[str, Any]) -> list[tuple[int, int, int, int]]:
    height = params["line_height"]
    return [
        (
            block["row"] - RIM,
            block["column"] - RIM,
            block["row"] + len(block["lines"]) * height + RIM,
            block["column"] + max(line_width(line, height) for line in block["lines"]) + RIM,
        )
        for block in params["blocks"]
    ]


@pytest.mark.parametrize("count", [1, 2, 4, 7, 14, 40])
def test_lines_follow_the_pattern_and_begin_with_the_date(count: int) -> None:
    for number in range(30):
        blocks = draw_lines(count, np.random.default_rng([count, number]))
        lines = [line for block in blocks for line in block]
        assert len(lines) == count
        assert all(LINE.fullmatch(line) for line in lines), lines
        assert re.fullmatch(r"\d\d/\d\d/\d{4}", lines[0])


def test_letters_are_those_of_the_bundled_free_font() -> None:
    font = ImageFont.load_default(20)
    assert isinstance(font, ImageFont.FreeTypeFont)
    assert font.getname() == ("Aileron", "Regular")
    widths = {glyph(digit, 20).shape for digit in "0123456789"}
    assert len(widths) == 1, "digits count in place"
    glyphs = {glyph(letter, 20).tobytes() for letter in "0123456789:/ABCDEFxyz"}
    assert len(glyphs) == 21, "every letter has its own picture"
    assert all(glyph(letter, 20).any() for letter in "0123456789:/<>.-CVPrhEAIDSexgOBZmNGs" + SQUARE)
    block = set_block(["12:30", SQUARE * 3], 20)
    assert block.shape == (40, max(line_width("12:30", 20), line_width(SQUARE * 3, 20)))


def test_blocks_are_off_the_lesion_inside_the_image_and_apart() -> None:
    relation = text()
    for number in range(5):
        seed = synthetic_seed(number, height=288, width=320)
        assert seed.mask is not None
        near_lesion = ndimage.distance_transform_edt(~seed.mask) <= round(0.02 * 288) - 0.01
        for severity in relation.severities():
            params = relation.sample(seed, severity, np.random.default_rng([number, severity]))
            cover_count = np.zeros(seed.frame.shape, int)
            for top, left, bottom, right in boxes(params):
                assert 0 <= top < bottom <= seed.height
                assert 0 <= left < right <= seed.width
                assert not near_lesion[top:bottom, left:right].any()
                cover_count[top:bottom, left:right] += 1
            assert cover_count.max() == 1
            lines = [line for block in params["blocks"] for line in block["lines"]]
            assert len(lines) == relation.settings.levels[severity].lines
            changed = relation.apply(seed, params).image
            assert np.array_equal(changed[cover_count == 0], seed.image[cover_count == 0])
            assert (changed != seed.image).any()


def test_letters_are_bright_and_legible_on_tissue() -> None:
    seed = synthetic_seed(0, height=288, width=320)
    relation = text(levels={1: {"lines": 7, "size": 0.06}}, severities=[1])
    params = relation.sample(seed, 1, np.random.default_rng(3))
    changed = relation.apply(seed, params).image
    for block, (top, left, bottom, right) in zip(params["blocks"], boxes(params), strict=True):
        cover = set_block(block["lines"], params["line_height"])
        inner = changed[top + RIM : bottom - RIM, left + RIM : right - RIM]
        solid = cover == 255
        assert np.array_equal(np.unique(inner[solid], axis=0), [params["ink"]])


def test_the_frame_is_preferred_as_often_as_set() -> None:
    seed = synthetic_seed(0, height=288, width=320)
    frame = seed.frame.copy()
    frame[:, :110] = True
    object.__setattr__(seed, "frame", frame)
    for share, low, high in ((0.0, 0.0, 0.9), (1.0, 1.0, 1.0)):
        relation = text(on_frame=share)
        inside = []
        for number in range(60):
            params = relation.sample(seed, 1, np.random.default_rng(number))
            inside += [bool(seed.frame[t:b, le:r].all()) for t, le, b, r in boxes(params)]
        assert low <= np.mean(inside) <= high


def test_a_block_without_room_is_split_and_a_line_without_room_is_a_reason() -> None:
    seed = synthetic_seed(0, height=288, width=320)
    mask = np.ones(seed.frame.shape, bool)
    mask[100:126] = False
    mask[200:226] = False
    narrow = PreparedSeed(
        ref=seed.ref, image=seed.image, mask=mask, original_mask=mask, frame=seed.frame, grey=seed.grey
    )
    relation = text(levels={1: {"lines": 2, "size": 0.033}}, severities=[1], margin=0.0)
    params = relation.sample(narrow, 1, np.random.default_rng(0))
    assert [len(block["lines"]) for block in params["blocks"]] in ([1, 1], [2])
    split = text(levels={1: {"lines": 4, "size": 0.033}}, severities=[1], margin=0.0)
    assert len(split.sample(narrow, 1, np.random.default_rng(0))["blocks"]) > 1
    with pytest.raises(NotApplicable, match="no room for a line of text"):
        text().sample(narrow, 5, np.random.default_rng(0))

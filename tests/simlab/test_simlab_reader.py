"""The product's reader of pictures: drawn pictures with known answers, and simple shapes."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from medtest.core.cases import Verdict
from medtest.language.questions.expectations import judge_against_truth
from medtest.language.questions.matrix import Expectation, Rule
from medtest.language.questions.questions import official
from medtest.phantoms.questions import make
from medtest.simlab.answering.topics import topic_of
from medtest.simlab.answering.writing import rows_of_letters, writing_of
from medtest.simlab.config import engine_of
from medtest.simlab.reader import SightReader
from medtest.simlab.seeing.sight import answers
from medtest.simlab.seeing.traits import measured
from medtest.simlab.seeing.view import FINE, cells_of, view_of

SOURCE_RULE = Expectation(rule=Rule.INVARIANT)
LOOK = SightReader("edges")
UNSEEN = 8128
"""Suite seed of pictures on which no threshold was chosen."""


def wall(size: int = 512, colour: tuple[int, int, int] = (200, 122, 98)) -> NDArray[np.uint8]:
    """Return a plain wall in a field whose corners are cut off."""
    picture = np.zeros((size, size, 3), np.uint8)
    cut = size // 6
    corners = [
        (cut, 0),
        (size - cut, 0),
        (size, cut),
        (size, size - cut),
        (size - cut, size),
        (cut, size),
        (0, size - cut),
    ]
    cv2.fillPoly(picture, [np.array([*corners, (0, cut)], np.int32)], colour)
    return picture


def rightly(index: int, seed: int) -> dict[str, bool]:
    """Return whether each of the 18 questions of a drawn picture is answered correctly."""
    drawn = make(index, seed)
    sight = LOOK(drawn.image)
    results: dict[str, bool] = {}
    for question in official():
        topic = topic_of(question.text)
        assert topic is not None
        answer = question.parse(", ".join(answers(sight, topic)))
        truth = question.parse_truth(drawn.answers[question.name])
        results[question.name] = judge_against_truth(SOURCE_RULE, answer, truth).verdict == Verdict.PASS
    return results


@pytest.mark.slow
def test_a_few_drawn_pictures_are_read() -> None:
    results = [right for index in range(12) for right in rightly(index, UNSEEN).values()]
    assert np.mean(results) >= 0.9


@pytest.mark.slow
def test_nine_of_ten_answers_on_a_hundred_unseen_pictures_are_right() -> None:
    results = [rightly(index, UNSEEN) for index in range(100)]
    assert np.mean([list(result.values()) for result in results]) >= 0.9
    for name in results[0]:
        assert np.mean([result[name] for result in results]) >= 0.85, name


@pytest.mark.parametrize(
    ("colour", "name"),
    [((188, 38, 40), "red"), ((58, 92, 184), "blue"), ((240, 132, 36), "orange"), ((118, 68, 38), "brown")],
)
def test_a_disc_is_a_polyp_of_its_colour_size_and_place(colour: tuple[int, int, int], name: str) -> None:
    picture = wall()
    cv2.circle(picture, (256 + 170, 256 - 170), 57, colour, -1, cv2.LINE_AA)
    sight = LOOK(picture)
    assert [(finding.name, finding.colours, finding.cells) for finding in sight.findings] == [("polyp", (name,), (2,))]
    # 114 pixels of 512 are 10.0 mm of 45.
    assert sight.findings[0].millimetres == pytest.approx(114 * 45 / 512, rel=0.06)
    assert sight.findings[0].shape == "flat"
    assert not sight.tools
    assert sight.landmark is None


def test_an_empty_wall_has_no_findings() -> None:
    sight = LOOK(wall())
    assert (sight.findings, sight.tools, sight.landmark, sight.box, sight.text) == ((), (), None, False, False)
    assert sight.procedure == "Colonoscopy"


def test_a_green_box_and_a_black_one() -> None:
    green = wall()
    cv2.rectangle(green, (6, 380), (132, 506), (8, 80, 36), -1)
    assert LOOK(green).box
    black = wall()
    black[:, :130] = 0
    assert not LOOK(black).box
    corner = wall()
    corner[360:, :150] = 0
    assert LOOK(corner).box
    assert not LOOK(wall()).box


@pytest.mark.parametrize("ink", [(238, 238, 238), (224, 230, 236)])
def test_writing_is_found_on_the_wall_and_on_the_frame(ink: tuple[int, int, int]) -> None:
    for at in ((180, 100), (4, 24)):
        picture = wall()
        cv2.putText(picture, "12/04/2019", at, cv2.FONT_HERSHEY_SIMPLEX, 0.5, (8, 8, 8), 3, cv2.LINE_AA)
        cv2.putText(picture, "12/04/2019", at, cv2.FONT_HERSHEY_SIMPLEX, 0.5, ink, 1, cv2.LINE_AA)
        assert rows_of_letters(picture)
        assert LOOK(picture).text


def test_highlights_are_not_read_as_writing() -> None:
    rng = np.random.default_rng(5)
    picture = wall()
    for _ in range(60):
        x, y = (int(v) for v in rng.integers(60, 450, 2))
        cv2.ellipse(
            picture, (x, y), (int(rng.integers(2, 9)), int(rng.integers(1, 5))), 20.0, 0, 360, (255, 255, 255), -1
        )
    assert not LOOK(picture).text


@pytest.mark.skipif(engine_of("auto") != "rapidocr", reason="the extra ocr is not installed")
def test_ocr_reads_what_is_written() -> None:
    picture = wall()
    assert not writing_of(picture, "rapidocr")[0]
    cv2.putText(picture, "12/04/2019", (150, 250), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (238, 238, 238), 2, cv2.LINE_AA)
    assert writing_of(picture, "rapidocr")[0]


def test_cells_hold_a_fifth_or_are_half_covered() -> None:
    mask = np.zeros((90, 90), np.bool_)
    mask[0:30, 0:30] = True
    assert cells_of(mask) == (0,)
    mask[0:30, 30:50] = True
    assert cells_of(mask) == (0, 1)
    assert set(cells_of(np.ones((90, 90), np.bool_))) == set(range(9))


def test_traits_are_measured_on_simple_pictures() -> None:
    plain = wall()
    rng = np.random.default_rng(2)
    noisy = np.clip(plain + rng.normal(0, 8, plain.shape), 0, 255).astype(np.uint8)
    burnt = np.clip(plain.astype(np.float32) * 1.35, 0, 255).astype(np.uint8)
    bloody = plain.copy()
    cv2.circle(bloody, (256, 256), 60, (120, 12, 12), -1)
    glare, detail, blood = (
        np.array([measured(view_of(picture, FINE))[k] for picture in (plain, burnt, noisy, bloody)]) for k in range(3)
    )
    assert glare[1] > 0.9 > glare[0] == 0.0
    assert detail[2] > 5 * max(1.0, detail[0])
    assert blood[3] == pytest.approx(np.pi * 60**2 / view_of(bloody, FINE).field.sum(), rel=0.1)
    assert blood[0] == 0.0


def test_any_size_and_shape_is_looked_at() -> None:
    rng = np.random.default_rng(1)
    for shape in ((1, 1, 3), (7, 900, 3), (64, 64, 3), (300, 200, 3)):
        LOOK(rng.integers(0, 256, shape, dtype=np.uint8))
        LOOK(np.zeros(shape, np.uint8))
        LOOK(np.full(shape, 255, np.uint8))

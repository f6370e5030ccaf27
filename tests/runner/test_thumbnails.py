"""Thumbnails: small pictures and outlines of a run for its report, named by its records."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from runner_helpers import go, records
from runner_parts import Dim, Picky, make_suite

from medtest.runner.folder import RECORDS
from medtest.runner.records.answers import THUMBNAILS, AnswerStore, AnswerWriter, KeptAnswer, packs_of, tidy
from medtest.runner.records.thumbnails import MARKS, PICTURE, Marks, encode, of_record, outlined, size_of
from medtest.runner.replaying.replay import replay_case
from medtest.suite.model import Invocation, Privacy


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((512, 512), (160, 160)),
        ((480, 640), (160, 213)),
        ((100, 90), (100, 90)),
        ((512, 4096), (40, 320)),
        ((1, 1), (1, 1)),
    ],
)
def test_the_shorter_side_has_160_pixels(shape: tuple[int, int], expected: tuple[int, int]) -> None:
    assert size_of(*shape) == expected
    picture = np.full((*shape, 3), (200, 40, 10), np.uint8)
    with Image.open(io.BytesIO(encode(picture))) as small:
        assert (small.height, small.width) == expected and small.format == "JPEG"
        assert np.abs(np.asarray(small, int).mean((0, 1)) - (200, 40, 10)).max() < 4  # RGB, not BGR


def drawn(path: str, width: int, height: int) -> np.ndarray[Any, Any]:
    """Fill a path by OpenCV, independently of a browser."""
    mask = np.zeros((height, width), np.uint8)
    contours = [np.array(part.split(), int).reshape(-1, 1, 2) for part in path.replace("Z", "").split("M") if part]
    cv2.fillPoly(mask, contours, 1)
    return mask.astype(bool)


def test_outlines_enclose_the_regions() -> None:
    y, x = np.mgrid[:512, :512]
    ring = ((x - 200) ** 2 + (y - 260) ** 2 < 120**2) & ((x - 200) ** 2 + (y - 260) ** 2 > 60**2)
    disc = (x - 400) ** 2 + (y - 100) ** 2 < 50**2
    marks = outlined(ring | disc, disc)
    assert marks is not None and (marks.width, marks.height) == (256, 256)
    for path, region in ((marks.expected, ring | disc), (marks.answered, disc)):
        small = cv2.resize(region.astype(np.uint8), (marks.width, marks.height), interpolation=cv2.INTER_NEAREST) > 0
        filled = drawn(path, marks.width, marks.height)
        assert (filled & small).sum() / (filled | small).sum() > 0.96
    assert Marks.of_bytes(marks.as_bytes()) == marks
    assert outlined(None, None) is None
    empty = outlined(None, np.zeros((8, 8), bool))
    assert empty is not None and (empty.expected, empty.answered) == ("", "")


def test_a_mask_of_noise_gives_a_short_path() -> None:
    noise = np.random.default_rng(0).random((512, 512)) > 0.5
    marks = outlined(noise, None)
    assert marks is not None and len(marks.expected) < 20_000


@pytest.mark.parametrize(
    "data", [b"", b"1 1\nM1 1Z", b"1 x\n\n", b'1 1\n"/><script>\nM1 1Z', b"1 1\nM1 1Z\nM1 1Z\nM", b"\xff \xff\n\n"]
)
def test_outlines_of_foreign_data_are_paths_or_nothing(data: bytes) -> None:
    assert Marks.of_bytes(data) is None


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = tmp_path_factory.mktemp("thumbnails")
    suite = make_suite(seeds=3, relations={"dim": Dim, "picky": Picky}, systems={"dark": {"level": 150}, "light": {}})
    return suite, home, go(suite, home)


def test_every_image_of_a_run_has_one_in_the_folder_of_each_system(ran: Any) -> None:
    suite, home, outcome = ran
    for number in range(2):
        frame, store = records(outcome, number), AnswerStore(outcome.systems[number].folder, THUMBNAILS)
        with_image = frame[frame.followup_sha256 != ""]
        stored = store.read_all(with_image.followup_sha256)
        assert set(stored) == set(with_image.followup_sha256)
        assert set(frame[frame.relation == "source"].source_sha256) <= set(stored)
        marks = store.read_all(of_record(MARKS, row) for row in with_image.to_dict("records"))
        assert len(marks) == len(with_image)
    row = with_image[(with_image.relation == "dim") & (with_image.severity == 2)].iloc[0]
    image = replay_case(suite, Invocation(home=home, quiet=True), row.address).followup
    with Image.open(io.BytesIO(stored[row.followup_sha256])) as small:
        grey = np.asarray(small.convert("L"), float)
    assert np.corrcoef(grey.ravel(), cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).ravel())[0, 1] > 0.9


def test_outlines_are_those_of_the_truth_and_of_the_answer(ran: Any) -> None:
    _, _, outcome = ran
    frame = records(outcome, 1)
    store = AnswerStore(outcome.systems[1].folder, THUMBNAILS)
    for row in frame[(frame.relation == "dim") & frame.dice.notna()].head(4).to_dict("records"):
        data = store.read(of_record(MARKS, row).encode())
        marks = None if data is None else Marks.of_bytes(data)
        assert marks is not None
        expected, answered = (drawn(path, marks.width, marks.height) for path in (marks.expected, marks.answered))
        dice = 2 * (expected & answered).sum() / max(1, expected.sum() + answered.sum())
        assert dice == pytest.approx(row["dice"], abs=0.06)


def test_privacy_keeps_them_out(tmp_path: Path) -> None:
    suite = replace(make_suite(seeds=2, relations={"dim": Dim}), privacy=Privacy(images="none"))
    outcome = go(suite, tmp_path)
    assert not (outcome.systems[0].folder / THUMBNAILS).exists()


def test_they_go_when_the_suite_no_longer_shows_images(tmp_path: Path) -> None:
    suite = make_suite(seeds=2, relations={"dim": Dim})
    folder = go(suite, tmp_path).systems[0].folder
    assert packs_of(folder, THUMBNAILS)
    go(replace(suite, privacy=Privacy(images="none")), tmp_path)
    assert not (folder / THUMBNAILS).exists()


def test_small_packs_are_joined_and_what_no_record_names_is_dropped(ran: Any, tmp_path: Path) -> None:
    _, _, outcome = ran
    frame = records(outcome)
    frame.to_parquet(tmp_path / RECORDS)
    names = [*pd.unique(frame.followup_sha256[frame.followup_sha256 != ""])[:5], "f" * 64]
    for name in names:
        writer = AnswerWriter(tmp_path, THUMBNAILS)
        writer.add(KeptAnswer(name, PICTURE, b"\xff\xd8" + name.encode()))
        writer.flush()
    assert len(packs_of(tmp_path, THUMBNAILS)) == len(names)
    tidy(tmp_path)
    assert len(packs_of(tmp_path, THUMBNAILS)) == 1
    assert set(AnswerStore(tmp_path, THUMBNAILS).read_all(names)) == set(names[:-1])

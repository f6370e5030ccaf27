"""Film strips: frames of the run itself, labels of its records, and none if images may not be stored."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2] / "runner"))
from label_parts import Colours, Fade, label_suite
from runner_helpers import go

from medtest.core.cases import image_sha256
from medtest.core.errors import MedtestError, UserMistakes
from medtest.report.pages.material import sample_index
from medtest.report.replayed import write_pictures
from medtest.results.records.records_io import Records
from medtest.runner.pictures import films
from medtest.runner.pictures.films import PANEL, FilmFrame, draw_film
from medtest.runner.replaying.replay import replay_sequence
from medtest.suite.model import Invocation, Privacy
from medtest.tasks.classify.report import film_strips
from medtest.tasks.classify.report.film_strips import FILMS, film_pictures
from medtest.tasks.classify.tables.films import worst_sequences


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    home = tmp_path_factory.mktemp("films")
    suite = label_suite(relations={"fade": Fade}, severities=(3, 5))
    folder = go(suite, home).systems[0].folder
    return suite, Invocation(home=home, track=False), folder, worst_sequences(Records.read(folder))


def draw_strips(suite, invocation, folder, chosen):
    """Draw the film strips of a system called meter; return what could not be drawn."""
    return write_pictures(suite, invocation, folder, film_pictures(chosen, "meter"), FILMS, "meter")


def test_frames_are_made_again_to_the_byte(ran):
    suite, invocation, folder, films = ran
    records = Records.read(folder).followups.set_index(["seed_id", "severity", "frame"])
    assert films and all(film.flips > 0 for film in films)
    for film in films[:3]:
        images = replay_sequence(suite, invocation, [film.address(frame.frame) for frame in film.frames])
        hashes = [records.loc[(film.seed_id, film.severity, frame.frame)].followup_sha256 for frame in film.frames]
        assert [image_sha256(image) for image in images] == hashes


def test_strips_are_drawn_once_and_hold_the_labels_of_the_records(ran):
    suite, invocation, folder, films = ran
    assert draw_strips(suite, invocation, folder, films) == []
    entries = sample_index(folder, FILMS.index)
    assert [entry["address"] for entry in entries] == [film.address(0) for film in films]
    assert [frame["label"] for frame in entries[0]["frames"]] == [frame.label for frame in films[0].frames]
    path = folder / "samples" / entries[0]["file"]
    with Image.open(path) as picture:
        assert picture.height >= PANEL and picture.width >= 4 * 48
        assert len(np.unique(np.asarray(picture).reshape(-1, 3), axis=0)) > 50
    before = path.stat().st_mtime_ns
    assert draw_strips(suite, invocation, folder, films) == []
    assert path.stat().st_mtime_ns == before, "strips that lie there are kept"
    fewer = films[:1]
    draw_strips(suite, invocation, folder, fewer)
    assert len(list((folder / "samples").glob("film-*.png"))) == 1 == len(sample_index(folder, FILMS.index))


def test_no_strip_is_left_if_images_may_not_be_stored(ran):
    suite, invocation, folder, films = ran
    draw_strips(suite, invocation, folder, films)
    draw_strips(replace(suite, privacy=Privacy(images="none")), invocation, folder, films)
    assert sample_index(folder, FILMS.index) == [] and not list((folder / "samples").glob("film*"))


def test_a_missing_seed_is_reported_and_harms_nothing(ran):
    suite, invocation, folder, films = ran
    gone = replace(films[0], seed_id="shade-999")
    problems = draw_strips(suite, invocation, folder, [gone, films[1]])
    assert problems == ["meter: a film strip could not be drawn (UserMistakes)."]
    assert [entry["address"] for entry in sample_index(folder, FILMS.index)] == [films[1].address(0)]


def test_addresses_of_one_sequence_are_of_one_seed(ran):
    suite, invocation, _, _ = ran
    with pytest.raises(MedtestError, match="one seed"):
        replay_sequence(suite, invocation, ["shades/shade-000/fade_s3_f0_r0", "shades/shade-001/fade_s3_f1_r0"])
    with pytest.raises(UserMistakes):
        replay_sequence(suite, invocation, ["shades/shade-000/fade_s3_f9_r0"])


def test_a_torn_index_shows_nothing(ran):
    _, _, folder, _ = ran
    for text in ("", "{}", "[1]", json.dumps([{"file": "../../x.png"}])):
        (folder / "samples" / "films.json").write_text(text)
        assert sample_index(folder, FILMS.index) == []


def test_several_labels_are_listed_one_below_the_other(tmp_path):
    suite = label_suite(relations={"fade": Fade}, severities=(5,), seeds={"multi": True, "count": 8}, system=Colours)
    folder = go(suite, tmp_path).systems[0].folder
    films = worst_sequences(Records.read(folder))
    labels = [frame.label for film in films for frame in film.frames]
    assert any(label is not None and "|" in label for label in labels)
    lines = [film_strips._lines(frame) for film in films for frame in film.frames]
    assert all(line[0].startswith("frame ") and len(line) >= 2 for line in lines)
    assert ["none"] in [line[1:] for line in lines]  # no finding left when the light is gone


def test_a_film_marks_flips_by_colour_and_by_sign():
    grey = np.full((60, 80, 3), 90, np.uint8)
    frames = [FilmFrame(image=grey, lines=[f"frame {n}", "normal 0.61"], flipped=n == 3) for n in range(13)]
    frames[5] = FilmFrame(image=None, lines=["frame 5", "ERROR"], flipped=False)
    picture = draw_film(frames, title="a" * 400, detail="b")
    vermilion = (picture == (213, 94, 0)).all(2)
    assert picture.shape[0] > 2 * PANEL, "ten frames to a row"
    assert vermilion.sum() > 4 * PANEL
    plain = draw_film([replace(frame, flipped=False) for frame in frames], title="a", detail="b")
    assert not (plain == (213, 94, 0)).all(2).any()
    assert films._lines(frames[3]) == ["frame 3: flip", "normal 0.61"]

"""Studies drawn from a suite and the store of follow-ups."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest
from study_parts import answer_all, make_small, right

from medtest.core.cases import image_sha256
from medtest.core.errors import UserMistakes
from medtest.runner.followups import FollowUpStore
from medtest.study.extras import erase_lesion, unnatural
from medtest.study.options import StudyOptions, review_options, study_options
from medtest.study.questions import Role, StudyKind
from medtest.study.results.review import make_review
from medtest.study.store import IMAGES, StudyStore
from medtest.study.workshop import outlines


def _read_image(store: StudyStore, file: str) -> np.ndarray:
    return cv2.cvtColor(cv2.imread(str(store.folder / IMAGES / file)), cv2.COLOR_BGR2RGB)


@pytest.mark.slow
def test_a_study_holds_the_requested_items(pairs_study: Path) -> None:
    with StudyStore(pairs_study) as store:
        items = [item for item in store.items() if item.phase == "main"]
        assert Counter(i.relation for i in items if i.role is Role.ITEM) == {"blur": 4, "text": 4}
        assert (
            Counter(i.severity for i in items if i.role is Role.ITEM and i.relation == "blur").most_common(1)[0][1] <= 2
        )
        assert Counter(i.role for i in items if i.role is not Role.ITEM) == {Role.IDENTICAL: 1, Role.ERASED: 1}
        assert sum(item.phase == "training" for item in store.items()) == 4
        for annotator in (1, 2, 3):
            places = [p for p in store.places() if p.annotator == annotator and p.phase == "main"]
            assert len(places) == 8 + 2 + 2
            assert sum(p.showing == 2 for p in places) == 2
        orders = [tuple(p.item for p in store.places() if p.annotator == a and p.phase == "main") for a in (1, 2, 3)]
        assert len(set(orders)) == 3


def test_images_equal_the_records_and_catch_items_are_right(pairs_study: Path) -> None:
    with StudyStore(pairs_study) as store:
        for item in store.items():
            source, shown = _read_image(store, item.source_file), _read_image(store, item.followup_file)
            assert image_sha256(source) == item.source_sha256
            assert image_sha256(shown) == item.followup_sha256
            if item.role is Role.IDENTICAL:
                assert (source == shown).all()
            elif item.role is Role.ERASED:
                inside = np.zeros(source.shape[:2], np.uint8)
                cv2.fillPoly(inside, [np.array(c, np.int32) for c in item.outlines["source"]], 1)
                changed = np.abs(source.astype(int) - shown).mean(2)
                assert changed[inside > 0].mean() > 4 > changed[inside == 0].mean()
            else:
                assert not (source == shown).all()


@pytest.mark.slow
def test_follow_ups_come_from_the_store(tmp_path: Path) -> None:
    progress_calls: list[tuple[int, int]] = []
    first = make_small(
        tmp_path,
        tmp_path / "one",
        progress=lambda *n: progress_calls.append(n),
        per_relation="4",
        training="0",
        catch="0",
    )
    assert progress_calls == [(n, 8) for n in range(1, 9)]
    followups = FollowUpStore.open(tmp_path / "followups")
    entries = {str(e.address): e for e in followups.entries()}
    with StudyStore(first.folder) as store:
        items = store.items()
    assert {item.address for item in items} <= set(entries)
    assert all(entries[item.address].followup_sha256 == item.followup_sha256 for item in items)
    # what the store holds is shown, not made again: altered pixels under their own hash would be refused and remade
    followups.close()
    victim = items[0]
    path = followups.image_path(victim.followup_sha256)
    path.write_bytes(b"damaged")
    second = make_small(tmp_path, tmp_path / "two", training="0", catch="0")
    with StudyStore(second.folder) as store:
        assert {i.address: i.followup_sha256 for i in store.items()} == {i.address: i.followup_sha256 for i in items}


def test_artefacts(frames_study: Path) -> None:
    with StudyStore(frames_study) as store:
        assert store.kind is StudyKind.ARTEFACTS
        items = [item for item in store.items() if item.phase == "main"]
        assert Counter(i.relation for i in items if i.role is Role.ITEM) == {"source": 6, "blur": 2, "text": 2}
        caught = [i for i in items if i.role is Role.MARKED]
        assert {i.severity for i in caught} == {5}
        assert all(i.expected["marks"] == [i.part] for i in caught)


def test_no_artefact_is_caught_twice(tmp_path: Path) -> None:
    """If plain follow-ups run out, there are fewer catch items, with a notice; none is shown twice."""
    study = make_small(
        tmp_path, tmp_path / "caught", ("limit=3",), kind="artefacts", frames="3", per_relation="9", catch="0.5"
    )
    with StudyStore(study.folder) as store:
        caught = [i.address for i in store.items() if i.phase == "main" and i.role is Role.MARKED]
    assert len(set(caught)) == len(caught) == study.catches <= 6
    assert any("catch items" in notice for notice in study.notices)


@pytest.mark.slow
def test_fewer_follow_ups_than_requested_are_a_notice(tmp_path: Path) -> None:
    study = make_small(tmp_path, tmp_path / "few", ("only=severity:3",), per_relation="50", training="0")
    assert study.items["blur"] == 8
    assert 0 < study.items["text"] <= 8  # small images leave some text no room
    assert any("blur: 8 of 50" in notice for notice in study.notices)


@pytest.mark.slow
def test_hashed_ids_and_images_kept_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTEST_HASH_KEY_FILE", str(tmp_path / "key"))
    study = make_small(tmp_path, tmp_path / "hashed", ("privacy.seed_ids=hashed",), per_relation="2")
    database = (study.folder / "study.db").read_bytes()
    assert b"phantom-0" not in database
    with pytest.raises(UserMistakes, match=r"privacy\.images"):
        make_small(tmp_path, tmp_path / "none", ("privacy.images=none",))
    assert not (tmp_path / "none").exists()


def test_a_taken_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine")
    with pytest.raises(UserMistakes, match="taken, which exists"):
        make_small(tmp_path, tmp_path / "taken")
    assert (tmp_path / "taken" / "mine.txt").read_text() == "mine"


def test_options_are_checked_all_at_once() -> None:
    with pytest.raises(UserMistakes) as caught:
        study_options({"kind": "artefact", "annotators": "none", "repeat": "0.9"})
    text = str(caught.value)
    assert "did you mean: artefacts" in text
    assert text.count("command line") == 3
    assert StudyOptions(annotators=2, raters=5).seen_by == 2
    with pytest.raises(UserMistakes, match="as many as there are annotators"):
        study_options({"annotators": "2", "raters": "5"})
    with pytest.raises(UserMistakes, match="annotators, raters, repeat, draw, to"):
        review_options(["suite=polyp_seg"])
    assert review_options(["to=there", "annotators=2"])[1] == "there"


def test_review_takes_flagged_and_disputed_items(folder: Path, tmp_path: Path) -> None:
    with StudyStore(folder) as store:
        judged = [i for i in store.items() if i.phase == "main" and i.role is Role.ITEM]
        unreal, disputed = judged[0].address, judged[5].address

        def say(annotator: int, item: object, showing: int) -> dict[str, object]:
            answer = right(item)  # type: ignore[arg-type]
            if item.role is Role.ITEM and item.address == unreal:  # type: ignore[attr-defined]
                answer["realism"] = 1
            if item.role is Role.ITEM and item.address == disputed and annotator == 2:  # type: ignore[attr-defined]
                answer["diagnosis"] = 2
            return answer

        answer_all(store, say)  # type: ignore[arg-type]
    study = make_review(folder, StudyOptions(annotators=2, repeat=0), tmp_path / "second")
    with StudyStore(study.folder) as store:
        assert {i.address for i in store.items()} == {unreal, disputed}
        assert store.meta["review_of"] == "pairs"
        assert [place.annotator for place in store.places()] == [1, 1, 2, 2]
        assert all((study.folder / IMAGES / i.source_file).is_file() for i in store.items())
        assert store.answers() == []
    with pytest.raises(UserMistakes, match="nothing flagged"):
        make_review(study.folder, StudyOptions(annotators=1), tmp_path / "third")


def test_erasing_needs_room() -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(80, 120, (96, 96, 3), dtype=np.uint8)
    lesion, frame = np.zeros((96, 96), bool), np.zeros((96, 96), bool)
    assert erase_lesion(image, lesion, frame, rng) is None
    lesion[30:50, 30:50] = True
    image[lesion] = (250, 40, 40)
    frame[:4] = True
    gone = erase_lesion(image, lesion, frame, np.random.default_rng(1))
    assert gone is not None
    assert gone[lesion].max() < 200
    assert (gone[frame] == image[frame]).all()
    assert (gone == erase_lesion(image, lesion, frame, np.random.default_rng(1))).all()
    lesion[10:90, 10:90] = True
    assert erase_lesion(image, lesion, frame, rng) is None


def test_outlines_and_colours() -> None:
    mask = np.zeros((40, 60), bool)
    mask[10:20, 30:50] = True
    (contour,) = outlines(mask)
    assert sorted(map(tuple, contour)) == [(30, 10), (30, 19), (49, 10), (49, 19)]
    assert outlines(None) == outlines(np.zeros((4, 4), bool)) == []
    image = np.full((8, 8, 3), (200, 100, 60), np.uint8)
    frame = np.zeros((8, 8), bool)
    frame[0] = True
    turned = unnatural(image, frame)
    assert (turned[0] == image[0]).all()
    assert turned[1, 1, 2] > turned[1, 1, 0]

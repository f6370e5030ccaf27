"""The store keeps the follow-ups of relations, byte for byte, once."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
import pytest
from followup_parts import Dim, Shift, Trouble, files_of, go, make_suite
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image as PillowImage

from medtest.core.cases import Address, image_sha256
from medtest.core.errors import OutputProblem, UserMistakes
from medtest.core.files.by_content import PictureFiles, decode, encode, mask_sha256, relative_path
from medtest.runner.followups import DamagedFile, Entry, FollowUpStore, StoreReport
from medtest.runner.pool.processes import FRESH_VARIABLE
from medtest.runner.units.parts import Parts
from medtest.suite.model import Privacy, Selection, Suite

# --------------------------------------------------------------------------------------------------- stored content


@pytest.mark.slow
def test_forked_workers_make_the_bytes_that_fresh_interpreters_make(
    store_report: StoreReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FRESH_VARIABLE, "1")
    fresh = go(make_suite(), tmp_path, workers=2)
    assert files_of(fresh.folder) == files_of(store_report.folder)


def test_it_holds_what_the_runner_makes(store_report: StoreReport) -> None:
    suite = make_suite()
    parts = Parts(suite, None, 8)
    store = FollowUpStore.open(store_report.folder)
    entries = {e.address: e for e in store.entries(store_report.suite, skipped=True)}
    assert len(entries) == 3 * 2 * 5
    assert (store_report.made, store_report.skipped, store_report.errors, store_report.reused) == (27, 3, 0, 0)
    for ref in parts.sources[0].refs():
        seed = parts.prepared(0, ref)
        for address in parts.unit(ref).cases[1:]:
            case = parts.make(seed, address)
            entry = entries.pop(address)
            assert entry.source_sha256 == seed.sha256 == entry.original_sha256
            assert np.array_equal(store.image(entry.source_sha256), seed.image)
            assert seed.mask is not None
            assert np.array_equal(store.mask(entry.source_mask_sha256), seed.mask)
            assert entry.strata == ref.strata
            assert entry.cluster == ref.cluster
            if case.follow is None:
                assert (entry.skipped, entry.followup_sha256) == (case.reason.text, "")
                continue
            image = store.image(entry.followup_sha256)
            assert entry.followup_sha256 == case.sha256 == image_sha256(image)
            assert np.array_equal(image, case.follow.image)
            assert entry.params == case.follow.params
            assert entry.scale == case.follow.scale
            assert entry.effect == case.follow.effect
            assert dict(entry.facts) == dict(case.follow.facts)
            expected = np.zeros_like(seed.mask)
            step = case.follow.params["columns"] if address.relation == "shift" else 0
            expected[:, step:] = seed.mask[:, : seed.mask.shape[1] - step]  # moved by hand, not by our own function
            assert np.array_equal(store.mask(entry.mask_sha256), expected)
    assert not entries


def test_entries_come_in_the_order_of_the_plan_and_can_be_chosen(store_report: StoreReport) -> None:
    store = FollowUpStore.open(store_report.folder)
    suite = make_suite()
    parts = Parts(suite, None, 8)
    plan = [a for ref in parts.sources[0].refs() for a in parts.unit(ref).cases[1:]]
    assert [e.address for e in store.entries(store_report.suite, skipped=True)] == plan
    some = list(store.entries(relations={"shift"}, severities={1, 5}))
    assert {(e.address.relation, e.address.severity) for e in some} == {("shift", 1)}
    assert len(some) == store.count(relations={"shift"}, severities={1, 5}) == 3
    assert store.count(relations={"shift"}, severities={1, 5}, skipped=True) == 6
    assert store.count(seeds={"jane-doe-1"}, datasets={"squares"}) == 9
    assert store.count(datasets={"'; DROP TABLE followups; --"}) == 0
    first = next(iter(store.entries()))
    assert store.find(first.address) == first == store.by_key(first.key)
    assert store.find(Address(dataset="squares", seed_id="nobody", relation="dim", severity=1)) is None
    suites = store.suites()
    assert [(s.key, s.name, s.entries) for s in suites] == [(store_report.suite, "tiny", 30)]


def test_pages_are_whole(store_report: StoreReport, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FollowUpStore.open(store_report.folder)
    everything = list(store.entries())
    in_plan = list(store.entries(store_report.suite))
    monkeypatch.setattr("medtest.runner.followups.index._PAGE", 4)
    assert list(store.entries()) == everything
    assert list(store.entries(store_report.suite)) == in_plan
    assert len(everything) == 27


def test_other_tools_read_the_files(store_report: StoreReport) -> None:
    store = FollowUpStore.open(store_report.folder)
    entry = next(iter(store.entries(relations={"shift"})))
    with PillowImage.open(store.image_path(entry.followup_sha256)) as picture:
        assert (picture.format, picture.mode) == ("PNG", "RGB")
        assert np.array_equal(np.asarray(picture), store.image(entry.followup_sha256))
    with PillowImage.open(store.mask_path(entry.mask_sha256)) as picture:
        assert picture.mode == "L"
        assert set(np.unique(np.asarray(picture))) == {0, 255}


def test_bytes_do_not_depend_on_workers_and_order(store_report: StoreReport, tmp_path: Path) -> None:
    alone = go(make_suite(), tmp_path)
    backwards = tmp_path / "backwards"
    for seed in ("jane-doe-2", "jane-doe-0", "jane-doe-1"):
        for relation in ("shift", "dim"):
            only = Selection(relations=frozenset({relation}), seeds=frozenset({seed}))
            last = go(make_suite(), tmp_path, backwards, only=only)
    assert files_of(store_report.folder) == files_of(alone.folder) == files_of(backwards)
    assert store_report.suite == alone.suite == last.suite
    forwards_store, backwards_store = (FollowUpStore.open(f) for f in (store_report.folder, backwards))
    assert list(forwards_store.entries(store_report.suite, skipped=True)) == list(
        backwards_store.entries(store_report.suite, skipped=True)
    )


def test_nothing_is_made_twice(copy: Path, tmp_path: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in copy.rglob("*.png")}
    again = go(make_suite(), tmp_path, copy)
    assert (again.made, again.reused, again.skipped, again.bytes) == (0, 27, 3, 0)
    # another suite with fewer severities, another name and another relation shares the follow-ups of this one
    other = make_suite(
        name="other",
        relations={
            "dim": (Dim, {"severities": [3]}),
            "shift": (Shift, {}),
            "deep": (Dim, {"severities": [1], "by": 40.0}),
        },
    )
    shared = go(other, tmp_path, copy)
    assert (shared.made, shared.reused, shared.skipped) == (3, 3 + 12, 3)
    assert shared.suite != again.suite
    assert {p: p.stat().st_mtime_ns for p in before} == before
    store = FollowUpStore.open(copy)
    assert {e.address.severity for e in store.entries(shared.suite, relations={"dim"})} == {3}
    assert len({e.key for e in store.entries()}) == 30


@pytest.mark.parametrize(
    "other",
    [
        make_suite(seed=8),
        make_suite(size=48),
        make_suite(brighter=1),
        make_suite(relations={"dim": (Dim, {"by": 11.0}), "shift": (Shift, {})}),
        make_suite(dataset="others"),
    ],
    ids=["suite seed", "size", "content of the seed", "settings", "data set"],
)
def test_all_that_determines_a_follow_up_is_in_its_key(copy: Path, tmp_path: Path, other: Suite) -> None:
    report = go(other, tmp_path, copy, only=Selection(relations=frozenset({"dim"})))
    assert (report.made, report.reused) == (15, 0)


def test_a_higher_revision_is_made_again(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from medtest.runner.followups.recipe import SuiteKeys
    from medtest.runner.privacy.rules import ShownNames

    suite = make_suite()
    relations = suite.build_relations()
    address = Address(dataset="squares", seed_id="jane-doe-0", relation="dim", severity=1)
    before = SuiteKeys(suite, relations, ShownNames()).followup_key("s", address)
    monkeypatch.setattr(Dim, "revision", 2)
    assert SuiteKeys(suite, relations, ShownNames()).followup_key("s", address) != before
    monkeypatch.setattr("medtest.runner.followups.recipe.PREPARATION_REVISION", 99)
    seed = Parts(suite, None, 8).prepared(0, suite.build_seeds(None)[0].refs()[0])
    high = SuiteKeys(suite, relations, ShownNames()).source_key(seed)
    monkeypatch.undo()
    assert SuiteKeys(suite, relations, ShownNames()).source_key(seed) != high


def test_limit_unlabelled_and_native_size(tmp_path: Path) -> None:
    report = go(make_suite(labelled=False, size=None), tmp_path, limit=1)
    store = FollowUpStore.open(report.folder)
    assert {e.address.seed_id for e in store.entries()} == {"jane-doe-0"}
    assert {(e.mask_sha256, e.source_mask_sha256) for e in store.entries()} == {("", "")}
    assert not (report.folder / "masks").exists()


# ------------------------------------------------------------------------------------------------------------ privacy


def test_images_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserMistakes, match=r"privacy\.images"):
        go(make_suite(privacy=Privacy(images="none")), tmp_path)
    assert not (tmp_path / "followups").exists()


def test_hashed_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTEST_HASH_KEY_FILE", str(tmp_path / "key"))
    (tmp_path / "key").write_text("0123456789abcdef0123")
    suite = make_suite(privacy=Privacy(seed_ids="hashed"), relations={"shift": (Shift, {}), "bad": (Trouble, {})})
    report = go(suite, tmp_path)
    store = FollowUpStore.open(report.folder)
    assert store.count(skipped=True) == 3 * 9
    assert report.errors == 3
    everything = b"".join(p.read_bytes() for p in report.folder.glob("index.sqlite*"))
    assert b"jane" not in everything
    assert b"patient-" not in everything
    assert "jane" not in repr(report.problems)
    assert "/home/someone" not in repr(report.problems)
    # pixels are drawn from the plain id
    plain = go(make_suite(relations={"shift": (Shift, {}), "bad": (Trouble, {})}), tmp_path, tmp_path / "plain")
    assert set(files_of(report.folder)) == set(files_of(plain.folder))
    assert not {e.key for e in store.entries()} & {e.key for e in FollowUpStore.open(plain.folder).entries()}


# ------------------------------------------------------------------------------------------------------------- files


@given(
    arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40), st.just(3))),
    arrays(np.bool_, st.tuples(st.integers(1, 40), st.integers(1, 40))),
)
def test_every_picture_comes_back(image: np.ndarray, mask: np.ndarray) -> None:
    assert np.array_equal(decode("images", image_sha256(image), encode("images", image)), image)
    back = decode("masks", mask_sha256(mask), encode("masks", mask))
    assert back.dtype == np.bool_
    assert np.array_equal(back, mask)


def test_foreign_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = PictureFiles(tmp_path)
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    name = image_sha256(image)
    path = files.path("images", name)
    path.parent.mkdir(parents=True)
    good = encode("images", image)
    bomb = good[:16] + (60_000).to_bytes(4, "big") * 2 + good[24:]
    other = encode("images", image[::-1].copy())
    grey = cv2.imencode(".png", image[..., 0])[1].tobytes()
    bad_sum = good[:60] + bytes([good[60] ^ 1]) + good[61:]
    for content, words in (
        (bad_sum, "was altered"),
        (b"", "is empty"),
        (b"MZ" * 40, "not a PNG"),
        (good[:-20], "cannot be decoded|other pixels"),
        (bomb, "claims 60000×60000"),
        (good + b"\0\0\0\0more1234", "was altered"),
        (good[:40], "is truncated"),
        (other, "other pixels"),
        (grey, "another kind"),
    ):
        path.write_bytes(content)
        with pytest.raises(DamagedFile, match=words):
            files.read("images", name)
    path.unlink()
    with pytest.raises(DamagedFile, match="cannot be read"):
        files.read("images", name)
    os.mkfifo(path)  # opening it waits for a writer forever
    with pytest.raises(DamagedFile, match="is not a regular file"):
        files.read("images", name)
    path.unlink()
    for bad in ("../../etc/passwd", "", name.upper(), name[:-1], name + "\n"):
        with pytest.raises(ValueError, match="SHA-256"):
            relative_path("images", bad)
    assert capfd.readouterr().err == ""  # libpng prints its own warnings


def test_only_supported_images_and_values_are_stored(tmp_path: Path) -> None:
    store = FollowUpStore.open(tmp_path, create=True)
    for image in (np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3), np.uint16), np.zeros((4, 4, 3), np.bool_)):
        with pytest.raises(ValueError, match="keeps"):
            store.put_image(image)
    with pytest.raises(ValueError, match="keeps"):
        store._put("masks", "0" * 64, np.zeros((4, 4), np.uint8))
    name = store.put_image(np.zeros((4, 4, 3), np.uint8))
    assert store.put_image(np.zeros((4, 4, 3), np.uint8)) == name
    fields = {"key": "k", "original_sha256": name, "source_sha256": name, "followup_sha256": "1" * 64}
    with pytest.raises(OutputProblem, match="was not written"):
        store.put("s", [Entry(address=Address(dataset="d", seed_id="s", relation="r"), **fields)])  # type: ignore[arg-type]

"""Broken files and rows stop only calls that need them; for other calls they keep their places and are a notice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from label_files import FINDINGS, chexnet_lists, class_folders, isic_2017, messidor, npz, table
from label_files import source as labelled
from layout_files import source
from pair_files import mask, pairs, picture
from question_layouts import CLEF_IDS, clef

from medtest.cli.app import run_app
from medtest.core.errors import ExitCode, UserMistakes
from medtest.core.plugins import part
from medtest.runner.prepared import prepare_run
from medtest.seeds.needed import check_needed, first_places
from medtest.suite.compose import load_suite
from medtest.suite.model import Invocation, Selection
from medtest.suite.reading.outline import outline


def seeds_of(name: str, root: Path, **settings):
    info = part("seeds", name)
    kind = info.load()
    return kind(dataset="mine", settings=kind.Settings(**{**info.defaults, **settings}), root=root, suite_seed=5)


def assert_only_what_is_needed_stops(seeds, *, broken: int, reason: str):
    """Assert that the first ``broken`` places can be used and the next cannot."""
    places = seeds.places()
    assert [ref.seed_id for ref in first_places(seeds, broken)] == [ref.seed_id for ref in places[:broken]]
    for ref in places[:broken]:
        seeds.load(ref)
    key = places[broken].dataset, places[broken].seed_id
    assert key in seeds.faults().of_seeds
    lines = check_needed([seeds], {(ref.dataset, ref.seed_id) for ref in places[:broken]})
    assert "cannot be used; this call needs none of them" in lines[0] and reason in " ".join(lines)
    for call in (lambda: first_places(seeds, broken + 1), seeds.refs, lambda: check_needed([seeds], {key})):
        with pytest.raises(UserMistakes) as caught:
            call()
        assert reason in str(caught.value)
    with pytest.raises(UserMistakes):
        seeds.load(places[broken])


# ----------------------------------------------------------------------------------------------------- images and masks


def break_image(root):
    (root / "images" / "3.png").write_bytes(b"no picture")


def break_mask(root):
    mask(root / "masks" / "3.png", size=(9, 9))


def class_in_mask(root):
    pixels = np.zeros((24, 32), np.uint8)
    pixels[:8, :8], pixels[12:, 12:] = 100, 255
    from PIL import Image as Pillow

    Pillow.fromarray(pixels).save(root / "masks" / "3.png")


def drop_mask(root):
    (root / "masks" / "3.png").unlink()


def double_image(root):
    picture(root / "images" / "3.jpg", 3)


def double_mask(root):
    mask(root / "masks" / "3.bmp")


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (break_image, "images/3.png"),
        (break_mask, "is 9×9, but its image is 32×24"),
        (class_in_mask, "several levels"),
        (drop_mask, "has no mask"),
        (double_image, "has the same name as 3.jpg"),
        (double_mask, "has the same name as 3.bmp"),
    ],
)
def test_an_unusable_pair_keeps_its_place(harm, reason, tmp_path):
    pairs(tmp_path, [str(number) for number in range(1, 6)])
    harm(tmp_path)
    seeds = source(tmp_path)
    assert [ref.seed_id for ref in seeds.places()] == ["1", "2", "3", "4", "5"]
    assert_only_what_is_needed_stops(seeds, broken=2, reason=reason)
    assert [ref.seed_id for ref in source(tmp_path, on_bad_seed="skip").refs()] == ["1", "2", "4", "5"]


def test_files_without_an_image_stop_only_a_call_on_all(tmp_path):
    pairs(tmp_path, ["1", "2", "3"])
    mask(tmp_path / "masks" / "orphan.png")
    seeds = source(tmp_path)
    assert len(first_places(seeds, 2)) == 2
    with pytest.raises(UserMistakes, match="is a mask without image"):
        first_places(seeds, 3)
    with pytest.raises(UserMistakes, match="is a mask without image"):
        seeds.refs()


def test_digests_cover_broken_places(tmp_path):
    pairs(tmp_path, ["1", "2", "3"])
    whole = source(tmp_path).digest()
    (tmp_path / "images" / "3.png").write_bytes(b"no picture")
    broken = source(tmp_path).digest()
    assert len({whole, broken, source(tmp_path, on_bad_seed="skip").digest()}) == 3


def test_a_plan_and_a_run_stop_for_what_they_need(tmp_path):
    root = tmp_path / "data"
    pairs(root, [str(number) for number in range(1, 6)])
    break_image(root)
    suite = load_suite("polyp_seg_folder", [])
    invocation = Invocation(data=root, home=tmp_path / "home")
    for call in (outline, prepare_run):
        notices = " ".join(call(suite, replace(invocation, limit=2)).notices)
        assert "1 seed of folder cannot be used; this call needs none of them." in notices
        assert "Not needed: images/3.png" in notices
        for needing in (
            invocation,
            replace(invocation, limit=3),
            replace(invocation, only=Selection(seeds=frozenset({"3"}))),
        ):
            with pytest.raises(UserMistakes, match=r"1 file of the data cannot be used[\s\S]*images/3.png"):
                call(suite, needing)
        assert call(suite, replace(invocation, only=Selection(seeds=frozenset({"4"}))))
    hashed = load_suite("polyp_seg_folder", ["privacy.seed_ids=hashed"])
    assert "images/3.png" not in " ".join(outline(hashed, replace(invocation, limit=2)).notices)


def test_only_a_data_set_stops_for_its_own_files(tmp_path):
    root = tmp_path / "data"
    for name in ("a", "b"):
        pairs(root / name, ["1", "2", "3"])
    break_image(root / "b")
    suite = load_suite("polyp_seg_folder", [])
    invocation = Invocation(data=root, home=tmp_path / "home")
    assert outline(suite, replace(invocation, only=Selection(datasets=frozenset({"a"})))).datasets == {"a": 3}
    with pytest.raises(UserMistakes, match=r"b/images/3.png"):
        outline(suite, replace(invocation, only=Selection(datasets=frozenset({"b"}))))


def test_parts_of_one_run_stop_together(tmp_path):
    """A part that continued would have to be run again, because repaired data have another digest."""
    from medtest.suite.sharding import Shard

    root = tmp_path / "data"
    pairs(root, [str(number) for number in range(1, 6)])
    break_image(root)
    suite = load_suite("polyp_seg_folder", [])
    for number in (1, 2):
        with pytest.raises(UserMistakes, match="images/3.png"):
            prepare_run(suite, Invocation(data=root, home=tmp_path / "home", shard=Shard(number=number, of=2)))


# ------------------------------------------------------------------------------------------------------------- metadata


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (["file,patient", "1.png,a", "2.png,b"], "no row for images/3.png"),
        (["file,patient", "1.png,a", "2.png,b", "3.png"], "line 4 has 1 values"),
        (["file,patient", "1.png,a", "2.png,b", "3.png,c", "3.png,d"], "'3.png' a second time"),
    ],
)
@pytest.mark.parametrize("on_bad_seed", ["stop", "skip"])
def test_an_image_without_a_good_row_of_metadata(rows, reason, on_bad_seed, tmp_path):
    pairs(tmp_path, ["1", "2", "3"])
    (tmp_path / "m.csv").write_text("\n".join(rows) + "\n")
    seeds = source(tmp_path, metadata="m.csv", on_bad_seed=on_bad_seed)
    assert [ref.cluster for ref in first_places(seeds, 2)] == ["a", "b"]
    with pytest.raises(UserMistakes, match="m.csv") as caught:
        seeds.refs()
    assert reason in str(caught.value)


# --------------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a2,y,z", "3 values"),
        ("a9,y", "a9 is not in the folder of images"),
        ("a0.png,y", "a0.png a second time (first in line 2)"),
    ],
)
def test_rows_of_a_label_table_keep_their_places(row, reason, tmp_path):
    table(tmp_path, ["file,label", "a0,x", "a1,y", row, "a3,x"])
    seeds = labelled(tmp_path)
    assert_only_what_is_needed_stops(seeds, broken=2, reason=reason)
    assert len(seeds.places()) == 4
    assert [ref.seed_id for ref in labelled(tmp_path, on_bad_seed="skip").refs()] == ["a0", "a1", "a3"]


def test_an_image_of_two_classes_keeps_its_place(tmp_path):
    table(tmp_path, ["file,label", "a0,x", "a1,y", "a2,x|y"])
    seeds = labelled(tmp_path, multi=False, separator="|", classes=["x", "y"], mapping={"x|y": ""})
    assert len(seeds.places()) == 2, "a name that is mapped to nothing is left out"
    rows = ["file,x,y", "a0,1,0", "a1,0,1", "a2,1,1"]
    table(tmp_path, rows)
    assert_only_what_is_needed_stops(labelled(tmp_path, multi=False), broken=2, reason="is of 2 classes")


def test_class_folders(tmp_path):
    class_folders(tmp_path, {"a": 2, "b": 2})
    (tmp_path / "b" / "0.png").write_bytes(b"no picture")
    assert_only_what_is_needed_stops(labelled(tmp_path), broken=2, reason="b/0.png")
    picture(tmp_path / "b" / "0.png")
    picture(tmp_path / "b" / "0.jpg")
    assert_only_what_is_needed_stops(labelled(tmp_path), broken=2, reason="has the same name as")


def test_isic_and_messidor(tmp_path):
    isic_2017(tmp_path / "isic")
    path = tmp_path / "isic" / "ISIC-2017_Test_v2_Part3_GroundTruth.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], lines[2].replace("0.0", "yes", 1), *lines[3:]]) + "\n")
    assert_only_what_is_needed_stops(labelled(tmp_path / "isic"), broken=1, reason="'yes'")
    messidor(tmp_path / "messidor")
    places = len(labelled(tmp_path / "messidor").refs())
    path = next((tmp_path / "messidor").rglob("*.csv"))
    lines = path.read_text().splitlines()
    cells = lines[2].split(",")
    path.write_text("\n".join([*lines[:2], ",".join([*cells[:2], "9", *cells[3:]]), *lines[3:]]) + "\n")
    seeds = labelled(tmp_path / "messidor")
    assert len(seeds.places()) == places
    assert len(seeds.faults().of_seeds) == 1
    assert len(first_places(seeds, 1)) == 1


def test_lists_of_chest_films(tmp_path):
    chexnet_lists(tmp_path)
    path = tmp_path / "labels" / "test_list.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], f"{lines[-1].split()[0]} {' '.join('2' * len(FINDINGS))}"]) + "\n")
    seeds = labelled(tmp_path)
    assert_only_what_is_needed_stops(seeds, broken=len(lines) - 1, reason="14 columns of 0 and 1")


def test_rows_of_arrays(tmp_path):
    arrays = npz(tmp_path / "pneumoniamnist.npz")
    labels = arrays["test_labels"].astype(np.int16)
    labels[3] = -1
    np.savez_compressed(tmp_path / "pneumoniamnist.npz", **{**arrays, "test_labels": labels})
    assert_only_what_is_needed_stops(labelled(tmp_path), broken=3, reason="test_labels, row 3: -1")


def test_an_array_that_is_damaged_at_its_end(tmp_path):
    rng = np.random.default_rng(3)
    arrays = npz(tmp_path / "pneumoniamnist.npz", size=64, packed=False)
    big = rng.integers(0, 256, (40, 64, 64), dtype=np.uint8)
    np.savez_compressed(
        tmp_path / "pneumoniamnist.npz",
        **{**arrays, "test_images": big, "test_labels": np.arange(40, dtype=np.uint8)[:, None] % 2},
    )
    whole = labelled(tmp_path).refs()
    content = bytearray((tmp_path / "pneumoniamnist.npz").read_bytes())
    at = content.find(b"test_images.npy") + 100_000
    content[at : at + 50_000] = bytes(50_000)
    (tmp_path / "pneumoniamnist.npz").write_bytes(bytes(content))
    seeds = labelled(tmp_path)
    faults = seeds.faults()
    assert [ref.seed_id for ref in seeds.places()] == [ref.seed_id for ref in whole]
    broken = {seed_id for _, seed_id in faults.of_seeds}
    assert whole[0].seed_id not in broken and (broken or faults.others)
    assert first_places(seeds, 3)
    with pytest.raises(UserMistakes, match="is damaged"):
        seeds.refs()


# --------------------------------------------------------------------------------------------- questions and captions


def test_questions_of_a_missing_image(tmp_path):
    clef(tmp_path)
    (tmp_path / "images" / f"{CLEF_IDS[1]}.png").unlink()
    seeds = seeds_of("questions", tmp_path)
    assert [ref.seed_id for ref in seeds.places()] == list(CLEF_IDS)
    assert_only_what_is_needed_stops(seeds, broken=1, reason=f"of {CLEF_IDS[1]}, which has no image")
    assert len(seeds_of("questions", tmp_path, on_bad_seed="skip").refs()) == len(CLEF_IDS) - 1


def test_rows_of_captions(tmp_path):
    texts = ["A dog sits on a red chair.", "A cat lies on a bed near a table.", " ", "A man rides a horse near a tree."]
    (tmp_path / "captions.json").write_text(json.dumps({str(n): [text] for n, text in enumerate(texts)}))
    seeds = seeds_of("captions", tmp_path, min_triples=0)
    assert [ref.seed_id for ref in seeds.places()] == ["0", "1", "2", "3"]
    assert_only_what_is_needed_stops(seeds, broken=2, reason="an empty caption")
    skipping = seeds_of("captions", tmp_path, min_triples=0, on_bad_seed="skip")
    assert [ref.seed_id for ref in skipping.refs()] == ["0", "1", "3"]
    (tmp_path / "captions.json").unlink()
    (tmp_path / "captions.jsonl").write_text("".join(json.dumps({"caption": text}) + "\n" for text in texts))
    seeds = seeds_of("captions", tmp_path, min_triples=0)
    assert [ref.seed_id for ref in seeds.places()] == [f"line-{n:06d}" for n in (1, 2, 3, 4)]
    skipping = seeds_of("captions", tmp_path, min_triples=0, on_bad_seed="skip")
    assert [ref.seed_id for ref in skipping.refs()] == [f"line-{n:06d}" for n in (1, 2, 4)], "a line keeps its number"


def test_a_sample_has_no_place_for_a_broken_row(tmp_path):
    texts = [f"A {noun} sits on a red chair." for noun in ("dog", "cat", "man")]
    (tmp_path / "captions.json").write_text(json.dumps({**{str(n): [t] for n, t in enumerate(texts)}, "9": [""]}))
    seeds = seeds_of("captions", tmp_path, min_triples=0, sample=2)
    assert len(seeds.places()) == 2 and len(seeds.faults().others) == 1
    assert len(first_places(seeds, 1)) == 1
    with pytest.raises(UserMistakes, match="an empty caption"):
        seeds.refs()


# ------------------------------------------------------------------------------------------------------- whole commands


def clinicdb_like(root: Path, count: int = 6) -> None:
    """Write masks like those of CVC-ClinicDB: black and white, levels 11 to 13 along the borders of every third."""
    import cv2
    from PIL import Image as Pillow

    rng = np.random.default_rng(5)
    for number in range(1, count + 1):
        lesion = np.zeros((96, 128), np.uint8)
        cv2.ellipse(lesion, (60, 45), (28, 20), 10 * number, 0, 360, 255, -1)
        if number % 3 == 0:
            ring = (cv2.dilate(lesion, np.ones((5, 5), np.uint8)) > 0) & (lesion == 0)
            lesion[ring] = np.broadcast_to(11 + (np.arange(128) // 12) % 3, lesion.shape)[ring]
        image = rng.integers(0, 256, (96, 128, 3), dtype=np.uint8)
        for folder, pixels in (("Original", image), ("Ground Truth", lesion)):
            (root / folder).mkdir(parents=True, exist_ok=True)
            Pillow.fromarray(pixels).save(root / folder / f"{number}.tif")


def test_inspect_ends_with_a_command_that_a_run_takes(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    clinicdb_like(tmp_path / "CVC-ClinicDB")
    assert run_app(["data", "inspect", "CVC-ClinicDB"]) == 0
    output = capsys.readouterr().out
    assert "2 masks hold other levels within 32 of black or white (Ground Truth/3.tif, Ground Truth/6.tif)" in output
    command = output.strip().splitlines()[-1].split()
    assert command[:3] == ["medtest", "run", "suite=polyp_seg_folder"]
    assert run_app([*command[1:], "plan=true"]) == ExitCode.OK
    assert "2 masks hold other levels" in capsys.readouterr().out


def test_inspect_and_run_refuse_the_same_masks(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    pairs(tmp_path / "data", ["1", "2", "3", "4"])
    class_in_mask(tmp_path / "data")
    mask(tmp_path / "data" / "masks" / "4.png", value=0)
    assert run_app(["data", "inspect", "data"]) == ExitCode.MISTAKE
    output = capsys.readouterr().out
    for problem in ("masks/3.png: holds several levels", "masks/4.png: is empty"):
        assert problem in output
    assert run_app(["run", "suite=polyp_seg_folder", "data=data", "plan=true"]) == ExitCode.MISTAKE
    refused = capsys.readouterr().err
    assert "masks/3.png" in refused and "masks/4.png" in refused
    command = output.strip().splitlines()[-1].split()
    assert command[-1] == "seeds.folder.on_bad_seed=skip"
    assert run_app([*command[1:], "plan=true"]) == ExitCode.OK
    assert run_app(["run", "suite=polyp_seg_folder", "data=data", "limit=2", "plan=true"]) == ExitCode.OK


def test_if_time_is_short_the_command_takes_the_files_that_were_read(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("medtest.seeds.datasets.inspect.PIXEL_SECONDS", 0.0)
    pairs(tmp_path / "data", ["1", "2", "3"])
    assert run_app(["data", "inspect", "data"]) == ExitCode.OK
    output = capsys.readouterr().out
    assert "pixels of 0 of 6 files were read" in output
    assert output.strip().splitlines()[-1].endswith("limit=1")


def test_a_model_without_its_address_is_planned(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    clef(tmp_path / "data")
    assert run_app(["data", "inspect", "data"]) == ExitCode.OK
    command = capsys.readouterr().out.strip().splitlines()[-1].split()
    assert command[-1] == "plan=true" and "model=openai_compatible" in command
    assert run_app(command[1:]) == ExitCode.OK
    with_data = [token for token in command[1:] if token.split("=")[0] not in ("base_url", "model_name")]
    assert run_app(with_data) == ExitCode.MISTAKE, "nothing but the address was added"

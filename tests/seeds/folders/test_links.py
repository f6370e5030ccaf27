"""Data folders made of links by DVC, git-annex, the cache of Hugging Face and staging scripts."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from label_files import class_folders
from label_files import source as labelled
from layout_files import source
from pair_files import assert_pairs_are_right, mask, pairs, picture

from medtest.cli.app import run_app
from medtest.core.errors import ExitCode, UserMistakes
from medtest.core.files.walk import HERE, files_below, named_below, walk
from medtest.core.plugins import part
from medtest.seeds.datasets.tree import tree_of_folder
from medtest.seeds.folders.pairing import list_files

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links need rights that not every user of Windows has")


def caption_source(root: Path, **settings):
    info = part("seeds", "captions")
    kind = info.load()
    return kind(dataset="words", settings=kind.Settings(**{**info.defaults, **settings}), root=root, suite_seed=5)


NAMES = ("case1", "case2", "case10")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def replace_by_link(path: Path, target: Path) -> Path:
    """Move a file to a tool's store, and leave a relative link."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():  # masks of one content are kept once
        path.unlink()
    else:
        path.rename(target)
        target.chmod(0o444)
    path.symlink_to(os.path.relpath(target, path.parent))
    return target


def files_of(root: Path) -> list[Path]:
    return [path for kind in ("images", "masks") for path in sorted((root / kind).iterdir())]


def git_annex(root: Path) -> Path:
    """Replace files by links into ``.git/annex/objects`` of the repository, under keys that end in .png."""
    pairs(root, NAMES)
    for path in files_of(root):
        digest = sha256(path)
        key = f"SHA256E-s{path.stat().st_size}--{digest}.png"
        replace_by_link(path, root / ".git" / "annex" / "objects" / digest[:2] / digest[2:4] / key / key)
    return root


def dvc(root: Path) -> Path:
    """Replace files by links into a cache outside of the folder, under names without suffix."""
    pairs(root, NAMES)
    for path in files_of(root):
        digest = sha256(path)[:32]
        replace_by_link(path, root.parent / "cache" / "files" / "md5" / digest[:2] / digest[2:])
    return root


def hugging_face(root: Path) -> Path:
    """Make a snapshot of a data set, beside its blobs."""
    snapshot = root / "snapshots" / "0123456789abcdef"
    pairs(snapshot, NAMES)
    for path in files_of(snapshot):
        replace_by_link(path, root / "blobs" / sha256(path))
    return snapshot


def link_store(root: Path) -> Path:
    """Link the folders of a store, like staging scripts do."""
    pairs(root.parent / "store", NAMES, images="scans-2019", masks="truth-2020")
    root.mkdir()
    (root / "images").symlink_to(root.parent / "store" / "scans-2019")
    (root / "masks").symlink_to(root.parent / "store" / "truth-2020", target_is_directory=True)
    return root


LAYOUTS = {"git-annex": git_annex, "DVC": dvc, "Hugging Face": hugging_face, "staging": link_store}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_links_are_followed_under_their_own_names(layout, tmp_path, capsys):
    plain = tmp_path / "plain"
    pairs(plain, NAMES)
    root = layout(tmp_path / "data")
    seeds = source(root)
    assert [ref.seed_id for ref in seeds.refs()] == list(NAMES)
    assert [ref.locator for ref in seeds.refs()] == [ref.locator for ref in source(plain).refs()]
    assert seeds.digest() == source(plain).digest(), "the same data, however they are kept"
    assert_pairs_are_right(seeds)
    assert run_app(["data", "inspect", str(root)]) == 0
    output = capsys.readouterr().out
    assert "3 with a mask" in output and "suite=polyp_seg_folder" in output
    for target in ("annex", "md5", "blobs", "scans-2019", "store"):
        assert target not in output


@pytest.mark.parametrize(
    ("layout", "mend"),
    [(git_annex, "run git annex get"), (dvc, "run dvc pull"), (hugging_face, "download the snapshot")],
)
def test_a_broken_link_is_named_with_its_fix(layout, mend, tmp_path, capsys):
    root = layout(tmp_path / "data")
    target = (root / "images" / "case2.png").resolve()
    target.unlink()
    with pytest.raises(UserMistakes) as caught:
        source(root).refs()
    (mistake,) = caught.value.mistakes
    assert mistake.where == "images/case2.png"
    assert mistake.found == f"is a broken link; {mend}" or mistake.found.startswith(f"is a broken link; {mend}")
    assert [ref.seed_id for ref in source(root, on_bad_seed="skip").refs()] == ["case1", "case10"]
    assert run_app(["data", "inspect", str(root)]) == 2
    output = capsys.readouterr().out
    assert "images/case2.png: is a broken link" in output and target.name not in output


def test_a_broken_link_to_a_folder_is_named(tmp_path):
    root = link_store(tmp_path / "data")
    shutil.rmtree(tmp_path / "store" / "truth-2020")
    with pytest.raises(UserMistakes, match=r"masks is a broken link; bring back the file that it leads to"):
        source(root).refs()
    shutil.rmtree(tmp_path / "store" / "scans-2019")
    with pytest.raises(UserMistakes, match=r"images is a broken link"):
        source(root).refs()


def test_pointer_files_have_a_message_with_the_command_that_fetches_them(tmp_path):
    pairs(tmp_path, NAMES)
    (tmp_path / "images" / "case1.png").write_text("/annex/objects/SHA256E-s9--ab.png\n")
    (tmp_path / "images" / "case2.png").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:ab\n")
    with pytest.raises(UserMistakes) as caught:
        source(tmp_path).refs()
    assert [mistake.found.rpartition("; ")[2] for mistake in caught.value.mistakes] == [
        "run git annex get",
        "run git lfs pull",
    ]


def test_loops_are_skipped(tmp_path, capsys):
    root = tmp_path / "data"
    pairs(root, NAMES)
    (root / "images" / "up").symlink_to("..", target_is_directory=True)
    (root / "images" / "self").symlink_to(".")
    (root / "masks" / "far").symlink_to(tmp_path)  # above the folder that was typed, and so around it
    (root / "itself").symlink_to("itself")
    (root / "images" / "knot.png").symlink_to("knot.png")
    listed = list_files(root, HERE)
    assert sorted(listed.by_key) == ["images/case1", "images/case10", "images/case2", "images/knot"] + [
        f"masks/{name}" for name in ("case1", "case10", "case2")
    ]
    assert sorted(notice.split()[0] for notice in listed.notices) == ["images/self", "images/up", "masks/far"]
    assert all("a folder that holds it" in notice for notice in listed.notices)
    (root / "images" / "knot.png").unlink()
    seeds = source(root)
    assert len(seeds.refs()) == 3
    assert any("images/up is a link to a folder that holds it" in notice for notice in seeds.notices())
    assert run_app(["data", "inspect", str(root)]) == 0
    output = capsys.readouterr().out
    assert "images/up (is a link to a folder that holds it; it is passed over) is not looked into" in output
    assert "itself (is a link that leads to itself)" in output


def test_a_link_to_itself_is_a_broken_file(tmp_path):
    pairs(tmp_path, NAMES)
    (tmp_path / "images" / "case1.png").unlink()
    (tmp_path / "images" / "case1.png").symlink_to("case1.png")
    with pytest.raises(UserMistakes, match="is a link that leads to itself"):
        source(tmp_path).refs()


def test_two_links_to_one_folder_are_two_folders(tmp_path):
    pairs(tmp_path / "store", NAMES)
    for name in ("a", "b"):
        (tmp_path / "data" / name).mkdir(parents=True)
        for kind in ("images", "masks"):
            (tmp_path / "data" / name / kind).symlink_to(tmp_path / "store" / kind)
    assert [ref.dataset for ref in source(tmp_path / "data").refs()] == ["a"] * 3 + ["b"] * 3


def test_links_that_multiply_end_at_the_depth(tmp_path):
    """Ten folders of two links each to the next are a thousand paths; none of them is a loop."""
    for number in range(12):
        (tmp_path / str(number)).mkdir()
        picture(tmp_path / str(number) / "a.png")
    for number in range(11):
        for name in "xy":
            (tmp_path / str(number) / name).symlink_to(tmp_path / str(number + 1))
    folders = list(walk(tmp_path / "0", deepest=5))
    assert len(folders) == 2**6 - 1
    assert sum(len(folder.troubles) for folder in folders) == 2**6


def test_a_typed_link_keeps_its_name(tmp_path):
    """Known sets are recognised by their folder's name, which is the link's."""
    root = dvc(tmp_path / "f00d")
    (tmp_path / "CVC-ClinicDB").symlink_to(root)
    assert tree_of_folder(tmp_path / "CVC-ClinicDB").name == "CVC-ClinicDB"


def test_named_files_stay_below_their_folder_by_name(tmp_path):
    assert named_below(tmp_path, "a/b.png") == tmp_path / "a" / "b.png"
    for name in ("../a.png", "a/../../b.png", "/etc/passwd", "a\0b"):
        assert named_below(tmp_path, name) is None


def test_hidden_stores_are_not_listed_themselves(tmp_path):
    root = git_annex(tmp_path / "data")
    assert {path.parent.name for path in files_below(root)} == {"images", "masks"}
    assert len(list(files_below(root))) == 6


# ------------------------------------------------------------------------------------------------------- artefacts


def small_suite(folder: Path) -> Path:
    folder.mkdir()
    (folder / "linked.yaml").write_text(
        "name: linked\nversion: '1'\ndescription: A team's own.\nseed: 7\n"
        "seeds: {ours: {source: image_mask_folders}}\nrelations: {blur: {severities: [2]}}\n"
        "systems: [pranet]\noracles: {}\n"
    )
    return folder / "linked.yaml"


@pytest.mark.slow
@pytest.mark.parametrize("layout", [dvc, link_store])
def test_targets_of_links_are_in_no_artefact(layout, tmp_path, monkeypatch):
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path / "home"))
    root = layout(tmp_path / "data")
    assert run_app(["run", f"suite={small_suite(tmp_path / 'suites')}", f"data={root}", "workers=1", "gates=[]"]) in (
        ExitCode.OK,
        ExitCode.GATE_FAILED,
    )
    targets = ["scans-2019", "truth-2020", "files/md5", str(tmp_path / "store"), str(tmp_path / "cache")]
    targets += [path.resolve().name for path in files_of(root) if layout is dvc]
    written = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert any(path.name == "report.html" for path in written) and any(path.name == "records.csv" for path in written)
    for path in written:
        content = path.read_bytes()
        for target in targets:
            assert target.encode() not in content, (path.name, target)


# --------------------------------------------------------------------------------------------------- other readers


def test_class_folders_metadata_and_tables_are_read_through_links(tmp_path):
    class_folders(tmp_path / "store", {"a": 2, "b": 1})
    root = tmp_path / "data"
    root.mkdir()
    for name in ("a", "b"):
        (root / name).symlink_to(tmp_path / "store" / name)
    (tmp_path / "f3a1").write_text("file,patient\na/0,p1\na/1,p1\nb/0,p2\n")
    (root / "patients.csv").symlink_to(tmp_path / "f3a1")
    refs = labelled(root, metadata="patients.csv").refs()
    assert [(ref.seed_id, ref.cluster) for ref in refs] == [("a_0", "p1"), ("a_1", "p1"), ("b_0", "p2")]


def test_captions_of_a_blob_are_read_by_the_links_suffix(tmp_path):
    (tmp_path / "blobs").mkdir()
    blob = tmp_path / "blobs" / "9c0b"
    blob.write_text(json.dumps({"1": ["A dog stands on a red table ."]}))
    root = tmp_path / "data"
    root.mkdir()
    (root / "captions.json").symlink_to(blob)
    assert [ref.seed_id for ref in caption_source(root, min_triples=0).refs()] == ["1"]
    blob.unlink()
    with pytest.raises(UserMistakes, match="no file of prompts"):
        caption_source(root).refs()
    with pytest.raises(UserMistakes, match=r"captions.json[\s\S]*is a broken link; download the snapshot"):
        caption_source(root, file="captions.json").refs()


def test_series_films_and_volumes_are_read_through_links(tmp_path):
    from medtest.seeds.made.films import Films, FilmsSettings
    from medtest.seeds.volumes.layouts import find_pairs
    from medtest.seeds.volumes.series_images import SeriesImages, SeriesImagesSettings

    for number in range(3):
        picture(tmp_path / "store" / "film" / f"{number}.png", number)
    root = tmp_path / "data"
    root.mkdir()
    (root / "one").symlink_to(tmp_path / "store" / "film")
    series = SeriesImages(dataset="s", settings=SeriesImagesSettings(), root=root, suite_seed=1)
    assert [ref.seed_id for ref in series.refs()] == ["one/0", "one/1", "one/2"]
    films = Films(dataset="f", settings=FilmsSettings(), root=root, suite_seed=1)
    assert [ref.seed_id for ref in films.refs()] == ["one"]
    assert films.load(films.refs()[0]).image.shape[0] == 3
    for kind, start in (("imagesTr", "5d41"), ("labelsTr", "7d79")):
        (tmp_path / start).write_bytes(b"no header is read here")
        (root / kind).mkdir()
        (root / kind / "liver_1.nii.gz").symlink_to(tmp_path / start)
    (pair,) = find_pairs(root)
    assert (pair.name, pair.volume.name) == ("liver_1", "liver_1.nii.gz")


def test_a_series_with_a_broken_slice_is_refused_and_not_read_without_it(tmp_path):
    from medtest.core.files.images import BadFileError
    from medtest.volumes.dicom_series import slices_of

    for number in range(3):
        (tmp_path / f"IM{number}").write_bytes(bytes(128) + b"DICM")
    assert len(slices_of(tmp_path)) == 3
    (tmp_path / "IM1").unlink()
    (tmp_path / "IM1").symlink_to(tmp_path / ".git" / "annex" / "objects" / "x")
    with pytest.raises(BadFileError, match="holds IM1, which is a broken link; run git annex get"):
        slices_of(tmp_path)


def test_finished_answers_are_read_through_links(tmp_path):
    from medtest.core.cases import Address
    from medtest.systems.adapters.folders.predictions import file_of
    from medtest.systems.files import folder_sha256

    mask(tmp_path / "plain" / "set" / "a.png")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "set").symlink_to(tmp_path / "plain" / "set")
    address = Address(dataset="set", seed_id="a")
    assert file_of(address, tmp_path / "links", (".png",)) == tmp_path / "links" / "set" / "a.png"
    assert file_of(Address(dataset="..", seed_id="plain/set/a"), tmp_path / "links", (".png",)) is None
    suffixes = frozenset({".png"})
    assert folder_sha256(tmp_path / "links", suffixes) == folder_sha256(tmp_path / "plain", suffixes)


def test_masks_without_image_are_still_reported(tmp_path):
    root = dvc(tmp_path / "data")
    (root / "images" / "case1.png").unlink()
    with pytest.raises(UserMistakes, match="is a mask without image"):
        source(root).refs()
    assert np.count_nonzero([ref.seed_id == "case1" for ref in source(root, on_bad_seed="skip").refs()]) == 0

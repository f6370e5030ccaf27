"""Archives of known data sets: recognised, counted, and loaded with each mask at its image."""

from __future__ import annotations

import pytest
from layout_files import (
    clinicdb_archive,
    colondb_archive,
    endoscene_archive,
    etis_archive,
    is_right,
    junk,
    kvasir_archive,
    kvasir_names,
    numbers,
    pairs,
    pranet_test,
    pranet_train,
    source,
)

from medtest.core.errors import UserMistakes
from medtest.seeds.datasets.base import Found, Recogniser, recognise
from medtest.seeds.datasets.facts import known, suites
from medtest.seeds.datasets.known import coverage, known_datasets
from medtest.seeds.datasets.tree import tree_of_folder


def load_ids(root, **settings):
    """Return seed ids by data set; load every seed and assert that it is right."""
    seeds = source(root, **settings)
    ids: dict[str, list[str]] = {}
    for ref in seeds.refs():
        assert is_right(seeds.load(ref)), ref
        ids.setdefault(ref.dataset, []).append(ref.seed_id)
    return ids


def test_published_counts_match_the_issue_and_the_report():
    facts = known()
    counts = {name: facts[name].images for name in ("cvc-300", "cvc-clinicdb", "cvc-colondb", "kvasir", "etis")}
    assert counts == {"cvc-300": 60, "cvc-clinicdb": 612, "cvc-colondb": 380, "kvasir": 1000, "etis": 196}
    assert facts["endoscene"].images == 912
    assert facts["endoscene-cvc-300"].images + facts["endoscene-cvc-612"].images == 912
    assert sum(facts[name].images for name in suites()["polyp_seg_paper"]) == 2052  # report, 4.1.1
    # The parts of which PraNet's README and EndoScene's paper speak make up the whole.
    for name in ("cvc-clinicdb", "kvasir", "endoscene"):
        assert sum(count for count, _ in facts[name].copies) == facts[name].images


ARCHIVES = {
    "kvasir": (kvasir_archive, {"kvasir": 3}, "Kvasir-SEG"),
    "clinicdb": (clinicdb_archive, {"cvc-clinicdb": 3}, "CVC-ClinicDB"),
    "etis": (etis_archive, {"etis": 3}, "ETIS-LaribPolypDB"),
    "colondb": (colondb_archive, {"cvc-colondb": 3}, "CVC-ColonDB"),
    "endoscene": (endoscene_archive, {"endoscene-cvc-300": 2, "endoscene-cvc-612": 3}, "CVC-EndoSceneStill"),
}


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("below", ["", "{}", "{}/{}", "downloads/some day/{}"])
def test_original_archives_load_from_wherever_they_were_unpacked(tmp_path, name, below):
    write, counts, folder = ARCHIVES[name]
    root = tmp_path / "here"
    write(root / below.format(folder, folder))
    if not below:
        root = root.rename(tmp_path / folder)
    ids = load_ids(root, layout="known")
    if name == "endoscene":  # half of it stands for ClinicDB where that is asked for and not there
        assert load_ids(root, layout="known", sets=["cvc-clinicdb"]) == {"cvc-clinicdb": ids["endoscene-cvc-612"]}
    assert {key: len(ids) for key, ids in ids.items()} == counts


@pytest.mark.parametrize(("write", "count"), [(etis_archive, 3), (colondb_archive, 3)])
def test_auto_reads_them_too(tmp_path, write, count):
    write(tmp_path / "CVC-ColonDB" if write is colondb_archive else tmp_path)
    root = tmp_path / "CVC-ColonDB" if write is colondb_archive else tmp_path
    assert sum(len(ids) for ids in load_ids(root).values()) == count


def test_pranet_test_and_training_folders_make_whole_sets(tmp_path):
    pranet_test(tmp_path)
    ids = load_ids(tmp_path, layout="known")
    assert {k: len(v) for k, v in ids.items()} == {
        "cvc-300": 2,
        "cvc-clinicdb": 2,
        "cvc-colondb": 3,
        "etis": 2,
        "kvasir": 2,
    }
    pranet_train(tmp_path)
    parts = {f.dataset: f for f in recognise(tree_of_folder(tmp_path)) if "TrainDataset" in f.layout}
    assert {name: f.count for name, f in parts.items()} == {"kvasir": 4, "cvc-clinicdb": 3}
    # The training part alone, split by the names of its files.
    alone = load_ids(tmp_path / "TrainDataset", layout="known")
    assert {name: len(ids) for name, ids in alone.items()} == {"kvasir": 4, "cvc-clinicdb": 3}
    assert all(seed.startswith("cju") for seed in alone["kvasir"])


def test_only_parts_of_one_set_are_put_together(tmp_path):
    def names_only(folder, names):
        for kind in ("images", "masks"):
            (folder / kind).mkdir(parents=True)
            for name in names:
                (folder / kind / f"{name}.png").touch()

    train = kvasir_names(900) + numbers(2, first=700)
    names_only(tmp_path / "TrainDataset", train)
    names_only(tmp_path / "TestDataset" / "Kvasir", kvasir_names(100, first=900))
    names_only(tmp_path / "TestDataset" / "CVC-ClinicDB", numbers(62))
    sets = known_datasets(tmp_path)
    kvasir = [dataset for dataset in sets if dataset.name == "kvasir"]
    assert sorted(dataset.images.parts[0] for dataset in kvasir) == ["TestDataset", "TrainDataset"]
    assert len([dataset for dataset in sets if dataset.name == "cvc-clinicdb"]) == 2
    # A second copy of one part is no further part.
    names_only(tmp_path / "copy" / "Kvasir", kvasir_names(100, first=900))
    assert len([dataset for dataset in known_datasets(tmp_path) if dataset.name == "kvasir"]) == 2
    # The whole set is taken alone.
    names_only(tmp_path / "Kvasir-SEG", kvasir_names(1000))
    (whole,) = [dataset for dataset in known_datasets(tmp_path) if dataset.name == "kvasir"]
    assert whole.images.parts[0] == "Kvasir-SEG"


def test_one_copy_is_taken_of_two(tmp_path):
    clinicdb_archive(tmp_path / "CVC-ClinicDB")
    (dataset,) = known_datasets(tmp_path / "CVC-ClinicDB")
    assert dataset.images.parts[0] == "PNG"


def test_the_sequences_of_clinicdbs_own_metadata_are_clusters(tmp_path):
    root = tmp_path / "CVC-ClinicDB"
    clinicdb_archive(root)
    head = "frame_id,sequence_id,png_image_path,png_mask_path"
    rows = [f"{n},{1 + n // 3},PNG/Original/{n}.png,PNG/Ground Truth/{n}.png" for n in (1, 2, 3)]
    (root / "metadata.csv").write_text("\n".join([head, *rows]))
    seeds = source(root, layout="known", metadata="metadata.csv")
    assert [ref.cluster for ref in seeds.refs()] == ["1", "1", "2"]
    assert {ref.strata for ref in seeds.refs()} == {()}


def test_junk_is_passed_over_and_counted(tmp_path):
    etis_archive(tmp_path)
    passed = junk(tmp_path / "ETIS-LaribPolypDB")
    (tmp_path / "__MACOSX").mkdir()
    assert load_ids(tmp_path) == {"etis": ["1", "2", "3"]}
    seeds = source(tmp_path)
    assert seeds.ignored() == passed
    assert not seeds.problems()


def test_missing_sets_are_reported_and_not_silently_dropped(tmp_path):
    pranet_test(tmp_path, {"CVC-300": 2, "Kvasir": 2})
    sets = list(suites()["polyp_seg_paper"])
    with pytest.raises(UserMistakes, match="cvc-clinicdb"):
        source(tmp_path, layout="known", sets=sets).refs()
    seeds = source(tmp_path, layout="known", sets=sets, missing_sets="skip")
    assert {ref.dataset for ref in seeds.refs()} == {"cvc-300", "kvasir"}
    notices = "\n".join(seeds.notices())
    assert "CVC-ClinicDB is missing" in notices
    assert "CVC-300: 2 of the 60" in notices
    assert "Kvasir-SEG: 2 of the 1,000" in notices
    with pytest.raises(UserMistakes, match="etis"):  # none of the requested sets
        source(tmp_path, layout="known", sets=["etis"], missing_sets="skip").refs()


def test_coverage_names_parts():
    lines = coverage(["kvasir", "cvc-300", "cvc-clinicdb"], {"kvasir": 100, "cvc-300": 60, "cvc-clinicdb": 62})
    assert lines == (
        "Partial: Kvasir-SEG: 100 of the 1,000 published images are present (PraNet's test part).",
        "Partial: CVC-ClinicDB: 62 of the 612 published images are present (PraNet's test part).",
    )


def test_a_folder_without_known_sets_is_a_mistake_with_a_hint(tmp_path):
    pairs(tmp_path / "images", tmp_path / "masks", ["1"])
    with pytest.raises(UserMistakes, match="medtest data inspect"):
        source(tmp_path, layout="known").refs()


def test_a_recogniser_of_another_package_is_used(tmp_path, monkeypatch):
    """Further layouts come by an entry point."""
    from importlib.metadata import EntryPoint

    from medtest.seeds.datasets import base

    pairs(tmp_path / "frames", tmp_path / "truth", ["1", "2"])
    point = EntryPoint(name="frames", value="test_known_layouts:FramesAndTruth", group=base.GROUP)
    monkeypatch.setattr(base, "entry_points", lambda group: [point] if group == base.GROUP else [])
    base.recognisers.cache_clear()
    try:
        (layout,) = recognise(tree_of_folder(tmp_path))
    finally:
        base.recognisers.cache_clear()
    assert (layout.dataset, layout.count, str(layout.images)) == ("kvasir", 2, "frames")


class FramesAndTruth(Recogniser):
    """A recogniser of another package."""

    name = "frames and truth"
    order = 5

    def find(self, tree):
        from pathlib import PurePosixPath

        root = PurePosixPath(".")
        folders = {path.name: path for path in tree.below(root)}
        if set(folders) != {"frames", "truth"}:
            return []
        count = len(tree.files(folders["frames"]))
        return [
            Found(
                layout="frames/ and truth/",
                where=root,
                images=folders["frames"],
                masks=folders["truth"],
                count=count,
                mask_count=count,
                dataset="kvasir",
            )
        ]

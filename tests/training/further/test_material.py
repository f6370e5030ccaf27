"""Material of a training: as many perturbed images as originals, made by the suite's relations, kept in the store."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from further_parts import write_folder

from medtest.core.errors import MedtestError
from medtest.runner.followups import FollowUpStore
from medtest.runner.units.parts import Parts
from medtest.suite.compose import load
from medtest.training.further.material import DATASET, labelled, prepare_material, training_prints, training_suite
from medtest.training.further.recipe import load_recipe


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    root = tmp_path_factory.mktemp("material")
    folder = write_folder(root / "train", 10, size=160)
    suite = load("polyp_seg_folder", ["model=pranet", "prepare.size=128"]).suite
    parts = Parts(training_suite(suite), folder, 8)
    prints = training_prints(parts)
    recipe = load_recipe("compact", {"validation.held_out": 2, "validation.perturbed": 2})

    def prepare(out: str, **changes):
        chosen = recipe.model_copy(update=changes)
        return prepare_material(parts, prints, chosen, size=64, folder=root / out, store=root / "store")

    return root, parts, prepare


def test_as_many_perturbed_as_originals(prepared):
    root, parts, prepare = prepared
    material = prepare("one")
    assert (len(material.originals), len(material.perturbed)) == (8, 8)
    assert {kind: len(pairs) for kind, pairs in material.held_out.items()} == {"clean": 2, "perturbed": 4}
    assert material.originals.images.shape == (8, 80, 80, 3) and material.held_out["clean"].images.shape[1] == 64
    assert isinstance(material.originals.images, np.memmap)
    trained = {name.split("/")[1] for name in material.originals.names}
    assert {name.split("/")[1] for name in material.perturbed.names} == trained
    watched = {name.split("/")[1] for name in material.held_out["clean"].names}
    assert not trained & watched
    assert {name.split("/")[1] for name in material.held_out["perturbed"].names} == watched
    assert all(name.startswith(f"{DATASET}/") for name in material.perturbed.names)


def test_perturbed_images_are_the_suite_s_follow_ups(prepared):
    root, parts, prepare = prepared
    material = prepare("one")
    folder = next((root / "one").glob("arrays-*"))
    with (folder / "drawn.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "perturbed"]
    assert Counter(row["name"].split("/")[2].split("_s")[0] for row in rows).most_common(1)[0][1] <= 3
    store = FollowUpStore.open(root / "store")
    for number, row in enumerate(rows):
        ref = next(ref for ref in parts.sources[0].refs() if row["name"].split("/")[1] == ref.seed_id)
        address = next(a for a in parts.unit(ref).cases if str(a) == row["name"])
        made_again = parts.make(parts.prepared(0, ref), address)
        assert made_again.sha256 == row["sha256"]
        entry = store.find(address)
        assert entry is not None and entry.followup_sha256 == row["sha256"]
        image = store.image(entry.followup_sha256)
        assert np.array_equal(image, made_again.follow.image)
        assert abs(material.perturbed.images[number].mean() - image.mean()) < 6
        expected = store.mask(entry.mask_sha256).mean()
        assert abs((material.perturbed.masks[number] > 127).mean() - expected) < 0.02


def test_the_store_is_used_and_gives_the_same(prepared):
    root, parts, prepare = prepared
    first = prepare("one")
    again = prepare("two")
    assert again.counts["reused"] == 12 and again.counts["made"] == 0
    assert first.digest == again.digest
    assert np.array_equal(first.perturbed.images, again.perturbed.images)
    assert prepare("two").digest == first.digest  # read from its folder


def test_seed_and_draw_change_the_material(prepared):
    root, parts, prepare = prepared
    assert prepare("one").digest != prepare("three", seed=4).digest
    names = prepare("four", draw="random").perturbed.names
    assert len(set(names)) == 8 and len({name.split("/")[1] for name in names}) < 8
    assert len(prepare("five", perturbed=2.0).perturbed) == 16


def test_two_pairs_are_enough_and_one_is_not() -> None:
    def parts(count: int) -> Any:
        return SimpleNamespace(sources=[SimpleNamespace(refs=lambda: list(range(count)))])

    assert labelled(parts(2), "folder") == [(0, 0), (0, 1)]
    with pytest.raises(MedtestError, match=r"folder: 1 training pairs"):
        labelled(parts(1), "folder")

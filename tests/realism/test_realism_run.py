"""A comparison from end to end on small phantoms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from realism_parts import write_real

from medtest.core.errors import UserMistakes
from medtest.realism import classifier, compared, page, tables
from medtest.realism.classifier import Auc
from medtest.realism.made import ArtefactMaker
from medtest.realism.options import options_of
from medtest.realism.run import Realism, compare_artefacts
from medtest.realism.seams import SeamResult, seam_tests
from medtest.realism.tissue import MARKER, tissue_library
from medtest.session.runs import invocation_of
from medtest.suite.compose import load


@pytest.fixture(autouse=True, scope="module")
def _few_draws() -> Iterator[None]:
    """Draw the bootstrap less often than for figures for people."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(classifier, "REPLICATES", 40)
        patched.setattr(compared, "REPLICATES", 40)
        patched.setattr(classifier, "REPEATS", 2)
        yield


def _maker(home: Path, *overrides: str) -> ArtefactMaker:
    loaded = load("polyp_seg", ["relations=[feces]", "limit=3", "prepare.size=128", *overrides])
    return ArtefactMaker(loaded.suite, replace(invocation_of(loaded), home=home))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Realism:
    home = tmp_path_factory.mktemp("home")
    write_real(home / "real" / "feces", 3)
    loaded = load("polyp_seg", ["relations=[feces,blur]", "limit=3", "prepare.size=128"])
    options = options_of({"real": str(home / "real"), "cases": "5", "patches": "3", "seam": "0"})
    return compare_artefacts(loaded.suite, replace(invocation_of(loaded), home=home), options)


def test_real_and_made_pictures_are_measured(result: Realism):
    assert len(result.real["feces"]) == 3
    assert 3 <= len(result.made["feces"]) + sum(result.skipped.values()) <= 6
    rows = {row.statistic: row for row in result.statistics}
    assert rows["lightness_offset"].real_n == 3
    assert rows["lightness_offset"].verdict == "weak"
    assert rows["rim_width"].real[1] == pytest.approx(2 * 1.2816 * 0.7 * 4, rel=0.3)  # 128 pixels shown as 512
    (patches,) = result.patches
    assert patches.artefact.groups[1] == 3
    assert result.phantom


def test_files_hold_the_figures_and_names_are_escaped(result: Realism, tmp_path: Path):
    odd = replace(result, notices=["<script>alert(1)</script>"])
    written = page.write_files(odd, tmp_path / "out", "medtest realism suite=polyp_seg")
    assert written[0].name == page.PAGE
    html = written[0].read_text(encoding="utf-8")
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    frame = pd.read_csv(tmp_path / "out" / "statistics.csv")
    row = next(row for row in result.statistics if row.statistic == "noise")
    assert frame.loc[frame["statistic"] == "noise", "made_median"].item() == pytest.approx(row.made[1], rel=1e-5)
    pictures = pd.read_csv(tmp_path / "out" / "pictures.csv")
    assert set(pictures["side"]) == {"real", "made"}


def test_severities_take_turns(tmp_path: Path):
    maker = _maker(tmp_path)
    chosen = maker.chosen(["feces"], 3)
    assert [len(cases) for _, cases in chosen] == [1, 1, 1]
    assert len({case.severity for _, cases in chosen for case in cases}) == 3
    assert sum(len(cases) for _, cases in maker.chosen(["feces"], 6)) == 6


def test_the_changed_area_is_the_object(tmp_path: Path):
    maker = _maker(tmp_path)
    scenes = ((maker.scene(place), cases) for place, cases in maker.chosen(["feces"], 15))
    scene, (_, image, mask) = next((scene, made) for scene, cases in scenes for made in maker.make(scene, cases))
    assert mask.any()
    assert image.shape == scene.image.shape
    far = np.abs(image.astype(int) - scene.image).max(axis=2)
    assert far[mask].mean() > 10 * max(far[~mask].mean(), 0.1)


def test_tissue_is_cut_off_the_lesion_and_its_twin_has_the_markers_colour(tmp_path: Path):
    maker = _maker(tmp_path)
    tissue, marker = tissue_library(maker.scene(0).seed, "feces", tmp_path / "library")
    names = sorted(path.relative_to(tissue) for path in tissue.rglob("*"))
    assert names == sorted(path.relative_to(marker) for path in marker.rglob("*"))
    from PIL import Image

    (first, *_) = sorted(path for path in marker.rglob("*.png") if "." not in path.stem)
    pixels = np.array(Image.open(first))
    assert (pixels[pixels[..., 3] > 0][:, :3] == MARKER).all()
    own = np.array(Image.open(tissue / first.relative_to(marker)))
    assert (own[..., 3] == pixels[..., 3]).all()


@pytest.mark.slow
def test_seams_of_a_hard_paste_are_found_and_untouched_tissue_is_not(tmp_path: Path):
    (seam,) = seam_tests(_maker(tmp_path, "limit=4"), 4)
    assert seam.relation == "feces"
    assert seam.reason == ""
    assert seam.hard.value > 0.8
    assert seam.hard.value > seam.untouched.value
    assert seam.verdict == "weak"


def _seam(seam: Auc, hard: Auc, untouched: Auc) -> SeamResult:
    return SeamResult(relation="feces", seam=seam, hard=hard, untouched=untouched)


def test_verdicts_of_seams_and_patches():
    def auc(value: float, low: float, high: float, count: int = 600) -> Auc:
        return Auc(value=value, low=low, high=high, counts=(count, count), groups=(30, 30))

    hard, null = auc(0.97, 0.95, 0.99), auc(0.51, 0.47, 0.55)
    assert _seam(auc(0.6, 0.55, 0.64), hard, null).verdict == "met"
    assert _seam(auc(0.6, 0.55, 0.66), hard, null).verdict == "missed"
    assert _seam(auc(0.6, 0.55, 0.64, 499), hard, null).verdict == "weak"
    assert _seam(auc(0.6, 0.55, 0.64), auc(0.8, 0.7, 0.9), null).verdict == "invalid"
    assert _seam(auc(0.6, 0.55, 0.64), hard, auc(0.6, 0.55, 0.65)).verdict == "invalid"
    assert SeamResult(relation="feces", reason="no room").verdict == "none"
    assert [tables.patch_verdict(auc(0.7, 0, 1), auc(v, 0, 1)) for v in (0.1, 0.11)] == ["met", "missed"]
    assert tables.patch_verdict(auc(0.95, 0, 1), auc(0.05, 0, 1)) == "weak"
    assert tables.patch_verdict(Auc(), Auc()) == "none"


def test_pictures_that_cannot_be_measured_have_no_figures(tmp_path: Path):
    write_real(tmp_path / "real" / "blur", 2, masks=False)
    loaded = load("polyp_seg", ["relations=[blur]", "limit=1", "prepare.size=64"])
    options = options_of({"real": str(tmp_path / "real"), "cases": "1", "seam": "2"})
    result = compare_artefacts(loaded.suite, replace(invocation_of(loaded), home=tmp_path), options)
    assert result.statistics == []
    assert result.seams == []
    assert [row["verdict"] for row in tables.csv_tables(result)["patches"]] == ["none"]
    assert any("no mask" in notice for notice in result.notices)
    assert page.realism_html(result)


def test_questions_of_a_picture_share_its_artefacts(tmp_path: Path):
    loaded = load("medvqa", ["limit=1", "relations=[feces]", "prepare.size=64"])
    maker = ArtefactMaker(loaded.suite, replace(invocation_of(loaded), home=tmp_path))
    ((_, cases),) = maker.chosen(["feces"], 100)
    assert len(cases) == len({case.severity for case in cases})


def test_suites_without_pictures_are_refused(tmp_path: Path):
    for name in ("denoising", "t2i"):
        loaded = load(name, [])
        with pytest.raises(UserMistakes) as error:
            ArtefactMaker(loaded.suite, replace(invocation_of(loaded), home=tmp_path))
        assert error.value.mistakes[0].key == "seeds"


def test_hashed_ids_show_no_names(tmp_path: Path):
    write_real(tmp_path / "real" / "feces", 2)
    loaded = load("polyp_seg", ["relations=[feces]", "limit=1", "prepare.size=128", "privacy.seed_ids=hashed"])
    options = options_of({"real": str(tmp_path / "real"), "cases": "1", "patches": "0", "seam": "0"})
    result = compare_artefacts(loaded.suite, replace(invocation_of(loaded), home=tmp_path), options)
    shown = str(tables.csv_tables(result)["pictures"])
    assert "case0" not in shown
    assert "phantom-0000" not in shown

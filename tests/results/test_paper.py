"""The report's tables 2 to 9: shapes, published cells, and cells computed by hand."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from records_maker import make_records, write_records

from medtest.results.published import reference
from medtest.results.published.paper import ALL_CASES, NUMBERS, model_of
from medtest.results.records.wanted import Wanted
from medtest.results.tables import make_tables
from medtest.suite.model import Criterion

ARTEFACT_PARTS = dict.fromkeys(["unchanged", *reference.ARTEFACTS.values()])
SETS = list(reference.DATASET_SIZES)


def wanted_tables():
    return Wanted(
        suite="synthetic",
        version="1",
        seeds={"polyps": "image_mask_folders"},
        relations={name: name for name in ARTEFACT_PARTS},
        primary=Criterion(score="dice", threshold=0.25, against="truth"),
        scores=("dice", "iou"),
        thresholds=(0.25, 0.5),
        against=("truth",),
    )


def records(system="pranet-compact", severities=(0,), seeds=None):
    frame = make_records(seeds=seeds or {"cvc-300": 4, "kvasir": 10}, severities=severities, errors=0, skips=0)
    frame["system"] = system
    return frame


def tables(frame, folder):
    return make_tables(write_records(frame, folder), wanted_tables())


def test_a_cell_by_hand(tmp_path):
    frame = records()
    chosen = (frame["dataset"] == "cvc-300") & (frame["relation"] == "blur")
    assert chosen.sum() == 4
    sources = (frame["dataset"] == "cvc-300").to_numpy()
    frame.loc[sources, ["source_dice", "source_iou"]] = 0.8
    # Losses of 10, 30, 60 and 25 % of 0.8: strictly more than 25 % are two of four, more than 50 % one of four.
    frame.loc[chosen, "dice"] = [0.72, 0.56, 0.32, 0.6]
    frame.loc[chosen, "iou"] = [0.8, 0.8, 0.8, 0.1]
    frame.loc[chosen, "verdict"] = "PASS"
    paper = tables(frame, tmp_path).paper
    low, high = (paper.tables[t].set_index("artefact").loc["Blur"] for t in (0.25, 0.5))
    assert (low["CVC-300 Dice"], low["CVC-300 IoU"], high["CVC-300 Dice"]) == (50.0, 25.0, 25.0)
    assert (low["CVC-300 Dice published"], low["CVC-300 IoU published"]) == (8.3, 8.3)  # report, table 6
    assert (high["CVC-300 Dice published"], high["Kvasir IoU published"]) == (1.7, 11.7)  # report, table 2
    assert low["CVC-300 cases"] == 4
    assert math.isnan(low["CVC-ColonDB Dice"])
    assert low["CVC-ColonDB Dice published"] == 14.2


def test_shape_order_coverage_and_files(tmp_path):
    result = tables(records(), tmp_path)
    table = result.paper.tables[0.25]
    assert table["artefact"].tolist() == [*reference.ARTEFACTS, ALL_CASES, "Mean of cells"]
    assert list(table.columns) == [
        "artefact",
        "relation",
        *(
            c
            for s in SETS
            for c in (f"{s} Dice", f"{s} Dice published", f"{s} IoU", f"{s} IoU published", f"{s} cases")
        ),
    ]
    # 8.56: the report's own figure for PraNet on ColonDB (4.3.3).
    assert table.set_index("artefact").loc[ALL_CASES, "CVC-ColonDB Dice published"] == pytest.approx(8.56, abs=0.005)
    coverage = result.paper.coverage.set_index("dataset")
    assert coverage["images"].tolist() == [4, 0, 0, 10]
    assert coverage["published"].tolist() == [60, 612, 380, 1000]
    assert "CVC-ClinicDB 0 of 612" in result.paper.partial
    names = {path.name for path in result.write(tmp_path)}
    assert {"paper_t0.25.csv", "paper_t0.5.csv", "paper_coverage.csv", "paper_t0.25.tex"} <= names
    text = (tmp_path / "tables" / "paper_t0.25.tex").read_text()
    assert text.count(r"\\") == 2 + 9 + 2
    assert "(14.2)" in text


def test_every_published_cell_is_in_one_of_the_eight_tables(tmp_path):
    published = {}
    for model in reference.models():
        paper = tables(records(system=model.lower()), tmp_path / model).paper
        assert paper.model == model
        for threshold, table in paper.tables.items():
            for row in table.head(9).to_dict("records"):
                for name in SETS:
                    for score in ("Dice", "IoU"):
                        key = (NUMBERS[model, threshold], name, row["relation"], score.lower())
                        published[key] = row[f"{name} {score} published"]
    assert published == {
        (NUMBERS[c.model, c.threshold], c.dataset, c.relation, c.score): c.efr_percent for c in reference.cells()
    }
    assert {number for number, *_ in published} == set(range(2, 10))


def test_only_where_the_study_is_repeated(tmp_path):
    assert tables(records(severities=(1, 2)), tmp_path / "levels").paper is None
    assert tables(records(seeds={"phantoms": 5}), tmp_path / "others").paper is None
    other = tables(records(system="ours"), tmp_path / "ours").paper
    assert other.model == ""
    assert other.tables[0.25]["Kvasir Dice published"].isna().all()
    assert [model_of(n) for n in ("pranet", "ssformer_l", "TGANet-compact", "v2")] == [
        "PraNet",
        "SSFormer",
        "TGANet",
        "",
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_suite_on_a_tiny_root(tmp_path, monkeypatch):
    """The suite runs on PraNet's layout; a cell is computed again from the records without the package."""
    from PIL import Image

    from medtest.cli.run.launch import main
    from medtest.phantoms.colon import make_colon

    for number, (name, count) in enumerate({"CVC-300": 2, "CVC-ColonDB": 1, "Kvasir": 1}.items()):
        for index in range(count):
            phantom = make_colon(np.random.default_rng([number, index]), size=(288, 384), polyps=1)
            for kind, values in (("images", phantom.image), ("masks", phantom.mask.astype("uint8") * 255)):
                path = tmp_path / "data" / "TestDataset" / name / kind / f"{index}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(values).save(path)
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    code = main(["suite=polyp_seg_paper", f"data={tmp_path / 'data'}", "model=[pranet,ssformer]", "tracking=none"])
    assert code == 0
    folders = list((tmp_path / "outputs" / "polyp_seg_paper").glob("*/*/tables"))
    assert len(folders) == 2
    for folder in folders:
        with (folder / "paper_t0.25.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 11
        assert _by_hand(folder.parent / "records.csv") == {
            row["artefact"]: float(row["CVC-300 Dice"]) for row in rows[:9] if row["CVC-300 Dice"]
        }
        assert {row["CVC-ClinicDB Dice"] for row in rows} == {""}
        page = (folder.parent / "report.html").read_text()
        assert "The study&#39;s tables" in page or "The study's tables" in page
        assert "CVC-300 2 of 60" in page


def _by_hand(path: Path) -> dict[str, float]:
    frame = pd.read_csv(path)
    frame = frame[(frame["dataset"] == "cvc-300") & frame["verdict"].isin(["PASS", "FAIL"])]
    percents = {}
    for word, part in reference.ARTEFACTS.items():
        cases = frame[frame["relation"] == part]
        if len(cases):
            fell = (cases["source_dice"] - cases["dice"]) / cases["source_dice"] > 0.25
            percents[word] = 100.0 * int(fell.sum()) / len(cases)
    return percents

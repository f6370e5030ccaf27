"""Reliance on the evidence: systems that look, that always give one answer, and that copy the prior."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import medtest
from medtest.language.questions.answers.parse import parse
from medtest.language.questions.matrix import Rule
from medtest.language.questions.values import Kind
from medtest.report.charts.reliance import picture, reliance, summary_lines
from medtest.results.cube.intervals import wilson_ends
from medtest.results.rates.reliance import CONSISTENT, QUADRANTS, UNSURE, quadrant, reliance_table, warned
from medtest.results.records.records_io import Records
from medtest.results.records.wanted import Wanted
from medtest.suite.compose import load_suite
from medtest.tasks.ask.controls import kept_answer

LOOKS, BLIND = QUADRANTS[True, True], QUADRANTS[True, False]
IMAGES = 16
"""Fewest images for which an interval of no inconsistency lies above 80 %."""
FEW = ["blur", "image_removed", "lesion_erased", "tissue_erased"]
"""Relations that are enough for the quadrant of a system that is asked 18 questions about each image."""


def table(home: Path, suite: str, system: Any, **changes: Any) -> pd.DataFrame:
    result = medtest.run(suite, systems=system, home=home, track=False, workers=1, **changes)
    (folder,) = result.folders.values()
    return pd.read_csv(folder / "tables/reliance.csv", keep_default_na=False, na_values=[""])


def overall(frame: pd.DataFrame) -> pd.Series:
    return frame[(frame["control"] == "overall") & (frame["dataset"] == "all")].iloc[0]


# -------------------------------------------------------------------------------------------------------------- masks


def sees(image: Any) -> Any:
    """Mark pixels that are redder than the wall of the phantoms."""
    return (image[..., 0].astype(int) - image[..., 1] > 150).astype(np.float32)


@pytest.mark.slow
def test_the_same_mask_for_every_image_is_consistent_without_the_evidence(tmp_path: Path) -> None:
    def always(image: Any) -> Any:
        mask = np.zeros(image.shape[:2], np.float32)
        mask[20:76, 20:76] = 1
        return mask

    frame = table(
        tmp_path,
        "polyp_seg_controls",
        {"always": always},
        relations=["contrast", "white_balance", "image_removed", "lesion_erased", "lesion_swapped", "tissue_erased"],
        overrides=[f"seeds.phantoms.count={IMAGES}", "seeds.phantoms.polyps=1", "prepare.size=96"],
    )
    row = overall(frame)
    assert row["kept_percent"] == row["sham_kept_percent"] == row["consistency_percent"] == 100
    assert row["reliance_percent"] == 0 and row["quadrant"] == BLIND
    shown = warned(frame)
    assert set(shown["removed"]) == {"grey", "mean", "noise"} and (shown["excess_low"] > 20).all()
    assert (frame["chance_from"].dropna() == "expected answers").all()
    page = reliance(frame, "always")
    assert page is not None and len(page["banners"]) == 3 and "100.0 % of 16 answers are kept" in page["banners"][0]
    figures, *banners = summary_lines(frame)  # the terminal's
    assert "reliance 0.0 %" in figures and "consistent without the evidence; tables/reliance.csv." in figures
    assert banners == page["banners"]
    assert "<svg" in picture(frame) and picture(frame).count("<circle") == 2 * 7


# ------------------------------------------------------------------------------------------------------------- labels


@pytest.mark.slow
def test_the_most_frequent_label_is_consistent_without_the_evidence(tmp_path: Path) -> None:
    frame = table(
        tmp_path,
        "skin_controls",
        {"prior": medtest.Model(lambda image: [0.3, 0.7], name="prior")},
        relations=["contrast", "white_balance", "image_removed", "lesion_erased", "lesion_swapped", "tissue_erased"],
        overrides=[f"seeds.phantoms.count={IMAGES}", "prepare.size=96", "prepare.resize=96"],
    )
    row = overall(frame)
    assert row["consistency_percent"] == 100 and row["reliance_percent"] == 0 and row["quadrant"] == BLIND
    assert not warned(frame).empty


# ---------------------------------------------------------------------------------------------------------- questions


def make_records(says: dict[str, tuple[str, str]], relation: str, removed: str, rule: Rule) -> list[dict[str, Any]]:
    """Return records of one relation: every image is asked one question, first on the source, then on the follow-up."""
    rows = []
    for number in range(IMAGES):
        before, after = (parse(text, Kind.COLOUR, 5) for text in says[f"{number % 2}"])
        is_kept = kept_answer(rule, after, before)
        assert isinstance(is_kept, float)
        rows.append(
            {
                "system": "s",
                "dataset": "phantoms",
                "seed_id": f"i{number}",
                "cluster": f"i{number}",
                "item": "abnormality_colour",
                "relation": relation,
                "severity": 1,
                "frame": 0,
                "repeat": 0,
                "group": "controls",
                "removed": removed,
                "kept": is_kept,
                "kept_by_chance": float(number % 4 == 0),
                "verdict": "FAIL" if is_kept else "PASS",
                "reason_code": "",
                "self_agreement": None,
                "agreement": None,
            }
        )
    return rows


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ({"0": ("pink", "pink"), "1": ("pink", "pink")}, BLIND),
        ({"0": ("pink", "not relevant"), "1": ("red", "white")}, LOOKS),
    ],
)
def test_answers_from_the_question_alone_are_consistent_without_the_evidence(
    says: dict[str, tuple[str, str]], expected: str
) -> None:
    rows = make_records(says, "image_removed", "grey", Rule.MUST_CHANGE)
    harmless = [
        row | {"relation": "blur", "group": "motion", "removed": None, "kept": None, "kept_by_chance": None}
        | {"self_agreement": 1.0, "agreement": 1.0, "verdict": "PASS"}
        for row in rows
    ]  # fmt: skip
    source = [row | {"relation": "source", "group": "source", "severity": 0} for row in harmless]
    frame = pd.DataFrame([*source, *harmless, *rows]).assign(source_agreement=1.0)
    result = reliance_table(Records.of(frame), Wanted.of(load_suite("medvqa_controls")))
    row = overall(result)
    assert row["consistency_percent"] == 100 and row["quadrant"] == expected
    assert warned(result).empty == (expected == LOOKS)


# -------------------------------------------------------------------------------------------- what ships with medtest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "system", "changes", "shown"),
    [
        ("polyp_seg_controls", ["pranet"], {"overrides": ["prepare.size=256"], "limit": IMAGES}, LOOKS),
        # 16 images show that it relies on the lesion, and not how consistent it is.
        ("skin_controls", ["attnmel"], {"limit": IMAGES}, UNSURE),
        ("medvqa_controls", ["simlab"], {"limit": IMAGES, "relations": FEW}, LOOKS),
    ],
)
def test_what_ships_rests_on_the_evidence(
    tmp_path: Path, suite: str, system: list[str], changes: dict[str, Any], shown: str
) -> None:
    frame = table(tmp_path, suite, system, **changes)
    row = overall(frame)
    assert row["reliance_percent"] > 50 and row["consistency_percent"] > 80
    assert row["quadrant"] == shown and row["reliance_low"] > 50
    assert warned(frame).empty


@pytest.mark.slow
def test_a_drawing_service_draws_what_the_prompt_says(tmp_path: Path) -> None:
    frame = table(tmp_path, "t2i_controls", ["simlab_images"], limit=6)
    row = overall(frame)
    assert row["task"] == "depiction" and row["kept_percent"] == 0
    assert row["reliance_percent"] == row["sham_kept_percent"] > 0


# ------------------------------------------------------------------------------------------------------------ figures


@pytest.mark.slow
def test_controls_enter_no_other_rate(tmp_path: Path) -> None:
    result = medtest.run(
        "polyp_seg_controls",
        systems={"sees": sees},
        home=tmp_path,
        track=False,
        workers=1,
        relations=["contrast", "white_balance", "image_removed", "lesion_erased", "tissue_erased"],
        overrides=["seeds.phantoms.count=2", "prepare.size=96"],
    )
    (folder,) = result.folders.values()
    rates = pd.read_csv(folder / "tables/efr.csv")
    assert set(rates["relation"]) == {"contrast", "white_balance", "unchanged", "overall", "overall_cells"}
    for name in ("violations.csv", "worst.csv", "images.csv"):
        file = folder / "tables" / name
        assert not file.is_file() or "lesion_erased" not in file.read_text()
    records = pd.read_parquet(folder / "records.parquet")
    controls = records[records["group"] == "controls"]
    judged = controls[controls["kept"].notna() & (controls["relation"] != "tissue_erased")]
    assert ((judged["kept"] >= 0.5) == (judged["verdict"] == "FAIL")).all()
    assert controls["dice"].isna().all() and records.loc[records["group"] != "controls", "kept"].isna().all()


@pytest.mark.parametrize(
    ("consistency", "reliant", "expected"),
    [
        ((90, 100), (60, 90), LOOKS),
        ((90, 100), (-5, 10), BLIND),
        ((20, 70), (60, 90), QUADRANTS[False, True]),
        ((20, 70), (0, 40), QUADRANTS[False, False]),
        ((70, 90), (60, 90), UNSURE),
        ((90, 100), (40, 60), UNSURE),
        ((float("nan"), 1), (40, 60), ""),
    ],
)
def test_quadrants_are_shown_only_by_intervals(
    consistency: tuple[float, float], reliant: tuple[float, float], expected: str
) -> None:
    row = dict(zip(("consistency_low", "consistency_high"), consistency, strict=True))
    assert quadrant(row | dict(zip(("reliance_low", "reliance_high"), reliant, strict=True))) == expected


def test_sixteen_images_are_enough_for_the_border_of_consistency() -> None:
    low, high = wilson_ends(16, 16)
    assert pytest.approx(low) == 16 / (16 + 1.959963984540054**2) and high == 1  # Wilson's formula without a miss
    assert low > CONSISTENT / 100 > wilson_ends(15, 15)[0]

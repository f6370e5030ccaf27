"""The page that compares systems: on common cases alone, with conclusions and named intervals."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from report_parts import invocation, leave_run, make_suite, write_records

from medtest.report.finish import finish
from medtest.report.pages.conclusions import conclusions
from medtest.report.pages.intervals import ORDER, interval_words
from medtest.results.rates.differences import RELATION, VIOLATIONS
from medtest.results.rates.efr import BOOTSTRAP, WILSON


def _compare(home: Path, *, seeds: int = 30, seeds_kept: int | None = None, other_images: int = 0) -> tuple[str, Path]:
    """Run two systems, the second bad at blur; keep its ``seeds_kept`` first seeds without text; return the page."""
    suite = make_suite()
    outcome = leave_run(home, suite, ("alpha", "beta"), seeds=seeds)
    folder = outcome.systems[1].folder
    frame = pq.read_table(folder / "records.parquet").to_pandas()
    frame.loc[frame.relation == "blur", "dice"] *= 0.3
    if seeds_kept is not None:
        frame = frame[
            frame.seed_id.isin([f"seed{number:05d}" for number in range(seeds_kept)]) & (frame.relation != "text")
        ]
    changed = frame.index[(frame.relation == "contrast") & (frame.severity == 5)][:other_images]
    frame.loc[changed, "followup_sha256"] = "2" * 64
    write_records(frame, folder)
    page = finish(suite, invocation(home), outcome).comparison
    assert page is not None
    text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", page.read_text(encoding="utf-8"), flags=re.S)
    return " ".join(unescape(text).split()), page


@pytest.mark.slow
def test_systems_with_the_same_cases_are_compared_on_all(tmp_path: Path) -> None:
    text, page = _compare(tmp_path)
    assert "Both systems finished the same 930 cases on the same follow-ups." in text
    assert "alpha is better on blur." in text and "No difference is shown on " in text
    table = pd.read_csv(page.with_name("comparison.csv"))
    blur = table.query("name == 'blur'").iloc[0]
    assert blur.better == "alpha" and blur.ci_high < 0 and blur.p_holm < 0.05
    assert not page.with_name("comparison_left_out.csv").exists()
    assert "p: McNemar's exact test" in text and "Holm's correction for all 6 rows" in text


@pytest.mark.slow
def test_cases_that_only_one_system_finished_are_counted_and_left_out(tmp_path: Path) -> None:
    text, page = _compare(tmp_path, seeds_kept=18, other_images=2)
    assert "Compared on the 466 cases that both systems finished on the same follow-ups." in text
    assert "Finished cases: alpha 930 and beta 468." in text
    assert "2 cases with the same address have different images or questions" in text
    assert "alpha: 464 cases left out: all of 12 source cases (phantoms/seed00018, " in text
    assert "all of 1 relation (text)" in text
    assert "All systems saw the same follow-ups" not in text
    left_out = pd.read_csv(page.with_name("comparison_left_out.csv"))
    assert left_out.groupby("system").cases.sum().to_dict() == {"alpha": 464, "beta": 2}
    glance = text[text.index("Summary") :]
    counted = [int(number) for number in re.findall(r"\d+ of (\d+)", glance[: glance.index("All severities")])]
    assert counted and max(counted) <= 450  # figures of the common cases, not of each system's own 900
    own = pd.read_csv(next(tmp_path.glob("outputs/synthetic/alpha/*/tables/efr.csv")))
    assert own.query("relation == 'overall' and dataset == 'all' and severity == 'all'").generated.max() == 900


@pytest.mark.slow
def test_systems_without_a_common_case_are_not_compared(tmp_path: Path) -> None:
    text, page = _compare(tmp_path, seeds_kept=0)
    assert "nothing is compared" in text and "Conclusions" not in text
    assert "do not compare them" in text


@pytest.mark.parametrize("method", ORDER)
def test_every_kind_of_interval_is_in_the_docs(method: str) -> None:
    docs = Path(__file__).parents[2] / "docs" / "read-the-results.md"
    assert f"`{method}`" in docs.read_text(encoding="utf-8")
    assert interval_words(method, "source cases") != method.replace("_", " ")


@pytest.mark.slow
def test_intervals_of_several_kinds_carry_letters_and_a_legend(tmp_path: Path) -> None:
    text, _ = _compare(tmp_path)
    assert re.search(r"\d+\.\d–\d+\.\d [wbc]\b", text)
    assert "w Wilson score interval over cases; b bootstrap over source cases" in text
    report = next(tmp_path.glob("outputs/synthetic/alpha/*/report.html")).read_text(encoding="utf-8")
    assert "% (bootstrap)" in report and "c Wilson score interval over source cases" in report


@pytest.mark.parametrize(("methods", "marks"), [((WILSON, WILSON), ["", ""]), ((WILSON, BOOTSTRAP), ["w", "b"])])
def test_letters_are_shown_only_beside_intervals_of_several_kinds(methods: tuple[str, str], marks: list[str]) -> None:
    row = {"measure": VIOLATIONS, "by": RELATION, "first": "alpha", "second": "beta", "better": "", "p_holm": 1.0}
    row |= {"first_percent": 10.0, "second_percent": 12.0, "difference": -2.0, "ci_low": -5.0, "ci_high": 1.0}
    row |= {"cases": 100, "only_first": 3, "only_second": 5}
    table = pd.DataFrame([{**row, "name": f"r{number}", "ci_method": way} for number, way in enumerate(methods)])
    (section,) = conclusions(table, "source cases", {})
    (pair,) = section["pairs"]
    assert [line["mark"] for line in pair["rows"]] == marks

"""Data of the browser of cases: every case once, the worst ones first, within a budget, hostile texts escaped."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from browser_parts import EVIL, with_thumbnails
from PIL import Image
from report_pages import browser_data, without_scripts
from report_parts import invocation, make_suite

from medtest.report.finish import Finished, finish
from medtest.report.pages.browser.data import BUDGET, browser_of
from medtest.report.views import remake
from medtest.runner.reporting.outcome import RunOutcome


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, RunOutcome]:
    home = tmp_path_factory.mktemp("browser")
    suite = make_suite()
    outcome = with_thumbnails(home, suite, ("alpha", "beta"), seeds=6)
    return finish(suite, invocation(home), outcome), outcome


def texts_of(data: dict[str, Any], column: str) -> list[str]:
    return [data["names"][column][number] for number in data["columns"][column]]


def verdicts_of(data: dict[str, Any], system: int = 0) -> list[str]:
    own = data["systems"][system]
    return [own["names"]["verdict"][number] for number in own["columns"]["verdict"]]


@pytest.mark.slow
def test_every_follow_up_is_there_once_with_its_verdict_as_in_the_tables(finished: Any) -> None:
    result, outcome = finished
    (data,) = browser_data(result.reports[0].read_text(encoding="utf-8"))
    frame = pd.read_parquet(outcome.systems[0].folder / "records.parquet")
    followups = frame[frame.relation != "source"]
    assert sorted(data["columns"]["address"]) == sorted(followups.address)
    lengths = {len(column) for column in data["columns"].values()}
    lengths |= {len(column) for column in data["systems"][0]["columns"].values()}
    assert lengths == {len(followups)}
    violated = {
        address
        for address, verdict in zip(data["columns"]["address"], verdicts_of(data), strict=True)
        if verdict == "violation"
    }
    table = pd.read_csv(outcome.systems[0].folder / "tables" / "violations.csv")
    assert violated == set(table.address)
    assert verdicts_of(data).count("error") == (followups.verdict == "ERROR").sum()


def test_each_source_is_in_the_page_once_and_pictures_are_webp(finished: Any) -> None:
    result, _ = finished
    (data,) = browser_data(result.reports[0].read_text(encoding="utf-8"))
    seeds, sources = texts_of(data, "seed_id"), data["columns"]["source"]
    assert len({*zip(seeds, sources, strict=True)}) == len(set(seeds)) == len(set(sources))
    assert len(data["pictures"]) == len({*sources, *data["columns"]["picture"]})
    for text in data["pictures"][:5]:
        with Image.open(io.BytesIO(base64.b64decode(text))) as picture:
            assert picture.format == "WEBP" and picture.size == (64, 64)


def test_hostile_names_are_data(finished: Any) -> None:
    result, _ = finished
    text = result.reports[0].read_text(encoding="utf-8")
    (data,) = browser_data(text)
    assert EVIL in data["names"]["seed_id"]
    assert "<img src=x" not in text and "\u2028" not in "".join(text.split(without_scripts(text)))
    assert "<!--" not in text
    raw = text.partition('<script type="application/json">')[2].partition("</script>")[0]
    assert not set("<>&\u2028") & set(raw)
    assert json.loads(raw) == data


def test_the_worst_of_each_cell_then_violations_are_taken_first(finished: Any) -> None:
    result, _ = finished
    material = result.materials[0]
    whole = browser_of([material], [material.records()])
    total = whole.cases
    (every,) = browser_data(f'<script type="application/json">{whole.data}</script>')
    part = browser_of([material], [material.records()], budget=len(str(whole.data)) // 2)
    (some,) = browser_data(f'<script type="application/json">{part.data}</script>')
    assert 0 < part.cases < total and len(str(part.data)) <= 1.1 * len(str(whole.data)) / 2
    assert f"{part.cases:,} of {total:,} cases" in part.note == some["note"]
    cells = {
        (relation, severity)
        for relation, severity, verdict in zip(
            texts_of(every, "relation"), every["columns"]["severity"], verdicts_of(every), strict=True
        )
        if verdict in ("violation", "no violation")
    }
    shown = list(zip(texts_of(some, "relation"), some["columns"]["severity"], strict=True))
    assert set(shown[: len(cells)]) == cells
    losses = every["systems"][0]["columns"]["loss"]
    for row, cell in enumerate(shown[: len(cells)]):
        alike = [
            loss
            for loss, *own, verdict in zip(
                losses, texts_of(every, "relation"), every["columns"]["severity"], verdicts_of(every), strict=True
            )
            if tuple(own) == cell and verdict in ("violation", "no violation") and loss is not None
        ]
        assert losses[row] == max(alike)
    rest = verdicts_of(every)[len(cells) :]
    order = {"violation": 0, "error": 1, "no violation": 2, "not judged": 3}
    assert [order[verdict] for verdict in rest] == sorted(order[verdict] for verdict in rest)


def test_two_thousand_cases_fit_in_eight_megabytes() -> None:
    assert BUDGET < 7_000_000  # strips and charts take the rest


def test_all_cases_with_pictures_beside_the_page(tmp_path: Path) -> None:
    suite = make_suite()
    outcome = with_thumbnails(tmp_path, suite, seeds=3)
    folder = outcome.systems[0].folder
    (page,) = finish(suite, invocation(tmp_path, browser="folder"), outcome).reports
    (data,) = browser_data(page.read_text(encoding="utf-8"))
    files = {f"browser/{path.name}" for path in (folder / "browser").glob("*.webp")}
    assert set(data["pictures"]) == files and len(files) > 50
    assert "img-src data: 'self' file:" in page.read_text(encoding="utf-8")
    remake(folder)
    assert not list((folder / "browser").glob("*.webp"))
    assert browser_data(page.read_text(encoding="utf-8"))[0]["columns"] == data["columns"]


def test_the_page_tells_of_missing_thumbnails(tmp_path: Path) -> None:
    suite = make_suite()
    outcome = with_thumbnails(tmp_path, suite, seeds=3)
    for pack in (outcome.systems[0].folder / "thumbnails").iterdir():
        pack.unlink()
    (page,) = finish(suite, invocation(tmp_path), outcome).reports
    (data,) = browser_data(page.read_text(encoding="utf-8"))
    assert "holds no thumbnails" in data["note"] and data["pictures"] == []


def test_damaged_thumbnails_are_left_out(tmp_path: Path) -> None:
    suite = make_suite()
    outcome = with_thumbnails(tmp_path, suite, seeds=3)
    (pack,) = (outcome.systems[0].folder / "thumbnails").iterdir()
    content = pack.read_bytes()
    pack.write_bytes(content[: len(content) // 3] + bytes(len(content) // 3) + content[2 * len(content) // 3 :])
    (page,) = finish(suite, invocation(tmp_path), outcome).reports
    assert browser_data(page.read_text(encoding="utf-8"))[0]["columns"]["address"]


def test_privacy_leaves_thumbnails_out(tmp_path: Path) -> None:
    suite = make_suite(images="none")
    outcome = with_thumbnails(tmp_path, suite, seeds=3)
    (page,) = finish(suite, invocation(tmp_path), outcome).reports
    (data,) = browser_data(page.read_text(encoding="utf-8"))
    assert data["pictures"] == [] and data["strips"] == {} and "privacy" in data["note"]
    assert not any(system["names"].get("outlines") for system in data["systems"])


def test_a_comparison_shows_the_cases_that_only_one_system_fails(finished: Any) -> None:
    result, outcome = finished
    assert result.comparison is not None
    (data,) = browser_data(result.comparison.read_text(encoding="utf-8"))
    tables = [
        set(pd.read_csv(system_outcome.folder / "tables" / "violations.csv").address)
        for system_outcome in outcome.systems
    ]
    frames = [
        pd.read_parquet(system_outcome.folder / "records.parquet").set_index("address")
        for system_outcome in outcome.systems
    ]
    judged = [set(frame[frame.verdict.isin(["PASS", "FAIL"])].index) for frame in frames]
    assert set(data["columns"]["address"]) == (tables[0] ^ tables[1]) & judged[0] & judged[1]
    assert [system["name"] for system in data["systems"]] == ["alpha", "beta"]
    for first, second in zip(verdicts_of(data, 0), verdicts_of(data, 1), strict=True):
        assert {first, second} == {"violation", "no violation"}


def test_a_view_ranks_by_its_own_criterion(finished: Any) -> None:
    result, _ = finished
    material = result.materials[0]
    strict = replace(material.wanted, primary=replace(material.wanted.primary, threshold=0.5))
    shown = [
        browser_data(
            f'<script type="application/json">{browser_of([shown_material], [shown_material.records()]).data}</script>'
        )[0]
        for shown_material in (material, replace(material, wanted=strict))
    ]
    loose, tight = ([verdict == "violation" for verdict in verdicts_of(data)].count(True) for data in shown)
    assert 0 < tight < loose

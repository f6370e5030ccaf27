"""The report page: self-contained, every text escaped, with the context that the rates need."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest
import yaml
from report_pages import browser_data, without_scripts
from report_parts import invocation, leave_run, make_suite, write_records
from rich.console import Console

from medtest.core.errors import ExitCode
from medtest.report.charts.figures import Bar, difference_panel, odds_panel, shade
from medtest.report.charts.heat import percent
from medtest.report.console import efr_view, on_sources
from medtest.report.finish import finish
from medtest.report.mlflow.headline import headline_of
from medtest.report.pages.browser.strips import replay_command
from medtest.report.pages.first_page import first_page
from medtest.report.pages.page import TEMPLATES, report_page
from medtest.report.pages.words import violations_of
from medtest.report.views import remake
from medtest.suite.model import Gate

COMMAND = "python run.py suite=synthetic"
EVIL = "<script>alert('x')</script>\"'&{{ 7*7 }}"


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.tags, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.found += [value for name, value in attrs if name in ("src", "href", "srcset", "action", "data", "poster")]
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data):
        self.text.append(data)


def parse_page(path):
    links = Links()
    links.feed(path.read_text(encoding="utf-8"))
    return links


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    suite = make_suite(gates=(Gate(max_percent=95), Gate(max_percent=0.5)), description=EVIL)
    outcome = leave_run(home, suite, ("alpha", "beta"), finished=100, reason=EVIL)
    return finish(suite, invocation(home), outcome), outcome


def test_one_file_without_a_network_or_a_script(finished):
    result, _ = finished
    for path in (*result.reports, result.comparison):
        page = parse_page(path)
        assert page.tags.count("script") == 1 + len(browser_data(path.read_text()))  # one file's script, and data
        assert not {"link", "iframe", "object", "embed"} & set(page.tags)
        text = without_scripts(path.read_text())
        assert "default-src 'none'" in text
        assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text)
        outside = [link for link in page.found if not link.startswith(("#", "data:image/jpeg;base64,"))]
        if path == result.comparison:
            assert len(outside) == 2
            assert all((path.parent / link).is_file() for link in outside)
        else:
            assert outside == []


def test_texts_from_files_are_escaped(finished):
    result, _ = finished
    text = without_scripts(result.reports[0].read_text())
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "{{ 7*7 }}" in "".join(parse_page(result.reports[0]).text)  # text of a file is never evaluated


def test_what_a_reader_must_see_is_there(finished):
    result, outcome = finished
    words = " ".join("".join(parse_page(result.reports[0]).text).split())
    table = result.materials[0].tables.efr
    primary = table[(table.score == "dice") & (table.threshold == 0.25) & (table.against == "truth")]
    overall = primary.query("dataset == 'all' and relation == 'overall' and severity == 'all'").iloc[0]
    for expected in (
        "Phantoms.",
        "Partial.",
        "100 of",
        "Not every gate passed.",
        f"{overall.violations:,} violations of {overall.cases:,} cases",
        f"{overall.errors} errors",
        percent(overall.efr_percent),
        "medtest replay suite=synthetic phantoms/seed00001/blur_s3_f0_r0",
        "PraNet",
        "Trained on" if result.materials[0].wanted.trained_on else "What was tested",
        "α is the steepest loss",
        outcome.systems[0].digest,
    ):
        assert expected in words, expected
    assert "4.38 %" in words  # the published rate over all cases stands beside the user's
    assert str(outcome.systems[0].folder) not in words


def test_exit_code_tables_and_manifest(finished):
    result, outcome = finished
    assert result.code is ExitCode.GATE_FAILED
    assert result.problems == ()
    for system_outcome in outcome.systems:
        listed = {
            line.split("  ", 1)[1] for line in (system_outcome.folder / "manifest.sha256").read_text().splitlines()
        }
        assert {"report.html", "tables/efr.csv", "records.parquet", "run.json", "samples/worst.png"} <= listed


def test_a_call_without_gates_keeps_the_last_verdict_in_the_report_and_in_mlflow(tmp_path):
    outcome = leave_run(tmp_path, make_suite(gates=(Gate(max_percent=0.5),)), ("alpha",), seeds=4)
    (judged,) = finish(make_suite(gates=(Gate(max_percent=0.5),)), invocation(tmp_path), outcome).materials
    (later,) = finish(make_suite(), invocation(tmp_path), outcome).materials
    assert [headline_of(material, "alpha").tags["gate"] for material in (judged, later)] == ["failed", "failed"]
    assert "No gate is set now" in (outcome.systems[0].folder / "report.html").read_text()


def test_remaking_a_folder_gives_the_same_tables(finished):
    _, outcome = finished
    folder = outcome.systems[0].folder
    before = (folder / "tables" / "efr.csv").read_bytes()
    (folder / "tables" / "efr.csv").unlink()
    (folder / "report.html").unlink()
    again = remake(folder)
    assert again.command == json.loads((folder / "run.json").read_text())["command"] == COMMAND
    assert COMMAND in (folder / "report.html").read_text()
    assert (folder / "tables" / "efr.csv").read_bytes() == before
    assert (folder / "report.html").stat().st_size > 10_000


def test_remaking_knows_what_each_of_several_systems_was_trained_on(tmp_path):
    """Settings that suite.yaml leaves out (null, empty lists) are in run.json, and two systems may share all."""
    suite = make_suite()
    outcome = leave_run(tmp_path, suite, ("alpha", "beta"), seeds=4)
    systems = {"alpha": {"use": "callable", "trained_on": ["phantoms"]}, "beta": {"use": "callable"}}
    for system_outcome in outcome.systems:
        (system_outcome.folder / "suite.yaml").write_text(yaml.safe_dump({**suite.composed, "systems": systems}))
        run = json.loads((system_outcome.folder / "run.json").read_text())
        run["covers"]["system"]["settings"] = {"threshold": None, "names": []}
        (system_outcome.folder / "run.json").write_text(json.dumps({**run, "system_id": system_outcome.system}))
    assert [remake(system_outcome.folder).wanted.trained_on for system_outcome in outcome.systems] == [
        ("phantoms",),
        (),
    ]
    assert "phantoms (trained on)" in (outcome.systems[0].folder / "report.html").read_text()


def test_what_the_printer_and_the_phone_need(finished):
    """Pictures are there when the page is printed before it was scrolled, and commands wrap on paper."""
    result, _ = finished
    text = result.reports[0].read_text()
    assert "data:image/jpeg" in text and "lazy" not in text
    paper = text.partition("@media print")[2].partition("</style>")[0]
    assert re.search(r"\.command \{[^}]*white-space: pre-wrap", paper)


def test_too_many_errors_is_graver_than_a_gate(tmp_path):
    suite = make_suite(gates=(Gate(max_percent=0.1),))
    result = finish(suite, invocation(tmp_path), leave_run(tmp_path, suite, seeds=6, error_percent=7.5))
    assert result.code is ExitCode.TOO_MANY_ERRORS
    assert result.comparison is None
    assert "Too many errors." in result.reports[0].read_text()


def test_a_view_leaves_the_suites_own_results_alone(tmp_path):
    suite = make_suite()
    outcome = leave_run(tmp_path, suite, seeds=6)
    finish(suite, invocation(tmp_path), outcome)
    folder = outcome.systems[0].folder
    own = (folder / "report.html").read_bytes()
    result = finish(suite, invocation(tmp_path), outcome, view="0123456789abcdef")
    assert result.reports == (folder / "views" / "0123456789abcdef" / "report.html",)
    assert (folder / "report.html").read_bytes() == own
    assert "under another oracle" in result.reports[0].read_text()
    assert "Dice 0.900 → 0.200, FAIL" in (folder / "report.html").read_text()
    assert "Dice 0.900 → 0.200<" in result.reports[0].read_text()  # the verdict on the strip is the suite's own
    assert (folder / "views" / "0123456789abcdef" / "tables" / "efr.csv").is_file()


def test_privacy_keeps_images_out(tmp_path):
    suite = make_suite(images="none")
    result = finish(suite, invocation(tmp_path), leave_run(tmp_path, suite, seeds=6))
    text = result.reports[0].read_text()
    assert "data:image" not in without_scripts(text)
    assert [data["pictures"] for data in browser_data(text)] == [[]]


def test_a_sample_index_cannot_reach_outside_its_folder(tmp_path):
    suite = make_suite()
    outcome = leave_run(tmp_path, suite, seeds=6)
    folder = outcome.systems[0].folder
    (tmp_path / "secret.png").write_bytes((folder / "samples" / "worst.png").read_bytes())
    (folder / "samples" / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "samples" / "torn.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    entries = [{"file": name} for name in ("../../secret.png", "/etc/passwd", "link.png", "torn.png", "", "none.png")]
    (folder / "samples" / "index.json").write_text(json.dumps(entries))
    result = finish(suite, invocation(tmp_path), outcome)
    assert "data:image" not in without_scripts(result.reports[0].read_text())


def test_an_interrupted_run_writes_no_tables(tmp_path):
    from dataclasses import replace

    suite = make_suite()
    outcome = replace(leave_run(tmp_path, suite, seeds=4), interrupted=True)
    result = finish(suite, invocation(tmp_path), outcome)
    assert result.code is ExitCode.INTERRUPTED
    assert not (outcome.systems[0].folder / "report.html").exists()


def test_shades_darken_with_the_rate_and_text_stays_readable():
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    before = 1.0
    for tenth in range(1001):
        background, text = shade(tenth / 10)
        darker, lighter = sorted((light(background), light(text)))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, tenth / 10  # WCAG 2.2, AA
        assert light(background) <= before + 1e-9
        before = light(background)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python run.py suite=synthetic limit=2 device=cpu", "suite=synthetic"),
        (
            "medtest run suite=synthetic seed=7 seeds.phantoms.count=3 'relations=[blur,text]' '~relations.text'",
            "suite=synthetic seed=7 seeds.phantoms.count=3 'relations=[blur,text]' '~relations.text'",
        ),
        (
            "python run.py 'suite=my suite/synthetic.yaml' 'data=my images'",
            "'suite=my suite/synthetic.yaml' 'data=my images'",
        ),
        ("python run.py suite=synthetic privacy.seed_ids=hashed", "suite=synthetic privacy.seed_ids=hashed"),
    ],
)
def test_replaying_keeps_what_makes_the_case(finished, command: str, expected: str) -> None:
    result, _ = finished
    material = replace(result.materials[0], command=command)
    assert replay_command(material, "phantoms/a/blur_s1_f0_r0") == f"medtest replay {expected} phantoms/a/blur_s1_f0_r0"


def test_notices_are_shown_with_the_tested_system_and_reuse_once(tmp_path):
    suite = make_suite()
    outcome = leave_run(tmp_path, suite, seeds=6)
    system_outcome = replace(outcome.systems[0], cases_reused=7, reused_from="2026-01-01T00:00:00Z")
    run = json.loads((system_outcome.folder / "run.json").read_text())
    run |= {"cases_reused": 7, "reused_from": system_outcome.reused_from}
    (system_outcome.folder / "run.json").write_text(json.dumps(run))
    outcome = replace(outcome, systems=(system_outcome,), notices=(system_outcome.reuse, "A worker was replaced."))
    page = finish(suite, invocation(tmp_path), outcome).reports[0].read_text()
    tested = page.partition('<section id="tested">')[2].partition("</section>")[0]
    judged = page.partition('<section id="errors">')[2].partition("</section>")[0]
    assert "A worker was replaced." in tested
    assert "replaced" not in judged and "used again" not in judged
    assert "7 cases of earlier runs, last 2026-01-01T00:00:00Z" in tested
    assert system_outcome.reuse == "alpha: 7 finished cases of 2026-01-01T00:00:00Z are used again."
    assert system_outcome.reuse not in page


def test_the_terminal_shows_the_score_on_the_source_images(finished):
    result, outcome = finished
    frame = pd.read_parquet(outcome.systems[0].folder / "records.parquet")
    sources = frame[(frame.relation == "source") & frame.dice.notna()]
    line = on_sources(result.materials[0])
    assert line.startswith(f"alpha: mean of {len(sources)} source cases: dice {sources.dice.mean():.3f}, iou ")
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(efr_view(result.materials))
    assert line in console.export_text()


def test_a_report_holds_no_notice_of_another_system(tmp_path):
    suite = make_suite()
    outcome = leave_run(tmp_path, suite, ("alpha", "beta"), seeds=6)
    words = [f"{system_outcome.record_name}: 7 finished cases are used again." for system_outcome in outcome.systems]
    shown = finish(suite, invocation(tmp_path), replace(outcome, notices=(*words, "for all")))
    for own, material in enumerate(shown.materials):
        assert list(material.notices) == [words[own], "for all"]


def test_the_first_printed_page_names_the_held_gate_and_the_model(tmp_path) -> None:
    suite = make_suite(gates=(Gate(max_percent=95),))
    page = report_page(finish(suite, invocation(tmp_path), leave_run(tmp_path, suite, ("alpha",))).materials[0])
    assert page["first_page"]["held"]
    assert page["first_page"]["verdict"] == page["gates_line"]
    assert "is not above 95 %" in page["gates_line"]
    assert first_page({**page, "facts": [("Model", "net.onnx"), ("Device", "cpu")]}, None)["facts"] == [
        ("Model", "net.onnx")
    ]


def test_the_first_printed_page_holds_the_main_results_and_is_for_paper_alone(finished) -> None:
    result, _ = finished
    page = result.reports[0].read_text(encoding="utf-8")
    printed = page[page.index('<section class="front"') : page.index('<header class="top">')]
    weakest = next(card for card in report_page(result.materials[0])["cards"] if card.get("weakest"))
    for words in (
        result.materials[0].system,
        "Error-finding rate (EFR) overall",
        weakest["name"],
        "On source images",
        "data:image/jpeg",
    ):
        assert words in printed
    assert printed.count('class="card"') == 3 and "banner" in printed
    style = page[page.index("<style>") : page.index("</style>")]
    assert ".front { display: none; }" in style
    assert "break-after: page" in style[style.index("@media print") :]
    phone = style[style.index("@media (max-width: 640px)") : style.index("@media print")]
    assert "mask-image" in phone and "::-webkit-scrollbar" in phone  # a table that is cut off shows that it scrolls


def test_every_chart_names_its_axes(finished) -> None:
    result, _ = finished
    shown = report_page(result.materials[0])
    assert shown["curves"] and shown["factor_panels"]
    for svg in shown["curves"]:
        assert ">severity</text>" in svg and re.search(r'transform="rotate[^>]*>Dice; EFR</text>', svg)
    for svg in shown["factor_panels"]:
        assert ">EFR</text>" in svg
    odds = odds_panel("odds", [Bar(label="size", value=2, low=1, high=4)])
    bars = difference_panel("gain", [Bar(label="blur", value=2, low=1, high=4)])
    assert ">odds ratio (log scale)" in odds and ">difference, points</text>" in bars
    compared = result.comparison.read_text(encoding="utf-8")
    assert re.search(r'transform="rotate[^>]*>mean Dice</text>', compared)


def test_failing_images_and_weak_data_sets_are_named(tmp_path):
    outcome = leave_run(tmp_path, suite := make_suite(), ("alpha",), seeds=20)
    folder = outcome.systems[0].folder
    frame = pd.read_parquet(folder / "records.parquet")
    lost = frame.seed_id >= "seed00008"
    frame.loc[lost, ["dice", "source_dice"]] = 0.0
    write_records(frame, folder)
    result = finish(suite, invocation(tmp_path), outcome)
    warning = "phantoms: the mean dice of unchanged images is 0."
    page = result.reports[0].read_text(encoding="utf-8")
    assert warning in page
    printed = page[page.index('<section class="front"') : page.index('<header class="top">')]
    assert all("these figures rest on 8 of 20 images." in part for part in (printed, page.replace(printed, "")))
    worst = pd.read_csv(folder / "tables" / "images.csv").query("violations > 0")
    assert f"The {min(10, len(worst))} images with the most violations" in page
    assert worst.worst_address.iloc[0] in page
    console = Console(file=io.StringIO(), width=200)
    console.print(efr_view(result.materials))
    assert warning in console.file.getvalue()


@pytest.mark.parametrize(
    ("violations", "cases", "words"),
    [
        (1, 24, "1 violation of 24 cases"),
        (0, 1, "0 violations of 1 case"),
        (1234, 5000, "1,234 violations of 5,000 cases"),
    ],
)
def test_counts_agree_with_their_nouns(violations: int, cases: int, words: str) -> None:
    assert violations_of({"violations": violations, "cases": cases}) == words


def test_colours_with_a_meaning_are_printed() -> None:
    """Browsers leave backgrounds out of a print, and a legend's swatches are backgrounds."""
    (rule,) = re.findall(r"^ *(.*)\{ -webkit-print-color-adjust: exact", (TEMPLATES / "style.css").read_text(), re.M)
    assert {".legend i", ".tag", "table.heat td.cell"} <= {part.strip() for part in rule.split(",")}


def test_heat_maps_keep_their_heads_when_a_printed_page_ends_within_them() -> None:
    for template in TEMPLATES.glob("*.j2"):
        text = template.read_text()
        assert len(re.findall(r'class="heat[^>]*>\n<thead>', text)) == text.count('class="heat'), template.name

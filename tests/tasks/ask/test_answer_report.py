"""Systems that answer questions, from the run to the report: records, gates, pages, metrics, simulations."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image
from report_pages import browser_data, without_scripts

sys.path.insert(0, str(Path(__file__).parents[2] / "runner"))
from answer_parts import TRUTHS, Haze, Instrument, Tint, answer_suite
from runner_helpers import assert_equal_records, go, records
from runner_parts import Dim

from medtest.core.cases import Address
from medtest.core.errors import ExitCode, UserMistakes
from medtest.report.console import on_sources
from medtest.report.finish import Finished, finish
from medtest.report.mlflow.headline import headline_of
from medtest.report.mlflow.metrics import metrics, tags
from medtest.report.pages.page import report_page
from medtest.report.views import remake
from medtest.results.records.recorded import recorded
from medtest.runner.replaying.replay import replay_case
from medtest.runner.reporting.outcome import Limits, RunOutcome
from medtest.suite.model import Gate, Invocation, Privacy, Suite
from medtest.tasks.ask.report.accuracy import hidden_words
from medtest.tasks.ask.report.page import answers, floor_words, judge_words
from medtest.tasks.ask.tables.accuracy import AVERAGE_18
from medtest.tasks.ask.tables.flips import CONTRACT
from medtest.tasks.ask.tables.hidden import Hidden
from medtest.tasks.ask.tables.readings import JUDGED_COLUMNS
from medtest.tasks.ask.tables.results import AnswerTables

ITEMS = ["text", "polyps", "abnormality_place", "instruments", "instrument_count", "abnormality_colour"]
WRONG = {"dim": 0.3, "blur": 0.1, "instrument": 0.4, "unchanged": 0.05, "source": 0.1}
WORDS = "<script>alert(1)</script> The answer is {}."


def make(**options: Any) -> Suite:
    defaults: dict[str, Any] = {
        "seeds": 6,
        "systems": {
            "teller": {"wrong": WRONG, "refuses": 0.08, "unread": 0.08, "words": WORDS},
            "sim": {"wrong": {"dim": 0.2}},
        },
        "simulated": ["sim"],
        "relations": {"dim": Dim, "blur": Haze, "instrument": Instrument, "white_balance": Tint},
        "only": ITEMS,
        "gates": (Gate(relation="overall", score="answer", threshold=0.0, against="source", max_percent=5.0),),
    }
    return answer_suite(**{**defaults, **options})


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, Path, RunOutcome, Finished]:
    home = tmp_path_factory.mktemp("home")
    suite = make()
    outcome = go(suite, home, limits=Limits(samples=6))
    done = finish(suite, Invocation(home=home, quiet=True, workers=1, track=False, command="run.py suite=x"), outcome)
    return suite, home, outcome, done


def test_records_hold_the_words_and_how_they_were_judged(ran: Any) -> None:
    frame = records(ran[2])
    assert len(frame) == 6 * len(ITEMS) * (1 + 4 + 2)
    judged = frame[(frame.relation != "source") & frame.self_agreement.notna()]
    assert (judged.verdict == judged.self_agreement.map({1.0: "PASS", 0.0: "FAIL"})).all()
    refused = frame[(frame.state == "refusal") & (frame.source_state == "value")]
    assert len(refused) > 3
    open_rules = refused.rule.isin(["skip", "may change"])
    assert set(refused[~open_rules].verdict) == {"FAIL"}
    cut = frame[frame.reply == "length"]
    assert set(cut.verdict) == {"SKIP"}
    assert set(cut[cut.rule == "invariant"].reason_code) == {"answer_truncated"}
    colour = frame[(frame.item == "abnormality_colour") & (frame.relation == "white_balance")]
    assert set(colour.verdict) == {"SKIP"}
    instruments = frame[(frame.item == "instruments") & (frame.relation == "instrument") & frame.self_agreement.notna()]
    yes = instruments.said.str.contains("biopsy_forceps")
    assert (instruments.verdict == yes.map({True: "PASS", False: "FAIL"})).all()
    assert set(frame[frame.item == "instrument_count"].rule) == {"invariant", "must become +inserted"}
    assert (frame.evidence.str.len() <= frame.answer.str.len()).all()
    assert frame.cost_usd.sum() == pytest.approx(0.001 * len(frame))
    assert frame.factor_brightness.notna().all()


def test_a_resumed_run_is_equal(ran: Any, tmp_path: Path) -> None:
    suite, _, outcome, _ = ran
    assert_equal_records(records(go(suite, tmp_path)), records(outcome))


def test_a_gate_on_answers_and_exit_code(ran: Any) -> None:
    _, _, _, done = ran
    assert done.code is ExitCode.GATE_FAILED
    held = [material.tables.gates[0].held for material in done.materials]
    assert held[0] is False
    text = done.reports[0].read_text(encoding="utf-8")
    assert "Not every gate passed." in text


def test_tables_are_in_the_folder_and_are_remade_alike(ran: Any) -> None:
    _, _, outcome, _ = ran
    folder = outcome.systems[0].folder
    names = ["flips", "flips_detail", "flip_directions", "answer_accuracy", "answer_accuracy_by_relation"]
    names += ["answer_changes", "answer_states", "answer_costs"]
    before = {name: (folder / "tables" / f"{name}.csv").read_bytes() for name in names}
    flips = pd.read_csv(folder / "tables" / "flips.csv")
    assert tuple(flips.columns) == CONTRACT
    assert set(flips.relation) == {"dim", "blur", "instrument", "white_balance", "overall"}
    remake(folder)
    assert {name: (folder / "tables" / f"{name}.csv").read_bytes() for name in names} == before


def test_the_report_shows_it_and_escapes_every_word(ran: Any) -> None:
    _, _, _, done = ran
    text = without_scripts(done.reports[0].read_text(encoding="utf-8"))
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    for words in (
        "Original less average is",
        "net of repeated questions",
        "GPT-4V, published",
        "Refusals and unparsed answers",
    ):
        assert words in text, words
    assert "refused" in text
    assert "<b>Simulated.</b>" not in text
    assert "<b>Phantoms.</b>" not in text  # the suite's seeds are no part that is installed
    assert text.count('class="tag bad">flip<') > 3
    assert 'src="data:image/jpeg' in text
    assert re.search(r"<td[^>]*>text</td>", text)
    assert 'href="#refusals"' in text


@pytest.mark.parametrize(
    ("weighed", "shown"),
    [(0.048, "5.6 % of 108 when"), (6 / 108, "repeated: net")],
)
def test_the_floor_that_is_subtracted_is_shown(weighed: float, shown: str) -> None:
    counts = {"item": "all", "relation": "overall", "cases": 298, "unchanged_flips": 6, "unchanged_cases": 108}
    rates = {"rate": 0.121, "rate_low": 0.007, "rate_high": 0.734, "unchanged_rate": weighed}
    ends = {"net": 0.121 - weighed, "ci_low": -0.579, "ci_high": 0.687}
    words = floor_words(pd.DataFrame([{**counts, **rates, **ends}]))
    assert shown in words
    # the three figures that stand there add up as they are printed
    subtracted = 4.8 if weighed == 0.048 else 5.6
    assert f"net {12.1 - subtracted:+.1f} points" in words


def test_a_judge_that_read_nothing_is_reported_with_the_number_of_unread_answers(ran: Any) -> None:
    tables = ran[3].materials[0].tables.own.tables
    frame = pd.read_parquet(ran[3].materials[0].folder / "records.parquet")
    unread = int(((frame["state"] == "unparsed") & (frame["reply"] == "answered")).sum())
    assert unread > 0
    silent = replace(tables, judge="vllm/reader", judged=pd.DataFrame(columns=list(JUDGED_COLUMNS)))
    assert f"no value in {unread} answers, and vllm/reader read none" in judge_words(silent)
    nothing = replace(silent, states=tables.states.assign(unparsed=0, cut_off=0, malformed=0))
    assert "read nothing" in judge_words(nothing)


def test_terminal_counts_answers_to_sources_not_images(ran: Any) -> None:
    material = ran[3].materials[0]
    frame = pd.read_parquet(material.folder / "records.parquet")
    sources = frame[(frame["relation"] == "source") & frame["agreement"].notna()]
    assert len(sources) > sources["seed_id"].nunique()
    assert f": mean of {len(sources)} source cases: accuracy " in on_sources(material)


def test_a_simulation_is_named_as_such_everywhere(ran: Any) -> None:
    _, home, outcome, done = ran
    assert outcome.systems[1].record_name == "sim-simulated"
    assert set(records(outcome, 1).system) == {"sim-simulated"}
    text = done.reports[1].read_text(encoding="utf-8")
    assert "GPT-4V, published" not in text
    assert "not for a simulation" in text
    accuracy = pd.read_csv(outcome.systems[1].folder / "tables" / "answer_accuracy.csv")
    assert not [name for name in accuracy if name.startswith("published")]
    assert "<b>Simulated.</b>" in text
    assert "Simulated: " in text
    assert tags(done.materials[1], headline_of(done.materials[1], ""))["simulated"] == "true"
    assert tags(done.materials[0], headline_of(done.materials[0], ""))["simulated"] == "false"
    assert "Simulated" in tags(done.materials[1], headline_of(done.materials[1], ""))["mlflow.note.content"]
    assert "(simulated)" in done.note
    page = (home / "outputs" / "runner_suite" / "comparison.html").read_text(encoding="utf-8")
    tables = re.findall(r"<table.*?</table>", page, flags=re.DOTALL)
    assert any("teller" in table for table in tables)
    assert any("sim-simulated" in table for table in tables)
    assert not any("teller" in table and "sim-simulated" in table for table in tables)
    from io import StringIO

    from rich.console import Console

    shown = Console(file=StringIO(), width=160)
    for renderable in done.renderables:
        shown.print(renderable)
    printed = shown.file.getvalue()  # type: ignore[attr-defined]
    assert printed.index("SIMULATED") > printed.index("teller")
    assert "Original less average" in printed


def test_metrics_have_fixed_names(ran: Any) -> None:
    _, _, _, done = ran
    head = headline_of(done.materials[0], "teller")
    logged = metrics(done.materials[0], head)
    assert {"efr", "efr_low", "efr_high", "floor", "efr/dim", "cost/cost_usd", "cost/seconds_median"} <= set(logged)
    assert len(logged) <= 40
    flips = done.materials[0].tables.own.tables.flips
    pooled = flips[(flips.item == "all") & (flips.relation == "overall")]
    assert logged["efr"] == pytest.approx(100 * pooled.rate.iloc[0], abs=1e-3)
    assert all(value == value for value in head.metrics.values())


def test_strips_have_their_words_beside_them(ran: Any) -> None:
    _, _, outcome, _ = ran
    folder = outcome.systems[0].folder / "samples"
    entries = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    assert entries
    frame = records(outcome).set_index(["seed_id", "item", "relation"])
    for entry in entries:
        words = dict(entry["words"])
        assert list(words)[0] == "question"
        source = frame.loc[(entry["seed_id"], entry["item"], "source")]
        assert source.answer[:40] in words["source"]
        assert entry["address"].endswith(f"/{entry['item']}")
        assert Image.open(folder / entry["file"]).width > 2 * 300 + 400


def test_sheets_of_the_worst_images_are_drawn_once(ran: Any) -> None:
    suite, home, outcome, _ = ran
    folder = outcome.systems[0].folder / "samples"
    index = json.loads((folder / "asked.json").read_text(encoding="utf-8"))
    assert len(index) == 3
    stamp = (folder / "asked-01.png").stat().st_mtime_ns
    finish(suite, Invocation(home=home, quiet=True, workers=1, track=False), outcome)
    assert (folder / "asked-01.png").stat().st_mtime_ns == stamp


def test_a_replay_shows_recorded_words_and_asks_no_system(ran: Any) -> None:
    suite, home, outcome, _ = ran
    invocation = Invocation(home=home, quiet=True)
    case = replay_case(suite, invocation, "blobs/patient-0002/dim_s3_f0_r0/text")
    assert case.items == ("text",)
    row = records(outcome).set_index(["seed_id", "item", "relation"]).loc[("patient-0002", "text", "dim")]
    assert case.followup_sha256 == row.followup_sha256
    recorded_answers = recorded(home, suite.name, suite.task, case.address, case.shown_id, case.items)
    assert [recorded_answer.system for recorded_answer in recorded_answers] == ["sim-simulated", "teller"]
    assert row.answer in dict(recorded_answers[1].words)["follow-up"]
    whole = replay_case(suite, invocation, "blobs/patient-0002/dim_s3_f0_r0")
    assert whole.items == tuple(ITEMS)
    with pytest.raises(UserMistakes, match=r"(?s)question \"txet\".*text"):
        replay_case(suite, invocation, "blobs/patient-0002/dim_s3_f0_r0/txet")
    nothing = Address(dataset="blobs", seed_id="patient-0002", relation="dim", severity=5)
    assert recorded(home, suite.name, suite.task, nothing, case.shown_id, case.items) == []
    assert recorded(home / "elsewhere", suite.name, suite.task, case.address, case.shown_id, case.items) == []


def test_hashed_ids_and_no_images(tmp_path: Path) -> None:
    suite = replace(make(seeds=2, simulated=[]), privacy=Privacy(images="none", seed_ids="hashed"))
    outcome = go(suite, tmp_path)
    done = finish(suite, Invocation(home=tmp_path, quiet=True, workers=1, track=False), outcome)
    text = done.reports[0].read_text(encoding="utf-8")
    assert "patient-0001" not in text
    assert "data:image" not in without_scripts(text)
    assert [data["pictures"] for data in browser_data(text)] == [[]]
    case = replay_case(suite, Invocation(home=tmp_path, quiet=True), "blobs/patient-0001/dim_s3_f0_r0/text")
    assert len(recorded(tmp_path, suite.name, suite.task, case.address, case.shown_id, case.items)) == 2


def test_judging_by_the_truth_is_another_view(tmp_path: Path) -> None:
    suite = make(seeds=2, against="truth", simulated=[], oracle={"expectations": {"dim": {"all": "may change"}}})
    frame = records(go(suite, tmp_path))
    assert set(frame[frame.relation == "dim"].verdict) == {"SKIP"}
    made_wrong = frame[(frame.relation == "blur") & (frame.agreement == 0) & (frame.source_agreement == 1)]
    assert set(made_wrong.verdict) <= {"FAIL"}
    already = frame[(frame.relation == "blur") & (frame.source_agreement == 0) & frame.agreement.notna()]
    assert set(already.reason_code) <= {"source_wrong"}
    assert set(TRUTHS) >= set(ITEMS)


def test_the_worst_sample_of_a_relation_is_a_violation_where_it_has_one(tmp_path: Path) -> None:
    suite = answer_suite(
        seeds=2,
        systems={"teller": {"wrong": {"dim": 0.2, "blur": 0.2}}},
        relations={"dim": Dim, "blur": Haze, "white_balance": Tint},
        only=ITEMS,
    )
    outcome = go(suite, tmp_path, limits=Limits(samples=6))
    frame = records(outcome)
    failed = frame[frame.verdict == "FAIL"].groupby("relation").size()
    assert set(failed.index) == {"dim", "blur"}
    index = json.loads((outcome.systems[0].folder / "samples" / "index.json").read_text(encoding="utf-8"))
    shown = [entry for entry in index if entry["kind"] == "worst"]
    assert sum(entry["verdict"] == "FAIL" for entry in shown) < failed.sum()  # there are more than have room
    assert {entry["verdict"] for entry in shown if entry["relation"] in failed.index} == {"FAIL"}
    assert {entry["relation"] for entry in shown} == {"dim", "blur", "white_balance"}


def hand_made(accuracy: pd.DataFrame, ran: Any) -> AnswerTables:
    hidden = Hidden(item="all", cases=40, source=0.9, after=0.8, judged=36, flipped=9, lost=6, won=2, sideways=2)
    answers: AnswerTables = ran[3].materials[0].tables.own.tables
    return replace(answers, accuracy=accuracy, hidden=hidden)


def test_original_less_average_is_the_tables_own(ran: Any) -> None:
    names = ("source", "perturbed", "difference")
    rows = [("text", 1.0, 0.5, 0.5), ("polyps", 0.5, 0.25, 0.25), (AVERAGE_18, 0.7, 0.631, 0.069)]
    table = pd.DataFrame(
        [{"item": item, "question": "", "cases": 4, **dict(zip(names, v, strict=True))} for item, *v in rows]
    )
    words = hidden_words(hand_made(table, ran))
    assert words.startswith("Original less average is +0.069 (average of 18 questions: 0.700 to 0.631).")
    assert "9 of 36 answers with a known truth flipped (25.0 %); 6 went from right to wrong, 2 from wrong" in words
    assert "Pooled, these 40 are right in 90.0 % before and 80.0 % after." in words
    alone = replace(hand_made(table, ran).hidden, cases=1, judged=1, flipped=0, lost=0, won=0, sideways=0)
    words = hidden_words(replace(hand_made(table, ran), hidden=alone))
    assert "0 of 1 answer with a known truth flipped" in words and "Pooled, this one is right in" in words
    words = hidden_words(replace(hand_made(table, ran), hidden=replace(alone, judged=0)))
    assert "No answer with a known truth was judged" in words
    # without all 18 the plain mean over the questions with a truth rules, and one without is left out
    unknown = pd.DataFrame([{"item": "box", "question": "", "cases": 0}])
    some = pd.concat([table[table["item"] != AVERAGE_18], unknown], ignore_index=True)
    words = hidden_words(hand_made(some, ran))
    assert words.startswith("Original less average is +0.375 (average of 2 questions: 0.750 to 0.375).")
    assert hidden_words(hand_made(unknown.assign(difference=float("nan")), ran)) == ""


def test_flips_are_counted_alike_in_the_sentence_and_in_the_table(ran: Any) -> None:
    tables = ran[3].materials[0].tables.own.tables
    page = answers(tables, ran[3].materials[0].target)
    words = hidden_words(tables)
    row = next(row for row in page["relations"] if row["sum"])
    assert f"{row['right_to_wrong']} went from right to wrong" in words
    assert f"{row['wrong_to_right']} from wrong to right" in words
    assert f"{row['wrong_to_wrong']} from one wrong answer to another" in words
    for worst_image in page["worst"]:
        marked = sum(bool(cell["mark"]) for row in worst_image["rows"] for cell in row["cells"])
        stated = worst_image["flips"].split(" answers flipped; ")
        assert marked == int(stated[-1].split()[0].replace(",", ""))


def test_accuracy_is_one_figure_on_the_whole_page(ran: Any) -> None:
    done = ran[3]
    text = done.reports[0].read_text(encoding="utf-8")
    table = pd.read_csv(ran[2].systems[0].folder / "tables" / "answer_accuracy.csv")
    assert list(table["item"]) and not table["item"].str.startswith("average").any()  # six questions of the 18
    source, perturbed = table["source"].mean(), table["perturbed"].mean()
    assert f"<td>average of {len(ITEMS)}</td>" in text
    assert f"{source:.3f} → {perturbed:.3f}" in text
    assert f"Original less average is {source - perturbed:+.3f} (average of {len(ITEMS)} questions: " in text
    assert "On source images" not in text


def test_counts_of_cases_agree_with_each_other_and_with_the_records(ran: Any) -> None:
    text = ran[3].reports[0].read_text(encoding="utf-8")
    frame = records(ran[2])
    again = int((frame.relation == "unchanged").sum())
    executed = int((frame.relation != "source").sum()) - again
    assert (executed, again) == (6 * len(ITEMS) * 4, 6 * len(ITEMS) * 2)
    assert f"<dd>{executed} executed and {again} with the image unchanged</dd>" in text
    assert f"Of {executed} follow-ups" in text
    assert "<dd>36: 6 images (blobs 6), 6 questions; a case is an image with a question</dd>" in text


def test_one_severity_is_one_column_and_important_sections_are_first(ran: Any) -> None:
    page = report_page(ran[3].materials[0])
    first = page["heats"][0]
    assert first["columns"] == ["severity 3"]
    floor = next(row for row in first["rows"] if row["name"] == "unchanged")
    assert floor["cells"][0]["value"]
    shown = [(heat["title"], column) for heat in page["heats"] for column in heat["columns"]]
    assert len(set(shown)) == len(shown) == 4
    assert shown[0] == ("answer, against the answer to the source", "severity 3")
    assert shown[1:] == [
        ("Further criteria, against the system's answer to the source image", "exact"),
        ("All scores and thresholds, against the expected answer", "answer"),
        ("All scores and thresholds, against the expected answer", "exact"),
    ]
    text = ran[3].reports[0].read_text(encoding="utf-8")
    order = re.findall(r'<section id="([a-z-]+)"', text)
    expected = ["cases", "gates", "accuracy", "flips", "refusals", "images", "matrix", "errors", "cost"]
    assert order[: len(expected)] == expected
    linked = re.findall(r'<a href="#([a-z-]+)"', text)
    assert linked == [name for name in order if name in linked]
    folded = text[text.index('<section id="matrix">') : text.index('<section id="errors">')]
    assert folded.index("<details>") < folded.index('class="heat"') < folded.index("</details>")
    assert text.count("<details") == text.count("</details>")
    assert "<script" not in without_scripts(text)

"""``judge.use=…`` from the command line: a model that answers in a foreign language, and a judge that reads it.

Both are real servers on loopback, written here; expected tables are computed from the words.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import medtest
from medtest.api.faulty.faults import Faults
from medtest.api.faulty.server import serving
from medtest.cli.run.launch import main
from medtest.runner.folder import VIEWS

ONE, TWO, YES, NO = "Yksi kappale.", "Kaksi kappaletta.", "Kyll\N{LATIN SMALL LETTER A WITH DIAERESIS} vain.", "Eip."
MUTE = "En voi auttaa."
GUESS = "Vaikea kysymys!"
MEANINGS: Mapping[str, Mapping[str, str]] = {
    ONE: {"meaning": "value", "answer": "1", "quote": "Yksi"},
    TWO: {"meaning": "value", "answer": "2", "quote": "kaksi kappaletta"},
    YES: {"meaning": "value", "answer": "yes", "quote": "Kyll\N{LATIN SMALL LETTER A WITH DIAERESIS}"},
    NO: {"meaning": "value", "answer": "no", "quote": "Eip"},
    MUTE: {"meaning": "refusal", "answer": "", "quote": "En voi auttaa"},
    GUESS: {"meaning": "value", "answer": "yes", "quote": "yes, there is one"},  # the quotation is invented
}
VALUES = {ONE: "1", TWO: "2", YES: "yes", NO: "no"}


def words_for(question: str, png: bytes) -> str:
    """Return the model's answer: another number on about every second picture."""
    odd = hashlib.sha256(png).digest()[0] % 2
    if "how many polyps" in question.lower():
        return TWO if odd else ONE
    if "text" in question.lower():
        return YES if odd else NO
    if "procedure" in question.lower():
        return MUTE if odd else "Colonoscopy."
    return GUESS if "easy" in question.lower() else "No."


class Talking(ThreadingHTTPServer):
    """The server of both models, with its requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.judged: list[str] = []
        self.keys: set[str] = set()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Talking

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = self._judge(body) if body["model"] == "reader" else self._look(body)
        message = {"role": "assistant", "content": reply}
        answer = {
            "id": "x",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
        sent = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def _look(self, body: dict[str, Any]) -> str:
        content = body["messages"][-1]["content"]
        (url,) = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
        (question,) = [part["text"] for part in content if part["type"] == "text"]
        return words_for(question, base64.b64decode(url.partition(",")[2]))

    def _judge(self, body: dict[str, Any]) -> str:
        assert "image_url" not in json.dumps(body)
        assert body["response_format"]["json_schema"]["schema"]["additionalProperties"] is False
        content = body["messages"][-1]["content"]
        prompt = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        self.server.judged.append(prompt)
        words = prompt.split("==========\n")[1].strip()
        return json.dumps(MEANINGS.get(words, {"meaning": "unclear", "answer": "", "quote": ""}))


@pytest.fixture
def server() -> Iterator[Talking]:
    with Talking() as started:
        thread = threading.Thread(target=started.serve_forever, daemon=True)
        thread.start()
        try:
            yield started
        finally:
            started.shutdown()
            thread.join()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    return tmp_path


ASKED = ("polyps", "text", "procedure", "easy")


def make_command(server: Talking, *more: str) -> list[str]:
    chosen = ",".join(f"question:{item}" for item in ASKED)
    return [
        *("suite=medvqa", "model=openai_compatible", f"base_url={server.base_url}", "model_name=seer", "limit=3"),
        *("relations=[blur,text]", f"'only={chosen}'".strip("'"), "tracking=none", "quiet=true", *more),
    ]


def judge(server: Talking, *more: str) -> list[str]:
    return ["judge.use=vllm", f"judge.base_url={server.base_url}", "judge.model_name=reader", *more]


def folder_of(home: Path) -> Path:
    (path,) = home.glob("outputs/medvqa/*/*/")
    return path


def table(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(folder / "tables" / name, keep_default_na=False)


@pytest.mark.slow
def test_a_judge_reads_answers_that_medtest_cannot(
    home: Path, server: Talking, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(make_command(server)) == 0
    own = folder_of(home)
    before = {path.name: path.read_bytes() for path in (own / "tables").iterdir()}
    records = (own / "records.parquet").read_bytes()
    unread = table(own, "answer_states.csv").set_index(["item", "relation"])["unparsed"]
    capsys.readouterr()

    assert main([*make_command(server), *judge(server)]) == 0
    shown = capsys.readouterr().out
    assert "vllm/reader" in shown
    assert "no image" in shown
    assert "; 1 reading is not accepted" in shown
    (view,) = (own / VIEWS).iterdir()
    assert (own / "records.parquet").read_bytes() == records
    assert {path.name: path.read_bytes() for path in (own / "tables").iterdir()} == before

    # every different answer was put to it once, and nothing that medtest reads itself
    frame = pd.read_parquet(own / "records.parquet")
    different = frame[frame["answer"].isin(MEANINGS)][["item", "answer"]].drop_duplicates()
    assert len(server.judged) == len(different) == len(set(server.judged))
    judged = table(view, "answers_judged.csv")
    assert set(judged["words"]) == set(different["answer"])
    assert dict(zip(judged["words"], judged["said"], strict=True)) == {
        words: VALUES.get(words, "") for words in different["answer"]
    }
    assert judged.set_index("words").loc[GUESS, "state"] == "unparsed"
    assert "quotation" in str(judged.set_index("words").loc[GUESS, "doubt"])
    assert judged["cases"].sum() == frame["answer"].isin(MEANINGS).sum()

    # counted apart
    states = table(view, "answer_states.csv").set_index(["item", "relation"])
    for item in ASKED:
        for relation in ("source", "blur", "text"):
            own_cases = frame[(frame["item"] == item) & (frame["relation"] == relation)]
            by_judge = own_cases["answer"].isin([*VALUES, MUTE]).sum()
            row = states.loc[(item, relation)]
            assert row["by_judge"] == by_judge
            assert row["unparsed"] == unread[(item, relation)] - by_judge
            assert row["refusal"] == (own_cases["answer"] == MUTE).sum()

    # flips follow from the words, source against follow-up
    answers = {(r.seed_id, r.relation): r.answer for r in frame[frame["item"] == "polyps"].itertuples()}
    flipped = sum(answers[seed, "blur"] != answers[seed, "source"] for seed in frame["seed_id"].unique())
    flips = table(view, "flips.csv").set_index(["item", "relation"])
    assert (flips.loc[("polyps", "blur"), "flips"], flips.loc[("polyps", "blur"), "cases"]) == (flipped, 3)
    # text was written on the image: the answer must be yes there, which the matrix says and the judge does not know
    answers = {(r.seed_id, r.relation): r.answer for r in frame[frame["item"] == "text"].itertuples()}
    wrong = sum(answers[seed, "text"] != YES for seed in frame["seed_id"].unique())
    assert (flips.loc[("text", "text"), "flips"], flips.loc[("text", "text"), "cases"]) == (wrong, 3)

    page = (view / "report.html").read_text(encoding="utf-8")
    assert "Read by a judge" in page
    assert ">rejected: " in page
    assert "judge.sqlite" not in (own / "manifest.sha256").read_text(encoding="utf-8")

    # again: nothing is asked, neither the model nor the judge; another run's judge takes the answers kept by content
    judged_before = len(server.judged)
    capsys.readouterr()
    assert main([*make_command(server), *judge(server)]) == 0
    assert len(server.judged) == judged_before
    assert "(nothing was paid this time: all replies were stored)" in printed_text(capsys)
    (own / "judge.sqlite").unlink()
    assert main([*make_command(server), *judge(server)]) == 0
    assert len(server.judged) == judged_before
    # without the judge the run's own tables are as they were
    assert main(make_command(server)) == 0
    assert {path.name: path.read_bytes() for path in (own / "tables").iterdir()} == before


@pytest.mark.slow
def test_python_asks_the_judge_like_the_command_line(home: Path, server: Talking) -> None:
    line = [word for word in make_command(server, *judge(server)) if not word.startswith(("suite=", "limit=", "only="))]
    only = ["question:polyps", "question:text"]
    result = medtest.run("medvqa", home=home, limit=1, only=only, quiet=True, overrides=line)
    assert len(server.judged) > 1
    assert sorted(result.tables["answers_judged"]["words"]) == sorted(
        prompt.split("==========\n")[1].strip() for prompt in server.judged
    )
    assert result.report.parent.parent.name == VIEWS
    assert any("vllm/reader read" in line for line in result.notices)


@pytest.mark.slow
def test_a_judges_budget_and_a_silent_judge_cost_no_results(
    home: Path, server: Talking, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*make_command(server), *judge(server, "judge.max_calls=1")]) == 5
    shown = capsys.readouterr().out
    assert "judge.max_calls=1 is reached" in shown
    assert "budget.max_calls" not in shown
    (view,) = (folder_of(home) / VIEWS).iterdir()
    assert len(table(view, "answers_judged.csv")) == 1
    assert main([*make_command(server), *judge(server, "judge.max_calls=100")]) == 0
    assert len(table(view, "answers_judged.csv")) > 3

    with Talking() as nobody:
        gone = nobody.base_url
    more = ["judge.use=vllm", f"judge.base_url={gone}", "judge.model_name=reader"]
    patient = home / "conf" / "model"
    patient.mkdir(parents=True)
    (patient / "hasty.yaml").write_text("use: vllm\nattempts: 1\n", encoding="utf-8")
    more = [word.replace("use=vllm", "use=hasty") for word in more]
    assert main([*make_command(server), *more, "--config-dir", str(home / "conf")]) == 2
    assert "whether the server is running" in capsys.readouterr().out

    # A judge that breaks each time: its view stands on what medtest reads itself, and the exit code says so.
    with serving(Faults(error=1.0)) as broken:
        more = ["judge.use=hasty", f"judge.base_url={broken.base_url}", "judge.model_name=reader"]
        assert main([*make_command(server), *more, "--config-dir", str(home / "conf")]) == 3
    shown = capsys.readouterr().out
    assert "gave no reading of" in shown
    assert "a judge read no answer" in shown


@pytest.mark.slow
def test_the_cost_of_a_judge_is_in_plan_console_table_report_and_mlflow(
    home: Path, server: Talking, capsys: pytest.CaptureFixture[str]
) -> None:
    own = home / "conf" / "model"
    own.mkdir(parents=True)
    (own / "paid.yaml").write_text("use: vllm\nprices: {reader: {input: 100.0, output: 1000.0}}\n", encoding="utf-8")
    line = [*make_command(server), *judge(server), "--config-dir", str(home / "conf")]
    line = ["judge.use=paid" if word == "judge.use=vllm" else word for word in line]
    assert main([*line, "plan=true"]) == 0
    planned = re.search(r"One call for each such answer, at most .*: \$(\d+\.\d+)\.", printed_text(capsys))
    # 512 tokens back at 1000 dollars a million are 0.512; what is sent comes on top of it.
    assert planned is not None
    assert 0.512 < float(planned[1]) < 0.7
    line = [word for word in line if word != "tracking=none"]
    assert main(line) == 0
    # The server counts 100 tokens in and 10 out for each: 0.01 + 0.01 dollars.
    paid = 0.02 * len(server.judged)
    assert f"{len(server.judged)} calls, ${paid:.4f})" in printed_text(capsys)
    (view,) = (folder_of(home) / VIEWS).iterdir()
    assert table(view, "answers_judged.csv")["judge_cost_usd"].tolist() == [pytest.approx(paid)] * len(server.judged)
    assert f"The readings cost ${paid:,.4f}" in (view / "report.html").read_text(encoding="utf-8")
    with contextlib.closing(sqlite3.connect(home / "mlruns" / "mlflow.db")) as db:
        logged = db.execute("SELECT value FROM metrics WHERE key = 'cost/judge_usd'").fetchall()
    assert [value for (value,) in logged] == [pytest.approx(paid)]
    assert main(line) == 0
    assert "(nothing was paid this time: all replies were stored)" in printed_text(capsys)


def printed_text(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the printed output without line breaks."""
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["judge.use=simlab"], ["judge.use", "simlab", "gpt_4o"]),
        (["judge.use=gpt4o"], ["judge.use", "gpt_4o"]),
        (["judge.max_calls=5"], ["judge.max_calls without judge.use"]),
        (["judge.use=vllm"], ["judge.model_name", "nothing"]),
        (["judge.use=openai_compatible", "judge.model_name=x"], ["judge.base_url", "nothing"]),
        (["judge.use=vllm", "judge.model_name=x", "judge.base_url=http://example.org/v1"], ["https"]),
        (["judge.use=vllm", "judge.model_name=x", "judge.max_usd=1"], ["judge.max_usd", "no price"]),
        (["judge.use=gpt_4o"], ["OPENAI_API_KEY is not set"]),
        (["judge.uses=gpt_4o"], ["judge.uses", "use"]),
    ],
)
def test_mistakes_are_one_message_before_anything_runs(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, more: list[str], words: list[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert main(["suite=medvqa", "limit=1", "tracking=none", *more]) == 2
    shown = capsys.readouterr().err
    assert all(word in shown for word in words), shown
    assert not (home / "outputs").exists()


def test_other_suites_have_no_words_to_judge(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite=polyp_seg", "limit=1", "tracking=none", "judge.use=vllm", "judge.model_name=x"]) == 2
    assert "ask questions" in capsys.readouterr().err


def test_a_suite_names_no_judge(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tmp_path / "mine.yaml"
    suite.write_text("extends: medvqa\nname: mine\njudge: {use: gpt_4o}\n", encoding="utf-8")
    assert main([f"suite={suite}", "limit=1", "tracking=none"]) == 2
    assert "judge" in capsys.readouterr().err

"""``medtest data answers``: the written table, the printed summary, and mistakes in the table."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from medtest.cli.data.command import app
from medtest.core.errors import UserMistakes
from medtest.language.questions.answer_files import beside, read_answers
from medtest.language.questions.questions import official
from medtest.readers.typed import reading

ROWS = [
    ("How many polyps are in the image?", "There are none; please consult a doctor.", "0", "0", "answered", "right"),
    ("How many instrumnets are in the image?", "=2+ instruments", "2", "'=2..", "answered", "other value"),
    ("size", "Not larger than 5 mm,\nroughly.", "..=5", "..=5", "answered", "right"),
    ("What is the size of the polyp?", "about 8 mm", "8 mm", "~8", "answered", "right"),
    ("Have all polyps been removed?", "Not relevant.", "not relevant", "not relevant", "answered", "right"),
    ("Is there text?", "I cannot help with that.", "no", "", "refusal", "refusal"),
    ("Is there text?", "I'd rather not say.", "refusal", "", "refusal", "right"),
    ("Is there text?", "Kyllä on.", "yes", "", "unparsed", "unparsed"),
    ("Are there any instruments in the image?", "a snare", "forceps", "polyp_snare", "answered", "other value"),
    ("What type of polyp is present?", "It is slightly raised (0-IIa).", "iia", "iia", "answered", "right"),
    ("Which organ is shown?", "Der Magen", "der magen", "der magen", "answered", "right"),
    ("Is it day?", "yes", "", "yes", "answered", ""),
]


def table(path: Path, *, delimiter: str = ",", encoding: str = "utf-8") -> Path:
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(("Question", "ANSWER", "expected"))
        writer.writerows(row[:3] for row in ROWS)
    return path


def run(*tokens: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["answers", *tokens])
    if isinstance(result.exception, UserMistakes):
        return 2, str(result.exception)
    return result.exit_code, " ".join(result.output.split())


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("delimiter", "encoding"), [(",", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-16"), (";", "utf-16"), (",", "utf-32")]
)
def test_every_answer_gets_value_state_and_stage(tmp_path: Path, delimiter: str, encoding: str) -> None:
    code, output = run(
        str(table(tmp_path / "a.csv", delimiter=delimiter, encoding=encoding)), "--out", str(tmp_path / "read.csv")
    )
    rows = read_rows(tmp_path / "read.csv")
    assert code == 0
    assert [(row["value"], row["state"], row["result"]) for row in rows] == [row[3:] for row in ROWS]
    assert [row["stage"] for row in rows] == ["" if row[4] == "unparsed" else "rules" for row in ROWS]
    assert rows[1]["answer"] == "'=2+ instruments"  # no formula for whoever opens it
    assert rows[2]["answer"] == ROWS[2][1]
    assert "12 answers: 9 answered, 2 refused, 1 unparsed." in output
    assert "Of 11 with an expected value: 7 (63.6 %; 95 % interval 35.4 to 84.8) right" in output
    assert "1 unparsed, 1 read as a refusal, 2 (18.2 %; 95 % interval 5.1 to 47.7) another value." in output
    assert "all 11 7 1 1 2" in output  # the table's last row says what the sentence says


def test_without_expected_values_states_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("answer,question\nzwei Polypen,polyps\nunklar!,polyps\n", encoding="utf-8")
    code, output = run(str(path), "--out", str(tmp_path / "read.csv"))
    assert code == 0
    assert [(row["value"], row["state"]) for row in read_rows(tmp_path / "read.csv")] == [
        ("2", "answered"),
        ("", "unparsed"),
    ]
    assert "with an expected value" not in output
    assert "all 2 1 0 1" in output


def test_a_written_table_can_be_read_again_as_expected(tmp_path: Path) -> None:
    run(str(table(tmp_path / "a.csv")), "--out", str(tmp_path / "read.csv"))
    again = tmp_path / "again.csv"
    with again.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("question", "answer", "expected"))
        for row, expected_row in zip(read_rows(tmp_path / "read.csv"), ROWS, strict=True):
            writer.writerow((expected_row[0], expected_row[1], row["value"] or row["state"]))
    _, output = run(str(again), "--out", str(tmp_path / "again_read.csv"))
    assert "12 (100.0 %" in output


def test_it_reads_like_a_run() -> None:
    question = next(question_ for question_ in official() if question_.name == "size")
    words = "I'm not a doctor, but it is not larger than 5 mm."
    assert reading(words, "answered", question.kind, question.id) == question.parse(words)
    assert beside(question.parse(words), question.parse("at most 5 mm")) == "right"


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", ("a.csv", "empty")),
        (b"question,answer\n", ("has no answer",)),
        (b"question,answers\nsize,5 mm\n", ("a.csv:1", "column answer", "did you mean: answers")),
        (b"frage;antwort\nsize;5 mm\n", ("column question", "frage, antwort")),
        (b"question,answer\nsize,5 mm, or 6\n", ("a.csv:2", "3 values", "2 as in the header", "quote answers")),
        (b'question,answer\nsize,"5 mm\n', ("is not CSV",)),
        (b"question,answer\n,5 mm\n", ("a.csv:2", "question", "nothing")),
        (b"question,answer,expected\nsize,5 mm,big\n", ("a.csv:2", "'big'", "What is the size of the polyp?")),
        ("question,answer\nsize,größer\n".encode("latin-1"), ("is not UTF-8", "save it as UTF-8")),
        ("question,answer\nsize,5\n".encode("utf-16-le"), ("zero bytes",)),
        (b"question,answer,answer\nsize,5 mm,6 mm\n", ("twice",)),
    ],
)
def test_mistakes_are_one_message(tmp_path: Path, content: bytes, parts: tuple[str, ...]) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(UserMistakes) as error:
        read_answers(tmp_path / "a.csv")
    assert [part for part in parts if part not in str(error.value)] == []
    assert not (tmp_path / "read.csv").exists()


def test_the_table_is_not_overwritten(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv")
    before = path.read_bytes()
    code, output = run(str(path), "--out", str(path))
    assert code == 2
    assert "the table itself" in output
    assert path.read_bytes() == before
    code, output = run(str(tmp_path / "none.csv"))
    assert code == 2
    assert "none.csv" in output

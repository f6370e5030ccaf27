"""``medtest prompts export`` and ``import``: exported prompts have ids, imported pictures are matched by id."""

from __future__ import annotations

import csv
import json
import random
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageDraw

from medtest.cli.app import run_app
from medtest.cli.run.launch import main
from medtest.core.errors import UserMistakes

FOREIGN = """
import csv, sys
from pathlib import Path
from PIL import Image, ImageDraw

folder = Path(sys.argv[1])
with open(folder / "prompts.csv", encoding="utf-8", newline="") as file:
    for number, row in enumerate(csv.DictReader(file)):
        picture = Image.new("RGB", (160, 120), (40, 90 + number % 100, 160))
        ImageDraw.Draw(picture).text((4, 4), f"{row['prompt']} {row['number']}", fill=(255, 255, 255))
        picture.save(folder / f"{row['file']}.{('png', 'jpg')[number % 2]}")
"""
"""Somebody's script, which knows nothing of medtest."""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty working directory with a file of captions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDTEST_HOME", raising=False)
    (tmp_path / "captions").mkdir()
    (tmp_path / "captions" / "captions.txt").write_text(
        "A brown dog sitting on a table near a chair.\nA man riding a horse and wearing a hat.\n"
    )
    return tmp_path


def rows_in(folder: Path) -> list[dict[str, str]]:
    with (folder / "prompts.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def export(*tokens: str) -> int:
    own = [
        "suite=t2i_captions",
        "data=captions",
        "seeds.captions.min_triples=0",
        "relations=[ec]",
        "seeds.captions.words=own",
        "file=ordered",
    ]
    return run_app(["prompts", "export", *own, *tokens])


def draw(folder: Path, rows: list[dict[str, str]], *, suffix: str = "png") -> None:
    for row in rows:
        rng = random.Random(row["file"])
        picture = Image.new("RGB", (32, 32))
        ImageDraw.Draw(picture).rectangle((4, 4, 20, 20), fill=(rng.randrange(99, 255), rng.randrange(255), 9))
        picture.save(folder / f"{row['file']}.{suffix}")


def test_every_prompt_of_the_plan_has_an_id_and_k_pictures(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export() == 0
    output = capsys.readouterr().out
    rows = rows_in(work / "ordered")
    assert "4 prompts, 16 pictures to draw" in output and "medtest prompts import file=ordered" in output
    assert set(Counter(row["id"] for row in rows).values()) == {4}
    assert len({row["prompt"] for row in rows}) == len({row["id"] for row in rows}) == 4
    assert len({row["file"] for row in rows}) == len({row["address"] for row in rows}) == 16
    lines = (work / "ordered" / "prompts.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == rows
    assert export() == 0
    with pytest.raises(UserMistakes, match="prompts of another plan"):
        export("pictures=2")


def test_changed_orders_have_k_pictures_too(work: Path) -> None:
    tokens = ["export", "suite=t2i_medical", "limit=1", "relations=[paraphrase]", "file=orders", "pictures=3"]
    assert run_app(["prompts", *tokens]) == 0
    assert set(Counter(row["id"] for row in rows_in(work / "orders")).values()) == {3}


def test_a_file_in_the_way_stays_and_nothing_is_written(work: Path) -> None:
    (work / "ordered").mkdir()
    (work / "ordered" / "export.json").write_text("mine")
    with pytest.raises(UserMistakes, match="export.json, which medtest did not write"):
        export("pictures=1")
    assert [path.read_text() for path in (work / "ordered").iterdir()] == ["mine"]


def test_pictures_are_matched_by_id_and_mistakes_are_listed(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export("pictures=2")
    folder, elsewhere = work / "ordered", work / "elsewhere"
    elsewhere.mkdir()
    rows = rows_in(folder)
    draw(elsewhere, rows[1:4])
    (elsewhere / f"my {rows[0]['file'].upper()} final.JPG").write_bytes(
        (elsewhere / f"{rows[1]['file']}.png").read_bytes()
    )
    (elsewhere / f"{rows[4]['file']}.png").write_bytes(b"no picture")
    (elsewhere / "p0001-ffff-1.png").write_bytes(b"")
    capsys.readouterr()
    assert run_app(["prompts", "import", "file=ordered", "pictures=elsewhere"]) == 0
    output = capsys.readouterr().out
    assert "4 of 8 pictures" in output
    assert "p0001-ffff is no id of these prompts" in output and f"{rows[4]['file']}.png" in output
    assert "1 prompt with the same picture several times" in output
    assert "medtest run suite=t2i_captions" in output
    assert "model=finished_pictures folder=elsewhere table=ordered/pictures.csv" in output
    with (folder / "pictures.csv").open(newline="") as file:
        files = {row["address"]: row["file"] for row in csv.DictReader(file)}
    assert files[rows[0]["address"]].endswith("final.JPG")
    assert rows[4]["address"] not in files  # the first picture of a prompt: an ERROR
    assert files[rows[5]["address"]] == ""  # a further one: SKIP


def test_other_names_come_from_a_table(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export("pictures=1")
    folder, rows = work / "ordered", rows_in(work / "ordered")
    draw(folder, [{"file": f"x{number}"} for number, _ in enumerate(rows)])
    names = "".join(f"{row['id']},x{number}.png\n" for number, row in enumerate(rows))
    (work / "names.csv").write_text(f"id,file\n{names}")
    assert run_app(["prompts", "import", "file=ordered", "table=names.csv"]) == 0
    assert f"{len(rows)} of {len(rows)} pictures" in capsys.readouterr().out
    # what no file and no number can be
    wrong = f"{rows[0]['id']},1,{'x' * 300}.png\n{rows[0]['id']},{'9' * 5000},x0.png\n{rows[1]['id']},1,x1.png\n"
    (work / "names.csv").write_text(f"id,number,file\n{wrong}")
    assert run_app(["prompts", "import", "file=ordered", "table=names.csv"]) == 0
    assert f"1 of {len(rows)} pictures" in (output := capsys.readouterr().out) and "1 file cannot be used" in output


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["export", "suite=t2i"], "file=DIR"),
        (["export", "suite=polyp_seg", "file=x"], "seeds that are prompts"),
        (["export", "suite=t2i", "file=x", "pictures=0"], "1 to 100"),
        (["export", "suite=t2i", "file=x", "privacy.prompts=none"], "prompts: none"),
        (["import", "file=nowhere"], "an existing folder"),
        (["import", "file=.", "folder=x"], "file="),
        (["import", "file=."], "columns id, number"),
    ],
)
def test_mistakes_are_reported_at_once(work: Path, typed: list[str], message: str) -> None:
    with pytest.raises(UserMistakes, match=message):
        run_app(["prompts", *typed])


@pytest.mark.slow
def test_a_foreign_script_draws_and_the_floor_comes_from_its_pictures(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export("pictures=3", "limit=1") == 0
    (work / "foreign.py").write_text(FOREIGN)
    subprocess.run([sys.executable, "foreign.py", "ordered"], check=True)
    capsys.readouterr()
    assert run_app(["prompts", "import", "file=ordered"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("6 of 6 pictures")
    command = shlex.split(next(line for line in lines if "medtest run" in line))[2:]
    assert main([*command, "track=false", "quiet=true"]) == 0
    (records,) = (work / "outputs").rglob("records.parquet")
    table: list[dict[str, Any]] = pq.read_table(records).to_pylist()
    repeats = [row for row in table if row["relation"] == "unchanged"]
    assert len(repeats) == 2 and all(row["verdict"] in ("PASS", "FAIL", "SKIP") for row in repeats)
    assert all(row["picture"] and row["picture"] != row["source_picture"] for row in repeats)
    assert "no_prediction" not in {row["reason_code"] for row in table}
    changed = [row for row in table if row["relation"] == "ec"]
    assert len(changed) == 3 and len({row["prompt"] for row in changed}) == 1
    assert len({row["picture"] for row in table if row["picture"]}) == 6

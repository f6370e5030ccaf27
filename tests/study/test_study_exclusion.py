"""``exclude: {study: FILE}``: flagged follow-ups are left out of every rate and counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from medtest.core.errors import UserMistakes
from medtest.results.records.exclusion import leave_out
from medtest.results.records.records_io import Records
from medtest.suite.checking import exclusion
from medtest.suite.checking.exclusion import BadListError, Exclusion, read_exclusion
from medtest.suite.compose import load_suite

SUITE = 'extends: polyp_seg\nversion: "1"\nexclude: {{study: {file}}}\n'


def _sha(number: int) -> str:
    return f"{number:064x}"


def _list(path: Path, *cases: tuple[str, int]) -> Path:
    rows = "".join(f"phantoms/p/{relation},{relation},{_sha(number)},why\n" for relation, number in cases)
    path.write_text(f"address,relation,followup_sha256,reason\n{rows}", encoding="utf-8")
    return path


def _records() -> Records:
    rows = [
        {
            "dataset": "d",
            "relation": relation,
            "severity": severity,
            "verdict": "PASS",
            "followup_sha256": _sha(10 * severity + index),
        }
        for index, relation in enumerate(("blur", "text"))
        for severity in (1, 2)
    ]
    return Records.of(pd.DataFrame([*rows, {**rows[0], "relation": "source"}]))


def test_listed_follow_ups_are_left_out_and_counted() -> None:
    listed = Exclusion(
        file="flagged.csv",
        cases=frozenset({("blur", _sha(10)), ("text", _sha(10)), ("text", _sha(21)), ("x", _sha(5))}),
    )
    remaining, table, words = leave_out(_records(), listed)
    assert list(zip(remaining.followups["relation"], remaining.followups["severity"], strict=True)) == [
        ("blur", 2),
        ("text", 1),
    ]
    assert len(remaining.sources) == 1
    assert table.to_numpy().tolist() == [
        ["d", "blur", "1", 1, 1],
        ["d", "text", "2", 1, 1],
        ["all", "all", "all", 2, 4],
    ]
    assert "2 follow-ups" in words
    assert "2 of the 4" in words
    nothing = leave_out(_records(), Exclusion(file="x.csv", cases=frozenset()))[1]
    assert nothing["excluded"].tolist() == [0]


def test_a_list_reads_back(tmp_path: Path) -> None:
    first = read_exclusion(_list(tmp_path / "flagged.csv", ("blur", 1), ("text", 2)))
    (tmp_path / "copy.csv").write_text(first.text(), encoding="utf-8")
    assert read_exclusion(tmp_path / "copy.csv").cases == first.cases == {("blur", _sha(1)), ("text", _sha(2))}


def test_beside_the_suite_and_from_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "suites"
    folder.mkdir()
    _list(folder / "flagged.csv", ("blur", 1))
    (folder / "mine.yaml").write_text(SUITE.format(file="flagged.csv"), encoding="utf-8")
    suite = load_suite(folder / "mine.yaml")
    assert suite.exclude is not None
    assert suite.exclude.cases == {("blur", _sha(1))}
    assert suite.composed["exclude"] == {"study": "excluded_by_study.csv"}
    other = _list(tmp_path / "other list.csv", ("text", 2), ("text", 3))
    typed = load_suite("polyp_seg", [f"exclude.study={other}"])
    assert typed.exclude is not None
    assert len(typed.exclude.cases) == 2
    assert load_suite("polyp_seg").exclude is None


@pytest.mark.parametrize(
    "file", ["../flagged.csv", "/etc/passwd", "sub/flagged.csv", "flagged.txt", "missing.csv", ".csv"]
)
def test_a_suite_names_no_other_file(tmp_path: Path, file: str) -> None:
    folder = tmp_path / "suites"
    (folder / "sub").mkdir(parents=True)
    for path in (tmp_path / "flagged.csv", folder / "sub" / "flagged.csv", folder / "flagged.txt"):
        _list(path, ("blur", 1))
    (folder / "mine.yaml").write_text(SUITE.format(file=file), encoding="utf-8")
    with pytest.raises(UserMistakes, match=r"exclude\.study"):
        load_suite(folder / "mine.yaml")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "flagged.csv").symlink_to(_list(tmp_path / "secret.csv", ("blur", 1)))
    (folder / "mine.yaml").write_text(SUITE.format(file="flagged.csv"), encoding="utf-8")
    with pytest.raises(UserMistakes, match="does not exist"):
        load_suite(folder / "mine.yaml")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"address\nx\n", "lacks the column relation"),
        (b"relation,followup_sha256\nblur,abc\n", "line 2"),
        (b"\xff\xfe\x00", "not a CSV"),
        (b"", "lacks the column"),
        (b"relation,followup_sha256\nblur\n", "line 2"),
    ],
)
def test_invalid_lists(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "flagged.csv").write_bytes(content)
    with pytest.raises(UserMistakes, match=reason):
        load_suite("polyp_seg", [f"exclude.study={tmp_path / 'flagged.csv'}"])


def test_the_largest_list_is_read_and_no_larger_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _list(tmp_path / "flagged.csv", ("blur", 1))
    monkeypatch.setattr(exclusion, "MAX_BYTES", file.stat().st_size)
    assert len(read_exclusion(file).cases) == 1
    monkeypatch.setattr(exclusion, "MAX_BYTES", file.stat().st_size - 1)
    with pytest.raises(BadListError, match="larger than"):
        read_exclusion(file)


@pytest.mark.slow
def test_a_run_leaves_out_flagged_follow_ups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole run on two seeds: one flagged follow-up leaves cases, records keep it, tables can be made again."""
    from medtest.cli.run.launch import main
    from medtest.report.views import remake

    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    command = ["suite=polyp_seg", "relations=[blur]", "model=pranet", "limit=2", "only=severity:5", "track=false"]
    command += ["prepare.size=96", "quiet=true", "workers=1"]
    assert main(command) == 0
    (folder,) = (p.parent for p in tmp_path.glob("outputs/*/*/*/records.parquet"))
    records = pd.read_parquet(folder / "records.parquet")
    flagged_row = records.loc[(records["relation"] == "blur").to_numpy()].iloc[0]
    listed = tmp_path / "flagged.csv"
    listed.write_text(f"relation,followup_sha256\nblur,{flagged_row['followup_sha256']}\n", encoding="utf-8")
    assert main([*command, f"exclude.study={listed}"]) == 0
    for _ in range(2):
        table = pd.read_csv(folder / "tables" / "efr.csv")
        blur = table.loc[(table["relation"] == "blur") & (table["severity"] == "all") & (table["dataset"] == "all")]
        assert set(blur["generated"]) == {1}
        counted = pd.read_csv(folder / "tables" / "excluded.csv")
        assert counted["excluded"].iloc[-1] == 1
        assert "1 follow-ups flagged" in (folder / "report.html").read_text(encoding="utf-8")
        remake(folder)
    assert np.array_equal(pd.read_parquet(folder / "records.parquet")["verdict"], records["verdict"])
    assert main(command) == 0
    table = pd.read_csv(folder / "tables" / "efr.csv")
    assert table.loc[(table["relation"] == "blur").to_numpy(), "generated"].max() == 2
    assert not (folder / "tables" / "excluded.csv").exists()

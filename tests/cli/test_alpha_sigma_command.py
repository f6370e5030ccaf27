"""``medtest alpha-sigma``: the paper's program, file by file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.cli.app import run_app
from medtest.core.errors import UserMistakes
from medtest.core.files.written import LIST
from medtest.report.alpha_sigma.figure import draw_figure, plain
from medtest.report.alpha_sigma.latex import escaped, latex_table
from medtest.results.series.robustness import robustness_of
from medtest.results.series.series import SeriesSet, make_series

DATA = Path(__file__).parents[1] / "data" / "alpha_sigma"
NASTY = r"[a_b] & 50% $x$ {\bf#1} ^~<>|" + '"\t\n\x07 λ=Σ'


def test_one_file_writes_into_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_app(["alpha-sigma", str(DATA / "rip_test_image_filtering.dat")]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"Median +0\.027 +10 ", shown)
    table = (tmp_path / "tab_rob.tex").read_text()
    rows = [line for line in table.splitlines() if line.endswith(r"\\")][1:]
    assert rows[0] == r"Median & 0.027 & 10 \\"
    assert rows[-1] == r"SmoothedMedian & 0.009 & 20 \\"
    assert len(rows) == 8
    for row in rows:
        name = row.split(" & ")[0]
        assert name not in table[: table.index(row)]
    assert (tmp_path / "fig_rob.pdf").read_bytes().startswith(b"%PDF")
    assert sorted(path.name for path in tmp_path.iterdir()) == [LIST, "fig_rob.pdf", "tab_rob.tex"]


def test_several_files_each_get_a_folder(tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "rip_test_first_sample.dat"
    other.parent.mkdir()
    shutil.copy(DATA / "rip_test_first_sample.dat", other)
    odd = tmp_path / "été & co.dat"
    shutil.copy(DATA / "rip_test_liver_segmentation.dat", odd)
    files = [str(DATA / "rip_test_first_sample.dat"), str(other), str(odd)]
    out = tmp_path / "out"
    assert run_app(["alpha-sigma", *files, "--out", str(out), "--csv", "--svg"]) == 0
    names = sorted(path.name for path in out.iterdir())
    assert names == ["rip_test_first_sample", "rip_test_first_sample-2", "été_co"]
    inside = {path.name for path in (out / "été_co").iterdir()}
    assert inside - {LIST} == {"tab_rob.tex", "fig_rob.pdf", "fig_rob.svg", "alpha_sigma.csv"}


def test_a_bad_file_among_good_ones_writes_nothing(tmp_path: Path) -> None:
    bad = tmp_path / "bad.dat"
    bad.write_text("Q\nn\t1\t2\nA\t1\tx\n")
    out = tmp_path / "out"
    with pytest.raises(UserMistakes, match="bad.dat:3"):
        run_app(["alpha-sigma", str(DATA / "rip_test_first_sample.dat"), str(bad), "--out", str(out)])
    assert not out.exists()


def test_min_step_merges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(DATA / "rip_test_liver_segmentation.dat")
    assert run_app(["alpha-sigma", file, "--out", str(tmp_path), "--min-step", "0.5"]) == 0
    shown = capsys.readouterr().out
    assert "merged" in shown
    assert "73.457" not in shown
    with pytest.raises(UserMistakes, match="smaller --min-step"):
        run_app(["alpha-sigma", file, "--out", str(tmp_path), "--min-step", "50"])


def _nasty_set() -> SeriesSet:
    series = (make_series(NASTY, [1, 2], [0.5, 0.4]), make_series("plain", [1, 2], [0.5, 0.45]))
    return SeriesSet(title="t", quality="$Q_1$ & co", scale=r"\input{x} $", series=series)


@given(st.text())
def test_escaped_text_holds_no_command(text: str) -> None:
    shown = escaped(text)
    for sign in "&#%_$":
        assert not re.search(rf"(?<!\\){re.escape(sign)}", shown)
    remainder = re.sub(
        r"\\(textbackslash|textasciicircum|textasciitilde|textless|textgreater|textbar|char34)\{\}", "", shown
    )
    remainder = re.sub(r"\\ensuremath\{\\[A-Za-z]+\}", "", remainder)
    assert "\n" not in remainder
    assert "\\" not in re.sub(r"\\[{}$&#%_]", "", remainder)


def test_latex_balances_and_compiles_where_a_compiler_is(tmp_path: Path) -> None:
    table = latex_table([robustness_of(series) for series in _nasty_set().series])
    without = re.sub(r"\\[{}]", "", table)
    assert without.count("{") == without.count("}")
    rows = [line for line in table.splitlines() if line.endswith(r"\\")]
    assert all(len(re.findall(r"(?<!\\)&", row)) == 2 for row in rows)
    assert not any(row.startswith(("[", "*")) for row in rows)  # they would be taken for the line break's own
    compiler = shutil.which("tectonic") or shutil.which("pdflatex")
    if compiler is None:
        return  # parsed above
    (tmp_path / "page.tex").write_text(f"\\documentclass{{article}}\\begin{{document}}{table}\\end{{document}}")
    subprocess.run([compiler, "page.tex"], cwd=tmp_path, check=True, capture_output=True, timeout=240)


@pytest.mark.parametrize("form", ["pdf", "svg"])
def test_the_figure_takes_any_name_and_is_the_same_twice(form: str) -> None:
    series_set = _nasty_set()
    measured = [robustness_of(series) for series in series_set.series]
    first = draw_figure(series_set, measured, form=form)
    assert first == draw_figure(series_set, measured, form=form)
    if form == "pdf":
        assert b"/FontFile2" in first  # TrueType, embedded
        assert b"/Subtype /Type3" not in first
        assert b"/Subtype /Image" not in first  # all of it is vectors
    else:
        assert b"<image" not in first


def test_plain_keeps_dollars_from_mathematics() -> None:
    assert plain("a$b\n") == r"a\$b "


def test_nothing_is_minus_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # paths are shown as typed, and that of pytest's folder may hold "-0"
    Path("rising.dat").write_text("Q\nnoise\t1\t2\t3\nA\t0.5\t0.50001\t0.50002\nB\t0.5\t0.5\t0.5\n")
    assert run_app(["alpha-sigma", "rising.dat", "--out", ".", "--csv"]) == 0
    shown = capsys.readouterr().out + Path("tab_rob.tex").read_text() + Path("alpha_sigma.csv").read_text()
    assert not re.search(r"-0(\.0*)?(?![.\d])", shown)

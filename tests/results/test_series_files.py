"""Files of qualities: the published ones against their published answers, and malformed ones."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from medtest.core.errors import UserMistakes
from medtest.results.series.paired import paired_table
from medtest.results.series.robustness import ranked, robustness_of
from medtest.results.series.series_file import read_series_file

DATA = Path(__file__).parents[1] / "data" / "alpha_sigma"

# Vacavant et al., "(α,σ)-robustness", figure 2 (b), at its printed precision.
FIGURE_2 = [
    ("Median", 0.027, 10.0),
    ("OriginalShock", 0.025, 10.0),
    ("Coherence", 0.024, 10.0),
    ("EnhancedShock", 0.023, 10.0),
    ("Bilateral", 0.023, 15.0),
    ("ComplexShock", 0.022, 10.0),
    ("SmoothedShock", 0.009, 20.0),
    ("SmoothedMedian", 0.009, 20.0),
]


def answers(path: Path, **kwargs: bool) -> list[tuple[str, float, float]]:
    series_file = read_series_file(path, **kwargs)
    measured = ranked(
        [robustness_of(series, lower_is_better=series_file.lower_is_better) for series in series_file.series]
    )
    return [(series.name, series.alpha, series.sigma) for series in measured]


def test_image_filtering_gives_figure_2_with_its_ties() -> None:
    measured = answers(DATA / "rip_test_image_filtering.dat")
    assert [(name, round(alpha, 3), sigma) for name, alpha, sigma in measured] == FIGURE_2


def test_the_synthetic_example_by_hand() -> None:
    # 94 → 90 over 0.25; 92.5 → 90 over 0.25: figure 1 calls algorithm 2 the more robust, with lower α and larger σ
    assert answers(DATA / "rip_test_first_sample.dat") == [
        ("Algorithm 1", pytest.approx(16.0), 0.25),
        ("Algorithm 2", pytest.approx(10.0), 0.5),
    ]


def test_the_liver_study_by_hand() -> None:
    # 90.2645 → 83.6534 from 4.79 to 4.88; 95.3639 → 86.4506 from 5.49 to 5.95: lower α and larger σ for MultiVar
    assert answers(DATA / "rip_test_liver_segmentation.dat") == [
        ("SmartPaint", pytest.approx(6.6111 / 0.09), 4.79),
        ("MultiVar", pytest.approx(8.9133 / 0.46), 5.49),
    ]


def test_the_published_files_are_read_whole() -> None:
    liver_file = read_series_file(DATA / "rip_test_liver_segmentation.dat")
    assert (liver_file.quality, liver_file.scale) == ("Dice", "Liver variability")
    assert [series.scales.size for series in liver_file.series] == [20, 20]
    assert liver_file.series[0].labels[:5] == ("0.25", "0.5", "0.75", "1", "1.6")
    assert liver_file.notes == ()
    synthetic = read_series_file(DATA / "rip_test_first_sample.dat")
    for liver, example in zip(
        liver_file.series, synthetic.series, strict=True
    ):  # as the documentation says of these files
        assert np.round(liver.qualities[:4], 1).tolist() == example.qualities.tolist()


GOOD = "Q\nnoise\t1\t2\t3\nA\t0.9\t0.8\t0.5\nB one\t0.7\t0.7\t0.6\n"


def write(tmp_path: Path, content: str | bytes, name: str = "file.dat") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        GOOD.encode("utf-8-sig"),
        GOOD.encode("utf-16"),
        GOOD.encode("utf-32"),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace("\n", "\r").encode(),
        ("# first\n\n  # second\n" + GOOD + "\n\n# last\n").encode(),
        GOOD.replace("\n", "\t\t\n").encode(),
        GOOD.replace("\t", " \t ").encode(),
        GOOD.replace("\t", "   ").encode(),
        GOOD.rstrip("\n").encode(),
    ],
    ids=["bom", "utf16", "utf32", "crlf", "cr", "comments", "tabs-at-ends", "padded", "spaces", "no-last-newline"],
)
def test_what_is_plain_is_read(tmp_path: Path, content: bytes) -> None:
    series_file = read_series_file(write(tmp_path, content))
    assert series_file.quality == "Q"
    assert series_file.scale == "noise"
    assert [series.name for series in series_file.series] == ["A", "B one"]
    assert series_file.series[0].qualities.tolist() == [0.9, 0.8, 0.5]
    assert series_file.series[1].scales.tolist() == [1, 2, 3]


def test_windows_1252_is_read_with_a_note(tmp_path: Path) -> None:
    series_file = read_series_file(write(tmp_path, GOOD.replace("A", "Médian").encode("cp1252")))
    assert series_file.series[0].name == "Médian"
    assert any("1252" in note for note in series_file.notes)


def test_spaces_for_tabs_and_unsorted_scales_are_noted(tmp_path: Path) -> None:
    text = "Q\nnoise\t3\t1\t2\nA\t0.5\t0.9\t0.8\n"
    series_file = read_series_file(write(tmp_path, text))
    assert series_file.series[0].scales.tolist() == [1, 2, 3]
    assert series_file.series[0].qualities.tolist() == [0.9, 0.8, 0.5]
    assert series_file.series[0].labels == ("1", "2", "3")
    assert any("sorted" in note for note in series_file.notes)


def test_equal_scales_become_their_mean(tmp_path: Path) -> None:
    series_file = read_series_file(write(tmp_path, "Q\nnoise\t1\t2\t2\t3\nA\t1\t0.9\t0.7\t0.6\n"))
    assert series_file.series[0].scales.tolist() == [1, 2, 3]
    assert series_file.series[0].qualities.tolist() == pytest.approx([1, 0.8, 0.6])
    assert any("equal scales" in note for note in series_file.notes)


@pytest.mark.parametrize(
    ("content", "line", "column", "words"),
    [
        ("Q\nn\t1\t2\nA\t0.9\t\n", 3, 3, "nothing"),
        ("Q\nn\t1\t2\t3\nA\t0.9\t\t0.5\n", 3, 3, "nothing"),
        ("Q\nn\t1\t2\nA\t0.9\t0.8\t0.7\n", 3, 4, "3 qualities for 2 scales"),
        ("Q\nn\t1\t2\nA\t0.9\n", 3, 3, "1 qualities for 2 scales"),
        ("Q\nn\t1\t2\nA\t0.9\thigh\n", 3, 3, "'high'"),
        ("Q\nn\t1\t2\nA\t0.9\tNaN\n", 3, 3, "'NaN'"),
        ("Q\nn\t1\t2\nA\t0.9\tinf\n", 3, 3, "'inf'"),
        ("Q\nn\t1\t2\nA\t0.9\t1e999\n", 3, 3, "to 1e+100"),
        ("Q\nn\t1\t1e308\nA\t0.9\t0.8\n", 2, 3, "to 1e+100"),
        ("Q\nn\t1\t2\nA\t0.9\t-1e308\n", 3, 3, "to 1e+100"),
        ("Q\nn\t1\t2\nA\t0.9\t1_0\n", 3, 3, "'1_0'"),
        ("Q\nn\t1\t2\nA\t0.9\t1.000,8\n", 3, 3, "'1.000,8'"),
        ("Q\nn\t1\t2\nA\t0.9\t80%\n", 3, 3, "'80%'"),
        ("Q\nn\tlow\t2\nA\t0.9\t0.8\n", 2, 2, "'low'"),
        ("Q\nn\t1\nA\t0.9\n", 2, 2, "one scale"),
        ("Q\nn\t1\t1\nA\t0.9\t0.8\n", 2, 2, "one scale"),
        ("Q\nn\nA\n", 2, 1, "its scales"),
        ("Q\n\t1\t2\nA\t0.9\t0.8\n", 2, 1, "no name"),
        ("Q\nn\t1\t2\n\t0.9\t0.8\n", 3, 1, "no name"),
        ("Q\nn\t1\t2\nA\t0.9\t0.8\nA\t0.9\t0.8\n", 4, 1, "second time"),
        ("n\t1\t2\nA\t0.9\t0.8\nB\t0.9\t0.8\n", 1, None, "on the first line"),
        ("0.5\nn\t1\t2\nA\t0.9\t0.8\n", 1, None, "on the first line"),
        ("Q\nn 1 2\nA 0.9\n", 3, None, "2 words"),
        ("Q\nn\t1\t2\nA 0.9 high\n", 3, None, "3 words"),
        ("Q\nn\t1\t2\n", 2, None, "at least one algorithm"),
        ("Q\n", 1, None, "the scales"),
        ("", None, None, "the name of the quality"),
        ("# only\n", None, None, "the name of the quality"),
        (b"\x00\x01\x02", None, None, "not text"),
        (b"\xff\xfeQ\x00\n", None, None, "bytes that are no"),
    ],
)
def test_mistakes_are_one_message_with_their_place(
    tmp_path: Path, content: str | bytes, line: int | None, column: int | None, words: str
) -> None:
    with pytest.raises(UserMistakes) as caught:
        read_series_file(write(tmp_path, content))
    assert len(caught.value.mistakes) == 1
    mistake = caught.value.mistakes[0]
    assert mistake.where == "file.dat"
    assert mistake.line == line
    assert mistake.key == ("" if column is None else f"column {column}")
    assert words in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_no_file_a_folder_and_a_huge_file(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.dat", tmp_path):
        with pytest.raises(UserMistakes, match=r"no such file|a folder"):
            read_series_file(path)
    huge = tmp_path / "huge.dat"
    with huge.open("wb") as file:
        file.truncate(17 * 2**20)
    with pytest.raises(UserMistakes, match="16 MiB"):
        read_series_file(huge)


def test_images_of_long_csv_are_paired_by_name(tmp_path: Path) -> None:
    """The same measurements with B's lines turned round: the pairs, and so the test, are the same."""
    lines = {
        name: [f"{name},{image},{scale},{quality}" for image, pair in series_file.items() for scale, quality in pair]
        for name, series_file in {
            "A": {"x": [(1, 0.9), (2, 0.8)], "y": [(1, 0.7), (2, 0.3)], "z": [(1, 0.6), (2, 0.5)]},
            "B": {"x": [(1, 0.9), (2, 0.9)], "y": [(1, 0.7), (2, 0.4)], "z": [(1, 0.6), (2, 0.6)]},
        }.items()
    }
    tables = []
    for order in (1, -1):
        path = write(tmp_path, "\n".join(["algorithm,image,scale,q", *lines["A"], *lines["B"][::order]]), "long.csv")
        series_file = read_series_file(path)
        assert series_file.series[0].seeds == series_file.series[1].seeds == ("x", "y", "z")
        tables.append(paired_table(series_file))
    assert tables[0].equals(tables[1])
    other = write(tmp_path, "\n".join(["algorithm,image,scale,q", *lines["A"], *lines["B"][:4]]), "other.csv")
    assert paired_table(read_series_file(other)).empty  # not the same images


def test_an_error_that_never_rises_is_noted(tmp_path: Path) -> None:
    series_file = read_series_file(write(tmp_path, "RMSE\nn\t1\t2\nA\t3\t2\n"), lower_is_better=True)
    assert robustness_of(series_file.series[0], lower_is_better=True).note == "the error never rises over these scales"


def test_lower_is_better_turns_the_direction(tmp_path: Path) -> None:
    path = write(tmp_path, "error\nn\t1\t2\t4\nA\t0.1\t0.2\t0.8\n")
    assert answers(path, lower_is_better=True) == [("A", pytest.approx(0.3), 2.0)]
    assert answers(path)[0][1] == pytest.approx(-0.1)


def test_wide_csv(tmp_path: Path) -> None:
    for sign in ",;\t":
        text = "noise,1,2,3\nA,0.9,0.8,0.5\n".replace(",", sign)
        series_file = read_series_file(write(tmp_path, text, "wide.csv"))
        assert series_file.series[0].qualities.tolist() == [0.9, 0.8, 0.5]
    with pytest.raises(UserMistakes, match="column 3"):
        read_series_file(write(tmp_path, "noise,1,2\nA,0.9,x\n", "wide.csv"))


def test_long_csv_keeps_images_and_clusters(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    rng = np.random.default_rng(3)
    images = rng.uniform(0, 1, (6, 3))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["algorithm", "image", "cluster", "scale", "ssim"])
        for image in range(6):
            for scale in range(3):
                writer.writerow(["A", f"i{image}", f"c{image // 2}", 5 * (scale + 1), images[image, scale]])
    series_file = read_series_file(path)
    series = series_file.series[0]
    assert series_file.quality == "ssim"
    assert series.images is not None
    assert series.clusters is not None
    assert series.images.shape == (6, 3)
    assert np.unique(series.clusters).size == 3
    assert series.qualities == pytest.approx(images.mean(0))
    assert series.clustered
    with pytest.raises(UserMistakes, match="columns of qualities"):
        read_series_file(write(tmp_path, "algorithm,scale,a,b\nA,1,2,3\n", "two.csv"))


@pytest.mark.parametrize("name", ["wide.csv", "published.dat"])
@pytest.mark.parametrize("sign", [";", "\t"])
def test_decimal_commas_are_read_and_noted(tmp_path: Path, name: str, sign: str) -> None:
    if name.endswith(".dat") and sign == ";":
        pytest.skip("the published format has tabs")
    text = sign.join(["noise", "0,5", "1,0", "1,5"]) + "\n" + sign.join(["A", "0,9", "0,8", "5,0e-1"]) + "\n"
    series_file = read_series_file(write(tmp_path, text if name.endswith(".csv") else f"Q\n{text}", name))
    assert series_file.series[0].scales.tolist() == [0.5, 1, 1.5]
    assert series_file.series[0].qualities.tolist() == [0.9, 0.8, 0.5]
    assert "decimal commas were read as points" in series_file.notes


def test_decimal_commas_of_a_long_csv(tmp_path: Path) -> None:
    text = "algorithm;scale;q\nA, with a comma;0,5;0,9\nA, with a comma;1;0,8\n"
    series = read_series_file(write(tmp_path, text, "long.csv")).series[0]
    assert (series.name, series.scales.tolist(), series.qualities.tolist()) == ("A, with a comma", [0.5, 1], [0.9, 0.8])
    with pytest.raises(UserMistakes, match="decimal point"):
        read_series_file(write(tmp_path, 'algorithm,scale,q\nA,1,"0,9"\nA,2,0.8\n', "long.csv"))


def test_images_with_different_scales_and_images_that_lack_one(tmp_path: Path) -> None:
    own = "algorithm,image,scale,q\n" + "".join(f"A,i{n},{n},{1 / n}\n" for n in range(1, 6))
    series = read_series_file(write(tmp_path, own, "own.csv")).series[0]
    assert series.images is None and series.qualities.tolist() == [1 / n for n in range(1, 6)]
    lacking = "algorithm,image,scale,q\nA,c,1,1\nA,b,2,0.2\nA,b,1,0.4\nA,a,1,0.6\nA,a,2,0.4\nA,a,2,0.5\n"
    series_file = read_series_file(write(tmp_path, lacking, "lacking.csv"))
    assert series_file.series[0].seeds == ("a", "b")
    assert series_file.series[0].images is not None
    assert series_file.series[0].images.tolist() == [[0.6, 0.45], [0.4, 0.2]]
    assert any("left out" in note for note in series_file.notes)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="Linux tells there what a process held at most")
def test_a_million_rows_are_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "million.csv"
    with path.open("w") as file:
        file.write("algorithm;image;scale;q\n")
        for algorithm in "AB":
            for image in range(50_000):
                file.writelines(f"{algorithm};image-{image:05d};{s};0,{s * 7 % 10}{image % 10}\n" for s in range(1, 11))
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from medtest.results.series.series_file import read_series_file\n"
        "found = read_series_file(Path(sys.argv[1]))\n"
        "print([one.images.shape for one in found.series])\n"
        "(peak,) = (line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(peak.split()[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    # Not ru_maxrss: Linux starts it at what the process that forked held, which here is the whole test runner.
    shapes, memory = done.stdout.splitlines()
    assert shapes == "[(50000, 10), (50000, 10)]"
    assert int(memory) < 600_000  # KiB

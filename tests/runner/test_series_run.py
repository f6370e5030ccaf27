"""Suites of series as users see them: checks, records and tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from runner_helpers import go, records
from sealed_records import write_sealed

from medtest.cli.results.tables import remake_tables
from medtest.core.cases import ImageSpec, Seed, SeedRef, Verdict, image_sha256
from medtest.core.errors import UserMistakes
from medtest.preparation import prepare, seed_factors
from medtest.report.finish import Finished, finish
from medtest.results.records.records_io import Records
from medtest.results.series.series_records import measured_rows, series_sets
from medtest.results.tables import make_tables
from medtest.runner.followups.make import check_privacy
from medtest.runner.replaying.export import export_followups
from medtest.runner.replaying.replay import replay_case
from medtest.runner.reporting.outcome import Limits
from medtest.suite.compose import load_suite
from medtest.suite.model import Invocation, Suite

SMALL = [
    "seeds.pictures.names=[camera,coins]",
    "seeds.pictures.max_side=64",
    "relations.gaussian_noise.severities=[1,3,5]",
]


def wrong(*arguments: Any, **named: Any) -> str:
    with pytest.raises(UserMistakes) as caught:
        load_suite(*arguments, **named)
    return str(caught.value)


# --- preparation --------------------------------------------------------------------------------------------------


def test_series_are_taken_as_they_are() -> None:
    image = np.random.default_rng(0).normal(size=(5, 20, 30)).astype(np.float32)
    truth = image > 1
    spec = ImageSpec(dtype="float32", low=-3, high=3, axes="zyx", spacing=(3, 1, 1))
    seed = Seed(ref=SeedRef(dataset="d", seed_id="s"), image=image, expected=truth, kind="region", spec=spec)
    ready = prepare(seed, size=None)
    assert ready.image is image
    assert ready.mask is not None
    assert np.array_equal(ready.mask, truth)
    assert not ready.image.flags.writeable
    assert ready.frame.shape == image.shape
    assert not ready.frame.any()
    assert ready.frame.strides == (0, 0, 0)  # needs no memory
    assert seed_factors(ready) == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"spec": ImageSpec(axes="zyx")}, "its axes are zyx"),
        ({"spec": ImageSpec(dtype="uint16", axes="yx")}, "uint16 was announced"),
        ({"spec": ImageSpec(axes="yx", low=5, high=5)}, "is empty"),
        ({"expected": np.zeros((3, 4), bool), "kind": "region"}, "expected region"),
        ({"expected": np.zeros((20, 30), np.float32)}, "clean image"),
        ({"image": np.full((20, 30), np.nan, np.float32), "spec": ImageSpec(dtype="float32", axes="yx")}, "NaN"),
    ],
)
def test_seeds_that_contradict_themselves_are_refused(change: dict[str, Any], words: str) -> None:
    fields = {"image": np.zeros((20, 30), np.uint8), "kind": "image", "spec": ImageSpec(axes="yx"), **change}
    with pytest.raises(ValueError, match=words):
        prepare(Seed(ref=SeedRef(dataset="d", seed_id="s"), **fields), size=None)


# --- checks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["denoising", "background_subtraction", "liver"])
def test_the_suites_compose_and_hold_both_controls(name: str) -> None:
    suite = load_suite(name)
    assert {"identity", "constant"} <= {plan.id for plan in suite.systems}
    assert suite.prepare.size is None
    assert load_suite(name, ["oracles.include_source=true"]).oracle.part.settings.include_source


def test_kinds_that_do_not_agree_are_reported() -> None:
    assert "a system that gives a mask" in wrong("denoising", ["model=pranet"])
    assert "a system that gives an image" in wrong("background_subtraction", ["model=median"])
    assert "a system that gives an image" in wrong("polyp_seg", ["model=median"])
    assert "native" in wrong("denoising", ["prepare.size=256"])
    assert "truth, source" in wrong("polyp_seg", ["oracles.primary.against=input"])
    assert "ssim" in wrong("denoising", ["oracles.primary.score=sim"])


def test_a_wrong_key_of_the_seeds_is_the_only_mistake() -> None:
    words = wrong("liver", ["seeds.abdomens.livers=2"])
    assert "count, repeats" in words
    assert "min_step" not in words


def test_a_command_comes_from_the_command_line_alone(tmp_path: Path) -> None:
    suite = load_suite("denoising", ["model=command", "command=cp {input} {output}"])
    assert suite.systems[0].settings.command == "cp {input} {output}"
    assert "cp" not in str(suite.composed)
    own = tmp_path / "own.yaml"
    systems = 'systems: {command: {command: "cp {input} {output}"}}'
    own.write_text(f'extends: denoising\nname: own\nversion: "1"\n{systems}\n')
    assert "conf/ or the command line" in wrong(str(own))


# --- a run --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def denoising(tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, Any, Path]:
    home = tmp_path_factory.mktemp("denoising")
    tool = home / "turn.py"
    tool.write_text(TURN)
    module = home / "mine.py"
    module.write_text("def turn(image):\n    return image[::-1, ::-1].copy()\n")
    suite = load_suite("denoising", [*SMALL, "model=[identity,constant,callable,command]", *_as_chosen(module, tool)])
    return suite, go(suite, home, limits=Limits(samples=2)), home


TURN = """\
import sys
from array import array

with open(sys.argv[1], "rb") as file:
    head, body = file.read(128), array("f", file.read())
body.reverse()
with open(sys.argv[2], "wb") as file:
    file.write(head + body.tobytes())
"""
"""Turns an array of 32-bit numbers round, and imports nothing for it: it is started once an image."""


def _as_chosen(module: Path, tool: Path) -> list[str]:
    return [
        f"systems.callable.target={module}:turn",
        "systems.command.format=npy",
        f"systems.command.command={sys.executable} -I -S {tool} {{input}} {{output}}",
    ]


def test_identity_is_its_input_and_constant_never_falls(denoising: Any) -> None:
    _, outcome, _ = denoising
    frames = {system.record_name: records(outcome, n) for n, system in enumerate(outcome.systems)}
    identity = frames["identity"]
    noisy = identity[identity.relation == "gaussian_noise"]
    assert (noisy.ssim == noisy.input_ssim).all()
    assert (noisy.verdict == Verdict.PASS.value).all()
    assert noisy.groupby("severity").ssim.mean().is_monotonic_decreasing
    assert sorted(noisy.scale.unique()) == [5, 15, 25]
    source = identity[identity.relation == "source"]
    assert source.ssim.to_numpy() == pytest.approx(1.0)
    assert (source.psnr == 100).all()
    constant = make_tables(outcome.systems[1].folder).alpha_sigma
    row = constant[(constant.score == "ssim") & (constant.against == "truth") & (constant.dataset == "all")].iloc[0]
    assert row.alpha == pytest.approx(0, abs=1e-12)


def test_a_function_and_a_tool_that_do_the_same_agree(denoising: Any) -> None:
    _, outcome, _ = denoising
    function, tool = records(outcome, 2), records(outcome, 3)
    assert set(function.verdict) <= {"PASS", "FAIL"}
    for name in ("ssim", "psnr", "source_ssim", "self_ssim", "followup_sha256"):
        pd.testing.assert_series_equal(function[name], tool[name])


@pytest.fixture(scope="module")
def finished(denoising: Any) -> Finished:
    suite, outcome, home = denoising
    return finish(suite, Invocation(home=home, track=False), outcome)


def test_tables_and_reports_are_written(denoising: Any, finished: Finished) -> None:
    _, outcome, _ = denoising
    assert finished.code == 0
    page = finished.reports[2].read_text()
    assert "below that of the input image" in page
    assert "against the expected mask" not in page
    strips = sorted((outcome.systems[2].folder / "samples").glob("*.png"))
    assert len(strips) == 2


def test_include_source_puts_the_clean_image_first(denoising: Any) -> None:
    _, outcome, _ = denoising
    folders = {system.record_name: Records.read(system.folder) for system in outcome.systems}
    without = series_sets(folders, "ssim")[0].series
    within = series_sets(folders, "ssim", include_source=True)[0].series
    assert [series.scales.tolist() for series in without] == [[5, 15, 25]] * 4
    assert [series.scales.tolist() for series in within] == [[0, 5, 15, 25]] * 4
    assert within[0].qualities[0] == pytest.approx(1.0)
    assert within[0].qualities[1:] == pytest.approx(without[0].qualities)
    tables = make_tables(outcome.systems[0].folder, load_suite("denoising", [*SMALL, "oracles.include_source=true"]))
    assert set(tables.alpha_sigma.scales) == {"0 5 15 25"}


def test_films_run(tmp_path: Path) -> None:
    suite = load_suite(
        "background_subtraction",
        ["model=[mog2,constant]", "seeds.films.count=2", "seeds.films.frames=30", "seeds.films.size=[48,64]"],
    )
    outcome = go(suite, tmp_path)
    frame = records(outcome)
    assert len(frame) == 2 * 7
    assert frame.f_measure.notna().all()
    assert (frame.f_measure == frame.dice).all()
    assert frame[frame.relation == "source"].recall.mean() > 0.3
    assert (records(outcome, 1).f_measure == 0).all()


def test_a_measured_property_has_a_point_a_cluster_and_is_asked_about_once(tmp_path: Path) -> None:
    rows = []
    rng = np.random.default_rng(0)
    quality = dict(enumerate(rng.uniform(0.5, 1, 6)))
    for cluster in range(6):
        for repeat in range(3):
            seed = f"liver-{cluster}-n{repeat}"
            common = {"dataset": "d", "seed_id": seed, "cluster": f"liver-{cluster}", "severity": 0, "item": ""}
            score = quality[cluster] + 0.01 * (repeat - 1)
            rows.append({**common, "relation": "source", "group": "source", "scale": 0.0, "dice": score})
            rows.append(
                {**common, "relation": "liver_variability", "group": "measured", "scale": cluster + 0.5, "dice": score}
            )
    measured = list(measured_rows(Records.of(pd.DataFrame(rows)), "dice"))
    assert [row["dataset"] for row in measured] == ["d", "all"]
    curve = np.array([quality[n] for n in range(6)])
    assert measured[1]["alpha"] == pytest.approx(max(-np.diff(curve)), abs=1e-7)
    assert measured[1]["sigma"] == int(np.argmax(-np.diff(curve))) + 0.5
    assert "permutation p" in str(measured[1]["note"])
    merged = next(iter(measured_rows(Records.of(pd.DataFrame(rows)), "dice", 1.5)))
    assert len(str(merged["scales"]).split()) == 3


def test_exported_images_are_the_follow_ups(tmp_path: Path) -> None:
    suite = load_suite("denoising", [*SMALL, "model=identity", "seeds.pictures.names=[camera]"])
    count = export_followups(suite, Invocation(home=tmp_path), tmp_path / "out")
    assert count == 1 + 1 + 3
    manifest = pd.read_csv(tmp_path / "out" / "manifest.csv").set_index("address")
    row = manifest.loc["pictures/camera/gaussian_noise_s3_f0_r0"]
    exported = np.load(tmp_path / "out" / row["file"])
    assert image_sha256(exported) == row["sha256"]
    again = replay_case(suite, Invocation(home=tmp_path), "pictures/camera/gaussian_noise_s3_f0_r0")
    assert np.array_equal(again.followup, exported)
    eight = load_suite("denoising", [*SMALL, "model=identity", "seeds.pictures.dtype=own"])
    export_followups(eight, Invocation(home=tmp_path), tmp_path / "eight")
    assert sorted(path.suffix for path in (tmp_path / "eight" / "pictures").iterdir() if path.is_file()) == [".png"] * 2


def test_the_store_says_that_it_keeps_no_series() -> None:
    with pytest.raises(UserMistakes, match="series are not kept"):
        check_privacy(load_suite("denoising", ["model=identity"]))


# --- files beside the runs --------------------------------------------------------------------------------------


_TOLD = ("severity", "followup_sha256")


def test_the_page_and_the_files_beside_it_can_be_made_again(
    denoising: Any, finished: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    _, outcome, home = denoising
    page = home / "outputs" / "denoising" / "comparison.html"
    folder = home / "outputs" / "denoising" / "alpha_sigma" / "gaussian_noise"
    assert finished.comparison == page
    names = {"tab_rob.tex", "fig_rob.pdf", "fig_rob.svg", "alpha_sigma.csv", "agreement.csv", "paired.csv"}
    assert {path.name for path in folder.iterdir()} == {*names, "montage.png"}
    before = {name: (folder / name).read_bytes() for name in names}
    text = page.read_text()
    for path in [page, *(folder / name for name in names)]:
        path.unlink()
    assert remake_tables(home / "outputs" / "denoising", console=Console()) == 0
    assert {name: (folder / name).read_bytes() for name in names} == before
    assert page.read_text() == text
    assert "comparison.html" in capsys.readouterr().out
    assert "systems finished the same" in text and "on the same follow-ups" in text
    written = outcome.systems[0].folder / "records.parquet"
    content = written.read_bytes()
    table = pq.read_table(written)
    hashes = [
        "0" * 64 if level == 1 else digest for level, digest in zip(*(table[n].to_pylist() for n in _TOLD), strict=True)
    ]
    at = table.schema.get_field_index("followup_sha256")
    write_sealed(table.set_column(at, "followup_sha256", pa.array(hashes)), written)  # another machine's records
    remake_tables(home / "outputs" / "denoising", console=Console())
    assert "have different images or questions" in page.read_text()
    written.write_bytes(content)
    page.unlink()
    remake_tables(outcome.systems[0].folder, console=Console())  # one run alone has no page on the others
    assert not page.exists()


def test_a_single_algorithm_has_its_curves_too(tmp_path: Path) -> None:
    suite = load_suite("denoising", [*SMALL, "model=median"])
    finished = finish(suite, Invocation(home=tmp_path, track=False), go(suite, tmp_path))
    assert finished.comparison is not None
    assert "<h1>One system" in finished.comparison.read_text()
    assert (tmp_path / "outputs/denoising/alpha_sigma/gaussian_noise/tab_rob.tex").is_file()


@pytest.mark.slow
def test_files_of_all_systems_go_to_mlflow(tmp_path: Path) -> None:
    from medtest.report.tracking import Tracker

    suite = load_suite("denoising", [*SMALL, "model=median"])
    outcome = go(suite, tmp_path, limits=Limits(samples=1))
    parents = finish(suite, Invocation(home=tmp_path), outcome).parents
    assert parents is not None
    client, run = Tracker(tmp_path, parents.uri).client, parents.runs["denoising"]
    assert "comparison.html" in {artifact.path for artifact in client.list_artifacts(run)}
    files = {Path(artifact.path).name for artifact in client.list_artifacts(run, "alpha_sigma/gaussian_noise")}
    assert {"fig_rob.pdf", "fig_rob.svg", "tab_rob.tex", "alpha_sigma.csv", "montage.png"} <= files


def test_another_oracle_has_its_own_curves(denoising: Any) -> None:
    _, outcome, home = denoising
    suite = load_suite("denoising", [*SMALL, *_all_four(outcome), "oracles.include_source=true"])
    finished = finish(suite, Invocation(home=home, track=False), outcome, view="abc")
    assert finished.comparison is not None
    assert finished.comparison.name == "comparison-abc.html"
    table = pd.read_csv(home / "outputs/denoising/alpha_sigma-abc/gaussian_noise/alpha_sigma.csv", index_col=0)
    assert table["mean_quality"]["identity"] > table["mean_quality"]["constant"]
    assert "data:image/png" in finished.comparison.read_text()  # the montage is the suite's


def _all_four(outcome: Any) -> list[str]:
    return [f"model=[{','.join(system.system for system in outcome.systems)}]"]


LIVERS = [
    "seeds.abdomens.count=2",
    "seeds.abdomens.repeats=1",
    "seeds.abdomens.shape=[24,29,40]",
    "seeds.abdomens.spacing=[9,9,9]",
]


def test_volumes_are_drawn_where_the_scale_is_least_and_where_it_is_greatest(tmp_path: Path) -> None:
    suite = load_suite("liver", [*LIVERS, "model=[region_growing,constant]"])
    outcome = go(suite, tmp_path, limits=Limits(samples=1))
    assert not [line for line in outcome.notices if "drawn" in line]
    folder = tmp_path / "outputs" / "liver" / "alpha_sigma" / "liver_variability"
    pictures = {path.name: path.stat().st_size for path in folder.glob("*.png")}
    assert sorted(pictures) == [
        "greatest-slices.png",
        "greatest-surfaces.png",
        "least-slices.png",
        "least-surfaces.png",
    ]
    assert min(pictures.values()) > 20_000
    finished = finish(suite, Invocation(home=tmp_path, track=False), outcome)
    assert finished.comparison is not None
    assert finished.comparison.read_text().count("data:image/png") == 4
    report = finished.reports[0].read_text()
    assert "as measured" in report
    assert "published ranges" not in report


def test_no_volume_is_drawn_where_no_image_may_be_kept(tmp_path: Path) -> None:
    suite = load_suite("liver", [*LIVERS, "model=constant", "privacy.images=none"])
    go(suite, tmp_path, limits=Limits(samples=1))
    assert not list(tmp_path.rglob("*.png"))

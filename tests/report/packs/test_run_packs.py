"""Packs of finished runs: after unpacking, tables and report are made again, bit for bit."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pack_parts import checked, packed, reddish, resealed, rewritten, unpacked

import medtest
from medtest.cli.results.tables import remake_tables
from medtest.cli.terminal import console
from medtest.core.cases import Image
from medtest.core.errors import ExitCode, UserMistakes
from medtest.core.files import file_sha256
from medtest.runner.records.answers import damage


def folder_of(result: medtest.Result) -> Path:
    (folder,) = result.folders.values()
    return folder


def made_in(folder: Path) -> dict[str, str]:
    """Return the hashes of tables and reports in a run's folder."""
    paths = [*folder.rglob("tables/*"), *folder.rglob("report.html")]
    return {path.relative_to(folder).as_posix(): file_sha256(path) for path in paths}


@pytest.fixture(scope="module")
def run_pack(finished: medtest.Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("run") / "run.zip", f"run={folder_of(finished)}")


@pytest.mark.slow
def test_tables_and_report_are_made_again_bit_for_bit(
    finished: medtest.Result, run_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unpacked(run_pack, tmp_path / "other")
    (run,) = folder.glob("outputs/*/*/*")
    for name in ("tables", "report.html"):
        shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink(missing_ok=True)
    assert made_in(run) == {}
    assert remake_tables(run, console=console()) == remake_tables(folder_of(finished), console=console())
    assert made_in(run) == made_in(folder_of(finished))
    assert len(made_in(run)) > 8
    capsys.readouterr()
    assert checked(run_pack) == ExitCode.OK
    output = capsys.readouterr().out
    assert "are identical" in output and "report     same" in output
    assert checked(folder) == ExitCode.OK  # after its tables were made


@pytest.mark.slow
def test_packing_a_run_twice_gives_the_same_bytes(finished: medtest.Result, tmp_path: Path) -> None:
    folder = folder_of(finished)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    first, second = (packed(tmp_path / name, f"run={folder}") for name in ("1.zip", "2.zip"))
    assert first.read_bytes() == second.read_bytes()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before  # nothing is changed


def test_a_run_pack_holds_no_page_no_ledger_and_no_path(run_pack: Path) -> None:
    with zipfile.ZipFile(run_pack) as archive:
        names = archive.namelist()
        text = b"".join(archive.read(name) for name in names if name.endswith((".json", ".yaml", ".txt", ".jsonl")))
    endings = {Path(name).suffix for name in names}
    assert endings == {".json", ".jsonl", ".yaml", ".txt", ".csv", ".parquet", ".png"}
    assert not any(name.endswith((".html", "records.csv", ".sqlite", "manifest.sha256")) for name in names)
    assert str(Path.home()).encode() not in text or Path.home() == Path("/")


def test_a_pack_without_pictures_reports_their_lack(
    finished: medtest.Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = packed(tmp_path / "p.zip", f"run={folder_of(finished)}", "images=false")
    with zipfile.ZipFile(file) as archive:
        assert not any(name.endswith((".png", ".jpg")) for name in archive.namelist())
    assert checked(file) == ExitCode.OK
    assert "No pictures are packed" in capsys.readouterr().out


def test_a_suite_that_shows_no_images_sends_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Strips that happen to be in the folder stay there."""
    result = medtest.run(
        "polyp_seg",
        reddish,
        relations={"blur": {"severities": [3]}},
        limit=1,
        track=False,
        workers=1,
        home=tmp_path / "home",
        overrides="privacy.images=none",
    )
    folder = folder_of(result)
    (folder / "samples").mkdir(exist_ok=True)
    (folder / "samples" / "left.png").write_bytes(b"a picture")
    file = packed(tmp_path / "p.zip", f"run={folder}")
    with zipfile.ZipFile(file) as archive:
        assert not any("samples" in name for name in archive.namelist())
    assert "images: none" in capsys.readouterr().out
    with pytest.raises(UserMistakes, match="images=true"):
        packed(tmp_path / "q.zip", f"run={folder}", "images=true")
    assert not (tmp_path / "q.zip").exists()


@pytest.mark.slow
def test_other_figures_and_other_digits_are_told_apart(
    run_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def table(files: dict[str, bytes], name: str, old: bytes, new: bytes) -> None:
        (path,) = [path for path in files if path.endswith(name)]
        assert old in files[path]
        files[path] = files[path].replace(old, new)
        facts = json.loads(files["pack.json"])["of_run"]
        from hashlib import sha256

        facts["made"][f"tables/{name}"] = sha256(files[path]).hexdigest()
        versions = json.loads(files["pack.json"])["versions"]
        resealed(files, of_run=facts, versions={**versions, "pandas": "2.2.0"})

    with zipfile.ZipFile(run_pack) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("tables/efr.csv")]
        (number, *_) = re.findall(r"\d\d\.\d{2,}", archive.read(name).decode())
    digits = rewritten(
        run_pack,
        tmp_path / "digits.zip",
        lambda files: table(files, "efr.csv", number.encode(), repr(float(number) * (1 + 1e-14)).encode()),
    )
    assert checked(digits) == ExitCode.OK
    output = capsys.readouterr().out
    assert "tables     different, does not matter" in output and "last digits only: tables/efr.csv" in output
    assert "pandas 2.2.0 →" in output and "does not matter" in output
    figures = rewritten(
        run_pack,
        tmp_path / "figures.zip",
        lambda files: table(files, "efr.csv", number.encode(), repr(float(number) + 1).encode()),
    )
    assert checked(figures) == ExitCode.GATE_FAILED
    assert "different: tables/efr.csv" in capsys.readouterr().out


def bright(image: Image) -> dict[str, float]:
    """Answer brightness as a probability."""
    value = float(image.mean()) / 255
    return {"melanoma": value, "benign": 1 - value}


def dark(image: Image) -> dict[str, float]:
    """Answer the opposite."""
    value = float(image.mean()) / 255
    return {"melanoma": 1 - value, "benign": value}


@pytest.mark.slow
def test_a_pack_includes_the_run_that_it_is_relative_to(tmp_path: Path) -> None:
    """Flips of a classifier are relative to another's, whose records its tables need."""
    result = medtest.run(
        "robust_benchmark_melanoma_levels",
        {"bright": bright, "dark": dark},
        limit=4,
        track=False,
        workers=1,
        home=tmp_path / "home",
        relations=["corruption_rotate", "corruption_gaussian_noise"],
        reference="bright",
    )
    folder = result.folders["dark"]
    remake_tables(folder, console=console())
    file = packed(tmp_path / "p.zip", f"run={folder}")
    received = unpacked(file, tmp_path / "other")
    (run,) = received.glob("outputs/*/dark/*")
    assert not list(received.glob("outputs/*/bright/*/samples"))
    shutil.rmtree(tmp_path / "home" / "outputs" / folder.parent.parent.name / "bright")
    remake_tables(run, console=console())
    assert made_in(run) == made_in(folder)
    assert checked(file) == ExitCode.OK
    lost = packed(tmp_path / "lost.zip", f"run={folder}")  # its reference is gone: tables are made without
    assert checked(lost) == ExitCode.OK


@pytest.mark.slow
@pytest.mark.long
def test_drawn_pictures_travel_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of prompts: one of its tables rests on what was drawn."""
    result = medtest.run("t2i", limit=1, track=False, workers=1, home=tmp_path / "home", relations=["ss"])
    folder = folder_of(result)
    file = packed(tmp_path / "p.zip", f"run={folder}", "images=true")
    assert "fidelity.csv" not in capsys.readouterr().out
    (run,) = unpacked(file, tmp_path / "other").glob("outputs/*/*/*")
    assert list(run.glob("pictures/images/*/*.png"))
    shutil.rmtree(run / "tables")
    remake_tables(run, console=console())
    own, original = made_in(run), made_in(folder)
    assert [name for name in original if own.get(name) != original[name]] in ([], ["report.html"])  # notices of the run
    capsys.readouterr()
    file = packed(tmp_path / "q.zip", f"run={folder}")
    assert "tables/fidelity.csv. They need pictures" in capsys.readouterr().out
    with zipfile.ZipFile(file) as archive:
        assert not any("/pictures/" in name for name in archive.namelist())


@pytest.mark.slow
def test_views_travel_and_are_made_again(tmp_path: Path) -> None:
    """A narrower call and another oracle: each has tables and a report of its own in the run's folder."""
    options = {"track": False, "workers": 1, "home": tmp_path / "home", "fingerprint": "reddish 1"}
    options["relations"] = {"blur": {"severities": [3]}}
    for limit, overrides in ((2, []), (1, []), (2, ["oracles.primary.threshold=0.5"])):
        result = medtest.run("polyp_seg", reddish, limit=limit, overrides=overrides, **options)  # type: ignore[arg-type]
    folder = folder_of(result)
    remake_tables(folder, console=console())
    file = packed(tmp_path / "p.zip", f"run={folder}")
    (run,) = unpacked(file, tmp_path / "other").glob("outputs/*/*/*")
    remake_tables(run, console=console())
    assert made_in(run) == made_in(folder)
    assert len([name for name in made_in(run) if name.startswith("views/") and name.endswith("report.html")]) == 2
    assert checked(file) == ExitCode.OK


@pytest.mark.parametrize("key", ["reference", "folder"])
def test_a_pack_with_paths_outside_it_is_refused(run_pack: Path, tmp_path: Path, key: str) -> None:
    def out(files: dict[str, bytes]) -> None:
        (name,) = [name for name in files if name.endswith("/run.json")]
        if key == "reference":
            files[name] = json.dumps({**json.loads(files[name]), "reference": "../../../../../../etc"}).encode()
            resealed(files)
        else:
            facts = json.loads(files["pack.json"])["of_run"]
            resealed(files, of_run={**facts, "folder": "outputs/../../other"})

    file = rewritten(run_pack, tmp_path / "p.zip", out)
    shutil.unpack_archive(file, tmp_path / "by_hand")  # another tool looks at nothing
    for pack in (file, tmp_path / "by_hand"):
        with pytest.raises(UserMistakes, match="not in the pack|no run.json of its run"):
            checked(pack)


def test_records_that_were_changed_are_refused(run_pack: Path, tmp_path: Path) -> None:
    def flipped(files: dict[str, bytes]) -> None:
        (name,) = [name for name in files if name.endswith("records.parquet")]
        content, middle = bytearray(files[name]), len(files[name]) // 2
        content[middle : middle + 200] = bytes(200)
        files[name] = bytes(content)
        resealed(files)

    with pytest.raises(UserMistakes, match=r"records\.parquet"):
        checked(rewritten(run_pack, tmp_path / "p.zip", flipped))


def test_a_composed_suite_that_swells_is_refused(run_pack: Path, tmp_path: Path) -> None:
    def bomb(files: dict[str, bytes]) -> None:
        (name,) = [name for name in files if name.endswith("/suite.yaml")]
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 9)]
        files[name] = ("\n".join(lines) + "\n" + yaml.safe_dump(yaml.safe_load(files[name]))).encode()
        resealed(files)

    with pytest.raises(UserMistakes):
        unpacked(rewritten(run_pack, tmp_path / "p.zip", bomb), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_stored_answers_travel_and_are_held_against_their_names(
    finished: medtest.Result, run_pack: Path, tmp_path: Path
) -> None:
    def answers(path: Path) -> list[str]:
        return [name for name in zipfile.ZipFile(path).namelist() if "/answers/" in name]

    folder = folder_of(finished)
    (name,) = answers(run_pack)
    assert name.endswith(next((folder / "answers").iterdir()).name)
    assert answers(packed(tmp_path / "bare.zip", f"run={folder}", "images=false")) == []
    (own,) = unpacked(run_pack, tmp_path / "other").glob("outputs/*/*/*/answers/*.parquet")
    assert damage(own) == ""
    table = pq.read_table(own)
    changed = pa.array([b"another", *table["answer"].to_pylist()[1:]], pa.binary())
    pq.write_table(table.set_column(2, table.schema.field(2), changed), own)
    assert damage(own) == "not what was written"
    own.write_bytes(b"PAR1 and no more")
    assert damage(own) == "damaged"

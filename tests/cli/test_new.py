"""``medtest new`` writes packages whose contract test passes once they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from medtest.cli.new.skeleton import PartKind, write_skeleton
from medtest.core.errors import UserMistakes

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", get_args(PartKind))
def test_the_contract_test_of_a_new_package_passes(kind: PartKind, tmp_path: Path) -> None:
    package, site = write_skeleton(kind, f"made_{kind}", tmp_path), tmp_path / "site"
    install = ["-q", "--no-deps", "--no-build-isolation", "--target", str(site), str(package)]
    subprocess.run([sys.executable, "-m", "pip", "install", *install], check=True, capture_output=True)
    paths = os.pathsep.join([str(site), str(ROOT)])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MEDTEST", "PYTEST"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(package)],
        capture_output=True,
        text=True,
        env=environment | {"PYTHONPATH": paths},
        cwd=package,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", get_args(PartKind))
def test_skeletons_are_valid_python_without_placeholders(kind: PartKind, tmp_path: Path) -> None:
    package = write_skeleton(kind, "my_part", tmp_path)
    assert package.name == "medtest-my-part"
    for path in package.rglob("*"):
        if path.is_file():
            assert "$" not in path.read_text(encoding="utf-8"), path
    for path in package.rglob("*.py"):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--config",
            str(ROOT / "pyproject.toml"),
            "--ignore",
            "I001,D,S101",
            ".",
        ],
        capture_output=True,
        text=True,
        cwd=package,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "medtest-my-part"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UserMistakes, match="which exists"):
        write_skeleton("relation", "my_part", tmp_path)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("name", ["", "My", "2nd", "a-b", "../up", "a" * 60])
def test_an_unusable_name_is_a_mistake(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserMistakes, match="lower-case"):
        write_skeleton("oracle", name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_name_in_use_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserMistakes, match="installed already"):
        write_skeleton("relation", "blur", tmp_path)

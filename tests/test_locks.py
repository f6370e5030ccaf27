"""Locks: one for users, one for tests that adds to it, hashes everywhere, no index's address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
USERS, TESTS, TOOL, S3 = (f"requirements{kind}.lock" for kind in ("", "-dev", "-uv", "-s3"))


def _locked(name: str) -> dict[str, tuple[set[str], set[str]]]:
    """Return pinned versions and hashes by canonical name; markers can give a name several versions."""
    packages: dict[str, tuple[set[str], set[str]]] = {}
    for entry in re.split(r"\n(?=[a-z0-9])", (ROOT / name).read_text(encoding="utf-8")):
        pin = re.match(r"([A-Za-z0-9._-]+)==(\S+)", entry)
        if pin:
            versions, hashes = packages.setdefault(canonicalize_name(pin[1]), (set(), set()))
            versions.add(pin[2])
            hashes.update(re.findall(r"--hash=(sha256:[0-9a-f]{64})", entry))
    return packages


def _requirements(*groups: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [*project["dependencies"], *(t for group in groups for t in project["optional-dependencies"][group])]
    return [Requirement(text) for text in texts]


@pytest.mark.parametrize("name", [USERS, TESTS, TOOL, S3])
def test_a_lock_holds_hashes_and_no_address(name: str) -> None:
    assert not re.search(
        r"https?://|--(extra-)?index-url|--find-links|file:", (ROOT / name).read_text(encoding="utf-8")
    )
    for package, (versions, hashes) in _locked(name).items():
        assert versions and hashes, f"{name}: {package} has no hash"


@pytest.mark.parametrize(("name", "groups"), [(USERS, ()), (TESTS, ("dev",)), (S3, ("s3-tests",))])
def test_a_lock_meets_the_requirements_of_the_project(name: str, groups: tuple[str, ...]) -> None:
    locked = _locked(name)
    for requirement in _requirements(*groups):
        versions, _ = locked[canonicalize_name(requirement.name)]
        assert all(requirement.specifier.contains(version) for version in versions), (
            f"{name}: {requirement} against {versions}"
        )


def test_tests_run_on_the_versions_that_users_get() -> None:
    users, tests = _locked(USERS), _locked(TESTS)
    assert {name: pins for name, pins in tests.items() if name in users} == users


def test_users_install_no_test_tool() -> None:
    assert not {"pytest", "hypothesis", "mypy", "ruff", "playwright", "litserve", "monai"} & set(_locked(USERS))

"""The version is the same in every file that states it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

from medtest.core import __version__

ROOT = Path(__file__).parents[1]


def test_every_file_states_the_same_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert project["version"] == str(citation["version"]) == __version__


def test_the_changelog_has_a_section_for_unreleased_changes() -> None:
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

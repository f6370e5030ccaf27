"""Rebuilding the oracle of a run's folder on a machine that lacks some of its parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from medtest.core.plugins import parts
from medtest.results.records.rejudging import oracle_in

SUITE = """
relations:
  blur: {relation: blur}
  hue: {relation: hue_shift}
  gone: {relation: not_installed}
oracles:
  oracle: answers
  primary: {score: answer, threshold: 1.0, against: source}
"""


@pytest.fixture
def broken_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package with a relation whose module cannot be imported."""
    home = tmp_path / "site"
    (home / "hues").mkdir(parents=True)
    (home / "hues" / "__init__.py").write_text("import a_library_that_is_not_here\n")
    (home / "hues-1.0.dist-info").mkdir()
    (home / "hues-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: hues\nVersion: 1.0\n")
    (home / "hues-1.0.dist-info" / "entry_points.txt").write_text("[medtest.relations]\nhue_shift = hues:HueShift\n")
    monkeypatch.syspath_prepend(home)
    parts.cache_clear()
    yield
    monkeypatch.undo()
    parts.cache_clear()


@pytest.mark.usefixtures("broken_package")
def test_a_relation_that_cannot_be_loaded_counts_as_not_installed(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE)
    oracle = oracle_in(tmp_path)
    assert oracle.relations == {"blur": "blur", "hue": "hue_shift", "gone": "not_installed"}
    assert list(oracle.effects) == ["blur"]

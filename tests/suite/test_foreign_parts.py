"""Messages about parts of other packages with a broken or missing YAML file, and about severities that they lack."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from suite_parts import add, refused

from medtest.core.errors import UserMistakes
from medtest.core.plugins import parts
from medtest.suite.compose import load_suite

MODULE = """
from pydantic import Field

from medtest.core.plugins import PartSettings
from medtest.relations.base import Relation, RelationSettings


class Level(PartSettings):
    amplitude: float = Field(gt=0)


class MoireSettings(RelationSettings):
    levels: dict[int, Level]


class MirrorSettings(RelationSettings):
    known_severities = (1,)
    severities: list[int] = [1]


class Moire(Relation):
    Settings = MoireSettings


class Mirror(Relation):
    Settings = MirrorSettings
"""
LEVELS = "summary: fringes\nlevels:\n  1: {amplitude: 3}\n  2: {amplitude: 6}\nseverities: [1, 2]\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of an installed package with the relations ``moire`` and ``mirror``."""
    site = tmp_path / "site"
    folder, about = site / "fringes", site / "fringes-1.0.dist-info"
    folder.mkdir(parents=True)
    about.mkdir()
    (folder / "__init__.py").touch()
    (folder / "relations.py").write_text(MODULE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fringes\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[medtest.relations]\nmoire = fringes.relations:Moire\nmirror = fringes.relations:Mirror\n"
    )
    monkeypatch.syspath_prepend(site)
    parts.cache_clear()
    yield folder
    monkeypatch.undo()
    for name in ("fringes", "fringes.relations"):
        sys.modules.pop(name, None)
    parts.cache_clear()


@pytest.mark.parametrize(
    ("content", "line", "text"),
    [
        (b"summary: a\nlevels:\n  1: {amplitude: 3\n  2: x\n", 4, "expected ',' or '}'"),
        (b"- a\n- list\n", None, "a list"),
        (b"summary: \xff\n", None, "invalid start byte"),
    ],
)
def test_a_broken_file_beside_a_foreign_part_is_one_mistake_with_its_line(
    package: Path, content: bytes, line: int | None, text: str
) -> None:
    (package / "moire.yaml").write_bytes(content)
    with pytest.raises(UserMistakes) as caught:
        parts("relations")
    (mistake,) = caught.value.mistakes
    assert (mistake.where, mistake.line) == ("fringes/moire.yaml", line) and text in mistake.found


def test_a_missing_file_is_named_where_a_setting_has_no_value(package: Path, team: Path) -> None:
    waves = add(team, "waves", "extends: base\nname: waves\nrelations: {moire: {severities: [1]}}\n")
    (mistake,) = refused(waves).mistakes
    assert (mistake.key, mistake.found) == ("relations.moire.levels", "nothing")
    assert "fringes.relations of fringes has no moire.yaml" in mistake.fix
    (package / "moire.yaml").write_text("levels: {1: {amplitude: -1}}\n")
    parts.cache_clear()
    (mistake,) = refused(waves).mistakes
    assert mistake.where == "fringes/moire.yaml" and not mistake.fix


@pytest.mark.parametrize(("relation", "severities"), [("moire", "1, 2"), ("mirror", "1")])
def test_a_severity_that_a_foreign_relation_lacks_is_refused_before_a_run(
    package: Path, team: Path, relation: str, severities: str
) -> None:
    (package / "moire.yaml").write_text(LEVELS)
    waves = add(team, "waves", f"extends: base\nname: waves\nrelations: {{{relation}: {{severities: [1]}}}}\n")
    assert "waves" in load_suite(waves).name
    waves = add(team, "waves", f"extends: base\nname: waves\nrelations:\n  {relation}:\n    severities: [1, 6]\n")
    (mistake,) = refused(waves).mistakes
    assert (mistake.key, mistake.line) == (f"relations.{relation}.severities", 5)
    assert mistake.allowed == f"severities that have a level: {severities}; not 6"

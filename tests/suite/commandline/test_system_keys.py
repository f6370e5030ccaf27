"""Typed keys of the only system of a call are settings of that system, bundled or not; no list names them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from suite_parts import BASE, add, refused

from medtest.core.plugins import parts
from medtest.suite.commandline.overrides import prepare
from medtest.suite.compose import load_suite

SYSTEM = """\
from pydantic import Field
from medtest.core.plugins import TRUSTED, typed_as
from medtest.systems.base import System, SystemSettings

class SharpSettings(SystemSettings):
    sharpness: float = 1.0
    word_list: str = Field(default="", json_schema_extra=TRUSTED)
    limit: int = Field(default=3, json_schema_extra=typed_as("system_limit"))
    levels: dict[str, float] = {}

class Sharp(System):
    Settings = SharpSettings

    def fingerprint(self):
        return {}

    def open(self, *, device, threads):
        pass

    def predict(self, images, addresses):
        return [image[..., 0] > 60 for image in images]
"""


@pytest.fixture(scope="module", autouse=True)
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Install a package of another author with the system ``sharp``."""
    site = tmp_path_factory.mktemp("site")
    (site / "sharp_nets").mkdir()
    (site / "sharp_nets" / "__init__.py").write_text("")
    (site / "sharp_nets" / "nets.py").write_text(SYSTEM)
    (site / "sharp_nets-1.0.dist-info").mkdir()
    (site / "sharp_nets-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: sharp-nets\nVersion: 1\n")
    (site / "sharp_nets-1.0.dist-info" / "entry_points.txt").write_text(
        "[medtest.systems]\nsharp = sharp_nets.nets:Sharp\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        parts.cache_clear()
        yield
    parts.cache_clear()


@pytest.mark.parametrize(
    ("typed", "name", "value"),
    [
        ("sharpness=2.5", "sharpness", 2.5),
        ("systems.sharp.sharpness=2.5", "sharpness", 2.5),
        ("word_list=/my lists/a=b,[c] {d}.txt", "word_list", "/my lists/a=b,[c] {d}.txt"),
        ("systems.sharp.word_list=/my lists/a=b,[c] {d}.txt", "word_list", "/my lists/a=b,[c] {d}.txt"),
        ("word_list=5", "word_list", "5"),
        ("word_list=null", "word_list", ""),
        ("system_limit=4", "limit", 4),
        ("systems.sharp.limit=4", "limit", 4),
        ("levels.low=0.5", "levels", {"low": 0.5}),
        ("levels={low: 0.5}", "levels", {"low": 0.5}),
    ],
)
def test_a_setting_of_a_foreign_system_is_typed_with_and_without_its_name(
    team: Path, typed: str, name: str, value: object
) -> None:
    (system,) = load_suite("base.yaml", ["model=sharp", typed]).systems
    assert getattr(system.settings, name) == value
    add(team, "sharp", BASE.replace("[pranet]", "[sharp]"))
    (system,) = load_suite("sharp.yaml", [typed]).systems
    assert getattr(system.settings, name) == value


def test_a_team_s_own_preset_has_the_keys_of_what_it_uses(team: Path) -> None:
    (team / "conf" / "model").mkdir(parents=True)
    (team / "conf" / "model" / "ours.yaml").write_text("use: sharp\nsharpness: 4.0\n")
    typed = ["model=ours", "word_list=/a b/[c].txt"]
    (system,) = load_suite("base.yaml", typed, config_dirs=[team / "conf"]).systems
    assert (system.settings.sharpness, system.settings.word_list) == (4.0, "/a b/[c].txt")


def test_a_wrong_key_or_value_is_one_mistake(team: Path) -> None:
    def mistake_of(*typed: str) -> tuple[str, str, str | None]:
        (mistake,) = refused("base.yaml", list(typed)).mistakes
        return mistake.key, str(mistake), mistake.nearest

    key, text, _ = mistake_of("model=sharp", "sharpness=much")
    assert key == "systems.sharp.sharpness" and "a number" in text
    key, text, nearest = mistake_of("model=sharp", "sharpnes=2")
    assert (key, nearest) == ("sharpnes", "sharpness") and "word_list" in text
    key, text, _ = mistake_of("model=[sharp,pranet]", "sharpness=2")
    assert key == "sharpness" and "type systems.sharp.sharpness=" in text
    key, text, _ = mistake_of("model=pranet", "sharpness=2")  # it belongs to another system
    assert key == "systems.pranet.sharpness" and "threshold" in text


def test_a_key_of_the_suite_keeps_its_meaning(team: Path) -> None:
    """``threshold`` is a key of the oracle and ``size`` of preparation, though networks have such settings too."""
    for typed in ("threshold=0.5", "size=64"):
        (mistake,) = refused("base.yaml", ["model=pranet", typed]).mistakes
        assert f"type {'oracles.primary' if typed[0] == 't' else 'prepare'}.{typed.partition('=')[0]}=" in mistake.fix
    assert load_suite("base.yaml", ["model=pranet", "seed=12"]).seed == 12


def test_a_suite_states_no_key_that_is_typed(team: Path) -> None:
    for key in ("checkpoint", "word_list", "limit"):
        (mistake,) = refused(add(team, "stated", BASE + f"{key}: 3\n")).mistakes
        assert (mistake.where, mistake.key) == ("stated.yaml", key)
        assert f"on the command line: {key}=" in mistake.fix


def test_no_list_names_the_settings_of_one_network() -> None:
    root = Path(__file__).parents[3]
    beside = {root / "conf" / "model" / "tganet.yaml"}
    room = root / "medtest" / "systems" / "segmentation"
    naming = {
        path
        for folder in ("medtest", "conf")
        for path in (root / folder).rglob("*")
        if path.suffix in {".py", ".yaml"} and "label_pieces" in path.read_text(encoding="utf-8")
    }
    assert {path for path in naming - beside if room not in path.parents} == set()


def test_text_is_taken_as_typed_where_no_system_is_named() -> None:
    for key in ("checkpoint", "label_pieces", "command"):
        assert prepare([f"{key}=/a b/[c],d"]).overrides == [f"++{key}='/a b/[c],d'"]

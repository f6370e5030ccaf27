"""Typed overrides reach composition unharmed: paths with any sign, lists, sweeps."""

from __future__ import annotations

from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hypothesis import example, given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from medtest.suite.commandline.overrides import Prepared, prepare, quote, set_key, unquoted

BasicSweeper: Any = next(plugin for plugin in Plugins.instance().discover(Sweeper) if plugin.__name__ == "BasicSweeper")
paths = st.text(
    st.one_of(
        st.sampled_from(list(" /\\'\"[]{}(),=:$%#&*?!~@;.-+…ä漢")),
        st.characters(codec="utf-8", exclude_characters="\0"),
    ),
    min_size=1,
    max_size=40,
).filter(lambda text: text != "null" and not (text[0] in "'\"" and text[-1] == text[0]) and not text.startswith("${"))


def composed(overrides: list[str]) -> Any:
    """Apply overrides as Hydra does, interpolation included."""
    cfg = OmegaConf.create({})
    for override in OverridesParser.create().parse_overrides(overrides):
        OmegaConf.update(cfg, override.key_or_group, override.value(), force_add=True)
    return OmegaConf.to_container(cfg, resolve=True)


@given(paths)
@example("/data/Ground Truth/a=b,[c]{d}(e)/f.png")
@example("it's \\'quoted\\")
@example("\\\\server\\share\\")
@example("a\\${b}")
@example("$HOME ${x} ${oc.env:HOME}")
@example("glob(*)")
def test_paths_arrive_as_typed(path: str) -> None:
    for key in ("data", "checkpoint", "path", "folder", "systems.v2.checkpoint", "seeds.x.avoid"):
        ready = prepare([f"{key}={path}"])
        assert not ready.mistakes
        value = composed(ready.overrides)
        for part in key.split("."):
            value = value[part]
        assert value == path


@given(
    paths.filter(
        lambda p: "," not in p and p == p.strip() and not p.startswith(("glob(", "choice(", "range(", "sort("))
    )
)
def test_paths_survive_a_sweep(path: str) -> None:
    """Hydra's sweeper writes every override again for its jobs and reads it again."""
    ready = prepare([f"checkpoint={path}", "seed=1,2"], multirun=True)
    parsed = OverridesParser.create().parse_overrides(ready.overrides)
    ((first, second),) = BasicSweeper.split_arguments(parsed, None)
    assert composed(first) == {"checkpoint": path, "seed": 1}
    assert composed(second) == {"checkpoint": path, "seed": 2}


def test_paths_are_swept_over_in_a_multirun() -> None:
    ready = prepare(["checkpoint=/a b/x.pth,/c=d/[y].pth"], multirun=True)
    (jobs,) = BasicSweeper.split_arguments(OverridesParser.create().parse_overrides(ready.overrides), None)
    assert [composed(job) for job in jobs] == [{"checkpoint": "/a b/x.pth"}, {"checkpoint": "/c=d/[y].pth"}]
    single = prepare(["checkpoint=/a b/x.pth,/c=d/[y].pth"])
    assert composed(single.overrides) == {"checkpoint": "/a b/x.pth,/c=d/[y].pth"}


@given(paths.filter(lambda p: not any(sign in p for sign in "{}[](),:'\"") and p == p.strip()))
def test_paths_inside_braces(path: str) -> None:
    ready = prepare([f"+systems.v2={{use: ssformer, checkpoint: {path}, threshold: 0.4}}"])
    assert not ready.mistakes
    expected = {"use": "ssformer", "checkpoint": path, "threshold": 0.4}
    assert composed(ready.overrides) == {"systems": {"v2": expected}}


def test_paths_inside_braces_with_brackets_and_commas() -> None:
    ready = prepare(["+systems.v2={use: ssformer, checkpoint: /a b/c=d,[e](f).pth}"])
    assert composed(ready.overrides)["systems"]["v2"]["checkpoint"] == "/a b/c=d,[e](f).pth"


@pytest.mark.parametrize(
    ("typed", "value"),
    [("data='/a b'", "/a b"), ('data="/a b"', "/a b"), ("checkpoint=null", None), ("data='it\\'s'", "it's")],
)
def test_quotes_and_null_keep_hydra_s_meaning(typed: str, value: str | None) -> None:
    ready = prepare([typed])
    assert list(composed(ready.overrides).values()) == [value]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("limit=5", "++limit=5"),
        ("+limit=5", "++limit=5"),
        ("++limit=5", "++limit=5"),
        ("model=[pranet,ssformer]", "model=[pranet,ssformer]"),
        ("relations=[blur,text]", "++chosen.relations=[blur,text]"),
        ("relations=blur", "++chosen.relations=blur"),
        ("~relations.text", "++without=['relations.text']"),
        ("only=relation:blur,severity:3", "++only='relation:blur,severity:3'"),
        ("hydra.launcher.n_jobs=2", "hydra.launcher.n_jobs=2"),
        ("hydra/launcher=basic", "hydra/launcher=basic"),
    ],
)
def test_translation(typed: str, expected: str) -> None:
    assert prepare([typed]).overrides == [expected]


def test_suites_by_file_bring_their_folder() -> None:
    ready = prepare(["suite=my suites/skin.yaml"])
    assert ready.overrides == ["suite=skin"]
    assert [str(folder) for folder in ready.suite_folders] == ["my suites"]


@given(st.text(max_size=60))
def test_any_typed_text_is_accepted_or_a_mistake(token: str) -> None:
    ready = prepare([token])
    assert len(ready.overrides) + len(ready.mistakes) + len(ready.suite_folders) >= 1


@given(paths)
def test_quoting_is_undone_by_unquoting(text: str) -> None:
    if "${" not in text:
        assert unquoted(quote(text)) == text


@pytest.mark.parametrize(
    "key",
    [
        "relations.instrument.library_folder",
        "seeds.folder.avoid",
        "systems.v2.weights_file",
        "oracles.reader.path",
        "oracles.figures.real",
    ],
)
def test_paths_in_the_settings_of_parts_arrive_as_typed(key: str) -> None:
    path = "~/our libraries/set=1 [old], new"
    value = composed(prepare([f"{key}={path}"]).overrides)
    for name in key.split("."):
        value = value[name]
    assert value == path


def test_a_list_without_a_system_is_a_mistake() -> None:
    (mistake,) = prepare(["model=[]"]).mistakes
    assert (mistake.key, mistake.found) == ("model", "[]")
    assert prepare(["model=null"]).overrides == ["model=null"]


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("systems.2nd.checkpoint=/a b/{c}: d.pth", ("systems", "2nd", "checkpoint")),
        ("+relations.3d={relation: blur}", ("relations", "3d")),
        ("relations.blur.severities=[1,2]", ("relations", "blur", "severities")),
        ("relations={3d: {relation: blur}, text: {}}", ("relations",)),
    ],
)
def test_keys_are_known_again_after_they_were_written_for_hydra(typed: str, key: tuple[str, ...]) -> None:
    (override,) = prepare([typed]).overrides
    assert set_key(override) == key


def test_options_of_a_run_are_left_to_hydra_and_look_no_system_up() -> None:
    def texts() -> set[str]:
        raise AssertionError("systems were looked up")

    ready = Prepared(texts=texts)
    for key, value in (("limit", "5"), ("judge.max_calls", "10"), ("only", "~5"), ("relations.blur.x", "1")):
        assert not ready.taken_as_typed(key, value)
    assert Prepared(texts=lambda: {"model_name"}).taken_as_typed("model_name", "5")

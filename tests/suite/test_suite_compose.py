"""Suites as people write them: forms that compose."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir
from suite_parts import BASE, add, ids, refused, settings_of

from medtest.core.files.paths import suites_folder
from medtest.suite.compose import load, load_suite
from medtest.suite.model import PairedGate
from medtest.suite.reading.library import suite_names

SHIPPED = ("polyp_seg", "polyp_seg_folder", "polyp_seg_published", "polyp_seg_unlabelled")
NINE = ("saturation", "contrast", "white_balance", "specularity", "blur", "instrument", "feces", "blood", "text")


# --- bundled suites ---------------------------------------------------------------------------------------------


def test_bundled_suites_are_those_that_the_readme_promises() -> None:
    assert set(SHIPPED) <= set(suite_names([suites_folder()]))


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_suites_compose_with_all_nine_relations(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # from any working directory
    suite = load_suite(name)
    assert suite.name == name
    assert ids(suite.relations) == ["unchanged", *NINE]
    assert ids(suite.systems) == ["pranet", "ssformer"]
    assert suite.description
    assert list(tmp_path.iterdir()) == []


def test_the_demo_has_five_severities_and_two_systems() -> None:
    suite = load_suite("polyp_seg")
    for relation in NINE:
        assert settings_of(suite, relation).severities == [1, 2, 3, 4, 5]
        assert settings_of(suite, relation).mode == "levels"


def test_the_published_suite_draws_from_the_ranges() -> None:
    suite = load_suite("polyp_seg_published")
    built = suite.build_relations()
    assert all(built[relation].severities() == (0,) and built[relation].repeats() == 3 for relation in NINE)


def test_the_unlabelled_suite_compares_with_the_source() -> None:
    suite = load_suite("polyp_seg_unlabelled")
    assert suite.oracle.primary.against == "source"
    assert suite.oracle.against == ("source",)
    assert ids(suite.seeds) == ["folder"]
    assert suite.seeds[0].info.name == "image_mask_folders"


# --- how suites are written -------------------------------------------------------------------------------------


def test_a_suite_is_named_by_its_name_or_its_file(team: Path) -> None:
    by_file = load_suite(team / "base.yaml")
    by_name = load_suite("base", suite_dirs=[team])
    by_words = load_suite("base.yaml")
    assert by_file == by_name == by_words
    assert by_file.seed == 7
    assert by_file.version == "1"


def test_unchanged_belongs_to_every_suite(team: Path) -> None:
    assert ids(load_suite("base.yaml").relations) == ["unchanged", "blur", "contrast"]


def test_a_suite_states_its_name_or_extends_another(team: Path) -> None:
    """Without a parent a missing name is a mistake; a child's name is its file's, never its parent's."""
    add(team, "nameless", BASE.replace("name: base\n", ""))
    (mistake,) = refused("nameless.yaml").mistakes
    assert (mistake.where, mistake.key, mistake.found) == ("nameless.yaml", "name", "nothing")
    add(team, "child", 'extends: base\nversion: "2"\n')
    assert load_suite("child.yaml").name == "child"
    add(team, "named", "extends: base\nname: another\n")
    assert load_suite("named.yaml").name == "another"


def test_the_suites_own_oracle_is_kept_beside_typed_keys(team: Path) -> None:
    add(team, "gated", BASE + "oracles: {primary: {threshold: 0.3}}\ngates: [{max_percent: 10}]\n")
    loaded = load("gated.yaml", ["oracles.primary.threshold=0.5", "oracles.primary.against=source"])
    assert loaded.view
    assert (loaded.suite.oracle.primary.threshold, loaded.suite.oracle.primary.against) == (0.5, "source")
    assert loaded.suite.gates[0].threshold == 0.5
    assert (loaded.own.oracle.primary.threshold, loaded.own.oracle.primary.against) == (0.3, "truth")
    assert (loaded.own.gates[0].threshold, loaded.own.gates[0].against) == (0.3, "truth")
    assert loaded.own.composed["oracles"]["primary"]["threshold"] == 0.3
    assert loaded.own.relations == loaded.suite.relations
    plain = load("gated.yaml", ["oracles.primary.threshold=0.3"])
    assert plain.view == "" and plain.own == plain.suite


def test_a_list_is_short_for_defaults(team: Path) -> None:
    add(team, "listed", BASE.replace("  blur: {severities: [1, 2, 3]}\n  contrast: {}\n", "  - blur\n  - contrast\n"))
    add(team, "mapped", BASE.replace("  blur: {severities: [1, 2, 3]}\n  contrast: {}\n", "  blur:\n  contrast: {}\n"))
    listed, mapped = load_suite("listed.yaml"), load_suite("mapped.yaml")
    assert listed.relations == mapped.relations
    assert settings_of(listed, "blur").severities == [1, 2, 3, 4, 5]


def test_one_relation_may_be_used_twice(team: Path) -> None:
    text = BASE.replace("  contrast: {}", "  mild: {relation: blur, severities: [1]}")
    suite = load_suite(add(team, "twice", text))
    assert ids(suite.relations) == ["unchanged", "blur", "mild"]
    assert [plan.info.name for plan in suite.relations] == ["unchanged", "blur", "blur"]
    assert settings_of(suite, "mild").severities == [1]


def test_a_suite_extends_another_with_the_differences_only(team: Path) -> None:
    text = 'extends: base\nversion: "2"\nrelations: {contrast: false, blur: {repeats: 2}, text: {}}\n'
    suite = load_suite(add(team, "child", text))
    assert suite.name == "child"
    assert suite.version == "2"
    assert ids(suite.relations) == ["unchanged", "blur", "text"]
    assert settings_of(suite, "blur").severities == [1, 2, 3]  # the parent's
    assert settings_of(suite, "blur").repeats == 2  # the child's
    assert suite.seed == 7


def test_a_defaults_list_of_suites_extends_too(team: Path) -> None:
    suite = load_suite(add(team, "child", "defaults: [base, _self_]\nseed: 8\n"))
    assert suite.seed == 8
    assert ids(suite.relations) == ["unchanged", "blur", "contrast"]


def test_a_list_in_a_child_means_exactly_these(team: Path) -> None:
    suite = load_suite(add(team, "child", "extends: base\nrelations: [text]\n"))
    assert ids(suite.relations) == ["unchanged", "text"]


def test_later_parents_win(team: Path) -> None:
    add(team, "other", "extends: base\nseed: 9\n")
    assert load_suite(add(team, "child", "extends: [base, other]\n")).seed == 9
    assert load_suite(add(team, "child2", "extends: [other, base]\n")).seed == 7


def test_a_team_may_extend_what_ships(team: Path) -> None:
    suite = load_suite(add(team, "ours", "extends: polyp_seg\nseeds: {phantoms: {count: 2}}\n"))
    assert ids(suite.relations) == ["unchanged", *NINE]
    assert suite.seeds[0].settings.count == 2


def test_interpolation_of_keys_of_the_same_suite(team: Path) -> None:
    text = BASE + "description: seed ${seed}, ${seeds.phantoms.count} images, ${relations.blur.severities[1]}\n"
    assert load_suite(add(team, "told", text)).description == "seed 7, 3 images, 2"


def test_interpolation_follows_the_child(team: Path) -> None:
    add(team, "parent", BASE + "description: seed ${seed}\n")
    assert load_suite(add(team, "child", "extends: parent\nseed: 11\n")).description == "seed 11"


def test_relative_interpolation(team: Path) -> None:
    text = BASE.replace("count: 3}", "count: 3}\nmax_error_percent: ${seeds.phantoms.count}")
    assert load_suite(add(team, "told", text)).max_error_percent == 3.0
    gates = "gates:\n  - {threshold: 0.5, max_percent: '${.threshold}'}\n"
    assert load_suite(add(team, "gated", BASE + gates)).gates[0].max_percent == 0.5


def test_numbers_as_versions_keep_their_digits(team: Path) -> None:
    assert load_suite(add(team, "v", BASE.replace('"1"', "1.10"))).version == "1.10"


def test_gates_take_the_primary_criterion_where_they_are_silent(team: Path) -> None:
    text = BASE + (
        "oracles: {primary: {score: iou, threshold: 0.5}}\n"
        "gates:\n- {max_percent: 10}\n- {relation: blur, severity: 2, score: dice, threshold: 0.25, max_percent: 5}\n"
    )
    first, second = load_suite(add(team, "gated", text)).gates
    assert (first.score, first.threshold, first.relation, first.severity) == ("iou", 0.5, "overall", "all")
    assert (second.score, second.threshold, second.relation, second.severity) == ("dice", 0.25, "blur", "2")


def test_gates_bound_failed_sources_but_against_the_source_itself(team: Path) -> None:
    text = BASE + (
        "gates:\n- {max_percent: 10}\n- {max_percent: 10, max_source_failed_percent: 40}\n"
        "- {max_percent: 10, against: source}\n"
    )
    suite = load_suite(add(team, "gated", text))
    assert [gate.max_source_failed_percent for gate in suite.gates] == [10.0, 40.0, None]
    again = add(team, "again", yaml.safe_dump({**suite.composed, "name": "again"}, sort_keys=False))
    assert load_suite(again).gates == suite.gates
    # a criterion typed for a view is no mistake of the suite
    viewed = load_suite(team / "gated.yaml", ["oracles.primary.against=source"])
    assert [gate.max_source_failed_percent for gate in viewed.gates] == [None, None, None]


def test_a_gate_beside_a_finished_run_takes_a_margin_for_the_source_score() -> None:
    call = "gates=[{no_worse_than: polyp_seg/pranet, margin_percent: 5, source_margin_percent: 3}]"
    (gate,) = load_suite("polyp_seg", [call]).gates
    assert isinstance(gate, PairedGate) and (gate.margin_percent, gate.source_margin_percent) == (5, 3)


@pytest.mark.parametrize(
    ("suite_says", "typed", "expected"),
    [
        ("", [], ("plain", "samples")),
        ("privacy: {seed_ids: hashed}\n", [], ("hashed", "samples")),
        ("privacy: {images: none}\n", ["privacy.seed_ids=hashed"], ("hashed", "none")),
        ("privacy: {seed_ids: hashed, images: none}\n", ["privacy.seed_ids=plain"], ("plain", "none")),
    ],
)
def test_a_suite_can_only_tighten_privacy(
    team: Path, suite_says: str, typed: list[str], expected: tuple[str, str]
) -> None:
    privacy = load_suite(add(team, "private", BASE + suite_says), typed).privacy
    assert (privacy.seed_ids, privacy.images) == expected


def test_a_suite_cannot_loosen_what_conf_says(team: Path) -> None:
    conf = team / "conf"
    (conf / "tracking").mkdir(parents=True)
    (conf / "tracking" / "strict.yaml").write_text(
        "# @package _global_\ntracking: {enabled: false, uri: null}\nprivacy: {seed_ids: hashed, images: none}\n"
    )
    suite = load_suite(
        add(team, "loose", BASE + "privacy: {seed_ids: plain, images: samples}\n"),
        ["tracking=strict"],
        config_dirs=[conf],
    )
    assert (suite.privacy.seed_ids, suite.privacy.images) == ("hashed", "none")


def test_the_composed_form_holds_no_path_and_composes_again(team: Path) -> None:
    checkpoint = team / "secret folder" / "best.pth"
    checkpoint.parent.mkdir()
    checkpoint.write_bytes(b"")
    suite = load_suite("base.yaml", [f"checkpoint={checkpoint}"])
    assert suite.systems[0].settings.checkpoint == str(checkpoint)
    text = yaml.safe_dump(dict(suite.composed), sort_keys=False)
    assert "secret folder" not in text
    again = load_suite(add(team, "again", text))
    assert again.relations == suite.relations
    assert again.seeds == suite.seeds
    assert again.oracle == suite.oracle


# --- the command line -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "relations", "systems"),
    [
        (["model=ssformer"], ["unchanged", "blur", "contrast"], ["ssformer"]),
        (["model=[pranet,ssformer]"], ["unchanged", "blur", "contrast"], ["pranet", "ssformer"]),
        (["systems=[ssformer]"], ["unchanged", "blur", "contrast"], ["ssformer"]),
        (["~relations.blur"], ["unchanged", "contrast"], ["pranet"]),
        (["relations.blur=false"], ["unchanged", "contrast"], ["pranet"]),
        (["relations=[text,blur]"], ["unchanged", "text", "blur"], ["pranet"]),
        (["relations=text"], ["unchanged", "text"], ["pranet"]),
        (["+relations.mild={relation: blur, severities: [1]}"], ["unchanged", "blur", "contrast", "mild"], ["pranet"]),
        (["+systems.v2={use: ssformer}"], ["unchanged", "blur", "contrast"], ["pranet", "v2"]),
        (["model=ssformer", "+systems.v2={use: ssformer}"], ["unchanged", "blur", "contrast"], ["ssformer", "v2"]),
        (["+systems.v2.use=ssformer", "model=pranet"], ["unchanged", "blur", "contrast"], ["pranet", "v2"]),
    ],
)
def test_parts_from_the_command_line(team: Path, typed: list[str], relations: list[str], systems: list[str]) -> None:
    suite = load_suite("base.yaml", typed)
    assert ids(suite.relations) == relations
    assert ids(suite.systems) == systems


def test_chosen_relations_keep_the_suite_s_floor(team: Path) -> None:
    typed = ["+relations.unchanged={repeats: 3}", "relations=[blur]"]
    assert [(p.id, p.settings.repeats) for p in load_suite("base.yaml", typed).relations] == [
        ("unchanged", 3),
        ("blur", 1),
    ]
    assert load_suite("medvqa", ["relations=[blur]"]).relations[0].settings.repeats == 3


def test_any_key_of_the_suite_from_the_command_line(team: Path) -> None:
    suite = load_suite(
        "base.yaml",
        [
            "oracles.primary.threshold=0.5",
            "relations.blur.severities=[1,3]",
            "relations.contrast.levels.2.brightness=0.7",
            "seeds.phantoms.count=100",
            "seed=12",
            "prepare.size=native",
            "max_error_percent=5",
            "version=3",
            "description='any: text, you [like]'",
        ],
    )
    assert suite.oracle.primary.threshold == 0.5
    assert settings_of(suite, "blur").severities == [1, 3]
    assert settings_of(suite, "contrast").levels[2].brightness == 0.7
    assert settings_of(suite, "contrast").levels[1].brightness != 0.7
    assert suite.seeds[0].settings.count == 100
    assert (suite.seed, suite.prepare.size, suite.max_error_percent) == (12, None, 5.0)
    assert suite.version == "3"
    assert suite.description == "any: text, you [like]"


def test_settings_of_the_suite_for_a_chosen_system_stay(team: Path) -> None:
    add(team, "marked", BASE.replace("systems: [pranet]", "systems: {pranet: {trained_on: [x]}, ssformer: {}}"))
    chosen = load_suite("marked.yaml", ["model=pranet"])
    whole = load_suite("marked.yaml")
    assert chosen.systems == whole.systems[:1]


def test_options_of_a_run(team: Path) -> None:
    typed = [
        "limit=5",
        "only=relation:blur,severity:3,severity:1,seed:a b",
        "device=cpu",
        "track=false",
        "workers=2",
    ]
    loaded = load("base.yaml", typed)
    assert loaded.options.limit == 5
    assert loaded.selection.relations == {"blur"}
    assert loaded.selection.severities == {1, 3}
    assert loaded.selection.seeds == {"a b"}
    assert (loaded.options.device, loaded.options.track, loaded.options.workers) == ("cpu", False, 2)
    assert load("base.yaml", ["only=[relation:blur,dataset:phantoms]"]).selection.datasets == {"phantoms"}


def test_another_oracle_is_a_view_and_the_suites_own_is_none(team: Path) -> None:
    assert load("base.yaml").view == ""
    assert load("base.yaml", ["oracles.primary.threshold=0.25"]).view == ""  # the value of the suite
    views = {load("base.yaml", [f"oracles.primary.{item}"]).view for item in ("threshold=0.5", "score=iou")}
    assert len(views) == 2
    assert "" not in views


def test_a_team_s_own_systems(team: Path) -> None:
    folder = team / "conf" / "model"
    folder.mkdir(parents=True)
    (folder / "ours.yaml").write_text("use: pranet\nsummary: ours\ntrained_on: [kvasir]\n")
    (folder / "mine.yaml").write_text("class: medtest.systems.callable:Callable\ntarget: team.net:predict\n")
    suite = load_suite("base.yaml", ["model=[ours,pranet]"], config_dirs=[team / "conf"])
    assert ids(suite.systems) == ["ours", "pranet"]
    assert suite.systems[0].settings.trained_on == ["kvasir"]
    assert suite.systems[0].info.target == suite.systems[1].info.target
    error = refused("base.yaml", ["model=our"], config_dirs=[team / "conf"])
    assert error.mistakes[0].nearest == "ours"


def test_a_team_s_suite_wins_over_ours_of_the_same_name(team: Path) -> None:
    shutil.copy(team / "base.yaml", team / "polyp_seg.yaml")
    (team / "polyp_seg.yaml").write_text(BASE.replace("name: base", "name: polyp_seg"))
    assert load_suite("polyp_seg", suite_dirs=[team]).seed == 7


def test_folders_with_any_sign_in_their_name(team: Path) -> None:
    odd = team / "a:b, [c]=d ${e}"
    odd.mkdir()
    add(odd, "odd", BASE)
    (odd / "model").mkdir()
    (odd / "model" / "ours.yaml").write_text("use: pranet\n")
    assert load_suite("odd", ["model=ours"], suite_dirs=[odd], config_dirs=[odd]).seed == 7
    assert load_suite("odd", ["model=ours", f"suite_dir={odd}"], config_dirs=[odd]).seed == 7


def test_another_program_of_hydra_in_this_process_keeps_its_own(team: Path) -> None:
    own = team / "own"
    own.mkdir()
    (own / "app.yaml").write_text("seed: 5\n")
    with initialize_config_dir(str(own), version_base="1.3"):
        assert load_suite("base.yaml").seed == 7
        assert compose("app") == {"seed": 5}
    with initialize_config_dir(str(own), version_base="1.3"):
        assert compose("app") == {"seed": 5}


@pytest.mark.parametrize("name", ["2024", "1e5", "null", "nan", "true"])
def test_suites_may_have_names_that_yaml_reads_as_something_else(team: Path, name: str) -> None:
    add(team, name, BASE)
    assert load_suite(f"{name}.yaml").name == "base"
    assert load_suite(name, suite_dirs=[team]).seed == 7

"""Suites from other people: each attack is refused with its line and key, and no part of it runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from medtest.cli.run.launch import main
from medtest.core.errors import UserMistakes
from medtest.suite.compose import load_suite
from medtest.suite.reading.library import load_tree
from medtest.suite.reading.safety import MAX_BYTES, MAX_DEPTH, MAX_NODES, read_suite
from medtest.suite.reading.strings import forbidden

ROOT = Path(__file__).parents[2]
PLAIN = """\
name: good
version: "1"
seed: 1
seeds: {phantoms: {count: 2}}
relations: {blur: {severities: [1]}}
systems: {pranet: {}}
"""
CANARY = "canary-7f3a-value-of-the-environment"

ATTACKS: dict[str, tuple[str, int | None, str]] = {
    # name: (lines added to or instead of a good suite, line of the mistake, part of its message)
    "target at the root": ("_target_: os.system\n", 7, "_target_"),
    "target in a relation": ("gates: [{_target_: os.system, max_percent: 1}]\n", 7, "_target_"),
    "partial": ("privacy: {_partial_: true}\n", 7, "_partial_"),
    "python tag": ("description: !!python/object/apply:os.system [touch pwned]\n", 7, "without ! tags"),
    "plain tag": ("description: !!str hello\n", 7, "without ! tags"),
    "local tag": ("description: !include other.yaml\n", 7, "without ! tags"),
    "environment resolver": ("description: ${oc.env:MEDTEST_CANARY}\n", 7, "interpolation"),
    "old environment resolver": ("description: ${env:MEDTEST_CANARY}\n", 7, "interpolation"),
    "environment in text": ("description: x ${oc.env:MEDTEST_CANARY} y\n", 7, "interpolation"),
    "decoding resolver": ("description: ${oc.decode:'${oc.env:MEDTEST_CANARY}'}\n", 7, "interpolation"),
    "now resolver": ("description: ${now:%Y}\n", 7, "interpolation"),
    "hydra resolver": ("description: ${hydra:runtime.cwd}\n", 7, "interpolation"),
    "key of the configuration": ("description: ${data}\n", 7, "a key of this suite"),
    "key of hydra": ("description: ${hydra.runtime.cwd}\n", 7, "a key of this suite"),
    "nested interpolation": ("description: ${${seed}}\n", 7, "interpolation"),
    "open interpolation": ("description: '${seed'\n", 7, "interpolation"),
    "interpolated key": ("'${seed}': 1\n", 7, "a name of letters"),
    "interpolation of a block": ("description: ${seeds}\n", 7, "a single value"),
    "circular interpolation": ("description: ${description}\n", 7, "refer to each other"),
    "interpolation that climbs": ("description: ${.....seed.x}\n", 7, "a key of this suite"),
    "shell variable": ("description: $HOME/.ssh\n", 7, "variable"),
    "windows variable": ("description: '%USERPROFILE% x'\n", 7, "variable"),
    "name of a key's variable": ("description: reads OPENAI_API_KEY\n", 7, "variable"),
    "command substitution": ("description: $(touch pwned)\n", 7, "command"),
    "command in a setting": ("relations: {blur: {mode: 'a; touch pwned'}}\n", 7, "command"),
    "backticks in a setting": ("relations: {blur: {mode: '`touch pwned`'}}\n", 7, "command"),
    "hydra node": ("hydra: {run: {dir: /tmp/pwned}}\n", 7, "cannot configure Hydra"),
    "hydra callbacks": ("hydra: {callbacks: {x: {_target_: os.system}}}\n", 7, "cannot configure Hydra"),
    "nested hydra node": ("privacy: {hydra: {run: {dir: x}}}\n", 7, "cannot configure Hydra"),
    "hydra group": ("hydra/launcher: joblib\n", 7, "cannot configure Hydra"),
    "override of hydra in defaults": ("defaults: [{override /hydra/launcher: joblib}]\n", 7, "a name of letters"),
    "group in defaults": ("defaults: [{model: pranet}]\n", 7, "names of other suites"),
    "path in defaults": ("defaults: [../conf/config]\n", 7, "out of its folder"),
    "absolute defaults": ("defaults: [/model/pranet]\n", 7, "absolute"),
    "path in extends": ("extends: ../../etc/passwd\n", 7, "out of its folder"),
    "configuration in extends": ("extends: config\n", 7, "extends"),
    "package header": ("# @package hydra\n", 7, "without @"),
    "URL": ("description: see https://example.org/x\n", 7, "no URL"),
    "URL in other letters": ("description: HTTPS://EXAMPLE.ORG\n", 7, "no URL"),
    "URL without slashes": ("description: javascript:alert(1)\n", 7, "no URL"),
    "file URL": ("description: file:/etc/passwd\n", 7, "no URL"),
    "database": ("description: sqlite:///x.db\n", 7, "no URL"),
    "tracking server": ("tracking: {uri: databricks}\n", 7, "no URL"),
    "tracking address": ("tracking_uri: somewhere\n", 7, "tracking_uri"),
    "tracking switched off": ("track: false\n", 7, "on the command line"),
    "import path": ("relations: {blur: {mode: os.system}}\n", 7, "import path"),
    "import path with colon": ("description: medtest.x.y:Class\n", 7, "import path"),
    "class of a part": ("relations: {blur: {class: 'evil'}}\n", 7, "class"),
    "target of a callable": ("systems: {pranet: {use: callable, target: 'evil'}}\n", 7, "conf/ or the command line"),
    "checkpoint": ("systems: {pranet: {checkpoint: best.pth}}\n", 7, "weights"),
    "checkpoint without suffix": ("systems: {pranet: {checkpoint: best}}\n", 7, "conf/ or the command line"),
    "predictions": ("systems: {p: {use: predictions, folder: masks}}\n", 7, "conf/ or the command line"),
    "network file": ("systems: {p: {use: onnx, path: net}}\n", 7, "conf/ or the command line"),
    "absolute path": ("relations: {text: {words: /etc/passwd}}\n", 7, "absolute path"),
    "home path": ("relations: {text: {words: ~/x}}\n", 7, "absolute path"),
    "windows path": ("relations: {text: {words: 'C:\\x'}}\n", 7, "absolute path"),
    "network path": ("relations: {text: {words: '\\\\host\\share'}}\n", 7, "absolute path"),
    "absolute path in prose": ("description: reads /etc/passwd for you\n", 7, "absolute path"),
    "climbing path": ("relations: {text: {words: a/../../b}}\n", 7, "out of its folder"),
    "climbing at the end": ("relations: {text: {words: ..}}\n", 7, "out of its folder"),
    "data of the user": ("data: somewhere\n", 7, "on the command line"),
    "checkpoint of the run": ("checkpoint: somewhere\n", 7, "on the command line"),
    "internal key": ("without: [relations]\n", 7, "the key without"),
    "internal choice": ("chosen: {systems: {x: true}}\n", 7, "the key chosen"),
    "key twice": ("seed: 2\n", 7, "duplicate key"),
    "nested key twice": ("privacy: {images: none, images: samples}\n", 7, "duplicate key"),
    "merge key": ("privacy: {<<: {images: none}}\n", 7, "extends"),
    "list as key": ("? [a]\n: 1\n", 7, "as key"),
    "null as key": ("relations: {null: {}}\n", 7, "unchanged"),
    "null as relation": ("relations: {~: {}}\n", 7, "unchanged"),
    "on as key": ("relations: {on: {}}\n", 7, "true or false"),
    "empty list": ("gates: []\n", 7, "an empty list"),
    "missing value": ("description: ???\n", 7, "a value"),
    "endless number": ("max_error_percent: .inf\n", 7, "finite"),
    "no number": ("max_error_percent: .nan\n", 7, "finite"),
    "huge number": (f"max_error_percent: {'9' * 5000}\n", 7, "finite"),
    "hexadecimal": ("max_error_percent: 0x10\n", 7, "finite"),
    "control character": ('description: "a\\x1b[31m"\n', 7, "control"),
    "writing direction": ('description: "a\\u202eb"\n', 7, "control"),
    "long text": (f"description: {'a' * 5000}\n", 7, "4,000"),
    "two documents": ("---\nseed: 2\n", 7, "one document"),
    "tag directive": ("...\n%TAG ! tag:x,2000:\n---\nseed: 2\n", None, ""),
}


def write(folder: Path, text: str, name: str = "evil") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def attack_text(added: str) -> str:
    """Replace the keys that the attack names again, so that none is there twice; keep line numbers."""
    key = added.partition(":")[0]
    lines = [
        f"# {line}" if line.startswith(f"{key}:") and key in ("seeds", "relations", "systems") else line
        for line in PLAIN.splitlines()
    ]
    return "\n".join(lines) + "\n" + added


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_is_refused_with_its_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added, line, words = ATTACKS[name]
    monkeypatch.setenv("MEDTEST_CANARY", CANARY)
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, attack_text(added))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserMistakes) as refused:
        load_suite(path)
    message = str(refused.value)
    own = [m for m in refused.value.mistakes if m.where == "evil.yaml" and words in str(m)]
    assert own, message
    if line is not None:
        assert any(m.line == line for m in own), message
    assert CANARY not in message
    assert "\x1b" not in message
    assert sorted(tmp_path.rglob("*")) == before


def test_the_plain_suite_of_these_tests_is_good(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, PLAIN, "good"))
    assert suite.name == "good"
    assert [plan.id for plan in suite.relations] == ["unchanged", "blur"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "---\n",
        "null\n",
        "[]\n",
        "- a\n",
        "word\n",
        "42\n",
        "{}\n",
        "a: [\n",
        "a: b: c\n",
        "\t- x\n",
        "'\n",
        "*a\n",
    ],
)
def test_files_that_are_no_suites_are_refused(text: str, tmp_path: Path) -> None:
    document = read_suite(write(tmp_path, text), "evil.yaml")
    assert document.mistakes
    assert document.values == {}


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "evil.yaml"
    for content in (b"\xff\xfe\x00", b"seed: 1\nname: \xe4\n", b"a\x00b", os.urandom(2000)):
        path.write_bytes(content)
        assert read_suite(path, "evil.yaml").mistakes


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    document = read_suite(write(tmp_path, "a: 1\n" + "#" * MAX_BYTES), "evil.yaml")
    assert "KiB" in str(document.mistakes[0])


def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "evil.yaml"
    os.mkfifo(path)
    assert "regular file" in str(read_suite(path, "evil.yaml").mistakes[0])


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "suites").mkdir()
    write(tmp_path / "secret", f"description: {CANARY}\n", "secret")
    (tmp_path / "suites" / "evil.yaml").symlink_to(tmp_path / "secret" / "secret.yaml")
    tree = load_tree("evil", [tmp_path / "suites"])
    assert "link" in str(tree.mistakes[0])
    assert CANARY not in str(tree.mistakes) + str(tree.values)


BOMBS = {
    "aliases": "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
    "alias of itself": "a: &a [*a]\n",
    "alias of itself in a mapping": "a: &a {b: *a}\n",
    "depth": "a: " + "[" * 100_000 + "]" * 100_000 + "\n",
    "depth of mappings": "a: " + "{a: " * 5_000 + "1" + "}" * 5_000 + "\n",
    "depth by indentation": "".join(f"{' ' * n}a:\n" for n in range(500)),
    "nodes": "a: [" + "1," * (MAX_NODES + 10) + "1]\n",
    "interpolations": "a0: " + "x" * 3000 + "\n" + "".join(f"a{n}: '{f'${{a{n - 1}}}' * 500}'\n" for n in range(1, 40)),
    "catastrophic text": "".join(
        f"k{n}: '{text}'\n" for n, text in enumerate(("a" * 3999, "A_" * 1999, "%a" * 1999, "a." * 1999, "/." * 1999))
    ),
    "many lines of catastrophic text": "".join(f"k{n}: '{'A_a.' * 900}'\n" for n in range(60)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_at_once(name: str, tmp_path: Path) -> None:
    write(tmp_path, BOMBS[name])
    started = time.process_time()
    tree = load_tree("evil", [tmp_path])
    assert time.process_time() - started < 5.0
    if "catastrophic" not in name:
        assert tree.mistakes
    assert len(str(tree.mistakes)) < 200_000


def test_every_depth_up_to_the_bound_is_read(tmp_path: Path) -> None:
    depth = MAX_DEPTH - 2
    document = read_suite(write(tmp_path, "a: " + "[" * depth + "1" + "]" * depth + "\n"), "x")
    assert not document.mistakes


def test_suites_that_extend_themselves_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "extends: b\n" + PLAIN, "a")
    write(tmp_path, "extends: a\n", "b")
    tree = load_tree("a", [tmp_path])
    assert "a → b → a" in str(tree.mistakes)


def test_many_parents_do_not_multiply(tmp_path: Path) -> None:
    for n in range(30):
        write(tmp_path, f"extends: [s{n + 1}, s{n + 1}]\n", f"s{n}")
    write(tmp_path, PLAIN, "s30")
    started = time.process_time()
    assert load_tree("s0", [tmp_path]).mistakes
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize(
    "text",
    [
        "Nine clinical artefacts; brightness/contrast, 5 % of cases (see Smith et al., 2021).",
        "DATE: 2024-01-01 12:30",
        "Dr. X, e.g. at 1.5 m",
        "and/or",
        "50 µm ± 2",
        "Ärzte, 内視鏡, …",
        "100 %",
        "a & b",
        'What? It\'s "quoted"!',
        "see the run.py of this repository",
    ],
)
def test_plain_sentences_are_no_attack(text: str) -> None:
    assert list(forbidden(text, prose=True)) == []


@pytest.mark.parametrize(
    "text",
    [
        "published",
        "dice",
        "blur-2",
        "0.25",
        "2024-01-01 12:30",
        "ID 0042",
        "Patient No. 3",
        "#ff0000",
        "sub/images",
        "meta.csv",
        "Ground Truth",
    ],
)
def test_plain_settings_are_no_attack(text: str) -> None:
    assert list(forbidden(text, prose=False)) == []


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any text gives a document or mistakes, never an exception, and only plain data."""
    folder = Path(os.environ["PYTEST_TMP_FOR_TEXT"])
    try:
        content = text.encode()
    except UnicodeEncodeError:
        return
    path = folder / "any.yaml"
    path.write_bytes(content)
    tree = load_tree("any", [folder])
    yaml.safe_dump(tree.values)


@pytest.fixture(autouse=True)
def _folder_for_text(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    if "PYTEST_TMP_FOR_TEXT" not in os.environ:
        monkeypatch.setenv("PYTEST_TMP_FOR_TEXT", str(tmp_path_factory.getbasetemp()))


WHOLE = (
    "hydra: {run: {dir: pwned}, callbacks: {x: {_target_: os.system}}}",
    "description: ${oc.env:MEDTEST_CANARY}",
    "description: !!python/object/apply:os.system ['touch pwned']",
    "# @package _global_\nhydra: {sweep: {dir: pwned}}",
    "systems: {pranet: {use: callable, target: evil}}",
)


@pytest.mark.parametrize("added", WHOLE)
def test_whole_runs_refuse_attacks_and_touch_nothing(
    added: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    suites, work = tmp_path / "suites", tmp_path / "work"
    suites.mkdir()
    work.mkdir()
    write(suites, attack_text(f"{added}\n"))
    monkeypatch.chdir(work)
    monkeypatch.setenv("MEDTEST_CANARY", CANARY)
    monkeypatch.setenv("MEDTEST_HOME", str(work))
    typed = ["suite=evil", f"suite_dir={suites}"]
    calls = [lambda: main(typed, command="python run.py"), lambda: main([*typed, "-m"], command="python run.py")]
    if added == WHOLE[0]:  # one whole process; in others only the same imports would repeat
        whole = [sys.executable, str(ROOT / "run.py"), *typed]
        calls.append(lambda: subprocess.run(whole, timeout=120, check=False).returncode)
    for call in calls:
        assert call() == 2
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        assert CANARY not in out + err
        assert list(work.rglob("*")) == []
        assert [p.name for p in suites.iterdir()] == ["evil.yaml"]

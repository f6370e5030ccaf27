"""Every command of README and docs runs, in a separate folder, at reduced size.

Commands are in ```bash blocks, one a line. ``~`` is a folder with the data, networks and suites that the pages
mention. ``make test`` is the one command left out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from command_server import CommandServer
from newcomer_files import (
    write_artefacts,
    write_families,
    write_filters,
    write_labelled,
    write_networks,
    write_photographs,
    write_questions,
)

ROOT = Path(__file__).parents[1]
TUTORIAL = "tutorial.md"
"""Run as a whole by test_tutorial.py."""
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != TUTORIAL)]
LEFT_OUT = ("make test", "make slow", "make lint", "make bench", "make docs", "git clone", "cd medtest", ". .venv")
LONG_PAGES = ("bring-your-network.md",)
"""Pages whose commands load libraries of others for minutes."""
SETUP = ("python -m venv", "pip install", "sudo apt-get", "apt-get", "make install")
OWN_PROCESSES = (
    "python run.py --help",
    "python run.py suite=wce limit=2",
    "medtest list relations",
    "medtest data known",
)
"""Commands that are run as they are typed, beside what make and servers start; others are forks of a process that has
imported their libraries already."""


def _commands() -> list[tuple[str, str]]:
    commands: list[tuple[str, str]] = []
    for page in PAGES:
        for block in re.findall(r"```bash\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                command = line.split("  #")[0].strip()
                if command and not command.startswith("#"):
                    commands.append((page.name, command))
    return commands


FIRST = {command: page for page, command in reversed(_commands())}
"""The page on which each command stands first; what stands on several is run once."""
COMMANDS = [(p, c) for p, c in dict.fromkeys(_commands()) if FIRST[c] == p and not c.startswith(LEFT_OUT + SETUP)]


def test_pages_have_commands() -> None:
    assert len(COMMANDS) > 15
    assert set(OWN_PROCESSES) <= {command for _, command in COMMANDS}


def test_each_training_has_its_own_folder() -> None:
    """A reader who types two of our commands must not have the second refused for the state of the first."""
    folders = [match[1] for _, c in COMMANDS if (match := re.search(r"^medtest train .*?\bout[= ](\S+)", c))]
    assert len(folders) > 1
    assert len(set(folders)) == len(folders), folders


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A newcomer's machine: a checkout, data, networks, a team's suites, all below one home."""
    import numpy as np
    from PIL import Image

    from medtest.phantoms.colon import make_colon

    home = tmp_path_factory.mktemp("newcomer")
    checkout = home / "medtest"
    checkout.mkdir()
    for name in (
        "run.py",
        "conf",
        "suites",
        "medtest",
        "docs",
        "benchmarks",
        "pyproject.toml",
        "Makefile",
        "requirements.lock",
        "requirements-uv.lock",
        "README.md",
    ):
        (checkout / name).symlink_to(ROOT / name)
    for kind in ("images", "masks"):
        (home / "data" / "polyp" / kind).mkdir(parents=True)
        (home / "data" / "objects" / kind).mkdir(parents=True)
    for index in range(3):
        phantom = make_colon(np.random.default_rng(index), size=(320, 384), polyps=1)
        for folder in ("polyp", "objects"):
            base = home / "data" / folder
            Image.fromarray(phantom.image).save(base / "images" / f"case {index}.png")
            Image.fromarray(phantom.mask.astype("uint8") * 255).save(base / "masks" / f"case {index}.png")
        for name in ("CVC-300", "Kvasir"):  # as PraNet's authors pack them
            for kind in ("images", "masks"):
                packed = home / "data" / "sets" / "TestDataset" / name / kind
                packed.mkdir(parents=True, exist_ok=True)
                shutil.copy(home / "data" / "polyp" / kind / f"case {index}.png", packed / f"{index}.png")
    write_artefacts(home / "data" / "artefacts" / "feces")
    write_labelled(home / "data")
    write_questions(home / "data" / "medvqa")
    write_networks(home / "nets")
    write_photographs(home)
    write_filters(home / "filters")
    write_families(home / "nets")
    (home / "suites").mkdir()
    blocks = re.findall(
        r"```yaml\n(.*?)```", (ROOT / "docs" / "write-a-suite.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    for block in blocks:
        name = re.search(r"^name: (\S+)", block, flags=re.MULTILINE)
        if name:
            (home / "suites" / f"{name[1]}.yaml").write_text(block, encoding="utf-8")
    (home / "conf" / "model").mkdir(parents=True)
    preset = re.findall(
        r"```yaml\n(# ~/conf/model/.*?)```",
        (ROOT / "docs" / "bring-your-network.md").read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )[0]
    (home / "conf" / "model" / "ours.yaml").write_text(
        preset.replace("/srv/networks/release3.pt", str(home / "nets" / "net.pt")), encoding="utf-8"
    )
    return home


def _smaller(command: str) -> str:
    """Return the command at reduced size: fewer seeds, one severity, few training steps, MLflow only in README."""
    typed = command
    if command.startswith(("python run.py", "medtest run")) and "plan=true" not in command and "--help" not in command:
        command = re.sub(r" limit=\d+", "", command) + " limit=1"
        # published draws and changes of prompts have severity 0; a table of defences needs all relations of its suite
        if not any(word in command for word in ("only=", "polyp_seg_paper", "suite=defended_", "suite=t2i")):
            sequences = "robust_benchmark" in command and "_levels" not in command
            command += " only=severity:1" if sequences else " only=severity:3"
    if command.startswith("python run.py suite=polyp_seg") and re.search(r"\b(checkpoint|path)=", command):
        command += " relations=[blur]"  # the page shows how a network is loaded
    if command.startswith("python run.py") and "track" not in command and FIRST[typed] != "README.md":
        command += " tracking=none"
    if command.startswith("make demo"):
        command += " DEMO='limit=1 only=severity:3'"
    if command.startswith("medtest realism"):
        command += " limit=3 cases=2 patches=2 seam=2"
    if command.startswith("medtest study make suite"):
        command += " limit=3 per_relation=1 frames=3"
    if command.startswith("medtest train model="):
        command = re.sub(r"phantoms=\d+", "phantoms=8", command) + " steps=2 batch=2 threads=1 mlflow=false"
        command += " workers=0 watched=2" if "model=scenes" in command else ""
    if command.startswith("medtest train gap"):
        command = re.sub(r"phantoms=\d+", "phantoms=8", command) + " steps=2 batch=2 width=1 threads=1 tracking=none"
        command += " seeds.training.count=8" if "on=training" in command else ""
    if command.startswith("medtest train further") and "defence=" in command:
        command = re.sub(r"phantoms=\d+", "phantoms=16", command) + " steps=2 batch=2 limit=1 recipe.size=64"
        command += " relations=[pgd] relations.pgd.severities=[2] workers=1"
    elif command.startswith("medtest train further"):
        command = re.sub(r"phantoms=\d+", "phantoms=16", command)
        command += " steps=2 batch=2 limit=1 relations=[blur] relations.blur.severities=[3]"
    return command


def _environment(home: Path) -> dict[str, str]:
    binaries = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "VENV": sys.prefix,
        "COLUMNS": "160",
    }


@pytest.fixture(scope="module")
def commands(reader: Path) -> Iterator[CommandServer]:
    """A server of ``python run.py`` and ``medtest`` that imports their libraries once."""
    with CommandServer(reader / "commands", _environment(reader)) as server:
        yield server


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("page", "command"),
    [pytest.param(page, command, marks=[pytest.mark.long] if page in LONG_PAGES else []) for page, command in COMMANDS],
    ids=lambda value: str(value)[:90],
)
def test_command(reader: Path, commands: CommandServer, page: str, command: str) -> None:
    environment = _environment(reader)
    if re.match(r"(make ui|medtest ui|medtest study serve|mlflow server|mlflow ui)", command):
        _ask_server(command, reader, environment)
        return
    if command.startswith("make") and not (Path(sys.prefix) / ".medtest-installed").exists():
        pytest.skip("make would install first: these tests do not run from make's own environment")
    if command not in OWN_PROCESSES:
        environment = commands.environment(environment)
    done = subprocess.run(
        ["bash", "-c", _smaller(command)],
        cwd=reader / "medtest",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    finding = 1 if any(word in command for word in ("run.py", "medtest run", "medtest compare")) else 0
    assert done.returncode in (0, finding), f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr


def _examples_of_ci() -> dict[str, list[str]]:
    """Return the shell lines of both examples in docs/ci.md, as their servers would run them."""
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "ci.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    github, gitlab = map(yaml.safe_load, blocks)
    steps = github["jobs"]["medtest"]["steps"]
    assert all(("uses" in step) != ("run" in step) for step in steps)
    job = gitlab["medtest"]
    return {
        "github": [step["run"] for step in steps if "run" in step],
        "gitlab": [*job["before_script"], *job["script"], *job["after_script"]],
    }


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("server", ["github", "gitlab"])
def test_examples_of_ci(server: str, reader: Path, commands: CommandServer, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    environment = commands.environment(_environment(reader)) | {
        "MEDTEST_HOME": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    codes = []
    for line in _examples_of_ci()[server]:
        if line.startswith(SETUP):
            continue
        script = "\n".join(_smaller(part) for part in line.splitlines())
        script = script.replace("seeds.phantoms.count=200", "seeds.phantoms.count=2").replace(" limit=1 ", " ")
        done = subprocess.run(
            ["bash", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr and done.returncode in (0, 1), f"{script}\n{done.stdout}\n{done.stderr}"
        codes.append(done.returncode)
    assert codes == [0, 1, 0]  # no gate holds with so few seeds
    (junit,) = tmp_path.glob("outputs/polyp_seg/candidate/*/junit.xml")
    assert 'failures="1"' in junit.read_text(encoding="utf-8")
    assert (tmp_path / "outputs" / "compare" / "released-candidate" / "compare.html").is_file()
    if server == "github":
        text = summary.read_text(encoding="utf-8")
        assert "The gate failed" in text and "## candidate compared with released" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["python run.py suite=polyp_sag", "medtest check nowhere.yaml", "medtest --version"]
)
def test_a_fork_prints_what_a_separate_process_prints(reader: Path, commands: CommandServer, command: str) -> None:
    plain = _environment(reader)
    own, fork = (
        subprocess.run(
            ["bash", "-c", f"echo {command} >&2; {command}; echo $?"],
            cwd=reader / "medtest",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        for environment in (plain, commands.environment(plain))
    )
    assert (own.stdout, own.stderr) == (fork.stdout, fork.stderr)
    assert own.stdout


def _ask_server(command: str, home: Path, environment: dict[str, str]) -> None:
    """Start the server, ask it once, stop it with all it started."""
    port = "8731"
    parts = shlex.split(command)
    if parts[0] == "make":
        parts += [f"PORT={port}"]
    elif "--port" not in parts:
        parts += ["--port", port]
    executable = shutil.which(parts[0], path=environment["PATH"])
    assert executable, f"{parts[0]} is not installed"
    process = subprocess.Popen(
        [executable, *parts[1:]],
        cwd=home / "medtest",
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(360):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
                    assert answer.status == 200
                    return
            except OSError:
                assert process.poll() is None, f"{command} ended with {process.returncode}"
                time.sleep(0.5)
        pytest.fail(f"{command} did not answer within three minutes")
    finally:
        os.killpg(process.pid, 15)
        process.wait(timeout=20)

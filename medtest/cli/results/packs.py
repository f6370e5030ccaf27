"""``medtest pack``, ``medtest unpack`` and ``medtest check`` of a pack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from medtest.cli.terminal import bar, say
from medtest.cli.typed import own_keys, split_tokens
from medtest.core.errors import ExitCode, typed_error
from medtest.core.files.paths import home as default_home
from medtest.core.files.paths import path_from_here

if TYPE_CHECKING:
    from medtest.report.packs.contents import PackHead
    from medtest.report.packs.findings import PackFinding
    from medtest.report.packs.suites import Packed

_KEYS = ("to", "images", "run")
_HEAD = "pack.json"
_MARK = b"PK"


def is_pack(token: str) -> bool:
    """Return True if a token names a pack (a ZIP file, or an unpacked folder) rather than a suite.

    A folder may have the name of a suite; ``suite=NAME`` means the suite.
    """
    path = Path(token).expanduser()
    if path.is_dir():
        return (path / _HEAD).is_file() or "/" in token
    if path.suffix.lower() == ".zip":
        return True
    if path.suffix in (".yaml", ".yml") or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MARK)) == _MARK


def pack(tokens: Sequence[str], *, config_dirs: Sequence[Path], console: Console) -> None:
    """Pack a suite, or a finished run.

    Args:
        tokens: ``suite=NAME`` with its overrides, or ``run=RUN``; ``to=FILE.zip``; ``images=true``.
        config_dirs: Folders like ``conf/``.
        console: Console for the result.

    Raises:
        UserMistakes: There is no such suite or run, or the file exists.
        MedtestError: A seed cannot be loaded, or the file cannot be written.
    """
    own = {key: value for key, _, value in (token.partition("=") for token in tokens) if key in _KEYS}
    images = _images(own.get("images"))
    if "to" not in own or not own["to"]:
        example = "medtest pack suite=polyp_seg to=polyp_seg.zip"
        raise typed_error("to", found="nothing", allowed="to=FILE.zip, a new file", fix=example)
    to = Path(own["to"]).expanduser()
    if "run" in own:
        beside = [token for token in tokens if token.partition("=")[0] not in _KEYS]
        if beside:
            raise typed_error("run", found=" ".join(beside), allowed="run=RUN to=FILE.zip, and images=true or false")
        _pack_run(own["run"], to, images, console)
    else:
        _pack_suite(tokens, to, images is True, config_dirs, console)


def _pack_suite(tokens: Sequence[str], to: Path, images: bool, config_dirs: Sequence[Path], console: Console) -> None:
    from medtest.report.packs.suites import pack_suite
    from medtest.report.packs.writing import check_target
    from medtest.session.runs import invocation_of
    from medtest.suite.commandline.overrides import prepare
    from medtest.suite.compose import load, needs_data
    from medtest.suite.reading.library import suite_folders

    name, overrides, _, words = split_tokens(tokens, *_KEYS)
    if words:
        raise typed_error("", found=" ".join(words), allowed="suite=NAME, to=FILE.zip and key=value tokens")
    check_target(to, "to")
    with own_keys(*_KEYS):
        loaded = load(name, overrides, config_dirs=config_dirs)
    invocation = invocation_of(loaded)
    if invocation.data is None and needs_data(loaded.suite):
        raise typed_error("data", found="nothing", allowed="folder of the images, whose SHA-256 the pack lists")
    typed = prepare([f"suite={name}", *overrides])
    with bar(console, "seeds") as progress:
        packed, seeds, cases = pack_suite(
            loaded, invocation, to, folders=suite_folders(typed.suite_folders), images=images, progress=progress
        )
    compared = len({line.relation for line in cases})
    _print_packed(packed, f"{len(seeds):,} seeds, {len(cases):,} follow-ups of {compared} relations", console)
    facts = packed.head.of_suite
    data = " data=PATH" if facts is not None and facts.needs_data and not facts.runs_from_data else ""
    say(console, f"The recipient runs: medtest check {to.name}{data}")


def _pack_run(name: str, to: Path, images: bool | None, console: Console) -> None:
    from medtest.report.compared.named import find_run, no_run
    from medtest.report.packs.runs import pack_run

    home = default_home()
    folder = find_run(name, home, key="run")
    if folder is None:
        raise no_run(name, home, "run")
    packed = pack_run(folder, to, images=images)
    facts = packed.head.of_run
    if facts is not None:
        tables = sum(name.endswith((".csv", ".tex")) for name in facts.made)
        _print_packed(packed, f"{facts.system}: records of {tables:,} tables and a report", console)
    say(console, f"The recipient runs: medtest check {to.name}")


def _print_packed(packed: Packed, words: str, console: Console) -> None:
    head = packed.head
    say(console, f"{path_from_here(packed.file)}: {head.suite} {head.suite_version}, {words}; {packed.bytes:,} bytes")
    for notice in packed.notices:
        say(console, notice)
    say(console, f"SHA-256 {packed.sha256}")


def _images(typed: str | None) -> bool | None:
    values = {None: None, "true": True, "false": False}
    if typed not in values:
        raise typed_error("images", found=str(typed), allowed="true, false")
    return values[typed]


def unpack(tokens: Sequence[str], *, console: Console) -> None:
    """Unpack a pack into a new folder.

    Args:
        tokens: The file, and ``to=FOLDER``.
        console: Console for the next steps.

    Raises:
        UserMistakes: It is not a pack, or the folder exists.
        OutputProblem: The folder cannot be written.
    """
    from medtest.report.packs.contents import printable
    from medtest.report.packs.reading import unpack as unpack_file

    files = [token for token in tokens if not token.startswith("to=")]
    if len(files) != 1:
        typed, example = " ".join(files) or "nothing", "medtest unpack polyp_seg.zip to=received"
        raise typed_error("FILE", found=typed, allowed="one pack and to=FOLDER", fix=example)
    file = Path(files[0]).expanduser()
    named = next((token.removeprefix("to=") for token in tokens if token.startswith("to=")), "")
    to = Path(named).expanduser() if named else Path(file.stem)
    head = unpack_file(file, to)
    place = path_from_here(to)
    say(console, printable(f"{place}: {head.suite} {head.suite_version}, packed by medtest {head.medtest}"))
    if head.of_run is not None:
        say(console, f"To make its tables and report: medtest tables {place}/{head.of_run.folder}")
        return
    facts, data = head.of_suite, ""
    if facts is not None and facts.needs_data:
        data = f" data={place}/data" if facts.runs_from_data else " data=PATH"
    say(console, f"To compare it with this machine: medtest check {place}{data}")
    say(console, f"To run it: medtest run suite={place}/suites/{head.suite}.yaml{data}")


def check_packs(
    named: Sequence[str], overrides: Sequence[str], *, config_dirs: Sequence[Path], console: Console
) -> ExitCode:
    """Check packs one by one and print what is the same here.

    Args:
        named: ZIP files, or unpacked folders.
        overrides: ``key=value`` tokens.
        config_dirs: Folders like ``conf/``.
        console: Console for the result.

    Returns:
        ``GATE_FAILED`` (1) if a difference matters, else ``OK``.

    Raises:
        UserMistakes: A file is not a pack, or its data are missing.
        MedtestError: The tables of one cannot be made.
    """
    from medtest.report.packs.check import check_pack
    from medtest.report.packs.findings import Sameness
    from medtest.report.packs.reading import reading
    from medtest.session.runs import invocation_of

    worst = ExitCode.OK
    for name in named:
        with reading(Path(name).expanduser()) as pack, bar(console, "seeds") as progress:
            pack = replace(pack, where=name)
            findings = check_pack(
                pack, overrides, config_dirs=config_dirs, invocation_of=invocation_of, progress=progress
            )
        _show(name, pack.head, findings, console)
        if any(finding.state is Sameness.MATTERS for finding in findings):
            worst = ExitCode.GATE_FAILED
    return worst


def _show(name: str, head: PackHead, findings: Sequence[PackFinding], console: Console) -> None:
    from medtest.report.packs.contents import printable

    lines = [f"{name}: {head.kind} {head.suite} {head.suite_version}, packed by medtest {head.medtest}"]
    for finding in findings:
        lines.append(f"  {finding.topic:<11}{finding.state.value}: {finding.words}")
        lines += [f"    {line}" for line in finding.lines]
    for line in lines:
        say(console, printable(line))

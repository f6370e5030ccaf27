"""Commands that make images: a contact sheet, an export, a replay of one case."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image as PillowImage
from rich.console import Console

from medtest.cli.followups.sheet import draw_sheet, save_sheet
from medtest.cli.terminal import say
from medtest.cli.typed import split_tokens
from medtest.core.cases import Address, FollowUp, PreparedSeed, SeedRef
from medtest.core.errors import NotApplicable, OutputProblem, nearest_name, typed_error
from medtest.core.files.written import check_out, note_out
from medtest.core.probes import Need
from medtest.core.tasks.base import task_of
from medtest.preparation import prepare
from medtest.relations.base import Relation
from medtest.runner.folder import output_problems
from medtest.seeds.base import SeedSource
from medtest.seeds.needed import check_needed
from medtest.session.runs import invocation_of
from medtest.suite.checking.misfits.inputs import check_images
from medtest.suite.compose import Loaded, load
from medtest.suite.model import Invocation, Suite

if TYPE_CHECKING:
    from medtest.runner.replaying.crafted_runs import Crafted
    from medtest.runner.replaying.replay import Replay


def write_sheet(
    tokens: Sequence[str], *, seed: str, index: int, out: Path, cell: int, config_dirs: Sequence[Path], console: Console
) -> None:
    """Draw the contact sheet of one seed and write it.

    Raises:
        UserMistakes: The suite has mistakes, or there is no such seed.
        OutputProblem: The picture cannot be written.
    """
    name, overrides, _, _ = split_tokens(tokens)
    loaded = load(name, overrides, config_dirs=config_dirs)
    check_images(loaded.suite, "medtest sheet")
    check_out([out], "--out")
    prepared = _prepared(loaded, seed, index)
    relations = loaded.suite.build_relations()
    if loaded.selection.relations:
        relations = {key: value for key, value in relations.items() if key in loaded.selection.relations}
    crafted = _crafted(loaded, prepared, relations)
    save_sheet(draw_sheet(prepared, relations, suite_seed=loaded.suite.seed, cell=cell, crafted=crafted), out)
    _note([out])
    say(console, f"{out}: {len(relations)} relations on {prepared.ref.dataset}/{prepared.ref.seed_id}")


def _crafted(
    loaded: Loaded, seed: PreparedSeed, relations: Mapping[str, Relation]
) -> Callable[[Address], FollowUp] | None:
    """Return a function that returns crafted cases kept by a run; None if none are shown.

    Raises:
        UserMistakes: No run keeps any, or several systems have different ones.
    """
    crafted_names = [name for name, relation in relations.items() if relation.needs is not Need.NOTHING]
    if not crafted_names:
        return None
    from medtest.runner.replaying.crafted_runs import read_from_runs
    from medtest.runner.units.parts import Parts

    invocation = invocation_of(loaded)
    parts = Parts(loaded.suite, invocation.data, invocation.batch_size)
    read_from_runs(loaded.suite, invocation, parts, crafted_names)

    def stored_case(address: Address) -> FollowUp:
        case = parts.make(seed, address)
        if case.follow is None:
            raise NotApplicable(case.reason.text)
        return case.follow

    return stored_case


def _prepared(loaded: Loaded, seed_name: str, index: int) -> PreparedSeed:
    source, ref = _find(loaded.suite.build_seeds(invocation_of(loaded).data), seed_name, index)
    check_needed([source], {(ref.dataset, ref.seed_id)})
    preparation = loaded.suite.prepare
    return prepare(source.load(ref), size=preparation.size, resize=preparation.resize)


def _find(sources: Sequence[SeedSource], seed_name: str, index: int) -> tuple[SeedSource, SeedRef]:
    listed = [(source, ref) for source in sources for ref in source.places()]
    if seed_name:
        by_name = {f"{ref.dataset}/{ref.seed_id}": (source, ref) for source, ref in listed}
        if seed_name in by_name:
            return by_name[seed_name]
        raise typed_error(
            "--seed",
            found=seed_name,
            allowed=f"dataset/seed_id, {len(by_name)} in all, the first: {next(iter(by_name), 'none')}",
            nearest=nearest_name(seed_name, by_name),
        )
    if index < len(listed):
        return listed[index]
    raise typed_error("--index", found=str(index), allowed=f"0 to {len(listed) - 1}")


def export_images(tokens: Sequence[str], *, config_dirs: Sequence[Path], console: Console) -> None:
    """Write the selected follow-ups under the names that ``model=predictions`` reads.

    Raises:
        UserMistakes: The suite has mistakes, or ``to=DIR`` is missing.
        OutputProblem: The folder cannot be written.
    """
    from medtest.runner.replaying.export import export_followups

    name, overrides, own, _ = split_tokens(tokens, "to")
    if not own.get("to"):
        raise typed_error("to", found="none", allowed="to=DIR", fix="medtest export suite=polyp_seg to=followups")
    loaded = load(name, overrides, config_dirs=config_dirs)
    check_images(loaded.suite, "medtest export")
    target = Path(own["to"]).expanduser()
    export_followups(loaded.suite, invocation_of(loaded), target)
    say(console, f"{target}: follow-ups and manifest.csv.")
    task = loaded.suite.task
    if not task.folder:
        return  # Answers in words are not read from files; medtest data questions writes the questions.
    say(console, "Write your maps under the same names to a folder, then:")
    typed = [f"suite={name}", *(token for token in overrides if not token.startswith("model="))]
    command = shlex.join(["medtest", "run", *typed, f"model={task.folder}", "folder=YOUR_MAPS"])
    say(console, f"  {command}")


def replay_address(tokens: Sequence[str], *, out: Path, config_dirs: Sequence[Path], console: Console) -> None:
    """Reconstruct one case, write its source, follow-up and parameters, and show its answers.

    Systems named by ``model=`` are queried again, with a strip each of truth, both answers and the score. For a
    question no system is queried: the answers come from the records in ``outputs/``.

    Raises:
        UserMistakes: The suite has mistakes, or the address names no case of it.
        MedtestError: A system cannot be loaded, or its strip cannot be drawn.
        OutputProblem: The folder cannot be written.
    """
    name, overrides, _, words = split_tokens(tokens)
    if len(words) != 1:
        raise typed_error(
            "address",
            found=" ".join(words) or "none",
            allowed="dataset/seed_id/relation_s<severity>_f<frame>_r<repeat>",
            fix="copy the address below a strip of the report",
        )
    loaded = load(name, overrides, config_dirs=config_dirs)
    invocation = replace(invocation_of(loaded), limit=None)
    with TemporaryDirectory(prefix="medtest-replay-") as scratch:
        _replay(loaded.suite, invocation, words[0], overrides, out, Path(scratch) / "crafted", console)


def _replay(
    suite: Suite,
    invocation: Invocation,
    address: str,
    overrides: Sequence[str],
    out: Path,
    scratch: Path,
    console: Console,
) -> None:
    from medtest.runner.replaying.replay import replay_case

    case = replay_case(suite, invocation, address, scratch=scratch)
    named = any(token.lstrip("+").split("=", 1)[0] == "model" for token in overrides)
    strips = [f"strip-{system.record_name}.png" for system in suite.build_systems().values()] if named else []
    kinds = ("source.png", "followup.png") if case.prompt is None else ("source.json", "followup.json")
    check_out((out / file for file in (*kinds, "params.json", *strips)), "--out")
    pictures = _write_case(case, address, out)
    say(console, f"{out}: {', '.join(pictures)}, params.json (SHA-256 {case.followup_sha256[:12]}…)")
    if case.crafted is not None:
        say(console, _crafted_words(case.crafted))
    if case.items or suite.task.prompts:
        chosen = [system.record_name for system in suite.build_systems().values()] if named else None
        _show_answers(suite, invocation, case, chosen, console)
    elif named:
        _ask_again(suite, invocation, address, out, scratch, console)


def _crafted_words(crafted: Crafted) -> str:
    """Return the origin of a crafted case and, if it was crafted again, whether it equals the judged one."""
    if crafted.folder is not None:
        run = "/".join(("outputs", *crafted.folder.parts[-3:]))
        return f"Crafted on {crafted.on}; the pixels are the judged ones, from {run}"
    words = f"Crafted again on {crafted.on}"
    if crafted.problem:
        words = f"Stored images of a run: {crafted.problem}. {words}"
    if not crafted.recorded:
        return f"{words}: no run in outputs/ recorded this case."
    if crafted.recorded == crafted.sha256:
        return f"{words}: its SHA-256 matches the record, so its pixels are the judged ones."
    return (
        f"{words}: its SHA-256 differs from the record ({crafted.recorded[:12]}…), so this is not the judged image; "
        "gradients depend on processor, libraries and batch."
    )


def _write_case(case: Replay, address: str, out: Path) -> list[str]:
    """Write the pictures or prompts and the parameters of a case; return the file names."""
    prompts = {"source.json": case.seed.prompt, "followup.json": case.prompt}
    pictures = {} if case.prompt is not None else {"source.png": case.source, "followup.png": case.followup}
    # As displayed: the range of a series is black to white, a volume is shown as one slice.
    drawing = task_of(case.seed.kind).drawing
    pictures = {name: drawing.view(case.seed, picture).image for name, picture in pictures.items()}
    written = {file: prompt for file, prompt in prompts.items() if prompt is not None}
    try:
        out.mkdir(parents=True, exist_ok=True)
        for file, picture in pictures.items():
            PillowImage.fromarray(np.asarray(picture)).save(out / file)
        for file, prompt in written.items():
            content = {"prompt": prompt.text, "pool": prompt.pool.as_json()}
            (out / file).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        facts = {
            "address": address,
            "scale": case.scale,
            "params": case.params,
            "followup_sha256": case.followup_sha256,
        }
        (out / "params.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputProblem(f"{out}: cannot be written ({error.strerror}); choose another --out") from None
    _note(out / file for file in (*pictures, *written, "params.json"))
    return [*pictures, *written]


def _note(written: Iterable[Path]) -> None:
    """Register files as written by medtest.

    Raises:
        OutputProblem: The list beside them cannot be written.
    """
    paths = list(written)
    with output_problems(paths[0]):
        note_out(paths)


def _ask_again(suite: Suite, invocation: Invocation, address: str, out: Path, scratch: Path, console: Console) -> None:
    """Query the selected systems about a case, draw a strip for each, and print verdicts and scores."""
    from medtest.runner.replaying.replay_answers import replay_strips

    for strip in replay_strips(suite, invocation, address, out, scratch=scratch):
        _note([out / strip.file.name])
        words = f": {strip.words}" if strip.words else ""
        say(console, f"{out / strip.file.name}: {strip.system}, {strip.verdict}{words}")


def _show_answers(
    suite: Suite, invocation: Invocation, case: Replay, chosen: Sequence[str] | None, console: Console
) -> None:
    """Print the recorded answers to the questions of a case, for all systems or the chosen ones."""
    from medtest.results.records.recorded import recorded

    items = case.items or ("",)
    answers = recorded(invocation.home, suite.name, suite.task, case.address, case.shown_id, items)
    others = dict.fromkeys(answer.system for answer in answers if chosen is not None and answer.system not in chosen)
    answers = [answer for answer in answers if answer.system not in others]
    if not answers:
        of_systems = "" if chosen is None else f" by {', '.join(chosen)}"
        hint = f" There are answers by {', '.join(others)}." if others else ""
        words = f"outputs/ holds no recorded answer{of_systems} to this case; a replay queries no system.{hint}"
        say(console, words)
    for answer in answers:
        item = f"{answer.item}, " if answer.item else ""
        say(console, f"{item}{answer.system} ({answer.digest[:8]}): {answer.verdict}")
        for name, text in answer.words:
            say(console, f"  {name}: {text}")

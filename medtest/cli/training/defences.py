"""Table 5 of Xu et al. (2021) over trainings with a defence, and over runs of weights trained so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from medtest.core.errors import MedtestError
from medtest.core.files import read_object
from medtest.core.files.paths import package_folder, path_from_here

if TYPE_CHECKING:
    from medtest.results.attacks.defences import DefendedWeights, WeightsRun

FILE, WORDS = "defences.csv", "defences.md"
_EACH, FACTS = "each", "training.json"
_PLAIN: dict[str, Any] = {"norm": "linf", "target": [], "where": "field", "minimal": False, "variant": "paper"}
"""Settings of an attack that qualifies for table 5."""


def defence_tables(folders: Sequence[Path], compared: Sequence[Path], *, console: Console) -> bool:
    """Make the table of defences from everything at or below some folders, and print it; return True if there is one.

    Args:
        folders: Trainings, runs, or folders above some; the table is written to the first.
        compared: Folders of runs created elsewhere by trainings.
        console: Console for the table.

    Raises:
        UserMistakes: The first folder holds a file of that name that medtest did not write.
        OutputProblem: Records cannot be read, or the folder cannot be written.
    """
    from medtest.cli.results.tables import runs_below
    from medtest.core.files.written import WrittenFiles, check_out
    from medtest.results.attacks.defence_words import markdown
    from medtest.results.attacks.defences import defence_table
    from medtest.results.records.alike import check_alike
    from medtest.runner.folder import output_problems

    weights, families = known_weights(folders)
    if not weights:
        return False
    runs = dict.fromkeys(run.resolve() for folder in (*folders, *compared) for run in runs_below(folder))
    tested = [weights_of_run for run in runs if (weights_of_run := weights_run(run, weights, families)) is not None]
    for suite in dict.fromkeys(run.suite for run in tested):
        check_alike([run.records for run in tested if run.suite == suite])
    table = defence_table(tested, weights)
    if table.empty:
        return False
    out = folders[0] if folders[0].is_dir() else folders[0].parent
    check_out([out / FILE, out / WORDS], "FOLDER")
    with output_problems(out / FILE):
        texts = {FILE: table.to_csv(index=False), WORDS: markdown(table)}
        WrittenFiles(out).write({name: text.encode() for name, text in texts.items()})
    show(table, console=console)
    console.print(f"Table: {path_from_here(out / FILE)}, {path_from_here(out / WORDS)}", markup=False, soft_wrap=True)
    return True


def known_weights(folders: Sequence[Path]) -> tuple[dict[str, DefendedWeights], dict[str, str]]:
    """Return defended weights by SHA-256, bundled or below some folders, and the family of each.

    The families also hold the undefended weights, by their SHA-256.
    """
    from medtest.results.attacks.defences import METHODS, DefendedWeights

    weights: dict[str, DefendedWeights] = {}
    families: dict[str, str] = {}
    for sha, family, facts in (*_shipped(), *_trained(folders)):
        undefended = str(facts.get("from_sha256", ""))
        if facts.get("name") in METHODS and undefended:
            variant = str(facts.get("variant", ""))
            weights[sha] = DefendedWeights(name=str(facts["name"]), variant=variant, undefended=undefended)
            families[sha] = families[undefended] = family
    return weights, families


def _shipped() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield SHA-256, family and defence of the bundled defended weights, from their headers."""
    from medtest.systems.checkpoints.weights import read_info
    from medtest.systems.files import cached_sha256

    for file in sorted((package_folder() / "weights").glob("*-compact-*.safetensors")):
        try:
            info = read_info(file)
        except MedtestError:
            continue
        yield cached_sha256(file), str(info.network.get("family", "")), info.defence


def _trained(folders: Sequence[Path]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the same for trainings below some folders, from their ``training.json``."""
    for file in (path for folder in folders for path in sorted(folder.rglob(FACTS))):
        facts = read_object(file)
        defence = (facts.get("recipe") or {}).get("defence")
        if isinstance(defence, Mapping) and facts.get("weights_sha256"):
            defence_facts = {**defence, "from_sha256": facts.get("from_sha256", "")}
            yield str(facts["weights_sha256"]), str(facts.get("family", "")), defence_facts


def weights_run(folder: Path, known: Mapping[str, DefendedWeights], families: Mapping[str, str]) -> WeightsRun | None:
    """Return the run of a folder if its system's weights are in ``families``, else None."""
    from medtest.results.attacks.defences import WeightsRun
    from medtest.results.records.records_io import Records, classes_in
    from medtest.results.records.wanted import Wanted
    from medtest.runner.folder import RUN_FILE

    run = read_object(folder / RUN_FILE)
    covers = run.get("covers") or {}
    weights = _sha(covers.get("system"))
    if weights not in families:
        return None
    undefended = known[weights].undefended if weights in known else weights
    records = Records.read(folder)
    return WeightsRun(
        suite=f"{run.get('suite', '')} {run.get('suite_version', '')}".strip(),
        family=families[weights],
        weights=weights,
        task=Wanted.from_folder(folder).task,
        records=Records(followups=records.followups, sources=records.sources, classes=classes_in(folder)),
        relations=roles_of(covers.get("relations") or {}, undefended),
    )


def roles_of(relations: Mapping[str, Any], undefended: str) -> dict[str, dict[str, int | None]]:
    """Return the relations of a run for each role of the table, with the steps to compare.

    Args:
        relations: Content covered by the run's digest for each relation, by id.
        undefended: SHA-256 of the undefended network's weights.
    """
    from medtest.results.attacks.defences import PGD, STEPS, STRONGEST, TRANSFER

    roles: dict[str, dict[str, int | None]] = {PGD: {}, STRONGEST: {}, TRANSFER: {}}
    for name, entry in relations.items():
        made_on, attack = entry.get("crafted_on"), entry.get("relation")
        settings = entry.get("settings") or {}
        if any(settings.get(key, value) != value for key, value in _PLAIN.items()):
            continue  # not the paper's kind of attack
        steps = STEPS if attack == "pgd" else None
        if made_on == _EACH and attack in (PGD, STRONGEST):
            roles[attack][name] = steps
        elif isinstance(made_on, Mapping) and attack == PGD and _sha(made_on) == undefended:
            roles[TRANSFER][name] = steps
    return {role: names for role, names in roles.items() if names}


def _sha(system: Any) -> str:
    """Return the SHA-256 of a system's weights from the content covered by its digest."""
    printed = system.get("fingerprint") if isinstance(system, Mapping) else None
    return str(printed.get("weights_sha256", "")) if isinstance(printed, Mapping) else ""


def show(table: Any, *, console: Console) -> None:
    """Print one table per network, with remarks on it."""
    from medtest.results.attacks.defence_words import HEAD, cells, remarks

    for (suite, network), part in table.groupby(["suite", "network"], sort=False):
        shown = Table(title=f"{network} under {suite}", title_justify="left", box=None, pad_edge=False)
        for number, head in enumerate(HEAD):
            shown.add_column(head, justify="left" if number in (0, len(HEAD) - 1) else "right")
        for row in json.loads(part.to_json(orient="records")):
            shown.add_row(*cells(row))
        console.print()
        console.print(shown)
        for remark in remarks(part):
            console.print(remark, markup=False, soft_wrap=True)

"""Records of runs as sets of curves for ``medtest alpha-sigma``: one set per relation, one algorithm per system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from medtest.core.errors import OutputProblem, nearest_name, typed_error
from medtest.core.oracles import criteria
from medtest.results.records.alike import check_alike
from medtest.results.records.records_io import RECORDS, Records
from medtest.results.records.wanted import Wanted
from medtest.results.series.series import SeriesSet
from medtest.results.series.series_records import series_sets


def sets_of_records(
    paths: Sequence[Path], *, score: str | None, min_step: float | None, lower_is_better: bool
) -> list[SeriesSet]:
    """Return the curves of every relation of the named runs.

    Args:
        paths: ``records.parquet`` files, or folders above some.
        score: Score column; None takes the suite's primary score.
        min_step: Neighbouring scales nearer than this are merged; None takes the suite's own.
        lower_is_better: Whether the score is an error.

    Raises:
        UserMistakes: There are no records, no such score, or no relation with two scales.
    """
    suites: dict[str, dict[str, tuple[Records, Wanted | None]]] = {}
    for folder in _folders(paths):
        records, suite_info = _read(folder)
        name = str(records.followups["suite"].iloc[0]) if not records.followups.empty else folder.name
        system = str(records.followups["system"].iloc[0]) if not records.followups.empty else folder.parent.name
        systems = suites.setdefault(name, {})
        while system in systems:  # the same system with other settings
            system += "'"
        systems[system] = (records, suite_info)
    sets_of_curves: list[SeriesSet] = []
    for name, systems in suites.items():
        of_suite = {system: records for system, (records, _) in systems.items()}
        check_alike([*of_suite.values()])
        suite_info = next((w for _, w in systems.values() if w is not None), None)
        column = _score(score, suite_info, of_suite)
        sets = series_sets(
            of_suite,
            column,
            title=name,
            include_source=suite_info is not None and suite_info.include_source,
            min_step=min_step if min_step is not None else (0.0 if suite_info is None else suite_info.min_step),
        )
        sets_of_curves += [replace(curves, lower_is_better=lower_is_better) for curves in sets]
    if not sets_of_curves:
        raise typed_error(
            "", "records without a relation over two scales", "runs of a suite with levels or a measured property"
        )
    return sets_of_curves


def _folders(paths: Sequence[Path]) -> list[Path]:
    folders: list[Path] = []
    for path in paths:
        if path.is_dir():
            below = [file.parent for file in path.rglob(RECORDS) if file.is_file()]
            folders += sorted(f for f in below if ".old-" not in f.as_posix() and "views" not in f.parts)
        elif path.is_file():
            folders.append(path.parent)
        else:
            raise typed_error("", f"{path} (no such file)", f"{RECORDS} of a run, or a folder that contains runs")
    if not folders:
        raise typed_error(
            "",
            f"no {RECORDS} below {', '.join(str(path) for path in paths)}",
            "a run folder, or a folder that contains runs",
        )
    return list(dict.fromkeys(folders))


def _read(folder: Path) -> tuple[Records, Wanted | None]:
    try:
        suite_info = Wanted.from_folder(folder)
    except OutputProblem:  # records may have been sent without the rest of their folder
        suite_info = None
    return Records.read(folder), suite_info


def _score(typed: str | None, suite_info: Wanted | None, records: dict[str, Records]) -> str:
    names = list(dict.fromkeys(name for records_of_system in records.values() for name in records_of_system.scores))
    chosen = typed or (criteria.components(suite_info.primary.score)[0] if suite_info is not None else names[0])
    if chosen not in names:
        raise typed_error("", f"the score {chosen}", ", ".join(names), nearest=nearest_name(chosen, names))
    return chosen

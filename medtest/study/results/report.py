"""A study's report: CSV tables, an HTML page without network access, and a run in MLflow."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core import __version__
from medtest.core.deferred import pd
from medtest.core.errors import ExitCode, NotTracked, OutputProblem
from medtest.runner.folder import output_problems, writing_text
from medtest.study.model import Item
from medtest.study.questions import ARTEFACTS, QUESTIONS, StudyKind
from medtest.study.results.blind import blind_tables
from medtest.study.results.frequencies import ANY, frame_tables
from medtest.study.results.ratings import Ratings, read_ratings
from medtest.study.results.tables import OVERALL, pair_tables
from medtest.study.store import IMAGES, StudyStore

if TYPE_CHECKING:
    from rich.console import RenderableType

_TABLES = {StudyKind.PAIRS: pair_tables, StudyKind.ARTEFACTS: frame_tables, StudyKind.BLIND: blind_tables}
FOLDER = "report"
PAGE = "report.html"
RUN = "run.json"
_TITLES = {
    StudyKind.PAIRS: "Do follow-ups keep the diagnosis, and could they occur?",
    StudyKind.ARTEFACTS: "Which artefacts do frames show?",
    StudyKind.BLIND: "Can people tell made frames from real ones?",
}
_THUMBNAILS = 24
_THUMBNAIL_SIDE = 220


@dataclass(frozen=True, kw_only=True)
class StudyReport:
    """A written report.

    Attributes:
        page: The HTML page.
        tables: Every table by file name.
        flagged: Path of ``flagged.csv``, if any follow-up is flagged.
        code: ``NOT_TRACKED`` if MLflow did not accept it, else OK.
        renderables: Terminal output.
        problems: Problems that leave the files intact.
    """

    page: Path
    tables: Mapping[str, pd.DataFrame]
    flagged: Path | None = None
    code: ExitCode = ExitCode.OK
    renderables: tuple[RenderableType, ...] = ()
    problems: tuple[str, ...] = ()


def report_study(folder: Path, *, home: Path, leave_out: Sequence[int] = (), track: bool = True) -> StudyReport:
    """Write ``report/`` of a study's folder, which may still be served.

    Args:
        folder: The study.
        home: Folder that holds ``mlruns/``.
        leave_out: Annotators whose answers are ignored.
        track: Whether to log to MLflow.

    Raises:
        UserMistakes: The folder holds no study, or there is no such annotator.
        OutputProblem: The files cannot be written.
    """
    with StudyStore(folder) as store:
        store.check_annotators("--leave-out", leave_out)
        ratings = read_ratings(store, leave_out)
        meta, kind = dict(store.meta), store.kind
    tables = _TABLES[kind](ratings)
    target = folder / FOLDER
    with output_problems(target):
        target.mkdir(exist_ok=True)
        for name, table in tables.items():
            with writing_text(target / name) as file:
                _without_formulas(table).to_csv(file, index=False, lineterminator="\n")
    page = target / PAGE
    with writing_text(page) as file:
        file.write(report_html(folder, meta, kind, ratings, tables))
    flagged = tables.get("flagged.csv")
    problems: list[str] = []
    if track:
        try:
            _track(folder, home, meta, kind, ratings, tables)
        except NotTracked as error:
            problems.append(str(error))
    return StudyReport(
        page=page,
        tables=tables,
        flagged=target / "flagged.csv" if flagged is not None and not flagged.empty else None,
        code=ExitCode.NOT_TRACKED if problems else ExitCode.OK,
        renderables=tuple(_terminal(kind, tables)),
        problems=tuple(problems),
    )


def _without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an apostrophe before comments that a spreadsheet would take for a formula.

    Comments are untrusted input for readers of ``answers.csv`` (OWASP, CSV Injection).
    """
    if "comment" not in table:
        return table
    written = table["comment"].astype(str)
    return table.assign(comment=written.where(~written.str.match(r"[=+\-@\t\r]"), "'" + written))


# --- the page -------------------------------------------------------------------------------------------------------


def report_html(
    folder: Path, meta: Mapping[str, Any], kind: StudyKind, ratings: Ratings, tables: Mapping[str, pd.DataFrame]
) -> str:
    """Return the HTML page with all text escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from medtest.core.files.paths import package_folder

    style = (package_folder() / "report" / "pages" / "templates" / "style.css").read_text(encoding="utf-8")
    loader = FileSystemLoader(Path(__file__).parents[1] / "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    answered, planned = len(ratings.main), sum(ratings.planned.values())
    page = {
        "meta": meta,
        "kind": kind.value,
        "title": _TITLES[kind],
        "facts": _facts(meta, ratings, answered, planned),
        "partial": f"{answered:,} of {planned:,} answers are given so far." if answered < planned else "",
        "left_out": ", ".join(map(str, ratings.left_out)),
        "tables": {name.removesuffix(".csv"): _rows(table) for name, table in tables.items() if name != "answers.csv"},
        "questions": QUESTIONS,
        "overall": OVERALL,
        "any": ANY,
        "artefacts": ARTEFACTS,
        "pictures": _pictures(folder, ratings, tables),
        "medtest": __version__,
    }
    return environment.get_template("report.html.j2").render(p=page, style=Markup(style))  # noqa: S704 - our own file


def _facts(meta: Mapping[str, Any], ratings: Ratings, answered: int, planned: int) -> list[tuple[str, str]]:
    facts = [
        ("Suite", f"{meta['suite']} {meta['suite_version']}"),
        (
            "Annotators",
            f"{len(ratings.planned)}" + (f" ({len(ratings.left_out)} left out)" if ratings.left_out else ""),
        ),
        ("Items", f"{len(ratings.items):,}"),
        ("Answers", f"{answered:,} of {planned:,}, repeated and catch items among them"),
        ("Made", str(meta["created"])[:10]),
        ("Second look at", str(meta.get("review_of", ""))),
    ]
    return [(name, value) for name, value in facts if value]


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    plain = table.astype(object).where(table.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]


def _pictures(folder: Path, ratings: Ratings, tables: Mapping[str, pd.DataFrame]) -> dict[str, tuple[str, str]]:
    """Return thumbnails (source, follow-up) of flagged and disputed items by address, as ``data:`` addresses."""
    addresses: list[str] = []
    for name in ("flagged.csv", "disagreements.csv", "taken_for_real.csv"):
        if name in tables:
            addresses += [str(address) for address in tables[name]["address"]]
    items = {item.address: item for item in ratings.items}
    chosen = list(dict.fromkeys(addresses))[:_THUMBNAILS]
    return {address: _thumbnails(folder, items[address]) for address in chosen if address in items}


def _thumbnails(folder: Path, item: Item) -> tuple[str, str]:
    import cv2

    from medtest.core.files.images import BadFileError, read_rgb

    thumbnails = []
    for name in (item.source_file, item.followup_file):
        try:
            image = read_rgb(folder / IMAGES / name)
        except BadFileError as error:
            raise OutputProblem(f"an image of {folder.name} {error}") from error
        scale = _THUMBNAIL_SIDE / max(image.shape[:2])
        small = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        data = cv2.imencode(".jpg", cv2.cvtColor(small, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 82])[1]
        thumbnails.append("data:image/jpeg;base64," + base64.b64encode(data.tobytes()).decode())
    return thumbnails[0], thumbnails[1]


# --- the terminal ---------------------------------------------------------------------------------------------------


_EMPTY = dict.fromkeys(("ci_low", "ci_high"), "\N{EN DASH}")


def _terminal(kind: StudyKind, tables: Mapping[str, pd.DataFrame]) -> list[RenderableType]:
    from rich.table import Table

    shown: list[tuple[str, pd.DataFrame, tuple[str, ...]]]
    if kind.is_blind:
        accuracy = ("by", "name", "answers", "percent", "ci_low", "ci_high", "wilson_low", "wilson_high")
        sides = ("real_recognised_percent", "made_recognised_percent", "published_percent")
        shown = [("Accuracy, real or made, in percent", tables["accuracy.csv"], (*accuracy, *sides))]
    elif not kind.compares:
        frames = ("artefact", "frames", "found", "percent", "ci_low", "ci_high", "published_percent")
        shown = [("Frames that show an artefact, by consensus", tables["frequencies.csv"], frames)]
    else:
        means = ("relation", "question", "items", "mean", "ci_low", "ci_high", "published")
        kappas = ("question", "scale", "kappa", "ci_low", "ci_high", "strength", "items", "raters")
        agreement = tables["agreement.csv"]
        shown = [
            ("Means, 1 to 5", tables["means.csv"], means),
            ("Randolph's kappa over all", agreement.loc[(agreement["relation"] == OVERALL).to_numpy(bool)], kappas),
        ]
    views: list[RenderableType] = []
    for title, table, columns in shown:
        view = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
        for name in columns:
            view.add_column(name)
        for row in _rows(table):
            view.add_row(*(_number(row[name]) if row[name] is not None else _EMPTY.get(name, "") for name in columns))
        views.append(view)
    return views


def _number(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


# --- MLflow ---------------------------------------------------------------------------------------------------------


def study_metrics(kind: StudyKind, tables: Mapping[str, pd.DataFrame]) -> dict[str, float]:
    """Return the metrics for MLflow: ``mean/<question>/<relation>``, ``kappa/<question>/<scale>/…``."""
    metrics: dict[str, float] = {}
    if kind.is_blind:
        for row in _rows(tables["accuracy.csv"]):
            if row["by"] != "annotator":
                metrics[f"accuracy_percent/{row['name']}"] = float(row["percent"])
    elif not kind.compares:
        for row in _rows(tables["frequencies.csv"]):
            if row["percent"] is not None:
                metrics[f"percent/{row['artefact']}"] = float(row["percent"])
    else:
        for row in _rows(tables["means.csv"]):
            if row["mean"] is not None:
                metrics[f"mean/{row['question']}/{row['relation']}"] = float(row["mean"])
        for row in _rows(tables["agreement.csv"]):
            if row["kappa"] is not None:
                scale = "levels" if row["scale"] == "5 levels" else "agree"
                metrics[f"kappa/{row['question']}/{scale}/{row['relation']}"] = float(row["kappa"])
        metrics["count/flagged"] = float(len(tables["flagged.csv"]))
        metrics["count/disagreements"] = float(len(tables["disagreements.csv"]))
    catches = tables["catches.csv"]
    if not catches.empty:
        metrics["catches_passed_percent"] = 100 * float(catches["passed"].sum()) / float(catches["shown"].sum())
    return metrics


def _track(
    folder: Path,
    home: Path,
    meta: Mapping[str, Any],
    kind: StudyKind,
    ratings: Ratings,
    tables: Mapping[str, pd.DataFrame],
) -> None:
    from medtest.report.tracking import Child, Tracker

    suite, target = str(meta["suite"]), folder / FOLDER
    tracker = Tracker(home)
    tags = {"suite": suite, "suite_version": str(meta["suite_version"]), "study": kind.value}
    name = f"{suite} {meta['suite_version']}: study of {kind.value}"
    parents = tracker.parent(suite, name, tags)
    options = {f"study.{key}": str(value) for key, value in meta["options"].items()}
    params = {"study.created": str(meta["created"]), "study.draw_number": str(meta["seed"]), **options}
    files = [(path, "study") for path in sorted(target.glob("*.csv"))]
    child = Child(
        name=f"study of {kind.value}: {folder.name}",
        run_id=_earlier(target),
        params=params,
        tags={**tags, "annotators": str(len(ratings.planned)), "answers": str(len(ratings.main))},
        metrics=study_metrics(kind, tables),
        tables={
            f"study/{Path(name).stem}.json": table
            for name, table in tables.items()
            if name != "answers.csv" and not table.empty
        },
        artifacts=[(target / PAGE, ""), *files],
    )
    failed = True
    try:
        run_id = tracker.child(suite, parents, child)
        failed = False
    finally:
        tracker.close(parents, failed=failed)
    with writing_text(target / RUN) as file:
        file.write(json.dumps({"mlflow_run_id": run_id}, indent=2) + "\n")


def _earlier(target: Path) -> str | None:
    try:
        run_id = json.loads((target / RUN).read_text(encoding="utf-8")).get("mlflow_run_id")
    except (OSError, ValueError, AttributeError):
        return None
    return str(run_id) if run_id else None

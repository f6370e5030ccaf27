"""``medtest study``: make a study in which people judge follow-ups, serve it to annotators, report the results."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtest.cli.terminal import GroupedCommands, bar, console, say
from medtest.cli.typed import ConfigDirs, Port, own_keys, split_tokens
from medtest.core.errors import typed_error
from medtest.core.files.paths import path_from_here

if TYPE_CHECKING:
    from rich.console import Console

    from medtest.study.make import MadeStudy

app = typer.Typer(cls=GroupedCommands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)

Folder = Annotated[Path, typer.Argument(help="Folder that medtest study make wrote.")]
Url = Annotated[str, typer.Option(help="Address that annotators open, if a proxy serves the study.")]
DEFAULT_PORT = 8765


@app.callback()
def study() -> None:
    """Make, serve and report a human study: do follow-ups keep the diagnosis, and are they plausible?"""


@app.command("make")
def make(
    tokens: Annotated[
        list[str] | None,
        typer.Argument(
            help="suite=NAME data=PATH kind=pairs|artefacts per_relation=100 frames=200 annotators=3 raters=N "
            "repeat=0.1 catch=0.05 training=4 draw=N to=FOLDER, blind=true with real=FOLDER (real or made?), and any "
            "key of a run (limit=, only=, relations.…)"
        ),
    ] = None,
    review: Annotated[
        Path | None, typer.Option(help="Finished study whose flagged follow-ups other annotators review.")
    ] = None,
    config_dir: ConfigDirs = None,
) -> None:
    """Draw pairs of source and follow-up, or single frames, and write the folder of a study."""
    from medtest.core.files.paths import home
    from medtest.realism.options import PLACE_KEYS, is_place_key, keys_of, real_places
    from medtest.session.runs import invocation_of
    from medtest.study.make import make_study
    from medtest.study.options import KEYS, review_options, study_options
    from medtest.suite.compose import load

    typed, out = list(tokens or []), console()
    if review is not None:
        from medtest.study.results.review import make_review

        options, to = review_options(typed)
        new_study = make_review(review, options, _target(to, home(), f"{review.name}-review"))
    else:
        keys = keys_of(typed, (*KEYS, *PLACE_KEYS, "to"))
        name, overrides, own, words = split_tokens(typed, *keys)
        _refuse_words(words, keys)
        to = own.pop("to", "")
        options = study_options({key: text for key, text in own.items() if not is_place_key(key)})
        real = real_places(own)
        if not options.kind.is_blind and any(map(is_place_key, own)):
            raise typed_error("real", "a folder of real pictures", "with blind=true alone")
        with own_keys(*keys):
            loaded = load(name, overrides, config_dirs=config_dir or [])
        target = _target(to, home(), f"{loaded.suite.name}-{options.kind.value}")
        with bar(out, "drawing") as progress:
            new_study = make_study(loaded.suite, invocation_of(loaded), options, target, progress, real=real)
    _print_study(new_study, out)


def _refuse_words(words: list[str], keys: tuple[str, ...]) -> None:
    """Refuse words without a value.

    Raises:
        UserMistakes: A word has no value.
    """
    from medtest.core.errors import UserMistakes, nearest_name, typed_mistake

    if words:
        raise UserMistakes(typed_mistake("", word, "KEY=VALUE", nearest=nearest_name(word, keys)) for word in words)


def _target(typed: str, home: Path, name: str) -> Path:
    if typed:
        return Path(typed).expanduser()
    folder = home / "studies"
    number = 1
    while (folder / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return folder / (name if number == 1 else f"{name}-{number}")


def _print_study(result: MadeStudy, out: Console) -> None:
    total = sum(result.items.values())
    counted = ", ".join(f"{name} {count}" for name, count in result.items.items())
    unit = "pairs" if result.kind.compares else "frames"
    say(
        out,
        f"{path_from_here(result.folder)}: {total:,} {unit} ({counted}), {result.catches} catch items, "
        f"{result.training} for training; {result.annotators} annotators, up to {result.longest:,} items each, "
        "repeats included.",
    )
    for notice in result.notices:
        say(out, f"  {notice}")
    say(out, f"Next:  medtest study serve {path_from_here(result.folder)}")


@app.command("serve")
def serve(
    folder: Folder,
    port: Port = DEFAULT_PORT,
    host: Annotated[str, typer.Option(help="Address to listen on. Frames may hold patient data.")] = "127.0.0.1",
    url: Url = "",
) -> None:
    """Serve a study to annotators. Each personal link is printed once."""
    from medtest.study.server.guard import site_of
    from medtest.study.server.serve import listening, make_links
    from medtest.study.server.serve import serve as serve_study
    from medtest.study.store import StudyStore

    out = console()
    site = site_of(host, port, url)
    with StudyStore(folder) as store, listening(host, port) as listener:
        links = make_links(store, site)  # printed only once, so not before they can be opened
        _print_links(links, out)
        old = len(store.annotators()) - len(links)
        if old:
            say(
                out,
                f"{old} annotators already have links; to replace them: medtest study links {path_from_here(folder)}",
            )
        say(out, f"The study is served at {site.url} (Ctrl-C stops it).")
        out.file.flush()
        with suppress(KeyboardInterrupt):  # raised again by the server when it has ended, unless the signal is ignored
            serve_study(store, site, listener)
        say(out, "Stopped. Answers and links are kept; the same command continues.")


@app.command("links")
def links(
    folder: Folder,
    annotator: Annotated[list[int] | None, typer.Option("--for", help="Number of an annotator. Default: all.")] = None,
    port: Port = DEFAULT_PORT,
    host: Annotated[str, typer.Option(help="Address to listen on, as for study serve.")] = "127.0.0.1",
    url: Url = "",
) -> None:
    """Create new links. Old links stop working, answers are kept."""
    from medtest.study.server.guard import site_of
    from medtest.study.server.serve import make_links
    from medtest.study.store import StudyStore

    with StudyStore(folder) as store:
        chosen = annotator or [number for number, _ in store.annotators()]
        new_links = make_links(store, site_of(host, port, url), chosen)
    _print_links(new_links, console())


def _print_links(links: list[tuple[int, str]], out: Console) -> None:
    if not links:
        return
    say(out, "Links, shown only once; anyone who has one can use it:")
    for number, link in links:
        say(out, f"  annotator {number}:  {link}")


@app.command("report")
def report(
    folder: Folder,
    leave_out: Annotated[
        list[int] | None, typer.Option(help="Number of an annotator whose answers are left out.")
    ] = None,
    mlflow: Annotated[bool, typer.Option(help="Track the report in MLflow.")] = True,
) -> None:
    """Write tables and report.html: means, agreement, catch items, time, disagreements, flagged follow-ups."""
    from medtest.core.files.paths import home
    from medtest.study.results.report import report_study

    out = console()
    study_report = report_study(folder, home=home(), leave_out=tuple(leave_out or ()), track=mlflow)
    for item in study_report.renderables:
        out.print(item)
    say(out, f"Report:  {path_from_here(study_report.page)}")
    if study_report.flagged:
        say(
            out,
            f"Review:  medtest study make --review {path_from_here(folder)}   ·   exclude them from a suite: "
            f"exclude.study={path_from_here(study_report.flagged)}",
        )
    for problem in study_report.problems:
        say(out, problem)
    raise typer.Exit(int(study_report.code))

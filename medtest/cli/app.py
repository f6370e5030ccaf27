"""The ``medtest`` command with its subcommands; ``medtest run …`` equals ``python run.py …``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer.main import get_command

from medtest.cli.new.skeleton import PartKind
from medtest.cli.results import technical_file
from medtest.cli.terminal import MAKE, MODELS, READ, RUN, GroupedCommands, console, say
from medtest.cli.typed import BrowserForm, ConfigDirs, JUnitOption, Port, Tokens, complete_suite, complete_token
from medtest.core import __version__
from medtest.core.plugins import Family

app = typer.Typer(
    name="medtest",
    cls=GroupedCommands,
    help="Test medical-imaging AI with metamorphic test suites.",
    epilog="Start with: medtest list suites · medtest sheet suite=polyp_seg · medtest run suite=polyp_seg limit=2",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
_PASS_ON = {"ignore_unknown_options": True, "help_option_names": []}


@app.command("run", context_settings=_PASS_ON, add_help_option=False, rich_help_panel=RUN)
def run(tokens: Annotated[list[str] | None, typer.Argument(autocompletion=complete_token)] = None) -> None:
    """Run a suite: medtest run suite=polyp_seg model=ssformer (see medtest run --help)."""
    from medtest.cli.run.launch import main

    raise typer.Exit(main(tokens or []))


@app.command("list", rich_help_panel=RUN)
def list_parts(
    kind: Annotated[Literal["suites", Family], typer.Argument(help="What to list.")],
    suite_dir: Annotated[list[Path] | None, typer.Option(help="Folder of your own suites.")] = None,
    config_dir: ConfigDirs = None,
) -> None:
    """List suites, parts that a suite can name, or tables of installed packages."""
    from medtest.cli.listing import parts_table, suites_table

    table = suites_table(list(suite_dir or [])) if kind == "suites" else parts_table(kind, config_dir or [])
    console().print(table)


@app.command("check", rich_help_panel=RUN)
def check(
    suites: Annotated[
        list[str],
        typer.Argument(
            metavar="SUITE",
            help="Suites by name or YAML file, packs (FILE.zip), runs, plans or evidence. KEY=VALUE applies to all.",
            autocompletion=complete_suite,
        ),
    ],
    signers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Public key or allowed_signers that a signature must belong to.")
    ] = None,
    config_dir: ConfigDirs = None,
) -> None:
    """Check suites without running them, compare packs with this machine, or verify runs, plans and evidence."""
    from medtest.cli.listing import check_suites
    from medtest.cli.results.evidence import check_lists, names_lists
    from medtest.cli.results.packs import check_packs, is_pack

    if names_lists(suites, signers):
        raise typer.Exit(check_lists(suites, signers=signers, console=console()))

    named = [token for token in suites if _names_suite(token)]
    overrides = [token for token in suites if token not in named]
    packs = [token for token in named if is_pack(token)]
    if packs and packs == named:
        raise typer.Exit(check_packs(packs, overrides, config_dirs=config_dir or [], console=console()))
    names = [token.removeprefix("suite=") for token in named]
    raise typer.Exit(check_suites(names, overrides, config_dirs=config_dir or [], console=console()))


def _names_suite(token: str) -> bool:
    """Return True if a token of ``medtest check`` names a suite; an existing path may contain ``=``."""
    if token.startswith("~"):
        return False
    return "=" not in token or token.startswith("suite=") or Path(token).expanduser().exists()


@app.command("new", rich_help_panel=RUN)
def new(
    kind: Annotated[PartKind, typer.Argument(help="Kind of part.")],
    name: Annotated[str, typer.Argument(help="Its name in suites, for example my_shadow.")],
    folder: Annotated[Path, typer.Option(help="Parent of the new folder.")] = Path("."),
) -> None:
    """Write a package skeleton for a part of your own, with a contract test: medtest new relation my_shadow."""
    from medtest.cli.new.skeleton import write_skeleton

    written = write_skeleton(kind, name, folder)
    say(console(), f"Wrote {written}. Next: pip install -e {written} && pytest {written}")


@app.command("sheet", rich_help_panel=RUN)
def sheet(
    tokens: Tokens,
    seed: Annotated[str, typer.Option(help="Seed as dataset/seed_id. Default: the one at --index.")] = "",
    index: Annotated[int, typer.Option(min=0, help="Position of the seed in the plan, from 0.")] = 0,
    out: Annotated[Path, typer.Option(help="Image file to write (.png or .jpg).")] = Path("sheet.png"),
    cell: Annotated[int, typer.Option(min=48, max=1024, help="Side of each image in pixels.")] = 192,
    config_dir: ConfigDirs = None,
) -> None:
    """Draw one seed under all relations and severities, with its frame and grey mask."""
    from medtest.cli.followups.images import write_sheet

    write_sheet(tokens, seed=seed, index=index, out=out, cell=cell, config_dirs=config_dir or [], console=console())


@app.command("export", rich_help_panel=MAKE)
def export(tokens: Tokens, config_dir: ConfigDirs = None) -> None:
    """Write follow-ups for your own pipeline: medtest export suite=polyp_seg to=DIR (then model=predictions)."""
    from medtest.cli.followups.images import export_images

    export_images(tokens, config_dirs=config_dir or [], console=console())


@app.command("pack", rich_help_panel=MAKE)
def pack(tokens: Tokens, config_dir: ConfigDirs = None) -> None:
    """Pack a suite or a finished run: medtest pack suite=polyp_seg to=FILE.zip (or run=SUITE/SYSTEM to=FILE.zip)."""
    from medtest.cli.results.packs import pack as pack_tokens

    pack_tokens(tokens, config_dirs=config_dir or [], console=console())


@app.command("unpack", rich_help_panel=MAKE)
def unpack(tokens: Annotated[list[str], typer.Argument(help="FILE.zip and to=FOLDER.")]) -> None:
    """Unpack a pack into a new folder: medtest unpack FILE.zip to=FOLDER (then medtest check)."""
    from medtest.cli.results.packs import unpack as unpack_tokens

    unpack_tokens(tokens, console=console())


app.command("freeze", rich_help_panel=RUN)(technical_file.freeze)


@app.command("replay", rich_help_panel=RUN)
def replay(
    tokens: Tokens,
    out: Annotated[
        Path, typer.Option(help="Folder for source.png, followup.png, params.json and, with model=, strips.")
    ] = Path("replay"),
    config_dir: ConfigDirs = None,
) -> None:
    """Recreate one case from its address: medtest replay suite=polyp_seg phantoms/phantom-0003/blur_s3_f0_r0."""
    from medtest.cli.followups.images import replay_address

    replay_address(tokens, out=out, config_dirs=config_dir or [], console=console())


@app.command("inspect", rich_help_panel=RUN)
def inspect(tokens: Tokens, config_dir: ConfigDirs = None) -> None:
    """Inspect a network under follow-ups: medtest inspect suite=robust_benchmark_melanoma limit=2."""
    from medtest.cli.results.inspect import inspect

    raise typer.Exit(inspect(tokens, config_dirs=config_dir or [], console=console()))


@app.command("tables", rich_help_panel=READ)
def tables(
    folder: Annotated[Path, typer.Argument(help="Folder of a run, or a folder that contains runs.")],
    reference: Annotated[
        Path | None, typer.Option(help="Run folder of the classifier that flip probabilities are relative to.")
    ] = None,
    junit: JUnitOption = None,
    browser: Annotated[
        BrowserForm, typer.Option(help="folder: the report shows every case, with pictures beside it in browser/.")
    ] = "page",
) -> None:
    """Recompute scores, tables and reports from records, without inference."""
    from medtest.cli.results.tables import remake_tables

    code = remake_tables(folder, reference=reference, console=console(), junit=junit or "", browser=browser)
    raise typer.Exit(code)


@app.command("merge", rich_help_panel=READ)
def merge(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of shards (…/shards/3-of-16), or a run folder with shards/.")
    ],
    out: Annotated[Path | None, typer.Option(help="Folder of the whole run. Default: below outputs/.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Move cases that no shard holds aside.")] = False,
    junit: JUnitOption = None,
) -> None:
    """Merge the shards of a run (shard=K/N), and make its tables and report."""
    from medtest.cli.run.merge import merge_shards

    raise typer.Exit(merge_shards(folders, console=console(), out=out, fresh=fresh, junit=junit or ""))


@app.command("compare", rich_help_panel=READ)
def compare(
    runs: Annotated[
        list[str],
        typer.Argument(help="Two or more runs: folders, SUITE/SYSTEM, or MLflow run ids. The first is the baseline."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the page and its tables. Default: below outputs/compare/.")
    ] = None,
    strips: Annotated[
        int,
        typer.Option(min=0, max=20, help="Newly failing, and newly passing, cases to draw; 0: only images at hand."),
    ] = 3,
    margin: Annotated[
        float,
        typer.Option(
            min=0, max=100, help="Percentage points by which a run may be worse than the baseline; else exit code 1."
        ),
    ] = 2.0,
    source_margin: Annotated[
        float | None, typer.Option(min=0, max=100, help="The same for the score on source cases. Default: --margin.")
    ] = None,
) -> None:
    """Compare finished runs case by case: medtest compare polyp_seg/pranet polyp_seg/ssformer."""
    from medtest.cli.results.compare import compare_runs
    from medtest.results.gating.conditions import Margins

    margins = Margins(percent=margin, source_percent=source_margin)
    raise typer.Exit(compare_runs(runs, out=out, strips=strips, console=console(), margins=margins))


app.command("evidence", rich_help_panel=READ)(technical_file.evidence)


@app.command("realism", rich_help_panel=MAKE)
def realism(tokens: Tokens, config_dir: ConfigDirs = None) -> None:
    """Compare made artefacts with real ones of yours: medtest realism suite=polyp_seg data=PATH real=FOLDER."""
    from medtest.cli.results.realism import compare_with_real

    compare_with_real(tokens, config_dirs=config_dir or [], console=console())


@app.command("track", rich_help_panel=READ)
def track(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs, or folders that contain runs.")],
) -> None:
    """Send results that MLflow lacks to MLFLOW_TRACKING_URI, or to the local store."""
    from medtest.cli.team.track import track_folders

    track_folders(folders, console=console())


@app.command("reference", rich_help_panel=READ)
def reference(
    model: Annotated[str, typer.Option(help="Published name, or model= name: PraNet, TGANet, AGDN, chexnet …")] = "",
    dataset: Annotated[str, typer.Option(help="Polyp data set: CVC-300, CVC-ClinicDB, CVC-ColonDB or Kvasir.")] = "",
    threshold: Annotated[float | None, typer.Option(help="Threshold of polyp figures: 0.25 or 0.5.")] = None,
) -> None:
    """Print the published figures that reports compare with."""
    from medtest.cli.results.reference import print_reference

    print_reference(model=model, dataset=dataset, threshold=threshold, console=console())


@app.command("alpha-sigma", rich_help_panel=READ)
def alpha_sigma(
    files: Annotated[list[Path], typer.Argument(help="FILE.dat, FILE.csv, records.parquet, or a folder of runs.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the files. Default: the working directory.")] = None,
    lower_is_better: Annotated[bool, typer.Option("--lower-is-better", help="Lower values are better.")] = False,
    min_step: Annotated[float | None, typer.Option(min=0.0, help="Merge scales closer than this.")] = None,
    score: Annotated[
        str | None, typer.Option(help="Score column of records. Default: the suite's primary score.")
    ] = None,
    csv: Annotated[
        bool, typer.Option("--csv", help="Also write alpha_sigma.csv, agreement.csv and paired.csv.")
    ] = False,
    svg: Annotated[bool, typer.Option("--svg", help="Also write fig_rob.svg.")] = False,
    track: Annotated[bool, typer.Option("--track", help="Log to MLflow.")] = False,
) -> None:
    """Compute (alpha,sigma)-robustness: print the table, and write tab_rob.tex and fig_rob.pdf."""
    from medtest.cli.results.alpha_sigma.command import run_alpha_sigma

    run_alpha_sigma(
        files,
        out=out or Path(),
        lower_is_better=lower_is_better,
        min_step=min_step,
        score=score,
        csv=csv,
        svg=svg,
        track=track,
        console=console(),
    )


@app.command("ui", rich_help_panel=READ)
def ui(
    port: Port = 5000,
    host: Annotated[str, typer.Option(help="Address to listen on. Results may hold patient data.")] = "127.0.0.1",
) -> None:
    """Open the MLflow UI on the results in this folder (or MEDTEST_HOME)."""
    from medtest.cli.team.ui import serve_ui

    raise typer.Exit(serve_ui(host=host, port=port, console=console()))


@app.command("server", rich_help_panel=READ)
def server(
    folder: Annotated[Path, typer.Option(help="Folder of the database, artifacts and secrets.")] = Path("mlserver"),
    port: Port = 5000,
) -> None:
    """Serve MLflow for a team on loopback, with PostgreSQL, artifacts and user accounts."""
    from medtest.cli.team.server import serve_team

    raise typer.Exit(serve_team(folder, port=port, console=console()))


@app.command("simlab", rich_help_panel=MODELS)
def simlab(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the product's draws.")] = 0,
    defect: Annotated[
        list[str] | None, typer.Option(help="Defect as NAME=RATE, e.g. refusals=0.05; repeatable.")
    ] = None,
    fault: Annotated[
        list[str] | None, typer.Option(help="Server fault as NAME=VALUE, e.g. latency=0.05; repeatable.")
    ] = None,
    key_variable: Annotated[str, typer.Option(help="Environment variable with the API key to require.")] = "",
    ocr: Annotated[str, typer.Option(help="Text recognition: edges, rapidocr or auto.")] = "edges",
) -> None:
    """Serve the SIMULATED product on loopback, to try clients or to generate load."""
    from medtest.cli.models.simlab import config_of, serve_simlab

    config = config_of(
        port=port, seed=seed, defects=defect or [], faults=fault or [], key_variable=key_variable, ocr=ocr
    )
    serve_simlab(config, console=console())


def _version(requested: bool) -> None:
    if requested:
        console().print(f"medtest {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Test medical-imaging AI with metamorphic test suites."""


@cache
def _command() -> Callable[..., object]:
    """Return the command with all command groups, whose modules import nothing heavy."""
    from medtest.cli.data.command import app as data
    from medtest.cli.followups.objects import app as objects
    from medtest.cli.followups.prompts.command import app as prompts
    from medtest.cli.followups.store import app as followups
    from medtest.cli.models.readers import app as readers
    from medtest.cli.models.weights import app as weights
    from medtest.cli.run.schema import print_schema
    from medtest.cli.study import app as study
    from medtest.cli.training.commands import app as train

    for name, room, heading, words in (
        ("weights", weights, MODELS, "Show checkpoints and convert old ones."),
        ("train", train, MODELS, "Train and evaluate networks."),
        ("readers", readers, MODELS, "Measure sensitivity and specificity of picture readers."),
        ("study", study, MAKE, "Make, serve and report a human study."),
        ("data", data, MAKE, "Inspect data sets and print commands that run on them."),
        ("prompts", prompts, MAKE, "Review prompts, have them drawn elsewhere, and import the pictures."),
        ("followups", followups, MAKE, "Make, verify and export stored follow-ups."),
        ("objects", objects, MAKE, "Build libraries of cut-out objects from images and masks."),
    ):
        app.add_typer(room, name=name, help=words, rich_help_panel=heading)
    app.command("schema", rich_help_panel=RUN)(print_schema)
    return get_command(app)


def run_app(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; errors meant for the user pass through to the caller."""
    try:
        _command()(args=list(arguments), prog_name="medtest")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0

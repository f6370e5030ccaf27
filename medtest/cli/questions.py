"""Questions in the contest's own files: a suite's as a development set, a run's answers as a submission."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from medtest.cases import SOURCE, Ask, Seed
from medtest.cli.images import split_tokens
from medtest.errors import Mistake, UserMistakes
from medtest.results.records.records_io import read_table
from medtest.results.records.wanted import RUN_FILE, Wanted
from medtest.runner.export import check_privacy
from medtest.runner.folder import output_problems, writing_text
from medtest.runs import invocation_of
from medtest.suite.compose import Loaded, load
from medtest.systems.adapters.image_files import write_image
from medtest.vqa.question_files import QuestionRow, to_development, to_submission
from medtest.vqa.questions import Question, by_name, official
from medtest.vqa.values import Kind

QUESTIONS = "gt.json"
IMAGES = "images"


def write_development(tokens: Sequence[str], *, console: Console) -> None:
    """Write the images of a suite with their questions and true answers as the contest's development set.

    Images are written as their seeds hold them, before preparation; what is read again are the same seeds.

    Args:
        tokens: ``suite=NAME to=DIR`` and whatever chooses seeds: ``data=PATH``, ``limit=N``, settings.
        console: Where it is said.

    Raises:
        UserMistakes: The suite has mistakes, asks no questions or forbids to write images, or ``to`` is missing.
        OutputProblem: The folder cannot be written.
    """
    name, overrides, own, _ = split_tokens(tokens, "to")
    if not own.get("to"):
        raise _mistake("to", "none", "to=DIR", f"medtest data questions suite={name} to=questions")
    loaded = load(name, _with_model(name, overrides))
    if not loaded.suite.task.stream:
        found = f"{name}, whose seeds expect no answers to questions"
        raise _mistake(
            "suite", found, "a suite that asks questions", "medtest data questions suite=medvqa to=questions"
        )
    check_privacy(loaded.suite)
    folder = Path(own["to"]).expanduser()
    asked: list[QuestionRow] = []
    images = 0
    with output_problems(folder / IMAGES):
        (folder / IMAGES).mkdir(parents=True, exist_ok=True)
        for image, seed in _seeds(loaded):
            write_image(folder / IMAGES / f"{image}.png", seed.image, seed.spec)
            asked += [QuestionRow(image=image, question=_question(ask), answers=ask.truth or ()) for ask in seed.asks]
            images += 1
    with writing_text(folder / QUESTIONS) as file:
        file.write(to_development(asked))
    console.print(f"{folder}: {images:,} images and {len(asked):,} questions in {QUESTIONS}.", soft_wrap=True)


def _with_model(name: str, overrides: list[str]) -> list[str]:
    """Return overrides with a system, for a suite without one asks nothing here and needs one to be whole."""
    if any(token.startswith(("model=", "systems")) for token in overrides) or name != "medvqa_clef":
        return overrides
    return [*overrides, "model=openai_compatible"]


def _seeds(loaded: Loaded) -> Iterator[tuple[str, Seed]]:
    """Yield the seeds of a suite, each with the name of its image."""
    invocation = invocation_of(loaded)
    sources = loaded.suite.build_seeds(invocation.data)
    several = len(sources) > 1
    for source in sources:
        for ref in source.refs()[: invocation.limit]:
            yield (f"{ref.dataset}_{ref.seed_id}" if several else ref.seed_id), source.load(ref)


def _question(ask: Ask) -> Question:
    known = by_name(ask.item)
    return known or Question(id=ask.id, name=ask.item, text=ask.text, kind=Kind(ask.kind))


def write_submission(run: Path, out: Path, *, console: Console) -> None:
    """Write a model's answers to the source images of a run as the contest's submission.

    Args:
        run: The run's folder.
        out: The JSON file.
        console: Where it is said, with what the contest's checker would miss.

    Raises:
        UserMistakes: The folder holds no run on the contest's questions, or its seed ids are hashed.
        OutputProblem: Records cannot be read, or the file cannot be written.
    """
    folder = run.expanduser()
    if not (folder / RUN_FILE).is_file():
        raise _mistake("RUN", str(run), f"a run's folder, with {RUN_FILE} and records", "see outputs/<suite>/<system>/")
    table = read_table(folder, ["seed_id", "item", "relation", "answer"])
    if "answer" not in table.column_names:
        raise _mistake("RUN", str(run), "the folder of a run on questions", "run suite=medvqa_clef first")
    if Wanted.from_folder(folder).hashed:
        fix = "run with privacy.seed_ids=plain: the contest tells images by their names"
        raise _mistake("RUN", f"{run}, whose seed ids are hashed", "plain seed ids", fix)
    rows = [row for row in table.to_pylist() if row["relation"] == SOURCE and by_name(row["item"] or "")]
    if not rows:
        raise _mistake("RUN", str(run), "answers to questions of MEDVQA-GI", "run suite=medvqa_clef first")
    asked = [
        QuestionRow(image=row["seed_id"], question=_known(row["item"]), answers=(row["answer"] or "",)) for row in rows
    ]
    with writing_text(out) as file:
        file.write(to_submission(asked))
    images = {row["seed_id"] for row in rows}
    console.print(f"{out}: {len(rows):,} answers of {len(images):,} images.", soft_wrap=True)
    missing = len(images) * len(official()) - len(rows)
    if missing:
        console.print(f"The contest wants 18 answers of each image: {missing:,} are missing.", soft_wrap=True)


def _known(name: str) -> Question:
    found = by_name(name)
    if found is None:
        raise ValueError(f"{name} is none of the 18 questions")
    return found


def _mistake(key: str, found: str, allowed: str, fix: str) -> UserMistakes:
    return Mistake(where="command line", key=key, found=found, allowed=allowed, fix=fix).as_error()

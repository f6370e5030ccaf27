"""Task of pictures that a text-to-image system generates from prompts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, Image, Output, PictureOutput, PreparedSeed, Prompt
from medtest.core.errors import BadOutput
from medtest.core.scenes import Pool, Scene, Tells
from medtest.core.tasks.base import (
    PROMPT,
    AskedSystem,
    Border,
    Case,
    CaseAnswer,
    Panel,
    Panels,
    Storage,
    SystemInput,
    Task,
    TaskDrawing,
    TaskReport,
    TaskTables,
)
from medtest.core.tasks.results import TaskResults
from medtest.tasks.depict.rules import LEAST_JUDGED
from medtest.tasks.depict.words import COLUMNS, Words, words_of

_MOST_PROMPT = 60


_NO_POOL = '{"entities":[],"triples":[]}'


class PictureBorder(Border):
    """Checks of generated pictures."""

    def check(self, raw: Any, shown: SystemInput, system: AskedSystem) -> PictureOutput:
        """Return an answer that a system yielded.

        Raises:
            BadOutput: The value is not a picture answer.
        """
        if not isinstance(raw, PictureOutput):
            raise BadOutput(f"gave {type(raw).__name__} where a picture is expected")
        return raw


class PromptStorage(Storage):
    """Columns of records with words of prompts; answers are not stored, since records hold the scenes to judge."""

    said_columns: ClassVar[tuple[str, ...]] = ("prompt", "revised_prompt", "answer_why")
    named_columns: ClassVar[tuple[str, ...]] = (
        *("pool", "source_pool", "effect", "scene", "tells", "source_scene", "source_tells"),
    )


class PictureDrawing(TaskDrawing):
    """Pictures with the boxes of detected objects, and the prompts beside them."""

    word_columns: ClassVar[tuple[str, ...]] = COLUMNS
    state_column: ClassVar[str] = "answer_state"

    def expected_words(self, seed: PreparedSeed) -> str:
        """Return the expectation for a seed."""
        return "what the prompt says"

    def panels(self, case: Case) -> Panels:
        """Return both pictures with the detected objects, and the texts."""
        panels = [_panel("source", case, case.before), _panel("follow-up", case, case.after)]
        panels += [Panel(name="", lines=case.words)] if case.words else []
        return Panels(panels=panels, outlines=False)

    def answer_picture(
        self, seed: PreparedSeed, output: Output, pixels: Callable[[str], Image | None]
    ) -> NDArray[np.uint8] | None:
        """Return the generated picture, None if there is none."""
        return pixels(output.picture) if isinstance(output, PictureOutput) and output.picture else None

    def words(self, record: Mapping[str, Any], source: Mapping[str, Any] | None) -> Words:
        """Return both prompts, the change, and the errors of the picture."""
        return words_of(record, source)

    def browsed(self, record: Mapping[str, Any], source: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the texts, and the boxes of what the reader detected in both pictures."""
        boxes = {f"{prefix}boxes": _boxes(record.get(f"{prefix}scene")) for prefix in ("", "source_")}
        return {**super().browsed(record, source), **boxes}

    def recorded(self, record: Mapping[str, Any]) -> PictureOutput | None:
        """Return the answer in a record, with the scene detected in its picture."""
        state = record.get("answer_state")
        if not state:
            return None
        address = Address(
            dataset=str(record["dataset"]),
            seed_id=str(record["seed_id"]),
            relation=str(record["relation"]),
            severity=int(record["severity"]),
            repeat=int(record["repeat"]),
            frame=int(record["frame"]),
        )
        scene = record.get("scene")
        facts = None
        if scene:
            facts = Scene.of_json(json.loads(scene), Tells.of_json(json.loads(record.get("tells") or "{}")))
        output = PictureOutput(
            address=address,
            prompt=Prompt(
                text=str(record.get("prompt") or ""), pool=Pool.of_json(json.loads(record.get("pool") or _NO_POOL))
            ),
            picture=str(record.get("picture") or ""),
            state=str(state),
            why=str(record.get("answer_why") or ""),
            revised_prompt=str(record.get("revised_prompt") or ""),
        )
        return output.read_as(facts)


class PictureTaskTables(TaskTables):
    """Tables of errors, misses, refusals, and figures of the pictures."""

    names: ClassVar[tuple[str, ...]] = (
        *("actesting*", "refusals", "depiction_*", "findings", "fidelity", "geneval", "duplicates", "duplicate_shares"),
    )

    def results(self, records: Any, context: Any) -> TaskResults:
        """Return error and miss rates, refusals, and figures of the pictures; empty for records without answers."""
        from medtest.results.fidelity.settings import FigureSettings
        from medtest.results.fidelity.tables import picture_tables
        from medtest.tasks.depict.results import DepictResults
        from medtest.tasks.depict.tables.results import depict_tables

        tables = depict_tables(records, phantom=context.phantom)
        if tables is None:
            return TaskResults()
        figures = picture_tables(
            records,
            FigureSettings.of(context.judging),
            folder=context.folder,
            shared=context.shared,
            hashed=context.hashed,
        )
        return DepictResults(tables, figures)


class DepictTask(Task):
    """Systems draw prompts from a stream and yield pictures, see :mod:`medtest.systems.answering.asking`.

    Only records and pictures are stored: records contain the detected scene, which a later revision can judge.
    """

    name: ClassVar[str] = "depiction"
    output: ClassVar[type[Output]] = PictureOutput
    input: ClassVar[str] = PROMPT
    oracle: ClassVar[str] = "scenes"
    border: ClassVar[Border] = PictureBorder()
    storage: ClassVar[Storage] = PromptStorage()
    drawing: ClassVar[TaskDrawing] = PictureDrawing()
    tables: ClassVar[TaskTables] = PictureTaskTables()
    report: ClassVar[TaskReport] = TaskReport(
        case_input="prompt",
        least_judged=LEAST_JUDGED,
        rate_words="The rates of all relations, as gates use them; the errors of the pictures are above.",
        strip_words="Boxes mark what the reader detected. Beside the pictures: prompts, changes and errors.",
    )


def _panel(name: str, case: Case, answer: CaseAnswer) -> Panel:
    """Return a picture with the boxes of the detected objects, and its prompt below."""
    output = answer.output
    if not isinstance(output, PictureOutput):
        return Panel(name=name, words=answer.reason or "not asked")
    below = f"{name}\n{_clipped(output.prompt.text)}" if output.prompt.text else name
    if not output.picture:
        return Panel(name=below, words=f"{output.state.replace('_', ' ')}\n{output.why}".strip())
    image = case.pixels(output.picture)
    if image is None:
        return Panel(name=below, words="the picture is no longer kept")
    entities = output.facts.entities if isinstance(output.facts, Scene) else ()
    boxes = [(entity.box, " ".join((*entity.attributes, entity.name))) for entity in entities if entity.box is not None]
    return Panel(name=below, image=image, boxes=boxes)


def _boxes(scene: Any) -> list[list[Any]]:
    """Return the boxes with their labels from the text of a scene in a record."""
    entities = Scene.of_json(json.loads(str(scene))).entities if scene else ()
    return [[list(entity.box), " ".join((*entity.attributes, entity.name))] for entity in entities if entity.box]


def _clipped(text: str) -> str:
    return text if len(text) <= _MOST_PROMPT else f"{text[: _MOST_PROMPT - 1].rstrip()}…"

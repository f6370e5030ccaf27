"""Reading of records by another reader, after a run and before its tables.

The reader may be a judge, for answers that the suite's reader could not read, or a replacement. No system is called and
no record changes: the readings are applied to the records in a view.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.errors import SEVERITY_ORDER, ExitCode
from medtest.language.questions.answers.values.answer import State
from medtest.readers.base import ReadingJob, Readings, content_key
from medtest.readers.meaning import Reading, Unread, columns_of, unread_of
from medtest.results.records.records_io import Records
from medtest.results.records.rejudging import contents_in, reader_in
from medtest.runner.pool.layout import resolve_device
from medtest.runner.privacy.hidden_words import HiddenWords

READINGS = "readings.json"
"""File with the readings, in the folder of the view."""

if TYPE_CHECKING:
    from medtest.readers.base import Reader
    from medtest.runner.reporting.outcome import Progress, RunOutcome
    from medtest.suite.model import Invocation


def read_records(
    reader: Reader[Any, Any],
    invocation: Invocation,
    outcome: RunOutcome,
    *,
    tell: Callable[[str], None],
    progress: Progress,
    words: HiddenWords | None = None,
) -> tuple[dict[str, Readings], RunOutcome]:
    """Return a reader's readings of each system's records, by system name, and the outcome with added notices.

    Args:
        reader: The reader.
        invocation: Invocation of the run.
        outcome: Outcome of the runner, with locked folders.
        tell: Called with messages on the amount of reading and on stopping.
        progress: Receives progress updates.
        words: Hides words as in the records, also in readings; None keeps them.

    Raises:
        MedtestError: The reader cannot be loaded.
    """
    by_system: dict[str, Readings] = {}
    notices, stopped = list(outcome.notices), outcome.stopped
    for system in outcome.systems:
        name = system.record_name
        records = Records.read(system.folder, reader.needs, outcome.asked)
        contents = sorted(contents_in(records, reader.needs, reader.recorded), key=content_key)
        by_system[name] = Readings(reader=reader.name, recorded=reader.recorded, marks=reader.second)
        if contents and stopped is ExitCode.INTERRUPTED:
            notices.append(f"{name}: {reader.name} was stopped before it read this system.")
            continue
        if not contents:
            notices.append(f"{name}: {reader.nothing()}")
            continue
        tell(f"{name}: {reader.announce(len(contents))}")
        job = ReadingJob(
            folder=system.folder,
            shared=invocation.shared,
            cache=invocation.cache,
            device="cpu" if reader.second or reader.of_oracle else resolve_device(invocation.device),
            threads=invocation.threads or 1,
            stopping=lambda: tell("Stopping after the calls in progress; press Ctrl-C again to abandon them."),
            progress=progress.reading,
        )
        readings = reader.readings(contents, job)
        if words is not None:
            hidden = {key: words.texts(texts) for key, texts in readings.columns.items()}
            readings = replace(readings, columns=hidden)
        by_system[name] = readings
        notices.append(f"{name}: {reader.summary(readings, len(contents))}")
        notices += [f"{name}: {line}" for line in (readings.account, readings.problem) if line]
        if readings.problem:
            stopped = min(stopped, readings.code, key=SEVERITY_ORDER.index)
    return by_system, replace(outcome, notices=tuple(notices), stopped=stopped)


def readings_text(readings: Readings) -> str:
    """Return readings as JSON text for the folder of a view, so that tables can be rebuilt without a reader."""
    content: dict[str, Any] = {"reader": readings.reader, "columns": dict(readings.columns)}
    if readings.marks:
        pairs = [[asdict(unread), asdict(reading)] for unread, reading in sorted(readings.facts.items())]
        content = {"judge": readings.reader, "cost_usd": readings.cost_usd, "found": pairs}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def kept_readings(target: Path) -> Readings | None:
    """Return the readings stored for a view, or None.

    Args:
        target: Folder of the view.
    """
    try:
        content = json.loads((target / READINGS).read_text(encoding="utf-8"))
        if "judge" not in content:
            reader = reader_in(target)
            recorded = (lambda row: None) if reader is None else reader.recorded
            return Readings(reader=str(content["reader"]), recorded=recorded, columns=content["columns"])
        by_content = {
            Unread(**unread): Reading(**{**reading, "state": State(reading["state"])})
            for unread, reading in content["found"]
        }
        return Readings(
            reader=str(content["judge"]),
            recorded=unread_of,
            columns=columns_of(by_content),
            facts=by_content,
            marks=True,
            cost_usd=content["cost_usd"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None

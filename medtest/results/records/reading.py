"""After a run, before its tables: records are read by another reader than the one that read them in the run.

It may be a judge, which reads what the suite's own reader could not, or a reader in its place. No system is asked and
no record changes: what was read is laid over them for a view.
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
"""What was read, in the folder of its view."""

if TYPE_CHECKING:
    from medtest.readers.base import Reader
    from medtest.runner import Progress, RunOutcome
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
    """Return what a reader read of each system's records, by the system's name, and the outcome with what it says.

    Args:
        reader: The reader.
        invocation: How the run was called.
        outcome: What the runner gave; its folders are locked.
        tell: Is told who reads how much, and that it is being stopped.
        progress: Is told how far it is.
        words: How records keep words, by which what is read is kept too; as they are where it is None.

    Raises:
        MedtestError: The reader cannot be loaded.
    """
    found: dict[str, Readings] = {}
    notices, stopped = list(outcome.notices), outcome.stopped
    for system in outcome.systems:
        name = system.record_name
        records = Records.read(system.folder, reader.needs, outcome.asked)
        contents = sorted(contents_in(records, reader.needs, reader.recorded), key=content_key)
        found[name] = Readings(reader=reader.name, recorded=reader.recorded, marks=reader.second)
        if contents and stopped is ExitCode.INTERRUPTED:
            notices.append(f"{name}: {reader.name} was stopped before it.")
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
            stopping=lambda: tell("Stopping: calls under way are let end; Ctrl-C again gives them up."),
            progress=progress.reading,
        )
        readings = reader.readings(contents, job)
        if words is not None:
            shown = {key: words.texts(texts) for key, texts in readings.columns.items()}
            readings = replace(readings, columns=shown)
        found[name] = readings
        notices.append(f"{name}: {reader.summary(readings, len(contents))}")
        notices += [f"{name}: {line}" for line in (readings.account, readings.problem) if line]
        if readings.problem:
            stopped = min(stopped, readings.code, key=SEVERITY_ORDER.index)
    return found, replace(outcome, notices=tuple(notices), stopped=stopped)


def readings_text(readings: Readings) -> str:
    """Return readings as a view's folder keeps them: with them tables are made again without a reader."""
    content: dict[str, Any] = {"reader": readings.reader, "columns": dict(readings.columns)}
    if readings.marks:
        found = [[asdict(unread), asdict(reading)] for unread, reading in sorted(readings.found.items())]
        content = {"judge": readings.reader, "cost_usd": readings.cost_usd, "found": found}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def kept_readings(target: Path) -> Readings | None:
    """Return what was read for a view, or None where nothing was.

    Args:
        target: The view's folder.
    """
    try:
        content = json.loads((target / READINGS).read_text(encoding="utf-8"))
        if "judge" not in content:
            reader = reader_in(target)
            recorded = (lambda row: None) if reader is None else reader.recorded
            return Readings(reader=str(content["reader"]), recorded=recorded, columns=content["columns"])
        found = {
            Unread(**unread): Reading(**{**reading, "state": State(reading["state"])})
            for unread, reading in content["found"]
        }
        return Readings(
            reader=str(content["judge"]),
            recorded=unread_of,
            columns=columns_of(found),
            found=found,
            marks=True,
            cost_usd=content["cost_usd"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None

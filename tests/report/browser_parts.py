"""Runs with thumbnails and hostile texts, for tests of the browser of cases."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from records_maker import write_records
from report_parts import leave_run

from medtest.core.records import addresses
from medtest.runner.records.answers import THUMBNAILS, AnswerWriter, KeptAnswer
from medtest.runner.records.thumbnails import MARKS, PICTURE, encode, of_record, outlined
from medtest.runner.reporting.outcome import RunOutcome
from medtest.suite.model import Suite

EVIL = "</script><img src=x onerror=alert(1)>'\"&\u2028<!--"


def with_thumbnails(home: Path, suite: Suite, systems: tuple[str, ...] = ("alpha",), **options: Any) -> RunOutcome:
    """Write runs as :func:`leave_run` does, with hashes and thumbnails; the seed ``seed00000`` gets a hostile name."""
    outcome = leave_run(home, suite, systems, **options)
    for system_outcome in outcome.systems:
        frame = pd.read_parquet(system_outcome.folder / "records.parquet")
        frame["seed_id"] = frame.seed_id.replace("seed00000", EVIL)
        frame["address"] = addresses({name: frame[name].tolist() for name in frame.columns})
        frame["source_sha256"] = [sha256_of(seed) for seed in frame.seed_id]
        frame["followup_sha256"] = [
            source if relation == "source" else sha256_of(address)
            for source, relation, address in zip(frame.source_sha256, frame.relation, frame.address, strict=True)
        ]
        frame["answer_sha256"] = ""
        write_records(frame, system_outcome.folder)
        leave_thumbnails(system_outcome.folder, frame)
    return outcome


def sha256_of(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def leave_thumbnails(folder: Path, frame: pd.DataFrame) -> None:
    """Write a picture and outlines for every case, unequal to each other."""
    writer = AnswerWriter(folder, THUMBNAILS)
    y, x = np.mgrid[:64, :64]
    for number, row in enumerate(frame.to_dict("records")):
        picture = np.full((64, 64, 3), (number % 256, number // 256 % 256, 90), np.uint8)
        writer.add(KeptAnswer(row["followup_sha256"], PICTURE, encode(picture)))
        marks = outlined((x - 30) ** 2 + (y - 30) ** 2 < 200, (x - 36) ** 2 + (y - 30) ** 2 < 200)
        if marks is not None:
            writer.add(KeptAnswer(of_record(MARKS, row), MARKS, marks.as_bytes()))
    writer.flush()

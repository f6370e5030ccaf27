"""Files of an inspection beside its run: tables, captioned pictures, chord diagrams of labels, an index."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.deferred import pd
from medtest.core.files.written import WrittenFiles
from medtest.report.pages.material import INSIDE
from medtest.runner.folder import output_problems, writing_text

if TYPE_CHECKING:
    from medtest.core.cases import Classes


@dataclass(kw_only=True)
class Inspected:
    """Result of inspecting one system.

    Attributes:
        system: Name of the system in records.
        folder: Folder of its run.
        files: Written files, in ``inside/``.
        layers: The inspected layers.
        cases: Number of inspected follow-ups.
        notices: Lines for the user.
    """

    system: str
    folder: Path
    files: list[Path] = field(default_factory=list)
    layers: list[str] = field(default_factory=list)
    cases: int = 0
    notices: list[str] = field(default_factory=list)


class InsideFiles:
    """Writes the files of one inspected system.

    Args:
        inspected: Result of the inspection; files and notices are added to it.
    """

    def __init__(self, inspected: Inspected) -> None:
        self.result = inspected
        self._pictures: list[dict[str, str]] = []

    @property
    def target(self) -> Path:
        """Folder of the files."""
        return self.result.folder / INSIDE

    def clear(self, *patterns: str) -> None:
        """Remove files of an earlier inspection that match the patterns; users' files stay.

        Raises:
            OutputProblem: A file cannot be removed.
        """
        with output_problems(self.target / patterns[0]):
            self.target.mkdir(parents=True, exist_ok=True)
            written = WrittenFiles(self.target)
            written.remove(path.name for pattern in patterns for path in self.target.glob(pattern))

    def add(self, file: Path, words: str) -> None:
        """Register a drawn picture with its caption."""
        self._note(file)
        self.result.files.append(file)
        self._pictures.append({"file": file.name, "words": words})

    def table(self, name: str, rows: Sequence[Mapping[str, Any]] | pd.DataFrame) -> None:
        """Write a table, unless it is empty."""
        frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
        if frame.empty:
            return
        file = self.target / f"{name}.csv"
        with writing_text(file) as opened:
            frame.to_csv(opened, index=False, float_format="%.6g", lineterminator="\n")
        self._note(file)
        self.result.files.append(file)

    def chords(self, classes: Sequence[Classes], threshold: float | None) -> None:
        """Write the pairs of labels in the run's records, if there are records and several labels may be true."""
        from medtest.report.inside.chords import draw_chords
        from medtest.results.rates.cooccurrence import PUBLISHED_SHARE, cooccurrence_table, cooccurrences
        from medtest.results.records.records_io import Records

        several = [labels for labels in classes if labels.multi]
        if not several:
            return
        if not (self.result.folder / "records.parquet").is_file():
            self.result.notices.append("Chords of labels are drawn from a run's records; there is no finished run yet.")
            return
        names = list(dict.fromkeys(name for labels in several for name in labels.names))
        records = Records.read(self.result.folder, ["label", "relation", "severity"])
        table = cooccurrence_table(records, names)
        self.table("cooccurrence", table)
        groups = [("clean", *cooccurrences(_texts(records.sources), names))]
        rows = records.followups
        for relation in list(dict.fromkeys(rows["relation"].astype(str)))[:5]:
            own = rows[(rows["relation"].astype(str) == relation).to_numpy()]
            level = int(own["severity"].max())
            own = own[(own["severity"] == level).to_numpy()]
            title = relation.replace("_", " ") + (f", severity {level}" if level else "")
            groups.append((title, *cooccurrences(_texts(own), names)))
        file = self.target / "chords.png"
        draw_chords(groups, names, file, threshold=PUBLISHED_SHARE if threshold is None else threshold)
        self.add(
            file, "Labels that are answered together: on the sources, and under each relation at its last severity"
        )

    def index(self) -> None:
        """Write the index of pictures."""
        file = self.target / "index.json"
        with writing_text(file) as opened:
            opened.write(json.dumps(self._pictures, indent=2, ensure_ascii=False) + "\n")
        self.result.files.append(file)
        self._note(file)

    def _note(self, file: Path) -> None:
        with output_problems(file):
            WrittenFiles(self.target).note([file.name])


def _texts(rows: Any) -> list[str | None]:
    return [value if isinstance(value, str) else None for value in rows["label"].tolist()]

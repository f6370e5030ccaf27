"""Result of a run for the Python program that started it."""

from __future__ import annotations

import html
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from medtest.core.deferred import pd
from medtest.core.errors import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from medtest.report.finish import Finished
    from medtest.report.pages.material import Material
    from medtest.runner.reporting.outcome import RunOutcome
    from medtest.suite.model import Suite

_WIDTH = 110
"""Characters per line of :meth:`Result.text`."""


@dataclass(frozen=True, eq=False)
class Result:
    """Result of a run; tables and records are read on demand.

    Attributes:
        suite: The suite as it was run.
        outcome: Folders, counts and notices of each system.
        finished: Tables, reports and gates of each system.
    """

    suite: Suite
    outcome: RunOutcome
    finished: Finished

    @property
    def code(self) -> ExitCode:
        """Exit code of the equivalent command line."""
        return self.finished.code

    @property
    def ok(self) -> bool:
        """True if no gate failed, errors are within the limit, and results are tracked."""
        return self.code is ExitCode.OK

    @property
    def folders(self) -> Mapping[str, Path]:
        """Folder of each system by its name in records: ``outputs/<suite>/<system>/<digest>``."""
        return {system.record_name: system.folder for system in self.outcome.systems}

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices: left-out or reused cases, notices of the systems, problems.

        They include warnings about the sources' scores, such as "every unchanged image scores 0".
        """
        warned = [
            f"{material.system}: {line}" for material in self.finished.materials for line in material.tables.notices
        ]
        return (*self.outcome.notices, *warned, *self.finished.problems)

    @cached_property
    def records(self) -> pd.DataFrame:
        """One row for each requested case, follow-ups and sources, of all systems.

        Columns are those of ``records.parquet``.

        Raises:
            OutputProblem: A folder no longer holds its records.
        """
        from medtest.results.records.records_io import read_table

        frames = []
        for system in self.outcome.systems:
            table = read_table(system.folder)
            cases = self.outcome.asked
            frames.append((table if cases is None else table.take(cases.rows(table))).to_pandas())
        records: pd.DataFrame = pd.concat(frames, ignore_index=True)
        return records

    @property
    def efr(self) -> pd.DataFrame:
        """Error-finding rates: ``tables/efr.csv`` of all systems, with a first column ``system``."""
        return self.tables["efr"]

    @cached_property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """Every table of all systems by its file name without the suffix, with a first column ``system``."""
        frames_by_name: dict[str, list[pd.DataFrame]] = {}
        for material in self.finished.materials:
            for name, frame in material.tables.frames().items():
                frames_by_name.setdefault(name.removesuffix(".csv"), []).append(_of_system(material, frame))
        return {name: pd.concat(frames, ignore_index=True) for name, frames in frames_by_name.items()}

    @property
    def gates(self) -> pd.DataFrame:
        """Results of the suite's gates, one row each; empty without gates."""
        return self.tables.get("gates", pd.DataFrame({"system": [], "held": []}))

    @property
    def reports(self) -> Mapping[str, Path]:
        """The page ``report.html`` of each system."""
        names = [material.system for material in self.finished.materials]
        return dict(zip(names, self.finished.reports, strict=True))

    @property
    def report(self) -> Path:
        """The main page: the comparison page for several systems, else the report."""
        return self.finished.comparison or self.finished.reports[0]

    def text(self) -> str:
        """Return the final output of the command line: rates, gates, notices, location of the report."""
        return self._shown().export_text()

    def _shown(self) -> Console:
        from rich.console import Console

        console = Console(file=io.StringIO(), width=_WIDTH, record=True)
        for item in self.finished.renderables:
            console.print(item)
            console.print()
        for line in (*self.outcome.notices, *self.finished.problems):  # the tables already include the warnings
            console.print(line, markup=False)
        console.print(f"Report:  {self.report}", markup=False, soft_wrap=True)
        return console

    def __repr__(self) -> str:
        systems = ", ".join(system.record_name for system in self.outcome.systems)
        return f"<medtest.Result {self.suite.name}: {self.finished.note or systems}; exit code {int(self.code)}>"

    def _repr_html_(self) -> str:
        """Return the notebook representation: rates, gates, and a link to the report."""
        shown = self._shown().export_html(inline_styles=True, code_format='<pre style="line-height:1.2">{code}</pre>')
        link = html.escape(self.report.resolve().as_uri(), quote=True)
        return f'<div>{shown}<p><a href="{link}">report.html</a></p></div>'


def _of_system(material: Material, frame: pd.DataFrame) -> pd.DataFrame:
    if "system" in frame.columns:
        return frame
    named = frame.copy()
    named.insert(0, "system", material.system)
    return named

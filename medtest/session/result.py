"""What a run gives back to the Python program that started it."""

from __future__ import annotations

import html
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from medtest.core.errors import ExitCode

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from medtest.report.finish import Finished
    from medtest.report.pages.material import Material
    from medtest.runner import RunOutcome
    from medtest.suite.model import Suite

_WIDTH = 110
"""Characters of a line of :meth:`Result.text`."""


@dataclass(frozen=True, eq=False)
class Result:
    """What came out of a run; tables and records are read when they are asked for.

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
        """The exit code that the command line would end with."""
        return self.finished.code

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong: gates are held, few cases are errors, results are tracked."""
        return self.code is ExitCode.OK

    @property
    def folders(self) -> Mapping[str, Path]:
        """The folder of each system by its name in records: ``outputs/<suite>/<system>/<digest>``."""
        return {one.record_name: one.folder for one in self.outcome.systems}

    @property
    def notices(self) -> tuple[str, ...]:
        """Lines to be read: what was left out or used again, what the systems say of themselves, what went wrong.

        Among them what the sources' scores warn of, as "every unchanged image scores 0".
        """
        warned = [f"{one.system}: {line}" for one in self.finished.materials for line in one.tables.notices]
        return (*self.outcome.notices, *warned, *self.finished.problems)

    @cached_property
    def records(self) -> pd.DataFrame:
        """One row for each case that was asked for, follow-ups and sources, of all systems.

        Columns are those of ``records.parquet``.

        Raises:
            OutputProblem: A folder no longer holds its records.
        """
        import pandas as pd

        from medtest.results.records.records_io import read_table

        frames = []
        for one in self.outcome.systems:
            table = read_table(one.folder)
            asked = self.outcome.asked
            frames.append((table if asked is None else table.take(asked.rows(table))).to_pandas())
        records: pd.DataFrame = pd.concat(frames, ignore_index=True)
        return records

    @property
    def efr(self) -> pd.DataFrame:
        """Error finding rates: ``tables/efr.csv`` of all systems, with a first column ``system``."""
        return self.tables["efr"]

    @cached_property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """Every table of all systems by its file's name without the ending, with a first column ``system``."""
        import pandas as pd

        found: dict[str, list[pd.DataFrame]] = {}
        for material in self.finished.materials:
            for name, frame in material.tables.frames().items():
                found.setdefault(name.removesuffix(".csv"), []).append(_of_system(material, frame))
        return {name: pd.concat(frames, ignore_index=True) for name, frames in found.items()}

    @property
    def gates(self) -> pd.DataFrame:
        """What became of the suite's gates, a row each; without a row where none is set."""
        import pandas as pd

        return self.tables.get("gates", pd.DataFrame({"system": [], "held": []}))

    @property
    def reports(self) -> Mapping[str, Path]:
        """The page ``report.html`` of each system."""
        names = [material.system for material in self.finished.materials]
        return dict(zip(names, self.finished.reports, strict=True))

    @property
    def report(self) -> Path:
        """The page to open first: of several systems the one that sets them side by side."""
        return self.finished.comparison or self.finished.reports[0]

    def text(self) -> str:
        """Return what the command line prints at the end: rates, gates, notices, where the report lies."""
        return self._shown().export_text()

    def _shown(self) -> Console:
        from rich.console import Console

        console = Console(file=io.StringIO(), width=_WIDTH, record=True)
        for item in self.finished.renderables:
            console.print(item)
            console.print()
        for line in (*self.outcome.notices, *self.finished.problems):  # the warnings stand among the tables
            console.print(line, markup=False)
        console.print(f"Report:  {self.report}", markup=False, soft_wrap=True)
        return console

    def __repr__(self) -> str:
        systems = ", ".join(one.record_name for one in self.outcome.systems)
        return f"<medtest.Result {self.suite.name}: {self.finished.note or systems}; exit code {int(self.code)}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the rates, the gates, and a link to the report."""
        shown = self._shown().export_html(inline_styles=True, code_format='<pre style="line-height:1.2">{code}</pre>')
        link = html.escape(self.report.resolve().as_uri(), quote=True)
        return f'<div>{shown}<p><a href="{link}">report.html</a></p></div>'


def _of_system(material: Material, frame: pd.DataFrame) -> pd.DataFrame:
    if "system" in frame.columns:
        return frame
    named = frame.copy()
    named.insert(0, "system", material.system)
    return named

"""Runs as evidence: their tables made again from records, the plan they follow, and the state of their files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from medtest.core.files import read_object
from medtest.evidence.checking import FileState, check_list, read_list
from medtest.report.compared.pairs import read_material
from medtest.report.pages.material import Material
from medtest.results.gating import gate_log
from medtest.results.records.wanted import SUITE_FILE
from medtest.runner.folder import MANIFEST
from medtest.runner.reporting.frozen import COPY, STATED, is_plan, is_whole
from medtest.suite.model import TRACE


@dataclass(frozen=True, kw_only=True)
class RunEvidence:
    """A finished run as evidence.

    Attributes:
        material: Material of its report.
        composed: Its suite in composed form.
        plan: The frozen plan it follows; None if there is none.
        evaluations: Evaluations of its gates, oldest first.
        files: Its files by name below its folder, with their SHA-256.
        changed: State of the files that are not as the run left them, by name.
    """

    material: Material
    composed: Mapping[str, Any]
    plan: Mapping[str, Any] | None = None
    evaluations: Sequence[Mapping[str, Any]] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, FileState] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> RunEvidence:
        """Read a run's folder, without writing anything.

        Raises:
            OutputProblem: The folder holds no readable records, or results of another format.
        """
        material = read_material(folder)
        plan, stated = read_object(folder / COPY), material.run.get(STATED) or {}
        return cls(
            material=material,
            composed=yaml.safe_load((folder / SUITE_FILE).read_text(encoding="utf-8")),
            plan=plan if is_plan(plan) and is_whole(plan) and plan.get("hash") == stated.get("hash") else None,
            evaluations=gate_log.read(folder),
            files=read_list(folder / MANIFEST),
            changed={
                name: state for name, state in check_list(folder / MANIFEST).items() if state is not FileState.SAME
            },
        )

    @property
    def name(self) -> str:
        """Name of the system, with that of the suite."""
        return f"{self.material.system} under {self.material.wanted.suite} {self.material.wanted.version}"

    @property
    def frozen(self) -> Mapping[str, Any]:
        """Statement of the run on its frozen plan; empty without one."""
        stated = self.material.run.get(STATED)
        return stated if isinstance(stated, dict) and self.plan is not None else {}

    @property
    def caution(self) -> str:
        """Caution beside the verdict of the gates if they may have been set after results; "" for nothing."""
        if not self.frozen:
            return "No plan was frozen before the first case."
        if int(self.frozen.get("cases_before") or 0):
            return "The plan was frozen after cases were finished."
        changed = any(str(part).startswith("gates") for part in self.frozen.get("differs", ()))
        return "The gates differ from the frozen plan." if changed else ""

    def ties(self, relation: str) -> dict[str, str]:
        """Return the ties of a relation."""
        settings = self.composed["relations"].get(relation, {})
        return {name: str(settings[name]) for name in TRACE if settings.get(name)}

    def deviations(self) -> Iterator[tuple[str, str]]:
        """Yield the deviations that limit the results: a short kind, and a sentence."""
        yield from self._of_plan()
        for entry in gate_log.last_of_each(self.evaluations):
            if entry.get("view") or not gate_log.is_set(entry, self.material.tables.gates):
                yield "Other gates", f"Judged at {entry.get('time')}: {'; '.join(_gate_sentences(entry))}"
        counts, tables = self.material.tables.counts, self.material.tables
        for verdict, code, reason, count in counts.reasons:
            yield verdict, f"{count:,} cases: {reason or code}"
        if counts.source_errors:
            yield "ERROR", f"{counts.source_errors:,} source cases ended in an error; their follow-ups are not judged."
        if self.material.partial:
            yield "Partial", self.material.partial
        if tables.excluded_words:
            yield "Excluded", tables.excluded_words
        yield from (("Warning", notice) for notice in tables.notices)
        if words := gate_log.lost(self.material.folder):
            yield "Warning", words
        for name, state in self.changed.items():
            yield "Changed file", f"{name} is {state.value}"

    def _of_plan(self) -> Iterator[tuple[str, str]]:
        if not self.frozen:
            yield "No frozen plan", "The run follows no plan that was frozen before its first case."
            return
        before = int(self.frozen.get("cases_before") or 0)
        if before:
            yield "Plan after cases", f"{before:,} cases were finished when the plan was frozen."
        for part in self.frozen.get("differs", ()):
            yield "Differs from the plan", str(part)
        planned = {tuple(row[:2]): row[2] for row in (self.plan or {})["data"]["seeds"]}
        seeds = self.material.tables.seeds
        actual = dict(zip(zip(seeds["dataset"], seeds["seed_id"], strict=True), seeds["source_sha256"], strict=True))
        other = [f"{dataset}/{seed}" for (dataset, seed), sha in actual.items() if planned.get((dataset, seed)) != sha]
        if other:
            yield "Data differ from the plan", f"{len(other):,} source images: {', '.join(other[:5])}"
        missing = len(planned.keys() - actual.keys())
        if missing:
            yield "Data not run", f"{missing:,} planned source images have no case."


def _gate_sentences(entry: Mapping[str, Any]) -> list[str]:
    return [f"{gate.get('verdict', '')}: {gate.get('said', '')}" for gate in entry["gates"]]

"""Pictures to draw after all cases have run: strips of each system, montages and volumes of a series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from medtest.runner.folder import output_problems, series_folder, view_folder
from medtest.runner.pictures import samples as sampling
from medtest.runner.pictures.montage import MONTAGE
from medtest.runner.pictures.volume_cases import extreme_cases
from medtest.runner.pool.messages import Montage, Strip, StripTask, VolumePicture
from medtest.runner.records.answers import AnswerStore
from medtest.runner.records.case_set import CaseSet
from medtest.runner.records.ledger import CasePlaces, RecordLedger

if TYPE_CHECKING:
    from medtest.runner.prepared import PreparedRun

_T = TypeVar("_T")


@dataclass(kw_only=True)
class Pictures:
    """Pictures of one view of a run: of all cases in its folders, or of the requested ones.

    Attributes:
        prepared: The run.
        ledgers: The systems' records.
        places: Places of records in the plan.
        home: Folder that holds ``outputs/``.
        count: Number of strips per system.
        asked: The requested cases; None for all in a folder.
        view: Digest of their view, "" for the folders' own.
        new: Strips to draw, by the folder that holds their ``samples/``.
    """

    prepared: PreparedRun
    ledgers: Sequence[RecordLedger]
    places: CasePlaces
    home: Path
    count: int
    asked: CaseSet | None = None
    view: str = ""
    new: dict[Path, list[sampling.Sample]] = field(default_factory=dict)

    def write_indices(self) -> None:
        """Write the index of the drawn strips, which marks them as complete.

        Raises:
            OutputProblem: It cannot be written.
        """
        for folder, samples in self.new.items():
            sampling.write_index(folder, samples)

    def strips(self) -> dict[int, list[Strip]]:
        """Return the strips to draw by unit, and remove those that no longer match the records."""
        tasks: dict[int, list[Strip]] = {}
        for number, ledger in enumerate(self.ledgers):
            target = view_folder(ledger.folder, self.view)
            if self._draws_none:
                sampling.clear(target)
                continue
            chosen = sampling.choose(
                ledger.folder,
                self.places,
                oracle=self.prepared.suite.build_oracle(),
                primary=self.prepared.suite.oracle.primary,
                count=self.count,
                asked=self.asked,
            )
            if sampling.kept(target, chosen):
                continue
            with output_problems(target / sampling.FOLDER):
                (target / sampling.FOLDER).mkdir(parents=True, exist_ok=True)
            sampling.clear(target)
            sampling.expect(target, chosen)
            self.new[target] = chosen
            name, store = self.prepared.systems[number].record_name, AnswerStore(ledger.folder)
            for sample in chosen:
                unit, case = divmod(sample.place, self.places.width)
                title, detail = sample.caption(name)
                file = str((target / sampling.FOLDER / sample.file).resolve())
                before, after = (store.read(stored.encode()) for stored in sample.stored)
                tasks.setdefault(unit, []).append(
                    Strip(number, case, file, title, detail, sample.words, sample.answers, (before, after))
                )
        return tasks

    def montages(self) -> dict[int, list[Montage]]:
        """Return the montages of a series' first seed if records changed or there are none yet; call strips first.

        The first seed is the first one with a case to draw.
        """
        if not self.prepared.suite.task.series or self._draws_none:
            return {}
        has_case = self._shown()
        plan = self.prepared.plan
        units = np.flatnonzero(has_case.any(axis=1))
        if not units.size:
            return {}
        unit = int(units[0])
        pictures: list[Montage] = []
        for relation in dict.fromkeys(step.relation for step in plan.shape if step.severity > 0):
            file = series_folder(self.home, self.prepared.suite.name, self.view) / relation / MONTAGE
            cases = [
                number
                for number, step in enumerate(plan.shape, start=1)
                if (step.relation, step.repeat, step.frame) == (relation, 0, 0) and has_case[unit, number]
            ]
            if cases and (self.new or not file.is_file()):
                pictures.append(Montage(tuple(cases), str(file.resolve()), f"{self._title(unit)}  ·  {relation}"))
        return {unit: pictures}

    def volumes(self) -> dict[int, list[VolumePicture]]:
        """Return the volumes to draw by unit, like :meth:`montages`; their seeds decide whether they are volumes."""
        task = self.prepared.suite.task
        if not (task.series and task.masks) or self._draws_none:
            return {}
        pictures: dict[int, list[VolumePicture]] = {}
        for relation, extreme, place in extreme_cases(self.ledgers[0].folder, self.places, self.asked):
            folder = series_folder(self.home, self.prepared.suite.name, self.view) / relation
            if self.new or not (folder / f"{extreme}-slices.png").is_file():
                unit, case = divmod(place, self.places.width)
                title = f"{self._title(unit)}  ·  {relation.replace('_', ' ')}"
                pictures.setdefault(unit, []).append(VolumePicture(case, str(folder.resolve()), extreme, title))
        return pictures

    @property
    def _draws_none(self) -> bool:
        return self.prepared.suite.privacy.images == "none" or self.count == 0

    def _shown(self) -> NDArray[np.bool_]:
        """Return which cases have pictures: units × cases of the longest unit."""
        finished = self.ledgers[0].finished()
        chosen = finished if self.asked is None else finished & self.prepared.chosen
        return chosen.reshape(-1, self.places.width)

    def _title(self, unit: int) -> str:
        """Return suite and seed, with the seed's name if names are shown."""
        seed = self.prepared.plan.refs[unit].seed_id if self.prepared.names.key is None else "one seed"
        return f"{self.prepared.suite.name}: {seed}"


def drawing_tasks(prepared: PreparedRun, views: Sequence[Pictures]) -> Iterator[StripTask]:
    """Yield one task for each seed with pictures."""
    strips: dict[int, list[Strip]] = {}
    montages: dict[int, list[Montage]] = {}
    volumes: dict[int, list[VolumePicture]] = {}
    for view in views:
        _add(strips, view.strips())
        _add(montages, view.montages())
        _add(volumes, view.volumes())
    for unit in sorted({*strips, *montages, *volumes}):
        yield StripTask(
            index=unit,
            source=int(prepared.owners[unit]),
            ref=prepared.plan.refs[unit],
            strips=tuple(strips.get(unit, ())),
            montages=tuple(montages.get(unit, ())),
            volumes=tuple(volumes.get(unit, ())),
        )


def _add(to: dict[int, list[_T]], additions: Mapping[int, list[_T]]) -> None:
    for unit, pictures in additions.items():
        to.setdefault(unit, []).extend(pictures)

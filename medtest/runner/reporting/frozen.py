"""Frozen plans: what a suite was going to test, written before the first case, and what a run does differently."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medtest.core.files import json_sha256, read_object
from medtest.runner.folder import OUTPUTS, writing_text
from medtest.runner.reporting.software import versions
from medtest.suite.digest import Digest
from medtest.suite.model import Suite

FOLDER = "frozen"
"""Folder of a suite's frozen plans, ``outputs/<suite>/frozen``."""
COPY = "frozen_plan.json"
"""Copy of the plan in the folder of a run that follows it."""
STATED = "frozen"
"""Key of ``run.json`` with the statement on the plan that the run follows."""
KIND = "medtest frozen plan"
FORMAT = 1
"""Layout of a frozen plan; raised when it changes."""
_HASH = "hash"
_SETTINGS = ("settings", "seed")
"""Parts of a digest's content that the composed suite states too."""
_LONGEST = 80
_NAMED = 6
"""Number of differences in a notice."""


@dataclass(frozen=True, kw_only=True)
class Followed:
    """Frozen plan that a system's run follows.

    Attributes:
        plan: Content of the plan.
        cases_before: Cases of this run that were finished when the plan was frozen; 0 for a plan made in time.
        differs: Parts that differ from the plan, as ``key: planned → actual``.
    """

    plan: Mapping[str, Any]
    cases_before: int = 0
    differs: tuple[str, ...] = field(default=())

    def stated(self) -> dict[str, Any]:
        """Return the statement for ``run.json``."""
        return {
            "hash": self.plan[_HASH],
            "frozen_at": self.plan["frozen_at"],
            "cases_before": self.cases_before,
            "differs": list(self.differs),
        }

    @property
    def words(self) -> str:
        """The statement as the rest of a sentence on a system."""
        late = f"; {self.cases_before:,} cases were finished before it" if self.cases_before else ""
        more = len(self.differs) - _NAMED
        named = [*self.differs[:_NAMED], *([f"and {more} more, in run.json"] if more > 0 else [])]
        differs = f"; parts that differ: {'; '.join(named)}" if named else "; no part differs"
        return f"follows the plan frozen at {self.plan['frozen_at']}, {self.plan[_HASH][:16]}{late}{differs}."

    def write_copy(self, folder: Path) -> None:
        """Write the plan into the folder of a run.

        Raises:
            OutputProblem: It cannot be written.
        """
        with writing_text(folder / COPY) as file:
            file.write(plan_text(self.plan))


def plan_text(plan: Mapping[str, Any]) -> str:
    """Return a frozen plan as JSON text."""
    return json.dumps(plan, indent=1, ensure_ascii=False) + "\n"


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a plan with the hash over all of it."""
    return {**content, _HASH: json_sha256(content)}


def is_plan(content: Mapping[str, Any]) -> bool:
    """Return True if a JSON object is a frozen plan, whole or changed."""
    return content.get("kind") == KIND


def is_whole(plan: Mapping[str, Any]) -> bool:
    """Return True if a plan's content has the hash that it states."""
    return plan.get(_HASH) == json_sha256({key: value for key, value in plan.items() if key != _HASH})


def plans_folder(home: Path, suite: str) -> Path:
    """Return the folder of a suite's frozen plans."""
    return home / OUTPUTS / suite / FOLDER


def read_plans(home: Path, suite: str) -> tuple[list[dict[str, Any]], list[Path]]:
    """Return the unchanged frozen plans of a suite, oldest first, and the files of plans that cannot be followed."""
    plans, unusable = [], []
    for path in sorted(plans_folder(home, suite).glob("*.json")):
        plan = read_object(path)
        if is_plan(plan) and is_whole(plan) and plan.get("format") == FORMAT:
            plans.append(plan)
        else:
            unusable.append(path)
    return sorted(plans, key=lambda plan: str(plan["frozen_at"])), unusable


def followed_plans(home: Path, suite: Suite, digests: Sequence[Digest]) -> tuple[Followed | None, ...]:
    """Return the plan that each system's run follows, the newest that covers the system; None without one.

    Args:
        home: Folder that holds ``outputs/``.
        suite: The suite of the run.
        digests: Digest of each of its systems, in order.
    """
    plans, _ = read_plans(home, suite.name)
    if not plans:
        return (None,) * len(digests)
    composed = json.loads(json.dumps(suite.composed))
    followed: list[Followed | None] = []
    for system, digest in zip(suite.systems, digests, strict=True):
        plan = next((plan for plan in reversed(plans) if system.id in plan["covers"]), None)
        covers = json.loads(json.dumps(digest.covers))
        followed.append(
            None
            if plan is None
            else Followed(
                plan=plan,
                cases_before=int(plan["cases_before"].get(digest.value, 0)),
                differs=tuple(differences(plan, composed, system.id, covers, versions())),
            )
        )
    return tuple(followed)


def followed_notices(home: Path, suite: str, systems: Sequence[str], followed: Sequence[Followed | None]) -> list[str]:
    """Return the statements on frozen plans, one line for all systems with the same statement or file."""
    names: dict[str, list[str]] = {}
    for system, plan in zip(systems, followed, strict=True):
        if plan is not None:
            names.setdefault(plan.words, []).append(system)
    _, unusable = read_plans(home, suite)
    changed = [
        f"{path.name} in {FOLDER}/ is not followed: it is no plan of this version, or was changed since it was frozen."
        for path in unusable
    ]
    return [*changed, *(f"{', '.join(same)}: {words}" for words, same in names.items())]


def differences(
    plan: Mapping[str, Any],
    composed: Mapping[str, Any],
    system: str,
    covers: Mapping[str, Any],
    installed: Mapping[str, str],
) -> list[str]:
    """Return the parts of a system's run that differ from a frozen plan, as ``key: planned → actual``.

    Args:
        plan: The plan.
        composed: The run's suite in composed form.
        system: Id of the system.
        covers: Content of the run's digest.
        installed: Versions that the run states; others are not compared.
    """
    planned = _compared(plan["suite"], system, plan["covers"].get(system, {}), plan["packages"])
    actual = _compared(composed, system, covers, installed)
    planned["software"] = {name: text for name, text in planned["software"].items() if name in installed}
    return list(_unequal(planned, actual))


def _compared(
    composed: Mapping[str, Any], system: str, covers: Mapping[str, Any], software: Mapping[str, str]
) -> dict[str, Any]:
    """Return the comparable parts of a plan or a run: suite, software, and the digest's data, revisions and files."""
    suite = {key: value for key, value in composed.items() if key != "systems"}
    own = composed.get("systems", {}).get(system)
    return {**suite, **({"systems": {system: own}} if own else {}), "covers": _beyond(covers), "software": software}


def _beyond(covers: Any) -> Any:
    """Return a digest's content without what the composed suite states too."""
    if not isinstance(covers, Mapping):
        return covers
    return {key: _beyond(value) for key, value in covers.items() if key not in _SETTINGS}


def _unequal(planned: Any, actual: Any, key: str = "") -> Iterator[str]:
    """Yield the parts in which two trees of JSON values differ, outermost first."""
    if isinstance(planned, list) and isinstance(actual, list):
        planned, actual = (dict(enumerate(items)) for items in (planned, actual))
    if isinstance(planned, Mapping) and isinstance(actual, Mapping):
        for name in {**planned, **actual}:
            yield from _unequal(planned.get(name), actual.get(name), f"{key}.{name}" if key else str(name))
    elif planned != actual:
        yield f"{key}: {_short(planned)} → {_short(actual)}"


def _short(value: Any) -> str:
    text = "nothing" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"

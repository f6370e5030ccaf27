"""Draft of a composed suite during its check: values, their origins, and the mistakes so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.errors import MedtestError, Mistake
from medtest.core.plugins import PartInfo
from medtest.suite.checking.validation import trusted_keys, validate
from medtest.suite.composed import without
from medtest.suite.reading.library import Origin, deep_merge
from medtest.suite.reading.safety import Key, dotted, short

if TYPE_CHECKING:
    from medtest.suite.model import PartPlan


@dataclass(kw_only=True)
class Draft:
    """Suite under check, with its mistakes.

    Attributes:
        values: Composed plain data: suite and command line.
        origin: Returns the file and line of a key.
        from_suite: Returns True for keys written by the suite (and not by the command line or ``conf/``).
        on_command_line: Returns True for keys set by the command line.
        systems: Every available system.
        mistakes: List to which mistakes are added.
        folders: Folders of suites, for files beside them.
        own: The suite's own values, before ``conf/`` and the command line.
        objects: In-memory systems of the calling program.
    """

    values: Mapping[str, Any]
    origin: Callable[[Key], Origin]
    from_suite: Callable[[Key], bool]
    on_command_line: Callable[[Key], bool]
    systems: Mapping[str, PartInfo]
    mistakes: list[Mistake] = field(default_factory=list)
    folders: Sequence[Path] = ()
    own: Mapping[str, Any] = field(default_factory=dict)
    objects: Sequence[PartPlan] = ()

    def wrong(
        self,
        key: Key,
        *,
        found: object,
        allowed: str,
        nearest: str | None = None,
        fix: str = "",
        misfit: bool = False,
    ) -> None:
        """Add a mistake at a key; see :class:`medtest.core.errors.Mistake`."""
        place = self.origin(key)
        self.mistakes.append(
            Mistake(
                where=place.where,
                line=place.line,
                key=dotted(key),
                found=short(found),
                allowed=allowed,
                nearest=nearest,
                fix=fix,
                misfit=misfit,
            )
        )

    def block(self, key: str, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return a mapping from the values; for any other value an empty one, and add a mistake."""
        block = (self.values if values is None else values).get(key)
        if block is None:
            return {}
        if not isinstance(block, dict):
            self.wrong((key,), found=block, allowed="keys and values")
            return {}
        return block


def settings_of(draft: Draft, key: Key, info: PartInfo, stated: Mapping[str, Any]) -> Any:
    """Return a part's validated settings, merged with its defaults; None if there are mistakes, which are added.

    Args:
        draft: Collects the mistakes.
        key: Key of the settings.
        info: The part.
        stated: Settings of suite and command line.
    """
    try:
        model = info.load().Settings
    except MedtestError as error:
        draft.wrong(key, found=info.name, allowed="an installed part that works", fix=str(error))
        return None
    for trusted in trusted_keys(model):
        if _has_key(stated, trusted) and draft.from_suite((*key, *trusted)):
            draft.wrong(
                (*key, *trusted),
                found="a value in a suite",
                allowed="conf/ or the command line",
                fix=f"remove it and type {dotted((*key, *trusted))}=…",
            )
            stated = without(stated, trusted)
    merged = deep_merge(info.defaults, stated)

    def origin(place: Key) -> Origin:
        inner = place[len(key) :]
        if inner and not _has_key(stated, inner) and _has_key(info.defaults, inner) and info.file is not None:
            return Origin(where=f"{info.file.parent.name}/{info.file.name}")
        return draft.origin(place)

    mistakes: list[Mistake] = []
    settings = validate(model, merged, at=key, origin=origin, mistakes=mistakes, given=stated)
    if info.file is None and info.origin != "medtest":
        module = info.target.partition(":")[0]
        fix = f"{module} of {info.origin} has no {info.name}.yaml with defaults: add it, or set the value here"
        mistakes = [
            replace(mistake, fix=mistake.fix or fix) if mistake.found == "nothing" else mistake for mistake in mistakes
        ]
    draft.mistakes += mistakes
    return settings


def _has_key(values: Any, key: Key) -> bool:
    for part in key:
        items = list(enumerate(values)) if isinstance(values, list) else []
        items = list(values.items()) if isinstance(values, Mapping) else items
        inner = [value for name, value in items if str(name) == str(part)]
        if not inner:
            return False
        values = inner[0]
    return True

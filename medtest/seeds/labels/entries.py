"""Labelled entries as read from a layout, and their mapping to the suite's classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from medtest.core.cases import Classes
from medtest.core.errors import Mistake, UserMistakes, nearest_name
from medtest.seeds.base import Remarks, SeedProblem
from medtest.seeds.datasets.facts import plain

MOST_CLASSES = 1000
"""More labels than this are not taken for classes (a column of identifiers, a folder for each patient)."""

NOTHING = "none"
"""Mapping value of a name that means no class (``normal``), in multi-label data."""

MOST_NAMED = 8
"""Maximum number of left-out names listed; the rest are counted together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelEntry:
    """One image as listed by a data set.

    Attributes:
        image: Image file or array file below the root.
        name: Basis of its seed id.
        labels: Labels in the data set's own words; empty if no class applies, None if
            unlabelled.
        cluster: Patient, video or sequence; "" if unknown.
        strata: Columns and values that stratify tables.
        mask: File of the lesion's mask below the root, or None.
        index: Index in an array file; -1 for a separate file.
        wrong: Problem of an unusable entry, which only keeps its place; None for a usable one.
    """

    image: PurePosixPath
    name: str
    labels: tuple[str, ...] | None
    cluster: str = ""
    strata: tuple[tuple[str, str], ...] = ()
    mask: PurePosixPath | None = None
    index: int = -1
    wrong: SeedProblem | None = None

    @property
    def problems(self) -> tuple[SeedProblem, ...]:
        """The entry's problems; empty if it is usable."""
        return () if self.wrong is None else (self.wrong,)


@dataclass(slots=True, kw_only=True)
class LabelledFolder(Remarks):
    """Folder of labelled images as read by its layout.

    Attributes:
        names: Class names of the data set, in its order.
        multi: Whether several classes may apply at once.
        entries: Its images.
        mapping: Default class of each name; "" leaves it out. Missing names map to themselves.
        classes: Classes of the mapping, in order; empty if they are the names themselves.
        missing: Number of missing images named by its tables.
    """

    names: tuple[str, ...]
    multi: bool = False
    entries: list[LabelEntry] = field(default_factory=list)
    mapping: Mapping[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    missing: int = 0

    def add_wrong(self, problem: SeedProblem, name: str, image: PurePosixPath | None = None) -> None:
        """Add an unusable image or row in its place.

        Args:
            problem: The problem.
            name: Basis of its seed id.
            image: Its file, if any.
        """
        path = PurePosixPath(name) if image is None else image
        self.entries.append(LabelEntry(image=path, name=name, labels=None, wrong=problem))


@dataclass(slots=True)
class Mapped:
    """Entries mapped to the suite's classes.

    Attributes:
        classes: The suite's classes.
        entries: Entries with their labels in the order of the classes; None for unlabelled ones.
        several: Whether the data set gives several labels to an image.
        left_out: Number of images without a class, by the data set's names.
    """

    classes: Classes
    several: bool = False
    entries: list[tuple[LabelEntry, tuple[str, ...] | None]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def notices(self) -> tuple[str, ...]:
        """Describe the images left out because their names map to no class."""
        if not self.left_out:
            return ()
        most = self.left_out.most_common()
        named = [f"{count:,} of {name!r}" for name, count in most[:MOST_NAMED]]
        rest = sum(count for _, count in most[MOST_NAMED:])
        text = ", ".join(named) + (f" and {rest:,} of {len(most) - MOST_NAMED} other names" if rest else "")
        subject = "Findings" if self.several else "Images"
        return (f"{subject} without a class in this suite are left out: {text}.",)


def fold(name: str) -> str:
    """Return a name without case and punctuation; a name of punctuation alone (``+``) unchanged."""
    return plain(name) or name


def map_entries(
    folder: LabelledFolder, *, dataset: str, classes: Sequence[str], multi: bool | None, mapping: Mapping[str, str]
) -> Mapped:
    """Map every entry to the suite's classes.

    A name maps to its class in the user's mapping, else to the class of the same name (ignoring case and punctuation),
    else to the layout's default. Images of unmapped names are left out and counted; in multi-label data only the name
    is dropped.

    Raises:
        UserMistakes: The mapping uses an unknown class or an unknown name, or fewer than two classes remain.
    """
    names = tuple(classes) or _own_classes(folder, mapping)
    target = Classes(names=names, multi=folder.multi if multi is None else multi)
    _check(folder, dataset, target, mapping, stated=bool(classes))
    class_by_name = _class_by_name(folder, names, mapping)
    mapped = Mapped(classes=target, several=target.multi and folder.multi)
    for entry in folder.entries:
        if entry.labels is None:
            mapped.entries.append((entry, None))
            continue
        _map_one(entry, entry.labels, class_by_name, mapped)
    if mapped.left_out and not any(labels for _, labels in mapped.entries):
        # Images that only have findings outside the suite's classes are not healthy.
        mapped.entries = [(entry, labels) for entry, labels in mapped.entries if entry.wrong is not None]
    return mapped


def _map_one(entry: LabelEntry, own: tuple[str, ...], class_by_name: Mapping[str, str], mapped: Mapped) -> None:
    without = [name for name in own if not class_by_name.get(fold(name))]
    labels = mapped.classes.ordered(class_by_name.get(fold(name), "") for name in own)
    if mapped.several:
        mapped.left_out.update(without)
        mapped.entries.append((entry, labels))
    elif not without and (mapped.classes.multi or len(labels) == 1):
        mapped.entries.append((entry, labels))
    elif len(labels) > 1:
        reason = f"{entry.name} is of {len(labels)} classes ({', '.join(labels)}); multi: true allows it"
        mapped.entries.append((replace(entry, wrong=SeedProblem(file=str(entry.image), reason=reason)), None))
    else:
        mapped.left_out[" and ".join(without or own) or "no class"] += 1


def _own_classes(folder: LabelledFolder, mapping: Mapping[str, str]) -> tuple[str, ...]:
    """Return the data set's own classes if the suite states none, those of the user's mapping last."""
    if folder.classes:
        own = folder.classes
    else:
        mapped_names = {fold(name) for name in mapping}
        own = tuple(name for name in folder.names if fold(name) not in mapped_names)
    distinct = {fold(name): name for name in reversed([*own, *(name for name in mapping.values() if name)])}
    return tuple(reversed(distinct.values()))


def _class_by_name(folder: LabelledFolder, names: Iterable[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """Return the class, or "", of each name of the data set in plain form."""
    classes = {fold(name): name for name in names}
    class_by_name = {fold(name): to for name, to in folder.mapping.items() if to in (*classes.values(), "")}
    class_by_name |= classes
    return class_by_name | {fold(name): to for name, to in mapping.items()}


def _check(folder: LabelledFolder, dataset: str, classes: Classes, mapping: Mapping[str, str], *, stated: bool) -> None:
    where, key = "suite", f"seeds.{dataset}"
    mistakes = []
    own = {fold(name): name for name in (*folder.names, *folder.mapping, *classes.names)}
    for name, to in mapping.items():
        if fold(name) not in own:
            names = [*folder.names, *(n for n in folder.mapping if n not in folder.names)]
            mistakes.append(
                Mistake(
                    where=where,
                    key=f"{key}.mapping",
                    found=repr(name),
                    allowed=f"names of the data set: {', '.join(names)}",
                    nearest=nearest_name(name, names),
                )
            )
        if to and to not in classes.names and not (to == NOTHING and classes.multi):
            nearest = nearest_name(to, classes.names)
            healthy = f"; {NOTHING} where it means that none of these applies" if classes.multi else ""
            allowed = f'{", ".join(classes.names)}, or "" to leave {name!r} out{healthy}'
            mistakes.append(
                Mistake(where=where, key=f"{key}.mapping.{name}", found=repr(to), allowed=allowed, nearest=nearest)
            )
    if len(classes.names) < 2 and not (classes.multi and classes.names):
        problem = ", ".join(classes.names) or "no class"
        mistakes.append(Mistake(where=where, key=f"{key}.classes", found=problem, allowed="two classes or more"))
    elif len(classes.names) > MOST_CLASSES and not stated:
        problem = f"{len(classes.names):,} different labels in the data"
        fix = "state classes, or name the right column or folder"
        mistakes.append(Mistake(where=where, key=f"{key}.classes", found=problem, allowed=f"{MOST_CLASSES}", fix=fix))
    if mistakes:
        raise UserMistakes(mistakes)

"""What a layout of labelled images gives: entries with labels as the data set writes them, and their mapping."""

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
"""More than this are no classes (a column of identifiers, a folder for each patient)."""

NOTHING = "none"
"""What a mapping says of a name that means none of the classes (``normal``), where several may be true at once."""

MOST_NAMED = 8
"""More kinds that are left out are counted together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelEntry:
    """One image as a data set lists it.

    Attributes:
        image: Its file below the root; of an array file, that file.
        name: What its seed's id is made of.
        labels: What the data set says of it, in its own words; empty where it says that nothing is true, None where
            it says nothing.
        cluster: Patient, video or sequence; "" where nothing is known.
        strata: What stratifies tables.
        mask: File of the lesion's mask below the root, or None.
        index: Place in an array file; -1 for a file of its own.
        wrong: Why it cannot be used and only keeps its place; None for a good one.
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
        """What is wrong with it; nothing with a good one."""
        return () if self.wrong is None else (self.wrong,)


@dataclass(slots=True, kw_only=True)
class LabelledFolder(Remarks):
    """A folder of labelled images as its layout reads it.

    Attributes:
        names: Names of classes that the data set knows, in its order.
        multi: Whether several may be true at once.
        entries: Its images.
        mapping: What its names stand for by default; "" leaves out. A name that is missing stands for itself.
        classes: What the mapping leads to, in order; the names themselves where empty.
        missing: How many images that its tables name are not there.
    """

    names: tuple[str, ...]
    multi: bool = False
    entries: list[LabelEntry] = field(default_factory=list)
    mapping: Mapping[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    missing: int = 0

    def add_wrong(self, problem: SeedProblem, name: str, image: PurePosixPath | None = None) -> None:
        """Add an image or row that cannot be used, in its place.

        Args:
            problem: What is wrong with it.
            name: What its seed's id is made of.
            image: Its file, where there is one.
        """
        path = PurePosixPath(name) if image is None else image
        self.entries.append(LabelEntry(image=path, name=name, labels=None, wrong=problem))


@dataclass(slots=True)
class Mapped:
    """Entries with the suite's classes.

    Attributes:
        classes: The suite's classes.
        entries: Entries with their labels in the order of the classes; None where an entry is unlabelled.
        several: Whether the data set gives several labels to an image.
        left_out: How many images of each of the data set's names have no class.
    """

    classes: Classes
    several: bool = False
    entries: list[tuple[LabelEntry, tuple[str, ...] | None]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def notices(self) -> tuple[str, ...]:
        """Say what was left out because no class stands for it."""
        if not self.left_out:
            return ()
        most = self.left_out.most_common()
        named = [f"{count:,} of {name!r}" for name, count in most[:MOST_NAMED]]
        rest = sum(count for _, count in most[MOST_NAMED:])
        text = ", ".join(named) + (f" and {rest:,} of {len(most) - MOST_NAMED} other names" if rest else "")
        what = "Findings" if self.several else "Images"
        return (f"{what} without a class in this suite are left out: {text}.",)


def fold(name: str) -> str:
    """Return a name without case and punctuation; a name of punctuation alone (``+``) as it is."""
    return plain(name) or name


def map_entries(
    laid: LabelledFolder, *, dataset: str, classes: Sequence[str], multi: bool | None, mapping: Mapping[str, str]
) -> Mapped:
    """Give every entry its classes.

    A name stands for what the user's mapping says, else for the class of the same name (case and punctuation do not
    count), else for what is known of the layout, and else for nothing: images of such a name are left out and counted;
    where the data set gives several labels to an image, the name alone is dropped.

    Raises:
        UserMistakes: The mapping names a class or a name of the data set that there is not, or no two classes are left.
    """
    names = tuple(classes) or _own_classes(laid, mapping)
    found = Classes(names=names, multi=laid.multi if multi is None else multi)
    _check(laid, dataset, found, mapping, given=bool(classes))
    lead = _leads(laid, names, mapping)
    mapped = Mapped(classes=found, several=found.multi and laid.multi)
    for entry in laid.entries:
        if entry.labels is None:
            mapped.entries.append((entry, None))
            continue
        _map_one(entry, entry.labels, lead, mapped)
    if mapped.left_out and not any(labels for _, labels in mapped.entries):
        # Films of other findings than the suite's are not healthy.
        mapped.entries = [(entry, labels) for entry, labels in mapped.entries if entry.wrong is not None]
    return mapped


def _map_one(entry: LabelEntry, own: tuple[str, ...], lead: Mapping[str, str], mapped: Mapped) -> None:
    without = [name for name in own if not lead.get(fold(name))]
    labels = mapped.classes.ordered(lead.get(fold(name), "") for name in own)
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


def _own_classes(laid: LabelledFolder, mapping: Mapping[str, str]) -> tuple[str, ...]:
    """Return the data set's classes where the suite states none, those of the user's mapping last."""
    if laid.classes:
        own = laid.classes
    else:
        gone = {fold(name) for name in mapping}
        own = tuple(name for name in laid.names if fold(name) not in gone)
    distinct = {fold(name): name for name in reversed([*own, *(name for name in mapping.values() if name)])}
    return tuple(reversed(distinct.values()))


def _leads(laid: LabelledFolder, names: Iterable[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """Return the class, or "", by the plain form of each name of the data set."""
    classes = {fold(name): name for name in names}
    lead = {fold(name): to for name, to in laid.mapping.items() if to in (*classes.values(), "")}
    lead |= classes
    return lead | {fold(name): to for name, to in mapping.items()}


def _check(laid: LabelledFolder, dataset: str, classes: Classes, mapping: Mapping[str, str], *, given: bool) -> None:
    where, key = "suite", f"seeds.{dataset}"
    mistakes = []
    own = {fold(name): name for name in (*laid.names, *laid.mapping, *classes.names)}
    for name, to in mapping.items():
        if fold(name) not in own:
            known = [*laid.names, *(n for n in laid.mapping if n not in laid.names)]
            mistakes.append(
                Mistake(
                    where=where,
                    key=f"{key}.mapping",
                    found=repr(name),
                    allowed=f"names of the data set: {', '.join(known)}",
                    nearest=nearest_name(name, known),
                )
            )
        if to and to not in classes.names and not (to == NOTHING and classes.multi):
            nearest = nearest_name(to, classes.names)
            healthy = f"; {NOTHING} where it means that nothing of these is true" if classes.multi else ""
            allowed = f'{", ".join(classes.names)}, or "" to leave {name!r} out{healthy}'
            mistakes.append(
                Mistake(where=where, key=f"{key}.mapping.{name}", found=repr(to), allowed=allowed, nearest=nearest)
            )
    if len(classes.names) < 2 and not (classes.multi and classes.names):
        found = ", ".join(classes.names) or "no class"
        mistakes.append(Mistake(where=where, key=f"{key}.classes", found=found, allowed="two classes or more"))
    elif len(classes.names) > MOST_CLASSES and not given:
        found = f"{len(classes.names):,} different labels in the data"
        fix = "state classes, or name the right column or folder"
        mistakes.append(Mistake(where=where, key=f"{key}.classes", found=found, allowed=f"{MOST_CLASSES}", fix=fix))
    if mistakes:
        raise UserMistakes(mistakes)

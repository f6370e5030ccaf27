"""Definitions of the nine kinds of answer: reading, layout in fields, and check that the text is fully understood.

The readers look for what they know and ignore the rest. That is safe only if the rest has no bearing: a value counts
only if its clauses contain no unknown word and no other candidate of its kind is left unexplained: a number that is
neither part of the value nor a share of it, of a tool or of something else that is named, a place outside the cell,
names that do not form a list, odds, a comparison that made no bound, a "no" that the readers do not know. ``unparsed``
costs a review, while a value that the writer did not mean is a false verdict.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

from medtest.language.questions.answers.extract import colour, count, named, place, size, yes_no
from medtest.language.questions.answers.lexicon import words as lexicon
from medtest.language.questions.answers.lexicon.texts import texts
from medtest.language.questions.answers.states import leading, short
from medtest.language.questions.answers.values.fields import Fields
from medtest.language.questions.answers.values.readings import Found
from medtest.language.questions.answers.whole.denials import denied, unused
from medtest.language.questions.answers.whole.lists import apart, listed, said_again
from medtest.language.questions.answers.whole.numbers import ODDS, bare_number, beside_a_count, beside_sizes
from medtest.language.questions.answers.whole.passage import Passage, unclear
from medtest.language.questions.answers.whole.words import unknown
from medtest.language.questions.values import NO, YES, Kind, Names, Ranges, words

_TEXTS = texts(__file__)
_NOT_YET = re.compile(_TEXTS["not_yet"])
"""Statement that something has not been done, or not completely."""
_CELL_WORDS = re.compile(_TEXTS["cell_words"])
"""Words of places that are not a cell by themselves."""
_SIDES_JOINED = re.compile(r"\b(?:and|or|to|y|et|und|ou|oder)\b|[a-z]-[a-z]")
_SIDES = frozenset(cell for cell in place.CELLS if "center" in cell)
_PARIS_CODE = re.compile(r"\b0?-?i{1,2}(?:sp|s|p|a|b|c)\b")
_FLAT_TYPES = frozenset(("ip", "is", "isp", "iia", "iib", "iic", "iii"))


class AnswerKind(ABC):
    """One kind of answer.

    Attributes:
        fields: Layout of answers of this kind in JSON, tables and lists.
        describes: True if it describes an object, so that "none" means that there is nothing to describe.
        conclusive: True if a conclusion or an exception in the text takes precedence.
        many: True if it is one of many values, so that a text may name others than the intended one.
        intervals: True for numbers.
        counts: True for whole numbers, to which something can be added.
        on_grid: True for cells of the 3 x 3 grid.
        unnamed: True if ``yes`` stands for unnamed objects and ``no`` for none.
        sections: Sections of the lexicon with its names.
        choices: All of its names; None if the set is open.
        free: True if any words are an answer, and answers are compared by their words.
    """

    fields: ClassVar[Fields] = Fields()
    describes: ClassVar[bool] = False
    conclusive: ClassVar[bool] = True
    many: ClassVar[bool] = True
    intervals: ClassVar[bool] = False
    counts: ClassVar[bool] = False
    on_grid: ClassVar[bool] = False
    unnamed: ClassVar[bool] = False
    sections: ClassVar[tuple[str, ...]] = ()
    choices: ClassVar[frozenset[str] | None] = None
    free: ClassVar[bool] = False

    @abstractmethod
    def read(self, text: str, low: str, item: int | None) -> Found | None:
        """Return the value in a text with its span; None if there is none.

        Args:
            text: The plain text with its case.
            low: The same in lower case.
            item: Official id of the question; None for any other question.
        """

    def left_over(self, low: str, item: int | None, reading: Found) -> str:
        """Return the part of a text that a reading leaves unexplained, in a few words; "" if there is none.

        Args:
            low: The plain text in lower case, without non-answers.
            item: Official id of the question.
            reading: The reading, with its span in ``low``.
        """
        passage = Passage.of(low, reading)
        return unclear(passage) or next((problem for problem in self._against(passage, item, reading) if problem), "")

    @abstractmethod
    def _against(self, passage: Passage, item: int | None, reading: Found) -> Iterator[str]:
        """Yield objections to a value, "" for each check that it passes."""


class _Named(AnswerKind):
    """Set of names."""

    bare_numbers: ClassVar[bool] = False
    """If True, a number without a noun may occur next to the names."""

    def _against(self, passage: Passage, item: int | None, reading: Found) -> Iterator[str]:
        value = reading[0]
        if not isinstance(value, Names):
            return
        multiple = len(value.names) > 1
        if NO not in value.names:
            yield denied(passage)
        if str(value) != NO and self._asserts(item):
            yield unused(passage)
        if (multiple or self._one_of_two()) and ODDS.search(passage.low):
            yield "odds"
        yield from self._particular(passage, item, value)
        if not self.bare_numbers:
            yield bare_number(passage)
        if multiple:
            yield self._no_list(passage, item, value)
        yield from self._places_beside(passage, value)

    def _asserts(self, item: int | None) -> bool:
        """Return True if a value asserts the presence of what it names."""
        return True

    def _one_of_two(self) -> bool:
        return False

    def _particular(self, passage: Passage, item: int | None, value: Names) -> Iterator[str]:
        yield ""

    def _places_beside(self, passage: Passage, value: Names) -> Iterator[str]:
        yield ""

    def _no_list(self, passage: Passage, item: int | None, value: Names) -> str:
        """Return the reason why several names do not form a list, or ""."""
        parts = self._parts(passage.said)
        return "" if listed(passage.said, parts) and not said_again(passage.said, parts) else "no list"

    def _parts(self, text: str) -> list[tuple[int, int]]:
        return [(first, last) for name in self.sections for _, first, last in lexicon.mentions(name, text)]


class YesNoKind(_Named):
    """Answers yes or no."""

    fields = Fields(
        keys=("present", "visible", "detected", "yes_no"),
        flag_alone=True,
        flags_first=True,
        empty="no",
        summary=lambda number: "yes" if number else "no",
    )
    many = False
    choices = frozenset((YES, NO))

    def read(self, text: str, low: str, item: int | None) -> Found | None:  # noqa: D102 - as above
        return yes_no.yes_no(low, item)

    def left_over(self, low: str, item: int | None, reading: Found) -> str:  # noqa: D102 - as above
        lead = leading(low) or short(low)
        objection = _behind_lead(low, item, lead[0], reading) if lead is not None and lead[1] == reading[1:] else None
        return super().left_over(low, item, reading) if objection is None else objection

    def _asserts(self, item: int | None) -> bool:
        return item in (yes_no.BOX, yes_no.TEXT)

    def _one_of_two(self) -> bool:
        return True

    def _particular(self, passage: Passage, item: int | None, value: Names) -> Iterator[str]:
        yet = _NOT_YET.search(passage.part) if item == yes_no.REMOVED and str(value) == YES else None
        yield "" if yet is None else f"not yet {yet[0]}"


class FindingsKind(_Named):
    """Abnormalities, landmarks or instruments."""

    fields = Fields(
        keys=(
            *("abnormalities", "abnormality", "findings", "finding", "landmarks", "landmark"),
            *("instruments", "instrument", "class", "predicted_class", "diagnosis"),
        ),
        nothing="no",
    )
    unnamed = True
    sections = tuple(named.SECTIONS.values())

    def read(self, text: str, low: str, item: int | None) -> Found | None:  # noqa: D102 - as above
        return named.findings(low, _section_of(item))

    def _particular(self, passage: Passage, item: int | None, value: Names) -> Iterator[str]:
        if str(value) == NO and (strange := unknown(passage.low)):
            yield f"unknown {strange}"

    def _no_list(self, passage: Passage, item: int | None, value: Names) -> str:
        return apart(passage.low, _section_of(item))


class CountKind(AnswerKind):
    """Counts of objects."""

    fields = Fields(
        keys=("count", "number", "total", "findings", "polyps", "instruments"),
        flags_first=True,
        points=True,
        summary=str,
    )
    intervals = True
    counts = True

    def read(self, text: str, low: str, item: int | None) -> Found | None:  # noqa: D102 - as above
        return count.count(low, item)

    def _against(self, passage: Passage, item: int | None, reading: Found) -> Iterator[str]:
        value = reading[0]
        if isinstance(value, Ranges):
            if min(interval.low for interval in value.ranges) > 0:
                yield denied(passage)
                yield unused(passage)
            yield beside_a_count(passage, value, item)


class SizeKind(AnswerKind):
    """Sizes in millimetres."""

    fields = Fields(keys=("size_mm", "diameter", "size", "polyp_size"), pair=True)
    describes = True
    intervals = True

    def read(self, text: str, low: str, item: int | None) -> Found | None:  # noqa: D102 - as above
        return size.size(low)

    def _against(self, passage: Passage, item: int | None, reading: Found) -> Iterator[str]:
        if isinstance(reading[0], Ranges):
            yield beside_sizes(passage, reading[0])


class ColourKind(_Named):
    """Base colours."""

    fields = Fields(keys=("colour", "color", "colours", "colors"))
    describes = True
    sections = ("colour",)

    def read(self, text: str, low: str, item: int | None) -> Found | None:  # noqa: D102 - as above
        return colour.colour(low, item)


class PlaceKind(_Named):
    """Cells of the 3 x 3 grid."""

    fields = Fields(keys=("location", "locations", "position", "place", "where"), grid=True)
    describes = True
    on_grid = True
    choices = frozenset(place.CELLS)
    bare_numbers = True

    def read(self, text: str, low: str, item: int | None) -> Found | None:  # noqa: D102 - as above
        return place.place(low)

    def _no_list(self, passage: Passage, item: int | None, value: Names) -> str:
        return "" if listed(passage.said, self._parts(passage.said)) else "no list"

    def _parts(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in (*place.PART.finditer(text), *place.CLOCK.finditer(text))]

    def _places_beside(self, passage: Passage, value: Names) -> Iterator[str]:
        if len(value.names) == 2 and value.names <= _SIDES:
            yield "" if _SIDES_JOINED.search(passage.said) else "one cell or two"
            return
        for match in _CELL_WORDS.finditer(passage.low):
            if not passage.holds(match.start()):
                yield f"place {match[0]}"


class ProcedureKind(_Named):
    """Kinds of endoscopy."""

    fields = Fields(keys=("procedure", "procedure_type", "type"))
    sections = ("procedure",)

    def read(self, text: str, low: str, item: int | None) -> Found | None:  # noqa: D102 - as above
        return named.procedure(low)


class PolypTypeKind(_Named):
    """Paris classes, their words, or histology."""

    fields = Fields(keys=("type", "polyp_type", "paris", "paris_classification", "morphology"))
    describes = True
    bare_numbers = True
    sections = ("polyp_type",)

    def read(self, text: str, low: str, item: int | None) -> Found | None:  # noqa: D102 - as above
        return named.polyp_type(text, low)

    def _no_list(self, passage: Passage, item: int | None, value: Names) -> str:
        if len(value.names & _FLAT_TYPES) < 2:
            return ""  # a class and its word, or additional histology
        return super()._no_list(passage, item, value)

    def _parts(self, text: str) -> list[tuple[int, int]]:
        return [*super()._parts(text), *(match.span() for match in _PARIS_CODE.finditer(text))]


class TextKind(AnswerKind):
    """Free text, for any other question."""

    free = True
    conclusive = False
    many = False

    def read(self, text: str, low: str, item: int | None) -> Found | None:  # noqa: D102 - as above
        free_text = words(low)
        return (free_text, len(low) - len(low.lstrip()), len(low.rstrip())) if free_text.text else None

    def left_over(self, low: str, item: int | None, reading: Found) -> str:  # noqa: D102 - all words are the answer
        return ""

    def _against(self, passage: Passage, item: int | None, reading: Found) -> Iterator[str]:
        yield ""


KINDS: Mapping[Kind, AnswerKind] = {
    Kind.YES_NO: YesNoKind(),
    Kind.FINDINGS: FindingsKind(),
    Kind.COUNT: CountKind(),
    Kind.SIZE: SizeKind(),
    Kind.COLOUR: ColourKind(),
    Kind.PLACE: PlaceKind(),
    Kind.POLYP_TYPE: PolypTypeKind(),
    Kind.PROCEDURE: ProcedureKind(),
    Kind.TEXT: TextKind(),
}


def _section_of(item: int | None) -> str:
    """Return the section of the lexicon for a question about findings."""
    return named.SECTIONS.get(-1 if item is None else item, "abnormality")


def _behind_lead(low: str, item: int | None, affirmed: bool, reading: Found) -> str | None:
    """Return an objection to a yes or no at the beginning, or ""; None if the general checks apply."""
    _, start, end = reading
    if not re.match(r"\s*(?:[,.;:!)\n-]|\Z)", low[end:]):
        subject = yes_no.SUBJECTS.get(-1 if item is None else item)
        governs = low[start:end] != "no" or subject is None or subject.search(low[end : end + 40])
        return None if governs else "no of something else"
    remainder = low[end:].lstrip(" ,.;:!-)\n")
    second = yes_no.yes_no(remainder, item) if remainder else None
    return "yes and no" if second is not None and str(second[0]) == (NO if affirmed else YES) else ""

"""Rendered values parsed back: templates, canonical texts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.language.questions.answers import parse
from medtest.language.questions.answers.extract.place import CELLS
from medtest.language.questions.answers.kinds import KINDS
from medtest.language.questions.answers.lexicon.words import sections
from medtest.language.questions.values import Kind, Range, names, ranges, read_value

_WRAPPED = ("{}", "{}.", "**{}**", "Answer: {}", '{{"answer": "{}"}}', "<think>none, 3 green mm</think>{}", "- {}")
_OF_NAMES: dict[Kind, tuple[str, ...]] = {
    Kind.COLOUR: ("The abnormality is {}.", "It appears {} in color", "a {} lesion", *_WRAPPED),
    Kind.PROCEDURE: ("The image is taken from a {}.", "Most likely {}", "This is a {}, I think.", *_WRAPPED),
    Kind.PLACE: ("In the {} of the image.", "It is located at the {}.", *_WRAPPED),
    Kind.FINDINGS: ("There is {} in the image.", "Yes, {}", "I can see {}.", *_WRAPPED),
    Kind.POLYP_TYPE: ("The polyp is of type {}.", "Paris classification: {}", *_WRAPPED),
}
_SECTION = {12: "abnormality", 13: "landmark", 14: "instrument"}


def _join(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


@given(st.sets(st.sampled_from(sorted(sections()["colour"])), min_size=1, max_size=4), st.data())
def test_rendered_colours_round_trip(colours: set[str], data: st.DataObject) -> None:
    template = data.draw(st.sampled_from(_OF_NAMES[Kind.COLOUR]))
    text = template.format(_join(sorted(colours)))
    assert parse(text, Kind.COLOUR, 5).value == names(*colours), text


@given(st.sets(st.sampled_from(CELLS), min_size=1, max_size=5), st.data())
def test_rendered_places_round_trip(cells: set[str], data: st.DataObject) -> None:
    template = data.draw(st.sampled_from(_OF_NAMES[Kind.PLACE]))
    text = template.format(_join(sorted(cells)))
    assert parse(text, Kind.PLACE, 10).value == names(*cells), text


_SAY_NOTHING_BESIDE = {
    "barretts": {"short_segment_barretts"},
    "inflammation": {"oesophagitis", "ulcerative_colitis"},
    "erythema": {"inflammation", "oesophagitis", "ulcerative_colitis"},
}


@pytest.mark.slow
@pytest.mark.parametrize("item", sorted(_SECTION))
def test_rendered_findings_round_trip(item: int) -> None:
    """Every finding alone, and every pair, in every template: few enough to try them all."""
    entries = sections()[_SECTION[item]]
    sets = [*((name,) for name in entries), *itertools.combinations(sorted(entries), 2)]
    for findings, template in itertools.product(sets, _OF_NAMES[Kind.FINDINGS]):
        text = template.format(_join([entries[name][0] for name in sorted(findings)]))
        expected = [name for name in findings if not _SAY_NOTHING_BESIDE.get(name, set()) & set(findings)]
        assert parse(text, Kind.FINDINGS, item).value == names(*expected), text


@given(st.sampled_from(sorted(sections()["procedure"])), st.sampled_from(_OF_NAMES[Kind.PROCEDURE]))
def test_rendered_procedures_round_trip(name: str, template: str) -> None:
    text = template.format(sections()["procedure"][name][0])
    assert parse(text, Kind.PROCEDURE, 0).value == names(name), text


@given(st.sampled_from(["Is", "Ip", "IIa", "Isp", "IIb", "IIc"]), st.data())
def test_rendered_polyp_types_round_trip(code: str, data: st.DataObject) -> None:
    template = data.draw(st.sampled_from(_OF_NAMES[Kind.POLYP_TYPE]))
    shown = data.draw(st.sampled_from(["Paris {}", "0-{}", "paris {}"])).format(code)
    assert parse(template.format(shown), Kind.POLYP_TYPE, 17).value == names(code.lower())


@given(st.booleans(), st.sampled_from([1, 2, 3, 4, None]), st.sampled_from(_WRAPPED))
def test_rendered_yes_and_no_round_trip(answer: bool, item: int | None, template: str) -> None:
    text = template.format("Yes" if answer else "No")
    assert parse(text, Kind.YES_NO, item).value == names("yes" if answer else "no"), text


@given(st.integers(0, 40), st.integers(1, 5), st.sampled_from([7, 8, 9]), st.data())
def test_rendered_counts_round_trip(low: int, more: int, item: int, data: st.DataObject) -> None:
    noun = {7: "findings", 8: "polyps", 9: "instruments"}[item]
    shapes = [
        (f"{low}", Range(low, low)),
        (f"{low}-{low + more}", Range(low, low + more)),
        (f"between {low} and {low + more} {noun}", Range(low, low + more)),
        (f"at least {low} {noun}", Range(low, float("inf"))),
        (f"There are {low} {noun} of {more} mm, Paris 0-IIa.", Range(low, low)),
    ]
    text, value = data.draw(st.sampled_from(shapes))
    wrapped = data.draw(st.sampled_from(_WRAPPED)).format(text)
    assert parse(wrapped, Kind.COUNT, item).value == ranges(value), wrapped


@given(st.integers(1, 60), st.integers(1, 30), st.data())
def test_rendered_sizes_round_trip(low: int, more: int, data: st.DataObject) -> None:
    high = low + more
    shapes = [
        (f"{low} mm", Range(low, low)),
        (f"{low / 10:g} cm", Range(low, low)),
        (f"{low}-{high}mm", Range(low, high)),
        (f"between {low} and {high} mm", Range(low, high)),
        (f"<{low}mm", Range(0, low, high_open=True)),
        (f"less than {low} mm", Range(0, low, high_open=True)),
        (f">{low}mm", Range(low, float("inf"), low_open=True)),
        (f"at least {low} mm", Range(low, float("inf"))),
        (f"about {low} mm", Range(low, low, about=True)),
    ]
    text, value = data.draw(st.sampled_from(shapes))
    wrapped = data.draw(st.sampled_from(_WRAPPED)).format(text)
    assert parse(wrapped, Kind.SIZE, 16).value == ranges(value), wrapped


@given(
    st.sampled_from(sorted(kind for kind, kind_info in KINDS.items() if kind_info.intervals)),
    st.integers(0, 50),
    st.integers(0, 50),
    st.booleans(),
)
def test_canonical_texts_are_read_back(kind: Kind, low: int, more: int, openly: bool) -> None:
    for interval in (
        Range(low, low),
        Range(low, low + more),
        Range(0, low + 1, high_open=openly),
        Range(low, float("inf"), low_open=openly),
    ):
        value = ranges(interval)
        assert str(read_value(kind, str(value))) == str(value)

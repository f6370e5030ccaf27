"""Illustrations of the images with the most flips: marks, required values, and sizes in millimetres."""

from __future__ import annotations

from medtest.core.cases import Address
from medtest.tasks.ask.report.illustration import illustration
from medtest.tasks.ask.tables.worst import GivenAnswer, Illustration


def test_a_change_is_a_flip_and_a_required_change_names_its_value() -> None:
    def given_answer(value: str, must_become: str, *, flipped: bool | None, state: str = "value") -> GivenAnswer:
        return GivenAnswer(
            words=value, value=value, state=state, flipped=flipped, right=None, wanted=must_become, why=""
        )

    pictures = tuple(Address(dataset="d", seed_id="s", relation=name) for name in ("source", "instrument", "dim"))
    row = (
        given_answer("3", "", flipped=None),
        given_answer("3", "4", flipped=True),
        given_answer("5", "3", flipped=True),
    )
    gone = given_answer("", "not relevant", flipped=None, state="not_relevant")
    other = (
        gone,
        given_answer("2", "not relevant", flipped=True),
        given_answer("", "3", flipped=True, state="refusal"),
    )
    worst_image = Illustration(
        flips=7,
        judged=9,
        pictures=pictures,
        questions=(("instrument_count", "How many?"), ("polyps", "How many?")),
        kinds=("count", "count"),
        truths=("3", ""),
        said=(row, other),
    )
    shown = illustration(worst_image, [])
    assert [cell["mark"] for cell in shown["rows"][0]["cells"]] == ["", "should be 4", "flip"]
    assert [cell["mark"] for cell in shown["rows"][1]["cells"]] == ["", "flip", "refused"]
    assert shown["flips"] == "7 of 9 answers flipped; 4 of them under the follow-ups shown here"


def test_sizes_of_the_worst_images_are_in_millimetres() -> None:
    size_answer = GivenAnswer(words="7", value="7", state="value", flipped=True, right=False, wanted="..5", why="")
    pictures = tuple(Address(dataset="d", seed_id="s", relation=name) for name in ("source", "dim"))
    worst_image = Illustration(
        flips=2,
        judged=2,
        pictures=pictures,
        questions=(("size", "How large?"), ("polyps", "How many?")),
        kinds=("size", "count"),
        truths=("..5", "1"),
        said=((size_answer, size_answer), (size_answer, size_answer)),
    )
    size, count = illustration(worst_image, [])["rows"]
    assert (size["truth"], size["cells"][1]["value"]) == ("below 5 mm", "7 mm")
    assert "should say: below 5 mm" in size["cells"][1]["title"]
    assert size["cells"][1]["mark"] == "should be below 5 mm"  # it did not change, and had to
    assert (count["truth"], count["cells"][1]["value"]) == ("1", "7")

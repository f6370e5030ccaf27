"""Names in ``only=`` without a seed."""

from __future__ import annotations

import pytest

from medtest.core.cases import SeedRef
from medtest.core.errors import UserMistakes
from medtest.suite.commandline.selection import check_selection
from medtest.suite.model import Selection


def test_unknown_names_are_listed_by_kind_and_in_alphabetical_order() -> None:
    refs = [SeedRef(dataset="kvasir", seed_id=f"seed{number}") for number in range(3)]
    names = ("seed9", "sead1", "nothing", "seed1")
    with pytest.raises(UserMistakes) as error:
        check_selection(Selection(datasets=frozenset({"kvasi", "colon"}), seeds=frozenset(names)), refs)
    pairs = [(mistake.found, mistake.nearest) for mistake in error.value.mistakes]
    assert [name for name, _ in pairs] == [
        "dataset:colon",
        "dataset:kvasi",
        "seed:nothing",
        "seed:sead1",
        "seed:seed9",
    ]
    assert pairs[1][1] == "kvasir" and pairs[3][1] == "seed1"
    check_selection(Selection(datasets=frozenset({"kvasir"}), seeds=frozenset({"seed0", "seed2"})), refs)

"""GenEval's prompts: their metadata are the pool. Rows in its layout are written here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prompt_sources import source

from medtest.core.errors import UserMistakes
from medtest.core.scenes import Entity, pool_of

ROWS: list[dict[str, Any]] = [
    {"tag": "single_object", "include": [{"class": "bench", "count": 1}], "prompt": "a photo of a bench"},
    {
        "tag": "two_object",
        "include": [{"class": "tv remote", "count": 1}, {"class": "hair drier", "count": 1}],
        "prompt": "a photo of a tv remote and a hair drier",
    },
    {
        "tag": "counting",
        "include": [{"class": "clock", "count": 2}],
        "exclude": [{"class": "clock", "count": 3}],
        "prompt": "a photo of two clocks",
    },
    {
        "tag": "colors",
        "include": [{"class": "fire hydrant", "count": 1, "color": "blue"}],
        "prompt": "a photo of a blue fire hydrant",
    },
    {
        "tag": "position",
        "include": [{"class": "teddy bear", "count": 1}, {"class": "dog", "count": 1, "position": ["below", 0]}],
        "prompt": "a photo of a dog below a teddy bear",
    },
]


def write(folder: Path, rows: list[Any]) -> Path:
    (folder / "evaluation_metadata.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


def test_metadata_are_the_pool_and_the_words_are_genevals(tmp_path: Path) -> None:
    seeds = source("geneval", write(tmp_path, ROWS))
    refs = seeds.refs()
    assert [ref.seed_id for ref in refs] == [f"{at:05d}" for at in range(5)]
    assert [dict(ref.strata)["tag"] for ref in refs] == [row["tag"] for row in ROWS]
    prompts = [seeds.load(ref).prompt for ref in refs]
    assert [prompt.text for prompt in prompts] == [row["prompt"] for row in ROWS]
    assert [prompt.pool for prompt in prompts] == [
        pool_of([Entity(name="bench")]),
        pool_of([Entity(name="tv remote"), Entity(name="hair dryer")]),
        pool_of([Entity(name="clock", count=2)]),
        pool_of([Entity(name="fire hydrant", attributes=("blue",))]),
        pool_of([Entity(name="dog"), Entity(name="teddy bear")], [(0, "under", 1)]),
    ]


def test_templates_by_option(tmp_path: Path) -> None:
    seeds = source("geneval", write(tmp_path, ROWS), words="template")
    assert seeds.load(seeds.refs()[4]).prompt.text == "A dog under a teddy bear."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"include": []}, "include is []"),
        ({"include": [3]}, "include holds 3"),
        ({"include": [{"class": "dog"}]}, "count of 'dog' is nothing"),
        ({"include": [{"class": "dog", "count": True}]}, "count of 'dog' is True"),
        ({"include": [{"class": "dog", "count": 1, "position": ["beside", 0]}]}, "position is ['beside', 0]"),
        ({"include": [{"class": "dog", "count": 1, "color": 3}]}, "color of 'dog' is 3"),
        ({"prompt": 4}, "prompt is 4"),
        ({"tag": None}, "tag is nothing"),
    ],
)
def test_bad_rows(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    write(tmp_path, [*ROWS, {**ROWS[0], **change}])
    with pytest.raises(UserMistakes) as caught:
        source("geneval", tmp_path).refs()
    assert message in str(caught.value) and "line 6" in str(caught.value)
    assert len(source("geneval", tmp_path, on_bad_seed="skip").refs()) == 5


@pytest.mark.parametrize(
    ("content", "message"), [("[]", "no prompt"), ("3", "3 where an object"), ("{", "is not JSON")]
)
def test_other_files(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "evaluation_metadata.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(UserMistakes) as caught:
        source("geneval", tmp_path).refs()
    assert message in str(caught.value)

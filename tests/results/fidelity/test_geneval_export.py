"""Export of a run in GenEval's layout: metadata of its prompt file, results of its evaluate_images.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from depicted_records import keep_pictures, picture, records, row

from medtest.core.cases import image_sha256
from medtest.core.records import PICTURES
from medtest.core.scenes import Entity, Pool, Scene, SeenEntity, Tells, dumped, pool_of
from medtest.results.fidelity.cases import DrawnCases
from medtest.results.fidelity.geneval.export import export_geneval, metadata_of, tag_of
from medtest.results.fidelity.geneval.rule import GenEvalRule
from medtest.seeds.captions.geneval import pool_of_metadata

ROWS: list[dict[str, Any]] = [  # in the layout of evaluation_metadata.jsonl, one of each kind
    {"tag": "single_object", "include": [{"class": "bicycle", "count": 1}], "prompt": "a photo of a bicycle"},
    {
        "tag": "two_object",
        "include": [{"class": "skis", "count": 1}, {"class": "hair drier", "count": 1}],
        "prompt": "a photo of a skis and a hair drier",
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
    {
        "tag": "color_attr",
        "include": [{"class": "cup", "count": 1, "color": "red"}, {"class": "vase", "count": 1, "color": "green"}],
        "prompt": "a photo of a red cup and a green vase",
    },
]


@pytest.mark.parametrize("metadata", ROWS, ids=lambda metadata: metadata["tag"])
def test_metadata_survive_the_way_through_a_pool(metadata: dict[str, Any]) -> None:
    pool = pool_of_metadata(metadata["include"])
    assert tag_of(pool) == metadata["tag"]
    assert metadata_of(pool, metadata["prompt"], metadata["tag"]) == metadata


def test_prompts_of_other_kinds_have_no_tag() -> None:
    three = pool_of([Entity(name="dog"), Entity(name="cat"), Entity(name="cup")])
    holding = pool_of([Entity(name="man"), Entity(name="cup")], [(0, "holding", 1)])
    half_coloured = pool_of([Entity(name="dog", attributes=("red",)), Entity(name="cat")])
    wooden = pool_of([Entity(name="bench", attributes=("wooden",))])
    without = Pool(entities=(Entity(name="dog", count=1),), absent=("cat",))
    others = (three, holding, half_coloured, wooden, without)
    assert [tag_of(pool) for pool in others] == [None] * len(others)


def _reading(*entities: SeenEntity, tells: Tells = Tells()) -> dict[str, str]:  # noqa: B008
    return {"scene": dumped(Scene(entities=entities, tells=tells).as_json()), "tells": dumped(tells.as_json())}


def test_pictures_and_results_have_genevals_layout(tmp_path: Path) -> None:
    bike, clocks, other = (pool_of_metadata(ROWS[at]["include"]) for at in (0, 2, 4))
    images = [picture(number) for number in range(4)]
    box = (0.25, 0.5, 0.75, 1.0)
    tags = [{"stratum_tag": ROWS[at]["tag"], "prompt": ROWS[at]["prompt"]} for at in (0, 2, 4)]
    run = records(
        [
            row(0, "source", bike, images[0], **tags[0], **_reading(SeenEntity(name="bike", box=box, score=0.9))),
            row(0, "unchanged", bike, images[1], **tags[0], **_reading()),
            row(
                1,
                "source",
                clocks,
                images[2],
                **tags[1],
                **_reading(*[SeenEntity(name="clock", box=box, score=0.5)] * 3),
            ),
            row(2, "source", other, images[3], **tags[2], **_reading(tells=Tells(classes=frozenset({"dog"})))),
            row(1, "ec", bike, images[3], **tags[0], **_reading()),
        ]
    )
    keep_pictures(tmp_path / "run", images)
    out = tmp_path / "out"
    prompts, results, left_out = export_geneval(
        DrawnCases.of(run), GenEvalRule(), pictures=tmp_path / "run" / PICTURES, folder=out
    )
    assert (prompts, results) == (3, 3)
    assert left_out == {"the reader cannot tell teddy bear": 1}
    lines = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [list(line) for line in lines] == 3 * [
        ["filename", "tag", "prompt", "correct", "reason", "metadata", "details"]
    ]
    assert [(line["filename"], line["correct"], line["reason"]) for line in lines] == [
        ("00000/samples/00000.png", True, ""),
        ("00000/samples/00001.png", False, "expected bike>=1, found 0"),
        ("00001/samples/00000.png", False, "expected clock<3, found 3"),
    ]
    assert json.loads(lines[0]["details"]) == {"bicycle": [[16.0, 32.0, 48.0, 64.0, 0.9]]}
    assert json.loads(lines[2]["metadata"]) == ROWS[2]
    assert [json.loads(line) for line in (out / "evaluation_metadata.jsonl").read_text().splitlines()] == [
        ROWS[0],
        ROWS[2],
        ROWS[4],
    ]
    assert json.loads((out / "00002" / "metadata.jsonl").read_text()) == ROWS[4]
    from medtest.core.files.images import read_rgb

    assert image_sha256(read_rgb(out / "00000" / "samples" / "00001.png")) == image_sha256(images[1])

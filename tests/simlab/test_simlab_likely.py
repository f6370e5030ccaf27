"""The laboratory's log-probabilities over HTTP: the provider's format, and values that follow from its settings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simlab_parts import body, call, laboratory, picture

from medtest.api.calls.request import Picture
from medtest.cli.data.labelled import question_pictures
from medtest.core.cases import image_sha256
from medtest.core.scenes import Entity, dumped, pool_of
from medtest.readers.pictures.ask import AskReaderSettings, PictureAsker
from medtest.readers.pictures.base import PictureContent
from medtest.simlab.config import MODEL, Config
from medtest.simlab.defects import Defects

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
TOOL = "Is there a polyp snare in the picture?"
ASKED: dict[str, Any] = {"logprobs": True, "top_logprobs": 5}


def chances(entry: Mapping[str, Any]) -> dict[str, float]:
    return {top["token"].strip(): math.exp(top["logprob"]) for top in entry["top_logprobs"]}


def decisive(entries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    (only,) = [chances(entry) for entry in entries if len(entry["top_logprobs"]) > 1]
    return only


def test_they_have_the_providers_format_and_are_sent_only_on_request() -> None:
    with laboratory(Config(styles=("sentence",))) as server:
        _, plain = call(server.base_url, CHAT, body(TOOL))
        assert "logprobs" not in plain["choices"][0]
        _, answer = call(server.base_url, CHAT, body(TOOL, **ASKED))
        (choice,) = answer["choices"]
        entries = choice["logprobs"]["content"]
        assert "".join(entry["token"] for entry in entries) == choice["message"]["content"]
        assert all(set(entry) == {"token", "logprob", "bytes", "top_logprobs"} for entry in entries)
        assert bytes(entries[0]["bytes"]).decode() == entries[0]["token"] == "No"
        assert decisive(entries) == pytest.approx({"No": 0.98, "Yes": 0.02})
        content = [{"type": "input_image", "image_url": picture().data_url()}, {"type": "input_text", "text": TOOL}]
        request = {"model": MODEL, "input": [{"role": "user", "content": content}], "top_logprobs": 5}
        _, response = call(server.base_url, RESPONSES, {**request, "include": ["message.output_text.logprobs"]})
        assert decisive(response["output"][0]["content"][0]["logprobs"]) == pytest.approx({"No": 0.98, "Yes": 0.02})
        _, counted = call(server.base_url, CHAT, body("How many polyps are in the image?", **ASKED))
        assert "logprobs" not in counted["choices"][0]  # it tells them for yes and no alone


@pytest.mark.parametrize("style", ["terse", "sentence", "hedged", "chatty", "markdown", "json"])
def test_every_style_has_one_decisive_word(style: str) -> None:
    with laboratory(Config(styles=(style,), defects=Defects(refusals=0.25, nondeterminism=0.2))) as server:
        answers = [call(server.base_url, CHAT, body(TOOL, seed=seed, **ASKED))[1]["choices"][0] for seed in range(12)]
    chances_of_answers = [decisive(answer["logprobs"]["content"]) for answer in answers]
    # of three in four answers: no, unless it is changed, and it is 98 % sure of what it sees
    changed = 0.2 * 0.98 + 0.8 * 0.02
    for chance in chances_of_answers:
        spoken = {name.lower(): value for name, value in chance.items()}
        assert spoken == pytest.approx({"no": 0.75 * (1 - changed), "yes": 0.75 * changed, "i": 0.25})
    assert len({answer["message"]["content"] for answer in answers}) > 1


def test_structured_answers_have_them_at_the_value() -> None:
    schema = {"type": "object", "properties": {"answer": {"enum": ["yes", "no", "not relevant"]}}}
    shape = {"type": "json_schema", "json_schema": {"name": "Answer", "schema": schema, "strict": True}}
    with laboratory() as server:
        (choice,) = call(server.base_url, CHAT, body(TOOL, response_format=shape, **ASKED))[1]["choices"]
    assert json.loads(choice["message"]["content"]) == {"answer": "no"}
    assert decisive(choice["logprobs"]["content"]) == pytest.approx({"no": 0.98, "Yes": 0.02})


def test_a_lasting_defect_is_as_certain_as_the_truth() -> None:
    glaring = np.full((96, 96, 3), 255, np.uint8)
    config = Config(styles=("terse",), defects=Defects(saturation_flips=1.0))
    with laboratory(config) as server:
        (choice,) = call(server.base_url, CHAT, body(TOOL, shown=Picture.of(glaring), **ASKED))[1]["choices"]
    assert choice["message"]["content"] == "Yes"
    assert decisive(choice["logprobs"]["content"])["Yes"] == pytest.approx(0.98)


@pytest.mark.slow
def test_a_reader_has_them_from_its_process_and_its_ledger(tmp_path: Path) -> None:
    shown = question_pictures(1, 0).pictures[0].pixels()
    pool = pool_of([Entity(name="polyp"), Entity(name="tube")])
    content = PictureContent(image_sha256(shown), (dumped(pool.as_json()),))
    for folder in ("first", "first", "again"):
        reader = PictureAsker("ask", AskReaderSettings(system="simlab", settings={"styles": ["terse"]}, soft=20))
        reader.keep_in([tmp_path / folder])
        reader.open(device="cpu", threads=1)
        try:
            (scene,) = reader.look([shown], [content])
        finally:
            reader.close()
        assert {belief.names: belief.kind for belief in scene.beliefs if len(belief.names) == 1} == {
            ("polyp",): "entities",
            ("tube",): "entities",
        }
        assert all((belief.yes > 0.5) == (scene.names()[belief.names[0]] > 0) for belief in scene.beliefs[:2])

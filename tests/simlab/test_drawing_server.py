"""``/v1/images/generations`` of the simulated laboratory over HTTP, in the format of OpenAI."""

from __future__ import annotations

import base64
import http.client
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from simlab_parts import KEY, call, laboratory

from medtest.api.faulty.faults import Faults
from medtest.api.faulty.server import FaultServer, serving_server
from medtest.cli.models.simlab import config_of
from medtest.core.errors import UserMistakes
from medtest.simlab.config import DRAWN_DOOR, MODEL, SESSION_DOOR, Config
from medtest.simlab.drawing.artist import Artist
from medtest.simlab.drawing.defects import DrawingDefects
from medtest.simlab.serve import server_of

PROMPT = "A red dog is left of a blue cat."
PATH = "/v1/images/generations"


@contextmanager
def drawing(*, tells_drawn: bool = False, faults: Faults | None = None, **defects: Any) -> Iterator[FaultServer]:
    config = Config(drawing=DrawingDefects(**defects), faults=faults or Faults(key=KEY), tells_drawn=tells_drawn)
    with serving_server(server_of(config)) as server:
        yield server


def ask(server: FaultServer, prompt: object = PROMPT, **more: Any) -> tuple[int, Any]:
    return call(server.base_url, PATH, {"model": MODEL, "prompt": prompt, "size": "128x128", **more})


def pixels(reply: Any, at: int = 0) -> np.ndarray[Any, Any]:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(reply["data"][at]["b64_json"]))).convert("RGB"))


def test_a_picture_is_sent_as_base64_with_usage_and_equals_the_products_painting() -> None:
    with drawing() as server:
        status, reply = ask(server, seed=7)
        again = ask(server, seed=7)[1]
        other = ask(server, seed=8)[1]
    assert status == 200
    own = Artist()
    assert np.array_equal(pixels(reply), own.paint(own.draw(PROMPT, seed=7), 128))
    assert reply == again
    assert not np.array_equal(pixels(reply), pixels(other))
    usage = reply["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0
    assert "revised_prompt" not in reply["data"][0]


def test_a_picture_has_an_address_that_needs_no_key() -> None:
    with drawing() as server:
        reply = ask(server, response_format="url", n=2, output_format="jpeg")[1]
        answers = []
        for entry in reply["data"]:
            at = urlsplit(entry["url"])
            assert (at.hostname, at.port) == ("127.0.0.1", server.port)
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
            connection.request("GET", at.path)
            answer = connection.getresponse()
            answers.append((answer.status, answer.getheader("content-type"), answer.read()))
            connection.close()
        assert call(server.base_url, "/simlab/pictures/another.png", method="GET")[0] == 404
    assert [answer_[:2] for answer_ in answers] == [(200, "image/jpeg")] * 2
    assert Image.open(io.BytesIO(answers[0][2])).size == (128, 128)
    assert answers[0][2] != answers[1][2]  # n draws with seeds of their own


@pytest.mark.parametrize(
    "more",
    [
        {"size": "100x100"},
        {"size": "1024x1536"},
        {"size": 512},
        {"n": 0},
        {"n": 11},
        {"n": True},
        {"n": "2"},
        {"response_format": "png"},
        {"output_format": "gif"},
        {"seed": -1},
        {"seed": 1.5},
        {"prompt": ""},
        {"prompt": None},
        {"prompt": ["a dog"]},
        {"prompt": "dog " * 9000},
    ],
)
def test_malformed_requests_are_bad_requests(more: dict[str, Any]) -> None:
    with drawing() as server:
        status, reply = call(server.base_url, PATH, {"model": MODEL, "prompt": PROMPT, **more})
    assert status == 400
    assert reply["error"]["message"]


def test_key_model_and_json_are_required() -> None:
    with drawing() as server:
        assert call(server.base_url, PATH, {"model": MODEL, "prompt": PROMPT}, key="another")[0] == 401
        assert call(server.base_url, PATH, {"model": "gpt-image-2", "prompt": PROMPT})[0] == 404
        assert call(server.base_url, PATH, raw=b"{", method="POST")[0] == 400
        assert call(server.base_url, PATH, method="GET")[0] == 404


def test_refusals_come_in_every_form() -> None:
    replies = {}
    for form in ("policy", "empty_list", "empty_base64"):
        with drawing(refusals=1.0, refused_as=(form,)) as server:
            replies[form] = ask(server)
    assert replies["policy"][0] == 400
    assert replies["policy"][1]["error"]["code"] == "moderation_blocked"
    assert replies["empty_list"][1]["data"] == []
    assert replies["empty_base64"][1]["data"] == [{"b64_json": ""}]
    with drawing(blank_pictures=1.0) as server:
        assert set(pixels(ask(server)[1]).ravel().tolist()) == {255}
    with drawing(faults=Faults(key=KEY, refusal=1.0)) as server:
        assert ask(server)[1]["error"]["code"] == "moderation_blocked"
    with drawing(faults=Faults(key=KEY, filtered=1.0)) as server:
        assert ask(server)[1]["data"] == []


def test_a_rewritten_prompt_is_in_the_reply() -> None:
    with drawing(prompts_rewritten=1.0) as server:
        assert "flower" in ask(server)[1]["data"][0]["revised_prompt"]


def test_a_session_keeps_removed_entities() -> None:
    with drawing(removed_kept=1.0, tells_drawn=True) as server:

        def drawn(prompt: str, **more: object) -> list[str]:
            request = {"prompt": prompt, "seed": 0, **more}
            return [entity[0] for entity in call(server.base_url, DRAWN_DOOR, request, method="PUT")[1]["things"]]

        request = {"prompt": "A dog.", "seed": 0, "earlier": "A dog and a cat."}
        assert call(server.base_url, SESSION_DOOR, request, method="PUT")[0] == 200
        alone, with_cat = Artist(), drawn("A dog.", earlier="A dog and a cat.")
        assert sorted(with_cat) == ["cat", "dog"]
        by_door = pixels(ask(server, "A dog.")[1])
        assert not np.array_equal(by_door, alone.paint(alone.draw("A dog."), 128))
        ask(server, "A dog and a bus.", user="u")
        by_user = pixels(ask(server, "A bus.", user="u")[1])
        assert not np.array_equal(by_user, alone.paint(alone.draw("A bus."), 128))
        assert np.array_equal(pixels(ask(server, "A bus.", user="v")[1]), alone.paint(alone.draw("A bus."), 128))
        assert call(server.base_url, SESSION_DOOR, {"prompt": 3}, method="PUT")[0] == 400


def test_the_truth_is_only_behind_a_setting_that_no_suite_has() -> None:
    with drawing() as server:
        assert call(server.base_url, DRAWN_DOOR, {"prompt": PROMPT}, method="PUT")[0] == 404
    with laboratory() as server:
        assert call(server.base_url, DRAWN_DOOR, {"prompt": PROMPT}, method="PUT")[0] == 404


def test_a_configuration_survives_its_line() -> None:
    config = Config(drawing=DrawingDefects(refusals=0.5, anew=("refusals",), refused_as=("policy",)), tells_drawn=True)
    assert Config.from_json(config.to_json()) == config


def test_defects_of_pictures_can_be_typed() -> None:
    config = config_of(defects=["drawing.sides_swapped=0.5", "drawing.cap=3", "refusals=0.1"])
    assert (config.drawing.sides_swapped, config.drawing.cap, config.drawing.refusals) == (0.5, 3, 0.0)
    assert config.defects.refusals == 0.1
    with pytest.raises(UserMistakes, match=r"drawing\.refusals"):
        config_of(defects=["drawing.refusals=2"])

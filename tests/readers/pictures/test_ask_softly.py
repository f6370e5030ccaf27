"""A reader that requests log-probabilities: beliefs beside answers in words, stored, or left out without them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from medtest.api.faulty.answers import BadRequest, Weighed
from medtest.api.faulty.faults import Faults
from medtest.api.faulty.server import FaultServer, serving_server
from medtest.core.cases import image_sha256
from medtest.core.scenes import Belief, Entity, Pool, Scene, dumped, pool_of
from medtest.readers.pictures.ask import AskReaderSettings, PictureAsker
from medtest.readers.pictures.base import PictureContent, PromptedContent
from medtest.systems.answering.simlab import Simlab

IMAGE = np.full((24, 32, 3), 120, np.uint8)
POOL = pool_of([Entity(name="dog", count=2, attributes=("brown", "wet")), Entity(name="sofa")], [(0, "on", 1)])
WITHOUT_CAT = Pool(entities=(Entity(name="owl"),), absent=("cat",))
CHANCES = {
    "Is there a dog in the picture?": 0.9,
    "Is there a sofa in the picture?": 0.6,
    "Is there a cat in the picture?": 0.3,
    "Is there an owl in the picture?": 0.2,
    "Are there exactly 2 dogs in the picture?": 0.7,
    "Is there exactly one sofa in the picture?": 0.8,
    "Is the dog in the picture brown?": 0.55,
    "Is the dog in the picture wet?": 0.35,
    "Is a dog on a sofa in the picture?": 0.75,
    'Does this figure show "Two brown wet dogs on a sofa"? Please answer yes or no.': 0.65,
}
OPEN = {"How many dogs are in the picture?": "2", "How many sofas are in the picture?": "1"}
OPEN |= {"What colour is the dog in the picture?": "brown"}
PROMPT = "Two brown wet dogs on a sofa"


def _question(body: Mapping[str, Any]) -> str:
    return next(str(part["text"]) for part in body["messages"][-1]["content"] if part["type"] == "text")


def sure(body: Mapping[str, Any]) -> str:
    """Answer according to CHANCES, with a tenth for a third word."""
    text = _question(body)
    if text in OPEN:
        return OPEN[text]
    yes = CHANCES[text]
    return Weighed("Yes" if yes > 0.5 else "No.", {"Yes": 0.9 * yes, "No": 0.9 * (1 - yes), "Maybe": 0.1})


@contextmanager
def asker(
    answer: Callable[[Mapping[str, Any]], str], folder: Path, **settings: Any
) -> Iterator[tuple[PictureAsker, FaultServer]]:
    with serving_server(FaultServer(Faults(), answer=answer)) as server:
        of_system = {"base_url": server.base_url, "model": "eyes", "structured": "never", "attempts": 1}
        reader = PictureAsker("ask", AskReaderSettings(settings=of_system, **settings))
        assert reader.check() == []
        reader.keep_in([folder])
        reader.open(device="cpu", threads=1)
        try:
            yield reader, server
        finally:
            reader.close()


def content(*pools: Pool, prompt: str = "") -> PictureContent:
    texts = tuple(dumped(pool.as_json()) for pool in pools)
    sha = image_sha256(IMAGE)
    return PromptedContent(sha, texts, prompt) if prompt else PictureContent(sha, texts)


def beliefs(scene: Scene) -> dict[tuple[str, ...], float]:
    assert all(belief.neither == pytest.approx(0.1, abs=1e-5) for belief in scene.beliefs)
    return {(belief.kind, *belief.names): round(belief.yes, 4) for belief in scene.beliefs}


def test_probabilities_of_yes_accompany_the_answers_and_no_call_is_repeated(tmp_path: Path) -> None:
    contents = [content(POOL, WITHOUT_CAT, prompt=PROMPT)]
    with asker(sure, tmp_path, soft=20, whole_prompt=True) as (reader, server):
        (scene,) = reader.look([IMAGE], contents)
        assert beliefs(scene) == {
            ("entities", "cat"): 0.3,
            ("entities", "dog"): 0.9,
            ("entities", "owl"): 0.2,
            ("entities", "sofa"): 0.6,
            ("counts", "dog", "2"): 0.7,
            ("counts", "sofa", "1"): 0.8,
            ("attributes", "brown", "dog"): 0.55,
            ("attributes", "wet", "dog"): 0.35,
            ("relations", "dog", "on", "sofa"): 0.75,
            ("prompt",): 0.65,
        }
        assert Scene.of_json(json.loads(dumped(scene.as_json())), scene.tells) == scene
        answer_count = server.counts["answered"]
        assert answer_count == len(CHANCES) + len(OPEN)
        reader.close()
        reader.open(device="cpu", threads=1)
        assert reader.look([IMAGE], contents) == [scene]
        assert server.counts["answered"] == answer_count  # the ledger has log-probabilities too
    with asker(sure, tmp_path / "plain") as (reader, server):
        (plain,) = reader.look([IMAGE], [content(POOL, WITHOUT_CAT)])
    assert (plain.entities, plain.triples, plain.tells) == (scene.entities, scene.triples, scene.tells)
    assert plain.beliefs == ()


def test_a_server_without_log_probabilities_leaves_the_answers_in_words(tmp_path: Path) -> None:
    requested: list[bool] = []

    def silent(body: Mapping[str, Any]) -> str:
        requested.append("top_logprobs" in body)
        return str(sure(body))

    with asker(silent, tmp_path, soft=20) as (reader, _):
        (first,) = reader.look([IMAGE], [content(POOL)])
        assert (first.beliefs, first.names()) == ((), {"dog": 2, "sofa": 1})
        assert requested.count(True) == 2  # whether there is a dog and a sofa: after that it is no longer requested
        reader.look([IMAGE + 1], [content(POOL)])
        assert requested.count(True) == 2


def test_answers_without_log_probabilities_among_others_end_nothing(tmp_path: Path) -> None:
    def some(body: Mapping[str, Any]) -> str:
        return sure(body) if "there a" in _question(body) else str(sure(body))

    with asker(some, tmp_path, soft=20) as (reader, _):
        first, second = (reader.look([IMAGE + shade], [content(POOL)])[0] for shade in (0, 1))
    assert beliefs(first) == beliefs(second) == {("entities", "dog"): 0.9, ("entities", "sofa"): 0.6}


def test_a_server_that_rejects_log_probabilities_is_asked_without_them(tmp_path: Path) -> None:
    requested: Counter[bool] = Counter()

    def rejecting(body: Mapping[str, Any]) -> str:
        requested["logprobs" in body] += 1
        if "logprobs" in body:
            raise BadRequest("Unsupported parameter: 'logprobs' is not supported with this model.")
        return str(sure(body))

    with asker(rejecting, tmp_path, soft=20) as (reader, _):
        (scene,) = reader.look([IMAGE], [content(POOL)])
    assert (scene.beliefs, scene.names()) == ((), {"dog": 2, "sofa": 1})
    assert requested[True] <= 2  # both questions of presence may be under way at once
    assert requested[False] == 2 + 3 + 2  # presence, numbers and colour, wet and on


def test_structured_answers_have_log_probabilities_too(tmp_path: Path) -> None:
    def by_schema(body: Mapping[str, Any]) -> str:
        words = sure({**body, "messages": [{"content": [{"type": "text", "text": _question(body)}]}]})
        if not isinstance(words, Weighed):
            return json.dumps({"answer": [words] if words == "brown" else int(words)})
        return Weighed(json.dumps({"answer": str(words).strip(".").lower()}), words.chances)

    with serving_server(FaultServer(Faults(), answer=by_schema)) as server:
        settings = AskReaderSettings(settings={"base_url": server.base_url, "model": "eyes"}, soft=5)
        reader = PictureAsker("ask", settings)
        reader.keep_in([tmp_path])
        reader.open(device="cpu", threads=1)
        (scene,) = reader.look([IMAGE], [content(POOL)])
        reader.close()
    assert beliefs(scene)["relations", "dog", "on", "sofa"] == 0.75
    assert beliefs(scene)["entities", "sofa"] == 0.6


def test_the_same_card_fits_with_and_without_soft_scores_and_readings_are_distinguished() -> None:
    served = {"base_url": "http://127.0.0.1:1/v1", "model": "eyes"}
    plain, soft = (PictureAsker("ask", AskReaderSettings(settings=served, soft=count)) for count in (0, 20))
    assert plain.print_without_card == soft.print_without_card
    assert plain.fingerprint() != soft.fingerprint()
    assert "soft" not in json.dumps(plain.fingerprint())
    assert (plain.about().get("soft"), soft.about().get("soft")) == (None, True)


def test_impossible_log_probabilities_are_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Simlab, "tells_likely", False)  # like a system of another package
    (mistake,) = PictureAsker("ask", AskReaderSettings(system="simlab", soft=20, card="none")).check()
    assert mistake.key == "soft"
    assert "tells no log-probabilities" in mistake.found
    with pytest.raises(ValidationError, match="soft=20"):
        AskReaderSettings(whole_prompt=True)
    with pytest.raises(ValidationError, match="20"):
        AskReaderSettings(soft=21)


def test_a_damaged_belief_is_no_scene() -> None:
    whole = Scene(beliefs=(Belief(kind="entities", names=("dog",), yes=0.25, neither=0.0),)).as_json()
    assert whole["beliefs"] == [["entities", ["dog"], 0.25, 0.0]]
    for beliefs_ in ([["entities", ["dog"]]], [3], 3, [["entities", ["dog"], "high", 0]]):
        with pytest.raises(ValueError, match="no scene"):
            Scene.of_json({**whole, "beliefs": beliefs_})

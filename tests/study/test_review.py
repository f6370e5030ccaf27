"""Reviews of prompts: the page, the file beside the prompts, and its use in a run."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from asgi_browser import PORT, AppBrowser

from medtest.core.errors import UserMistakes
from medtest.language.captions.reading.reader import read_prompt
from medtest.language.captions.reading.reviewed import (
    MARK,
    Review,
    read_reviews,
    reviewed_file,
    under_review,
    write_review,
)
from medtest.seeds.captions.source import Captions, CaptionSettings
from medtest.study.server.guard import HEADERS, site_of
from medtest.study.server.review import build_review

HOSTILE = '<img src=x onerror=alert(1)>"><script>alert(2)</script> two dogs'
TEXTS = ["A red dog on a table.", "Draw a fox that is not wearing a hat", HOSTILE]
TOKEN = "a-token-of-this-server"  # noqa: S105 - of this test


class Reviewer(AppBrowser):
    """Browser of a reviewer."""

    def __init__(self, path: Path, token: str = TOKEN) -> None:
        super().__init__(build_review(TEXTS, read_prompt, path, site_of("127.0.0.1", PORT), TOKEN))
        reply = self.ask("GET", f"/a/{token}")
        self.entered = reply.status
        self.cookie = reply.headers.get("set-cookie", "").partition(";")[0]
        page = self.ask("GET", "/").body.decode()
        self.seal = page.partition('data-seal="')[2].partition('"')[0]

    def prompt(self, number: int) -> Any:
        return self.ask("GET", f"/api/prompt/{number}").json

    def send(self, content: dict[str, Any], **headers: str) -> Any:
        named = {"content_type": "application/json", "x_study_seal": self.seal, **headers}
        return self.ask("POST", "/api/review", json.dumps(content).encode(), **named)


def statements_of(facts: dict[str, Any]) -> dict[str, Any]:
    entities = [{"name": name, "count": count, "attributes": extra} for name, count, extra in facts["entities"]]
    return {"entities": entities, "triples": facts["triples"], "absent": facts["absent"]}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "prompts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    return reviewed_file(tmp_path / "prompts.txt")


def test_only_the_printed_link_gives_access_and_every_reply_has_the_headers(target: Path) -> None:
    stranger = Reviewer(target, "another")
    assert stranger.entered == 403 and stranger.ask("GET", "/api/prompt/0").status == 401
    assert stranger.send({"number": 0}).status == 401
    reviewer = Reviewer(target)
    assert reviewer.entered == 303
    for path in ("/", "/api/prompt/2", "/static/review.js", "/static/review.css", "/none"):
        reply = reviewer.ask("GET", path)
        assert all(reply.headers[name] == value for name, value in HEADERS.items()), path
    assert reviewer.ask("GET", "/", host="evil.example").status == 421
    accepted = {"number": 0, **statements_of(reviewer.prompt(0)["read"])}
    assert reviewer.send(accepted, origin="http://evil.example").status == 403
    assert reviewer.send(accepted, x_study_seal="guessed").status == 403
    assert not target.exists()


def test_a_prompt_is_accepted_or_corrected_and_stored_beside_the_prompts(target: Path) -> None:
    reviewer = Reviewer(target)
    first = reviewer.prompt(0)
    assert (first["confidence"], first["verdict"], first["reviewed"], first["next"]) == ("high", None, 0, 1)
    reply = reviewer.send({"number": 0, **statements_of(first["read"])}).json
    assert (reply["verdict"], reply["reviewed"], reply["next"]) == ("accepted", 1, 1)
    second = reviewer.prompt(1)
    assert second["confidence"] == "medium" and second["read"]["absent"] == [["fox", "wearing", "hat"]]
    assert {"begins with a command, which stays as it is"} < {reason["meaning"] for reason in second["reasons"]}
    corrected = statements_of(second["read"])
    corrected["entities"] += [{"name": "  Green Hill ", "count": None, "attributes": ["steep"]}]
    corrected["triples"] = [[0, "On", 1]]
    assert reviewer.send({"number": 1, **corrected}).json["verdict"] == "corrected"
    reviews = read_reviews(target)
    assert set(reviews) == set(TEXTS[:2])
    reading = reviews[TEXTS[1]].reading
    assert reading.pool.named() == (("fox", "on", "green hill"),) and reading.confidence == "high"
    assert Reviewer(target).prompt(1)["facts"]["triples"] == [[0, "on", 1]]
    whole = under_review(read_prompt(TEXTS[1]), reviews)
    assert whole.pool == reading.pool and whole.command == "Draw" and whole.is_understood
    assert reviewer.send({"number": 1, "withdrawn": True}).json["verdict"] is None
    assert set(read_reviews(target)) == {TEXTS[0]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"entities": []},
        {"entities": [{"name": ""}]},
        {"entities": [{"name": "dog", "count": 0}]},
        {"entities": [{"name": "dog"}], "triples": [[0, "on", 1]]},
        {"entities": [{"name": "dog"}], "triples": [[0, "on", 0]]},
        {"entities": [{"name": "dog"}], "absent": [[]]},
        {"entities": [{"name": "dog", "script": "x"}]},
        {"entities": [{"name": "dog"}] * 41},
        {"number": 9, "entities": [{"name": "dog"}]},
    ],
)
def test_invalid_reviews_are_refused(target: Path, wrong: dict[str, Any]) -> None:
    assert Reviewer(target).send({"number": 0, **wrong}).status in (404, 422)
    assert not target.exists()


def test_reviews_of_several_windows_at_once_are_all_kept(target: Path) -> None:
    review = Review(verdict="accepted", reading=read_prompt(TEXTS[0]))
    texts = [f"{number} {'red ' * 400}" for number in range(48)]  # long ones, so that writing takes a while
    with ThreadPoolExecutor(8) as windows:
        list(windows.map(lambda text: write_review(target, text, review), texts))
    assert read_reviews(target).keys() == set(texts)


def test_a_file_of_the_user_is_never_overwritten(target: Path) -> None:
    target.write_text('{"mine": 1}')
    with pytest.raises(UserMistakes, match="did not write"):
        Reviewer(target)
    with pytest.raises(UserMistakes, match="did not write"):
        write_review(target, "x", None)
    assert target.read_text() == '{"mine": 1}'
    target.unlink()
    reviewer = Reviewer(target)
    accepted = {"number": 0, **statements_of(reviewer.prompt(0)["read"])}
    target.write_text("[]")
    assert reviewer.send(accepted).status == 409 and target.read_text() == "[]"
    target.write_text(json.dumps({MARK: 1, "prompts": {"a": {"verdict": "accepted", "pool": {"entities": [["x"]]}}}}))
    with pytest.raises(UserMistakes, match="did not write"):
        read_reviews(target)


@pytest.mark.parametrize("words", ["own", "template"])
def test_a_run_reads_reviewed_prompts_first_and_counts_them(target: Path, words: Any) -> None:
    def seeds() -> tuple[dict[str, Any], tuple[str, ...], str]:
        settings = CaptionSettings(min_triples=0, words=words)
        source = Captions(dataset="d", settings=settings, root=target.parent, suite_seed=1)
        pools = {}
        for ref in source.places():
            prompt = source.load(ref).prompt
            assert prompt is not None
            pools[ref.seed_id] = prompt.pool.names()
        return pools, tuple(source.notices()), source.digest()

    before, notices, digest = seeds()
    assert not any("reviewed" in notice for notice in notices)
    reviewer = Reviewer(target)
    reviewer.send({"number": 0, "entities": [{"name": "zebra", "count": 3}]})
    after, notices, reviewed_digest = seeds()
    assert any("1 of 3 prompts have a reviewed pool" in notice for notice in notices)
    assert {"zebra": 3} in after.values() and {"zebra": 3} not in before.values()
    assert digest != reviewed_digest


@pytest.mark.parametrize("count", [0, -3, 10**12])
def test_a_file_with_impossible_numbers_is_one_message(count: int, target: Path) -> None:
    pool = {"entities": [["dog", count, []]], "triples": []}
    target.write_text(json.dumps({MARK: 1, "prompts": {"dogs": {"verdict": "accepted", "pool": pool, "absent": []}}}))
    with pytest.raises(UserMistakes, match="no number of things"):
        read_reviews(target)

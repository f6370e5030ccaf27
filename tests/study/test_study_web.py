"""The web application over ASGI: access, served files, accepted answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgi_browser import PORT, AppBrowser, Reply

from medtest.core.errors import UserMistakes
from medtest.study.model import MAX_ELAPSED_MS
from medtest.study.server.guard import HEADERS, MAX_BODY, site_of
from medtest.study.server.pages import STATIC
from medtest.study.server.web import build_app
from medtest.study.store import StudyStore


class Browser(AppBrowser):
    """Browser of an annotator."""

    def __init__(self, store: StudyStore, url: str = "") -> None:
        super().__init__(build_app(store, site_of("127.0.0.1", PORT, url)))

    def enter(self, token: str) -> Reply:
        reply = self.ask("GET", f"/a/{token}")
        if reply.status == 303:
            self.cookie = reply.headers["set-cookie"].partition(";")[0]
            self.seal = self.ask("GET", "/api/study").json["seal"]
        return reply

    def answer(self, content: dict[str, Any], **headers: str) -> Reply:
        named = {"content_type": "application/json", "x_study_seal": self.seal, **headers}
        return self.ask("POST", "/api/answer", json.dumps(content).encode(), **named)


def answer_body(phase: str = "training", position: int = 1, **more: Any) -> dict[str, Any]:
    number = f"request-{phase}-{position}"
    return {"phase": phase, "position": position, "diagnosis": 5, "realism": 4, "request": number, **more}


@pytest.fixture
def browser(store: StudyStore) -> Browser:
    opened = Browser(store)
    opened.enter(store.new_tokens([1])[0])
    return opened


@pytest.mark.slow
def test_a_link_gives_access_and_leaves_the_address_bar(store: StudyStore) -> None:
    browser = Browser(store)
    reply = browser.enter(store.new_tokens([1])[0])
    assert (reply.status, reply.headers["location"]) == (303, "/")
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    page = browser.ask("GET", "/")
    assert page.status == 200
    assert b"keeps the same diagnosis" in page.body
    assert browser.ask("GET", "/api/study").json["annotator"] == 1


@pytest.mark.parametrize("path", ["/", "/api/study", "/api/item/main/1", "/image/" + "0" * 32])
def test_nothing_without_a_link(store: StudyStore, path: str) -> None:
    browser = Browser(store)
    assert browser.ask("GET", path).status == 401
    browser.cookie = f"study_{store.meta['secret'][:8]}=wrong"
    assert browser.ask("GET", path).status == 401
    assert browser.enter("wrong").status == 403


def test_every_answer_has_the_headers(browser: Browser) -> None:
    for path in ("/", "/static/study.js", "/api/study", "/nowhere", "/image/zzz"):
        reply = browser.ask("GET", path)
        for name, value in HEADERS.items():
            assert reply.headers[name] == value
    policy = HEADERS["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_pages_hold_nothing_inline_or_foreign(browser: Browser) -> None:
    page = browser.ask("GET", "/").body.decode()
    assert "<style" not in page
    assert " style=" not in page
    assert " onclick" not in page
    assert page.count("<script") == 1
    for name in STATIC:
        body = browser.ask("GET", f"/static/{name}").body.decode()
        outside = body.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in outside
        assert "https://" not in outside
        assert "innerHTML" not in body
        assert "eval(" not in body


@pytest.mark.parametrize(
    "path",
    [
        "/static/",
        "/static/..%2fweb.py",
        "/static/../web.py",
        "/static/page.html.j2",
        "/image/",
        "/image/../study.db",
        "/images/",
        "/study.db",
        "/image/..%2f..%2fstudy.db",
    ],
)
def test_no_listing_and_no_other_file(browser: Browser, path: str) -> None:
    assert browser.ask("GET", path).status == 404


def test_images_belong_to_their_annotator(store: StudyStore, browser: Browser) -> None:
    own = [p for p in store.places() if p.annotator == 1 and p.phase == "main"][0]
    other = [p for p in store.places() if p.annotator == 2 and p.phase == "main"][0]
    reply = browser.ask("GET", f"/image/{own.source_key}")
    assert (reply.status, reply.headers["content-type"]) == (200, "image/png")
    assert reply.body.startswith(b"\x89PNG")
    assert browser.ask("GET", f"/image/{other.source_key}").status == 404


def test_items_do_not_reveal_their_role(store: StudyStore, browser: Browser) -> None:
    text = browser.ask("GET", "/api/item/training/1").body.decode()
    place = next(p for p in store.places() if p.annotator == 1 and p.phase == "training")
    item = store.item(place.item)
    for secret in (item.seed_id, item.relation, item.role.value, item.followup_sha256, item.source_file, "showing"):
        assert secret not in text.replace('"source"', "")


def test_answers_are_saved_in_order_and_training_comes_first(store: StudyStore, browser: Browser) -> None:
    assert browser.answer(answer_body("main", 1)).status == 409
    assert browser.answer(answer_body("training", 3)).status == 409
    for position in (1, 2, 3, 4):
        reply = browser.answer(answer_body("training", position))
        assert reply.status == 200
        assert reply.json["saved"]
        assert reply.json["feedback"]["words"]
    assert browser.ask("GET", "/api/item/main/2").status == 409
    reply = browser.answer(answer_body("main", 1, comment=" a <b>note</b> ", elapsed_ms=4321))
    assert "feedback" not in reply.json
    assert reply.json["progress"]["next"] == 2
    stored = store.answer(1, "main", 1)
    assert stored is not None
    assert (stored.comment, stored.elapsed_ms) == ("a <b>note</b>", 4321)
    assert browser.ask("GET", "/api/item/main/1").json["answer"]["diagnosis"] == 5
    assert browser.answer(answer_body("main", 1)).status == 200  # the same request again
    assert len([a for a in store.answers(history=True) if a.phase == "main"]) == 1
    assert browser.answer(answer_body("main", 2, request="request-main-1")).status == 409


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"x_study_seal": ""}, 403),
        ({"x_study_seal": "0" * 64}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"host": "evil.example"}, 421),
        ({"content_length": str(MAX_BODY + 1)}, 413),
        ({"origin": f"http://127.0.0.1:{PORT}", "sec_fetch_site": "same-origin"}, 200),
    ],
)
def test_answers_come_from_the_studys_own_page(
    store: StudyStore, browser: Browser, headers: dict[str, str], status: int
) -> None:
    assert browser.answer(answer_body(), **headers).status == status
    assert len(store.answers()) == (status == 200)


def test_another_annotators_seal_is_refused(store: StudyStore, browser: Browser) -> None:
    """A page that stays open while a second link is opened must not answer for the second annotator."""
    seal = browser.seal
    browser.enter(store.new_tokens([2])[0])
    assert browser.answer(answer_body(), x_study_seal=seal).status == 403
    assert store.answers() == []


@pytest.mark.parametrize(
    "more",
    [
        {"diagnosis": 6},
        {"diagnosis": 0},
        {"diagnosis": "5"},
        {"diagnosis": 4.5},
        {"realism": None},
        {"marks": ["blood"]},
        {"comment": "x" * 2001},
        {"phase": "other"},
        {"position": 0},
        {"elapsed_ms": -1},
        {"request": "short"},
        {"request": "no spaces or ' quotes"},
        {"role": "item"},
    ],
)
def test_invalid_answers_are_refused(store: StudyStore, browser: Browser, more: dict[str, Any]) -> None:
    assert browser.answer(answer_body(**more)).status == 422
    assert store.answers() == []


@pytest.mark.parametrize("position", ["0", "-1", "99999999999999999999999999", "1e3", "one"])
def test_unknown_places(browser: Browser, position: str) -> None:
    assert browser.ask("GET", f"/api/item/training/{position}").status == 404


def test_control_characters_of_a_comment_are_left_out(store: StudyStore, browser: Browser) -> None:
    assert browser.answer(answer_body(comment="\x00one\x1b[2J\r\ntwo\tü\x7f")).status == 200
    assert [a.comment for a in store.answers()] == ["one[2J\ntwo\tü"]


def test_invalid_bodies(browser: Browser) -> None:
    for body in (b"", b"[" * 9000, b"\xff\xfe", b"null"):
        reply = browser.ask("POST", "/api/answer", body, content_type="application/json", x_study_seal=browser.seal)
        assert reply.status == 422
    longer = b" " * (MAX_BODY + 5)
    reply = browser.ask("POST", "/api/answer", longer, content_type="application/json", content_length="10")
    assert reply.status == 413


def test_long_addresses_are_refused(browser: Browser) -> None:
    assert browser.ask("GET", "/a/" + "x" * 5000).status == 414


def test_leaving_clears_the_cookie(browser: Browser) -> None:
    reply = browser.ask("POST", "/leave", b"{}", x_study_seal=browser.seal, content_type="application/json")
    assert reply.status == 200
    assert "max-age=0" in reply.headers["set-cookie"].lower()


@pytest.mark.slow
def test_artefacts_want_marks(frames_folder: Any) -> None:
    with StudyStore(frames_folder) as store:
        browser = Browser(store)
        browser.enter(store.new_tokens([1])[0])
        assert "source" not in browser.ask("GET", "/api/item/training/1").json
        assert browser.answer(answer_body()).status == 422
        base = {"phase": "training", "position": 1, "request": "request-1"}
        assert browser.answer({**base, "marks": ["unknown"]}).status == 422
        assert browser.answer({**base, "marks": []}).status == 200


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x",
        "study.example.org",
        "https://",
        "https://[",
        "https://host:port",
        "https://host:99999",
        "https://name:word@host",
        "https://host/path",
        "https://host?x",
        "https://host#x",
        "https://ho st",
    ],
)
def test_addresses_that_annotators_cannot_type(url: str) -> None:
    with pytest.raises(UserMistakes, match="--url"):
        site_of("127.0.0.1", 8765, url)


def test_an_item_that_was_open_overnight_can_still_be_answered(store: StudyStore, browser: Browser) -> None:
    assert browser.answer(answer_body(elapsed_ms=50_000_000)).status == 200
    assert [a.elapsed_ms for a in store.answers()] == [MAX_ELAPSED_MS]


def test_addresses_of_a_study(store: StudyStore) -> None:
    assert site_of("127.0.0.1", 80).url == "http://127.0.0.1:80"
    site = site_of("0.0.0.0", 8765, "https://study.example.org")  # noqa: S104
    assert site.secure
    assert site.url == "https://study.example.org"
    with pytest.raises(UserMistakes, match="--url"):
        site_of("0.0.0.0", 8765)  # noqa: S104
    assert site_of("127.0.0.1", 8765, "HTTPS://Study.Example.org:443/").hosts >= {"study.example.org"}
    assert site_of("127.0.0.1", 8765, "http://[::1]:9000").url == "http://[::1]:9000"
    proxied = Browser(store, "https://study.example.org")
    proxied.cookie = ""
    reply = proxied.ask("GET", f"/a/{store.new_tokens([1])[0]}", host="study.example.org")
    assert reply.status == 303
    assert "secure" in reply.headers["set-cookie"].lower()

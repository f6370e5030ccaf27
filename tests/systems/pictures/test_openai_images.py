"""``images.generations``: requests, outcomes of every form of an answer, and stored files."""

from __future__ import annotations

import base64
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchanges import BLANK, PIXELS, PNG, SHA256, ask, call, draw_noise, exchanges, make_system, opened, output, playing

from medtest.api.budget import BudgetReached
from medtest.core.cases import image_sha256
from medtest.core.files.by_content import PictureFiles, encode
from medtest.core.plugins import parts
from medtest.core.records import PICTURES
from medtest.systems.answering.asking import BudgetLimits
from medtest.systems.pictures.services import OpenAIImages

KEY = "canary-key-4711x"


def replying(status: int, body: Any, path: str = "/v1/images/generations") -> list[dict[str, Any]]:
    return [{"request": {"method": "POST", "path": path}, "reply": {"status": status, "body": body}}]


def first_image(first: dict[str, Any]) -> list[dict[str, Any]]:
    return replying(200, {"data": [first]})


def file_exchange(url: str = "/files/a.png", name: str = "PNG", **reply: Any) -> dict[str, Any]:
    return {"request": {"method": "GET", "path": url}, "reply": {"status": 200, "body": {"file": name}, **reply}}


def test_a_picture_has_the_format_of_openai(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGE_KEY", KEY)
    with playing(exchanges("openai_images")) as vendor:
        price = {"m": {"input": 5.0, "output": 30.0}}
        system = make_system(OpenAIImages, vendor, path="/v1", key_variable="IMAGE_KEY", prices=price)
        (result,) = ask(system, tmp_path)
    answer = output(result)
    assert (answer.state, answer.picture, answer.why, answer.attempts) == ("answered", SHA256, "", 1)
    assert (answer.prompt_tokens, answer.completion_tokens) == (17, 272)
    assert answer.cost_usd == pytest.approx((17 * 5 + 272 * 30) / 1e6)
    assert np.array_equal(PictureFiles(tmp_path / "run" / PICTURES).read("images", SHA256), PIXELS)
    contents = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".png"]
    assert any(SHA256.encode() in content for content in contents)
    coded = base64.b64encode(PNG)[:40]
    for secret in (KEY.encode(), coded, b"a red dog"):
        assert not any(secret in content for content in contents)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("played", "why"),
    [
        (replying(200, {"data": []}), "empty list"),
        (first_image({"b64_json": ""}), "empty picture"),
        (first_image({"b64_json": None, "url": None}), "empty picture"),
        (first_image({"b64_json": "{BLANK}"}), "one colour"),
        (first_image({"b64_json": "data:image/png;base64,"}), "no picture"),
        ([*first_image({"url": "{BASE}/files/a.png"}), file_exchange(name="BLANK")], "one colour"),
        (
            replying(
                400,
                {
                    "error": {
                        "message": "Your request was rejected by the safety system. safety_violations=[violence].",
                        "type": "image_generation_user_error",
                        "param": "",
                        "code": "moderation_blocked",
                    }
                },
            ),
            "HTTP 400",
        ),
        (replying(400, {"error": {"code": "content_policy_violation", "message": "…"}}), "HTTP 400"),
        (replying(400, {"error": {"code": "contentFilter", "message": "blocked by our content policy"}}), "HTTP 400"),
        (replying(502, {"error": {"message": "PUBLIC_ERROR_UNSAFE_GENERATION"}}), "HTTP 502"),
    ],
)
def test_moderation_in_each_form_is_one_state_asked_once(tmp_path: Path, played: Any, why: str) -> None:
    with playing(played) as vendor:
        first = output(ask(make_system(OpenAIImages, vendor, path="/v1", attempts=4), tmp_path)[0])
        again = output(ask(make_system(OpenAIImages, vendor, path="/v1", attempts=4), tmp_path)[0])
        posts = vendor.requests.count("POST /v1/images/generations")
        assert posts == 1  # never tried again; the ledger remembers
        output(ask(make_system(OpenAIImages, vendor, path="/v1", attempts=4), tmp_path, run="other")[0])
        assert vendor.requests.count("POST /v1/images/generations") == 2  # never cached
    assert first.state == again.state == "content_filter"
    assert why in first.why and first.picture == ""
    assert not list((tmp_path / "run" / PICTURES).rglob("*.png"))


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_wrong_request_is_not_moderation(tmp_path: Path, status: int) -> None:
    body = {"error": {"code": "invalid_value", "message": "a red dog on a table, moderation: no such size"}}
    body["error"]["message"] = "no such size for 'a red dog on a table, under moderation'"
    with playing(replying(status, body)) as vendor:
        text = "a red dog on a table, under moderation"
        (result,) = ask(make_system(OpenAIImages, vendor, path="/v1", attempts=1), tmp_path, [call(text=text)])
    assert isinstance(output(result), str) and "[prompt]" in output(result)  # an ERROR, without the prompt's words


def test_invalid_pictures_are_malformed(tmp_path: Path) -> None:
    with playing(first_image({"b64_json": base64.b64encode(PNG[:200]).decode()})) as vendor:
        (result,) = ask(make_system(OpenAIImages, vendor, path="/v1"), tmp_path)
    assert output(result).state == "malformed" and "truncated" in output(result).why
    with playing(first_image({"b64_json": "%%%"})) as vendor:
        (result,) = ask(make_system(OpenAIImages, vendor, path="/v1"), tmp_path, run="other")
    assert output(result).state == "malformed" and "not base64" in output(result).why


def test_an_address_is_fetched_at_once_and_the_rewritten_prompt_recorded(tmp_path: Path) -> None:
    played = [
        *first_image({"url": "{BASE}/files/a.png?sig=abc", "revised_prompt": "A crimson dog."}),
        file_exchange("/files/a.png.*"),
    ]
    with playing(played) as vendor:
        (result,) = ask(make_system(OpenAIImages, vendor, path="/v1"), tmp_path)
    assert output(result).picture == SHA256 and output(result).revised_prompt == "A crimson dog."
    assert vendor.requests[-1] == "GET /files/a.png?sig=abc"


def test_a_jpeg_is_kept_as_pixels_and_resized_where_asked(tmp_path: Path) -> None:
    import cv2

    big = cv2.resize(draw_noise(3, 8), (96, 64), interpolation=cv2.INTER_NEAREST)
    jpeg = cv2.imencode(".jpg", big)[1].tobytes()
    with playing(first_image({"b64_json": base64.b64encode(jpeg).decode()})) as vendor:
        plain = output(ask(make_system(OpenAIImages, vendor, path="/v1"), tmp_path)[0])
        small = output(ask(make_system(OpenAIImages, vendor, path="/v1", kept_size=48), tmp_path)[0])
    files = PictureFiles(tmp_path / "run" / PICTURES)
    assert files.read("images", plain.picture).shape == (64, 96, 3)
    assert files.read("images", small.picture).shape == (32, 48, 3)


def test_a_png_is_kept_without_its_metadata(tmp_path: Path) -> None:
    import zlib

    metadata = b"tEXtauthor\0somebody"
    chunk = (len(metadata) - 4).to_bytes(4, "big") + metadata + zlib.crc32(metadata).to_bytes(4, "big")
    with playing(first_image({"b64_json": base64.b64encode(PNG[:33] + chunk + PNG[33:]).decode()})) as vendor:
        (result,) = ask(make_system(OpenAIImages, vendor, path="/v1"), tmp_path)
    path = PictureFiles(tmp_path / "run" / PICTURES).path("images", output(result).picture)
    assert output(result).picture == SHA256 and path.read_bytes() == PNG


def test_the_cache_gives_a_picture_to_another_run_while_it_is_whole(tmp_path: Path) -> None:
    with playing(first_image({"b64_json": "{PNG}"})) as vendor:

        def picture_of(run: str, cache: str = "use") -> str:
            return str(
                output(ask(make_system(OpenAIImages, vendor, path="/v1"), tmp_path, run=run, cache=cache)[0]).picture
            )

        assert picture_of("one") == picture_of("two") == SHA256
        assert len(vendor.requests) == 1
        files = PictureFiles(tmp_path / "two" / PICTURES)
        assert image_sha256(files.read("images", SHA256)) == SHA256
        # A picture that was damaged in the run's folder is brought again from the shared ones …
        files.path("images", SHA256).unlink()
        files.path("images", SHA256).write_bytes(PNG[:-40])
        assert picture_of("two") == SHA256 and len(vendor.requests) == 1
        assert image_sha256(files.read("images", SHA256)) == SHA256
        # … and one that is nowhere is asked for again.
        files.path("images", SHA256).unlink()
        PictureFiles(tmp_path / "shared" / PICTURES).path("images", SHA256).unlink()
        assert picture_of("two") == SHA256 and len(vendor.requests) == 2
        assert picture_of("three", cache="off") == SHA256 and len(vendor.requests) == 3


def test_a_repeated_call_without_cache_is_drawn_again(tmp_path: Path) -> None:
    from dataclasses import replace

    from medtest.core.cases import Address

    with playing(first_image({"b64_json": "{PNG}"})) as vendor:
        repeats = [
            replace(call(number), addresses=(Address(dataset="d", seed_id="s0", relation="unchanged", repeat=number),))
            for number in range(2)
        ]
        ask(make_system(OpenAIImages, vendor, path="/v1"), tmp_path, [call(5), *repeats])
    assert len(vendor.requests) == 3


def test_a_budget_with_a_price_per_picture_stops_below_its_limit(tmp_path: Path) -> None:
    with playing(first_image({"b64_json": "{PNG}"})) as vendor:
        system = make_system(OpenAIImages, vendor, path="/v1", prices={"m": {"picture": 0.04}})
        got = []
        with (
            opened(system, tmp_path, budget=BudgetLimits(max_usd=0.41)) as open_system,
            pytest.raises(BudgetReached) as stop,
        ):
            for result in open_system.ask(call(number, f"a dog number {number}") for number in range(40)):
                got.append(output(result))
    assert len(got) == len(vendor.requests) == 10
    assert stop.value.exit_code == 5
    assert all(answer.cost_usd == pytest.approx(0.04) for answer in got)
    with sqlite3.connect(tmp_path / "run" / "ledger.sqlite") as db:
        assert db.execute("SELECT SUM(cost_usd) FROM calls").fetchone()[0] == pytest.approx(0.40)


def test_prompts_stay_on_this_machine_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGE_KEY", KEY)
    far = {"base_url": "https://images.example/v1", "model": "m", "key_variable": "IMAGE_KEY"}
    (mistake,) = OpenAIImages("far", OpenAIImages.Settings(**far)).check()
    assert mistake.key == "send_prompts" and mistake.needed == "send_prompts=true"
    assert not OpenAIImages("far", OpenAIImages.Settings(**far, send_prompts=True)).check()
    local = OpenAIImages("here", OpenAIImages.Settings(base_url="http://127.0.0.1:1/v1", model="m"))
    assert not local.check()
    assert "accepts no seed" in local.notice() and "stay on this machine" in local.notice()


def test_a_plan_is_priced_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    info = parts("systems")["openai_images"]
    system = info.load()("openai_images", info.load().Settings(**info.defaults))
    quote = system.quote([(call(), 100)])
    assert quote is not None and quote.calls == 100
    assert quote.usd == pytest.approx(100 * (quote.prompt_tokens / 100 * 5 + 8192 * 30) / 1e6)
    assert {mistake.needed for mistake in system.check()} == {"send_prompts=true", "OPENAI_API_KEY"}


def test_a_seed_goes_to_servers_that_take_one(tmp_path: Path) -> None:
    exchange = {"request": {"method": "POST", "path": "/v1/images/generations", "body": {"seed": 7}}}
    with playing([{**exchange, "reply": {"status": 200, "body": {"data": [{"b64_json": "{PNG}"}]}}}]) as vendor:
        assert output(ask(make_system(OpenAIImages, vendor, path="/v1", seed="case"), tmp_path)[0]).picture == SHA256


def test_logs_hold_neither_prompts_nor_pictures(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with playing([*first_image({"url": "{BASE}/files/a.png"}), file_exchange()]) as vendor:
        ask(make_system(OpenAIImages, vendor, path="/v1"), tmp_path)
    assert caplog.records and "a red dog" not in caplog.text and "iVBOR" not in caplog.text
    assert json.dumps(encode("images", PIXELS).hex())[1:41] not in caplog.text
    assert BLANK != PNG

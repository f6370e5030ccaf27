"""Presets of models over an API: well formed, priced where a price is known, with requests for their server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from medtest.api.wire.words import request_body
from medtest.core.cases import Address, Ask
from medtest.core.plugins import parts
from medtest.systems.answering.asking import Asking
from medtest.systems.answering.openai_compatible import OpenAICompatible

PRESETS = sorted(
    name
    for name, info in parts("systems").items()
    if info.target.startswith("medtest.systems.answering.openai_compatible:")
)
VENDORS = {
    "gpt_4o": "OPENAI_API_KEY",
    "gpt_4_1": "OPENAI_API_KEY",
    "gpt_5": "OPENAI_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "qwen_vl": "DASHSCOPE_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
}
LOCAL = {"vllm": 8000, "ollama": 11434, "lmstudio": 1234, "transformers_serve": 8000}


def make(name: str, **settings: Any) -> OpenAICompatible:
    info = parts("systems")[name]
    kind = info.load()
    system = kind(name, kind.Settings(**{**info.defaults, **settings}))
    assert isinstance(system, OpenAICompatible)
    return system


def a_call() -> Asking:
    image = np.random.default_rng(0).integers(0, 255, (512, 512, 3), dtype=np.uint8)
    return Asking(
        number=0,
        label="d/s/source",
        addresses=(Address(dataset="d", seed_id="s", item="polyps"),),
        image=image,
        sha256="0",
        asks=(Ask(item="polyps", text="How many polyps are in the image?", kind="count", id=8),),
        seed=11,
    )


def test_presets_are_those_that_the_docs_name() -> None:
    expected = sorted([*VENDORS, *LOCAL, "openai_compatible"])
    assert expected == PRESETS


@pytest.mark.parametrize("name", VENDORS)
def test_vendors_need_a_key_and_permission_to_send_images(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VENDORS[name], raising=False)
    system = make(name, model="some-model")
    assert system.settings.base_url.startswith("https://")
    assert [mistake.key for mistake in system.check()] == ["send_images", "key_variable"]
    monkeypatch.setenv(VENDORS[name], "x")
    allowed = make(name, model="some-model", send_images=True)
    assert allowed.check() == []
    assert "images are sent there" in allowed.notice()


@pytest.mark.parametrize("name", LOCAL)
def test_local_servers_need_only_a_model(name: str) -> None:
    system = make(name)
    assert system.settings.base_url == f"http://127.0.0.1:{LOCAL[name]}/v1"
    assert [mistake.key for mistake in system.check()] == ["model"]
    assert make(name, model="m").check() == []
    assert "images stay on this machine" in make(name, model="m").notice()


def test_further_fields_cannot_replace_those_of_budgets_and_readers() -> None:
    assert make("openai_compatible", extra={"top_k": 3}).settings.extra == {"top_k": 3}
    for field in ("stream", "n", "max_tokens", "messages"):
        with pytest.raises(ValidationError, match=f"other than {field}, which medtest sets itself"):
            make("openai_compatible", extra={field: 2})


def test_the_bare_system_lists_all_that_is_missing() -> None:
    assert [mistake.key for mistake in make("openai_compatible").check()] == ["base_url", "model"]


@pytest.mark.parametrize(
    ("name", "model", "price"),
    [
        ("gpt_4o", "gpt-4o-2024-08-06", (2.5, 10.0)),
        ("gpt_4_1", "gpt-4.1-2025-04-14", (2.0, 8.0)),
        ("gpt_5", "gpt-5-2025-08-07", (1.25, 10.0)),
        ("gemini", "gemini-2.5-flash", (0.3, 2.5)),
        ("qwen_vl", "qwen3-vl-plus-2025-09-23", None),
    ],
)
def test_prices_of_the_preset_models(name: str, model: str, price: tuple[float, float] | None) -> None:
    system = make(name)
    assert system.settings.model == model
    price_ = system.price()
    assert (None if price_ is None else (price_.input, price_.output)) == price
    assert make(name, model="another-model").price() is None
    quote = system.quote([(a_call(), 1000)])
    assert quote is not None
    assert quote.calls == 1000
    assert quote.usd == (
        None
        if price is None
        else pytest.approx((quote.prompt_tokens * price[0] + quote.completion_tokens * price[1]) / 1e6)
    )


def test_every_price_has_a_date() -> None:
    for name in PRESETS:
        for price in make(name).settings.prices.values():
            assert price.as_of, name


@pytest.mark.parametrize("name", PRESETS)
def test_bodies_hold_what_each_server_takes(name: str) -> None:
    system = make(name, model="m")
    body = request_body(system.request(a_call()), system.parameters())
    more = body.pop("extra_body", {})
    content = body["messages"][-1]["content"]
    assert [part["type"] for part in content] == ["image_url", "text"]
    assert content[0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert ("detail" in content[0]["image_url"]) == (system.settings.detail is not None)
    assert ("response_format" in body) == (name != "transformers_serve")  # by schema first, where the server can
    body.pop("response_format", None)
    if name == "gpt_5":
        assert set(body) == {"model", "messages", "max_completion_tokens"}
        assert more == {"reasoning_effort": "low"}
    elif name == "gemini":
        assert set(body) == {"model", "messages", "temperature", "max_tokens"}
    else:
        assert set(body) == {"model", "messages", "temperature", "max_tokens", "seed"}
        assert (body["temperature"], body["seed"]) == (0.0, 11)


def test_all_questions_of_an_image_share_one_file() -> None:
    system = make("vllm", model="m")
    call = a_call()
    first = system.request(call).pictures[0]
    assert system.request(replace(call, label="other")).pictures[0] is first
    for number in range(20):
        system.request(replace(call, sha256=f"x{number}"))
    assert len(system._pictures) <= 16

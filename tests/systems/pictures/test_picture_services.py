"""Every service on hand-written exchanges: requests and outcomes. No vendor is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from exchanges import SHA256, Vendor, ask, call, exchanges, make_system, output, playing

from medtest.api.drawn import fetching
from medtest.core.plugins import parts
from medtest.systems.pictures.services import ChatImages, DashScope, DeepAI, HuggingFaceImages, Stability

KEY = "canary-key-4711x"
PLACES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "chat_images": (ChatImages, "/api/v1", {}),
    "stability": (Stability, "/v2beta/stable-image/generate", {"model": "core"}),
    "dashscope": (DashScope, "/api/v1", {}),
    "deepai": (DeepAI, "/api", {"model": "text2img"}),
    "huggingface": (HuggingFaceImages, "/hf-inference", {"model": "org/name", "router": True}),
}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGE_KEY", KEY)
    monkeypatch.setattr(fetching, "_PAUSE", 0.01)


def system_of(name: str, vendor: Vendor, **settings: Any) -> Any:
    part, path, own = PLACES["_".join(name.split("_")[: 2 if name.startswith("chat") else 1])]
    return make_system(part, vendor, path=path, key_variable="IMAGE_KEY", **{**own, **settings})


def output_of(name: str, folder: Path, **settings: Any) -> Any:
    with playing(exchanges(name)) as vendor:
        return output(ask(system_of(name, vendor, **settings), folder)[0])


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("chat_images", {}),
        ("chat_images_in_content", {}),
        ("chat_images_in_words", {}),
        ("chat_images_address", {}),
        ("stability", {}),
        ("stability_json", {}),
        ("dashscope", {}),
        ("dashscope_messages", {"protocol": "messages", "size": "1280*1280"}),
        ("deepai", {}),
        ("huggingface", {}),
        ("huggingface_endpoint", {"router": False, "width": None, "height": None}),
    ],
)
def test_a_picture_has_the_format_of_the_service(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    if name == "huggingface_endpoint":
        with playing(exchanges(name)) as vendor:
            answer = output(ask(system_of(name, vendor, **settings, base_url=vendor.base), tmp_path)[0])
    else:
        answer = output_of(name, tmp_path, **settings)
    assert (answer.state, answer.picture, answer.why, answer.revised_prompt) == ("answered", SHA256, "", "")
    assert answer.attempts == (2 if name == "huggingface" else 1)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("chat_images_filtered", "IMAGE_SAFETY"),
        ("chat_images_policy", "HTTP 403"),
        ("stability_blurred", "CONTENT_FILTERED"),
        ("stability_blurred_json", "CONTENT_FILTERED"),
        ("stability_flagged", "HTTP 403"),
        ("dashscope_inspected", "DataInspectionFailed"),
        ("dashscope_refused", "HTTP 400"),
        ("dashscope_partly", "DataInspectionFailed"),
        ("deepai_flagged", "content policy"),
    ],
)
def test_moderation_is_one_state_for_every_service(name: str, why: str, tmp_path: Path) -> None:
    with playing(exchanges(name)) as vendor:
        answer = output(ask(system_of(name, vendor, attempts=4), tmp_path)[0])
        assert sum(line.startswith("POST") for line in vendor.requests) == 1
    assert (answer.state, answer.picture) == ("content_filter", "") and why in answer.why


def test_a_blank_picture_of_an_endpoint_is_moderation(tmp_path: Path) -> None:
    with playing(exchanges("huggingface_black")) as vendor:
        settings = {"router": False, "width": None, "height": None, "base_url": vendor.base}
        answer = output(ask(system_of("huggingface", vendor, **settings), tmp_path)[0])
    assert (answer.state, answer.why) == ("content_filter", "the picture is of one colour")


@pytest.mark.parametrize("name", ["stability_wrong", "deepai_wrong"])
def test_a_wrong_request_is_an_error_of_the_case(name: str, tmp_path: Path) -> None:
    reason = output_of(name, tmp_path)
    assert isinstance(reason, str) and reason.startswith("HTTP 400: ")


def test_words_without_a_picture_are_a_refusal(tmp_path: Path) -> None:
    answer = output_of("chat_images_words", tmp_path)
    assert answer.state == "refusal" and "I cannot draw that dog." in answer.why


def test_a_rewritten_prompt_is_off_by_default_and_recorded_where_it_is_on(tmp_path: Path) -> None:
    answer = output_of("dashscope_extended", tmp_path, prompt_extend=True)
    assert answer.picture == SHA256 and answer.revised_prompt.startswith("A crimson dog")
    plain = DashScope("wan", DashScope.Settings(base_url="http://127.0.0.1:1", model="m"))
    assert plain.parameters().options["prompt_extend"] is False and "prompt_extend" not in plain.notice()
    extended = DashScope("wan", DashScope.Settings(base_url="http://127.0.0.1:1", model="m", prompt_extend=True))
    assert "prompt_extend" in extended.notice()


@pytest.mark.parametrize("name", ["dashscope_broke", "dashscope_unknown"])
def test_a_task_that_failed_or_disappeared_is_started_again(name: str, tmp_path: Path) -> None:
    with playing(exchanges(name)) as vendor:
        answer = output(ask(system_of(name, vendor), tmp_path)[0])
        assert sum(line.startswith("POST") for line in vendor.requests) == 2
    assert answer.picture == SHA256 and answer.attempts == 2


def test_services_without_a_seed_are_named_in_the_notice(tmp_path: Path) -> None:
    assert "no seed" in DeepAI("d", DeepAI.Settings(base_url="http://127.0.0.1:1", model="text2img")).notice()
    assert "no seed" not in Stability("s", Stability.Settings(base_url="http://127.0.0.1:1", model="core")).notice()
    with playing(exchanges("stability")) as vendor:  # 0 would have the service draw one
        vendor.played[0]["request"]["body"]["seed"] = "4294967294"
        assert output(ask(system_of("stability", vendor), tmp_path, [call(seed=0)])[0]).picture == SHA256


def test_every_service_has_a_file_that_is_priced_and_checked_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("chat_images", "stability", "dashscope_images", "deepai", "huggingface_images", "openai_images")
    for name in names:
        info = parts("systems")[name]
        system = info.load()(name, info.load().Settings(**info.defaults))
        monkeypatch.delenv(system.settings.key_variable, raising=False)
        needed = {mistake.needed for mistake in system.check()}
        assert needed == {"send_prompts=true", system.settings.key_variable}
        quote = system.quote([(call(), 3)])
        assert quote is not None and quote.calls == 3
        assert system.tasks == ("depiction",)

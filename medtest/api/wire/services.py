"""Protocols of image generation services."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

from medtest.api.calls.request import CallState, Parameters, Request
from medtest.api.wire.answers import (
    NotAnAnswer,
    ReplyContent,
    TaskEnded,
    decoded,
    error_of,
    model_and_usage,
    stated_error,
    words,
)
from medtest.api.wire.base import Received, Sending
from medtest.api.wire.drawing import (
    DrawingWire,
    coded,
    coded_picture,
    mapping,
    nothing,
    options_of,
    picture,
    picture_at,
    seed_of,
)


class ImagesWire(DrawingWire):
    """``/images/generations``."""

    takes_several: ClassVar[bool] = True

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return a request for one or several pictures."""
        fields = {"model": parameters.model, "prompt": request.prompt, "n": request.count}
        body = {**fields, **options_of(request, parameters)}
        return Sending(path="/images/generations", body=body | dict(parameters.extra))

    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return the first picture, as bytes or as a temporary URL, and those of further repeats."""
        body = mapping(decoded(received.content), "the body")
        data, common = body.get("data"), model_and_usage(body)
        if not isinstance(data, list):
            raise NotAnAnswer("the body has no data" + stated_error(body))
        if not data:
            return nothing("the service answered with an empty list", **common)
        first = _entry(mapping(data[0], "the picture"), **common)
        return replace(first, more=tuple(_entries(data[1 : request.count])))


def _entries(entries: Sequence[Any]) -> Iterator[ReplyContent]:
    """Yield the pictures of further repeats; what is none is left out, and asked for again."""
    for entry in entries:
        with suppress(NotAnAnswer, ValueError):
            yield _entry(mapping(entry, "the picture"))


def _entry(entry: Mapping[str, Any], **common: Any) -> ReplyContent:
    common["revised_prompt"] = words(entry.get("revised_prompt"))
    if text := words(entry.get("b64_json")):
        return coded_picture(text, **common)
    return picture_at(words(entry.get("url")), **common)


_FILTERED = frozenset(
    {"content_filter", "safety", "image_safety", "prohibited_content", "image_prohibited_content", "blocklist", "spii"}
)
"""Finish reasons that indicate moderation: OpenAI's, and Gemini's FinishReason."""
_IN_WORDS = re.compile(r"data:image/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=]+")
_MOST_WORDS = 200


class ChatImagesWire(DrawingWire):
    """``/chat/completions`` of models that answer with pictures."""

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return a single message that requests a picture."""
        body: dict[str, Any] = {
            "model": parameters.model,
            "messages": [{"role": "user", "content": request.prompt}],
            "modalities": ["image", "text"],
            **options_of(request, parameters),
        }
        return Sending(path="/chat/completions", body=body | dict(parameters.extra))

    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return the first picture of the message; words without a picture are a refusal."""
        body = mapping(decoded(received.content), "the body")
        choices = body.get("choices")
        if not isinstance(choices, list):
            raise NotAnAnswer("the body has no choices" + stated_error(body))
        common = model_and_usage(body)
        if not choices:
            return nothing("the service answered with an empty list", **common)
        choice = mapping(choices[0], "the choice")
        for name in ("native_finish_reason", "finish_reason"):
            if words(choice.get(name)).lower() in _FILTERED:
                return nothing(f"the service ended with {name} {choice[name]}", **common)
        if isinstance(choice.get("error"), Mapping):
            code, message = error_of(choice)
            if self.filtered(403, code.lower(), f"{code} {message}".lower()):
                return nothing(f"the service ended with an error of its policy ({code})", **common)
            raise NotAnAnswer(f"the choice is an error: {message or code}")
        message_body = mapping(choice.get("message"), "the message")
        if refusal := words(message_body.get("refusal")):
            return ReplyContent(state=CallState.REFUSAL, text=refusal, reason=refusal[:_MOST_WORDS], **common)
        if (address := next(_addresses(message_body), None)) is not None:
            return picture_at(address, **common)
        text = " ".join(_text(message_body.get("content")).split())
        why = f"the model answered with text alone: {text[:_MOST_WORDS]}" if text else "the model answered with nothing"
        return ReplyContent(state=CallState.REFUSAL, text=text, reason=why, **common)


def _addresses(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the addresses of a message's pictures."""
    content, images = message.get("content"), message.get("images")
    for part in [*(images if isinstance(images, list) else []), *(content if isinstance(content, list) else [])]:
        if not isinstance(part, Mapping):
            continue
        address = part.get("image_url")
        if isinstance(address, Mapping):
            yield words(address.get("url"))
        elif isinstance(address, str):
            yield address
        elif isinstance(part.get("b64_json"), str):
            yield f"data:image/png;base64,{part['b64_json']}"
    yield from _IN_WORDS.findall(_text(content))


def _text(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(words(part.get("text")) for part in content if isinstance(part, Mapping))
    return words(content)


_GOES_ON = frozenset({"PENDING", "RUNNING", "SUSPENDED"})
_TASK = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_IN_INPUT = ("negative_prompt",)


class DashScopeWire(DrawingWire):
    """``text2image/image-synthesis``."""

    asynchronous: ClassVar[bool] = True
    path: ClassVar[str] = "/services/aigc/text2image/image-synthesis"

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return the request that starts a task for one picture."""
        options: dict[str, Any] = {"n": 1, **options_of(request, parameters)}
        input_fields = self._input(request.prompt, options)
        body = {"model": parameters.model, "input": input_fields, "parameters": options | dict(parameters.extra)}
        return Sending(path=self.path, body=body, headers={"X-DashScope-Async": "enable"})

    def _input(self, prompt: str, options: dict[str, Any]) -> dict[str, Any]:
        """Return the content of ``input``, and remove its fields from the options."""
        return {"prompt": prompt, **{name: options.pop(name) for name in _IN_INPUT if name in options}}

    def polling(self, task: str) -> Sending:
        """Return the request that polls a task.

        Raises:
            ValueError: Invalid task id.
        """
        if not _TASK.fullmatch(task):
            raise ValueError("no task's id")
        return Sending(path=f"/tasks/{task}", method="GET")

    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return the running task, or its result."""
        body = mapping(decoded(received.content), "the body")
        output = mapping(body.get("output"), "the output")
        status, task = words(output.get("task_status")), words(output.get("task_id"))
        if status in _GOES_ON:
            if not _TASK.fullmatch(task):
                raise NotAnAnswer("the task has no id")
            return ReplyContent(state=CallState.ANSWERED, task=task)
        if status != "SUCCEEDED":
            return self._failed(status, output)
        url, drawn_of, failed = self._result(output)
        if url:
            return picture(url=url, model=parameters.model, revised_prompt=drawn_of)
        return self._failed("", failed) if failed else nothing("the service answered with an empty list")

    def _result(self, output: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any]]:
        """Return the picture's address, the prompt in use if it was rewritten, or the failed entry instead."""
        results = output.get("results")
        for result in results if isinstance(results, list) else []:
            if isinstance(result, Mapping):
                actual = words(result.get("actual_prompt"))
                return words(result.get("url")), actual if actual != result.get("orig_prompt") else "", result
        return "", "", {}

    def _failed(self, status: str, output: Mapping[str, Any]) -> ReplyContent:
        code, message = words(output.get("code")), words(output.get("message"))
        status_text = f"{status} {code}".strip()
        if self.filtered(400, code.lower(), f"{code} {message}".lower()):
            return nothing(f"the task ended with {status_text}")
        raise TaskEnded(
            f"the task ended with {status_text or 'nothing'}: {message}"
            if message
            else f"the task ended: {status_text}"
        )


class DashScopeMessages(DashScopeWire):
    """``image-generation/generation``."""

    path: ClassVar[str] = "/services/aigc/image-generation/generation"

    def _input(self, prompt: str, options: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": [{"text": prompt}]}]}

    def _result(self, output: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any]]:
        choices = output.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            message = choice.get("message") if isinstance(choice, Mapping) else None
            content = message.get("content") if isinstance(message, Mapping) else None
            for part in content if isinstance(content, list) else []:
                if isinstance(part, Mapping) and isinstance(part.get("image"), str):
                    return part["image"], words(output.get("actual_prompt")), {}
        return "", "", {}


class DeepAIWire(DrawingWire):
    """``/text2img``, or another generator by its name."""

    takes_seed: ClassVar[bool] = False

    def key_header(self, key: str) -> tuple[str, str]:
        """Return ``api-key``."""
        return "api-key", key

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return the form."""
        fields = {**options_of(None, parameters), **parameters.extra}
        form = {"text": request.prompt, **{name: str(value) for name, value in fields.items()}}
        return Sending(path=f"/{parameters.model}", form=form)

    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return the picture's URL."""
        body = mapping(decoded(received.content), "the body")
        if "output_url" not in body:
            message = _message(body)
            raise NotAnAnswer("the body has no output_url" + (f": {message}" if message else ""))
        return picture(url=words(body["output_url"]))

    def error(self, received: Received) -> tuple[str, str]:
        """Return the message of an error: ``{"err": …}`` or ``{"status": …}``."""
        body: Any = decoded(received.content)
        message = _message(body) if isinstance(body, Mapping) else ""
        return ("", message) if message else error_of(body)


def _message(body: Mapping[str, Any]) -> str:
    return words(body.get("err")) or words(body.get("status"))


_IN_JSON = ("image", "b64_json", "blob", "generated_image")


class HuggingFaceWire(DrawingWire):
    """Endpoint (``asked_path`` empty), or the router, which serves models under ``/models/NAME``."""

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return prompt and parameters."""
        values = options_of(request, parameters)
        body: dict[str, Any] = {"inputs": request.prompt}
        if values:
            body["parameters"] = values
        path = words(parameters.options.get("asked_path"))
        return Sending(path=path, body=body | dict(parameters.extra), headers={"accept": "image/png"})

    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return the picture."""
        if "json" not in received.headers.get("content-type", ""):
            return picture(drawn=received.content)
        body = decoded(received.content)
        first: Any = body
        if isinstance(first, dict) and isinstance(first.get("images"), list):
            first = first["images"]
        if isinstance(first, list):
            if not first:
                return nothing("the service answered with an empty list")
            first = {"image": first[0]} if isinstance(first[0], str) else first[0]
        if not isinstance(first, dict) or not any(name in first for name in _IN_JSON):
            raise NotAnAnswer("the body has no image" + stated_error(body))
        return coded_picture(next((words(first[name]) for name in _IN_JSON if name in first), ""))


_MOST_SEED = 4294967294
_DONE = "success"


class StabilityWire(DrawingWire):
    """Stability AI model: ``core``, ``ultra``, or one of ``sd3`` by its name."""

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return the form."""
        name = parameters.model
        form = {"prompt": request.prompt, **{key: str(value) for key, value in options_of(None, parameters).items()}}
        if name.startswith("sd3"):
            form["model"] = name
        if (seed := seed_of(request, parameters)) is not None:
            form["seed"] = str(seed % _MOST_SEED or _MOST_SEED)  # 0 would make the service choose one
        form |= {key: str(value) for key, value in parameters.extra.items()}
        path = "/sd3" if name.startswith("sd3") else f"/{name}"
        return Sending(path=path, form=form, headers={"accept": "image/*"})

    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return the picture, unless it was filtered."""
        drawn, reason = received.content, received.headers.get("finish-reason", _DONE)
        if "json" in received.headers.get("content-type", ""):
            body = mapping(decoded(received.content), "the body")
            drawn, reason = coded(words(body.get("image"))), words(body.get("finish_reason")) or _DONE
        if reason.lower() == "content_filtered":
            return nothing(f"the service ended with finish_reason {reason}")
        if reason.lower() != _DONE:
            raise NotAnAnswer(f"the service ended with {reason}")
        return picture(drawn=drawn, **({"model": parameters.model} if drawn else {}))

    def error(self, received: Received) -> tuple[str, str]:
        """Return name and messages of an error: ``{"id": …, "name": …, "errors": […]}``."""
        body: Any = decoded(received.content)
        if not isinstance(body, Mapping):
            return "", ""
        errors = body.get("errors")
        return words(body.get("name")), " ".join(map(str, errors)) if isinstance(errors, list) else words(errors)

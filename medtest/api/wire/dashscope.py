"""Alibaba Cloud DashScope (Model Studio): Wan and related models, which run asynchronous tasks.

Two protocols (references "Wan text-to-image V2" and "Wan image generation"): models up to wan2.5 take ``input.prompt``
at ``text2image/image-synthesis`` and return ``output.results[].url``; later ones take ``input.messages`` at
``image-generation/generation`` and return ``output.choices[].message.content[].image``. Both answer the header
``X-DashScope-Async: enable`` with ``output.task_id``, and ``GET /tasks/ID`` with ``output.task_status``: PENDING,
RUNNING, SUSPENDED, SUCCEEDED, FAILED, CANCELED, UNKNOWN (no such task, or older than 24 hours). ``prompt_extend`` lets
a language model rewrite the prompt; ``actual_prompt`` then holds the prompt in use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from medtest.api.calls.request import CallState, Parameters, Request
from medtest.api.wire.answers import NotAnAnswer, ReplyContent, TaskEnded, decoded, words
from medtest.api.wire.base import Received, Sending
from medtest.api.wire.drawing import DrawingWire, mapping, nothing, options_of

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
            return ReplyContent(state=CallState.ANSWERED, url=url, model=parameters.model, revised_prompt=drawn_of)
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

"""Bodies of a server of faults, in the provider's form."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any


def completion(
    body: Mapping[str, Any], text: str, fault: str, *, declined: str | None, chat: bool, size: int
) -> dict[str, Any]:
    """Return the body of an answer: chat.completions or responses.

    Args:
        body: The request's.
        text: The answer's words.
        fault: ``refusal``, ``filtered``, ``length``, or another that changes nothing here.
        declined: Words of an answer that declines; None for one that does not.
        chat: Whether chat.completions was asked.
        size: Bytes of the request, by which tokens are counted.
    """
    refusal = "I'm sorry, I can't help with that." if fault == "refusal" else declined
    text = "" if refusal or fault == "filtered" else text[: len(text) // 2] if fault == "length" else text
    count = {"question": max(1, size // 400), "answer": max(1, len(text) // 4)}
    model = str(body.get("model"))
    if chat:
        finish = {"length": "length", "filtered": "content_filter"}.get(fault, "stop")
        message = {"role": "assistant", "content": None if refusal else text, "refusal": refusal}
        usage = {
            "prompt_tokens": count["question"],
            "completion_tokens": count["answer"],
            "total_tokens": sum(count.values()),
        }
        choice = {"index": 0, "message": message, "finish_reason": finish}
        kind = {"id": "chatcmpl-simulated", "object": "chat.completion", "created": int(time.time())}
        return {**kind, "model": model, "choices": [choice], "usage": usage}
    part = {"type": "refusal", "refusal": refusal} if refusal else {"type": "output_text", "text": text}
    why = {"length": "max_output_tokens", "filtered": "content_filter"}.get(fault)
    output = {"type": "message", "role": "assistant", "content": [part]}
    usage = {"input_tokens": count["question"], "output_tokens": count["answer"]}
    kind = {"id": "resp_simulated", "object": "response", "status": "incomplete" if why else "completed"}
    details = {"incomplete_details": {"reason": why} if why else None}
    return {**kind, **details, "model": model, "output": [output], "usage": usage}

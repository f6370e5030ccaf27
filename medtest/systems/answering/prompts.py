"""Prompts for models: instructions, one question, or all questions of an image as a numbered list."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, model_validator

from medtest.core.cases import Ask
from medtest.core.plugins import wrong_at
from medtest.systems.base import SystemSettings

QUESTION = "{question}"
QUESTIONS = "{questions}"
"""Placeholders of templates. No other braces are replaced, so that a template is not a program."""

SYSTEM_PROMPT = (
    "You are shown one medical image. Answer the question about it in a few words."
    " If the question does not apply to the image, answer: not relevant."
)
TOGETHER_PROMPT = "Answer each of these questions about the image, by its name.\n\n{questions}"


class PromptSettings(SystemSettings):
    """Settings of systems that answer questions with text.

    Attributes:
        prompt: Prompt of a call with one question; ``{question}`` is replaced by it.
        together_prompt: Prompt of a call with all questions of an image; ``{questions}`` is replaced by the list, one
            per line: number, name, wording.
        system_prompt: System message; "" for none.
        max_tokens: Maximum number of tokens of an answer; null for the server's own limit.
        temperature: 0 to 2; null is not sent, or is the checkpoint's own value for a local checkpoint.
        top_p: 0 to 1; null is not sent.
    """

    prompt: str = QUESTION
    together_prompt: str = TOGETHER_PROMPT
    system_prompt: str = SYSTEM_PROMPT
    max_tokens: int | None = Field(default=512, ge=1, le=1_000_000)
    temperature: float | None = Field(default=0.0, ge=0.0, le=2.0)
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)

    @model_validator(mode="after")
    def _check_templates(self) -> PromptSettings:
        for key, placeholder in (("prompt", QUESTION), ("together_prompt", QUESTIONS)):
            if placeholder not in getattr(self, key):
                raise wrong_at(key, f"text with {placeholder} in it, where the question is put")
        return self


def prompt_of(settings: PromptSettings, asks: Sequence[Ask], *, together: bool) -> str:
    """Return the prompt of one call.

    Args:
        settings: The templates.
        asks: The questions; one unless ``together``.
        together: Whether they are asked as a list.
    """
    if not together:
        return settings.prompt.replace(QUESTION, asks[0].text)
    listed = "\n".join(f"{number}. {ask.item}: {ask.text}" for number, ask in enumerate(asks, start=1))
    return settings.together_prompt.replace(QUESTIONS, listed)

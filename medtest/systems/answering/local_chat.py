"""Vision-language checkpoints of Hugging Face transformers in a local folder, run in this process.

Calls are answered one by one: in a batch, an answer would depend on the remaining questions, because the last digits of
the results vary with the batch.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, cast

from pydantic import Field

from medtest.api.calls.request import CallState, Outcome
from medtest.api.redact import reason_of
from medtest.api.wire.likely import listed, place_of
from medtest.core.cases import Json
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake
from medtest.core.plugins import TRUSTED
from medtest.systems.adapters.libraries.huggingface_folder import (
    PROCESSORS,
    checkpoint_mistakes,
    load_network,
    load_processor,
)
from medtest.systems.answering.asking import Asked, Asking, AskingSystem
from medtest.systems.answering.outputs import asked_of
from medtest.systems.answering.prompts import PromptSettings, prompt_of
from medtest.systems.files import cached_sha256, user_path

_PRINTED = frozenset({".json", ".safetensors", ".jinja", ".model", ".txt"})
_MARK = "medtest-marks-this"


class LocalChatSettings(PromptSettings):
    """Settings of a local vision-language checkpoint.

    Attributes:
        path: Folder written by ``save_pretrained``, with processor and chat template.
        seed: ``case`` (derived from the suite's seed and the case's address) or a number; used if a temperature above 0
            makes answers random.
        precision: Number type for computation; ``own`` is the type of the file.
    """

    path: str = Field(default="", json_schema_extra=TRUSTED)
    max_tokens: int | None = Field(default=128, ge=1, le=100_000)
    seed: Literal["case"] | int = "case"
    precision: Literal["own", "float32", "bfloat16", "float16"] = "own"


class LocalChat(AskingSystem):
    """LLaVA, Qwen-VL, SmolVLM, PaliGemma and any other image-text-to-text model that transformers loads.

    Nothing is downloaded, no code in the folder is executed, weights are read from safetensors only.
    """

    Settings: ClassVar[type[LocalChatSettings]] = LocalChatSettings
    settings: LocalChatSettings
    needs_device: ClassVar[bool] = True
    tells_likely: ClassVar[bool] = True
    _model: Any = None
    _processor: Any = None
    _device = "cpu"
    _answered = 0

    def __init__(self, name: str, settings: LocalChatSettings) -> None:
        super().__init__(name, settings)
        self._form: _Form = _before_question

    # --------------------------------------------------------------------------------------------- before the run

    def check(self) -> Sequence[Mistake]:
        """Return the problems of the folder."""
        allowed = "a folder that save_pretrained wrote: config.json, model.safetensors, processor and tokenizer"
        folder = user_path(self.settings.path)
        mistakes = checkpoint_mistakes(self.settings.path, where=self.name, allowed=allowed)
        if not mistakes and not any((folder / name).is_file() for name in PROCESSORS):
            problem = f"{folder.name} holds no processor"
            mistakes.append(Mistake(where=self.name, key="path", found=problem, allowed=allowed))
        return mistakes

    def fingerprint(self) -> dict[str, Json]:
        """Return one SHA-256 over all files in the folder that influence an answer."""
        digest = hashlib.sha256()
        folder = user_path(self.settings.path)
        for path in sorted(p for p in folder.iterdir() if p.is_file() and p.suffix in _PRINTED):
            digest.update(f"{path.name}\n{cached_sha256(path)}\n".encode())
        return {"folder": digest.hexdigest()}

    # ------------------------------------------------------------------------------------------------------- the run

    def open(self, *, device: str, threads: int) -> None:
        """Load the checkpoint.

        Raises:
            MedtestError: It is not an image-text-to-text model, or has no chat template.
        """
        from transformers import AutoModelForImageTextToText, AutoProcessor

        folder = user_path(self.settings.path)
        torch.set_num_threads(threads)
        dtype = "auto" if self.settings.precision == "own" else getattr(torch, self.settings.precision)
        self._processor = load_processor(AutoProcessor, folder)
        self._model = load_network(
            AutoModelForImageTextToText, folder, purpose="questions about images", use_safetensors=True, dtype=dtype
        )
        if not getattr(self._processor, "chat_template", None):
            raise MedtestError(f"{folder.name} has no chat template (chat_template.jinja)")
        self._device = device
        self._model.eval().to(device)
        self._form = self._fitting_form(folder.name)

    def _fitting_form(self, name: str) -> _Form:
        """Return the form in which the chat template accepts a system message; some templates drop it silently.

        Raises:
            MedtestError: The template drops the question.
        """
        from jinja2 import TemplateError

        for form in _FORMS:
            try:
                shown = self._processor.apply_chat_template(
                    form(_MARK + "-system", _MARK + "-question", None), add_generation_prompt=True, tokenize=False
                )
            except (TemplateError, TypeError, ValueError, KeyError):
                continue
            if _MARK + "-question" in shown and _MARK + "-system" in shown:
                return form
        raise MedtestError(f"the chat template of {name} takes no message with an image and a text")

    def ask(self, calls: Iterable[Asking | None]) -> Iterator[Asked]:
        """Answer calls one by one, in their order; a failure becomes the ERROR of its call."""
        for call in calls:
            if call is None:
                continue
            try:
                outcome = self._outcome(call)
            except Exception as error:  # noqa: BLE001 - third-party processors and networks may raise anything
                outcome = Outcome(
                    address=call.label, key="", state=CallState.ERROR, reason=reason_of(error), attempts=1
                )
            yield asked_of(call, outcome)
            self._answered += 1

    def _outcome(self, call: Asking) -> Outcome:
        began = time.monotonic()
        prompt = prompt_of(self.settings, call.asks, together=call.together)
        inputs = self._processor.apply_chat_template(
            self._form(self.settings.system_prompt, prompt, call.image),
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
        ).to(self._device)
        for key, value in inputs.items():
            if torch.is_tensor(value) and value.is_floating_point():
                inputs[key] = value.to(self._model.dtype)
        prompt_length = int(inputs["input_ids"].shape[1])
        torch.manual_seed(call.seed if self.settings.seed == "case" else self.settings.seed)
        with torch.inference_mode():
            generated = self._model.generate(
                **inputs, **self._generation(), return_dict_in_generate=True, output_logits=bool(call.most_likely)
            )
        fresh = generated.sequences[0, prompt_length:]
        ended = bool(fresh.numel()) and int(fresh[-1]) in self._ends()
        state = CallState.LENGTH if fresh.numel() == self.settings.max_tokens and not ended else CallState.ANSWERED
        text = str(self._processor.decode(fresh, skip_special_tokens=True)).strip()
        return Outcome(
            address=call.label,
            key="",
            state=CallState.MALFORMED if state == CallState.ANSWERED and not text else state,
            text=text,
            likely=self._likely(fresh, generated.logits, text, call.most_likely) if call.most_likely else None,
            model=str(self._model.config.model_type),
            prompt_tokens=prompt_length,
            completion_tokens=int(fresh.numel()),
            seconds=time.monotonic() - began,
            attempts=1,
        )

    def _likely(self, fresh: Any, logits: Sequence[Any], text: str, most: int) -> Json:
        """Return the likely tokens where an answer says yes or no, from the logits before any temperature."""
        tokenizer = getattr(self._processor, "tokenizer", self._processor)
        index = place_of(tokenizer.convert_ids_to_tokens(fresh.tolist()), text)
        if index is None:
            return None
        logarithms = torch.log_softmax(logits[index][0].float(), dim=-1)
        highest = logarithms.topk(min(most, logarithms.numel()))
        tokens = tokenizer.convert_ids_to_tokens(highest.indices.tolist())
        return cast("Json", listed(list(zip(tokens, highest.values.tolist(), strict=True))))

    def _generation(self) -> dict[str, Any]:
        own = self.settings
        options: dict[str, Any] = {} if own.max_tokens is None else {"max_new_tokens": own.max_tokens}
        if own.temperature == 0.0:
            # Greedy: remove the checkpoint's sampling settings, which would only cause warnings.
            return {**options, "do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        if own.temperature is not None:
            options |= {"do_sample": True, "temperature": own.temperature}
        return options if own.top_p is None else {**options, "top_p": own.top_p}

    def _ends(self) -> frozenset[int]:
        tokens = self._model.generation_config.eos_token_id
        return frozenset(tokens if isinstance(tokens, list) else [] if tokens is None else [int(tokens)])

    def counters(self) -> str:
        """Return the number of answered calls."""
        return f"{self._answered} answered"

    def close(self) -> None:
        """Release the checkpoint."""
        self._model = self._processor = None


_Form: TypeAlias = Callable[[str, str, Any], list[dict[str, Any]]]
"""Conversion of system message, question and image to a conversation for a chat template."""


def _question(prompt: str, image: Any) -> dict[str, Any]:
    from PIL.Image import fromarray

    shown = {"type": "image"} if image is None else {"type": "image", "image": fromarray(image)}
    return {"role": "user", "content": [shown, {"type": "text", "text": prompt}]}


def _in_parts(system: str, prompt: str, image: Any) -> list[dict[str, Any]]:
    before = [{"role": "system", "content": [{"type": "text", "text": system}]}] if system else []
    return [*before, _question(prompt, image)]


def _as_text(system: str, prompt: str, image: Any) -> list[dict[str, Any]]:
    return [*([{"role": "system", "content": system}] if system else []), _question(prompt, image)]


def _before_question(system: str, prompt: str, image: Any) -> list[dict[str, Any]]:
    return [_question(f"{system}\n\n{prompt}" if system else prompt, image)]


_FORMS: tuple[_Form, ...] = (_in_parts, _as_text, _before_question)

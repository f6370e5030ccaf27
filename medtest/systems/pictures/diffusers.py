"""Pipelines of Hugging Face diffusers in a local folder, run in this process.

Nothing is downloaded, no code in the folder is executed (no custom pipelines, only classes of diffusers and
transformers), and weights are read from safetensors only. Random numbers are derived from the case, so that a case has
the same picture on the same device.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from medtest.core.cases import Image, Json
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake
from medtest.core.plugins import TRUSTED
from medtest.systems.adapters.libraries.huggingface_folder import offline
from medtest.systems.adapters.libraries.weights import read_json
from medtest.systems.answering.asking import Asking
from medtest.systems.base import SystemSettings
from medtest.systems.files import folder_mistakes, folder_sha256, user_path
from medtest.systems.pictures.local import Filtered, LocalDrawing

_PRINTED = frozenset({".json", ".safetensors", ".txt", ".model"})
_PICKLED = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".msgpack", ".h5"})
_LIBRARIES = frozenset({"diffusers", "transformers"})
_INDEX = "model_index.json"


class DiffusersSettings(SystemSettings):
    """Settings of a pipeline in a folder.

    Attributes:
        path: Folder written by ``save_pretrained``, with ``model_index.json``.
        seed: ``case`` (derived from the suite's seed and the case's address) or a number.
        steps: Denoising steps; null leaves it to the pipeline.
        guidance: Guidance scale; null leaves it to the pipeline.
        width: Width in pixels; null leaves it to the pipeline.
        height: Height in pixels; null leaves it to the pipeline.
        negative_prompt: Content to exclude from the picture; null is not passed.
        pictures_per_call: Most pictures of one prompt, its source and repeats, that the pipeline draws together: faster
            on a graphics card, but rounding may differ from single pictures.
        precision: Number type for computation; ``own`` is the type of the files.
    """

    path: str = Field(default="", json_schema_extra=TRUSTED)
    seed: Literal["case"] | int = "case"
    steps: int | None = Field(default=None, ge=1, le=1000)
    guidance: float | None = Field(default=None, ge=0, le=100)
    width: int | None = Field(default=None, ge=8, le=4096)
    height: int | None = Field(default=None, ge=8, le=4096)
    negative_prompt: str | None = Field(default=None, max_length=10_000)
    pictures_per_call: int = Field(default=1, ge=1, le=64, json_schema_extra=TRUSTED)
    precision: Literal["own", "float32", "bfloat16", "float16"] = "own"


class Diffusers(LocalDrawing):
    """Stable Diffusion, FLUX, PixArt and any other text-to-image pipeline that diffusers loads."""

    Settings: ClassVar[type[DiffusersSettings]] = DiffusersSettings
    settings: DiffusersSettings
    needs_device: ClassVar[bool] = True
    _pipeline: Any = None
    _device = "cpu"

    # --------------------------------------------------------------------------------------------- before the run

    def check(self) -> Sequence[Mistake]:
        """Return the problems of the folder, or a missing diffusers installation."""
        where, typed = self.name, self.settings.path
        if mistakes := folder_mistakes(typed, where=where, key="path"):
            return mistakes
        folder = user_path(typed)
        problem = problem_of(folder)
        if problem:
            allowed = f"a folder that save_pretrained wrote: {_INDEX} and parts with safetensors"
            return [Mistake(where=where, key="path", found=problem, allowed=allowed)]
        if find_spec("diffusers") is None:
            fix = "pip install 'medtest[diffusers]'"
            return [Mistake(where=where, key="path", found="a pipeline of diffusers, which is not installed", fix=fix)]
        return ()

    def fingerprint(self) -> dict[str, Json]:
        """Return one SHA-256 over all files in the folder that influence a picture."""
        return {"folder": folder_sha256(user_path(self.settings.path), _PRINTED)}

    # ------------------------------------------------------------------------------------------------------- the run

    def open(self, *, device: str, threads: int) -> None:
        """Load the pipeline.

        Raises:
            MedtestError: The pipeline cannot be loaded.
        """
        import diffusers

        super().open(device=device, threads=threads)
        folder = user_path(self.settings.path)
        if problem := problem_of(folder):
            raise MedtestError(f"{folder.name}: {problem}")
        torch.set_num_threads(threads)
        dtype = None if self.settings.precision == "own" else getattr(torch, self.settings.precision)
        diffusers.utils.logging.set_verbosity_error()
        diffusers.utils.logging.disable_progress_bar()
        try:
            with offline():
                self._pipeline = diffusers.DiffusionPipeline.from_pretrained(
                    str(folder), local_files_only=True, use_safetensors=True, trust_remote_code=False, torch_dtype=dtype
                )
        except Exception as error:
            line = f"{type(error).__name__}: {str(error).strip()[:300]}"
            raise MedtestError(f"{folder.name} cannot be loaded as a pipeline: {line}") from error
        self._pipeline.set_progress_bar_config(disable=True)
        self._pipeline.to(device)
        self._device = device

    @property
    def at_once(self) -> int:
        """Most pictures of one prompt that are drawn together."""
        return self.settings.pictures_per_call

    def draw(self, call: Asking) -> Image:
        """Return the pipeline's picture.

        Raises:
            Filtered: The safety checker blocked it.
        """
        (picture,) = self.draw_together([call])
        if isinstance(picture, Filtered):
            raise picture
        return picture

    def draw_together(self, calls: Sequence[Asking]) -> Sequence[Image | Filtered]:
        """Return the pipeline's pictures of one prompt, each by its seed; Filtered where the checker blocked one."""
        own = self.settings
        seeds = [call.seed if own.seed == "case" else int(own.seed) for call in calls]
        options = {
            "num_inference_steps": own.steps,
            "guidance_scale": own.guidance,
            "width": own.width,
            "height": own.height,
            "negative_prompt": own.negative_prompt,
        }
        # A CPU generator yields the same numbers on every device.
        generators = [torch.Generator("cpu").manual_seed(seed) for seed in seeds]
        with torch.inference_mode():
            result = self._pipeline(
                prompt=calls[0].required_prompt.text,
                num_images_per_prompt=len(calls),
                generator=generators,
                output_type="np",
                **{name: value for name, value in options.items() if value is not None},
            )
        flags = getattr(result, "nsfw_content_detected", None) or [False] * len(calls)
        rejected = Filtered("the pipeline's safety checker rejected the picture")
        return [rejected if flag else to_pixels(image) for flag, image in zip(flags, result.images, strict=True)]

    def close(self) -> None:
        """Release the pipeline."""
        super().close()
        self._pipeline = None


def problem_of(folder: Path) -> str:
    """Return the reason why a folder cannot be loaded as a pipeline, "" if it can."""
    try:
        index = read_json(folder / _INDEX)
    except MedtestError as error:
        return str(error)
    name = index.get("_class_name")
    if not isinstance(name, str):
        return f"a pipeline with code in its folder ({_INDEX}), which medtest does not run"
    for part, made_of in index.items():
        if part.startswith("_") or not isinstance(made_of, list):
            continue
        library, kind = (*made_of, None, None)[:2]
        if library is None or kind is None:
            continue
        inner = isinstance(library, str) and (library in _LIBRARIES or library == "stable_diffusion")
        if not inner or (folder / part / f"{library}.py").exists():
            return (
                f"{part} of {library}, which is not part of diffusers or transformers: medtest runs no code of a folder"
            )
        suffixes = {path.suffix for path in (folder / part).glob("*") if path.is_file()}
        if ".safetensors" not in suffixes and suffixes & _PICKLED:
            return f"weights of {part} that are not safetensors"
    if any(folder.rglob("*.py")):
        return "code in the folder, which medtest does not run"
    return ""


def to_pixels(values: Any) -> Image:
    """Convert a pipeline's picture, floats H×W×3 from 0 to 1, to uint8.

    Raises:
        ValueError: Wrong shape, or values that are not finite.
    """
    picture = np.asarray(values, dtype=np.float64)
    if picture.ndim != 3 or picture.shape[2] != 3:
        raise ValueError(f"the pipeline's picture has the shape {picture.shape}")
    if not np.isfinite(picture).all():
        raise ValueError("the pipeline's picture holds NaN or infinite values")
    pixels: Image = np.ascontiguousarray(np.rint(np.clip(picture, 0.0, 1.0) * 255).astype(np.uint8))
    return pixels

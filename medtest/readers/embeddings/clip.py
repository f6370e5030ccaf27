"""CLIP or a similar model from the user's Hugging Face folder: the network that R-precision (RP) is based on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake
from medtest.readers.embeddings.base import Embedded, Embedder, FigureNames
from medtest.systems.files import cached_sha256, folder_mistakes, user_path


class Clip(Embedder):
    """A model with ``get_image_features`` and ``get_text_features`` in the same space.

    Args:
        folder: A folder with ``config.json``, the weights as safetensors, the tokenizer and the preprocessor.
    """

    name = "clip"
    figures: ClassVar[FigureNames] = FigureNames(precision="RP")
    revision: ClassVar[int] = 1

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._model: Any = None
        self._processor: Any = None
        self._device = "cpu"

    def check(self) -> list[Mistake]:
        """Return the mistakes in the folder."""
        wrong = folder_mistakes(self._folder, where="figures", key="clip")
        if wrong:
            return wrong
        folder = user_path(self._folder)
        if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
            problem = f"{self._folder} (no config.json beside *.safetensors)"
            fix = "give a folder as Hugging Face's save_pretrained writes it"
            return [Mistake(where="figures", key="clip", found=problem, allowed="a folder of a CLIP model", fix=fix)]
        return []

    def fingerprint(self) -> Mapping[str, Any]:
        """Return the SHA-256 of every file that affects the features."""
        folder = user_path(self._folder)
        files = sorted(path for path in folder.iterdir() if path.suffix in (".json", ".safetensors", ".txt", ".model"))
        return {
            "net": self.name,
            "revision": self.revision,
            "weights": {path.name: cached_sha256(path) for path in files if path.is_file()},
        }

    def open(self, *, device: str, threads: int) -> None:
        """Load the model without downloading anything or running code from the folder.

        Raises:
            MedtestError: The folder does not contain such a model.
        """
        import transformers

        loaders: Any = transformers
        torch.set_num_threads(max(1, threads))
        place = str(user_path(self._folder))
        try:
            options = {"local_files_only": True, "trust_remote_code": False}
            self._model = loaders.AutoModel.from_pretrained(place, use_safetensors=True, **options).to(device).eval()
            self._processor = loaders.AutoProcessor.from_pretrained(place, **options)
        except Exception as error:
            raise MedtestError(f"no CLIP model can be read from the folder: {str(error)[:300]}") from error
        if not hasattr(self._model, "get_text_features") or not hasattr(self._model, "get_image_features"):
            raise MedtestError(f"{type(self._model).__name__} does not compare pictures with texts, as CLIP does")
        self._device = device

    def embed(self, images: Sequence[Image]) -> Embedded:
        """Return the features of pictures."""
        inputs = self._processor(images=list(images), return_tensors="pt")
        return self._features("get_image_features", inputs)

    def embed_texts(self, texts: Sequence[str]) -> Embedded:
        """Return the features of texts; texts longer than the model's limit are truncated, as in training."""
        text = getattr(self._model.config, "text_config", self._model.config)
        longest = getattr(text, "max_position_embeddings", None)
        inputs = self._processor(
            text=list(texts), return_tensors="pt", padding=True, truncation=True, max_length=longest
        )
        return self._features("get_text_features", inputs)

    def _features(self, method: str, inputs: Any) -> Embedded:
        with torch.inference_mode():
            output = getattr(self._model, method)(**{name: value.to(self._device) for name, value in inputs.items()})
        output = getattr(output, "pooler_output", output)  # newer versions give an object
        rows = output.float().cpu().numpy()
        return Embedded(rows, np.zeros((len(rows), 0), np.float32))

"""CLIP, or another model of its kind, from a Hugging Face folder of the user's: what RP is named after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from medtest.core.cases import Image
from medtest.core.errors import MedtestError, Mistake
from medtest.readers.embeddings.base import Embedded, Embedder, FigureNames
from medtest.systems.files import cached_sha256, folder_mistakes, user_path


class Clip(Embedder):
    """A model with ``get_image_features`` and ``get_text_features`` in one space.

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
        """Return what is wrong with the folder."""
        wrong = folder_mistakes(self._folder, where="figures", key="clip")
        if wrong:
            return wrong
        folder = user_path(self._folder)
        if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
            found = f"{self._folder} (no config.json beside *.safetensors)"
            fix = "give a folder as Hugging Face's save_pretrained writes it"
            return [Mistake(where="figures", key="clip", found=found, allowed="a folder of a CLIP model", fix=fix)]
        return []

    def fingerprint(self) -> Mapping[str, Any]:
        """Return the SHA-256 of every file that decides."""
        folder = user_path(self._folder)
        files = sorted(one for one in folder.iterdir() if one.suffix in (".json", ".safetensors", ".txt", ".model"))
        return {
            "net": self.name,
            "revision": self.revision,
            "weights": {one.name: cached_sha256(one) for one in files if one.is_file()},
        }

    def open(self, *, device: str, threads: int) -> None:
        """Load the model; nothing is fetched and no code of the folder runs.

        Raises:
            MedtestError: The folder holds no such model.
        """
        import torch
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
        given = self._processor(images=list(images), return_tensors="pt")
        return self._features("get_image_features", given)

    def embed_texts(self, texts: Sequence[str]) -> Embedded:
        """Return the features of texts; what is longer than the model reads is cut, as it was in training."""
        text = getattr(self._model.config, "text_config", self._model.config)
        longest = getattr(text, "max_position_embeddings", None)
        given = self._processor(
            text=list(texts), return_tensors="pt", padding=True, truncation=True, max_length=longest
        )
        return self._features("get_text_features", given)

    def _features(self, method: str, given: Any) -> Embedded:
        import torch

        with torch.inference_mode():
            found = getattr(self._model, method)(**{name: value.to(self._device) for name, value in given.items()})
        found = getattr(found, "pooler_output", found)  # newer versions give an object
        rows = found.float().cpu().numpy()
        return Embedded(rows, np.zeros((len(rows), 0), np.float32))

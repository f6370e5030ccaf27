"""Detectors of Hugging Face transformers in a local folder that receive the classes as words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake
from medtest.core.scenes import Scene, Tells
from medtest.readers.pictures.base import PictureContent
from medtest.readers.pictures.detectors.boxes import Detections
from medtest.readers.pictures.detectors.huggingface import DetectorFolderSettings, FolderDetector, detections_of
from medtest.readers.pictures.spatial import PREDICATES


class WordSettings(DetectorFolderSettings):
    """Settings of :class:`WordDetector`; see :class:`DetectorFolderSettings`.

    Attributes:
        words: Text for a class; ``{}`` is replaced by its name.
    """

    words: str = Field(default="{}", max_length=200)


class WordDetector(FolderDetector):
    """OWLv2 and Grounding DINO: detectors that receive the classes to look for as words.

    They receive the classes from the pools of a case and its source, and report only these. Both tend to find anything
    they are asked for (``docs/readers-of-pictures.md``): a card shows how often.

    OWLv2 receives each class of a picture as a separate sentence; a box gets the class whose sentence fits best.
    Grounding DINO receives "dog. fire hydrant."; a class's score is the highest of its words, so that a box always has
    a complete requested class. If there are more words than the network accepts at once, they are split into parts.
    """

    Settings: ClassVar[type[WordSettings]] = WordSettings
    settings: WordSettings
    asks_words: ClassVar[bool] = True
    at_once: ClassVar[int] = 1
    families: ClassVar[tuple[str, ...]] = ("owlv2", "owlvit", "grounding-dino", "mm-grounding-dino")
    processor = "AutoProcessor"
    maker = "AutoModelForZeroShotObjectDetection"

    def check(self) -> list[Mistake]:
        """Return the mistakes in the folder or in the text for a class."""
        if self.settings.words.count("{}") != 1:
            allowed = "words with {} once, as 'a photo of a {}'"
            return [Mistake(where=self.name, key="words", found=self.settings.words, allowed=allowed)]
        return super().check()

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        """Return the objects whose classes are named in the pools.

        Raises:
            BadOutput: Boxes or scores are not finite.
        """
        return [self._scene_of(image, content) for image, content in zip(images, contents, strict=True)]

    def _scene_of(self, image: Image, content: PictureContent) -> Scene:
        self.ready()
        names = sorted({entity.name for pool in content.asked() for entity in pool.entities})
        tells = Tells(classes=frozenset(names), predicates=frozenset(PREDICATES), attributes=frozenset())
        if not names:
            return Scene(tells=tells)
        find = self._by_sentences if self._family.startswith("owl") else self._by_caption
        parts = [(start, find(image, part)) for start, part in self._parts(names)]
        detections = Detections(
            boxes=np.concatenate([part.boxes for _, part in parts]),
            scores=np.concatenate([part.scores for _, part in parts]),
            labels=np.concatenate([part.labels + start for start, part in parts]),
        )
        return self.scene(image, detections, names, tells)

    def _parts(self, names: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
        """Yield as many classes as fit into one question, each time with the index of the first."""
        most = len(names)
        if not self._family.startswith("owl"):
            longest = max(len(self._tokens(name)) for name in names) + 1
            most = max((int(self.ready().config.max_text_len) - 2) // longest, 1)
        for start in range(0, len(names), most):
            yield start, names[start : start + most]

    def _class_text(self, name: str) -> str:
        return self.settings.words.replace("{}", name)

    def _by_sentences(self, image: Image, names: Sequence[str]) -> Detections:
        texts = [self._class_text(name) for name in names]
        inputs = self._processor(
            text=[texts],
            images=[image],
            return_tensors="pt",
            padding="max_length",
            truncation=True,
            input_data_format="channels_last",
        )
        with torch.inference_mode():
            output = self.ready()(**{key: value.to(self._device) for key, value in inputs.items()})
        (result,) = self._processor.post_process_grounded_object_detection(
            output, threshold=self.settings.score, target_sizes=torch.tensor([image.shape[:2]], device=self._device)
        )
        return detections_of(result, image)

    def _tokens(self, name: str) -> list[int]:
        tokens: list[int] = self._processor.tokenizer(self._class_text(name).lower(), add_special_tokens=False)[
            "input_ids"
        ]
        return tokens

    def _by_caption(self, image: Image, names: Sequence[str]) -> Detections:
        caption = " ".join(f"{self._class_text(name).lower()}." for name in names)
        inputs = self._processor(text=caption, images=[image], return_tensors="pt", input_data_format="channels_last")
        with torch.inference_mode():
            output = self.ready()(**{key: value.to(self._device) for key, value in inputs.items()})
        scores = output.logits[0].sigmoid().cpu().double().numpy()
        centres = output.pred_boxes[0].cpu().double().numpy()
        boxes = np.concatenate([centres[:, :2] - centres[:, 2:] / 2, centres[:, :2] + centres[:, 2:] / 2], axis=1)
        spans = self._spans(inputs["input_ids"][0].tolist(), names)
        table = np.stack([scores[:, start:end].max(axis=1) for start, end in spans], axis=1)
        best = table.argmax(axis=1)
        top = table[np.arange(len(best)), best]
        selected = np.flatnonzero(top >= self.settings.score)
        return Detections(
            boxes=np.clip(boxes[selected], 0.0, 1.0), scores=top[selected], labels=best[selected].astype(np.int64)
        )

    def _spans(self, tokens: Sequence[int], names: Sequence[str]) -> list[tuple[int, int]]:
        """Return the first token and the end of each class in a caption.

        Raises:
            MedtestError: The tokenizer treats the caption differently from its words.
        """
        spans, place = [], 0
        for name in names:
            own = self._tokens(name)
            while list(tokens[place : place + len(own)]) != own:
                place += 1
                if not own or place + len(own) > len(tokens):
                    raise MedtestError(f"{self.name}: the tokenizer does not find {name!r} in the prompt")
            spans.append((place, place + len(own)))
            place += len(own)
        return spans

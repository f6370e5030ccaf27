"""Insertion of words into captions by a masked language model, without changing their pool.

ACTesting (section 3.2, "Text Synthesizing") lets BERT enhance the sentences of its templates. An inserted word can name
or describe an entity or change a relation, so that the text no longer matches the pool. Here a word is inserted only if
the parser reads exactly the same pool from the longer caption: in practice adverbs ("a man slowly riding a horse").
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from medtest.core.deferred import torch
from medtest.core.errors import Mistake, UserMistakes
from medtest.core.scenes import Pool
from medtest.language.captions.parsers import CaptionParser, parser_of

_OFFERED = 40
"""Number of words taken from the model for one position."""


class Enricher:
    """Insertion of words into captions by a masked language model in a folder.

    Nothing is downloaded and no code of the folder runs.

    Args:
        folder: A masked language model of transformers with its tokenizer; weights in safetensors.
        parser: Parser that must read the same pool; ``controlled`` by default.

    Raises:
        UserMistakes: The folder has no such model.
    """

    def __init__(self, folder: Path, parser: CaptionParser | None = None) -> None:
        self.parser = parser or parser_of("controlled")
        self._tokenizer, self._model = _loaded(folder)

    def enrich(self, text: str, *, seed: int, words: int = 1) -> str:
        """Return a caption with up to ``words`` more words and the same pool; the caption itself if none fits.

        Args:
            text: The caption.
            seed: Seed of the order of positions; the same seed gives the same words.
            words: Largest number of words to add.
        """
        pool = self.parser.parse(text)
        rng = random.Random(seed)  # noqa: S311 - places to try, no secret
        for _ in range(words):
            longer = self._one_more(text, pool, rng)
            if longer is None:
                break
            text = longer
        return text

    def _one_more(self, text: str, pool: Pool, rng: random.Random) -> str | None:
        parts = text.split(" ")
        places = list(range(1, len(parts)))
        rng.shuffle(places)
        for place in places:
            for word in self._offers(parts, place):
                longer = " ".join([*parts[:place], word, *parts[place:]])
                if word != parts[place - 1] and word != parts[place].strip(".,") and self.parser.parse(longer) == pool:
                    return longer
        return None

    def _offers(self, parts: list[str], place: int) -> list[str]:
        """Return the model's words for a position, most probable first."""
        masked = " ".join([*parts[:place], self._tokenizer.mask_token, *parts[place:]])
        encoded = self._tokenizer(masked, return_tensors="pt", truncation=True)
        where = (encoded["input_ids"][0] == self._tokenizer.mask_token_id).nonzero()
        if not len(where):
            return []  # the caption is longer than the model's input
        with torch.inference_mode():
            scores = self._model(**encoded).logits[0, int(where[0, 0])]
        best = scores.topk(min(_OFFERED, scores.numel())).indices.tolist()
        words = [self._tokenizer.decode([token]).strip() for token in best]
        return [word for word in words if word.isalpha() and word.islower() and len(word) > 1]


def _loaded(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    try:
        if not (folder / "config.json").is_file():
            raise OSError("no config.json")
        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        model = AutoModelForMaskedLM.from_pretrained(folder, use_safetensors=True, **options)
    except (OSError, ValueError, KeyError) as error:
        problem = str(error).splitlines()[0][:200]
        mistake = Mistake(
            where=str(folder),
            found=problem,
            allowed="a folder with a masked language model of transformers, its tokenizer and model.safetensors",
        )
        raise UserMistakes([mistake]) from None
    if tokenizer.mask_token is None:
        mistake = Mistake(where=str(folder), found="a tokenizer without a mask", allowed="a masked language model")
        raise UserMistakes([mistake])
    return tokenizer, model.eval()

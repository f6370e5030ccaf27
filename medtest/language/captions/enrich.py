"""Words that a masked language model adds to a caption without changing what it says.

ACTesting (section 3.2, "Text Synthesizing") lets BERT enhance the sentences of its templates. A word that it adds can
name a thing, describe one or change a relation, so that the words no longer say the pool. Here a word is added only
where the parser reads the very same pool from the longer caption: in practice adverbs ("a man slowly riding a horse").
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from medtest.core.errors import Mistake, UserMistakes
from medtest.core.scenes import Pool
from medtest.language.captions.parsers import CaptionParser, parser_of

_OFFERED = 40
"""Words that are taken from the model for one place."""


class Enricher:
    """Adds words to captions by a masked language model in a folder; nothing is downloaded, no code of the folder runs.

    Args:
        folder: A masked language model of transformers with its tokenizer; weights in safetensors.
        parser: What must read the same pool; the parser ``controlled`` where none is given.

    Raises:
        UserMistakes: The folder holds no such model.
    """

    def __init__(self, folder: Path, parser: CaptionParser | None = None) -> None:
        self.parser = parser or parser_of("controlled")
        self._tokenizer, self._model = _loaded(folder)

    def enrich(self, text: str, *, seed: int, words: int = 1) -> str:
        """Return a caption with up to so many words more that says the same pool; the caption where none fits.

        Args:
            text: The caption.
            seed: Which places are tried first; the same seed gives the same words.
            words: Most words to add.
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
        """Return the words that the model would put at a place, likeliest first."""
        import torch

        masked = " ".join([*parts[:place], self._tokenizer.mask_token, *parts[place:]])
        given = self._tokenizer(masked, return_tensors="pt", truncation=True)
        where = (given["input_ids"][0] == self._tokenizer.mask_token_id).nonzero()
        if not len(where):
            return []  # the caption is longer than the model reads
        with torch.inference_mode():
            scores = self._model(**given).logits[0, int(where[0, 0])]
        best = scores.topk(min(_OFFERED, scores.numel())).indices.tolist()
        words = [self._tokenizer.decode([one]).strip() for one in best]
        return [one for one in words if one.isalpha() and one.islower() and len(one) > 1]


def _loaded(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    try:
        if not (folder / "config.json").is_file():
            raise OSError("no config.json")
        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        model = AutoModelForMaskedLM.from_pretrained(folder, use_safetensors=True, **options)
    except (OSError, ValueError, KeyError) as error:
        found = str(error).splitlines()[0][:200]
        mistake = Mistake(
            where=str(folder),
            found=found,
            allowed="a folder with a masked language model of transformers, its tokenizer and model.safetensors",
        )
        raise UserMistakes([mistake]) from None
    if tokenizer.mask_token is None:
        mistake = Mistake(where=str(folder), found="a tokenizer without a mask", allowed="a masked language model")
        raise UserMistakes([mistake])
    return tokenizer, model.eval()

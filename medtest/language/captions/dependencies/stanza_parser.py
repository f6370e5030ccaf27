"""Parser ``stanza``: Stanza's English models in a folder, as used by ACTesting (section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from medtest.core.scenes import Pool
from medtest.language.captions.dependencies.graph import Word
from medtest.language.captions.dependencies.pools import pool_of_words
from medtest.language.captions.parsers import CaptionParser, NoParser

_BATCH = 256
PROCESSORS = "tokenize,mwt,pos,lemma,depparse"
"""Processors to run, as in ACTesting's released code."""


class StanzaParser(CaptionParser):
    """Parser by Stanza; neither Stanza nor its models are included, and nothing is downloaded.

    Args:
        model: Folder of Stanza's resources (``resources.json`` and ``en``); "" for Stanza's default folder.

    Raises:
        NoParser: Stanza or its English models are missing.
    """

    name: ClassVar[str] = "stanza"

    def __init__(self, model: str = "") -> None:
        self._pipeline = _loaded(model)

    def parse(self, text: str) -> Pool:
        """Return the pool of a caption; see :class:`~medtest.language.captions.parsers.CaptionParser`."""
        return pool_of_words(words_of(self._pipeline(text.lower())))

    def parse_all(self, texts: Iterable[str]) -> Iterator[Pool]:
        """Yield the pools of many captions, parsed in batches."""
        remaining = iter(texts)
        while batch := [text.lower() for text in islice(remaining, _BATCH)]:
            for document in self._pipeline.bulk_process(batch):
                yield pool_of_words(words_of(document))


def words_of(document: Any) -> list[Word]:
    """Return the words of all sentences of a ``stanza.Document``, without punctuation."""
    result: list[Word] = []
    for sentence in document.sentences:
        tokens = [word for word in sentence.words if word.upos != "PUNCT"]
        at = {int(word.id): len(result) + index for index, word in enumerate(tokens)}
        for word in tokens:
            features = word.feats or ""
            result.append(
                Word(
                    text=word.text.lower(),
                    lemma=(word.lemma or word.text).lower(),
                    tag=word.upos,
                    relation=word.deprel,
                    head=at.get(int(word.head), at[int(word.id)]),
                    gerund=word.xpos == "VBG" or "VerbForm=Ger" in features,
                )
            )
    return result


@cache
def _loaded(model: str) -> Any:
    try:
        import stanza
    except ImportError:
        raise NoParser(
            "the parser stanza needs Stanza: pip install 'medtest[stanza]', and its English models"
        ) from None
    settings: dict[str, Any] = {"dir": model} if model else {}
    if model and not Path(model).is_dir():
        raise NoParser(f"{model!r} is not a folder of Stanza's models")
    try:
        return stanza.Pipeline(
            "en", processors=PROCESSORS, download_method=None, use_gpu=False, verbose=False, **settings
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise NoParser(f"Stanza's English models cannot be loaded: {why}") from None

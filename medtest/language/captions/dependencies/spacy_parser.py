"""Parser ``spacy``: any installed English pipeline of spaCy with a dependency parser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, ClassVar

from medtest.core.scenes import Pool
from medtest.language.captions.dependencies.graph import Word
from medtest.language.captions.dependencies.pools import pool_of_words
from medtest.language.captions.parsers import CaptionParser, NoParser

_BATCH = 256


class SpacyParser(CaptionParser):
    """Parser by an installed pipeline of spaCy; neither spaCy nor a pipeline is included in medtest.

    Args:
        model: Name of an installed pipeline or its folder; "" for the first installed English one by name.

    Raises:
        NoParser: spaCy or the pipeline is not installed, or the pipeline has no dependency parser.
    """

    name: ClassVar[str] = "spacy"

    def __init__(self, model: str = "") -> None:
        self._pipeline = _loaded(model)

    def parse(self, text: str) -> Pool:
        """Return the pool of a caption; see :class:`~medtest.language.captions.parsers.CaptionParser`."""
        return pool_of_words(words_of(self._pipeline(text.lower())))

    def parse_all(self, texts: Iterable[str]) -> Iterator[Pool]:
        """Yield the pools of many captions, parsed in batches."""
        for document in self._pipeline.pipe((text.lower() for text in texts), batch_size=_BATCH):
            yield pool_of_words(words_of(document))


def words_of(document: Any) -> list[Word]:
    """Return the words of a ``Doc``, without punctuation and spaces."""
    tokens = [token for token in document if not (token.is_punct or token.is_space)]
    at = {token.i: index for index, token in enumerate(tokens)}
    return [
        Word(
            text=token.text,
            lemma=token.lemma_.lower(),
            tag=token.pos_,
            relation="root" if token.head.i == token.i else token.dep_,
            head=at.get(token.head.i, index),
            gerund=token.tag_ == "VBG",
        )
        for index, token in enumerate(tokens)
    ]


@cache
def _loaded(model: str) -> Any:
    try:
        import spacy
    except ImportError:
        raise NoParser("the parser spacy needs spaCy: pip install 'medtest[spacy]', and an English pipeline") from None
    installed = sorted(package for package in spacy.util.get_installed_models() if package.startswith("en"))
    name = model or next(iter(installed), "")
    if not name:
        raise NoParser("the parser spacy needs an English pipeline of spaCy; none is installed")
    try:
        pipeline = spacy.load(name, exclude=["ner"])
    except OSError:
        had = ", ".join(installed) or "none"
        raise NoParser(f"spaCy has no pipeline {name!r}; installed English pipelines: {had}") from None
    if "parser" not in pipeline.pipe_names:
        raise NoParser(f"spaCy's pipeline {name!r} has no dependency parser")
    return pipeline

"""Enrichment of captions by a tiny random masked language model: it adds words and keeps the meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from medtest.core.errors import UserMistakes
from medtest.language.captions.enrich import Enricher
from medtest.language.captions.parsers import parser_of

pytestmark = pytest.mark.slow  # transformers loads
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CAPTION = "A man is riding a horse on a beach."
SAID = ["a", "man", "is", "riding", "a", "horse", "on", "a", "beach", "."]


def model(folder: Path, words: list[str]) -> Path:
    """Make a tiny random BERT that knows these words beside the caption's."""
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    vocabulary = [*SPECIAL, *dict.fromkeys(SAID), *words]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    BertForMaskedLM(config).save_pretrained(folder)
    return folder


def test_words_that_change_nothing_are_added(tmp_path):
    enricher = Enricher(model(tmp_path / "bert", ["slowly", "calmly", "red", "zebra", "holding"]))
    longer = {enricher.enrich(CAPTION, seed=seed, words=2) for seed in range(6)}
    assert CAPTION not in longer
    pool = parser_of("controlled").parse(CAPTION)
    for longer_caption in longer:
        assert parser_of("controlled").parse(longer_caption) == pool
        assert set(longer_caption.lower().strip(".").split()) - set(SAID) <= {"slowly", "calmly"}
        assert 1 <= len(longer_caption.split()) - len(CAPTION.split()) <= 2
    assert enricher.enrich(CAPTION, seed=1) == enricher.enrich(CAPTION, seed=1)


def test_a_model_that_offers_only_what_changes_the_pool_adds_nothing(tmp_path):
    offered = ["red", "zebra", "holding", "wooden", "two", "cats"]
    enricher = Enricher(model(tmp_path / "bert", offered))
    added = enricher.enrich(CAPTION, seed=0, words=3)
    assert not set(added.lower().split()) & set(offered)


def test_a_folder_without_a_model_is_one_mistake(tmp_path):
    with pytest.raises(UserMistakes) as refused:
        Enricher(tmp_path)
    assert "masked language model" in str(refused.value.mistakes[0])

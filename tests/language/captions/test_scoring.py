"""Scores of parsers, counted by hand, and the labelled captions for development."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks._caption_scores import (
    ParserRates,
    ReadingScore,
    compared,
    is_held_out,
    labelled,
    score,
    score_readings,
)
from medtest.core.scenes import Entity, Pool, pool_of
from medtest.language.captions.parsers import CaptionParser, parser_of
from medtest.results.cube.intervals import wilson_ends

ROOT = Path(__file__).parents[3]
DEVELOPMENT = ROOT / "tests" / "data" / "captions" / "development.json"


class Always(CaptionParser):
    """Reads the same pool from every caption."""

    name = "always"

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    def parse(self, text: str) -> Pool:
        return self.pool


def test_names_are_compared_as_multisets():
    assert compared(["dog", "dog", "cat"], ["dog", "bird"]) == ParserRates(right=1, parsed=2, labelled=3)
    rates = ParserRates(right=1, parsed=2, labelled=3)
    assert (rates.precision, rates.recall, rates.f1) == (0.5, pytest.approx(1 / 3), pytest.approx(0.4))
    assert ParserRates().f1 == ParserRates().precision == ParserRates().recall == 1.0


def test_a_score_counts_entities_triples_and_whole_captions():
    row = {"caption": "", "entities": [{"name": "dog"}, {"name": "bed"}], "triples": [[0, "on", 1]]}
    right = pool_of([Entity(name="bed"), Entity(name="dog")], [(1, "on", 0)])
    wrong = pool_of([Entity(name="bed"), Entity(name="dog")], [(0, "on", 1)])
    assert score([row, row], Always(right)).whole == 2
    result = score([row], Always(wrong))
    assert result.entities == ParserRates(right=2, parsed=2, labelled=2)
    assert result.triples == ParserRates(right=0, parsed=1, labelled=1) and result.whole == 0


def test_the_labelled_captions_are_whole():
    for row in labelled(DEVELOPMENT):
        for subject, predicate, other in row["triples"]:
            assert subject != other and predicate and max(subject, other) < len(row["entities"])


def test_controlled_holds_its_figures_on_the_development_captions():
    result = score(labelled(DEVELOPMENT), parser_of("controlled"))
    assert result.captions == 50
    assert result.entities.f1 >= 0.95
    assert result.triples.precision >= 0.85 and result.triples.recall >= 0.85


def test_the_script_scores_and_counts(tmp_path):
    captions = tmp_path / "captions.json"
    captions.write_text(json.dumps({"1": ["A dog and a cat.", "A man riding a horse on a beach."]}), encoding="utf-8")
    command = [sys.executable, str(ROOT / "scripts" / "score_captions.py"), "--labels", str(DEVELOPMENT)]
    done = subprocess.run([*command, "--count", str(captions)], capture_output=True, text=True, check=True)
    assert "development.json: 50 captions, parser controlled" in done.stdout
    assert "triples as read: 1 captions of 1 images have 2 or more" in done.stdout
    assert "with coordination read as `with`: 2 captions of 1 images have 1 or more" in done.stdout


def test_controlled_reaches_its_targets_on_the_untouched_captions():
    """Scores were published once (docs/captions.md); no rule was written from these captions."""
    result = score(labelled(DEVELOPMENT.with_name("untouched.json")), parser_of("controlled"))
    assert result.captions == 100
    assert result.entities.f1 >= 0.90
    assert result.triples.precision >= 0.75
    assert result.triples.recall >= 0.65


def test_prompts_that_are_sent_mean_what_their_author_wrote() -> None:
    """Figures of docs/captions.md; the labels are older than the rules, see tests/data/captions/README.md."""
    rows = labelled(DEVELOPMENT.with_name("written.json"))
    scores: dict[tuple[str, bool], ReadingScore] = {}
    for style in {row["style"] for row in rows}:
        for half in (False, True):
            part = [row for row in rows if row["style"] == style and is_held_out(row["caption"]) is half]
            scores[style, half] = score_readings(part)
    total = sum(scores.values(), ReadingScore())
    assert (total.prompts, total.sent, total.right) == (220, 121, 116)
    assert wilson_ends(total.right, total.sent)[0] >= 0.90
    for style in {style for style, _ in scores} - {"other"}:
        assert scores[style, False].sent + scores[style, True].sent >= 0.3 * 20, style
    assert scores["other", False].sent + scores["other", True].sent == 0
    held_out = sum((score for (_, half), score in scores.items() if half), ReadingScore())
    assert (held_out.sent, held_out.right) == (51, 46)

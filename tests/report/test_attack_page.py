"""The report on attacks: every figure of its tables, warnings beside the rates, and text that stays text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from attack_records import PARTS, attack_records, chest_records, noise, pgd, square
from report_pages import without_scripts

from medtest.report.pages.material import Material
from medtest.report.pages.page import report_html
from medtest.results.records.records_io import Records
from medtest.results.records.wanted import Wanted
from medtest.results.tables import tables_of
from medtest.suite.model import Criterion

SMALLEST = [*np.linspace(0.5, 6.0, 30), *[None] * 18]


def material_of(frame, folder: Path, **changes) -> Material:
    """Return the material of a report, from records alone."""
    names = dict.fromkeys(name for name in frame.relation if name != "source")
    settings = {
        "suite": "attacked",
        "version": "1",
        "seeds": {"phantoms": "label_phantoms"},
        "relations": {name: PARTS.get(name, name) for name in names},
        "primary": Criterion(score="label", threshold=0.0, against="source"),
        "scores": ("label",),
        "thresholds": (0.25,),
        "against": ("source", "truth"),
        "kind": "label",
    }
    selection = Wanted(**{**settings, **changes})
    return Material(folder=folder, wanted=selection, tables=tables_of(Records.of(frame), selection))


def text_of(html: str) -> str:
    """Return the text of a page, without marks."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    settings = [
        *(pgd(level, epsilon, right, steps=steps) for level, epsilon, right, steps in ((1, 2, 10, 1), (2, 4, 0, 4))),
        pgd(3, 8, 9, steps=10, smallest=SMALLEST),
        *(square(level, epsilon, 30 - 5 * level) for level, epsilon in ((1, 2), (2, 4), (3, 8))),
        *(noise(level, epsilon, 43) for level, epsilon in ((1, 2), (2, 4), (3, 8))),
    ]
    return report_html(material_of(attack_records(settings), tmp_path_factory.mktemp("run")))


def test_every_setting_is_shown_with_its_rates(page):
    own = page[page.index('<section id="attacks">') : page.index("Checks of the attacks")]
    rows = [text_of(row).split() for row in re.findall(r"<tr>(<td>.*?)</tr>", own)]
    assert len(rows) == 9
    assert rows[0][:5] == ["pgd", "1", "2", "1", "white"] and "20.8" in rows[0]  # 10 of 48
    assert 'href="#attacks"' in page and page.count("<svg") >= 2


def test_a_failed_check_is_reported_and_marked_beside_every_rate(page):
    words = text_of(page)
    assert "a larger ε leaves no more right: no." in words and "18.8" in words
    warned = [row for row in re.findall(r"<tr>.*?</tr>", page) if "\N{WARNING SIGN}" in row]
    named = [text_of(row).split()[0] for row in warned]
    assert "pgd" in named and "square" not in named and "uniform" not in named
    assert len([name for name in named if name == "pgd"]) >= 2  # its setting, and accuracy over all severities
    heat = page[page.index('<section id="matrix">') : page.index('<section id="accuracy">')]
    assert "\N{WARNING SIGN}" in heat
    assert "pgd fails a check of the attack" in words and "These checks of the attacks failed" in words


def test_published_figures_are_shown_with_the_gap_of_budgets(page):
    words = text_of(page)
    assert "PGD, ε = 4/255, t = 4 0.0 % 0.000 85.5 % 0 %" in words  # and the own ones
    assert "PGD, ε = 2/255, t = 1 10.8 % 0.067 74.7 % 20.8 %" in words
    assert "0.09 to 0.15" in words and "impossible on the same images" in words


def test_the_smallest_epsilon_is_shown_with_its_curve(page):
    words = text_of(page)
    assert "Smallest ε found that flips the answer" in words and "30 of 48" in words
    assert "share flipped" in page


def test_labels_are_shown_one_by_one_at_both_thresholds(tmp_path):
    page = text_of(report_html(material_of(chest_records(), tmp_path)))
    assert "Threshold 0.5" in page and "Threshold 0.7" in page and "effusion" in page
    other = text_of(report_html(material_of(chest_records(), tmp_path, label_thresholds=(0.3,))))
    assert "Threshold 0.3" in other and "Threshold 0.5" not in other


def test_nothing_about_attacks_is_shown_without_attacks(tmp_path):
    frame = attack_records([noise(1, 4, 40)]).drop(columns=["crafted_on"])
    page = report_html(material_of(frame, tmp_path))
    assert 'id="attacks"' not in page and "\N{WARNING SIGN}" not in page


def test_names_are_text(tmp_path):
    frame = attack_records([pgd(1, 2, 0), pgd(2, 4, 9)], system="<script>alert(1)</script>")
    frame["relation"] = frame.relation.replace("pgd", "<img src=x>")
    page = report_html(material_of(frame, tmp_path))
    page = without_scripts(page)
    assert "<script" not in page and "<img src=x" not in page and "&lt;img src=x&gt;" in page


@pytest.mark.parametrize("spoil", ["errors", "one seed"])
def test_degenerate_records_still_make_a_page(spoil, tmp_path):
    frame = attack_records([pgd(1, 2, 0), noise(1, 2, 1)], seeds=1 if spoil == "one seed" else 12, wrong=0)
    if spoil == "errors":
        lost = frame.relation != "source"
        frame.loc[lost, ["label", "probabilities", "crafted_on", "zero_gradient"]] = None
        frame.loc[lost, "verdict"] = "ERROR"
    assert "report" in report_html(material_of(frame, tmp_path))


def test_the_verdict_on_a_network_with_misleading_gradients_is_at_the_top(tmp_path):
    """PGD 0 %, noise 12.5 %, strongest 87.5 %."""
    strongest = pgd(2, 4, 6, relation="strongest", steps=30)
    frame = attack_records([pgd(2, 4, 48), noise(2, 4, 42), strongest], wrong=0)
    html = report_html(material_of(frame, tmp_path))
    section = html[html.index('<section id="attacks">') :]
    (banner,) = re.findall(r'<div class="banner bad" id="misleading">(.*?)</div>', section)
    assert text_of(banner).strip().startswith("Gradients are misleading: read the strongest row.")
    rows = {text_of(row).split()[0]: row for row in re.findall(r"<tr>(<td>.*?)</tr>", section)[:3]}
    assert "\N{WARNING SIGN}" in rows["pgd"] and "\N{WARNING SIGN}" not in rows["strongest"]
    sound = report_html(material_of(attack_records([pgd(2, 4, 2), noise(2, 4, 42)], wrong=0), tmp_path))
    assert 'id="misleading"' not in sound


def test_an_attack_that_left_nothing_right_gets_no_warning_of_kindness(tmp_path):
    settings = [pgd(2, 4, 0, relation="strongest", zero=1.0), noise(2, 4, 42)]
    html = report_html(material_of(attack_records(settings, wrong=0), tmp_path))
    assert "too kind" not in html and "An attack that fails" not in html


def test_the_smallest_epsilon_is_called_an_upper_bound(page):
    words = text_of(page)
    assert "Smallest ε found that flips the answer" in words and "an upper bound" in words


def test_training_and_validation_images_are_shown_beside_the_papers(tmp_path):
    """A generator leaves 10 of 48 right on the images it was trained on, 20 on others."""
    frames = []
    for name, right in (("training", 10), ("validation", 20)):
        gap = pgd(2, 11, right, relation="gap", zero=None)
        frames.append(attack_records([gap], dataset=name, wrong=0))
    frame = pd.concat(frames, ignore_index=True)
    words = text_of(report_html(material_of(frame, tmp_path, relations={"gap": "gap"})))
    assert "GAP, L∞ = 11, training images 21.7 % 0.514 78.3 % 20.8 %" in words
    assert "GAP, L∞ = 11, validation images 21.9 % 0.493 80.5 % 41.7 %" in words

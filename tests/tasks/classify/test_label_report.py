"""The report's sections on classifiers: figures of the tables, notes on phantoms, escaped texts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from label_records import CAPSULE, make_label_records

from medtest.phantoms.classes import CHEST
from medtest.report.charts.figures import confusion_panel
from medtest.report.pages.page import render
from medtest.report.pages.words import p_words, with_interval
from medtest.results.records.records_io import Records
from medtest.tasks.classify.report.heat import severity_heat
from medtest.tasks.classify.report.page import label_page
from medtest.tasks.classify.results import TEMPLATE
from medtest.tasks.classify.tables.results import label_tables, reference_of

RELATIONS = {"blur": ("motion", 0.1), "white_balance": ("lighting", 0.3), "corruption_gaussian_noise": ("noise", 0.2)}


def make_tables(phantom=False, reference=None, **options):
    frame = make_label_records(relations=RELATIONS, skill=1.0, **{"seeds": 30, **options})
    return label_tables(Records.of(frame), phantom=phantom, reference=reference)


def page(tables, **options):
    return render(str(TEMPLATE), {"own": label_page(tables, **options)})


def text_of(html):
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_accuracy_and_published_figures_are_shown_side_by_side():
    tables = make_tables()
    words = text_of(page(tables))
    table = tables.classification.query("dataset == 'all' and severity == 'all'").set_index("relation")
    for relation in ("original", "blur", "average_without_original", "average_with_original"):
        assert f"{table.loc[relation].accuracy:.3f} ({table.loc[relation].accuracy_low:.3f}" in words
    assert "0.532 / 0.226 / 0.463" in words  # AGDN under white balance, MedTest slides
    assert "0.863 / 0.791 / 0.861" in words  # DSI-Net's average without the original
    assert "0.229" in words and "0.361 and 0.212" in words
    assert "Flip probability" not in words and "Phantom" not in words


def test_phantoms_are_named_as_such_in_every_section_and_table():
    tables = make_tables(phantom=True, frames=4, severities=(1, 2))
    html = page(tables)
    assert html.count("Phantom images:") == 4
    assert all("phantom" in table.lower() or 'class="heat"' in table for table in re.findall(r"<table.*?</tr>", html))
    frames = tables.frames()
    assert set(frames) == {
        "classification.csv",
        "classes.csv",
        "confusion.csv",
        "flip_probability.csv",
        "flip_frames.csv",
        "corruption_error.csv",
    }
    for name, frame in frames.items():
        if name != "flip_probability.csv" and not frame.empty:
            assert set(frame["seeds"]) == {"phantoms"}, name
    assert set(make_tables().frames()["classification.csv"]["seeds"]) == {"images"}


def test_flips_with_accuracy_beside_and_relative_to_a_reference():
    reference = reference_of(Records.of(make_label_records(relations=RELATIONS, frames=5, seeds=30, random=9)))
    tables = make_tables(frames=5, reference=reference)
    shown = page(tables)
    words = text_of(shown)
    row = tables.flips.query("dataset == 'all' and severity == 'all' and rule == 'auto'").set_index("relation")
    overall = row.loc["overall"]
    assert f"{100 * overall.fp:.2f} % ({100 * overall.ci_low:.2f} to {100 * overall.ci_high:.2f})" in words
    assert "relative to model" in words and f"{overall.rfp:.2f}" in words
    average = tables.classification.query("dataset == 'all' and severity == 'all'").set_index("relation")
    assert f"{average.loc['average_without_original'].accuracy:.3f}" in words
    assert "a constant answer also has 0 %" in words
    assert shown.count("aria-label") == len(RELATIONS) + 1 + len(RELATIONS)  # confusion matrices, then curves


def test_several_labels_show_the_figures_of_the_released_code():
    tables = make_tables(classes=CHEST.names, multi=True, frames=3, seeds=12)
    words = text_of(page(tables))
    assert "mean AUROC" in words and "right decisions" in words and "κ" not in words.split("Class by class")[0]
    assert "as released, undivided" in words
    assert "38.09 %" in words and "type Scale alone" in words


def test_the_melanoma_tables_are_shown_too():
    words = text_of(page(make_tables(classes=("benign", "melanoma"), frames=3)))
    assert "9.52 %" in words and "ResNet152" in words and "0.49" in words


def test_a_type_without_any_comparison_is_shown_with_none():
    tables = make_tables(frames=3, errors=1.0)
    assert "none" in text_of(page(tables))


def test_foreign_texts_are_escaped():
    evil = "<script>alert(1)</script>"
    tables = make_tables(classes=(evil, "b&b", "c"), frames=3)
    facts = {"relation": evil, "address": evil, "frames": [{"label": evil}]}
    strip = (facts, {"data": "data:,", "width": 1, "height": 1})
    html = page(tables, films=[strip])
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_the_heat_map_of_difficulties():
    tables = make_tables(frames=4, severities=(1, 3))
    heat = severity_heat(tables)[0]
    assert heat["columns"] == ["difficulty 1", "difficulty 3", "all"]
    assert [row["name"] for row in heat["rows"]][-1] == "mean of the types"
    hardest = tables.flips.query("dataset == 'all' and severity == '3' and rule == 'auto' and relation == 'blur'").iloc[
        0
    ]
    cell = next(row for row in heat["rows"] if row["name"] == "blur")["cells"][1]
    assert float(cell["value"].removesuffix(" %")) == pytest.approx(100 * hardest.fp, rel=0.06)
    assert severity_heat(make_tables(frames=4)) == []


def test_confusion_matrices_show_every_count():
    counts = [[7, 2, 0], [1, 5, 3], [0, 0, 4]]
    svg = confusion_panel("blur", CAPSULE, counts)
    assert [int(t) for t in re.findall(r">(\d+)</text>", svg)] == [7, 2, 1, 5, 3, 4]
    assert "78 %" in svg and "vascular answered inflammatory: 3 of 9" in svg


def test_numbers_as_people_read_them():
    row = {"fall": 0.1, "fall_low": -0.02, "fall_high": 0.2, "kappa": np.nan}
    assert with_interval(row, "fall", signed=True) == "+0.100 (-0.020 to +0.200)"
    assert with_interval(row, "kappa") == "" == p_words(np.nan)
    assert (p_words(0.00001), p_words(0.0312)) == ("< 0.0001", "0.031")

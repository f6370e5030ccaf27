"""``medtest reference``: every figure is printed whole on narrow terminals."""

from __future__ import annotations

import csv
import io
import re

import pytest
from rich.console import Console

from medtest.cli.results.reference import print_reference
from medtest.core.errors import UserMistakes
from medtest.results.published import published_actesting, published_labels, reference
from medtest.results.published.rows import FOLDER


def test_no_figure_is_cut_at_eighty_columns() -> None:
    out = io.StringIO()
    print_reference(model="TGANet", dataset="", threshold=0.25, console=Console(file=out, width=80))
    shown = out.getvalue()
    assert "…" not in shown
    for relation in {cell.relation for cell in reference.cells()}:
        (line,) = (line for line in shown.splitlines() if line.startswith(relation))
        cells = [c for c in reference.cells() if (c.model, c.threshold, c.relation) == ("TGANet", 0.25, relation)]
        assert sorted(re.findall(r"\d+\.\d", line)) == sorted(f"{c.efr_percent:.1f}" for c in cells)
        assert len(cells) == 8


def shown_of(model: str, *, dataset: str = "", threshold: float | None = None) -> str:
    out = io.StringIO()
    print_reference(model=model, dataset=dataset, threshold=threshold, console=Console(file=out, width=80))
    return out.getvalue()


@pytest.mark.parametrize(("model", "published"), [("agdn", "AGDN"), ("DSI-Net", "DSI-Net")])
def test_every_figure_of_a_classifier_is_printed(model: str, published: str) -> None:
    """Expected figures come from the files, without the code that reads them."""

    def rows(name: str) -> list[list[str]]:
        text = (FOLDER / name).read_text(encoding="utf-8")
        return [row[1:] for row in csv.reader(text.splitlines()) if row[0] == published]

    printed_figures = sorted(re.findall(r"\d\.\d{3}", shown_of(model)))
    before_after = rows("medtest_retraining_classification.csv")
    expected = [figure for _, *figures in rows("medtest_wce_classification.csv") for figure in figures]
    expected += [after for _, _, after in before_after]
    expected += [before for name, before, _ in before_after if name == "Average"]
    assert printed_figures == sorted(f"{float(figure):.3f}" for figure in expected)


def test_flip_probabilities_are_printed() -> None:
    assert re.search(r"CheXNet +38\.09 +0\.30", shown_of("chexnet"))
    shown = shown_of("attnmel")
    assert re.search(r"AttnMel +9\.52 +0\.00", shown) and re.search(r"AttnMel +87\.50 +0\.00 +1\.00", shown)
    assert "VGG19" not in shown and "Inception" not in shown
    everything = shown_of("")
    assert all(name in everything for name in ("PraNet", "AGDN", "CheXNet", "ResNet152"))


def test_every_figure_of_text_to_image_software_is_printed() -> None:
    shown = shown_of("wan xiang")
    for table, form in (("errors", ".2f"), ("miss", ".4f"), ("fidelity", ".2f")):
        for cell in published_actesting.cells(table):
            if cell.software == "Wan Xiang":
                figures = [value for value in vars(cell).values() if isinstance(value, float)]
                assert figures and all(f"{value:{form}}" in shown for value in figures), cell
    assert "SD XL" not in shown and "ACTesting" in shown and "Real-Image" not in shown_of("")


def test_data_sets_and_thresholds_are_of_polyps() -> None:
    with pytest.raises(UserMistakes, match="--threshold"):
        shown_of("CheXNet", threshold=0.5)
    with pytest.raises(UserMistakes, match="did you mean: VGG19"):
        shown_of("vgg18")
    assert "AGDN" not in shown_of("", threshold=0.5)


@pytest.mark.parametrize("model", ["attnmel", "inceptionv3_dr", "chexnet"])
def test_every_figure_under_attack_and_defence_is_printed(model: str) -> None:
    """Expected figures come from the files; ε of pixels and of normalised images are shown side by side."""
    published = published_labels.BENCHMARKED[model]
    shown = " ".join(shown_of(model).split())
    folder = FOLDER
    for row in csv.DictReader((folder / "attacks.csv").read_text(encoding="utf-8").splitlines()):
        if row["model"] == published:
            figures = [f"{float(row['acc_percent']):.1f}", f"{float(row['auc']):.3f}", row["fooling_rate_percent"]]
            assert " ".join(figure for figure in figures if figure) in shown
    for row in csv.DictReader((folder / "defense_accuracy.csv").read_text(encoding="utf-8").splitlines()):
        assert f"{row['defense']} {row[published]}".strip() in shown
    assert "after normalisation" in shown
    assert ("74.7 and 85.5 %" in shown) == (model == "attnmel")

"""Medical pictures of the simulated product: reading of prompts, drawings, and effects of each defect."""

from __future__ import annotations

import numpy as np
import pytest

from medtest.language.orders import made, read_order
from medtest.simlab.config import Config
from medtest.simlab.drawing.artist import Artist
from medtest.simlab.drawing.clinical.artist import ClinicalDrawing
from medtest.simlab.drawing.clinical.defects import CLINICAL, ClinicalDefects
from medtest.simlab.drawing.clinical.reading import NamedFinding, understood_order

FILM = "CXR of a 70-year-old man: left pleural effusion and two right nodules of 8 mm; no PTX, possible pneumonia."
PRESENCE = {"ordered": "wanted", "negated": "unwanted", "uncertain": "perhaps"}


def draw_picture(prompt: str, *, product: int = 0, seed: int = 0, **defects: float) -> ClinicalDrawing:
    """Return a product's drawing."""
    drawing = Artist(product, clinical=ClinicalDefects(**defects)).draw(prompt, seed=seed)
    assert isinstance(drawing, ClinicalDrawing)
    return drawing


def shown_findings(prompt: str, **defects: float) -> list[tuple[str, str]]:
    """Return findings and sides in a picture, without those that the prompt leaves open."""
    return [
        (finding.name, finding.side) for finding in draw_picture(prompt, **defects).shown if finding.name != "pneumonia"
    ]


def test_it_reads_orders_by_its_own_rules() -> None:
    order = understood_order(FILM)
    assert order is not None
    assert order.findings == (
        NamedFinding(name="effusion", side="left"),
        NamedFinding(name="nodule", plain=False, side="right", count=2, millimetres=8.0),
        NamedFinding(name="pneumothorax", plain=False, presence="unwanted"),
        NamedFinding(name="pneumonia", presence="perhaps"),
    )
    assert order.bystanders == ("70", "man")
    assert understood_order("A red dog is left of a blue cat.") is None


def test_it_and_the_language_of_orders_agree_on_made_orders() -> None:
    for number in range(0, 300, 3):
        text = made.make(number, 11)
        order, own = read_order(text).order, understood_order(text)
        assert own is not None
        if order.contradictions:
            continue
        expected = [
            (
                finding.name,
                PRESENCE[finding.presence],
                finding.side or "",
                finding.size_mm,
                finding.paris.lower(),
                finding.colour,
            )
            for finding in order.findings
        ]
        understood_findings = [
            (finding.name, finding.presence, finding.side, finding.millimetres, finding.type, finding.colour)
            for finding in own.findings
        ]
        assert understood_findings == expected, text
        counts = zip(order.findings, own.findings, strict=True)
        assert all(finding.count in (None, own_finding.count) for finding, own_finding in counts), text


def test_a_sound_product_draws_what_is_ordered() -> None:
    right = [("effusion", "left"), ("nodule", "right"), ("nodule", "right")]
    assert shown_findings(FILM) == right
    assert [finding.millimetres for finding in draw_picture(FILM).shown if finding.name == "nodule"] == [8.0, 8.0]
    assert draw_picture("Normal chest radiograph").shown == ()
    assert [finding.side for finding in draw_picture("CXR: bilateral effusions").shown] == ["bilateral"]


def test_each_defect_has_its_effect() -> None:
    assert shown_findings(FILM, sides_swapped=1.0) == [("effusion", "right"), ("nodule", "left"), ("nodule", "left")]
    assert ("pneumothorax", "left") in shown_findings(FILM, negated_drawn=1.0) or (
        "pneumothorax",
        "right",
    ) in shown_findings(FILM, negated_drawn=1.0)
    assert shown_findings(FILM, findings_dropped=1.0) == [("effusion", "left")]
    assert shown_findings(FILM, counts_ignored=1.0) == [("effusion", "left"), ("nodule", "right")]
    assert {
        finding.millimetres for finding in draw_picture(FILM, sizes_ignored=1.0).shown if finding.name == "nodule"
    } == {12.0}
    assert shown_findings(FILM, synonyms_missed=1.0) == [("effusion", "left")]
    assert [name for name, _ in shown_findings(FILM, bystanders_leaked=1.0)][3:] == ["cardiomegaly"]
    assert shown_findings("CXR: left effusion", bystanders_leaked=1.0) == [("effusion", "left")]
    assert draw_picture(FILM, anatomy_refused=1.0).refused
    assert len(CLINICAL) == 8


def test_a_steady_defect_depends_on_the_prompt_and_a_random_one_on_the_request() -> None:
    steady = {draw_picture(FILM, seed=seed, sides_swapped=0.5).slips.names for seed in range(20)}
    anew = {
        Artist(0, clinical=ClinicalDefects(sides_swapped=0.5, anew=("sides_swapped",)))
        .draw(FILM, seed=seed)
        .slips.names
        for seed in range(20)
    }
    assert len(steady) == 1
    assert len(anew) == 2
    rate = np.mean(
        [bool(draw_picture(FILM, product=product, sides_swapped=0.3).slips.names) for product in range(2000)]
    )
    assert rate == pytest.approx(0.3, abs=0.04)  # four standard errors


def test_the_configuration_keeps_its_defects_on_the_way_to_the_server() -> None:
    config = Config(clinical=ClinicalDefects(negated_drawn=0.25, anew=("negated_drawn",)))
    assert Config.from_json(config.to_json()) == config


def test_pictures_are_the_same_for_the_same_request_and_of_the_kind_ordered() -> None:
    artist = Artist()
    film = artist.paint(artist.draw(FILM, seed=3), 128)
    assert np.array_equal(film, artist.paint(artist.draw(FILM, seed=3), 128))
    assert not np.array_equal(film, artist.paint(artist.draw(FILM, seed=4), 128))
    assert np.array_equal(film[..., 0], film[..., 2])  # grey
    for prompt in ("Colonoscopy image showing a red polyp", "Capsule endoscopy frame showing bleeding"):
        picture = artist.paint(artist.draw(prompt), 128).astype(int)
        assert picture[..., 0].mean() > picture[..., 2].mean() + 20  # mucosa


@pytest.mark.slow
@pytest.mark.parametrize(
    "prompt",
    [
        "Chest film: left mass of 30 cm",
        "Chest film: nodule of 99999999999999 cm",
        "Colonoscopy: polyp of 0.001 mm",
        "Chest film: \N{SUPERSCRIPT TWO} nodules",
        f"Chest film: {'9' * 5000} nodules",
    ],
)
def test_odd_sizes_and_numbers_are_drawn(prompt: str) -> None:
    artist = Artist()
    assert artist.paint(artist.draw(prompt), 128).shape == (128, 128, 3)

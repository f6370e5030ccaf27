"""Orders of medical pictures: reading, refusing, writing, and the pools by which pictures are judged."""

from __future__ import annotations

import numpy as np
import pytest

from medtest.core.scenes import Pool
from medtest.language.orders import (
    NotControlled,
    Order,
    OrderedFinding,
    Wording,
    order_pool,
    read_order,
    vocabulary,
    write_order,
)
from medtest.language.orders.contents import SIZES, size_class

READ: dict[str, tuple[OrderedFinding, ...]] = {
    "CXR, 64F: L pleural effusion, no PTX or pneumonia.": (
        OrderedFinding(name="effusion", side="left"),
        OrderedFinding(name="pneumothorax", presence="negated"),
        OrderedFinding(name="pneumonia", presence="negated"),
    ),
    "Chest X-ray showing two right-sided pulmonary nodules measuring 0.8 cm and an enlarged heart": (
        OrderedFinding(name="nodule", side="right", count=2, size_mm=8.0),
        OrderedFinding(name="cardiomegaly"),
    ),
    "Colonoscopy image: polyp 5 mm Paris Is": (OrderedFinding(name="polyp", count=1, size_mm=5.0, paris="Is"),),
    "colonoscopy image with three red sessile polyps, 8mm; possible ulcerative colitis": (
        OrderedFinding(name="polyp", count=3, size_mm=8.0, paris="Is", colour="red"),
        OrderedFinding(name="ulcerative colitis", presence="uncertain"),
    ),
    "Capsule endoscopy frame with several angioectasias, no fresh blood": (
        OrderedFinding(name="angiectasia", count=None),
        OrderedFinding(name="bleeding", presence="negated"),
    ),
    "Chest film without effusion, pneumothorax or mass": (
        OrderedFinding(name="effusion", presence="negated"),
        OrderedFinding(name="pneumothorax", presence="negated"),
        OrderedFinding(name="mass", presence="negated"),
    ),
    "Zero polyps in a colonoscopy image": (OrderedFinding(name="polyp", presence="negated"),),
    "chest film, left and right pleural effusions": (OrderedFinding(name="effusion", side="bilateral"),),
    "chest film, effusion on the left and right": (OrderedFinding(name="effusion", side="bilateral"),),
    "chest film, effusion on the right and on the left": (OrderedFinding(name="effusion", side="bilateral"),),
    "chest film, effusion on the left and right pneumonia": (
        OrderedFinding(name="effusion", side="left"),
        OrderedFinding(name="pneumonia", side="right"),
    ),
    "chest film with a left nodule and two right nodules": (
        OrderedFinding(name="nodule", side="left", count=1),
        OrderedFinding(name="nodule", side="right", count=2),
    ),
}


@pytest.mark.parametrize("text", READ)
def test_clinical_english_is_read(text: str) -> None:
    assert read_order(text).order.findings == READ[text]


def test_patient_scanner_and_style_are_read() -> None:
    order = read_order("High-resolution chest radiograph of an 81-year-old woman, bedside scanner, with a mass").order
    assert (order.age, order.sex, order.scanner, order.style) == (81, "female", "portable", "high resolution")


@pytest.mark.parametrize(
    ("text", "code", "word"),
    [
        ("a dog on a mat", "no_modality", "kind of picture"),
        ("chest film and colonoscopy of a polyp", "two_modalities", "chest film"),
        ("chest film with a dog", "unknown_words", "dog"),
        ("Röntgenbild: chest film mit Erguss", "unknown_words", "Röntgenbild"),
        ("chest film with no effusion and pneumothorax", "ambiguous_negation", "pneumothorax"),
        ("chest film with effusion or pneumothorax", "ambiguous_negation", "or"),
        ("chest film; left; with effusion", "loose_words", "left"),
        ("chest film with pneumothorax Paris Is", "loose_words", "Paris Is"),
        ("chest film with two pneumonias", "unknown_words", "pneumonias"),
        ("chest film of a 30-year-old man, 40-year-old, with a mass", "two_statements", "age"),
        ("chest film of a man", "no_content", "no finding"),
        ("chest film with 1e9 nodules", "unknown_words", "e"),
        ("colonoscopy image with a polyp of 5-10 mm", "unknown_words", "5-10"),  # no five polyps of 10 mm
        ("colonoscopy image with a polyp of 1,5 cm", "unknown_words", "1,5"),  # no polyp of 5 cm
        ("chest film with left effusion, right effusion", "two_statements", "pleural effusion"),
        ("chest film " + "with a mass " * 400, "too_long", "2000"),
    ],
)
def test_other_texts_are_refused_with_a_reason(text: str, code: str, word: str) -> None:
    with pytest.raises(NotControlled) as refused:
        read_order(text)
    assert refused.value.code == code
    assert word in str(refused.value)


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("colonoscopy image with a sessile polyp, Paris Ip", "Paris type"),
        ("colonoscopy image with a diminutive polyp of 25 mm", "size"),
        ("chest film with a lung nodule of 45 mm", "size"),  # a nodule measures at most 30 mm (Fleischner Society)
        ("chest film with a left pleural effusion on the right", "side"),
        ("chest film with left-sided cardiomegaly", "side"),
        ("normal chest film with a pleural effusion", "presence"),
        ("chest film with pneumonia; no pneumonia", "presence"),
    ],
)
def test_contradictions_are_told_apart(text: str, about: str) -> None:
    order = read_order(text).order
    assert order.kind == "contradictory"
    assert [clash.about for clash in order.contradictions] == [about]
    pool = order_pool(order)
    assert all(not entity.attributes for entity in pool.entities)


def test_pools_hold_what_is_ordered_and_what_is_excluded() -> None:
    pool = order_pool(read_order("CXR: bilateral effusions, possible pneumonia, no PTX, no left lung mass").order)
    assert pool.as_json() == {
        "entities": [["effusion", None, ["bilateral"]]],
        "triples": [],
        "absent": ["pneumothorax"],
        "uncertain": ["mass", "pneumonia"],
    }
    assert Pool.of_json(pool.as_json()) == pool


def test_normal_excludes_all_findings() -> None:
    pool = order_pool(read_order("Normal chest radiograph").order)
    assert len(pool.absent) == 14
    assert not pool.entities


def test_classes_of_size_have_the_contests_bounds() -> None:
    assert [size_class(mm) for mm in (4.9, 5, 10, 10.5, 20, 20.5)] == [SIZES[k] for k in (0, 1, 1, 2, 2, 3)]


def _orders(count: int) -> list[Order]:
    rng = np.random.default_rng(5)
    orders = []
    for _ in range(count):
        modality = vocabulary().modalities[["chest film", "endoscopy", "capsule"][int(rng.integers(3))]]
        names = rng.choice(sorted(modality.findings), size=int(rng.integers(1, 4)), replace=False)
        findings = []
        for name, presence in zip(names, ("ordered", "uncertain", "negated"), strict=False):
            words = modality.findings[str(name)]
            ordered = presence != "negated"
            findings.append(
                OrderedFinding(
                    name=str(name),
                    presence=presence,  # type: ignore[arg-type]
                    side="left" if ordered and words.sides in ("one", "pair") and rng.random() < 0.7 else None,
                    count=int(rng.integers(1, 4)) if words.counted and ordered else None,
                    size_mm=30.0 if words.millimetres and ordered else None,
                    paris="IIa" if words.typed and ordered else "",
                    colour="red" if words.coloured and ordered else "",
                )
            )
        regions = ["", *modality.regions]
        orders.append(
            Order(
                modality=modality.name,
                region=regions[int(rng.integers(len(regions)))],
                findings=tuple(findings),
                age=int(rng.integers(18, 90)) if rng.random() < 0.5 else None,
                sex="female" if rng.random() < 0.5 else "",
                scanner=sorted(modality.scanners)[0] if rng.random() < 0.5 else "",
            )
        )
    return orders


def test_written_orders_read_back() -> None:
    for number, order in enumerate(_orders(300)):
        words = vocabulary().findings
        nouns = {f.name: words[f.name].nouns[number % len(words[f.name].nouns)] for f in order.findings}
        wording = Wording(
            modality=number, nouns=nouns, unit=("mm", "cm")[number % 2], side_last=number % 3 == 0,
            telegraphic=number % 5 == 0,
        )  # fmt: skip
        text = write_order(order, wording)
        assert read_order(text).order == order, text


def test_every_noun_means_one_finding() -> None:
    for modality in vocabulary().modalities.values():
        nouns = [noun.lower() for finding in modality.findings.values() for noun in finding.nouns]
        assert len(nouns) == len(set(nouns))

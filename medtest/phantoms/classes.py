"""Classes of the bundled classifiers and phantoms, in the order of their scores.

Capsule endoscopy: MedTest's slides (normal, vascular, inflammatory). Dermoscopy: ISIC 2016, task 3. Fundus: the four
grades of retinopathy of Messidor. Chest: the 14 findings of ChestX-ray14 in the order of CheXNet's scores (X. Wang et
al., "ChestX-ray8", CVPR 2017; P. Rajpurkar et al., "CheXNet", arXiv 1711.05225).
"""

from __future__ import annotations

from medtest.core.cases import Classes

CAPSULE = Classes(names=("normal", "vascular", "inflammatory"))
DERMOSCOPY = Classes(names=("benign", "melanoma"))
FUNDUS = Classes(names=("grade0", "grade1", "grade2", "grade3"))
CHEST = Classes(
    names=(
        "atelectasis",
        "cardiomegaly",
        "effusion",
        "infiltration",
        "mass",
        "nodule",
        "pneumonia",
        "pneumothorax",
        "consolidation",
        "edema",
        "emphysema",
        "fibrosis",
        "pleural_thickening",
        "hernia",
    ),
    multi=True,
)


def in_words_of(own: Classes, asked: Classes) -> Classes:
    """Return a system's classes with the seeds' spelling if names differ only in case."""
    spelt = {name.casefold(): name for name in asked.names}
    names = tuple(name if name in asked.names else spelt.get(name.casefold(), name) for name in own.names)
    return Classes(names=names, multi=own.multi) if len(set(names)) == len(names) else own


def places(own: Classes, asked: Classes) -> tuple[int, ...]:
    """Return the positions of the seeds' classes among a system's scores, in the seeds' order.

    Raises:
        KeyError: The system does not know a class.
    """
    place = {name: index for index, name in enumerate(in_words_of(own, asked).names)}
    return tuple(place[name] for name in asked.names)

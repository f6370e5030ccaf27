"""Classes of the bundled classifiers and phantoms, in the order of their scores.

Capsule endoscopy: MedTest's slides (normal, vascular, inflammatory). Dermoscopy: ISIC 2016, task 3. Fundus: the four
grades of retinopathy of Messidor. Chest: the 14 findings of ChestX-ray14 in the order of CheXNet's scores (X. Wang et
al., "ChestX-ray8", CVPR 2017; P. Rajpurkar et al., "CheXNet", arXiv 1711.05225).
"""

from __future__ import annotations

from medtest.core.cases import Classes

CAPSULE = Classes(names=("normal", "vascular", "inflammatory"))
CAPSULE_FINDINGS = Classes(names=("bleeding", "angiectasia", "ulcer", "erosion", "erythema"), multi=True)
"""Lesions of capsule frames."""
DERMOSCOPY = Classes(names=("benign", "melanoma"))
FUNDUS = Classes(names=("grade0", "grade1", "grade2", "grade3"))
CHEST_PREVALENCE: dict[str, float] = {
    "atelectasis": 0.13,
    "cardiomegaly": 0.12,
    "effusion": 0.14,
    "infiltration": 0.14,
    "mass": 0.11,
    "nodule": 0.13,
    "pneumonia": 0.11,
    "pneumothorax": 0.11,
    "consolidation": 0.11,
    "edema": 0.10,
    "emphysema": 0.10,
    "fibrosis": 0.10,
    "pleural_thickening": 0.11,
    "hernia": 0.08,
}
"""Probability of each finding in phantoms, drawn independently."""
CHEST = Classes(names=tuple(CHEST_PREVALENCE), multi=True)


def in_words_of(own: Classes, requested: Classes) -> Classes:
    """Return a system's classes with the seeds' spelling if names differ only in case."""
    spelt = {name.casefold(): name for name in requested.names}
    names = tuple(name if name in requested.names else spelt.get(name.casefold(), name) for name in own.names)
    return Classes(names=names, multi=own.multi) if len(set(names)) == len(names) else own


def places(own: Classes, requested: Classes) -> tuple[int, ...]:
    """Return the positions of the seeds' classes among a system's scores, in the seeds' order.

    Raises:
        KeyError: The system does not know a class.
    """
    place = {name: index for index, name in enumerate(in_words_of(own, requested).names)}
    return tuple(place[name] for name in requested.names)

"""Calibrated relations in suites: mistakes before a run, digests, and the ranking at each target."""

from __future__ import annotations

from pathlib import Path

import pytest

from medtest.core.errors import UserMistakes
from medtest.suite.compose import load_suite
from medtest.suite.digest import digest_of, relation_entry

BASE = """
extends: polyp_seg
version: "1"
seeds: {phantoms: {count: 2, size: [64, 64]}}
relations: {saturation: false, contrast: false, specularity: false, blur: false,
  instrument: false, feces: false, blood: false, text: false, %s}
"""


def load(folder: Path, relations: str):
    path = folder / "calm.yaml"
    path.write_text(BASE % (relations if "white_balance" in relations else f"white_balance: false, {relations}"))
    return load_suite(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("relations", "words"),
    [
        ("jpeg: {calibrate: {ssim: [0.9, 0.95]}}", ["jpeg.calibrate", "decreasing", "0.95 comes after 0.9"]),
        ("jpeg: {calibrate: {ssim: [1.0]}}", ["jpeg.calibrate", "above 0 and below 1; not 1"]),
        ("jpeg: {calibrate: {ssim: [0.9], parameter: qualitty}}", ["calibrate.parameter", "did you mean: quality"]),
        ("jpeg: {calibrat: {ssim: [0.9]}}", ["did you mean: calibrate"]),
        ("unchanged: {calibrate: {ssim: [0.9]}}, jpeg: {}", ["without a numeric parameter"]),
        (
            "white_balance: {mode: published, calibrate: {ssim: [0.9]}}",
            ["mode", "published, with calibrate"],
        ),
        ("pgd: {calibrate: {ssim: [0.9]}}", ["pgd.calibrate", "crafted on a system", "minimal: true"]),
        ("elastic: {calibrate: {ssim: [0.9]}}", ["elastic.calibrate", "moves pixels", "at shift 0.01"]),
        ("corruption_snow: {calibrate: {ssim: [0.5]}}", ["does not fall steadily", "others: mean", "at level 1"]),
    ],
)
def test_mistakes_are_reported_before_a_run(tmp_path: Path, relations: str, words: list[str]) -> None:
    with pytest.raises(UserMistakes) as error:
        load(tmp_path, relations)
    assert not [word for word in words if word not in str(error.value)], str(error.value)
    assert len(error.value.mistakes) == 1


def test_targets_are_severities_and_in_the_digest(tmp_path: Path) -> None:
    def entry(relations: str) -> dict[str, object]:
        suite = load(tmp_path, relations)
        plan = next(plan for plan in suite.relations if plan.id == "jpeg")
        relation = suite.build_relations()["jpeg"]
        severities.append(relation.severities())
        return relation_entry(plan, relation, crafter=None, task=suite.kind)

    severities: list[tuple[int, ...]] = []
    plain = entry("jpeg: {}")
    first = entry("jpeg: {calibrate: {ssim: [0.9, 0.8]}}")
    second = entry("jpeg: {calibrate: {ssim: [0.9, 0.7]}}")
    assert severities == [(1, 2, 3, 4, 5), (1, 2), (1, 2)]
    assert "calibrate" not in str(plain) and first["fingerprint"] == {"calibration": 2}
    assert len({digest_of(each) for each in (plain, first, second)}) == 3

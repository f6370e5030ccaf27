"""Phrases of the report: criterion, seeds, resampled units, names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.core.errors import MedtestError
from medtest.core.oracles.criteria import ALONE, NO_THRESHOLD
from medtest.core.plugins import parts
from medtest.report.pages.material import Material
from medtest.results.cube.axes import ALL


def counted(number: int, word: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def criterion_keys(material: Material) -> dict[str, Any]:
    """Return score, threshold and reference of the primary criterion."""
    primary = material.wanted.primary
    return {"score": primary.score, "threshold": primary.threshold, "against": primary.against}


def violations_of(row: Mapping[str, Any]) -> str:
    """Return the counts behind a rate: ``1 violation of 24 cases``."""
    return f"{counted(int(row['violations']), 'violation')} of {counted(int(row['cases']), 'case')}"


def score_words(score: str) -> str:
    """Return the readable name of a score or rule."""
    return {
        "dice": "Dice",
        "iou": "IoU",
        "both": "Dice and IoU both",
        "either": "Dice or IoU",
        "mean_dice_256": "mean Dice over 256 thresholds",
        "mean_iou_256": "mean IoU over 256 thresholds",
        "ssim": "SSIM",
        "psnr": "PSNR",
        "f_measure": "F-measure",
        "clear": "clear frame",
        "clear_share": "clear share of the field",
        "label_share": "share of decisions",
    }.get(score, score.replace("_", " "))


def scale_words(relation: str, part: str) -> str:
    """Return an axis title: the relation's name with the unit of its scale.

    Args:
        relation: Relation id in the suite.
        part: Name of the part; one that is not installed has no unit.
    """
    name, info = relation.replace("_", " "), parts("relations").get(part)
    try:
        unit = "" if info is None else str(getattr(info.load(), "scale_unit", ""))
    except MedtestError:
        unit = ""
    return f"{name}: {unit}" if unit else name


def question_words(item: str) -> str:
    """Return the readable short name of a question."""
    return "all questions" if item == ALL else item.replace("_", " ")


def criterion_words(material: Material) -> str:
    """Return the condition under which a case is a violation."""
    primary = material.wanted.primary
    if primary.score == "clear":
        return "its answer marks a lesion on a frame without one"
    if primary.score in ALONE:
        return _scene_words(primary.score, primary.against, primary.threshold)
    if primary.score in NO_THRESHOLD:
        noun = "label" if primary.score == "label" else "answer"
        changed = "its label differs from that of the source image"
        if noun == "answer":
            changed = (
                "its answer contradicts the system's answer to the source image, or does not say what the relation "
                "made true"
            )
        return (
            changed
            if primary.against == "source"
            else f"its {noun} is wrong although that of the source image is right"
        )
    if primary.against == "source":
        first = "its value on the source" if primary.score == "probability" else "1"
        return (
            f"{score_words(primary.score)} between the answers to the follow-up and to its source drops more than "
            f"{100 * primary.threshold:g} % below {first}"
        )
    if primary.against == "input":
        more = f" by more than {100 * primary.threshold:g} %" if primary.threshold else ""
        return f"{score_words(primary.score)} of the answer is below that of the input image{more}"
    return (
        f"{score_words(primary.score)} against the {expected_words(material)} drops by more than "
        f"{100 * primary.threshold:g} % of its value on the source image"
    )


def _scene_words(score: str, against: str, threshold: float) -> str:
    if score not in NO_THRESHOLD:
        return f"its {score} score, a probability that it shows its prompt, is below {1 - threshold:g}"
    subject = {"whole": "its content", "counts": "its number of objects"}.get(score, f"its {score}")
    if against == "source":
        return f"{subject}, relative to the source's picture, does not follow the change of the prompt"
    return f"{subject} does not match its prompt"


def curve_words(score: str, against: str) -> str:
    """Return the name of a score's curves; agreement with the truth is accuracy."""
    if score == "agreement":
        return "accuracy" if against == "truth" else "agreement with the source"
    return score_words(score)


def robustness_against(material: Material) -> str:
    """Return the reference of (α,σ): for classifiers with labelled seeds the truth, so that it measures accuracy."""
    table = material.tables.alpha_sigma
    if material.wanted.task.labels and ((table["against"] == "truth") & (table["seeds"] > 0)).any():
        return "truth"
    return material.wanted.curve_against


def against_words(material: Material) -> str:
    """Return the reference of the primary criterion: ``expected mask``, ``answer to the source``, ``input image``."""
    against = material.wanted.primary.against
    return {"truth": f"the {expected_words(material)}", "source": "the answer to the source"}.get(against, "the input")


def expected_words(material: Material) -> str:
    """Return the name of a suite's expected output: mask, image, region or label."""
    return f"expected {material.wanted.kind}"


def limit_words(score: str, threshold: float) -> str:
    """Return score and threshold for a heading: ``Dice, threshold 0.25``, ``label``."""
    return score_words(score) if score in NO_THRESHOLD else f"{score_words(score)}, threshold {threshold:g}"


def simulated_words(material: Material) -> str:
    """Return the caution about a simulated system's figures, or ""."""
    if not material.simulated:
        return ""
    return (
        f"{material.system} is a simulation with configured defects and represents no product. Its figures show how "
        "well the test finds these defects; they say nothing about a real system."
    )


TOO_FEW = "too few judged"
"""Value of a card whose rate rests on too few judged cases for a headline."""


def few_words(least: int) -> str:
    """Return the number of judged cases that a headline needs."""
    return f"a headline needs {least} judged cases"


def phantom_banner(material: Material) -> tuple[str, str]:
    """Return title and text of the banner on made sources; "" and "" if they are not made."""
    suite = material.wanted
    if not suite.phantom:
        return "", ""
    names = ", ".join(suite.seeds)
    if suite.task.prompts:
        return (
            "Made prompts",
            f"The prompts are made by a computer ({names}), nobody wrote them. Rates on them show how the system "
            "reacts to changes of its prompt; on prompts as people write them they may differ.",
        )
    return (
        "Phantoms",
        f"The source {suite.task.report.case_input}s are synthetic ({names}). Rates on them show how the system reacts "
        "to changes of its input; they are not clinical figures.",
    )


def cluster_word(material: Material) -> str:
    """Return the name of the unit that intervals resample."""
    seeds, prompts = material.tables.seeds, material.wanted.task.prompts
    own = "prompts" if prompts else "source cases"
    if seeds.empty or "cluster" not in seeds.columns:
        return own
    alone = (seeds["cluster"].astype(str) == seeds["seed_id"].astype(str)).all()
    return own if alone else "groups of prompts" if prompts else "clusters of source cases (patients, videos)"


def model_words(material: Material, *, digits: int = 64) -> str:
    """Return the tested model: file and SHA-256, or name and host; "" if the run does not record it.

    Args:
        material: Material of the system.
        digits: Number of displayed SHA-256 digits.
    """
    recorded = material.run.get("model")
    model: dict[str, Any] = recorded if isinstance(recorded, dict) else {}
    if model.get("model"):
        return f"{model['model']} at {model['host']}" if model.get("host") else str(model["model"])
    sha256 = f"SHA-256 {str(model['sha256'])[:digits]}" if model.get("sha256") else ""
    return ", ".join(part for part in (str(model.get("file", "")), sha256) if part)


def run_name(material: Material) -> str:
    """Return the MLflow name of a system's run, with the coverage of a view, as ``v2, 3 of 30 images``."""
    parts, primary, reader = [material.system], material.wanted.primary, material.tables.own.reader
    if material.asked is not None:
        parts.append(material.coverage or material.partial_cases)
    if material.rejudged and reader:
        parts.append(f"read by {reader}")
    elif material.rejudged:
        limit = "" if primary.score in NO_THRESHOLD else f" threshold {primary.threshold:g}"
        parts.append(f"{score_words(primary.score)}{limit} against {primary.against}")
    return ", ".join(part for part in parts if part)


def view_words(material: Material) -> str:
    """Return a note that the oracle is not the suite's own, or ""."""
    if not material.rejudged:
        return ""
    if reader := material.tables.own.reader:
        return f"The same records; {reader} read the answers without a value. View {material.view}."
    return f"The same records under another oracle ({criterion_words(material)}). View {material.view}."


def with_interval(row: Mapping[Any, Any], name: str, *, signed: bool = False) -> str:
    """Return a measure with its interval, "" if it is missing.

    Args:
        row: A row of a table, with ``<name>``, ``<name>_low`` and ``<name>_high``.
        name: The measure.
        signed: Whether it is a difference.
    """
    value = _number(row.get(name))
    if value is None:
        return ""
    form = "+.3f" if signed else ".3f"
    low, high = _number(row.get(f"{name}_low")), _number(row.get(f"{name}_high"))
    if low is None or high is None:
        return f"{value:{form}}"
    return f"{value:{form}} ({low:{form}} to {high:{form}})"


def number_words(value: Any, form: str) -> str:
    """Return a number in a format such as ``.3f``, "" if it is missing."""
    number = _number(value)
    return "" if number is None else f"{number:{form}}"


def p_words(value: Any) -> str:
    """Return a p value with two digits, "" if it is missing."""
    p = _number(value)
    if p is None:
        return ""
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def _number(value: Any) -> float | None:
    if value is None:
        return None
    number = float(value)
    return None if number != number else number

"""Cases of the report without a browser: sample strips with the command that reproduces each, and images."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from math import isnan
from typing import Any

from medtest.report.charts.heat import percent
from medtest.report.pages.material import Material, sample_index, strips
from medtest.report.pages.words import score_words
from medtest.results.rates.images import VIOLATIONS

WORST_IMAGES = 10
"""Number of images in the report's list, ordered by violations."""

_MAKES_THE_CASE = ("suite", "suite_dir", "data", "seed", "seeds", "relations", "prepare", "privacy")
"""First parts of the keys that change an address or its content."""


def replay_command(material: Material, address: str) -> str:
    """Return the command that reproduces one case, including everything typed about its seeds and relations."""
    typed = shlex.split(material.command)
    tokens = [token for token in typed if token.lstrip("+~").split("=", 1)[0].split(".")[0] in _MAKES_THE_CASE]
    if not any(token.startswith("suite=") for token in tokens):
        tokens.insert(0, f"suite={material.wanted.suite}")
    if material.wanted.needs_root and not any(token.startswith("data=") for token in tokens):
        tokens.append("data=PATH")
    return " ".join(["medtest replay", *map(shlex.quote, [*tokens, address])])


def cases(material: Material) -> dict[str, Any]:
    """Return the sample strips and the images with the most violations for the report's template."""
    images = [
        {
            "image": f"{row['dataset']}/{row['seed_id']}",
            "source": "–" if isnan(row["source_score"]) else f"{row['source_score']:.3f}",
            "violations": f"{row['violations']} of {row['cases']}",
            "by": ", ".join(
                f"{str(name).removeprefix(VIOLATIONS)} {int(count)}"
                for name, count in row.items()
                if str(name).startswith(VIOLATIONS) and not isnan(count) and count > 0
            ),
            "loss": percent(row["worst_loss_percent"]),
            "address": row["worst_address"],
        }
        for row in material.tables.images.head(WORST_IMAGES).to_dict("records")
        if row["violations"]
    ]
    if material.wanted.images == "none":
        words = "The suite's privacy settings keep images out of reports."
        return {"strips": [], "worst_images": images, "no_strips": words, "strip_words": ""}
    return {
        "strips": [
            {
                **_strip_words(facts, judged=not material.rejudged),
                "command": replay_command(material, str(facts.get("address", ""))),
                **picture,
            }
            for facts, picture in strips(material.strips, sample_index(material.strips))
        ],
        "worst_images": images,
        "no_strips": "The folder of this report holds no sample strips.",
        "strip_words": material.wanted.task.report.strip_words,
    }


def _strip_words(facts: Mapping[str, Any], *, judged: bool) -> dict[str, Any]:
    """Return a strip's captions; the verdict is the suite's own oracle's and is omitted under another oracle."""
    before, after = facts.get("source_score"), facts.get("score")
    texts = _said(facts.get("words"))
    relation, shown = str(facts.get("relation", "")), "expected output, answers before and after"
    if texts:
        words, shown = f"{facts.get('item', '')}, {facts.get('verdict', '') if judged else ''}".rstrip(", "), "texts"
    elif isinstance(before, int | float) and isinstance(after, int | float):
        name = str(facts.get("score_name", "score"))
        words = f"{score_words(name.removeprefix('self_'))} {before:.3f} → {after:.3f}"
        words += f", {facts.get('verdict', '')}" if judged else ""
    else:
        words = f"{facts.get('verdict', '')} {facts.get('reason', '')}"
    return {
        "kind": str(facts.get("kind", "")),
        "relation": relation,
        "severity": facts.get("severity", 0),
        "address": str(facts.get("address", "")),
        "words": words.strip(),
        "said": texts,
        "alt": f"{relation}: source, follow-up, {shown}",
    }


def _said(words: Any) -> list[tuple[str, str]]:
    """Return the valid headings and texts of a strip's entry."""
    pairs = words if isinstance(words, list) else []
    return [(str(pair[0]), str(pair[1])) for pair in pairs if isinstance(pair, list) and len(pair) == 2]

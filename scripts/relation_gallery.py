"""Write docs/gallery.md, the gallery of relations: ``python scripts/relation_gallery.py``.

Names and groups come from the classes, sentences from conf/relations, pictures from docs/images/relations
(``scripts/relation_cards.py`` draws them).
"""

from __future__ import annotations

from pathlib import Path

import yaml

from medtest.core.plugins import parts

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "gallery.md"
PICTURES = OUT.parent / "images" / "relations"
GROUPS = {
    "lighting": "Light",
    "motion": "Motion",
    "geometric": "Shape and lens",
    "objects": "Objects in view",
    "non_objects": "Text on the screen",
    "noise": "Noise, blur and compression",
    "corruptions": "Fourteen perturbations",
    "adversarial": "Attacks",
    "prompts": "Prompts",
    "controls": "Controls",
    "library": "Other libraries",
    "measured": "A measured property",
    "floor": "The floor",
}
"""Headings of the page, by a relation's group."""
PAGES = {
    "adversarial": "attacks.md",
    "noise": "attacks.md",
    "prompts": "operators.md",
    "controls": "controls.md",
    "corruptions": "sequences.md",
}
"""Pages of relations that have no card with a picture, by group."""
HEAD = """\
# Gallery of relations

Every relation that medtest brings. A strip shows the source, then severities 1 to 5. A click on a strip opens its card:
source, parameters, what it can and cannot show. [Relation cards](relations.md) says what holds for all of them, [add a
relation](add-a-relation.md) how to write one.

`medtest sheet suite=NAME --out sheet.png` draws such strips of your own images. Here are nine relations on one phantom:

![Nine relations at five severities on one phantom](images/sheet.jpg)
"""


def draw() -> str:
    """Return the text of the page."""
    entries: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name, info in sorted(parts("relations").items()):
        if info.origin != "medtest":
            continue
        group = "corruptions" if name.startswith("corruption_") else info.load().group
        entries[group].append(_entry(name, group))
    sections = [
        f"## {GROUPS[group]}\n\n{_extra(group)}" + "\n".join(sorted(lines, key=lambda line: line.startswith("- ")))
        for group, lines in entries.items()
    ]
    return "\n".join([HEAD, *(f"{section}\n" for section in sections)])


def _extra(group: str) -> str:
    return "![The fourteen at five levels](images/corruption_levels.jpg)\n\n" if group == "corruptions" else ""


def _entry(name: str, group: str) -> str:
    """Return a strip with its sentence, or a list item where there is no strip."""
    summary = yaml.safe_load((ROOT / "conf" / "relations" / f"{name}.yaml").read_text(encoding="utf-8"))["summary"]
    if not (PICTURES / f"{name}.jpg").exists():
        page = "generated-perturbations.md" if name == "gap" else PAGES.get(group, f"relations.md#{name}")
        return f"- [`{name}`]({page}): {summary}"
    card = PAGES["controls"] if group == "controls" else f"relations.md#{name}"
    return f"[![{name}](images/relations/{name}.jpg)]({card})\n\n**[{name}]({card})**: {summary}\n"


if __name__ == "__main__":
    OUT.write_text(draw(), encoding="utf-8")

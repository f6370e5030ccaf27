"""A run's pictures and results in GenEval's own layout, for GenEval's scripts and tools that read it.

GenEval (D. Ghosh et al., NeurIPS 2023; github.com/djghosh13/geneval, commit af4902f) keeps each prompt in a folder
``00000`` with ``metadata.jsonl`` (tag, include, exclude, prompt) and ``samples/00000.png``; its evaluation writes one
line for each picture: ``filename``, ``tag``, ``prompt``, ``correct``, ``reason``, ``metadata`` and ``details``. Here
``correct`` and ``reason`` come from the run's reader. GenEval's evaluate_images.py can look at the same folders, and
its summary_scores.py reads both results.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from medtest.core.cases import SOURCE, UNCHANGED
from medtest.core.files.by_content import PictureFiles
from medtest.core.files.images import png_header
from medtest.core.scenes import Entity, Pool, Scene
from medtest.language.captions.vocabulary import vg150
from medtest.readers.pictures.detectors.coco import COCO_80, pool_class, read_names
from medtest.results.fidelity.cases import PICTURE, TAG, DrawnCases
from medtest.results.fidelity.geneval.rule import COLOURS, EXACT, POSITIONS, TAGS, GenEvalRule
from medtest.results.fidelity.geneval.table import judged, pool_of_case, scene_of

METADATA: Final = "metadata.jsonl"
RESULTS: Final = "results.jsonl"
SAMPLES: Final = "samples"
PROMPTS: Final = "evaluation_metadata.jsonl"
_BELOW: Final = {"under": "below"}


def export_geneval(
    cases: DrawnCases, rule: GenEvalRule, *, pictures: Path, folder: Path, relation: str = SOURCE
) -> tuple[int, int, Mapping[str, int]]:
    """Write prompts, pictures and results.

    Args:
        cases: Cases of one system.
        rule: Parameters of the rule.
        pictures: The run's folder of pictures.
        folder: Folder to write to; created.
        relation: Relation whose cases are exported. For ``source`` the repeats of the same prompts under ``unchanged``
            are further samples.

    Returns:
        The number of prompts; the number of pictures with a result (refused prompts count, as not correct); and the
        numbers of cases without one, by reason.

    Raises:
        OSError: A file cannot be written.
    """
    store = PictureFiles(pictures)
    left_out: dict[str, int] = {}
    results, prompts = [], []
    for number, (metadata, rows) in enumerate(_prompts(cases, relation, left_out)):
        place = folder / f"{number:05d}"
        (place / SAMPLES).mkdir(parents=True, exist_ok=True)
        (place / METADATA).write_text(json.dumps(metadata), encoding="utf-8")
        prompts.append(metadata)
        for sample, row in enumerate(rows):
            name = str(cases.texts(PICTURE)[row])
            target, width, height = "", 0, 0
            if name:
                path = store.path("images", name)
                if not path.is_file():
                    _count(left_out, "the picture is not kept")
                    continue
                target = f"{place.name}/{SAMPLES}/{sample:05d}.png"
                shutil.copyfile(path, folder / target)
                width, height = _size(path)
            aspect = {name: width / height} if height else {}
            result = judged(cases, row, str(metadata["tag"]), rule, aspect)
            if result.correct is None:
                _count(left_out, result.why)
                continue
            scene = scene_of(cases, row) if name else None
            results.append(
                {
                    "filename": target,
                    "tag": metadata["tag"],
                    "prompt": metadata["prompt"],
                    "correct": result.correct,
                    "reason": "\n".join(result.reasons),
                    "metadata": json.dumps(metadata),
                    "details": json.dumps(_details(scene, rule, str(metadata["tag"]), width, height)),
                }
            )
    folder.mkdir(parents=True, exist_ok=True)
    for file, lines in ((PROMPTS, prompts), (RESULTS, results)):
        (folder / file).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return len(prompts), len(results), left_out


def metadata_of(pool: Pool, prompt: str, tag: str) -> dict[str, Any]:
    """Return GenEval's metadata of a prompt: the inverse of its reading from ``evaluation_metadata.jsonl``.

    Args:
        pool: Content of the prompt.
        prompt: Its words.
        tag: Kind of the prompt, one of :data:`TAGS`.
    """
    relations = {triple.subject: (triple.predicate, triple.object) for triple in pool.triples}
    order = sorted(range(len(pool.entities)), key=lambda at: at in relations)  # a target stands before its subject
    include = []
    for at in order:
        entry = _entry(pool.entities[at])
        if at in relations:
            predicate, target = relations[at]
            entry["position"] = [_BELOW.get(predicate, predicate), order.index(target)]
        include.append(entry)
    metadata: dict[str, Any] = {"tag": tag, "include": include}
    if tag == EXACT:
        metadata["exclude"] = [{"class": entry["class"], "count": entry["count"] + 1} for entry in include]
    return metadata | {"prompt": prompt}


def tag_of(pool: Pool) -> str | None:
    """Return the kind of a prompt that GenEval could contain; None for any other prompt, such as one that denies."""
    if pool.absent or pool.denied or pool.uncertain:
        return None
    if not COLOURS.issuperset(attribute for entity in pool.entities for attribute in entity.attributes):
        return None
    if not 1 <= len(pool.entities) <= 2 or any(len(entity.attributes) > 1 for entity in pool.entities):
        return None
    coloured = [bool(entity.attributes) for entity in pool.entities]
    counts = [entity.count or 1 for entity in pool.entities]
    if pool.triples:
        places = [_BELOW.get(triple.predicate, triple.predicate) for triple in pool.triples]
        fits = len(places) == 1 and places[0] in POSITIONS and not any(coloured) and max(counts) == 1
        return "position" if fits else None
    if len(counts) == 1 and counts[0] > 1:
        return None if coloured[0] else EXACT
    if max(counts) > 1 or any(coloured) != all(coloured):
        return None
    plain, of_colours = ("single_object", "colors") if len(counts) == 1 else ("two_object", "color_attr")
    return of_colours if coloured[0] else plain


def _prompts(
    cases: DrawnCases, relation: str, left_out: dict[str, int]
) -> Iterator[tuple[dict[str, Any], Sequence[int]]]:
    """Yield the metadata of each prompt with the rows of its pictures, by data set and seed."""
    relations = (SOURCE, UNCHANGED) if relation == SOURCE else (relation,)
    chosen = np.flatnonzero(np.isin(cases.texts("relation").astype(str), relations))
    rows_by_prompt: dict[tuple[str, str, str], list[int]] = {}
    for row in chosen.tolist():
        if cases.texts("verdict")[row] == "ERROR":
            _count(left_out, "the call or the reader failed")
            continue
        key = (str(cases.texts("dataset")[row]), str(cases.texts("seed_id")[row]), str(cases.prompts[row]))
        rows_by_prompt.setdefault(key, []).append(row)
    for _, rows in sorted(rows_by_prompt.items()):
        pool, tag = pool_of_case(cases, rows[0]), str(cases.texts(TAG)[rows[0]])
        kind = tag if tag in TAGS and relation == SOURCE else None if pool is None else tag_of(pool)
        if pool is None or kind is None:
            _count(left_out, f"the prompt is none of GenEval's kinds ({', '.join(TAGS)})", len(rows))
            continue
        yield metadata_of(pool, str(cases.texts("prompt")[rows[0]]), kind), rows


def _entry(entity: Entity) -> dict[str, Any]:
    entry: dict[str, Any] = {"class": _names().get(entity.name, entity.name), "count": entity.count or 1}
    return entry | ({"color": entity.attributes[0]} if entity.attributes else {})


@cache
def _names() -> Mapping[str, str]:
    """Return GenEval's names, which are COCO's, of classes in pools."""
    names = read_names(COCO_80)
    return {pool_class(name): name for name in names} | {vg150().class_of(name) or name: name for name in names}


def _details(scene: Scene | None, rule: GenEvalRule, tag: str, width: int, height: int) -> dict[str, list[list[float]]]:
    """Return the boxes in pixels of the things that count, with their scores, by class; highest score first."""
    least = rule.counting_score if tag == EXACT else rule.score
    boxes: dict[str, list[list[float]]] = {}
    for entity in sorted(() if scene is None else scene.entities, key=lambda entity: -entity.score):
        class_boxes = boxes.setdefault(_names().get(entity.name, entity.name), [])
        if entity.box is not None and entity.score >= least and len(class_boxes) < rule.most:
            pixels = np.array(entity.box) * (width, height, width, height)
            class_boxes.append([*np.round(pixels, 3).tolist(), round(entity.score, 6)])
    return {name: class_boxes for name, class_boxes in boxes.items() if class_boxes}


def _size(path: Path) -> tuple[int, int]:
    """Return width and height of a kept picture; zeros if it is no PNG."""
    with path.open("rb") as file:
        header = png_header(file.read(33))
    return header[:2] if header else (0, 0)


def _count(counts: dict[str, int], reason: str, number: int = 1) -> None:
    counts[reason] = counts.get(reason, 0) + number

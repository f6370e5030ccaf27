"""Recompute ACTesting's equations 7 to 14 and 17 to 20 from ``records.parquet``, with nothing of medtest.

    python scripts/recompute_actesting.py outputs/t2i/SYSTEM/DIGEST/records.parquet

Prints CSV: operator, N, Error_e, Error_r, Miss_e, Miss_r, to hold against ``tables/actesting.csv`` and
``tables/actesting_miss.csv`` (rule ``paper``). Sets are of classes and of predicates; what the reader cannot tell is in
neither. Operators are told by the difference of the two pools, as the records hold it. Prompts that were drawn by
density have weights, which are not applied here.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import defaultdict

import pyarrow.parquet as pq

COLUMNS = [
    *("relation", "answer_state", "pool", "effect", "scene", "tells"),
    *("source_state", "source_scene", "source_tells"),
]


def sets(scene: str, *tells: str) -> tuple[set[str], set[str]]:
    """Return the sets of classes and of predicates of a scene, of what every one of ``tells`` names."""
    seen = json.loads(scene)
    known = [json.loads(text) for text in tells]

    def told(kind: str, name: str) -> bool:
        return all(one[kind] is None or name in one[kind] for one in known)

    classes = {entity[0] for entity in seen["entities"]}
    predicates = {predicate for _, predicate, _ in seen["triples"]}
    return {c for c in classes if told("classes", c)}, {p for p in predicates if told("predicates", p)}


def cannot_tell(removed: dict, added: dict, source_tells: str, tells: str) -> tuple[bool, bool]:
    """Return whether the reader cannot tell the classes, and the predicates, that the change is of."""
    before, after = json.loads(source_tells), json.loads(tells)

    def told(one: dict, kind: str, name: str) -> bool:
        return one[kind] is None or name in one[kind]

    classes = not (
        all(told(one, "classes", name) for one in (before, after) for name in removed["entities"])
        and all(told(after, "classes", name) for name in added["entities"])
    )
    went = sorted(predicate for _, predicate, _ in removed["triples"])
    came = sorted(predicate for _, predicate, _ in added["triples"])
    for predicate in list(went):
        if predicate in came:
            went.remove(predicate)
            came.remove(predicate)
    mute = any(one["predicates"] == [] for one in (before, after))
    predicates = mute or not all(told(one, "predicates", p) for one in (before, after) for p in (*went, *came))
    return classes, predicates


def violated(source: set[str], mutant: set[str], gone: set[str], new: set[str], shape: str) -> bool:
    """Return whether a set of one kind breaks the metamorphic relation of an operator (equations 7 to 14)."""
    kept = source & mutant
    if shape == "EC":  # MR1, equation 9; of relations nothing is exchanged, equation 10
        return not (kept == source - gone and kept == mutant - new)
    if shape == "ER_R":  # MR2
        return kept != mutant - new
    if shape == "ER_A":  # MR3
        return kept != source - gone
    return source != mutant


def shape_of(removed: dict, added: dict) -> str:
    """Return which metamorphic relation a change calls for; EC with another operator calls for the other's."""
    gone, new = len(removed["triples"]), len(added["triples"])
    if removed["entities"] and added["entities"]:
        return "EC" if gone == new else "ER_R" if gone > new else "ER_A"
    if removed["entities"] or gone > new:
        return "ER_R"
    return "ER_A" if added["entities"] or new else "SS"


def recomputed(path: str) -> dict[str, dict[str, float]]:
    """Return N, Error_e, Error_r, Miss_e and Miss_r by operator."""
    pairs: dict[str, list[list[int]]] = defaultdict(lambda: [[0, 0], [0, 0]])
    misses: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    there = pq.read_schema(path).names
    for row in pq.read_table(path, columns=[name for name in COLUMNS if name in there]).to_pylist():
        if row["answer_state"] != "answered" or not row["scene"]:
            continue
        operator = row["relation"]
        classes, predicates = sets(row["scene"], row["tells"])
        pool, tells = json.loads(row["pool"]), json.loads(row["tells"])
        names = [entity[0] for entity in pool["entities"]]

        def known(kind: str, name: str, tells: dict = tells) -> bool:
            return tells[kind] is None or name in tells[kind]

        said = {name for name in names if known("classes", name)}
        related = {
            p
            for a, p, b in pool["triples"]
            if known("predicates", p) and known("classes", names[a]) and known("classes", names[b])
        }
        counts = misses[operator]  # equations 19 and 20
        for place, number in enumerate((len(said & classes), len(said), len(related & predicates), len(related))):
            counts[place] += number
        if operator == "source" or row["source_state"] != "answered" or not row["source_scene"]:
            continue
        change = json.loads(row["effect"]) if row["effect"] else {}
        empty: dict = {"entities": [], "triples": []}
        removed, added = change.get("removed") or empty, change.get("added") or empty
        both = row["source_tells"], row["tells"]
        before, after = sets(row["source_scene"], *both), sets(row["scene"], *both)
        shape, untold = shape_of(removed, added), cannot_tell(removed, added, *both)
        gone, new = set(removed["entities"]), set(added["entities"])
        if not (gone and new):  # nothing was exchanged: MR2 and MR3 name no class
            gone = new = set()
        exchanged = [(gone, new), (set(), set())]
        for kind in (0, 1):
            if not untold[kind]:  # equations 17 and 18
                total = pairs[operator][kind]
                total[0] += violated(before[kind], after[kind], *exchanged[kind], shape)
                total[1] += 1
    found = {}
    for operator, (seen, said_, found_, related_) in misses.items():
        (errors, cases), (wrong, all_) = pairs[operator]
        found[operator] = {
            "N": cases,
            "Error_e": errors / cases if cases else float("nan"),
            "Error_r": wrong / all_ if all_ else float("nan"),
            "Miss_e": 1 - seen / said_ if said_ else float("nan"),
            "Miss_r": 1 - found_ / related_ if related_ else float("nan"),
        }
    return found


def main() -> None:
    """Print the figures of a file of records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", help="records.parquet of a run's folder")
    writer = csv.writer(sys.stdout)
    writer.writerow(["operator", "N", "Error_e", "Error_r", "Miss_e", "Miss_r"])
    for operator, figures in recomputed(parser.parse_args().records).items():
        writer.writerow([operator, *(round(value, 6) for value in figures.values())])


if __name__ == "__main__":
    main()

"""Count which triples of the vocabulary captions of photographs say, and write them as ``attested.csv``.

    python scripts/attested_triples.py captions_val2017.json medtest/language/captions/attested.csv

The captions are a JSON object of image ids with lists of captions. They are read by the parser ``controlled``; names
are brought to the vocabulary's classes ("school bus": ``bus``). A triple is kept that enough captions of enough images
say. Images of the labelled captions that are untouched (``tests/data/captions``) are left out, by the rule of their
draw.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from medtest.language.captions.parsers import parser_of
from medtest.language.captions.vocabulary import vg150

LABELLED, DEVELOPMENT = 150, 50
NOT_DRAWN = frozenset(("of", "has", "part of", "belonging to", "made of", "for", "from", "to", "at", "says"))
"""Predicates of parts and kinds: a picture of "a leg of a table" shows nothing that a picture of a table does not."""

REFUSED = """
man in hand|woman in hand|boy in hand|person in hand|man in glass|woman in glass|man wearing glass|woman wearing glass|
man in oven|man on cake|man in cake|woman in cake|man in wave|wave on surfboard|woman on table|man on table|
person on table|
woman on plate|man on plate|person on plate|man in refrigerator|person in refrigerator|person in ski|person wearing ski|
man on cell phone|woman on cell phone|person on cell phone|man on phone|woman on phone|man on laptop|man on screen|
person in bag|giraffe in fence|stop sign with sign|sign with building|bench with tree|man with hand|woman with hand|
man with head|woman with face|man in stand|person in stand|player near plate|room with remote|
table covered in plate|cat on screen|man along railing|cat with paw
"""
"""Read by hand from the list and left out: a verb's preposition that means something else in a picture ("looks in the
refrigerator", "cuts into a cake", "talks on the phone"), a phrase attached to the wrong noun, eyeglasses."""


def class_of(name: str) -> str | None:
    """Return the class that a name's words are, or its last word."""
    known = vg150()
    return known.class_of(name) or known.class_of(name.rpartition(" ")[2])


def untouched(images: list[str]) -> set[str]:
    """Return the images whose labelled captions nobody reads before the end."""
    drawn = sorted(images, key=lambda one: hashlib.sha256(f"medtest captions {one}".encode()).hexdigest())
    return set(drawn[DEVELOPMENT:LABELLED])


def main() -> int:
    """Count, and write the file."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("captions", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--captions-least", type=int, default=4, help="fewest captions that say a triple")
    options.add_argument("--images-least", type=int, default=3, help="fewest images among them")
    given = options.parse_args()
    captions: dict[str, list[str]] = json.loads(given.captions.read_text(encoding="utf-8"))
    left_out = untouched(list(captions))
    known, parser = vg150(), parser_of("controlled")
    said: Counter[tuple[str, str, str]] = Counter()
    seen: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for image, texts in captions.items():
        if image in left_out:
            continue
        for pool in parser.parse_all(texts):
            for subject, predicate, thing in set(pool.named()):
                ends = (class_of(subject), class_of(thing))
                if None in ends or ends[0] == ends[1] or predicate not in known.relations or predicate in NOT_DRAWN:
                    continue
                triple = (str(ends[0]), predicate, str(ends[1]))
                said[triple] += 1
                seen[triple].add(image)
    refused = {" ".join(one.split()) for one in REFUSED.split("|")}
    kept = sorted(
        (
            one
            for one in said
            if " ".join(one) not in refused
            and said[one] >= given.captions_least
            and len(seen[one]) >= given.images_least
        ),
        key=lambda one: (-said[one], one),
    )
    with given.out.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("subject", "predicate", "object", "captions"))
        rows.writerows((*one, said[one]) for one in kept)
    print(f"{len(kept)} triples of {len(said)} in {sum(map(len, captions.values()))} captions: {given.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Score parsers of captions on labelled ones, and count how many captions have triples enough for ER_R.

    python scripts/score_captions.py --labels tests/data/captions/development.json
    python scripts/score_captions.py --parser spacy --labels tests/data/captions/development.json
    python scripts/score_captions.py --prompts tests/data/captions/written.json
    python scripts/score_captions.py --count captions_val2017.json

``--prompts`` scores readings of prompts: how many are sent, and how many of those mean what their author wrote; with
``--parser`` the content of prompts is read by that parser. ``--count`` takes a JSON object of image ids with lists of
captions.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks._caption_scores import is_held_out, labelled, score, score_readings
from medtest.core.errors import MedtestError
from medtest.core.scenes import Pool, Triple
from medtest.language.captions.parsers import CaptionParser, parser_of
from medtest.results.cube.intervals import wilson_ends


def main() -> int:
    """Print what is asked for."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--parser", default="controlled")
    options.add_argument("--model", default=None, help="pipeline or folder of the parser, where it takes one")
    options.add_argument("--labels", type=Path, nargs="*", default=[])
    options.add_argument("--prompts", type=Path, default=None)
    options.add_argument("--count", type=Path, default=None)
    given = options.parse_args()
    try:
        parser = parser_of(given.parser, **({} if given.model is None else {"model": given.model}))
    except MedtestError as error:
        print(error)
        return 2
    for path in given.labels:
        _score(path, parser)
    if given.prompts is not None:
        _score_readings(given.prompts, None if given.parser == "controlled" else parser)
    if given.count is not None:
        _count(given.count, parser)
    return 0


def _score(path: Path, parser: CaptionParser) -> None:
    rows = labelled(path)
    total = score(rows, parser)
    entities, triples = total.entities, total.triples
    print(f"{path.name}: {total.captions} captions, parser {parser.name}")
    print(f"  entities  F1 {entities.f1:.3f}  precision {entities.precision:.3f}  recall {entities.recall:.3f}")
    print(f"  triples   F1 {triples.f1:.3f}  precision {triples.precision:.3f}  recall {triples.recall:.3f}")
    print(f"  captions wholly right: {total.whole}")
    for style in dict.fromkeys(row["style"] for row in rows if "style" in row):
        part = score([row for row in rows if row["style"] == style], parser)
        print(
            f"  {style:<14}entities F1 {part.entities.f1:.3f}  triples F1 {part.triples.f1:.3f}"
            f"  wholly right {part.whole} of {part.captions}"
        )


def _score_readings(path: Path, parser: CaptionParser | None) -> None:
    rows = labelled(path)
    print(f"{path.name}: {len(rows)} prompts, content by {'controlled' if parser is None else parser.name}")
    parts = {
        style: [row for row in rows if row["style"] == style] for style in dict.fromkeys(row["style"] for row in rows)
    }
    held_out = [row for row in rows if is_held_out(row["caption"])]
    parts |= {"all": rows, "rules' half": [row for row in rows if row not in held_out], "held out": held_out}
    for name, part in parts.items():
        score_of_part = score_readings(part, parser)
        sent, right = score_of_part.sent, score_of_part.right
        share = f", {right / sent:.3f} of them, 95 % from {wilson_ends(right, sent)[0]:.3f}" if sent else ""
        print(f"  {name:<14}{sent:>4} of {len(part):>3} sent, {right:>3} right{share}")


def _count(path: Path, parser: CaptionParser) -> None:
    captions: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    flat = [(image, text) for image, texts in captions.items() for text in texts]
    began = time.perf_counter()
    pools = list(parser.parse_all(text for _, text in flat))
    seconds = time.perf_counter() - began
    print(f"{len(flat)} captions of {len(captions)} images, parser {parser.name}: {len(flat) / seconds:.0f} a second")
    for words, read in (
        ("triples as read", pools),
        ("with coordination read as `with`", [_with(one) for one in pools]),
    ):
        for least in (1, 2, 3):
            kept = [image for (image, _), one in zip(flat, read, strict=True) if len(one.triples) >= least]
            print(f"  {words}: {len(kept)} captions of {len(set(kept))} images have {least} or more")


def _with(pool: Pool) -> Pool:
    """Return a pool with one more triple for each thing that is related to nothing: "A and B" as "A with B"."""
    related = {end for one in pool.triples for end in (one.subject, one.object)}
    more = [index for index in range(1, len(pool.entities)) if index not in related]
    said = tuple(Triple(subject=at - 1, predicate="with", object=at) for at in more)
    return Pool(entities=pool.entities, triples=(*pool.triples, *said))


if __name__ == "__main__":
    raise SystemExit(main())

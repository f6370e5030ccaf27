"""Captions from files: every layout, choice of the caption, samples, and messages on broken files."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prompt_sources import CAPTIONS, as_coco, source

from medtest.core.errors import UserMistakes
from medtest.core.scenes import Pool
from medtest.language.captions.density import level
from medtest.language.captions.parsers import PARSERS, CaptionParser, parser_of
from medtest.language.captions.reading.result import MEANINGS, ReadingReason
from medtest.language.captions.render import render
from medtest.seeds.captions.base import PromptSource


def rows_of(captions: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(image, text) for image, texts in captions.items() for text in texts]


LAYOUTS: dict[str, tuple[str, Callable[[dict[str, list[str]]], str]]] = {
    "coco": ("captions_val2017.json", as_coco),
    "by image": ("captions.json", json.dumps),
    "Karpathy's splits": (
        "dataset_coco.json",
        lambda by_image: json.dumps(
            {
                "images": [
                    {
                        "cocoid": int(image),
                        "filename": f"{image}.jpg",
                        "sentences": [{"raw": caption} for caption in captions],
                    }
                    for image, captions in by_image.items()
                ],
                "dataset": "coco",
            }
        ),
    ),
    "objects": (
        "captions.json",
        lambda by_image: json.dumps([{"image_id": image, "caption": text} for image, text in rows_of(by_image)]),
    ),
    "lines": (
        "captions.jsonl",
        lambda by_image: "\n".join(json.dumps({"image": image, "text": text}) for image, text in rows_of(by_image)),
    ),
    "csv": (
        "captions.csv",
        lambda by_image: "image;caption\n" + "".join(f'{image};"{text}"\n' for image, text in rows_of(by_image)),
    ),
    "csv of Windows": (
        "captions.csv",
        lambda by_image: "\ufefffile_name,Caption\r\n" + "".join(f'{i},"{t}"\r\n' for i, t in rows_of(by_image)),
    ),
}


def texts(seeds: PromptSource) -> dict[str, str]:
    return {ref.seed_id: seeds.load(ref).prompt.text for ref in seeds.refs()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_hold_the_same(layout: str, tmp_path: Path) -> None:
    name, write = LAYOUTS[layout]
    (tmp_path / name).write_text(write(CAPTIONS), encoding="utf-8")
    seeds = source("captions", tmp_path, words="own", min_triples=1)
    assert texts(seeds) == {
        "139": CAPTIONS["139"][0] if layout != "coco" else "A dog sitting on a red couch near a table.",
        "285": CAPTIONS["285"][0],
        "1000": CAPTIONS["1000"][0],
    }
    assert [ref.cluster for ref in seeds.refs()] == ["139", "285", "1000"]
    assert seeds.notices() == ("1 of 4 prompts are left out: each has fewer relations than min_triples, 1.",)


def test_plain_text_is_a_caption_a_line(tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("A dog on a bed.\n\n[A cat] under a table.\n", encoding="utf-8")
    seeds = source("captions", tmp_path, words="own", min_triples=1)
    assert texts(seeds) == {"line-000001": "A dog on a bed.", "line-000002": "[A cat] under a table."}


@pytest.mark.parametrize(
    ("caption", "ids"),
    [
        ("first", {"139": "A dog sitting on a red couch near a table."}),
        ("relations", {"139": "A dog sitting on a red couch near a table."}),
        ("longest", {"139": "A dog sitting on a red couch near a table."}),
        ("all", {"139-2": "A dog sitting on a red couch near a table."}),
    ],
)
def test_the_caption_of_an_image_is_chosen(caption: str, ids: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "captions.json").write_text(json.dumps(CAPTIONS), encoding="utf-8")
    seeds = source("captions", tmp_path, words="own", caption=caption, min_triples=2)
    assert {name: text for name, text in texts(seeds).items() if name.startswith("139")} == ids
    assert all(ref.cluster == ref.seed_id.partition("-")[0] for ref in seeds.refs())


def test_sources_are_rendered_like_follow_ups_and_hold_classes(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("A lady next to two old sofas and a zorb.", encoding="utf-8")
    seeds = source("captions", tmp_path, words="template", min_triples=1)
    prompt = seeds.load(seeds.refs()[0]).prompt
    assert prompt.text == render(prompt.pool) and Pool.of_json(prompt.pool.as_json()) == prompt.pool
    assert {"woman": 1, "couch": 2}.items() <= dict(prompt.pool.names()).items()
    assert ("woman", "near", "couch") in prompt.pool.named()
    assert [value for name, value in seeds.refs()[0].strata if name == "density"] == [str(level(prompt.pool))]
    of_classes = source("captions", tmp_path, words="template", min_triples=1, classes="known")
    assert set(of_classes.load(of_classes.refs()[0]).prompt.pool.names()) == {"woman", "couch"}
    split = source("captions", tmp_path, words="template", min_triples=0, classes="vg150")
    assert set(split.load(split.refs()[0]).prompt.pool.names()) == {"woman"}


def test_a_sample_by_density_has_weights(tmp_path: Path) -> None:
    lines = ["A dog on a bed."] * 30 + ["A man riding a horse and holding a flag."] * 6
    (tmp_path / "some.txt").write_text("\n".join(lines), encoding="utf-8")
    seeds = source("captions", tmp_path, min_triples=1, sample=8, sampling="density")
    strata = Counter(ref.strata for ref in seeds.refs())
    assert strata == {
        (("density", "2"), ("weight", repr(round(30 / 36 / (4 / 8), 12)))): 4,
        (("density", "3"), ("weight", repr(round(6 / 36 / (4 / 8), 12)))): 4,
    }
    assert seeds.notices()[-1] == "8 of 36 prompts are drawn (density)."
    assert seeds.digest() == source("captions", tmp_path, min_triples=1, sample=8, sampling="density").digest()
    assert seeds.digest() != source("captions", tmp_path, seed=6, min_triples=1, sample=8, sampling="density").digest()
    uniform = source("captions", tmp_path, min_triples=1, sample=8)
    assert {name for ref in uniform.refs() for name, _ in ref.strata} == {"density"} and len(uniform.refs()) == 8


def test_loading_needs_only_a_reference(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("A dog on a bed.", encoding="utf-8")
    (ref,) = source("captions", tmp_path, min_triples=1).refs()
    (tmp_path / "one.txt").unlink()
    seed = source("captions", tmp_path, min_triples=1).load(ref)
    assert seed.kind == "depiction" and seed.prompt.text == "A dog on a bed."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("   \n", "no caption"),
        ("{", "is not JSON"),
        ("7", "no prompt that can be used"),
        ('{"images": []}', "by image"),
        ('{"a": {"b": 1}}', "COCO's JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"1": [3]}', "3 where a caption is expected"),
        ('{"1": ["  "]}', "an empty caption"),
        ('{"1": ["A dog \\ud83d on a bed"]}', "half a character"),
        (json.dumps({"1": ["x" * 3000]}), "a caption of 3,000 characters"),
        (json.dumps([{"image": [1], "caption": "A dog."}]), "[1] where an image's name is expected"),
        (json.dumps([{"picture": 1}]), "nothing where a caption is expected"),
        (as_coco(CAPTIONS).replace('"id": 139, "file', '"id": 140, "file'), "139, which is none of the images"),
    ],
)
def test_a_broken_file_is_one_message(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "captions.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserMistakes) as caught:
        source("captions", tmp_path, min_triples=1).refs()
    assert message in str(caught.value) and len(str(caught.value)) < 2500


def test_prompts_in_another_script_are_counted(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text(
        "犬がソファの上にいる。\nA dog on a bed.\n!!!\nكلب على السرير\n", encoding="utf-8"
    )
    seeds = source("captions", tmp_path, words="template", min_triples=1)
    assert len(seeds.refs()) == 1
    assert set(seeds.notices()) == {
        "2 of 4 prompts are left out: each is in another script; prompts are read as English.",
        "1 of 4 prompts are left out: each names nothing that could be seen.",
    }
    (tmp_path / "words.txt").write_text("Собака сидит на диване.\n", encoding="utf-8")
    with pytest.raises(UserMistakes) as caught:
        source("captions", tmp_path, words="template").refs()
    message = str(caught.value)
    assert "each is in another script" in message and "English" in message and "lower min_triples" not in message


def test_accents_do_not_split_words(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("A man at a café table near a cre\u0300che and a ｄｏｇ.", encoding="utf-8")
    seeds = source("captions", tmp_path, words="template", min_triples=0)
    prompt = seeds.load(seeds.refs()[0]).prompt
    assert {"cafe table", "creche", "dog"} < set(prompt.pool.names()) and "caf " not in prompt.text


def test_bad_rows_are_one_report_or_are_left_out(tmp_path: Path) -> None:
    rows = ["A dog on a bed.", *[""] * 40]
    (tmp_path / "captions.csv").write_text("caption,image\n" + "".join(f'"{r}",{n}\n' for n, r in enumerate(rows)))
    with pytest.raises(UserMistakes) as caught:
        source("captions", tmp_path, min_triples=1).refs()
    words = str(caught.value)
    assert "40 rows of captions.csv cannot be used, the first 10 shown" in words and words.count("empty caption") == 10
    seeds = source("captions", tmp_path, min_triples=1, on_bad_seed="skip")
    assert len(seeds.refs()) == 1 and len(seeds.problems()) == 40
    assert seeds.problems()[0].file == "captions.csv, line 3"


def test_the_file_of_captions_is_found(tmp_path: Path) -> None:
    with pytest.raises(UserMistakes, match="no file of prompts"):
        source("captions", tmp_path).refs()
    for name in ("one.txt", "two.json"):
        (tmp_path / name).write_text('{"1": ["A dog on a bed."]}', encoding="utf-8")
    with pytest.raises(UserMistakes) as caught:
        source("captions", tmp_path).refs()
    assert "one.txt, two.json" in str(caught.value) and "seeds.words.file=one.txt" in str(caught.value)
    assert source("captions", tmp_path, file="two.json", min_triples=1).refs()[0].seed_id == "1"
    with pytest.raises(UserMistakes, match="1 mistake"):
        source("captions", tmp_path, file="three.json").refs()
    with pytest.raises(UserMistakes) as caught:
        source("captions", None).refs()
    assert "add data=PATH" in str(caught.value)
    with pytest.raises(ValueError, match="below the data folder"):
        source("captions", tmp_path, file="../two.json")


def test_a_file_beyond_the_bound_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "captions.json").open("wb") as file:
        file.truncate(140_000_000)
    began = time.perf_counter()
    with pytest.raises(UserMistakes) as caught:
        source("captions", tmp_path).refs()
    assert "140 MB" in str(caught.value) and time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "wrong", [{"sampling": "density"}, {"shares": [1.0]}, {"shares": [0.0] * 5}, {"words": "mine"}, {"sample": 0}]
)
def test_inconsistent_settings_are_refused(wrong: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        source("captions", tmp_path, **wrong)


def test_shares_of_missing_levels(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("A dog on a bed.", encoding="utf-8")
    seeds = source("captions", tmp_path, min_triples=1, sample=3, sampling="density", shares=[1.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(UserMistakes) as caught:
        seeds.refs()
    assert "a level that is there: 2" in str(caught.value)


SHARED = Path(os.environ.get("MEDTEST_SHARED", Path(__file__).parents[3].parent / "shared")) / "data"
COCO = "coco_captions_val2017.json"


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / COCO).is_file(), reason="COCO's captions are absent (MEDTEST_SHARED)")
@pytest.mark.parametrize(
    ("words", "least"),
    [
        ("template", 4062),  # seeds of ACTesting, which have two relations or more
        ("own", 1500),  # 30 % of the captions: what has two readings is left out
    ],
)
def test_captions_of_coco_with_two_relations_or_more(words: str, least: int) -> None:
    seeds = source("captions", SHARED, file=COCO, words=words)
    refs = seeds.refs()
    assert len(refs) >= least and len({ref.cluster for ref in refs}) == len(refs)


class Breaks(CaptionParser):
    """Parser that fails on captions with a cat."""

    name = "breaks"

    def parse(self, text: str) -> Pool:
        if "cat" in text.lower():
            raise RuntimeError("no cats")
        return parser_of("controlled").parse(text)


def test_a_failing_parser_is_reported_and_only_its_caption_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PARSERS, "breaks", (__name__, "Breaks"))
    (tmp_path / "captions.json").write_text(json.dumps(CAPTIONS), encoding="utf-8")
    with pytest.raises(UserMistakes) as caught:
        source("captions", tmp_path, parser="breaks").refs()
    assert "the parser breaks broke: RuntimeError: no cats" in str(caught.value) and "Two cats" in str(caught.value)
    seeds = source("captions", tmp_path, parser="breaks", on_bad_seed="skip")
    assert [ref.seed_id for ref in seeds.refs()] == ["139", "1000"] and len(seeds.problems()) == 1


@pytest.mark.parametrize(
    ("parser_settings", "message"),
    [
        ({"parser": "controled"}, "Did you mean 'controlled'"),
        ({"parser": "controlled", "parser_options": {"model": "x"}}, "parser controlled"),
        ({"parser": "language_model"}, "parser_options.folder=FOLDER"),
    ],
)
def test_unknown_parsers(parser_settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("A dog on a bed.", encoding="utf-8")
    with pytest.raises(UserMistakes) as caught:
        source("captions", tmp_path, **parser_settings).refs()
    assert message in str(caught.value)


def test_prompts_that_are_not_understood_are_left_out_and_counted_by_reason(tmp_path: Path) -> None:
    lines = [
        "Draw a fox next to a tree, 8k, bokeh",
        "A man without a hat on a horse near a dog without a collar",
        "Ein alter Mann mit einem Hut",
        "A qwxzy on a table",
    ]
    (tmp_path / "prompts.txt").write_text("\n".join(lines), encoding="utf-8")
    seeds = source("captions", tmp_path, min_triples=1)
    (ref,) = seeds.refs()
    prompt = seeds.load(ref).prompt
    assert (prompt.text, prompt.own) == (lines[0], True)
    assert prompt.pool.named() == (("fox", "near", "tree"),)
    notices = " ".join(seeds.notices())
    for reason in ("negation_unclear", "other_language", "unknown_words"):
        assert f"1 of 4 prompts are left out: each {MEANINGS[ReadingReason(reason)]} ({reason})." in notices
    assert "alter Mann" not in notices, "notices are in reports, also where prompts are private"


def test_a_file_without_a_readable_prompt_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("Ein alter Mann mit einem Hut\n", encoding="utf-8")
    with pytest.raises(UserMistakes) as caught:
        source("captions", tmp_path, min_triples=1).refs()
    assert "each is not English (other_language) (1)" in str(caught.value) and "medtest prompts review" in str(
        caught.value
    )


def test_denials_of_a_prompt_are_in_its_seed(tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("A dog on a bed without pillows\nThe car near a house is not blue.\n")
    seeds = source("captions", tmp_path, min_triples=0)
    pools = [seeds.load(ref).prompt.pool for ref in seeds.refs()]
    assert [(pool.absent, pool.denied) for pool in pools] == [((), (("car", "blue"),))]

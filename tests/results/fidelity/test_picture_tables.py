"""Tables on pictures of one run, from records and the pictures that they name."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from depicted_records import needs_weights, picture, pool, records, row, run, scene_of

from medtest.core.cases import Image
from medtest.core.records import PICTURES
from medtest.core.scenes import Entity, dumped, pool_of
from medtest.results.fidelity.settings import FigureSettings
from medtest.results.fidelity.tables import NAMES, PictureTables, picture_tables
from medtest.results.records.records_io import Records

NONE = FigureSettings(pictures="none")


def _draw(seed: int, relation: str) -> Image:
    """Draw a picture: ``unchanged`` shows what the source shows, and two neighbours of ``ec`` are the same."""
    number = 1000 + seed // 2 if relation == "ec" else seed
    return picture(number, noise={"source": 0, "unchanged": 1 + seed, "ec": 5000 + seed}[relation])


@pytest.fixture(scope="module")
def drawn_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Records, PictureTables]:
    folder = tmp_path_factory.mktemp("run")
    run_records = run(folder, 24, _draw)
    return (
        folder,
        run_records,
        picture_tables(run_records, FigureSettings(device="cpu"), folder=folder, shared=folder / "shared"),
    )


def _cell(frame: pd.DataFrame, **where: str) -> pd.Series:
    for name, value in where.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1
    return frame.iloc[0]


@needs_weights
@pytest.mark.slow
def test_figures_have_numbers_intervals_and_names(
    drawn_run: tuple[Path, Records, PictureTables],
) -> None:
    frame = drawn_run[2].frames["fidelity.csv"]
    assert set(frame["figure"]) == {"FD-embed", "KD-embed", "IS-embed", "RP-struct"}
    floor = _cell(frame, relation="unchanged", figure="FD-embed", finding="all")
    changed = _cell(frame, relation="ec", figure="FD-embed", finding="all")
    assert 0 <= floor["value"] < changed["value"]
    assert floor["ci_low"] <= floor["value"] <= floor["ci_high"]
    assert (changed["pictures"], changed["clusters"], changed["reference"]) == (24, 24, "sources")
    assert "fewer than the" in changed["note"]
    violated = _cell(frame, relation="ec", figure="FD-embed", finding="violated")
    held = _cell(frame, relation="ec", figure="FD-embed", finding="held")
    assert (violated["pictures"], held["pictures"]) == (8, 16)
    assert not ((frame["relation"] == "source") & (frame["figure"] == "FD-embed")).any()
    score = _cell(frame, relation="source", figure="IS-embed")
    assert score["temperature"] > 0
    assert (score["value"] > 1.0) and (score["spread"] == 0.0)  # one split of so few
    section = next(section_ for section_ in drawn_run[2].sections() if section_.name == "picture-figures")
    assert section.columns == ("relation", "cases", "pictures", "IS-embed", "RP-struct", "FD-embed", "KD-embed")
    assert (
        len(section.rows) == 6
    )  # the source; unchanged and those that hold; ec, those that violate it, those that hold
    changed_cells = next(cells for cells in section.rows if cells[:2] == ("ec", "all"))
    assert ", N < " in changed_cells[5] and "[" in changed_cells[5]
    assert f"T = {score['temperature']:g}" in section.words


@needs_weights
@pytest.mark.slow
def test_pictures_that_were_drawn_for_other_prompts_are_paired(drawn_run: tuple[Path, Records, PictureTables]) -> None:
    pairs, shares = drawn_run[2].frames["duplicates.csv"], drawn_run[2].frames["duplicate_shares.csv"]
    assert {(first[:9], second[:9]) for first, second in zip(pairs["first"], pairs["second"], strict=True)} == {
        (f"made/{n:04}", f"made/{n + 1:04}") for n in range(0, 24, 2)
    }
    assert _cell(shares, relation="ec")["near_duplicates"] == 24
    assert _cell(shares, relation="unchanged")["near_duplicates"] == 0  # alike, and of the same prompt


@needs_weights
@pytest.mark.slow
def test_tables_are_remade_from_the_stored_features(
    drawn_run: tuple[Path, Records, PictureTables], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, run_records, before = drawn_run
    monkeypatch.setattr("medtest.results.fidelity.embedding.Worker", None)
    again = picture_tables(run_records, FigureSettings(device="cpu"), folder=folder, shared=folder / "shared")
    for name in NAMES:
        pd.testing.assert_frame_equal(again.frames[name], before.frames[name])


@needs_weights
@pytest.mark.slow
def test_a_folder_of_real_pictures_and_one_of_training_pictures(
    drawn_run: tuple[Path, Records, PictureTables], tmp_path: Path
) -> None:
    from PIL import Image as Pillow

    folder, run_records, _ = drawn_run
    for name, numbers in (("real", range(200, 230)), ("training", (3, 900))):
        (tmp_path / name).mkdir()
        for number in numbers:
            Pillow.fromarray(picture(number, noise=4)).save(tmp_path / name / f"{number}.jpg", quality=90)
    settings = FigureSettings(
        real=str(tmp_path / "real"), training=str(tmp_path / "training"), temperature=2.0, most=12, device="cpu"
    )
    tables = picture_tables(run_records, settings, folder=folder, shared=folder / "shared")
    frame = tables.frames["fidelity.csv"]
    source = _cell(frame, relation="source", figure="FD-embed")
    assert (source["reference"], source["reference_pictures"], source["pictures"]) == ("real", 30, 12)
    assert _cell(frame, relation="source", figure="IS-embed")["temperature"] == 2.0
    whole = picture_tables(
        run_records,
        FigureSettings(training=str(tmp_path / "training"), device="cpu"),
        folder=folder,
        shared=folder / "shared",
    )
    pairs = whole.frames["duplicates.csv"]
    pairs = pairs[pairs["kind"] == "training"]
    assert sorted(pairs["first"].str[:9]) == ["made/0003"] * 2
    assert set(pairs["second"]) == {"3.jpg"}
    training = FigureSettings(training=str(tmp_path / "training"), device="cpu")
    hidden = picture_tables(run_records, training, folder=folder, shared=folder / "shared", hashed=True)
    named = hidden.frames["duplicates.csv"]
    assert named.loc[named["kind"] == "training", "second"].str.fullmatch(r"file:[0-9a-f]{64}").all()
    unfit = FigureSettings(labelled=str(tmp_path / "real"), device="cpu")
    without = picture_tables(run_records, unfit, folder=folder, shared=folder / "shared")
    assert "class number" in without.notices[0]
    assert set(without.frames["fidelity.csv"]["figure"]) == {"RP-struct"}
    sections = {section.name: section for section in whole.sections()}
    assert "pictures of the training folder" in sections["near-duplicates"].words


def test_without_pictures_structure_and_equal_pixels_are_left(tmp_path: Path) -> None:
    run_records = run(tmp_path, 12, lambda seed, relation: picture(0 if relation == "ec" else seed))
    tables = picture_tables(run_records, NONE, folder=tmp_path)
    assert set(tables.frames["fidelity.csv"]["figure"]) == {"RP-struct"}
    assert _cell(tables.frames["fidelity.csv"], relation="ec", finding="all")["value"] == 100.0
    shares = tables.frames["duplicate_shares.csv"]
    one_for_all = _cell(shares, relation="ec")
    assert (one_for_all["near_duplicates"], one_for_all["percent"]) == (12, 100.0)
    assert one_for_all["largest_group"] == 14  # the source that it is the picture of, and its unchanged
    assert tables.frames["duplicates.csv"]["same_pixels"].all()


def test_the_original_captions_are_an_option(tmp_path: Path) -> None:
    run_records = run(tmp_path, 12, lambda seed, relation: picture(seed))
    settings = FigureSettings(pictures="none", captions="original")
    frame = picture_tables(run_records, settings, folder=tmp_path).frames["fidelity.csv"]
    assert _cell(frame, relation="source")["value"] == 100.0
    changed = _cell(frame, relation="ec", finding="all")
    assert changed["value"] < 50.0  # what shows the changed prompt does not show the original one
    assert changed["captions"] == "original"
    assert changed["distractors"] == 11
    assert "11 other captions" in changed["note"]


def test_pictures_that_cannot_be_found_are_a_notice(tmp_path: Path) -> None:
    rows = [row(seed, "source", pool(seed), picture(seed)) for seed in range(3)]
    nothing = picture_tables(records(rows), FigureSettings(), folder=tmp_path / "forgotten", shared=tmp_path)
    assert len(nothing.notices) == 1 and "keeps no pictures" in nothing.notices[0]
    (tmp_path / PICTURES).mkdir()
    missing = FigureSettings(inception=str(tmp_path / "no.pth"), device="cpu")
    tables = picture_tables(records(rows), missing, folder=tmp_path, shared=tmp_path)
    assert "network" in tables.notices[0]
    assert not tables.frames["fidelity.csv"].empty
    assert any("Figures that need a network" in section.words for section in tables.sections())
    assert missing.check()


def _tagged_row(seed: int, tag: str, prompt_pool: object, shown: object, relation: str = "source") -> dict[str, object]:
    record = row(seed, relation, prompt_pool, picture(seed), stratum_tag=tag)  # type: ignore[arg-type]
    return {**record, "scene": dumped(scene_of(shown).as_json())}  # type: ignore[arg-type]


def test_genevals_rule_by_tag_and_their_mean(tmp_path: Path) -> None:
    dog, dogs = pool_of([Entity(name="dog")]), pool_of([Entity(name="dog", count=2)])
    two = pool_of([Entity(name="dog"), Entity(name="dog")])
    rows = [_tagged_row(n, "single_object", dog, dog if n < 3 else pool_of([Entity(name="cat")])) for n in range(4)]
    rows += [_tagged_row(n, "counting", dogs, two if n < 5 else dog) for n in range(4, 6)]
    rows += [{**_tagged_row(6, "counting", dogs, two), "tells": dumped({"counts": False})}]
    rows += [row(7, "source", dogs, None, stratum_tag="counting")]
    rows += [_tagged_row(8, "something else", dog, dog)]
    frame = picture_tables(records(rows), NONE, folder=tmp_path).frames["geneval.csv"]
    single = _cell(frame, tag="single_object")
    counting = _cell(frame, tag="counting")
    assert (single["correct"], single["cases"], single["percent"]) == (3, 4, 75.0)
    assert (counting["correct"], counting["cases"], counting["untold"], counting["without_picture"]) == (1, 3, 1, 1)
    assert _cell(frame, tag="overall")["percent"] == pytest.approx((75.0 + 100 / 3) / 2)
    assert set(frame["tag"]) == {"single_object", "counting", "overall"}


def test_no_records_give_no_table(tmp_path: Path) -> None:
    empty = records([row(0, "source", pool(0), None)])
    tables = picture_tables(empty, FigureSettings(), folder=tmp_path)
    assert all(frame.empty for frame in tables.frames.values())
    assert tables.sections() == []


@needs_weights
@pytest.mark.slow
def test_orders_have_figures_of_each_finding_with_enough_pictures(
    drawn_run: tuple[Path, Records, PictureTables], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against source prompts that order it, or against real pictures in a folder of its name."""
    from PIL import Image as Pillow

    monkeypatch.setattr("medtest.results.fidelity.figures.LEAST_ORDERED", 7)
    folder, run_records, before = drawn_run
    assert "all" not in set(before.frames["fidelity.csv"]["relation"])  # their prompts are no orders
    orders = Records.of(pd.concat([run_records.sources, run_records.followups]).assign(stratum_modality="chest film"))
    (tmp_path / "Dog").mkdir()
    for number in range(300, 309):
        Pillow.fromarray(picture(number)).save(tmp_path / "Dog" / f"{number}.png")
    named = {
        relation: {
            name: sum(f'["{name}",' in text for text in frame.loc[frame["relation"] == relation, "pool"])
            for name in ("dog", "cat", "bench", "tree", "car", "kite")
        }
        for relation, frame in (("source", run_records.sources), ("ec", run_records.followups))
    }
    enough = {name for name, count in named["ec"].items() if min(count, named["source"][name]) >= 7}
    frame = picture_tables(orders, FigureSettings(device="cpu"), folder=folder, shared=folder / "shared").frames[
        "fidelity.csv"
    ]
    rows = frame[(frame["relation"] == "all") & (frame["figure"] == "FD-embed")].set_index("finding")
    assert enough and set(rows.index) == enough
    for name in enough:
        counts = (rows.loc[name, "pictures"], rows.loc[name, "reference_pictures"], rows.loc[name, "reference"])
        assert counts == (named["ec"][name], named["source"][name], "sources")
    settings = FigureSettings(device="cpu", real=str(tmp_path))
    frame = picture_tables(orders, settings, folder=folder, shared=folder / "shared").frames["fidelity.csv"]
    dog = _cell(frame, relation="all", figure="FD-embed", finding="dog")
    assert (dog["reference"], dog["reference_pictures"]) == ("real", 9)

"""The blind study "real or made?", from the deck to the report."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_parts import Client, answer_all, serving

from medtest.cli.app import run_app
from medtest.core.errors import UserMistakes
from medtest.realism.options import real_places
from medtest.session.runs import invocation_of
from medtest.study.make import FRAMES, MadeStudy, make_study
from medtest.study.model import Item
from medtest.study.options import study_options
from medtest.study.questions import MADE, PUBLISHED_ACCURACY, REAL, StudyKind
from medtest.study.results.blind import accuracy_table, blind_tables
from medtest.study.results.ratings import read_ratings
from medtest.study.results.report import report_study
from medtest.study.store import StudyStore
from medtest.suite.compose import load

sys.path.insert(0, str(Path(__file__).parents[1] / "realism"))
from realism_parts import write_real


def _make(home: Path, real: Path | None, *overrides: str, **options: str) -> MadeStudy:
    loaded = load("polyp_seg", ["relations=[feces,blur]", "limit=12", "prepare.size=96", *overrides])
    places = None if real is None else real_places({"real": str(real)})
    chosen = study_options({"blind": "true", **options})
    return make_study(loaded.suite, replace(invocation_of(loaded), home=home), chosen, home / "study", real=places)


def _items(folder: Path) -> list[Item]:
    with StudyStore(folder) as store:
        return store.items()


@pytest.fixture(scope="module")
def deck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("deck")
    write_real(home / "real" / "feces", 7, size=100)
    _make(home, home / "real", annotators="2")
    yield home / "study"


def _truth(item: Item) -> str:
    (choice,) = item.expected["marks"]
    return str(choice)


@pytest.mark.slow
def test_half_of_each_relation_is_real_and_untouched_frames_fill_up(deck: Path):
    items = _items(deck)
    counted = Counter((item.relation, _truth(item)) for item in items)
    assert counted == {
        ("feces", MADE): 5,
        ("feces", REAL): 5,
        ("blur", MADE): 5,
        ("source", REAL): 5,
    }
    with StudyStore(deck) as store:
        assert store.kind is StudyKind.BLIND
        assert FRAMES in store.meta["relations"]


def test_untouched_frames_are_of_seeds_without_a_follow_up_where_there_are_enough(deck: Path):
    items = _items(deck)
    sources_of_followups = {item.source for item in items if _truth(item) == MADE}
    plain = {item.source for item in items if item.relation == "source"}
    assert len(sources_of_followups) + 5 > 12 or not sources_of_followups & plain


@pytest.mark.slow
def test_videos_take_turns_and_names_can_be_hidden(tmp_path: Path):
    write_real(tmp_path / "real" / "feces", 8, size=100)
    rows = "".join(f"case{number}.png,{'a' if number < 6 else number}\n" for number in range(8))
    (tmp_path / "real" / "metadata.csv").write_text("image,video\n" + rows)
    _make(tmp_path, tmp_path / "real", "privacy.seed_ids=hashed", per_relation="6")
    real = [item for item in _items(tmp_path / "study") if item.dataset == REAL]
    assert sorted(Counter(item.seed_id for item in real).values()) == [1, 1, 1]
    assert not any("case" in item.address for item in real)


@pytest.mark.slow
def test_without_a_folder_untouched_frames_are_real_with_a_notice(tmp_path: Path):
    result = _make(tmp_path, None, per_relation="4")
    assert result.items == {"feces": 2, "blur": 2, FRAMES: 4}
    assert any("no artefact" in notice for notice in result.notices)


def test_replies_of_the_server_do_not_give_the_truth_away(deck: Path):
    with serving(deck) as served:
        client = Client(served.port, served.links[1])
        assert client.study["kind"] == "blind"
        status, page = client.raw("GET", "/")
        assert status == 200
        text = page.decode()
        assert 'data-kind="blind"' in text
        assert text.count('type="radio"') == 2
        shown: set[tuple[Any, ...]] = set()
        for position in range(1, 4):
            item = client.get(f"/api/item/main/{position}")
            shown.add((*sorted(item), item["width"], item["height"], str(item["outlines"])))
            answer = {"phase": "main", "position": position, "request": f"request-{position}"}
            for wrong in ([], ["real", "made"], ["blood"]):
                assert client.post({**answer, "marks": wrong, "request": f"wrong-{position}-{len(wrong)}"})[0] == 422
            assert client.post({**answer, "diagnosis": 4, "realism": 4})[0] == 422
            status, saved = client.post({**answer, "marks": ["made"]})
            assert (status, saved["saved"]) == (200, True)
            assert "feedback" not in saved
        assert len(shown) == 1
        assert client.get("/api/item/main/2")["answer"]["marks"] == ["made"]


@pytest.mark.slow
def test_accuracy_and_its_intervals_are_reported_beside_the_published_figure(tmp_path: Path):
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    write_real(tmp_path / "real" / "feces", 5, size=100)
    _make(tmp_path, tmp_path / "real", annotators="2")

    def say(annotator: int, item: Item, showing: int) -> dict[str, Any]:
        right = annotator == 1 or item.relation == "feces"
        other = MADE if _truth(item) == REAL else REAL
        return {"marks": (_truth(item) if right else other,)}

    with StudyStore(tmp_path / "study") as store:
        answer_all(store, say)
        ratings = read_ratings(store)
    table = accuracy_table(ratings).set_index(["by", "name"])
    everyone = table.loc[("all", "overall")]
    assert (everyone.answers, everyone.correct, everyone.percent) == (40, 30, 75.0)
    assert everyone.published_percent == PUBLISHED_ACCURACY
    low, high = proportion.proportion_confint(30, 40, method="wilson")
    assert (everyone.wilson_low, everyone.wilson_high) == pytest.approx((100 * low, 100 * high), abs=0.01)
    assert everyone.ci_low < 75 < everyone.ci_high
    assert table.loc[("relation", "feces")].percent == 100
    assert table.loc[("relation", "blur")].made_recognised_percent == 50
    assert table.loc[("annotator", "2")].percent == 50
    assert table.loc[("annotator", "1")].balanced_percent == 100
    # All right: a bootstrap would have no width, and Wilson's takes every seed for one case.
    alone = table.loc[("annotator", "1")]
    low, high = proportion.proportion_confint(int(alone.seeds), int(alone.seeds), method="wilson")
    assert (alone.ci_low, alone.ci_high) == pytest.approx((100 * low, 100 * high), abs=0.01)
    mistaken = blind_tables(ratings)["taken_for_real.csv"]
    assert set(mistaken[mistaken["is"] == MADE]["taken_for_real_percent"]) <= {0.0, 50.0}
    report = report_study(tmp_path / "study", home=tmp_path, track=False)
    page = report.page.read_text(encoding="utf-8")
    assert "75.0 %" in page
    assert "61 %" in page
    assert "Biomedicines" in page


def test_mistakes_are_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    for typed, key in (
        (["blind=maybe"], "blind"),
        (["blind=true", "kind=pairs"], "kind"),
        (["blind=true", "training=2"], "training"),
        (["blind=true", "catch=0.1"], "catch"),
        (["blind=true", "real=nowhere"], "real"),
        (["real=."], "real"),
    ):
        with pytest.raises(UserMistakes) as caught:
            run_app(["study", "make", "suite=polyp_seg", *typed])
        assert [mistake.key for mistake in caught.value.mistakes] == [key]
    code = run_app(["study", "make", "suite=polyp_seg", "blind=true", "limit=2", "per_relation=2", "relations=[blur]"])
    assert code == 0
    with pytest.raises(UserMistakes) as caught:
        run_app(["study", "make", "--review", "studies/polyp_seg-blind"])
    assert "blind" in caught.value.mistakes[0].found

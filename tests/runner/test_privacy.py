"""Hashed ids: no file of a run names a seed, and only the names change."""

from __future__ import annotations

import hashlib
import hmac
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runner_helpers import go, records
from runner_parts import Dim, Picky, make_suite

from medtest.core.cases import Address, SeedRef, Verdict
from medtest.core.errors import UserMistakes
from medtest.runner.privacy.rules import KEY_VARIABLE, Scrubber, ShownNames, key_file, load_key
from medtest.runner.records.rows import FinishedCase, RowMaker
from medtest.runner.replaying.export import export_followups
from medtest.runner.replaying.replay import replay_case
from medtest.runner.reporting.outcome import Limits
from medtest.suite.model import Invocation, Privacy, Selection

HASHED = Privacy(seed_ids="hashed")


@pytest.fixture(autouse=True)
def _key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "keys" / "hash.key"))


def _suite(**options: Any) -> Any:
    return make_suite(seeds=2, relations={"picky": Picky, "dim": Dim}, one_patient=True, **options)


def test_no_file_names_a_seed_and_numbers_are_the_same(tmp_path: Path) -> None:
    plain = records(go(_suite(), tmp_path / "plain"))
    outcome = go(_suite(privacy=HASHED), tmp_path / "hashed", limits=Limits(samples=4))
    hashed = records(outcome)
    for path in outcome.systems[0].folder.rglob("*"):
        assert "patient" not in path.name
        if path.is_file() and path.suffix != ".png":
            assert b"patient-" not in path.read_bytes() and b"jane-doe" not in path.read_bytes(), path
    assert "patient" not in "".join(outcome.notices)
    same = [c for c in plain.columns if c not in ("seed_id", "cluster", "address", "reason", "elapsed_ms")]
    assert plain[same].equals(hashed[same])
    assert hashed["seed_id"].nunique() == 2 and hashed["cluster"].nunique() == 1
    row = hashed.relation.tolist().index("dim")
    shown, address = hashed.address[row], plain.address[row]
    assert shown == address.replace(plain.seed_id[row], hashed.seed_id[row]) != address
    assert str(replay_case(_suite(privacy=HASHED), Invocation(home=tmp_path / "hashed"), shown).address) == address
    assert hashed.reason[4].startswith("relation: RuntimeError: broken on")


@pytest.mark.parametrize("key", [None, b"k" * 32])
def test_metadata_columns_that_repeat_a_name_are_hashed_too(key: bytes | None) -> None:
    ref = SeedRef(
        dataset="d",
        seed_id="mueller-1",
        cluster="mueller",
        strata=(("site", "north"), ("file", "images/mueller-1.png")),
        locator="images/mueller-1.png",
    )
    names = ShownNames(key)
    oracle = make_suite(seeds=1).build_oracle()
    maker = RowMaker(
        suite=("s", "1"), groups={}, oracle=oracle, strata=("site", "file"), names=names, scrub=Scrubber(names)
    )
    nothing = dict.fromkeys(oracle.scores)
    case = FinishedCase(follow=None, sha256="", verdict=Verdict.PASS, scores=nothing, source_scores=nothing)
    row = maker.row("x", Address(dataset="d", seed_id="mueller-1"), ref, {}, "", case)
    assert row[-2] == "north"
    assert ("mueller" in row[-1]) is (key is None)
    assert ("mueller" in str(row)) is (key is None)


def test_the_hash_is_an_hmac_that_others_can_compute(tmp_path: Path) -> None:
    shown = records(go(_suite(privacy=HASHED), tmp_path))["seed_id"][0]
    key = key_file().read_bytes()
    expected = hmac.new(key, b"seed\0blobs\0patient-0000", hashlib.sha256).hexdigest()[:24]
    assert shown == expected


def test_hashed_records_resume_and_never_mix_with_plain_ones(tmp_path: Path) -> None:
    plain = go(_suite(), tmp_path)
    go(_suite(privacy=HASHED), tmp_path, limit=1)
    hashed = go(_suite(privacy=HASHED), tmp_path)
    assert hashed.systems[0].cases_executed == hashed.systems[0].planned / 2 + 2  # errors are run again
    assert hashed.systems[0].folder != plain.systems[0].folder
    key_file().unlink()
    other = go(_suite(privacy=HASHED), tmp_path)
    assert other.systems[0].folder not in (plain.systems[0].folder, hashed.systems[0].folder)


def test_a_report_s_hashed_address_chooses_and_replays(tmp_path: Path) -> None:
    suite = _suite(privacy=HASHED)
    frame = records(go(suite, tmp_path / "a"))
    shown = frame["seed_id"].iloc[-1]
    chosen = go(suite, tmp_path / "b", only=Selection(seeds=frozenset({shown})))
    assert set(records(chosen)["seed_id"]) == {shown}
    replay = replay_case(suite, Invocation(home=tmp_path), f"blobs/{shown}/dim_s5_f0_r0")
    assert replay.followup_sha256 == frame["followup_sha256"].iloc[-1]


def test_no_images_means_no_samples_and_no_export(tmp_path: Path) -> None:
    shown = go(_suite(), tmp_path, limits=Limits(samples=3)).systems[0].folder
    assert list((shown / "samples").iterdir())
    go(_suite(privacy=Privacy(images="none")), tmp_path, limits=Limits(samples=3))
    assert not list((shown / "samples").iterdir())
    with pytest.raises(UserMistakes, match="mistake"):
        export_followups(_suite(privacy=HASHED), Invocation(home=tmp_path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_key_is_for_its_owner_and_stays(tmp_path: Path) -> None:
    key = load_key(tmp_path)
    assert stat.S_IMODE(key_file().stat().st_mode) == 0o600 and len(key) == 64
    assert load_key(tmp_path) == key
    assert [p.name for p in key_file().parent.iterdir()] == ["hash.key"]


def test_a_key_among_the_outputs_or_too_short_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "outputs" / "x" / "key"))
    with pytest.raises(UserMistakes):
        load_key(tmp_path)
    short = tmp_path / "short"
    short.write_text("abc")
    monkeypatch.setenv(KEY_VARIABLE, str(short))
    with pytest.raises(UserMistakes, match="mistake") as caught:
        load_key(tmp_path)
    assert "at least 16 bytes" in str(caught.value)


NAME = st.text(st.characters(codec="utf-8", exclude_characters="/\x00", categories=("L", "N")), min_size=1, max_size=12)


@given(
    seed=NAME, cluster=NAME, before=st.sampled_from(["", "on ", "file '", "x/"]), after=st.sampled_from(["", "'", "."])
)
def test_reasons_lose_every_name_of_the_seed(seed: str, cluster: str, before: str, after: str) -> None:
    ref = SeedRef(dataset="d", seed_id=seed, cluster=cluster, locator=f"sub/{seed}.png")
    scrub = Scrubber(ShownNames(b"k" * 16))
    for secret in (seed, cluster, f"sub/{seed}.png"):
        shown = scrub.reason(f"{before}{secret}{after}", ref)
        words = {w for w in __import__("re").split(r"[^0-9A-Za-z]+", shown) if w}
        assert seed not in words or not seed.isascii()
        assert cluster not in words or not cluster.isascii()


def test_reasons_lose_paths_and_addresses_and_stay_short() -> None:
    scrub = Scrubber(ShownNames(), (("/data/clinic", "…"), ("/home/me", "~")))
    ref = SeedRef(dataset="d", seed_id="s")
    assert scrub.reason("no file /data/clinic/a/b.png", ref) == "no file …/a/b.png"
    assert scrub.reason("bad '/opt/x/y.so': <o at 0x7f00aa11bb22>", ref) == "bad '…/y.so': <o at 0x…>"
    assert scrub.reason(r"bad C:\Users\me\w.bin", ref) == "bad …/w.bin"
    assert scrub.reason("1/2 of 3/4 and a/b stay", ref) == "1/2 of 3/4 and a/b stay"
    assert scrub.reason("a\nb   c", ref) == "a b c"
    assert len(scrub.reason("word " * 1000, ref)) == 300

"""Commands in reports: as typed, without keys and home folders, and one for each job of a sweep."""

from __future__ import annotations

import pytest

from medtest.suite.commandline.command import job_tokens, typed_command


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (["suite=polyp_seg", "limit=2"], "python run.py suite=polyp_seg limit=2"),
        (["data=/mine/patients", "limit=2"], "python run.py data=~/patients limit=2"),
        (["data='/mine/my images'"], "python run.py 'data='\"'\"'~/my images'\"'\"''"),
        (["data=/minerals/x"], "python run.py data=/minerals/x"),
        (["data=/home/me/patients"], "python run.py data=/home/…/patients"),
        (["data=/Users/me"], "python run.py data=/Users/…"),
        (["data=../patients"], "python run.py data=../patients"),
        (["data=my images"], "python run.py 'data=my images'"),
        (["systems.v2.checkpoint=C:\\Users\\me\\a.pth"], "python run.py 'systems.v2.checkpoint=C:\\Users\\…\\a.pth'"),
        (["tracking.uri=https://me:secret@host"], "python run.py tracking.uri=URI"),
        (["base_url=https://me:pw@host/v1"], "python run.py base_url=https://…@host/v1"),
        (["base_url=https://me:p@w@host/v1"], "python run.py base_url=https://…@host/v1"),
        (["api_key=abc"], "python run.py api_key=…"),
        (
            ["+systems.v2={use: ssformer, checkpoint: /mine/a.pth}"],
            "python run.py '+systems.v2={use: ssformer, checkpoint: ~/a.pth}'",
        ),
        (["target=/mine/nets/my_net.py:segment", "name=v2"], "python run.py target=~/nets/my_net.py:segment name=v2"),
        (["--config-dir", "/mine/conf"], "python run.py --config-dir '~/conf'"),
    ],
)
def test_the_command_in_reports_is_what_was_typed_without_keys_and_homes(
    typed: list[str], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/mine")
    assert typed_command("python run.py", typed) == shown


def test_the_command_holds_no_path_where_ids_are_hashed() -> None:
    typed = ["data=/srv/Doe_Jane", "data='~/Doe'", "--config-dir=/srv/Doe", "+systems.v2={use: a, path: /srv/Doe}"]
    shown = typed_command("run", [*typed, "/srv/Doe", "base_url=https://doe.example"], hide_paths=True)
    assert shown == "run data=PATH data=PATH --config-dir=PATH +systems.v2=… PATH base_url=…"


@pytest.mark.parametrize(
    ("typed", "overrides", "own"),
    [
        (
            ["-m", "suite=a,b", "model=[pranet,ssformer]", "seed=1,2"],
            ["suite=b", "model=[pranet,ssformer]", "++seed=2"],
            ["suite=b", "model=[pranet,ssformer]", "seed=2"],
        ),
        (
            ["--multirun", "suite=glob(*)", "relations=[blur,text],[blur]", "~relations.text"],
            ["suite=polyp_seg", "++chosen.relations=[blur]", "++without=['relations.text']"],
            ["suite=polyp_seg", "relations=[blur]", "~relations.text"],
        ),
        (
            ["-m", "relations.3d.severities=[1],[2,3]", "data=/a b,/c", "hydra.sweep.dir=x", "limit=2"],
            ["++relations._id_3d.severities=[2,3]", "++data='/a b'", "++limit=2"],
            ["relations.3d.severities=[2,3]", "data=/a b", "limit=2"],
        ),
        (["-m", "only=relation:blur,relation:text"], ["++only='relation:text'"], ["only=relation:text"]),
        (["-m", "--config-dir", "mine", "seed=1"], ["++seed=1"], ["--config-dir", "mine", "seed=1"]),
    ],
)
def test_each_job_of_a_sweep_has_its_own_command(typed: list[str], overrides: list[str], own: list[str]) -> None:
    assert job_tokens(typed, overrides) == own

"""Workers on the nodes of a Ray cluster give the records of local ones, even if some of them die."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
from crafting_parts import crafting_suite
from question_parts import question_suite
from ray_clusters import Nodes, Running, nodes, on_cluster, wait_for_rows
from runner_helpers import QUICK, assert_equal_records, go, records
from runner_parts import make_suite
from s3_server import Bucket

from medtest.core.errors import UserMistakes
from medtest.phantoms.colon import make_colon
from medtest.runner.reporting.outcome import Limits
from medtest.runner.run import run_suite
from medtest.suite.compose import load
from medtest.suite.data_url import fetched
from medtest.suite.model import Invocation
from medtest.suite.schema import ExecutorBlock

pytestmark = pytest.mark.slow
FREQUENT = Limits(samples=0, shard_rows=20, shard_seconds=0.5, send_seconds=0.1)


@pytest.fixture(scope="module")
def two() -> Iterator[Nodes]:
    with nodes(2) as cluster:
        yield cluster


def test_records_are_those_of_local_workers(two: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from medtest.runner.cluster import ray_cluster

    caches: list[Path] = []
    begin = ray_cluster.RayCluster.begin
    monkeypatch.setattr(
        ray_cluster.RayCluster,
        "begin",
        lambda self, job, facts: caches.append(Path(facts.cache)) or begin(self, job, facts),
    )
    suite = make_suite(seeds=6, systems={"bright": {}, "odd": {"fault": "nan", "when": "dim2_s3"}})
    local = go(suite, tmp_path / "local")
    far = on_cluster(suite, tmp_path / "far", two.address, limits=Limits(samples=3))
    assert far.workers == 2
    assert far.notices == local.notices
    for number in range(2):
        assert_equal_records(records(far, number), records(local, number))
    assert list(far.systems[0].folder.glob("samples/*.png")), "pictures are drawn on nodes that share the folder"
    assert len(caches) == 2
    assert not any(cache.exists() for cache in caches), "nodes keep nothing"


@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.long)])
def test_a_node_that_is_killed_in_the_middle_costs_nothing_but_time(times: int, tmp_path: Path) -> None:
    count = 30 + 20 * times
    suite = make_suite(seeds=count, systems={"bright": {"pause": 0.2}})
    local = go(make_suite(seeds=count), tmp_path / "local")
    with nodes(2) as cluster:
        running = Running(lambda: on_cluster(suite, tmp_path / "far", cluster.address, limits=FREQUENT))
        row_count = 0
        for _ in range(times):
            row_count = wait_for_rows(running, tmp_path / "far", row_count + 40)
            cluster.wait_for_worker()
            cluster.kill_oldest()
            cluster.add()
        running.ended(240)
    assert running.error is None, running.error
    far = running.outcome
    assert far is not None
    assert any("was lost with its node" in notice for notice in far.notices), far.notices
    assert_equal_records(records(far), records(local))


def test_an_address_without_a_cluster_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(UserMistakes, match=r"executor\.address"):
        on_cluster(make_suite(), tmp_path, "127.0.0.1:9")


def test_more_than_a_node_has_is_one_message(two: Nodes, tmp_path: Path) -> None:
    cluster = ExecutorBlock(address=two.address, cpus=64.0)
    with pytest.raises(UserMistakes, match=r"Lower executor\.cpus"):
        run_suite(make_suite(), Invocation(home=tmp_path, quiet=True, cluster=cluster), limits=QUICK)


def test_systems_that_misbehave_on_a_node_are_blamed_as_on_this_machine(two: Nodes, tmp_path: Path) -> None:
    """A crash, a call that hangs: cases behind them in the queue are not blamed."""
    systems = {
        "crashes": {"fault": "segfault", "when": "patient-0001/dim_s3"},
        "hangs": {"fault": "hang", "when": "patient-0001/dim_s2"},
    }
    suite = make_suite(seeds=3, systems=systems)
    local = go(suite, tmp_path / "local", batch_seconds=3.0)
    far = on_cluster(suite, tmp_path / "far", two.address, batch_seconds=3.0)
    for number in range(2):
        assert_equal_records(records(far, number), records(local, number))
    assert set(records(far, 0)["verdict"]) > {"ERROR"}


def test_files_that_nodes_keep_come_back_where_the_folder_is_not_shared(
    two: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from medtest.runner.cluster import ray_cluster

    suite = crafting_suite()
    local = go(suite, tmp_path / "local")
    monkeypatch.setattr(ray_cluster, "_probe_content", lambda path: path.write_text("of another run") and "of this one")
    far = on_cluster(suite, tmp_path / "far", two.address, limits=Limits(samples=2))
    assert_equal_records(records(far), records(local))
    images = [
        {path.name: path.read_bytes() for path in outcome.systems[0].folder.glob("crafted/images/*/*.png")}
        for outcome in (far, local)
    ]
    assert images[0]
    assert images[0] == images[1]
    assert list(far.systems[0].folder.glob("samples/*.png")), "pictures are drawn on this machine"


def test_systems_over_an_api_stay_in_the_driver(tmp_path: Path) -> None:
    outcome = on_cluster(question_suite(), tmp_path, "127.0.0.1:9")  # no cluster is contacted
    assert any("keys are not sent" in notice for notice in outcome.notices)
    assert outcome.systems[0].finished


def test_a_node_that_shares_nothing_fetches_the_data_itself(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from medtest.runner.cluster import ray_cluster

    for number in range(3):
        colon = make_colon(np.random.default_rng(number), size=(96, 96), polyps=1)
        for kind, pixels in {"images": colon.image, "masks": colon.mask.astype(np.uint8) * 255}.items():
            bucket.put(f"colon/{kind}/{number}.png", cv2.imencode(".png", pixels)[1].tobytes())
    url = "s3://hospital/colon"
    data = fetched(url, tmp_path / "here", most=2**30)
    suite = load("polyp_seg_folder", ["model=pranet", "relations=[contrast]", "prepare.size=96"]).suite
    local = go(suite, tmp_path / "local", data=data, threads=1)  # sums of a network round by their number
    monkeypatch.setattr(ray_cluster, "_probe_content", lambda path: path.write_text("of another run") and "of this one")
    begins = []
    begin = ray_cluster.RayCluster.begin
    monkeypatch.setattr(
        ray_cluster.RayCluster, "begin", lambda *arguments: begins.append(begin(*arguments)) or begins[-1]
    )
    with nodes(1) as cluster:  # it has the credentials of the environment in which it was started
        far = on_cluster(suite, tmp_path / "far", cluster.address, data=data, data_url=url)
    assert_equal_records(records(far), records(local))
    assert {message.data for message in begins} == {url}
    assert "hospital" not in "".join(far.notices)

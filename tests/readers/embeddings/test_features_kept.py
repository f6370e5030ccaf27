"""Features are stored by picture and network: embedded once, checked when read, computed in a separate process."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from depicted_records import keep_pictures, needs_weights, picture

from medtest.core.cases import image_sha256
from medtest.core.errors import MedtestError
from medtest.core.files.by_content import PictureFiles
from medtest.core.records import PICTURES
from medtest.readers.embeddings.bundled import BundledEmbedding
from medtest.readers.embeddings.hashes import HASH, perceptual_hash
from medtest.readers.embeddings.kept import FeatureFile, KeptFeatures, net_key
from medtest.readers.embeddings.work import EmbeddingJob, PictureJob, by_content
from medtest.results.fidelity.embedding import embed


def test_rows_come_back_in_the_order_of_names_without_altered_ones(tmp_path: Path) -> None:
    rows = {f"picture {n}": (np.full(3, n, np.float32), np.full(2, -n, np.float32)) for n in range(1500)}
    with FeatureFile(tmp_path / "features.sqlite") as file:
        file.keep("net", rows)
        names = [f"picture {n}" for n in (4, 2, 4, 1499)]
        assert file.known("net", [*names, "other"]) == set(names)
        assert file.known("other", names) == set()
        features = KeptFeatures(file, "net", names)
        assert features.rows(np.arange(4))[:, 0].tolist() == [4, 2, 4, 1499]
        assert KeptFeatures(file, "net", names, scores=True).dimension == 2
        assert np.concatenate(list(features.chunks())).shape == (4, 3)
    with sqlite3.connect(tmp_path / "features.sqlite") as db:
        db.execute("UPDATE features SET features=? WHERE picture='picture 2'", (np.full(3, 9, np.float32).tobytes(),))
    with FeatureFile(tmp_path / "features.sqlite") as file:
        assert set(file.read("net", names)) == {"picture 4", "picture 1499"}


def test_large_features_are_read_in_chunks_and_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("medtest.readers.embeddings.kept._HELD", 100)
    rows = {f"{n}": (np.full(4, n, np.float32), np.zeros(0, np.float32)) for n in range(2500)}
    with FeatureFile(tmp_path / "features.sqlite") as file:
        file.keep("net", rows)
        features = KeptFeatures(file, "net", list(rows))
        assert features._held is None
        assert [len(chunk) for chunk in features.chunks()] == [1024, 1024, 452]
        assert np.concatenate(list(features.chunks()))[:, 0].tolist() == list(range(2500))


def _job(tmp_path: Path, names: list[str], **others: object) -> EmbeddingJob:
    return EmbeddingJob(
        store=str(tmp_path / "features.sqlite"),
        nets=[{"net": "bundled"}],
        pictures=[PictureJob(name=name) for name in names],
        folder=str(tmp_path / PICTURES),
        device="cpu",
        **others,  # type: ignore[arg-type]
    )


@needs_weights
@pytest.mark.slow
def test_embedded_pictures_are_not_embedded_again_and_missing_ones_are_reported(tmp_path: Path) -> None:
    images = [picture(n) for n in range(5)]
    names = [image_sha256(image) for image in images]
    keep_pictures(tmp_path, images)
    PictureFiles(tmp_path / PICTURES).path("images", names[3]).write_bytes(b"nothing")
    messages: list[str] = []
    first = embed(_job(tmp_path, names[:4]), messages.append)
    assert first.embedded == 3
    assert list(first.failed) == [names[3]]
    assert messages[-1] == "4 of 4 pictures are embedded"
    second = embed(_job(tmp_path, [*names[:3], names[4]]))
    assert second.embedded == 1
    network = BundledEmbedding()
    network.open(device="cpu", threads=1)
    with FeatureFile(tmp_path / "features.sqlite") as file:
        rows = file.read(net_key(BundledEmbedding().fingerprint()), names)
        assert set(rows) == {*names[:3], names[4]}
        np.testing.assert_allclose(rows[names[4]][0], network.embed([images[4]]).features[0], rtol=1e-3, atol=1e-4)
        content = file.read(HASH, names)[names[0]][0]
        assert content.astype(np.uint8).tobytes() == perceptual_hash(images[0])


@needs_weights
def test_nothing_is_started_where_all_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FeatureFile(tmp_path / "features.sqlite") as file:
        for net in (net_key(BundledEmbedding().fingerprint()), HASH):
            file.keep(net, {"a": (np.zeros(3, np.float32), np.zeros(1, np.float32))})
    monkeypatch.setattr("medtest.results.fidelity.embedding.Worker", None)
    assert embed(_job(tmp_path, ["a"])).embedded == 0


@pytest.mark.slow
def test_a_network_that_cannot_be_loaded_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "weights.pth").write_bytes(b"no weights")
    job = EmbeddingJob(
        store=str(tmp_path / "features.sqlite"),
        nets=[{"net": "inception", "place": str(tmp_path / "weights.pth")}],
        pictures=[PictureJob(name="a")],
    )
    with pytest.raises(MedtestError, match=r"weights\.pth"):
        embed(job)


@needs_weights
@pytest.mark.slow
def test_a_process_that_dies_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MedtestError, match="the process ended with exit code 1"):
        embed(replace(_job(tmp_path, ["a"]), device="no such device"))


def test_files_are_known_by_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(b"same")
    (tmp_path / "two.png").write_bytes(b"same")
    (tmp_path / "other.png").write_bytes(b"other")
    files = by_content([tmp_path / name for name in ("one.png", "two.png", "other.png")])
    assert files[0].name == files[1].name != files[2].name
    assert files[0].name.startswith("file:")

"""Folders behind a URL: fetched once from a real S3 server, bounded, and refused with one message."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from s3_server import Bucket

from medtest.core.errors import MedtestError, UserMistakes
from medtest.suite import data_url
from medtest.suite.data_url import fetched, is_url, url_mistake

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("memory://seeds", "worker processes"),
        ("file:///data", "the path alone"),
        ("ftp://host/data", "s3://"),
        ("simplecache::s3://bucket/data", "s3://"),
        ("s3://KEY:SECRET@bucket/data", "environment only"),
        ("s3://bucket/data?X-Amz-Signature=abc", "environment only"),
        ("s3:///data", "PLACE/FOLDER"),
    ],
)
def test_urls_that_are_not_read_are_refused_with_the_reason(text: str, why: str) -> None:
    assert is_url(text)
    mistake = url_mistake(text)
    assert mistake is not None
    assert why in str(mistake)
    assert "SECRET" not in str(mistake)
    assert "Signature" not in str(mistake)


@pytest.mark.parametrize("text", ["/data", "data", "~/data", "C:\\data", "./s3/x"])
def test_paths_are_no_urls(text: str) -> None:
    assert not is_url(text)


def test_a_store_whose_package_is_not_installed_is_one_message(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gcsfs", None)  # its import fails as if it were not installed
    with pytest.raises(UserMistakes, match="pip install gcsfs"):
        fetched("gs://bucket/data", tmp_path / "data", most=GIB)


def _held(folder: Path) -> dict[str, bytes]:
    names = [path for path in folder.rglob("*") if path.is_file() and path.name != ".fetched.json"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in names}


def test_a_folder_of_a_bucket_is_fetched_once_and_kept_as_the_bucket_is(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("set/images/a.png", b"first")
    bucket.put("set/images/deep/b.png", b"second")
    bucket.put("other/c.png", b"not this one")
    folder = fetched("s3://hospital/set", tmp_path / "data", most=GIB)
    assert _held(folder) == {"images/a.png": b"first", "images/deep/b.png": b"second"}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    times = {path: path.stat().st_mtime_ns for path in folder.rglob("*.png")}
    fetched("s3://hospital/set", folder, most=GIB)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.png")} == times, "nothing is fetched again"
    bucket.put("set/images/a.png", b"third")  # the same number of bytes
    bucket.client.delete_object(Bucket="hospital", Key="set/images/deep/b.png")
    fetched("s3://hospital/set", folder, most=GIB)
    assert _held(folder) == {"images/a.png": b"third"}


def test_the_size_on_disk_is_bounded(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("set/a.png", bytes(1000))
    bucket.put("set/b.png", bytes(1000))
    with pytest.raises(UserMistakes, match=r"executor\.cache_gb"):
        fetched("s3://hospital/set", tmp_path / "data", most=1999)
    assert _held(tmp_path / "data") == {}
    assert len(_held(fetched("s3://hospital/set", tmp_path / "data", most=2000))) == 2


def test_names_that_lead_elsewhere_are_refused(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("set/../../escaped.png", b"x")
    bucket.put("set/a\\b.png", b"x")
    with pytest.raises(MedtestError):
        fetched("s3://hospital/set", tmp_path / "in" / "data", most=GIB)
    assert not list(tmp_path.rglob("escaped.png"))
    assert not list(tmp_path.rglob("*b.png"))


def test_missing_and_forbidden_buckets_are_one_message_without_secrets(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import s3fs

    with pytest.raises(UserMistakes, match="s3://hospital/nothing"):
        fetched("s3://hospital/nothing", tmp_path / "data", most=GIB)
    with pytest.raises(UserMistakes, match="nobody"):
        fetched("s3://nobody/here", tmp_path / "data", most=GIB)
    s3fs.S3FileSystem.clear_instance_cache()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UserMistakes, match="expired") as error:
        fetched("s3://hospital/set", tmp_path / "data", most=GIB)
    assert "testing" not in str(error.value)
    assert os.environ.get("AWS_SECRET_ACCESS_KEY") is None


def test_a_folder_has_at_most_so_many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    class Store:
        def find(self, root: str, *, detail: bool) -> dict[str, dict[str, object]]:
            return {f"{root}/{name}.png": {"type": "file", "size": 3} for name in names}

    monkeypatch.setattr(data_url, "_MOST_FILES", 3)
    names = ["a", "b", "c"]
    assert list(data_url._listing(Store(), "hospital/set", "s3://hospital/set", "data")) == ["a.png", "b.png", "c.png"]
    names.append("d")
    with pytest.raises(MedtestError, match="more than 3 files"):
        data_url._listing(Store(), "hospital/set", "s3://hospital/set", "data")

"""An S3 server of moto's on this machine, for tests; they are skipped where moto or s3fs is not installed."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest


class Bucket:
    """A bucket of a moto server on this machine."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def put(self, name: str, content: bytes) -> None:
        self.client.put_object(Bucket="hospital", Key=name, Body=content)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    import boto3
    import s3fs

    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    urllib.request.urlopen(f"http://{host}:{port}/moto-api/reset", data=b"")
    client = boto3.client("s3")
    client.create_bucket(Bucket="hospital")
    s3fs.S3FileSystem.clear_instance_cache()
    try:
        yield Bucket(client)
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        server.stop()

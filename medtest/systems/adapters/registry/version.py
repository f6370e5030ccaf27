"""Model versions of MLflow's registry: lookup by address, files downloaded once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from filelock import FileLock

from medtest.api.redact import redact
from medtest.core.errors import Mistake
from medtest.core.files.paths import TYPED_STORE, home, store_uri

ALLOWED = "models:/NAME/VERSION, or models:/NAME@ALIAS"
_URI = re.compile(r"models:/(?P<name>[^/@]+)(?:/(?P<version>\d+)|@(?P<alias>[^/@]+))")
_FOLDER = Path("outputs") / ".models"
_DESCRIPTION = "MLmodel"
_ENVIRONMENT = frozenset(
    (_DESCRIPTION, "registered_model_meta", "conda.yaml", "python_env.yaml", "requirements.txt", "input_example.json")
)
"""Files about origin and environment, which do not influence answers."""
_MOST_TEXT = 4 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class ModelVersion:
    """Version and its files.

    Attributes:
        name: Name of the registered model.
        version: A number, as text.
        folder: Local folder of its files.
        model_id: Id of MLflow's logged model, "" if the registry names none.
        flavors: Content of ``MLmodel`` for each flavour.
        shape: Shape of its only input according to its signature: -1 for any; () if not stated.
    """

    name: str
    version: str
    folder: Path
    model_id: str
    flavors: Mapping[str, Mapping[str, Any]]
    shape: tuple[int, ...] = ()

    def sha256(self) -> str:
        """Return one SHA-256 of the model's files and flavours, independent of author and time of registration."""
        digest = hashlib.sha256(json.dumps(self.flavors, sort_keys=True, default=str).encode())
        for path in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            place = path.relative_to(self.folder).as_posix()
            if place not in _ENVIRONMENT:
                with path.open("rb") as file:
                    digest.update(f"{place}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
        return digest.hexdigest()


def version_of(uri: str, *, where: str) -> ModelVersion:
    """Return the version at an address, with its files downloaded to ``outputs/.models`` unless present.

    Args:
        uri: In the format of :data:`ALLOWED`; an alias is resolved.
        where: The system, for messages.

    Raises:
        UserMistakes: The address is invalid, the registry does not answer or refuses, or there is no such version.
    """
    named = _URI.fullmatch(uri)
    if named is None:
        fix = "a version by its number: 'latest' would be another model tomorrow" if "latest" in uri else ""
        raise Mistake(where=where, key="uri", found=uri or "nothing", allowed=ALLOWED, fix=fix).as_error()
    try:
        with _short_retries():
            return _fetched(named["name"], named["version"], named["alias"])
    except Exception as error:
        text = redact(" ".join(str(error).split()))[:300]
        raise Mistake(
            where=where,
            key="uri",
            found=f"{uri}: {type(error).__name__}: {text}",
            allowed="a version in the registry that tracking.uri or MLFLOW_TRACKING_URI names",
            fix="Check that it is there (MLflow's page of models) and that you can reach the server.",
        ).as_error() from error


def _fetched(name: str, version: str | None, alias: str | None) -> ModelVersion:
    import mlflow
    from mlflow import MlflowClient

    store = store_uri(given=TYPED_STORE.get())
    registry = os.environ.get("MLFLOW_REGISTRY_URI") or store
    client = MlflowClient(tracking_uri=store, registry_uri=registry)
    version_info = (
        client.get_model_version_by_alias(name, alias) if alias else client.get_model_version(name, str(version))
    )
    number = str(version_info.version)
    key = f"{_plain(registry)}\n{name}\n{number}\n{version_info.source}\n{version_info.creation_timestamp}"
    folder = home() / _FOLDER / hashlib.sha256(key.encode()).hexdigest()[:24]
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".draft-") as draft:
                download = mlflow.artifacts.download_artifacts(
                    artifact_uri=client.get_model_version_download_uri(name, number),
                    dst_path=str(Path(draft) / "model"),
                    tracking_uri=store,  # MLflow's own setting would apply to the whole process and its workers
                )
                shutil.move(download.rstrip("/"), folder)
    described = _description(folder / _DESCRIPTION)
    return ModelVersion(
        name=name,
        version=number,
        folder=folder,
        model_id=str(getattr(version_info, "model_id", None) or described.get("model_id") or ""),
        flavors=described["flavors"],
        shape=_shape(described),
    )


def _description(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MOST_TEXT:
        raise ValueError(f"{path.name} is larger than a description of a model can be")
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    flavors = content.get("flavors") if isinstance(content, dict) else None
    if not isinstance(flavors, dict) or not all(isinstance(flavor, dict) for flavor in flavors.values()):
        raise ValueError(f"{path.name} names no flavour")
    return dict(content)


def _shape(described: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape of a model's only input tensor in its signature; () if not stated."""
    try:
        (only,) = json.loads(described["signature"]["inputs"])
        return tuple(int(length) for length in only["tensor-spec"]["shape"])
    except (KeyError, TypeError, ValueError):
        return ()


def _plain(uri: str) -> str:
    """Return an address without user information."""
    parts = urlsplit(uri)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


@contextlib.contextmanager
def _short_retries() -> Iterator[None]:
    """Limit MLflow's retries unless the user has configured them."""
    variables = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false"}
    added = [name for name in variables if name not in os.environ]
    os.environ.update({name: variables[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)

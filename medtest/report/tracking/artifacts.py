"""Inputs and files of a run in MLflow; rarely opened files share an archive, since each file costs a request."""

from __future__ import annotations

import contextlib
import json
import tempfile
import uuid
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.deferred import pd
from medtest.report.tracking.child import NOT_ALLOWED
from medtest.report.tracking.sheets import sheets

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModelInput

    from medtest.report.tracking.child import Child

ARCHIVE = "files.zip"
"""Artifact that holds :attr:`medtest.report.tracking.Child.archived`."""
_LOGGED_TABLES, _LOGGED_IMAGES = "mlflow.loggedArtifacts", "mlflow.loggedImages"
"""Tags that announce tables and pictures to MLflow's pages."""
_TABLES = "tables/"
"""Artifact folder of :attr:`medtest.report.tracking.Child.tables`."""
_IMAGES = "images"
_THUMBNAIL = 256
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def log_inputs(client: MlflowClient, run: Any, child: Child) -> None:
    """Log the seeds as a data set, and the tested logged model, unless the run holds both."""
    held = {entry.dataset.digest for entry in run.inputs.dataset_inputs} if run.inputs else set()
    seeds = [] if child.seeds is None or child.seeds.empty else [_seeds(child, child.seeds)]
    new = [entry for entry in seeds if entry.dataset.digest not in held]
    models = _models(client, child.model_id)
    if new or models:
        client.log_inputs(run.info.run_id, datasets=new or None, models=models or None)


def _seeds(child: Child, table: pd.DataFrame) -> Any:
    from mlflow.data import pandas_dataset
    from mlflow.data.code_dataset_source import CodeDatasetSource
    from mlflow.entities import DatasetInput, InputTag

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = pandas_dataset.from_pandas(
            table,
            # MLflow's default source would record the script's path and the git commit.
            source=CodeDatasetSource(tags={"medtest.seeds": child.seeds_name}),
            name=child.seeds_name,
            digest=child.seeds_digest[:36] or None,
        )
        return DatasetInput(dataset._to_mlflow_entity(), [InputTag("mlflow.data.context", "seeds")])


def _models(client: MlflowClient, model_id: str) -> list[LoggedModelInput]:
    """Return the logged model that a run is linked to, if this store holds it."""
    from mlflow.entities import LoggedModelInput
    from mlflow.exceptions import MlflowException

    if not model_id:
        return []
    try:
        client.get_logged_model(model_id)
    except MlflowException:  # the registry may be on another server
        return []
    return [LoggedModelInput(model_id)]


def file_tags(child: Child, held: Mapping[str, str]) -> dict[str, str]:
    """Return the tags by which MLflow's pages show a child's tables and pictures.

    Args:
        child: The child run.
        held: Tags of the run.
    """
    gone = _gone(child, held)
    logged = [entry for entry in _logged(held) if entry.get("path") not in gone]
    paths = {entry.get("path") for entry in logged}
    tables = logged + [{"path": name, "type": "table"} for name in child.tables if name not in paths]
    tags = {_LOGGED_TABLES: json.dumps(tables)} if tables or gone else {}
    return tags | ({_LOGGED_IMAGES: "True"} if child.pictures else {})


def _logged(held: Mapping[str, str]) -> list[dict[str, Any]]:
    return list(json.loads(held.get(_LOGGED_TABLES) or "[]"))


def _gone(child: Child, held: Mapping[str, str]) -> set[str]:
    """Return the tables of an earlier upload that the child no longer has."""
    paths = {str(entry.get("path")) for entry in _logged(held)}
    return {path for path in paths if path.startswith(_TABLES) and path not in child.tables}


@contextlib.contextmanager
def staged(child: Child, run: Any) -> Iterator[list[tuple[Path, str]]]:
    """Yield a child's files, ready for upload, with the artifact folder of each; they are removed afterwards.

    File names are derived from the content, so that a repeated upload replaces them.

    Args:
        child: The child run.
        run: Its MLflow run.
    """
    with tempfile.TemporaryDirectory(prefix="medtest-") as name:
        folder = Path(name)
        files = [(path, place) for path, place in child.artifacts if path.is_file()]
        files += [_table(folder, name, _content(table)) for name, table in child.tables.items()]
        # An artifact cannot be removed from every kind of store: a table that is gone becomes an empty one.
        files += [_table(folder, name, {"columns": [], "data": []}) for name in sorted(_gone(child, run.data.tags))]
        files += _pictures(folder, child.pictures, run)
        archived = [(path, place) for path, place in child.archived if path.is_file()]
        if archived:
            files.append((_archive(folder / ARCHIVE, archived), ""))
        yield files


def send_files(client: MlflowClient, run: Any, files: Sequence[tuple[Path, str]]) -> None:
    """Upload files to a run, with one request each.

    Args:
        client: Client of the store.
        run: The run as returned by the store; with the id alone, the client would ask again for the artifact folder.
        files: Files and the artifact folder of each.
    """
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    if client.tracking_uri.startswith("databricks"):  # the address from Databricks lacks the profile
        for path, place in files:
            client.log_artifact(run.info.run_id, str(path), place or None)
        return
    store: Any = get_artifact_repository(run.info.artifact_uri, tracking_uri=client.tracking_uri)
    for path, place in files:
        store.log_artifact(str(path), place or None)


def _content(table: pd.DataFrame) -> dict[str, Any]:
    plain = table.astype(object).where(table.notna(), None)
    return {"columns": [str(column) for column in plain.columns], "data": plain.to_numpy().tolist()}


def _table(folder: Path, name: str, content: Mapping[str, Any]) -> tuple[Path, str]:
    """Write a table in the format of MLflow's ``log_table``, which would append to an existing one."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, default=str), encoding="utf-8")
    return path, Path(name).parent.as_posix()


def _pictures(folder: Path, pictures: Sequence[tuple[str, Path]], run: Any) -> list[tuple[Path, str]]:
    """Draw the sheets of pictures, each with its thumbnail, under the names expected by MLflow's pages."""
    files: list[tuple[Path, str]] = []
    (folder / _IMAGES).mkdir()
    for group, step, image in sheets(pictures):
        key = NOT_ALLOWED.sub("_", group)
        own = uuid.uuid5(uuid.NAMESPACE_URL, f"{run.info.run_id}/{key}/{step}")
        stem = f"{key.replace('/', '~')}+step+{step}+timestamp+{run.info.start_time}+{own}"
        shown, small = folder / _IMAGES / f"{stem}.png", folder / _IMAGES / f"{stem}+compressed.webp"
        image.save(shown, compress_level=1)  # photographs hardly grow, and a second is saved
        image.thumbnail((_THUMBNAIL, _THUMBNAIL))
        image.save(small)
        files += [(shown, _IMAGES), (small, _IMAGES)]
    return files


def _archive(target: Path, files: Sequence[tuple[Path, str]]) -> Path:
    """Pack files; pictures and Parquet are already compressed and are stored as they are."""
    with zipfile.ZipFile(target, "w") as archive:
        for path, place in files:
            entry = zipfile.ZipInfo(f"{place}/{path.name}" if place else path.name, date_time=_ZIP_TIME)
            packed = path.suffix in {".png", ".jpg", ".webp", ".parquet", ".npz", ".gz"}
            entry.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return target

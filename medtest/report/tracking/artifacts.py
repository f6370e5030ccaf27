"""The inputs and the files of a run in MLflow: each file costs a request, so that what is seldom opened shares one."""

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

from medtest.report.tracking.params import NOT_ALLOWED
from medtest.report.tracking.sheets import sheets

if TYPE_CHECKING:
    import pandas as pd
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModelInput

    from medtest.report.tracking.child import Child, LoggedPicture

ARCHIVE = "files.zip"
"""The artifact that holds :attr:`medtest.report.tracking.Child.archived`."""
_LOGGED_TABLES, _LOGGED_IMAGES = "mlflow.loggedArtifacts", "mlflow.loggedImages"
"""Tags by which MLflow's pages know of tables and of pictures."""
_IMAGES = "images"
_THUMBNAIL = 256
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def log_inputs(client: MlflowClient, run: Any, child: Child) -> None:
    """Log the seeds as a data set, and the logged model that was tested, unless the run holds both."""
    held = {one.dataset.digest for one in run.inputs.dataset_inputs} if run.inputs else set()
    seeds = [] if child.seeds is None or child.seeds.empty else [_seeds(child, child.seeds)]
    new = [one for one in seeds if one.dataset.digest not in held]
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
            # a source of our own: MLflow's default would note the script's path and the git commit
            source=CodeDatasetSource(tags={"medtest.seeds": child.seeds_name}),
            name=child.seeds_name,
            digest=child.seeds_digest[:36] or None,
        )
        return DatasetInput(dataset._to_mlflow_entity(), [InputTag("mlflow.data.context", "seeds")])


def _models(client: MlflowClient, model_id: str) -> list[LoggedModelInput]:
    """Return the logged model that a run is linked to, where this store holds it."""
    from mlflow.entities import LoggedModelInput
    from mlflow.exceptions import MlflowException

    if not model_id:
        return []
    try:
        client.get_logged_model(model_id)
    except MlflowException:  # the registry may be another server's
        return []
    return [LoggedModelInput(model_id)]


def file_tags(child: Child, held: Mapping[str, str]) -> dict[str, str]:
    """Return the tags by which MLflow's pages show a child's tables and pictures.

    Args:
        child: What is written.
        held: Tags that the run has.
    """
    known = json.loads(held.get(_LOGGED_TABLES) or "[]")
    paths = {entry.get("path") for entry in known}
    tables = known + [{"path": name, "type": "table"} for name in child.tables if name not in paths]
    tags = {_LOGGED_TABLES: json.dumps(tables)} if tables else {}
    return tags | ({_LOGGED_IMAGES: "True"} if child.pictures else {})


@contextlib.contextmanager
def staged(child: Child, run: Any) -> Iterator[list[tuple[Path, str]]]:
    """Yield a child's files, ready to be sent, with the artifact folder of each; they are gone afterwards.

    A name says what a file holds, so that sending it again replaces it.

    Args:
        child: What is written.
        run: Its run.
    """
    with tempfile.TemporaryDirectory(prefix="medtest-") as name:
        folder = Path(name)
        files = [(path, place) for path, place in child.artifacts if path.is_file()]
        files += [_table(folder, name, table) for name, table in child.tables.items()]
        files += _pictures(folder, child.pictures, run)
        archived = [(path, place) for path, place in child.archived if path.is_file()]
        if archived:
            files.append((_archive(folder / ARCHIVE, archived), ""))
        yield files


def send_files(client: MlflowClient, run: Any, files: Sequence[tuple[Path, str]]) -> None:
    """Send files to a run, in one request each.

    Args:
        client: The store's.
        run: The run as the store gave it; a client that is told its id alone asks once more where its files go.
        files: Files and the artifact folder of each.
    """
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    if client.tracking_uri.startswith("databricks"):  # there the address lacks the profile
        for path, place in files:
            client.log_artifact(run.info.run_id, str(path), place or None)
        return
    store: Any = get_artifact_repository(run.info.artifact_uri, tracking_uri=client.tracking_uri)
    for path, place in files:
        store.log_artifact(str(path), place or None)


def _table(folder: Path, name: str, table: pd.DataFrame) -> tuple[Path, str]:
    """Write a table as MLflow's ``log_table`` does, which would append to one that is there."""
    plain = table.astype(object).where(table.notna(), None)
    content = {"columns": [str(column) for column in plain.columns], "data": plain.to_numpy().tolist()}
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, default=str), encoding="utf-8")
    return path, Path(name).parent.as_posix()


def _pictures(folder: Path, pictures: Sequence[LoggedPicture], run: Any) -> list[tuple[Path, str]]:
    """Draw the sheets of pictures, each with its thumbnail, under the names by which MLflow's pages find them."""
    files: list[tuple[Path, str]] = []
    (folder / _IMAGES).mkdir()
    for sheet in sheets(pictures):
        key = NOT_ALLOWED.sub("_", sheet.key)
        own = uuid.uuid5(uuid.NAMESPACE_URL, f"{run.info.run_id}/{key}/{sheet.step}")
        stem = f"{key.replace('/', '~')}+step+{sheet.step}+timestamp+{run.info.start_time}+{own}"
        shown, small = folder / _IMAGES / f"{stem}.png", folder / _IMAGES / f"{stem}+compressed.webp"
        sheet.image.save(shown, compress_level=1)  # photographs hardly grow, and a second is saved
        sheet.image.thumbnail((_THUMBNAIL, _THUMBNAIL))
        sheet.image.save(small)
        files += [(shown, _IMAGES), (small, _IMAGES)]
    return files


def _archive(target: Path, files: Sequence[tuple[Path, str]]) -> Path:
    """Pack files; pictures and Parquet are compressed already."""
    with zipfile.ZipFile(target, "w") as archive:
        for path, place in files:
            entry = zipfile.ZipInfo(f"{place}/{path.name}" if place else path.name, date_time=_ZIP_TIME)
            packed = path.suffix in {".png", ".jpg", ".webp", ".parquet", ".npz", ".gz"}
            entry.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return target

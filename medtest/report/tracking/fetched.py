"""Download of a tracked run's files from the store, for comparisons with runs of other machines."""

from __future__ import annotations

from pathlib import Path

from medtest.core.files.paths import store_uri
from medtest.report.tracking.store import configure, ensure_store


def fetch_run(run_id: str, home: Path, folder: Path) -> Path | None:
    """Fetch records, ``run.json`` and ``suite.yaml`` of an MLflow run.

    Args:
        run_id: Id of the run.
        home: Folder that holds ``mlruns/``; ``MLFLOW_TRACKING_URI`` names another store.
        folder: Target folder.

    Returns:
        The folder; None if the store does not have the run, or it holds no records.
    """
    configure()
    uri = store_uri(home)
    ensure_store(uri, home)
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    client = MlflowClient(tracking_uri=uri)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        available = {artifact.path for artifact in client.list_artifacts(run_id)}
        for name in ("records.parquet", "run.json", "suite.yaml"):
            if name in available:
                client.download_artifacts(run_id, name, str(folder))
    except MlflowException:
        return None
    return folder

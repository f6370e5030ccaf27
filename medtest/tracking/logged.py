"""How a run's seeds, tables and pictures are written to MLflow."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from medtest.tracking.params import NOT_ALLOWED

if TYPE_CHECKING:
    import pandas as pd
    from mlflow import MlflowClient

    from medtest.tracking.child import Child, LoggedPicture

_IMAGES = "images"
_IMAGE = re.compile(r"images/(?P<key>.+)\+step\+(?P<step>\d+)\+timestamp\+(?P<time>\d+)\+.*\.png")
"""How MLflow names what ``log_image`` was given; the time is in milliseconds."""


def log_seeds(client: MlflowClient, run_id: str, child: Child) -> None:
    """Log the seeds as a data set, if there are any."""
    if child.seeds is None or child.seeds.empty:
        return
    from mlflow.data import pandas_dataset
    from mlflow.data.code_dataset_source import CodeDatasetSource
    from mlflow.entities import DatasetInput, InputTag

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = pandas_dataset.from_pandas(
            child.seeds,
            # a source of our own: MLflow's default would note the script's path and the git commit
            source=CodeDatasetSource(tags={"medtest.seeds": child.seeds_name}),
            name=child.seeds_name,
            digest=child.seeds_digest[:36] or None,
        )
        entity = dataset._to_mlflow_entity()
    client.log_inputs(run_id, [DatasetInput(entity, [InputTag("mlflow.data.context", "seeds")])])


def log_model_link(client: MlflowClient, run_id: str, model_id: str) -> None:
    """Link a run to the logged model that it tested, where this store holds that model."""
    from mlflow.entities import LoggedModelInput
    from mlflow.exceptions import MlflowException

    with contextlib.suppress(MlflowException):  # the registry may be another server's
        client.get_logged_model(model_id)
        client.log_inputs(run_id, models=[LoggedModelInput(model_id)])


def log_table(client: MlflowClient, run_id: str, name: str, table: pd.DataFrame, *, replace: bool) -> None:
    """Log a table, in place of one that is there: ``log_table`` would append to what its view showed before."""
    plain = table.astype(object).where(table.notna(), None)
    content = {"columns": [str(column) for column in plain.columns], "data": plain.to_numpy().tolist()}
    if replace:
        client.log_dict(run_id, content, name)
    else:
        client.log_table(run_id, plain, name)


def log_pictures(client: MlflowClient, run_id: str, pictures: Sequence[LoggedPicture]) -> None:
    """Log sample strips, but those that the run holds already: MLflow keeps each that it is given."""
    from PIL import Image

    held: dict[tuple[str, int], int] = {}
    for entry in client.list_artifacts(run_id, _IMAGES) if pictures else ():
        if found := _IMAGE.fullmatch(entry.path):
            place = found["key"].replace("~", "/"), int(found["step"])
            held[place] = max(held.get(place, 0), int(found["time"]))
    for picture in pictures:
        key = NOT_ALLOWED.sub("_", picture.key)
        if held.get((key, picture.step), -1) >= picture.path.stat().st_mtime * 1000:
            continue  # it was logged after it was drawn
        with Image.open(picture.path) as image:
            shown = image.convert("RGB")
        shown.thumbnail((1100, 1100))
        client.log_image(run_id, shown, key=key, step=picture.step, synchronous=True)

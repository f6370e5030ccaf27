"""Model of MLflow's registry as a system under test: lookup by address, files downloaded once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np
import yaml
from filelock import FileLock
from numpy.typing import NDArray
from pydantic import Field

from medtest.api.redact import redact
from medtest.core.cases import Address, Image, Json
from medtest.core.deferred import torch
from medtest.core.errors import BadOutput, MedtestError, Mistake, UserMistakes
from medtest.core.files.paths import TYPED_STORE, home, store_uri
from medtest.core.plugins import TRUSTED
from medtest.systems.adapters.graph import ExportedGraph
from medtest.systems.adapters.tensors import TensorSettings, answers_of, encode, resized
from medtest.systems.base import RawAnswer

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
        fix = "give a version number, because 'latest' changes" if "latest" in uri else ""
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

    store = store_uri(uri=TYPED_STORE.get())
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


_TORCH, _PYFUNC = "pytorch", "python_function"


class RegisteredSettings(TensorSettings):
    """Settings of a model of the registry; see :class:`medtest.systems.adapters.tensors.TensorSettings`.

    Attributes:
        uri: ``models:/NAME/VERSION`` or ``models:/NAME@ALIAS``.
        trust_code: Whether the model may be loaded, which may run its code.
    """

    uri: str = Field(default="", json_schema_extra=TRUSTED)
    trust_code: bool = Field(default=False, json_schema_extra=TRUSTED)


class Registered(ExportedGraph):
    """Model version of MLflow's registry, of the flavour ``pytorch`` or ``python_function``.

    It receives a batch according to ``layout``, ``channels``, ``scale``, ``mean`` and ``std`` (float32, an array for
    ``python_function``), and returns a tensor, an array, or several in a list or a dictionary. All models need
    ``trust_code=true``, because MLflow imports modules stored with a model, even for a graph of ``torch.export``
    (``pt2``).
    """

    Settings = RegisteredSettings
    settings: RegisteredSettings
    tasks: ClassVar[tuple[str, ...]] = ("mask", "label")
    _version: ModelVersion | None = None
    _model: Any = None
    _device = "cpu"

    @property
    def registered(self) -> ModelVersion:
        """Model version, looked up and downloaded once.

        Raises:
            UserMistakes: It is not available.
        """
        if self._version is None:
            self._version = version_of(self.settings.uri, where=self.name)
        return self._version

    def check(self) -> Sequence[Mistake]:
        """Return a mistake if the version is unavailable, has another flavour, or lacks permission to unpickle."""
        try:
            flavors = self.registered.flavors
        except UserMistakes as error:
            return error.mistakes
        if not {_TORCH, _PYFUNC} & set(flavors):
            problem = f"{self.settings.uri}, of the flavour {', '.join(sorted(flavors))}"
            return [Mistake(where=self.name, key="uri", found=problem, allowed=f"{_TORCH} or {_PYFUNC}")]
        if not self.settings.trust_code:
            problem = f"{self.settings.uri}, which MLflow loads with saved Python objects: unpickling it runs code"
            allowed = "a model that you trust"
            return [Mistake(where=self.name, key="trust_code", found=problem, allowed=allowed, fix="trust_code=true")]
        return self._misfit()

    def _misfit(self) -> Sequence[Mistake]:
        """Return a mistake if the signature's only input is not a batch of images with the right number of channels."""
        shape, layout = self.registered.shape, self.settings.layout
        if not shape:
            return ()
        place, other = (1, "nhwc") if layout == "nchw" else (3, "nchw")
        if len(shape) == 4 and shape[place] in (-1, self.channels):
            return ()
        problem = f"{self.settings.uri}, which takes {list(shape)}"
        allowed = f"four axes, {self.channels} channels at number {place + 1}"
        fix = f"layout={other}" if len(shape) == 4 and shape[4 - place] == self.channels else ""
        return [Mistake(where=self.name, key="layout", found=problem, allowed=allowed, fix=fix)]

    @property
    def _is_graph(self) -> bool:
        return (self.registered.folder / str(self._torch.get("model_data", "data")) / "model.pt2").is_file()

    @property
    def _torch(self) -> dict[str, Any]:
        return dict(self.registered.flavors.get(_TORCH, {}))

    def own_name(self) -> str:
        """Return the model's name and version or alias."""
        from medtest.systems.naming import clean

        address = self.settings.uri.removeprefix("models:/")
        return clean(address.replace("/", "-v").replace("@", "-"), self.settings.uri) if address else self.name

    @property
    def size(self) -> tuple[int, int] | None:
        """Input height and width according to the user, or else the signature."""
        size, shape = self.settings.size, self.registered.shape
        if size is None and len(shape) == 4:
            sides = shape[2:] if self.settings.layout == "nchw" else shape[1:3]
            return (sides[0], sides[1]) if min(sides) > 0 else None
        return None if size is None else (size[0], size[1])

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the model's files."""
        return {"model_sha256": self.registered.sha256()}

    def open(self, *, device: str, threads: int) -> None:
        """Load the model; see :class:`medtest.systems.base.System`.

        Raises:
            MedtestError: MLflow cannot load it here.
        """
        torch.set_num_threads(threads)
        self._device = device
        folder = str(self.registered.folder)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._model = self._loaded(folder)
        except Exception as error:
            text = " ".join(str(error).split())[:300]
            raise MedtestError(f"{self.settings.uri} cannot be loaded: {type(error).__name__}: {text}") from error

    def _loaded(self, folder: str) -> Any:
        if _TORCH in self.registered.flavors:
            from mlflow import pytorch

            options = {} if self._is_graph else {"map_location": self._device}
            model = pytorch.load_model(folder, **options)
            if isinstance(model, torch.nn.Module):
                if not self._is_graph:
                    model.eval()
                model.to(self._device)
            return model
        from mlflow import pyfunc

        return pyfunc.load_model(folder)

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return one map per image, at the model's output size, or its scores."""
        settings, size = self.settings, self.size
        shown = images if size is None else [resized(image, size, antialias=settings.antialias) for image in images]
        answers: list[RawAnswer] = []
        for image in shown:  # images of a batch may differ in size, and a model may accept only one at a time
            outputs = self.run(encode([image], self.settings))
            answers.extend(answers_of(outputs, self.settings, 1, labels=self.task.labels))
        return answers

    def run(self, batch: NDArray[np.float32]) -> Sequence[NDArray[Any]]:
        """Return the model's outputs for a batch, as arrays."""
        if self._model is None:
            raise MedtestError(f"{self.name} is not open")
        if _TORCH in self.registered.flavors:
            with torch.inference_mode():
                return _arrays(self._model(torch.from_numpy(batch).to(self._device)))
        return _arrays(self._model.predict(batch))

    def close(self) -> None:
        """Release the model."""
        self._model = None


def _arrays(output: Any) -> list[NDArray[Any]]:
    """Return a model's output as arrays: one, or those of a list, tuple or dictionary in its order."""
    several = list(output.values()) if isinstance(output, dict) else output
    if not isinstance(several, list | tuple):
        several = [several]
    arrays = [value.detach().float().cpu().numpy() if isinstance(value, torch.Tensor) else value for value in several]
    if not all(isinstance(array, np.ndarray) for array in arrays):
        kinds = ", ".join(sorted({type(array).__name__ for array in arrays}))
        raise BadOutput(f"gave {kinds} where a tensor or an array is expected, or a list of them")
    return arrays

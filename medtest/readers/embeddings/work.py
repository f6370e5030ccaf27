"""Embeds pictures in a separate process, so that the caller loads no network and survives a crash.

Features are stored as they are computed, so that an interrupted call resumes where it stopped. Every picture is decoded
once for all networks, and its perceptual hash is stored as well.

Each core embeds separate batches in a thread whose operators are not parallel. Threads inside operators wait for each
other after every layer, actively: on two cores that other processes use too, they took more than three times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError
from medtest.core.files.by_content import PictureFiles
from medtest.core.files.images import BadFileError, read_rgb
from medtest.readers.embeddings.base import Embedder, Rows
from medtest.readers.embeddings.choice import embedder_of
from medtest.readers.embeddings.hashes import HASH, perceptual_hash
from medtest.readers.embeddings.kept import FeatureFile, net_key

_SAID: Final = 200


@dataclass(frozen=True, kw_only=True)
class PictureJob:
    """A picture to embed.

    Attributes:
        name: Name under which its features are stored: the hash of its pixels or of its file's bytes.
        path: Its file; None for a picture in the run's folder, which is found by name.
    """

    name: str
    path: str | None = None


@dataclass(frozen=True, kw_only=True)
class EmbeddingJob:
    """Describes which pictures and texts to embed.

    Attributes:
        store: The file in which features are stored.
        nets: The networks (:func:`medtest.readers.embeddings.choice.embedder_of`).
        pictures: The pictures.
        folder: Folder of the pictures without a path, named by content; None if all have a path.
        texts: Texts by the names under which their features are stored; networks without text support skip them.
        device: ``cpu``, ``cuda:N``, or ``auto`` for a graphics card if available.
        cores: Number of batches embedded at once on the processor.

    ``session`` and ``threads`` are required by :class:`medtest.runner.pool.process_worker.ProcessWorker`.
    """

    session: ClassVar[str] = "medtest.readers.embeddings.work:EmbeddingSession"
    threads: ClassVar[int] = 1  # like most workers of runs, so that a process can be forked from theirs

    store: str
    nets: Sequence[Mapping[str, Any]]
    pictures: Sequence[PictureJob] = ()
    folder: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    device: str = "cpu"
    cores: int = 1


@dataclass(frozen=True, slots=True)
class Embedding:
    """Result of a job.

    Attributes:
        embedded: Number of pictures and texts embedded now.
        failed: Pictures that could not be embedded, with the reason.
        problem: Why nothing was embedded, in a sentence; "" if something was.
    """

    embedded: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


def lacking(job: EmbeddingJob) -> EmbeddingJob:
    """Return the job without what every network has already embedded.

    Raises:
        OutputProblem: The file of features is unusable.
    """
    names = list(dict.fromkeys(picture.name for picture in job.pictures))
    texts = list(job.texts)
    lacks: set[str] = set()
    with FeatureFile(Path(job.store)) as store:
        for net in job.nets:
            network = embedder_of(net)
            key = net_key(network.fingerprint())
            lacks |= {*names} - store.known(key, names)
            if _reads_texts(network):
                lacks |= {*texts} - store.known(key, texts)
        lacks |= {*names} - store.known(HASH, names)
    pictures = {picture.name: picture for picture in job.pictures if picture.name in lacks}
    texts_left = {name: text for name, text in job.texts.items() if name in lacks}
    return replace(job, pictures=list(pictures.values()), texts=texts_left)


def _reads_texts(network: Embedder) -> bool:
    return type(network).embed_texts is not Embedder.embed_texts


class EmbeddingSession:
    """Embeds in a worker process, as run by :mod:`medtest.runner.pool.child`.

    Args:
        job: What to embed.
        send: Receives progress lines and finally an :class:`Embedding`.
    """

    def __init__(self, job: EmbeddingJob, send: Callable[[Any], None]) -> None:
        self._job, self._send = job, send
        self._networks: list[Embedder] = []

    def open(self) -> bool:
        """Load the networks; if one cannot be loaded, report it and return False."""
        self._networks = [embedder_of(net) for net in self._job.nets]
        try:
            for network in self._networks:
                network.open(device=_device(self._job.device), threads=1)
        except MedtestError as error:
            self._send(Embedding(problem=str(error)))
            return False
        return True

    def run(self, task: Any) -> None:
        """Embed everything in the job."""
        try:
            self._send(_embed(self._job, self._networks, self._send))
        except MedtestError as error:
            self._send(Embedding(problem=str(error)))

    def close(self) -> None:
        """Do nothing: the process ends anyway."""


def _embed(job: EmbeddingJob, networks: Sequence[Embedder], progress: Callable[[str], None]) -> Embedding:
    keys = [net_key(network.fingerprint()) for network in networks]
    failed: dict[str, str] = {}
    embedded_count = pictures = 0
    cores = job.cores if _device(job.device) == "cpu" else 1
    share = max(1, -(-len(job.pictures) // cores))
    size = min([share, *(network.at_once for network in networks)])
    with FeatureFile(Path(job.store)) as store, ThreadPoolExecutor(cores, initializer=_one_thread) as threads:
        for network, key in zip(networks, keys, strict=True):
            if _reads_texts(network):
                embedded_count += _texts(network, key, job.texts, store)
        batches = threads.map(lambda some: _batch(some, job.folder, networks), _runs(job.pictures, size))
        for embedded, failed_now in batches:
            for key, rows in zip((*keys, HASH), embedded, strict=True):
                store.keep(key, rows)
            failed |= failed_now
            pictures += len(embedded[-1]) + len(failed_now)
            progress(f"{pictures:,} of {len(job.pictures):,} pictures are embedded")
    return Embedding(embedded_count + pictures - len(failed), failed)


def _one_thread() -> None:
    torch.set_num_threads(1)  # a setting of the calling thread as well as of the process


def _batch(
    some: Sequence[PictureJob], folder: str | None, networks: Sequence[Embedder]
) -> tuple[list[dict[str, tuple[Rows, Rows]]], dict[str, str]]:
    """Return features and scores of pictures by name, for each network, then their hashes; and what failed, and why."""
    names, images, failed = [], [], {}
    for picture in some:
        try:
            images.append(_pixels(picture, folder))
            names.append(picture.name)
        except (MedtestError, BadFileError, OSError, ValueError) as error:
            failed[picture.name] = str(error)[:_SAID]
    if not images:
        return [{}] * (len(networks) + 1), failed
    embedded = [network.embed(images) for network in networks]
    rows = [list(zip(batch.features, batch.scores, strict=True)) for batch in embedded]
    return [dict(zip(names, its, strict=True)) for its in (*rows, [_hash(image) for image in images])], failed


def _device(chosen: str) -> str:
    if chosen != "auto":
        return chosen
    return "cuda:0" if torch.cuda.is_available() else "cpu"


def _texts(network: Embedder, key: str, texts: Mapping[str, str], store: FeatureFile) -> int:
    for some in _runs(list(texts.items()), network.at_once):
        embedded = network.embed_texts([text for _, text in some])
        rows = zip(embedded.features, embedded.scores, strict=True)
        store.keep(key, {name: row for (name, _), row in zip(some, rows, strict=True)})
    return len(texts)


def _hash(image: Image) -> tuple[Rows, Rows]:
    """Return the bits of a hash as a row of the file, together with the aspect ratio (width / height)."""
    bits = np.frombuffer(perceptual_hash(image), np.uint8).astype(np.float32)
    return bits, np.array([image.shape[1] / image.shape[0]], np.float32)


def _pixels(picture: PictureJob, folder: str | None) -> Image:
    if picture.path is not None:
        return read_rgb(Path(picture.path))
    if folder is None:
        raise ValueError("no folder is known that holds it")
    return PictureFiles(Path(folder)).read("images", picture.name)


def _runs(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def by_content(paths: Iterable[Path]) -> list[PictureJob]:
    """Return files as pictures that are named by the SHA-256 of their bytes.

    Raises:
        OSError: A file cannot be read.
    """
    from medtest.core.files import file_sha256

    return [PictureJob(name=f"file:{file_sha256(path)}", path=str(path)) for path in paths]

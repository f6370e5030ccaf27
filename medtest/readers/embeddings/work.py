"""Embedding pictures in a process of its own: whoever makes tables loads no network and outlives one that dies.

What was embedded is kept as it goes, so that a call that was killed goes on where it stopped. Every picture is decoded
once for all networks, and its perceptual hash is kept with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from medtest.core.cases import Image
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
    """A picture that is to be embedded.

    Attributes:
        name: What its features are kept under: what its pixels, or its file's bytes, hash to.
        path: Its file; None for one of a run's folder, which is found by its name.
    """

    name: str
    path: str | None = None


@dataclass(frozen=True, kw_only=True)
class EmbeddingJob:
    """What is to be embedded.

    Attributes:
        store: The file that features are kept in.
        nets: What networks (:func:`medtest.readers.embeddings.choice.embedder_of`).
        pictures: Pictures.
        folder: Where those without a path lie by content; None where all have one.
        texts: Texts, by the names that their features are kept under; networks that read none leave them.
        device: ``cpu``, ``cuda:N``, or ``auto`` for a graphics card where there is one.
        cores: Intra-op threads.

    ``session`` and ``threads`` are what :class:`medtest.runner.pool.process_worker.ProcessWorker` asks of a job.
    """

    session: ClassVar[str] = "medtest.readers.embeddings.work:EmbeddingSession"
    threads: ClassVar[int] = 1  # as most workers of runs have it, so that a process of theirs is forked

    store: str
    nets: Sequence[Mapping[str, Any]]
    pictures: Sequence[PictureJob] = ()
    folder: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    device: str = "cpu"
    cores: int = 1


@dataclass(frozen=True, slots=True)
class Embedding:
    """What came of a job.

    Attributes:
        made: Pictures and texts that were embedded now.
        failed: Pictures that could not be, with the reason.
        problem: Why nothing was, in a sentence; "" where something was.
    """

    made: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


def lacking(job: EmbeddingJob) -> EmbeddingJob:
    """Return the job without what every network has embedded before.

    Raises:
        OutputProblem: The file of features cannot be used.
    """
    names = list(dict.fromkeys(one.name for one in job.pictures))
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
    return EmbeddingJob(
        store=job.store,
        nets=job.nets,
        pictures=[one for one in {one.name: one for one in job.pictures}.values() if one.name in lacks],
        folder=job.folder,
        texts={name: text for name, text in job.texts.items() if name in lacks},
        device=job.device,
        cores=job.cores,
    )


def _reads_texts(network: Embedder) -> bool:
    return type(network).embed_texts is not Embedder.embed_texts


class EmbeddingSession:
    """Embeds in a worker process, as :mod:`medtest.runner.pool.child` runs it.

    Args:
        job: What is to be embedded.
        send: Takes lines that say how far it is, and an :class:`Embedding` at the end.
    """

    def __init__(self, job: EmbeddingJob, send: Callable[[Any], None]) -> None:
        self._job, self._send = job, send
        self._networks: list[Embedder] = []

    def open(self) -> bool:
        """Load the networks; where one cannot be loaded, say so and end."""
        self._networks = [embedder_of(net) for net in self._job.nets]
        try:
            for network in self._networks:
                network.open(device=_device(self._job.device), threads=self._job.cores)
        except MedtestError as error:
            self._send(Embedding(problem=str(error)))
            return False
        return True

    def run(self, task: Any) -> None:
        """Embed all of the job."""
        try:
            self._send(_embed(self._job, self._networks, self._send))
        except MedtestError as error:
            self._send(Embedding(problem=str(error)))

    def close(self) -> None:
        """Nothing is to be freed: the process ends."""


def _embed(job: EmbeddingJob, networks: Sequence[Embedder], progress: Callable[[str], None]) -> Embedding:
    keys = [net_key(network.fingerprint()) for network in networks]
    failed: dict[str, str] = {}
    made = pictures = 0
    size = min((network.at_once for network in networks), default=16)
    with FeatureFile(Path(job.store)) as store:
        for network, key in zip(networks, keys, strict=True):
            if _reads_texts(network):
                made += _texts(network, key, job.texts, store)
        for some in _runs(job.pictures, size):
            names, images = [], []
            for picture in some:
                try:
                    images.append(_pixels(picture, job.folder))
                    names.append(picture.name)
                except (MedtestError, BadFileError, OSError, ValueError) as error:
                    failed[picture.name] = str(error)[:_SAID]
            if images:
                for network, key in zip(networks, keys, strict=True):
                    found = network.embed(images)
                    store.keep(key, dict(zip(names, zip(found.features, found.scores, strict=True), strict=True)))
                store.keep(HASH, {name: _hash(image) for name, image in zip(names, images, strict=True)})
            pictures += len(some)
            progress(f"{pictures:,} of {len(job.pictures):,} pictures are embedded")
    return Embedding(made + pictures - len(failed), failed)


def _device(chosen: str) -> str:
    import torch

    if chosen != "auto":
        return chosen
    return "cuda:0" if torch.cuda.is_available() else "cpu"


def _texts(network: Embedder, key: str, texts: Mapping[str, str], store: FeatureFile) -> int:
    for some in _runs(list(texts.items()), network.at_once):
        found = network.embed_texts([text for _, text in some])
        rows = zip(found.features, found.scores, strict=True)
        store.keep(key, {name: row for (name, _), row in zip(some, rows, strict=True)})
    return len(texts)


def _hash(image: Image) -> tuple[Rows, Rows]:
    """Return the bits of a hash as a row of the file, and width by height beside them."""
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
    """Return files as pictures, named by the SHA-256 of their bytes.

    Raises:
        OSError: One cannot be read.
    """
    from medtest.core.files import file_sha256

    return [PictureJob(name=f"file:{file_sha256(path)}", path=str(path)) for path in paths]

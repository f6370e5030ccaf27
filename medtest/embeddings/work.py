"""Embedding pictures in a process of its own: whoever makes tables loads no network and outlives one that dies.

The process ends with the one that started it. What it embedded is kept as it goes, so that a call that was killed goes
on where it stopped. Every picture is decoded once for all networks, and its perceptual hash is kept with them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, cast

import numpy as np

from medtest.cases import Image
from medtest.embeddings.base import Embedder, Rows
from medtest.embeddings.choice import embedder_of
from medtest.embeddings.hashes import HASH, perceptual_hash
from medtest.embeddings.kept import FeatureFile, net_key
from medtest.errors import MedtestError
from medtest.files.by_content import PictureFiles
from medtest.files.images import BadFileError, read_rgb

_LINE: Final = "features: "
_SAID: Final = 200


@dataclass(frozen=True, kw_only=True)
class Picture:
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
        nets: What networks (:func:`medtest.embeddings.choice.embedder_of`).
        pictures: Pictures.
        folder: Where those without a path lie by content; None where all have one.
        texts: Texts, by the names that their features are kept under; networks that read none leave them.
        device: ``cpu``, ``cuda:N``, or ``auto`` for a graphics card where there is one.
        threads: Intra-op threads.
    """

    store: str
    nets: Sequence[Mapping[str, Any]]
    pictures: Sequence[Picture] = ()
    folder: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    device: str = "cpu"
    threads: int = 1


@dataclass(frozen=True, slots=True)
class Embedding:
    """What came of it.

    Attributes:
        made: Pictures and texts that were embedded now.
        failed: Pictures that could not be, with the reason.
    """

    made: int
    failed: Mapping[str, str]


def embed(job: EmbeddingJob, progress: Callable[[str], None] = lambda line: None) -> Embedding:
    """Embed what is not kept yet, in a process of its own; none is started where all is.

    Raises:
        MedtestError: A network cannot be loaded, or the process died.
        OutputProblem: The file of features cannot be used.
    """
    lacking = _lacking(job)
    if not lacking.pictures and not lacking.texts:
        return Embedding(0, {})
    code = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from medtest.embeddings.work import main;"
        " sys.exit(main())"
    )
    child = subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-c", code, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    inward, outward = cast(IO[str], child.stdin), cast(IO[str], child.stdout)
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.extend(child.stderr or ()), daemon=True)
    reader.start()
    answer: dict[str, Any] | None = None
    try:
        with suppress(BrokenPipeError):
            inward.write(json.dumps(_plain(lacking)) + "\n")
            inward.flush()
        for line in outward:
            if line.startswith(_LINE):
                told = json.loads(line.removeprefix(_LINE))
                if "progress" in told:
                    progress(str(told["progress"]))
                else:
                    answer = told
        code_of_end = child.wait()
    finally:
        child.kill()
        child.wait()
        reader.join(timeout=1)
        for pipe in (child.stdin, child.stdout, child.stderr):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
    if answer is None:
        last = "".join(said).strip().splitlines()[-1:] or [f"it ended with code {code_of_end}"]
        raise MedtestError(f"pictures cannot be embedded: {last[0][:_SAID]}")
    if "error" in answer:
        raise MedtestError(str(answer["error"]))
    return Embedding(int(answer["made"]), dict(answer["failed"]))


def _lacking(job: EmbeddingJob) -> EmbeddingJob:
    """Return the job without what every network has embedded before."""
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
        threads=job.threads,
    )


def _reads_texts(network: Embedder) -> bool:
    return type(network).embed_texts is not Embedder.embed_texts


def _plain(job: EmbeddingJob) -> dict[str, Any]:
    values = {name: getattr(job, name) for name in ("store", "folder", "device", "threads")}
    return {
        **values,
        "nets": [dict(net) for net in job.nets],
        "pictures": [[one.name, one.path] for one in job.pictures],
        "texts": dict(job.texts),
    }


# --- in the process --------------------------------------------------------------------------------------------------


def main() -> int:
    """Embed the job that stands on standard input; what came of it is said on standard output."""
    given = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    pictures = [Picture(name=name, path=path) for name, path in given.pop("pictures")]
    try:
        made, failed = _embed(EmbeddingJob(**given, pictures=pictures))
    except MedtestError as error:
        _say({"error": str(error)})
        return 1
    _say({"made": made, "failed": failed})
    return 0


def _end_with_parent() -> None:
    """Wait until standard input is closed, which its owner does by ending."""
    with suppress(OSError, ValueError):
        sys.stdin.read()
    os._exit(1)


def _say(told: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{_LINE}{json.dumps(told)}\n")
    sys.stdout.flush()


def _embed(job: EmbeddingJob) -> tuple[int, dict[str, str]]:
    networks = [embedder_of(net) for net in job.nets]
    keys = [net_key(network.fingerprint()) for network in networks]
    for network in networks:
        network.open(device=_device(job.device), threads=job.threads)
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
            _say({"progress": f"{pictures:,} of {len(job.pictures):,} pictures are embedded"})
    return made + pictures - len(failed), failed


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


def _pixels(picture: Picture, folder: str | None) -> Image:
    if picture.path is not None:
        return read_rgb(Path(picture.path))
    if folder is None:
        raise ValueError("no folder is known that holds it")
    return PictureFiles(Path(folder)).read("images", picture.name)


def _runs(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def by_content(paths: Iterable[Path]) -> list[Picture]:
    """Return files as pictures, named by the SHA-256 of their bytes.

    Raises:
        OSError: One cannot be read.
    """
    from medtest.files import file_sha256

    return [Picture(name=f"file:{file_sha256(path)}", path=str(path)) for path in paths]

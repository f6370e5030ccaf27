"""Word vectors for published TGANet checkpoints, read from various file formats.

The five vectors are ordered as in Tomar et al.'s code: one, multiple, small, medium, large. Supported files:

- ``.npy``: one array 5×300. ``.npz``: one such array, or one array of 300 per word, named after the word.
- ``.csv``, ``.txt``: five lines of 300 numbers, separated by commas or blanks, in this order; in any order if every
  line begins with its word.
- BPEmb's own ``en.wiki.bpe.vs100000.d300.w2v.bin`` (Heinzerling and Strube, "BPEmb: Tokenization-free Pre-trained
  Subword Embeddings in 275 Languages", LREC 2018; word2vec's binary format), or its folder. The vector of a word is the
  mean over its pieces. A word that is itself a piece, as most short common words are, is looked up directly; otherwise
  it is split by BPEmb's sentencepiece model (``….model``).
"""

from __future__ import annotations

import hashlib
import mmap
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from medtest.core.errors import MedtestError
from medtest.systems.checkpoints.protobuf import fields
from medtest.systems.checkpoints.tensorflow import read_array

MAX_BYTES = 100_000_000


def read_pieces(path: Path) -> dict[str, float]:
    """Return the pieces of a sentencepiece model and their scores.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a sentencepiece model.
    """
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path.name} is larger than {MAX_BYTES // 1_000_000} MB")
    content = path.read_bytes()
    scores: dict[str, float] = {}
    for number, entry in fields(content, (0, len(content))):
        if number != 1 or isinstance(entry, int):
            continue
        held = {inner: content[slice(*span)] for inner, span in fields(content, entry) if isinstance(span, tuple)}
        if 1 in held and len(held.get(2, bytes(4))) == 4:
            scores[held[1].decode("utf-8", "replace")] = float(struct.unpack("<f", held.get(2, bytes(4)))[0])
    if not scores:
        raise ValueError(f"{path.name} is not a sentencepiece model")
    return scores


def split_word(word: str, scores: Mapping[str, float]) -> list[str]:
    """Split a word into pieces.

    Args:
        word: Including the mark of a word's beginning.
        scores: From :func:`read_pieces`.
    """
    parts = list(word)
    while True:
        pairs = [(scores[a + b], -i) for i, (a, b) in enumerate(zip(parts, parts[1:], strict=False)) if a + b in scores]
        if not pairs:
            return parts
        place = -max(pairs)[1]
        parts[place : place + 2] = [parts[place] + parts[place + 1]]


ORDER = ("one", "multiple", "small", "medium", "large")
"""Words of the rows."""
SIZE = 300
MAX_TEXT = 10_000_000
MAX_BINARY = 2_000_000_000
MOST_BYTES = 800_000
"""Size limit of an array."""
BEGIN = "\N{LOWER ONE EIGHTH BLOCK}"
"""Sentencepiece's mark of a word's beginning."""

Vectors = NDArray[np.float32]


def read_label_vectors(path: Path, pieces: Path | None = None) -> Vectors:
    """Return the word vectors of a file, float32 5×300, in the order of :data:`ORDER`.

    Args:
        path: One of the files above.
        pieces: BPEmb's sentencepiece model; by default the one next to BPEmb's vectors.

    Raises:
        MedtestError: The file is missing, unreadable, or has unexpected content.
    """
    if path.is_dir():
        paths = sorted(path.glob("*d300.w2v.bin"))
        if len(paths) != 1:
            raise MedtestError(f"{path.name}: one file *.d300.w2v.bin is expected there, {len(paths)} found")
        path = paths[0]
    if not path.is_file():
        raise MedtestError(f"{path.name}: there is no such file")
    try:
        vectors = _read(path, pieces)
    except (OSError, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile) as error:
        raise MedtestError(f"{path.name}: no word vectors can be read from it: {str(error)[:200]}") from error
    if vectors.shape != (len(ORDER), SIZE):
        shape = "×".join(str(n) for n in vectors.shape)
        raise MedtestError(f"{path.name}: {len(ORDER)}×{SIZE} numbers are expected, {shape} found")
    exact = np.ascontiguousarray(vectors, np.float32)
    if not np.isfinite(exact).all():
        raise MedtestError(f"{path.name}: it holds numbers that are not finite")
    return exact


def vectors_sha256(vectors: Vectors) -> str:
    """Return the SHA-256 of the vectors as little-endian float32, independent of the file format."""
    return hashlib.sha256(np.ascontiguousarray(vectors, "<f4").tobytes()).hexdigest()


def _read(path: Path, pieces: Path | None) -> NDArray[np.floating]:
    suffix = path.suffix.lower()
    largest = MAX_BINARY if suffix == ".bin" else MAX_TEXT
    if path.stat().st_size > largest:
        raise ValueError(f"larger than {largest // 1_000_000} MB")
    if suffix == ".bin":
        return _from_bpemb(path, pieces)
    if suffix == ".npy":
        with path.open("rb") as file:
            return _floats(file)
    if suffix == ".npz":
        return _from_npz(path)
    if suffix in (".csv", ".txt"):
        return _from_text(path.read_text(encoding="utf-8-sig"))
    raise ValueError(f"{suffix or 'no suffix'}; .npy, .npz, .csv, .txt or BPEmb's .bin are expected")


def _floats(file: IO[bytes]) -> NDArray[np.floating]:
    values = np.asarray(read_array(file, MOST_BYTES), np.float32)
    return values[0] if values.ndim == 3 and values.shape[0] == 1 else values


def _from_npz(path: Path) -> NDArray[np.floating]:
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        if set(ORDER) <= set(names):
            chosen: Sequence[str] = ORDER
        elif len(names) == 1:
            chosen = names
        else:
            raise ValueError(f"arrays {', '.join(names[:8])}; one array, or one per word is expected")
        arrays = []
        for name in chosen:
            with archive.open(f"{name}.npy") as file:
                arrays.append(_floats(file))
        return np.stack(arrays) if len(arrays) > 1 else arrays[0]


def _from_text(text: str) -> NDArray[np.floating]:
    rows: dict[str, list[float]] = {}
    for line in text.splitlines():
        fields = line.replace(",", " ").replace(";", " ").split()
        if not fields or fields[0].startswith("#"):
            continue
        word = fields[0].lower().strip("\"'")
        if word in ORDER:
            rows[word] = [float(field) for field in fields[1:]]
        else:
            rows[f"line {len(rows)}"] = [float(field) for field in fields]
    named = [word for word in rows if word in ORDER]
    if named and (len(named) != len(ORDER) or len(rows) != len(ORDER)):
        raise ValueError(f"words {', '.join(named)}; all of {', '.join(ORDER)} are expected, or none")
    if len({len(row) for row in rows.values()}) > 1:
        raise ValueError("lines of different length")
    return np.array([rows[word] for word in ORDER] if named else list(rows.values()), np.float32)


def _from_bpemb(path: Path, pieces: Path | None) -> NDArray[np.floating]:
    """Look up the words in word2vec's binary format: a line "count size", then "piece " and ``size`` floats each."""
    if pieces is None:
        near = path.with_name(path.name.split(".d300")[0] + ".model")
        pieces = near if near.is_file() else None
    parts: dict[str, tuple[str, ...]] = {word: (BEGIN + word,) for word in ORDER}
    if pieces is not None:
        scores = read_pieces(pieces)
        parts = {word: tuple(split_word(BEGIN + word, scores)) for word in ORDER}
    table = _lookup(path, {piece for pieces_of_word in parts.values() for piece in pieces_of_word})
    for word, word_pieces in parts.items():
        missing = [piece for piece in word_pieces if piece not in table]
        if missing:
            hint = "" if pieces else "; give BPEmb's sentencepiece model too: label_pieces=….model"
            raise ValueError(f"no vector for {missing[0]!r}, a piece of {word!r}{hint}")
    return np.stack([_mean([table[piece] for piece in parts[word]]) for word in ORDER])


def _mean(vectors: Sequence[Vectors]) -> Vectors:
    return np.asarray(np.stack(vectors).mean(axis=0), np.float32)


def _lookup(path: Path, names: set[str]) -> dict[str, Vectors]:
    vectors: dict[str, Vectors] = {}
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        end = content.find(b"\n", 0, 64)
        count, size = (int(field) for field in content[: max(end, 0)].split())
        if size != SIZE or not 0 < count < 10_000_000:
            raise ValueError(f"{count} vectors of {size} numbers; {SIZE} numbers each are expected")
        place = end + 1
        for _ in range(count):
            blank = content.find(b" ", place, place + 1000)
            if blank < 0 or blank + 1 + 4 * size > len(content):
                raise ValueError("it ends before its last vector")
            piece = content[place:blank].decode("utf-8", "replace").lstrip("\n")
            if piece in names:
                vectors[piece] = np.frombuffer(content[blank + 1 : blank + 1 + 4 * size], "<f4").astype(np.float32)
                if len(vectors) == len(names):
                    break
            place = blank + 1 + 4 * size
    return vectors

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from medtest.core.errors import MedtestError
from medtest.systems.segmentation.label_vectors import (
    ORDER,
    read_label_vectors,
    read_pieces,
    split_word,
    vectors_sha256,
)

MARK = "\u2581"


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(3).standard_normal((5, 300)).astype(np.float32)


def test_every_kind_of_file_gives_the_same_vectors(vectors: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", vectors)
    np.savez(tmp_path / "one.npz", labels=vectors[None].astype(np.float64))
    np.savez(tmp_path / "named.npz", **dict(zip(ORDER, vectors, strict=True)))
    np.savetxt(tmp_path / "v.txt", vectors)
    np.savetxt(tmp_path / "v.csv", vectors, delimiter=",")
    shuffled = [3, 0, 4, 2, 1]
    lines = [f"{ORDER[i]}," + ",".join(repr(float(x)) for x in vectors[i]) for i in shuffled]
    (tmp_path / "named.csv").write_text("\n".join(lines), encoding="utf-8")
    for path in tmp_path.iterdir():
        read = read_label_vectors(path)
        assert read.dtype == np.float32
        assert np.allclose(read, vectors, atol=1e-6), path.name
    assert vectors_sha256(read_label_vectors(tmp_path / "v.npy")) == vectors_sha256(vectors)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.npy", b"no array"),
        ("v.txt", b"1 2 3\n4 5 6"),
        ("v.txt", b"one 1 2\nbig 3 4"),
        ("v.docx", b"x"),
        ("v.bin", b"5 200\n"),
        ("v.bin", b"5 300\nabc "),
        ("v.npz", b"PK"),
    ],
)
def test_invalid_word_vectors_are_refused(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MedtestError, match=name):
        read_label_vectors(tmp_path / name)


def test_a_header_with_a_too_large_array_allocates_nothing(tmp_path: Path) -> None:
    """NumPy would allocate the whole array before it reads, here 8 TB."""
    for version in ((1, 0), (2, 0)):
        head = io.BytesIO()
        facts = {"descr": "<f8", "fortran_order": False, "shape": (5, 200_000_000_000)}
        write = np.lib.format.write_array_header_1_0 if version == (1, 0) else np.lib.format.write_array_header_2_0
        write(head, facts)
        (tmp_path / "v.npy").write_bytes(head.getvalue())
        with zipfile.ZipFile(tmp_path / "v.npz", "w") as archive:
            archive.writestr("labels.npy", head.getvalue() + bytes(40))
        for name in ("v.npy", "v.npz"):
            with pytest.raises(MedtestError, match="8,000,000,000,000 bytes"):
                read_label_vectors(tmp_path / name)


def test_other_shapes_pickles_and_nan_are_refused(vectors: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", vectors[:4])
    np.save(tmp_path / "b.npy", np.array([{"a": 1}]), allow_pickle=True)
    vectors[2, 7] = np.nan
    np.save(tmp_path / "c.npy", vectors)
    for name, message in (("a.npy", "4×300 found"), ("b.npy", "no word vectors"), ("c.npy", "not finite")):
        with pytest.raises(MedtestError, match=message):
            read_label_vectors(tmp_path / name)
    with pytest.raises(MedtestError, match="no such file"):
        read_label_vectors(tmp_path / "d.npy")


def _word2vec(path: Path, table: dict[str, np.ndarray]) -> None:
    with path.open("wb") as file:
        file.write(f"{len(table)} 300\n".encode())
        for piece, vector in table.items():
            file.write(piece.encode() + b" " + vector.astype("<f4").tobytes() + b"\n")


def _model(path: Path, pieces: dict[str, float]) -> None:
    """Write the pieces as sentencepiece's protocol buffer has them, with a field of another number before and after."""
    content = b"\x1a\x02\x08\x01"
    for piece, score in pieces.items():
        text = piece.encode()
        entry = b"\x0a" + bytes([len(text)]) + text + b"\x15" + struct.pack("<f", score)
        content += b"\x0a" + bytes([len(entry)]) + entry
    path.write_bytes(content + b"\x12\x02\x08\x05")


def test_bpembs_own_file_is_looked_up(vectors: np.ndarray, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    table = {f"{MARK}x{i}": rng.standard_normal(300) for i in range(20)}
    table |= {MARK + word: vector for word, vector in zip(ORDER, vectors, strict=True)}
    path = tmp_path / "en.wiki.bpe.vs100000.d300.w2v.bin"
    _word2vec(path, table)
    assert np.array_equal(read_label_vectors(path), vectors)
    assert np.array_equal(read_label_vectors(tmp_path), vectors)


def test_a_word_of_several_pieces_is_their_mean(vectors: np.ndarray, tmp_path: Path) -> None:
    table = {MARK + word: vector for word, vector in zip(ORDER, vectors, strict=True) if word != "multiple"}
    rng = np.random.default_rng(5)
    table |= {f"{MARK}multi": rng.standard_normal(300).astype(np.float32), "ple": np.ones(300, np.float32)}
    path = tmp_path / "en.wiki.bpe.vs100000.d300.w2v.bin"
    _word2vec(path, table)
    with pytest.raises(MedtestError, match="label_pieces"):
        read_label_vectors(path)
    joins = ["mu", "lt", "mult", "multi", f"{MARK}multi", "pl", "ple"]
    for word in ORDER:
        if word != "multiple":
            joins += [MARK + word[: end + 1] for end in range(len(word))]
    _model(tmp_path / "en.wiki.bpe.vs100000.model", {piece: -float(i) for i, piece in enumerate(joins)})
    read = read_label_vectors(path)
    assert np.allclose(read[1], (table[f"{MARK}multi"] + 1) / 2, atol=1e-6)
    assert np.array_equal(read[0], vectors[0])


def test_words_are_split_as_sentencepiece_splits_them(tmp_path: Path) -> None:
    """By hand: (a b) scores above (b c), so "abc" is "ab c"; where only (b c) is known it is "a bc"."""
    _model(tmp_path / "m.model", {"ab": -1.0, "bc": -2.0, "abcd": -3.0, "cd": -9.0})
    scores = read_pieces(tmp_path / "m.model")
    assert split_word("abc", scores) == ["ab", "c"]
    assert split_word("xbc", scores) == ["x", "bc"]
    assert split_word("abcd", scores) == ["abcd"]
    (tmp_path / "bad.model").write_bytes(b"\x0a\xff\xff\xff")
    with pytest.raises(ValueError, match="longer|end"):
        read_pieces(tmp_path / "bad.model")

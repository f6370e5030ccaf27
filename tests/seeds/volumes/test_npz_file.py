"""Arrays of .npz files: single items equal NumPy's, and hostile files are refused before they are read."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.core.files.images import BadFileError
from medtest.seeds.volumes import npz_file
from medtest.seeds.volumes.npz_file import Items, item_digests, items_of, npz_members, read_whole


@pytest.mark.parametrize("packed", [True, False])
def test_items_in_any_order_equal_numpys(tmp_path, packed, monkeypatch):
    monkeypatch.setattr(npz_file, "_STEP", 2000)  # many kept states
    monkeypatch.setattr(npz_file, "_CHUNK", 700)
    rng = np.random.default_rng(0)
    images = (rng.integers(0, 4, (90, 20, 21, 3)) * 60).astype(np.uint8)
    (np.savez_compressed if packed else np.savez)(tmp_path / "a.npz", train_images=images, other=np.arange(3))
    items = Items(tmp_path / "a.npz", npz_members(tmp_path / "a.npz")["train_images"])
    for index in [89, 0, 45, 44, 46, 0, 89, *rng.permutation(90)]:
        np.testing.assert_array_equal(items.read(int(index)), images[index])
    if packed:
        assert len(items._states) > 3


@given(
    shape=st.tuples(st.integers(1, 30), st.integers(1, 12), st.integers(1, 12)),
    seed=st.integers(0, 1000),
    order=st.lists(st.integers(0, 29), max_size=8),
)
def test_any_shape(tmp_path_factory, shape, seed, order):
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    images = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    np.savez_compressed(path, x=images)
    items = items_of(path, "x")
    for index in order:
        np.testing.assert_array_equal(items.read(index % shape[0]), images[index % shape[0]])
    expected = [hashlib.sha256(image.tobytes()).hexdigest() for image in images]
    assert list(item_digests(path, npz_members(path)["x"])) == expected


def test_items_are_shared_between_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(npz_file, "_STEP", 1000)
    monkeypatch.setattr(npz_file, "_CHUNK", 300)
    images = np.random.default_rng(1).integers(0, 256, (64, 16, 16), dtype=np.uint8)
    np.savez_compressed(tmp_path / "a.npz", x=images)
    start = threading.Barrier(4)

    def read(seed):
        start.wait()
        order = np.random.default_rng(seed).permutation(64)
        return all((items_of(tmp_path / "a.npz", "x").read(int(i)) == images[i]).all() for i in order)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, range(4)))


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros((3, 2, 2), np.uint8))
    assert items_of(path, "x").read(1).max() == 0
    np.savez_compressed(path, x=np.full((4, 3, 3), 7, np.uint8))
    assert (items_of(path, "x").read(3) == 7).all()


def test_labels_are_read_whole(tmp_path):
    labels = np.arange(10, dtype=np.uint8)[:, None]
    np.savez_compressed(tmp_path / "a.npz", y=labels)
    np.testing.assert_array_equal(read_whole(tmp_path / "a.npz", npz_members(tmp_path / "a.npz")["y"]), labels)


def test_large_labels_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(npz_file, "MOST_TABLE", 50)
    np.savez(tmp_path / "a.npz", y=np.zeros(100, np.uint8))
    with pytest.raises(BadFileError, match="at most"):
        read_whole(tmp_path / "a.npz", npz_members(tmp_path / "a.npz")["y"])


def header(shape, descr="|u1", fortran=False):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": fortran, "shape": shape})
    return stream.getvalue()


def archive(path, content, *, name="x.npy", method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr(name, content)
    return path


def test_pickled_objects_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(BadFileError, match="pickled objects never"):
        npz_members(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (header((1000, 1000, 1000)) + b"abc", "bytes of it"),
        (header((2, 2)) + b"abcde", "bytes of it"),
        (header((10**9,)), "not a list of images"),
        (header((5_000_000, 2**20, 2**20)), "GiB"),
        (header((2, 2), fortran=True) + b"abcd", "Fortran"),
        (header(()) + b"a", "not a list of images"),
        (header((2,), descr="<U1") + b"a" * 8, "plain numbers"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "damaged"),
        (b"no array", "damaged"),
        (b"\x93NUMPY\x03\x00\x10\x00\x00\x00" + b" " * 16, "format"),
    ],
)
def test_lying_headers_are_refused(tmp_path, content, reason):
    with pytest.raises(BadFileError, match=reason):
        npz_members(archive(tmp_path / "a.npz", content))


def test_other_ways_of_packing_are_refused(tmp_path):
    path = archive(tmp_path / "a.npz", header((2,)) + b"ab", method=zipfile.ZIP_BZIP2)
    with pytest.raises(BadFileError, match="not read"):
        npz_members(path)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text.npz").write_text("no archive")
    (tmp_path / "empty.npz").write_bytes(b"")
    archive(tmp_path / "nothing.npz", b"x", name="readme.txt")
    with zipfile.ZipFile(tmp_path / "many.npz", "w") as file:
        for number in range(70):
            file.writestr(f"{number}.npy", header((1,)) + b"a")
    for name in ("text", "empty", "nothing", "many", "absent"):
        with pytest.raises(BadFileError):
            npz_members(tmp_path / f"{name}.npz")


def test_damaged_data_are_found(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.random.default_rng(0).integers(0, 256, (9, 30, 30), dtype=np.uint8))
    member = npz_members(path)["x"]
    content = bytearray(path.read_bytes())
    content[member.start + member.packed_size // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(BadFileError, match="damaged"):
        list(item_digests(path, member))


@pytest.mark.slow
def test_memory_stays_small(tmp_path):
    """A packed gigabyte of zeros is read item by item."""
    import resource

    path = tmp_path / "a.npz"
    size, count = 4 * 2**20, 64
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("x.npy", "w", force_zip64=True) as packed:
        packed.write(header((count, size)))
        for number in range(count):
            packed.write(bytes([number]) * size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    items = items_of(path, "x")
    for index in (63, 1, 40):
        assert (items.read(index) == index).all()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 80, f"{grown:.0f} MiB for items of 4 MiB of a member of 256 MiB"

"""Near-duplicates: copies are found, different pictures are not, without comparing all pairs."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from depicted_records import picture
from hypothesis import given
from hypothesis import strategies as st

from medtest.readers.embeddings.hashes import perceptual_hash
from medtest.results.fidelity.duplicates.index import MOST_BITS, HashIndex, cosine_of, representatives
from tests.results.fidelity.array_features import ArrayFeatures


def _bits(first: bytes, second: bytes) -> int:
    return (int.from_bytes(first, "big") ^ int.from_bytes(second, "big")).bit_count()


def _flip_bits(content: bytes, places: list[int]) -> bytes:
    value = int.from_bytes(content, "big")
    for place in places:
        value ^= 1 << place
    return value.to_bytes(32, "big")


@given(st.binary(min_size=32, max_size=32), st.sets(st.integers(0, 255), max_size=MOST_BITS))
def test_every_hash_within_fifteen_bits_is_found(content: bytes, places: set[int]) -> None:
    index = HashIndex()
    index.add(3, content)
    assert index.near(_flip_bits(content, list(places))) == [(3, len(places))]


def test_hashes_beyond_are_not_found_and_more_bits_are_refused() -> None:
    content = bytes(range(32))
    index = HashIndex(4)
    index.add(0, content)
    assert index.near(_flip_bits(content, [1, 2, 3, 4, 5])) == []
    with pytest.raises(ValueError, match="at most 15"):
        HashIndex(16)


def test_a_picture_keeps_its_hash_through_noise_size_and_compression_and_others_differ() -> None:
    hashes = [perceptual_hash(picture(n, size=256)) for n in range(40)]
    assert min(_bits(hashes[a], hashes[b]) for a in range(40) for b in range(a)) > MOST_BITS
    for number in range(40):
        image = picture(number, size=256)
        smaller = cv2.resize(image, (192, 192), interpolation=cv2.INTER_AREA)
        packed = cv2.imdecode(cv2.imencode(".jpg", image, (cv2.IMWRITE_JPEG_QUALITY, 85))[1], cv2.IMREAD_COLOR)
        for other in (picture(number, noise=9, size=256), smaller, packed):
            assert _bits(hashes[number], perceptual_hash(other)) <= MOST_BITS


def test_one_picture_for_all_is_one_group() -> None:
    hashes = [perceptual_hash(picture(1, noise=n, size=128)) for n in range(1, 200)]
    groups = representatives(hashes, None, 0.9)
    assert {picture_.number for picture_ in groups} == {0}


def test_the_second_measure_keeps_apart_what_shares_a_hash() -> None:
    content = [bytes(32)] * 3
    features = ArrayFeatures(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.01]]))
    groups = representatives(content, cosine_of(features), 0.97)
    assert [picture_.number for picture_ in groups] == [0, 1, 0]
    assert groups[2].similarity == pytest.approx(1.0, abs=1e-4)


def test_groups_do_not_grow_along_chains() -> None:
    first = bytes(32)
    chain = [_flip_bits(first, list(range(n))) for n in (0, 10, 20)]
    assert [item.number for item in representatives(chain, None, 0.0)] == [0, 0, 2]

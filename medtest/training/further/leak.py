"""Check that no training image is among the tested images, comparing pixels instead of names.

Two pictures are the same if they decode to the same pixels (formats and names do not matter), if they are equal after
the suite's preparation, or if one is the suite's preparation of the other (a copy stored at 512×512 is still that
picture, and so is the crop of a suite with ``prepare.resize``). Other crops and sizes, other compression and other
frames of a video are not detected: split the data by patient.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from medtest.core.cases import Image, SeedRef, image_sha256
from medtest.core.errors import Mistake, UserMistakes
from medtest.preparation.prepare import prepared_image
from medtest.seeds.base import SeedSource

SHOWN = 200
"""Maximum number of shared images listed on the terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Print:
    """Fingerprint of a picture.

    Attributes:
        native: SHA-256 of its pixels in the file.
        prepared: SHA-256 of its pixels after the suite's preparation.
    """

    native: str
    prepared: str


def print_of(image: Image, size: int | None, resize: int | None = None) -> Print:
    """Return the fingerprint of a picture.

    Args:
        image: uint8 H×W×3 RGB.
        size: Side to which the suite resizes images; None for their own.
        resize: Its ``prepare.resize``, the size before the centre crop.
    """
    prepared = prepared_image(image, size=size, resize=resize)
    return Print(native=image_sha256(image), prepared=image_sha256(prepared))


def prints_of(
    sources: Iterable[SeedSource], *, size: int | None, resize: int | None = None
) -> Iterator[tuple[SeedRef, Print]]:
    """Yield every seed of some sources with its picture's fingerprint, with one picture in memory at a time."""
    for source in sources:
        for ref in source.refs():
            yield ref, print_of(source.load(ref).image, size, resize)


def shared_images(training: Mapping[str, Print], tested: Iterable[tuple[SeedRef, Print]]) -> list[tuple[str, str]]:
    """Return (training image, test seed) for every test seed that is a training image.

    Args:
        training: Prints by name.
        tested: Test seeds.
    """
    names = {digest: name for name, digests in training.items() for digest in (digests.prepared, digests.native)}
    shared: list[tuple[str, str]] = []
    for ref, digests in tested:
        name = names.get(digests.native) or names.get(digests.prepared)
        if name is not None:
            shared.append((name, f"{ref.dataset}/{ref.seed_id}"))
    return shared


def refuse_shared(shared: Sequence[tuple[str, str]]) -> None:
    """Raise an error if training images are test seeds.

    Raises:
        UserMistakes: There are some; every one is named (the first 200 of very many).
    """
    if not shared:
        return
    mistakes = [
        Mistake(where="data", key=name, found=f"the same picture as test seed {tested}")
        for name, tested in shared[:SHOWN]
    ]
    if len(shared) > SHOWN:
        mistakes.append(Mistake(where="data", found=f"{len(shared) - SHOWN} further pictures"))
    mistakes.append(
        Mistake(
            where="data",
            allowed="training pictures that the suite does not test on",
            fix="take them out of the folder of data=, or test on others",
        )
    )
    count = len(shared)
    verb = "picture is a test seed" if count == 1 else "pictures are test seeds"
    raise UserMistakes(mistakes, heading=f"{count} training {verb}; nothing was trained")

"""Colour TIFFs that call themselves grey, as CVC-ClinicDB's 612 do, given the header that they should have.

Their PhotometricInterpretation is 1 (black is zero), which one sample a pixel may have, while they hold three. Pillow
refuses them and OpenCV reads the first sample alone; tags are those of TIFF 6.0 and of BigTIFF.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

BITS, PHOTOMETRIC, SAMPLES, EXTRA = 258, 262, 277, 338
_GREY, _RGB = 1, 2
_SHORT = 3
_KINDS = {0: "white-is-zero", 1: "grey", 2: "RGB", 3: "palette", 5: "CMYK", 6: "YCbCr", 8: "CIELab"}
_MOST_ENTRIES = 4096


@dataclass(frozen=True, slots=True)
class _Form:
    """Widths of one of the two formats: how the number of entries, an entry and an offset are packed."""

    order: str
    count: str
    entry: str
    offset: str

    def size(self, form: str) -> int:
        return struct.calcsize(self.order + form)

    @property
    def inline(self) -> int:
        """Bytes of a value that stands in its entry."""
        return self.size(self.offset)


_FORMS = {
    b"II*\0": (_Form("<", "H", "HHI", "I"), 4),
    b"MM\0*": (_Form(">", "H", "HHI", "I"), 4),
    b"II+\0": (_Form("<", "Q", "HHQ", "Q"), 8),
    b"MM\0+": (_Form(">", "Q", "HHQ", "Q"), 8),
}
"""By the first four bytes, with where the offset of the first directory stands."""


def is_tiff(content: bytes) -> bool:
    """Say whether a file begins as a TIFF does."""
    return content[:4] in _FORMS


def declared_rgb(content: bytes) -> bytes:
    """Return a file's bytes; of a TIFF with three or more samples a pixel that says grey, the first directory mended.

    Its samples are then red, green and blue, and of further ones that ExtraSamples describes the first two are taken
    off that list. Whatever else a file is, or should its directory be damaged, comes back as it is.
    """
    if not is_tiff(content):
        return content
    try:
        return _mended(content)
    except struct.error:
        return content  # cut off inside its directory: decoders say so


def described(content: bytes) -> str:
    """Return what a TIFF's pixels are, in words; "" where its directory does not say or it is no TIFF."""
    if not is_tiff(content):
        return ""
    try:
        form, _, entries = _directory(content)
        by_tag = {_tag(form, entry): entry for entry in entries}
        samples = _short(form, by_tag[SAMPLES]) if SAMPLES in by_tag else 1
        bits = _shorts(form, content, by_tag[BITS])[0] if BITS in by_tag else 1
        kind = _KINDS.get(_short(form, by_tag[PHOTOMETRIC]), "unknown") if PHOTOMETRIC in by_tag else "no"
    except (struct.error, IndexError):
        return ""
    return f"{samples} sample{'' if samples == 1 else 's'} of {bits} bits a pixel and {kind} colours"


def _directory(content: bytes) -> tuple[_Form, int, list[bytes]]:
    """Return a TIFF's form, where its first directory stands, and the entries of that."""
    form, place = _FORMS[content[:4]]
    (start,) = struct.unpack_from(form.order + form.offset, content, place)
    (count,) = struct.unpack_from(form.order + form.count, content, start)
    if count > _MOST_ENTRIES:
        raise struct.error
    first, width = start + form.size(form.count), form.size(form.entry) + form.inline
    return form, start, [content[first + n * width : first + (n + 1) * width] for n in range(count)]


def _mended(content: bytes) -> bytes:
    form, start, entries = _directory(content)
    by_tag = {_tag(form, entry): n for n, entry in enumerate(entries)}
    if PHOTOMETRIC not in by_tag or SAMPLES not in by_tag:
        return content
    photometric, samples = (_short(form, entries[by_tag[tag]]) for tag in (PHOTOMETRIC, SAMPLES))
    if photometric != _GREY or samples < 3:
        return content
    entries[by_tag[PHOTOMETRIC]] = _entry(form, PHOTOMETRIC, [_RGB])
    if EXTRA in by_tag:
        further = _shorts(form, content, entries[by_tag[EXTRA]])[2:]
        if 2 * len(further) > form.inline:
            return content
        entries[by_tag[EXTRA]] = _entry(form, EXTRA, further) if further else b""
    width = form.size(form.entry) + form.inline
    end = start + form.size(form.count) + len(entries) * width
    following = content[end : end + form.inline]
    kept = [entry for entry in entries if entry]
    made = struct.pack(form.order + form.count, len(kept)) + b"".join(kept) + following
    made += b"\0" * (width * (len(entries) - len(kept)))
    return content[:start] + made + content[start + len(made) :]


def _tag(form: _Form, entry: bytes) -> int:
    tag: int = struct.unpack_from(form.order + "H", entry)[0]
    return tag


def _short(form: _Form, entry: bytes) -> int:
    value: int = struct.unpack_from(form.order + "H", entry, form.size(form.entry))[0]
    return value


def _shorts(form: _Form, content: bytes, entry: bytes) -> list[int]:
    _, _, count = struct.unpack_from(form.order + form.entry, entry)
    if count > _MOST_ENTRIES:
        raise struct.error
    where = form.size(form.entry)
    if 2 * count <= form.inline:
        return list(struct.unpack_from(f"{form.order}{count}H", entry, where))
    (offset,) = struct.unpack_from(form.order + form.offset, entry, where)
    return list(struct.unpack_from(f"{form.order}{count}H", content, offset))


def _entry(form: _Form, tag: int, values: list[int]) -> bytes:
    packed = struct.pack(f"{form.order}{len(values)}H", *values).ljust(form.inline, b"\0")
    return struct.pack(form.order + form.entry, tag, _SHORT, len(values)) + packed

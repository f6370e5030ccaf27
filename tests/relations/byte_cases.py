"""Every kind of picture that medtest makes, with its SHA-256: none may depend on the processor.

``python byte_cases.py [KIND ...]`` prints, as one line of JSON, the processor features of NumPy and OpenCV and a digest
of every case, so that processes that see different processors can be compared.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import cv2
import numpy as np
from corruption_parts import VARIANTS, seed_of, smooth_picture

from medtest.core.cases import Address, ImageSpec, Peers, PreparedSeed, Seed, SeedRef
from medtest.core.errors import NotApplicable
from medtest.core.plugins import PartInfo, parts
from medtest.phantoms import capsule, chest, fundus, questions, skin
from medtest.phantoms.abdomen.generator import abdomen_rng
from medtest.phantoms.colon import colon_rng, make_colon
from medtest.phantoms.films import make_film
from medtest.preparation import prepare, seed_factors
from medtest.preparation.visibility import source_visibility, visibility
from medtest.relations.base import CraftedRelation
from medtest.relations.series import follow_up
from medtest.seeds.made.abdomens import Abdomens, AbdomenSettings
from medtest.seeds.volumes.dicom_file import _window
from medtest.seeds.volumes.scikit_images import NAMES, load_image
from medtest.testing import SUITE_SEED, synthetic_seed

Cases = Iterator[tuple[str, Any]]

LABELLED = {"capsule": capsule, "skin": skin, "fundus": fundus, "chest": chest}
SERIES = (
    (ImageSpec(axes="yx"), (61, 83)),
    (ImageSpec(axes="yxc"), (120, 97, 3)),
    (ImageSpec(dtype="float32", axes="yx", low=-200.0, high=300.0), (90, 64)),
    (ImageSpec(dtype="float32", axes="zyx", low=-200.0, high=300.0), (9, 40, 52)),
    (ImageSpec(axes="tyx"), (5, 48, 64)),
    (ImageSpec(dtype="uint16", axes="yx", high=4095.0), (70, 71)),
    (ImageSpec(dtype="float64", low=-1, high=1, axes="yxc"), (32, 40, 3)),
    (ImageSpec(dtype="float64", low=-1, high=1, axes="zyx"), (7, 33, 41)),
)


def digest_of(value: Any) -> str:
    """Return the SHA-256 of arrays, JSON values, and dataclasses of them."""
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Peers):  # loads other cases, which are separate cases here
        _add(digest, value.refs)
    elif is_dataclass(value):
        for field in fields(value):
            if not field.name.startswith("_"):
                _add(digest, getattr(value, field.name))
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            digest.update(str(key).encode())
            _add(digest, value[key])
    elif isinstance(value, tuple | list):
        for item in value:
            _add(digest, item)
    else:
        digest.update(repr(value).encode())


def colons() -> Cases:
    """Phantoms of the colon in sizes of real scopes and small."""
    for index in range(10):
        yield f"{index}", make_colon(colon_rng(20240, "phantoms", index))
    for index in range(30):
        yield f"small-{index}", make_colon(colon_rng(7, "phantoms", index), size=(144 + index, 176))


def labelled() -> Cases:
    """Phantoms with labels."""
    for name, kind in LABELLED.items():
        for index in range(12):
            yield f"{name}-{index}", kind.make(index, 20240)
            yield f"{name}-small-{index}", kind.make(index, 3, size=131)


def asked() -> Cases:
    """Phantoms with questions."""
    for index in range(20):
        yield f"{index}", questions.make(index, 20250, size=192)
    for index in (20, 198):
        yield f"{index}", questions.make(index, 20250)


def films() -> Cases:
    """Films with moving things."""
    for index, (frames, size) in enumerate([(60, (120, 160)), (7, (50, 61)), (33, (90, 90)), (20, (240, 320))]):
        yield f"{index}", make_film(np.random.default_rng(index), frames=frames, size=size, empty=3)


def abdomens() -> Cases:
    """CT volumes: the cohort's shapes, then voxels."""
    settings = AbdomenSettings(count=3, repeats=2, shape=[36, 52, 72], spacing=[6.0, 5.0, 5.0])
    source = Abdomens(dataset="livers", settings=settings, root=None, suite_seed=7)
    for ref in source.refs():
        yield ref.seed_id, source.load(ref)
    yield "stream", abdomen_rng(1, "livers", 2).standard_normal(5)


def prepared() -> Iterator[tuple[str, PreparedSeed]]:
    """Seeds of many kinds as relations get them: drawn by hand, phantoms and photographs, whole and cropped."""
    for number, (height, width) in enumerate([(96, 128), (288, 320), (211, 305)]):
        yield f"hand-{number}", synthetic_seed(number, height=height, width=width)
    yield "hand-bare", synthetic_seed(1, height=200, width=200, labelled=False, framed=False)
    wide = smooth_picture(150, 190)
    yield "wide", seed_of(wide[7:135, 6:134], wide)
    for index in range(3):
        phantom = make_colon(colon_rng(20240, "phantoms", index), size=(288, 384))
        yield f"colon-{index}", _prepared(f"colon-{index}", phantom.image, phantom.mask, size=256)
    made_capsule = capsule.make(1, 20240)
    yield "capsule", _prepared("capsule", made_capsule.image, made_capsule.mask, size=224, resize=256)
    for name in ("astronaut", "retina", "coffee"):
        yield name, _prepared(name, load_image(name), None, size=200)


def _prepared(seed_id: str, image: Any, mask: Any, **sizes: Any) -> PreparedSeed:
    return prepare(Seed(ref=SeedRef(dataset="bytes", seed_id=seed_id), image=image, expected=mask), **sizes)


def preparation() -> Cases:
    """All results of preparation, factors too, and pictures that come with scikit-image."""
    for name, seed in prepared():
        yield name, seed
        for kind in ("mask", "label"):
            yield f"{name}-factors-{kind}", seed_factors(replace(seed, kind=kind))
        yield f"{name}-visibility", [source_visibility(seed), visibility(seed, seed.image // 2)]
    for name in NAMES:
        image = load_image(name)
        yield f"read-{name}", image
        if image.ndim == 3:
            for size, resize in ((None, None), (512, None), (224, 256)):
                yield f"prepared-{name}-{size}-{resize}", _prepared(name, image, None, size=size, resize=resize)
    levels = np.arange(-2000, 3000)
    for function in ("LINEAR", "LINEAR_EXACT", "SIGMOID"):
        yield f"window-{function}", np.rint(255 * _window(levels, 40.0, 400.0, function)).astype(np.uint8)
        yield f"window-{function}-narrow", np.rint(255 * _window(levels, 33.7, 77.0, function)).astype(np.uint8)


def relations() -> Cases:
    """Follow-ups on 8-bit colour pictures: each relation, mode, form, severity and seed."""
    seeds = list(prepared())
    for name, info in sorted(parts("relations").items()):
        crafted = issubclass(info.load(), CraftedRelation)  # gradients differ by processor: their pixels are kept
        is_prompt = ".prompts." in info.target
        if info.target.startswith("medtest.") and name not in ("measured", "perturb") and not crafted and not is_prompt:
            for label, settings in _settings(name, info):
                relation_class = info.load()
                relation = relation_class(relation_class.Settings(**{**info.defaults, **settings}))
                for seed_id, seed in seeds:
                    yield from _follow_ups(f"{name}-{label}-{seed_id}", relation, seed)


def _settings(name: str, info: PartInfo) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "levels", {}
    if name.startswith("corruption_"):
        for variant in VARIANTS:
            yield variant, {"form": "sequence", "variant": variant, "severities": [1], "frames": 6}
    elif ".noise." not in info.target:
        drawn = {"mode": "published"} if "mode" in info.load().Settings.model_fields else {}
        yield "published", {**drawn, "repeats": 3}
    if name == "instrument":
        yield "shaft", {"kind": "shaft"}


def _follow_ups(name: str, relation: Any, seed: PreparedSeed) -> Cases:
    for severity in relation.severities():
        for repeat in range(relation.repeats()):
            for frame in sorted({0, relation.frames() // 2, relation.frames() - 1}):
                address = Address(
                    dataset="bytes", seed_id=seed.ref.seed_id, relation="r",
                    severity=severity, repeat=repeat, frame=frame,
                )  # fmt: skip
                try:
                    result = follow_up(relation, seed, address, SUITE_SEED)
                except NotApplicable as reason:
                    yield f"{name}-{severity}-{repeat}-{frame}", str(reason)
                    continue
                yield (
                    f"{name}-{severity}-{repeat}-{frame}",
                    [result.image, result.params, result.scale, result.effect, result.facts],
                )


def series() -> Cases:
    """Noise on images of every dtype and dimension."""
    for name, info in sorted(parts("relations").items()):
        if ".noise." in info.target:
            relation_class = info.load()
            for units in ("own", "of_255"):
                relation = relation_class(relation_class.Settings(**{**info.defaults, "units": units}))
                for number, (spec, shape) in enumerate(SERIES):
                    yield from _follow_ups(f"{name}-{units}-{number}", relation, _series_seed(spec, shape))


def _series_seed(spec: ImageSpec, shape: tuple[int, ...]) -> PreparedSeed:
    rng = np.random.default_rng(3)
    image = (spec.low + spec.span * rng.random(shape)).astype(spec.dtype)
    return prepare(Seed(ref=SeedRef(dataset="bytes", seed_id="s"), image=image, kind="image", spec=spec), size=None)


KINDS: dict[str, Callable[[], Cases]] = {
    "colons": colons,
    "labelled": labelled,
    "asked": asked,
    "films": films,
    "abdomens": abdomens,
    "preparation": preparation,
    "relations": relations,
    "series": series,
}


def digests(kinds: list[str]) -> dict[str, str]:
    """Return the digest of every case of these kinds, by its name."""
    return {f"{kind}/{name}": digest_of(case) for kind in kinds for name, case in KINDS[kind]()}


if __name__ == "__main__":
    output = {
        "numpy": np.show_config(mode="dicts")["SIMD Extensions"].get("found", []),  # type: ignore[call-overload, index]
        "opencv": cv2.getCPUFeaturesLine(),
        "digests": digests(sys.argv[1:] or list(KINDS)),
    }
    print(json.dumps(output))

"""Bytes that must not change while ``revision`` stays: raise it together with the hash."""

from __future__ import annotations

import hashlib
import json
import platform

import pytest

from medtest.core.cases import Address, image_sha256
from medtest.core.errors import NotApplicable
from medtest.core.plugins import parts
from medtest.relations.base import Relation
from medtest.testing import SUITE_SEED, synthetic_seed

GOLDEN: dict[str, tuple[int, str]] = {
    "blur": (2, "fe2973b25f6f23f0"),
    "breathing": (1, "5af4f8e3aaa5e418"),
    "bubbles": (3, "91ee1e080ff87e62"),
    "contrast": (2, "bc0b1f7aee2822c6"),
    "elastic": (1, "8301478bf3b9aee0"),
    "image_removed": (1, "52f127e9409ea45c"),
    "lens_distortion": (1, "30d4f9a643141bb0"),
    "lens_drop": (2, "cf053547bc09f1bb"),
    "lens_fog": (2, "3823469c3ad69fdc"),
    "lesion_erased": (1, "612243ea24e8aa87"),
    "lesion_swapped": (1, "8945defdf8708074"),
    "saturation": (2, "1ad86ae0bcb1167d"),
    "smoke": (2, "a515a8cd46a33abc"),
    "specularity": (3, "bcbfd71ec4df92d3"),
    "streak": (1, "f379afaeb0c0464d"),
    "text": (1, "0c85b3b5baaa33d5"),
    "tissue_erased": (1, "af02fc27ef8eccf2"),
    "unchanged": (1, "b891c7350b2b3179"),
    "white_balance": (2, "b49a6dea9d945aad"),
}


def fingerprint(name: str) -> tuple[int, str]:
    info = parts("relations")[name]
    relation_class = info.load()
    digest = hashlib.sha256()
    for mode in ("levels", "published"):
        settings = {**info.defaults, "mode": mode} if "mode" in relation_class.Settings.model_fields else info.defaults
        relation: Relation = relation_class(relation_class.Settings(**settings))
        for number in range(2):
            seed = synthetic_seed(number)
            for severity in relation.severities():
                address = Address(
                    dataset="golden", seed_id=seed.ref.seed_id, relation=name, severity=severity, repeat=number
                )
                try:
                    result = relation.follow_up(seed, severity, relation.generator(address, SUITE_SEED))
                except NotApplicable:
                    digest.update(b"skipped")
                    continue
                digest.update(image_sha256(result.image).encode())
                digest.update(json.dumps(result.params, sort_keys=True).encode())
    return relation_class.revision, digest.hexdigest()[:16]


def test_the_synthetic_seed_itself_is_what_the_hashes_were_made_from() -> None:
    assert image_sha256(synthetic_seed(0).image)[:16] == "5e0fd9479706d613"


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="bytes are promised per CPU architecture")
@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_bytes_are_those_of_the_revision(name: str) -> None:
    assert fingerprint(name) == GOLDEN[name], f"{name} gives other bytes: raise its revision and mend the table"


def test_every_relation_of_this_module_is_guarded() -> None:
    pictures = {"unchanged", "saturation", "contrast", "white_balance", "specularity", "blur", "text"}
    nested = {"breathing", "bubbles", "elastic", "lens_distortion", "lens_drop", "lens_fog", "smoke", "streak"}
    controls = {"image_removed", "lesion_erased", "lesion_swapped", "tissue_erased"}
    assert set(GOLDEN) == pictures | nested | controls

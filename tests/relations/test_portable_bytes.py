"""Follow-ups and phantoms have the same bytes on any processor from AVX2 and FMA on.

Further features of this processor are switched off in separate processes, library by library: NumPy's routines,
OpenCV's and its IPP, the kernels of BLAS. Phantoms keep their bytes without AVX2 too.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
CASES = Path(__file__).with_name("byte_cases.py")
GOLDEN = "bytes_are_those_of_the_revision or bytes_belong_to_the_revision or test_bytes_stay"
PHANTOMS = ("colons", "labelled", "asked")


def numpy_features(beyond: str) -> list[str]:
    """Return NumPy's names of this processor's features that match."""
    extensions = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])  # type: ignore[call-overload, index]
    return [name for name in extensions if re.match(beyond, name)]


def opencv_features(beyond: str) -> list[str]:
    """Return OpenCV's names of this processor's features that it dispatches by and that match."""
    return [name for name in re.findall(r"\*(\S+?)(?=\s|$)", cv2.getCPUFeaturesLine()) if re.match(beyond, name)]


def without_avx512() -> dict[str, str]:
    """Return an environment in which no library sees AVX-512."""
    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join(numpy_features("AVX512|X86_V4")),
        "OPENBLAS_CORETYPE": "Haswell",
        "OPENCV_CPU_DISABLE": ",".join(opencv_features("AVX512")),
        "OPENCV_IPP": "avx2",
    }


needs_avx512 = pytest.mark.skipif(
    not numpy_features("AVX512|X86_V4") or not opencv_features("AVX512"),
    reason="this processor has no AVX-512 that could be switched off",
)


@cache
def digests(switched: tuple[tuple[str, str], ...] = (), kinds: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the output of ``byte_cases.py`` in an environment."""
    ran = subprocess.run(
        [sys.executable, str(CASES), *kinds],
        capture_output=True, text=True, check=True, cwd=ROOT, env=os.environ | dict(switched),
    )  # fmt: skip
    output: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return output


@needs_avx512
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_case_has_the_same_bytes_without_avx512() -> None:
    with_avx512, without = digests(), digests(tuple(without_avx512().items()))
    assert len(with_avx512["digests"]) > 4000
    for library in ("numpy", "opencv"):
        assert with_avx512[library] != without[library]  # it was switched off
    names = with_avx512["digests"].keys() | without["digests"].keys()
    other = sorted(name for name in names if with_avx512["digests"].get(name) != without["digests"].get(name))
    assert not other, f"{len(other)} cases differ: {other[:20]}"


@needs_avx512
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_golden_hash_holds_without_avx512() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", GOLDEN,
         *(f"tests/{room}" for room in ("relations", "phantoms"))],
        capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | without_avx512(),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert int(re.findall(r"(\d+) passed", ran.stdout)[-1]) >= 41


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_phantoms_have_the_same_bytes_without_avx2() -> None:
    with_avx2 = digests(kinds=PHANTOMS)["digests"]
    for switched in (
        {"OPENCV_IPP": "disabled", "OPENCV_CPU_DISABLE": ",".join(opencv_features("."))},
        {"NPY_DISABLE_CPU_FEATURES": " ".join(numpy_features("."))},
    ):
        without = digests(tuple(switched.items()), PHANTOMS)["digests"]
        assert sorted(name for name in with_avx2 if with_avx2[name] != without[name]) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_frozen_records_give_the_same_tables_on_any_processor() -> None:
    switched = {"NPY_DISABLE_CPU_FEATURES": " ".join(numpy_features(".")), "OPENBLAS_CORETYPE": "Prescott"}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/cli/test_golden.py"],
        capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | switched,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:]

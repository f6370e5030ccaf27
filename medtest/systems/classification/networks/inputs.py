"""How each family of classification networks wants its pixels."""

from __future__ import annotations

from collections.abc import Mapping

from medtest.systems.checkpoints.inputs import PLAIN, InputKind

INPUTS: Mapping[str, InputKind] = {
    "agdn": PLAIN,
    "dsinet": PLAIN,
}
"""By family."""

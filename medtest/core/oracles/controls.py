"""Judgement of controls: whether an answer stays although the evidence for it is gone.

A control removes what an answer should rest on. The oracle of a task states which share of the source's answer is still
in the answer to the follow-up (:meth:`medtest.core.oracles.base.Oracle.kept`): marked pixels, labels, a parsed value,
drawn things. With :data:`LIMIT` of it or more the answer is *kept*. A control of evidence fails if the answer is kept;
its sham, which changes as much without touching evidence, fails if the answer is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from medtest.core.cases import Reason, ReasonCode, Verdict
from medtest.core.errors import MedtestError
from medtest.core.plugins import parts

LIMIT = 0.5
"""Smallest share of the source's answer that counts as keeping it."""

EVIDENCE, SHAM = "evidence", "sham"
"""Roles of controls: the evidence is gone, or something else of equal extent."""

NOTHING_TO_LOSE = Reason(ReasonCode.NOTHING_TO_LOSE, "the answer to the source names or marks nothing that could go")


def control_verdict(kept: float, role: str) -> Verdict:
    """Return the verdict of a control.

    Args:
        kept: Share of the source's answer that is still given, in [0, 1].
        role: :data:`EVIDENCE` or :data:`SHAM`.
    """
    stays = kept >= LIMIT
    return Verdict.PASS if stays == (role == SHAM) else Verdict.FAIL


def roles_of(relations: Mapping[str, str]) -> dict[str, str]:
    """Return the roles of controls by id.

    Args:
        relations: Relation ids of a suite with the names of their parts; those that cannot be loaded are left out.
    """
    return {name: str(loaded.control) for name, loaded in _loaded(relations) if loaded.control}


def sham_of(relations: Mapping[str, str], control: str) -> str:
    """Return the id of the relation that a control of a suite is compared with; "" if the suite has none.

    Args:
        relations: As in :func:`roles_of`.
        control: Id of the control.
    """
    named = next((str(loaded.sham) for name, loaded in _loaded(relations) if name == control), "")
    return next((name for name, part in relations.items() if part == named), "")


def _loaded(relations: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    installed = parts("relations")
    for name, part in relations.items():
        with suppress(KeyError, MedtestError):
            yield name, installed[part].load()

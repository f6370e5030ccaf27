"""Composed form of a suite: plain data for ``suite.yaml``, ``run.json`` and MLflow, without paths or keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from medtest.suite.checking.exclusion import COPY
from medtest.suite.checking.validation import trusted_keys
from medtest.suite.model import PairedGate, PartPlan, Suite
from medtest.suite.reading.safety import Key


def plain_settings(plan: PartPlan) -> dict[str, Any]:
    """Return a part's validated settings as JSON data without the fields reserved for conf/ and the command line."""
    return _untrusted(plan, plan.settings.model_dump(mode="json"))


def counted_settings(plan: PartPlan) -> dict[str, Any]:
    """Return the part's settings for digests: :func:`plain_settings`, with removed fields at their defaults."""
    return _untrusted(plan, plan.settings.counted())


def _untrusted(plan: PartPlan, values: dict[str, Any]) -> dict[str, Any]:
    for key in trusted_keys(type(plan.settings)):
        values = without(values, key)
    return values


def with_composed(suite: Suite) -> Suite:
    """Return the suite with its composed form, from which the same suite can be composed again."""

    def family(plans: tuple[PartPlan, ...], uses: str) -> dict[str, Any]:
        return {
            p.id: {
                uses: p.info.name,
                **({"search": p.search} if p.search else {}),
                **_without_empty(asdict(p.trace)),
                **_without_empty(plain_settings(p)),
            }
            for p in plans
        }

    oracle, relations = suite.oracle, family(suite.relations, "relation")
    for name, crafter in suite.crafters.items():
        if crafter not in suite.systems:
            relations[name]["crafted_on"] = {"use": crafter.info.name, **_without_empty(plain_settings(crafter))}
    # Paired gates name runs of this machine.
    portable_gates = [gate for gate in suite.gates if not isinstance(gate, PairedGate)]
    composed = {
        "name": suite.name,
        "version": suite.version,
        "description": suite.description,
        **({"intended_use": suite.intended_use} if suite.intended_use else {}),
        "seed": suite.seed,
        "seeds": family(suite.seeds, "source"),
        "relations": relations,
        "systems": family(suite.systems, "use"),
        "oracles": {
            "oracle": oracle.part.info.name,
            "primary": asdict(oracle.primary),
            "scores": list(oracle.scores),
            "thresholds": list(oracle.thresholds),
            "against": list(oracle.against),
            **_without_empty(plain_settings(oracle.part)),
            **_reader(oracle.reader),
        },
        **({"gates": [_without_empty(asdict(gate)) for gate in portable_gates]} if portable_gates else {}),
        "privacy": suite.privacy.stated(),
        "prepare": {**suite.prepare.covers(), "size": "native" if suite.prepare.size is None else suite.prepare.size},
        **({} if suite.answers == "compact" else {"answers": suite.answers}),
        **({"exclude": {"study": COPY}} if suite.exclude is not None else {}),
        **({"may_alter": list(suite.may_alter)} if suite.may_alter else {}),
        "max_error_percent": suite.max_error_percent,
    }
    return replace(suite, composed=composed)


def _reader(plan: PartPlan | None) -> dict[str, Any]:
    """Return the reader's settings; empty if the reader came with its oracle."""
    if plan is None or plan.info.load().of_oracle:
        return {}
    return {"reader": {"use": plan.info.name, **_without_empty(plain_settings(plan))}}


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """Omit empty lists and null: an omitted value is the part's default."""
    cleaned = {name: _without_empty(item) if isinstance(item, dict) else item for name, item in values.items()}
    return {name: item for name, item in cleaned.items() if item is not None and item != []}


def without(values: Mapping[str, Any], key: Key) -> dict[str, Any]:
    """Return a copy of nested mappings without one key."""
    copy = dict(values)
    first = str(key[0])
    if len(key) == 1:
        copy.pop(first, None)
    elif isinstance(copy.get(first), Mapping):
        copy[first] = without(copy[first], key[1:])
    return copy

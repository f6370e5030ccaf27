"""The first printed page: system and suite, result, three figures, the weakest relation, one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_FIGURES = 3
_FACTS = ("System", "Model", "Suite", "Source cases", "Follow-ups", "Finished")


def first_page(page: Mapping[str, Any], weakest: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the content of the first page.

    Args:
        page: Data of the report's template.
        weakest: Card of the weakest relation; None if no relation was violated.
    """
    named = [(name, value) for name, value in page["facts"] if name in _FACTS]
    cards: Sequence[Mapping[str, Any]] = [card for card in page["cards"] if card is not weakest]
    return {
        "facts": named,
        "verdict": _verdict(page),
        "held": page["gates_judged"],
        "figures": list(cards[:_FIGURES]),
        "weakest": weakest,
        "warnings": list(page["warnings"]),
        "picture": _picture(page["strips"], weakest),
        "curve": next(iter(page["curves"]), None),
    }


def _picture(strips: Sequence[Mapping[str, Any]], weakest: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the worst case of the weakest relation, or of any relation if that has no strip."""
    name = "" if weakest is None else str(weakest["weakest"])
    shown = {str(strip["relation"]).replace("_", " "): strip for strip in reversed(strips)}
    return shown.get(name.replace("_", " ")) or next(iter(strips), None)


def _verdict(page: Mapping[str, Any]) -> str:
    """Return the overall result as a sentence."""
    last = page["gates_last"]
    if last is not None:
        return f"No gate is set now. Last evaluation, {last['time']}, suite version {last['version']}: {last['line']}"
    if not page["gates"]:
        return "The suite sets no gate, so this report states figures without a pass or fail."
    return str(page["gates_line"])

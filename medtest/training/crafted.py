"""Training images crafted on a system, read from a run over the training images instead of being crafted here."""

from __future__ import annotations

from medtest.core.cases import ReasonCode
from medtest.runner.replaying.crafted_runs import not_crafted
from medtest.runner.units.made_case import MadeCase
from medtest.runner.units.parts import NOT_STORED, Parts


def check_crafted(parts: Parts, case: MadeCase) -> None:
    """Raise an error if a crafted follow-up of a training image is not in any run.

    Args:
        parts: Parts of the training suite.
        case: The follow-up.

    Raises:
        UserMistakes: No run holds it; the message includes the command of the run that would.
    """
    if case.reason.code not in NOT_STORED:
        return
    settings = parts.suite.seeds[0].settings
    start, count = getattr(settings, "start", None), getattr(settings, "count", None)
    name = next(iter(parts.suite.composed.get("seeds", ())), "NAME")
    images = " data=FOLDER" if start is None else f" seeds.{name}.start={start} seeds.{name}.count={count}"
    images += " fresh=true" if case.reason.code == ReasonCode.FOLLOW_UP_LOST else ""
    raise not_crafted(parts.suite, case.address.relation, more=images).as_error()

"""``judge.use=NAME``: the model that reads unparsed answers, checked before anything runs."""

from __future__ import annotations

from typing import Any

from medtest.core.errors import nearest_name, typed_mistake
from medtest.readers.judge import NAME, Judge
from medtest.suite.digest import digest_of, oracle_digest
from medtest.suite.draft import Draft, settings_of
from medtest.suite.model import Suite
from medtest.suite.schema import JudgeBlock
from medtest.systems.answering.asking import BudgetLimits
from medtest.systems.answering.openai_compatible import OpenAICompatible

_SETTINGS = {"base_url": "base_url", "key_variable": "key_variable", "model_name": "model"}
"""Keys of the block and their names in the settings of a model."""
_READING_SYSTEM = "openai_compatible"


def judge_of(block: JudgeBlock, suite: Suite | None, draft: Draft) -> Judge | None:
    """Return the requested judge, or None; mistakes are added to the draft.

    Args:
        block: The options.
        suite: The judged suite; None if it has mistakes.
        draft: Provides the systems, and collects the mistakes.
    """
    options = {name: value for name, value in block.model_dump().items() if value is not None}
    if block.use is None:
        if options:
            key = next(iter(options))
            problem = f"{NAME}.{key} without {NAME}.use"
            draft.mistakes.append(typed_mistake(f"{NAME}.{key}", problem, fix=f"add {NAME}.use=gpt_4o"))
        return None
    if suite is not None and not suite.task.stream:
        problem = f"suite={suite.name}, whose systems do not answer in words"
        draft.mistakes.append(typed_mistake(f"{NAME}.use", problem, "suites whose seeds ask questions"))
        return None
    info = draft.systems.get(block.use)
    loaded = None if info is None else info.load()
    if info is None or loaded is None or not _reads(loaded):
        names = [name for name, info in draft.systems.items() if info.digest_name == _READING_SYSTEM]
        nearest = nearest_name(block.use, names)
        draft.mistakes.append(typed_mistake(f"{NAME}.use", block.use, ", ".join(names), nearest=nearest))
        return None
    own = {_SETTINGS[name]: value for name, value in options.items() if name in _SETTINGS}
    before = len(draft.mistakes)
    settings = settings_of(draft, (NAME,), info, own)
    if settings is None or len(draft.mistakes) > before:
        return None
    limits = BudgetLimits(max_usd=block.max_usd, max_calls=block.max_calls)
    return Judge(loaded(block.use, settings), limits)


def judge_view(suite: Suite, judge: Judge) -> str:
    """Return the digest of a suite's judgement with a judge's readings."""
    return digest_of({"oracle": oracle_digest(suite).value, NAME: judge.fingerprint()})


def _reads(target: Any) -> bool:
    return isinstance(target, type) and issubclass(target, OpenAICompatible) and not target.simulated

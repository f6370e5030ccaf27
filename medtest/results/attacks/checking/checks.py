"""Checks on attacks: ``tables/attack_checks.csv``.

A failed attack is not evidence of robustness: the gradients may be useless, the steps too coarse or the answers random
(N. Carlini et al., "On evaluating adversarial robustness", 2019; A. Athalye et al., "Obfuscated gradients give a false
sense of security", ICML 2018). Each check is a comparison that a sound attack passes. Two rates are compared on the
same source cases, with the interval of the difference (:mod:`medtest.results.rates.differences`): ``fails`` if the
difference is significant in the wrong direction, ``ok`` if it is not, ``not checked`` if there are no or too few cases
to compare.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from medtest.core.cases import SOURCE
from medtest.core.deferred import pd
from medtest.core.tasks.results import Graded
from medtest.results.attacks.checking.alone import of_setting, of_sources
from medtest.results.attacks.checking.found import (
    BLACK_BOX,
    EPSILON,
    FAILS,
    FLOOR,
    LARGE,
    LEFT_OF_MASKS,
    LITTLE,
    MISLEADING,
    OTHERS,
    ROUNDING,
    STEPS,
    STRONG,
    STRONGER,
    TOO_KIND,
    UNBOUNDED,
    CheckFinding,
)
from medtest.results.attacks.checking.misleading import misleading
from medtest.results.attacks.pairs import Difference, PairedCases
from medtest.results.attacks.settings import BLACK, GENERATOR, L_INF, NOISE, STRONGEST, TRANSFER, WHITE, Setting
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, Axes
from medtest.results.records.records_io import Records

COLUMNS = columns_in(__file__, "attack_checks")


def checks_table(records: Records, place: Axes, settings: Sequence[Setting], graded: Graded | None) -> pd.DataFrame:
    """Return one row for each check of each setting on each data set, with :data:`COLUMNS`.

    ``value``, ``ci_low``, ``ci_high`` and ``bound`` are fractions; those of ``within_epsilon`` are levels of 255.

    Args:
        records: Records of one system, with follow-ups.
        place: Axes of the records.
        settings: Settings from :func:`medtest.results.attacks.settings.settings_of`.
        graded: Correctness of the answers; if None, comparisons are reported as not checked.
    """
    rows: list[dict[str, Any]] = []
    crafted = [setting for setting in settings if setting.crafted]
    for number, name in enumerate(place.datasets if crafted else ()):
        for finding in of_sources(records, name):
            rows.append(_row(name, SOURCE, ALL, finding))
        checker = None if graded is None else _Checker(records, place, settings, graded, number)
        if checker is not None:
            rows.append(_row(name, SOURCE, ALL, checker.misleading()))
        for setting in crafted:
            for finding in of_setting(records, setting, place, number, graded):
                rows.append(_row(name, setting.relation, str(setting.severity), finding))
            for finding in () if checker is None else checker.compared(setting):
                rows.append(_row(name, setting.relation, str(setting.severity), finding))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def failed_checks(table: pd.DataFrame) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the failed checks by relation and severity; those of sources are under (``source``, ``all``).

    Severity ``all`` of a relation lists the checks that fail at any of its severities.
    """
    checks: dict[tuple[str, str], dict[str, None]] = {}
    bad = table.loc[(table["verdict"] == FAILS).to_numpy(dtype=bool)] if not table.empty else table
    for relation, severity, check in zip(bad["relation"], bad["severity"], bad["check"], strict=True):
        for level in dict.fromkeys((str(severity), ALL)):
            checks.setdefault((str(relation), level), {})[str(check)] = None
    return {key: tuple(names) for key, names in checks.items()}


def _row(dataset: str, relation: str, severity: str, finding: CheckFinding) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "relation": relation,
        "severity": severity,
        "check": finding.check,
        "value": round(finding.value, 6),
        "ci_low": round(finding.low, 6),
        "ci_high": round(finding.high, 6),
        "bound": finding.bound,
        "verdict": finding.verdict,
        "why": finding.why,
    }


class _Checker:
    """Comparisons of attack settings on one data set.

    Args:
        records: Records of one system.
        place: Axes of the records.
        settings: All settings.
        graded: Correctness of the answers.
        dataset: Index of the data set.
    """

    def __init__(
        self, records: Records, place: Axes, settings: Sequence[Setting], graded: Graded, dataset: int
    ) -> None:
        self._pairs = PairedCases(records, place, graded)
        self._settings, self._graded, self._dataset = settings, graded, dataset
        self._records = records

    def misleading(self) -> CheckFinding:
        """Return the check that gradients lead an attack to where answers change."""
        return misleading(self._records, self._settings, self._pairs, self._dataset)

    def compared(self, setting: Setting) -> Iterator[CheckFinding]:
        """Yield the checks that compare one crafted setting with others."""
        if not self._pairs.judged(setting, self._dataset).size:
            yield CheckFinding.unchecked(EPSILON, "no judged case")
            return
        if setting.role in (WHITE, BLACK, GENERATOR) and not setting.targeted:
            yield from self._weaker_settings(setting)
        if setting.role == WHITE:
            yield self._unbounded(setting)
            yield self._strongest_of(setting, BLACK_BOX, (BLACK, GENERATOR), "uses only scores and leaves less right")
            yield self._strongest_of(setting, OTHERS, (TRANSFER,), "comes from another system and leaves less right")
            check, why = (
                (STRONG, "is a single attack and leaves less right than the worst of several")
                if setting.part == STRONGEST
                else (STRONGER, "leaves less right")
            )
            yield self._strongest_of(setting, check, (WHITE, BLACK, GENERATOR, TRANSFER, NOISE), why)
        if not setting.targeted:
            yield self._noise(setting)
        yield from self._rounding(setting)

    def _weaker_settings(self, setting: Setting) -> Iterator[CheckFinding]:
        """Yield the checks that no smaller ε, and no run of the same attack with fewer steps, leaves less right."""
        alike = [
            candidate
            for candidate in self._settings
            if (candidate.family == setting.family or candidate.relation == setting.relation)
            and candidate is not setting
            and not candidate.targeted
        ]
        # Any relation counts: an image within a smaller ε on the same system is also within a white-box attack's larger
        # one.
        near = (
            alike
            if setting.role != WHITE
            else [candidate for candidate in self._settings if _beside(candidate, setting)]
        )
        smaller = [candidate for candidate in near if candidate.epsilon < setting.epsilon]
        fewer = [
            candidate
            for candidate in alike
            if candidate.epsilon == setting.epsilon and (candidate.steps or 0) < (setting.steps or 0)
        ]
        for check, weaker, reason in (
            (EPSILON, smaller, "images within a smaller ε are also within a larger one"),
            (STEPS, fewer, "more steps cannot find less"),
        ):
            worst = self._worst(setting, weaker)
            if worst is None:
                if check == EPSILON or setting.steps is not None:
                    lacking = (
                        "attack with a smaller ε" if check == EPSILON else "setting of the same attack with fewer steps"
                    )
                    why = f"no {lacking} to compare with"
                    yield CheckFinding.unchecked(check, why)
                continue
            other, difference = worst
            wrong = f"; {reason}, so this attack misses some: try a smaller step size or more steps"
            yield self._ordered(check, setting, other, difference, wrong)

    def _strongest_of(self, setting: Setting, check: str, roles: tuple[str, ...], why: str) -> CheckFinding:
        """Return the check that no attack with less knowledge leaves less right at the same ε."""
        others = [
            candidate
            for candidate in self._settings
            if candidate is not setting
            and candidate.role in roles
            and not candidate.targeted
            and candidate.norm == setting.norm
            and candidate.epsilon == setting.epsilon
        ]
        worst = self._worst(setting, others)
        if worst is None:
            return CheckFinding.unchecked(check, "no such attack at the same ε to compare with")
        other, difference = worst
        wrong = f"; {other.relation} {why}: gradients or step sizes hinder the white-box attack"
        return self._ordered(check, setting, other, difference, wrong)

    def _worst(self, setting: Setting, others: Sequence[Setting]) -> tuple[Setting, Difference] | None:
        """Return the other setting that beats this one most, by the lower end of the interval of the difference."""
        differences = [(candidate, self._pairs.between(setting, candidate, self._dataset)) for candidate in others]
        comparable = [(candidate, difference) for candidate, difference in differences if difference is not None]
        if not comparable:
            return None
        return max(comparable, key=lambda pair: (float(np.nan_to_num(pair[1].low, nan=-np.inf)), pair[1].value))

    def _ordered(
        self, check: str, setting: Setting, other: Setting, difference: Difference, wrong: str
    ) -> CheckFinding:
        """Return a check that fails if significantly more is right under the setting than under the other."""
        words = (
            f"{self._graded.measure} {difference.first:.3f} under {setting.words}, {difference.second:.3f} under "
            f"{other.words}: {difference.words}, {difference.cases:,} cases"
        )
        if np.isnan(difference.low):
            return CheckFinding.unchecked(check, f"{words}; a single seed gives no interval", {"bound": 0.0})
        return CheckFinding.of(check, not difference.above, words, {**difference.figures, "bound": 0.0}, wrong)

    def _unbounded(self, setting: Setting) -> CheckFinding:
        """Return the check that nothing is right at an ε large enough to replace the image."""
        if setting.norm != L_INF or setting.epsilon < LARGE or setting.targeted:
            return CheckFinding.unchecked(UNBOUNDED, f"ε is below {LARGE:g}/255 or of another norm")
        if setting.step is not None and setting.steps is not None and setting.step * setting.steps < setting.epsilon:
            why = f"{setting.steps} steps of {setting.step:g} levels do not reach ε = {setting.epsilon:g}"
            return CheckFinding.unchecked(UNBOUNDED, why)
        rows = self._pairs.judged(setting, self._dataset)
        right, whole = self._graded.right[rows], self._graded.whole[rows]
        if self._graded.measure.startswith("Dice"):
            value, bound = float((right / whole).mean()), LEFT_OF_MASKS
            words = f"mean Dice {value:.3f} of {len(rows):,} cases at ε = {setting.epsilon:g}/255"
        else:
            whole_right = int((right == whole).sum())
            value, bound = whole_right / len(rows), 0.0
            words = f"{whole_right:,} of {len(rows):,} answers are right at ε = {setting.epsilon:g}/255"
        explanation = ": this ε allows any image, so the attack does not work as intended"
        return CheckFinding.of(UNBOUNDED, value <= bound, words, {"value": value, "bound": bound}, explanation)

    def _noise(self, setting: Setting) -> CheckFinding:
        """Return the check that uniform noise of the same ε leaves more right."""
        noises = [
            candidate
            for candidate in self._settings
            if candidate.role == NOISE and candidate.epsilon == setting.epsilon
        ]
        worst = self._worst(setting, noises) if setting.norm == L_INF else None
        if worst is None:
            return CheckFinding.unchecked(FLOOR, "no uniform noise of the same ε to compare with")
        other, difference = worst
        words = (
            f"{self._graded.measure} {difference.first:.3f} under {setting.words}, {difference.second:.3f} under noise "
            f"of the same ε: {difference.words}, {difference.cases:,} cases"
        )
        figures = {**difference.figures, "bound": 0.0}
        if difference.first == 0:
            return CheckFinding.of(FLOOR, True, f"{words}; the attack leaves nothing right", figures)
        if not difference.below and not difference.above and not difference.low > -LITTLE:
            return CheckFinding.unchecked(FLOOR, f"{words}; too few cases to decide", figures)
        return CheckFinding.of(FLOOR, difference.below, words, figures, "; random noise is about as effective")

    def _rounding(self, setting: Setting) -> Iterator[CheckFinding]:
        """Yield the check that answers wrong before rounding to 8 bits are not right after it."""
        if setting.role == TRANSFER:
            return  # for transfer, the answer before rounding is that of the system the attack was crafted on
        difference = self._pairs.rounding(setting, self._dataset)
        if difference is None:
            return
        words = (
            f"{self._graded.measure} {difference.second:.3f} before rounding pixels to 8 bits, "
            f"{difference.first:.3f} after: {difference.words}, {difference.cases:,} cases"
        )
        figures = {**difference.figures, "bound": 0.0}
        if np.isnan(difference.low):
            yield CheckFinding.unchecked(ROUNDING, words, figures)
        else:
            explanation = "; without rounding the attack looks stronger than it is"
            yield CheckFinding.of(ROUNDING, not difference.above, words, figures, explanation)


def _beside(candidate: Setting, other: Setting) -> bool:
    return candidate.crafted_on == other.crafted_on and candidate.norm == other.norm and not candidate.targeted


Warn = Callable[[str, str], tuple[str, ...]]
"""Return the titles of the checks that a relation fails at a severity."""


def warner(table: pd.DataFrame, settings: Sequence[Setting], reached: Collection[tuple[str, str]] = ()) -> Warn:
    """Return a function that gives the failed checks of a setting, including those of its sources.

    Args:
        table: Table from :func:`checks_table`.
        settings: All settings.
        reached: Relations at severities under which no answer is right: their rates cannot be too optimistic.
    """
    failed = failed_checks(table)
    shared = tuple(check for check in failed.get((SOURCE, ALL), ()) if check != MISLEADING)
    levels = [(setting.relation, str(setting.severity)) for setting in settings if setting.crafted]
    crafted = {relation for relation, _ in levels}
    failing = {relation for relation, level in levels if (relation, level) not in reached}

    def warn(relation: str, severity: str) -> tuple[str, ...]:
        if relation not in crafted:
            return ()
        checks = (*shared, *failed.get((relation, severity), ()))
        all_reached = relation not in failing if severity == ALL else (relation, severity) in reached
        return tuple(check for check in checks if not (all_reached and check in TOO_KIND))

    return warn


def reached_settings(settings: Sequence[Setting], graded: Graded | None) -> frozenset[tuple[str, str]]:
    """Return the relations at severities of crafted cases under which no answer is right."""
    if graded is None:
        return frozenset()
    return frozenset(
        (setting.relation, str(setting.severity))
        for setting in settings
        if setting.crafted and graded.whole[setting.rows].any() and not graded.right[setting.rows].any()
    )

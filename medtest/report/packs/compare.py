"""Comparison of the seeds, follow-ups and systems of a suite with those of a pack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from medtest.core.cases import PreparedSeed
from medtest.core.errors import MedtestError
from medtest.report.packs.contents import PackedPart, SuiteFacts
from medtest.report.packs.findings import PackFinding, Sameness, listed
from medtest.report.packs.lists import CaseLine, Progress, SeedLine, Surveyor
from medtest.report.packs.locks import OtherVersion


@dataclass(kw_only=True)
class DataCompared:
    """Comparison of seeds and follow-ups.

    Attributes:
        same: Seeds whose pixels and expectation equal those of the pack.
        changed: Seeds with other pixels, as ``dataset/seed``.
        expected: Seeds with the same pixels and another expectation.
        missing: Seeds that are not here.
        new: Seeds that are not in the pack.
        unread: Reasons of seeds that cannot be loaded here.
        by_content: Whether ids are hashed under another key, so that seeds are matched by their pixels.
        cases: Follow-ups by relation: [same, other, not compared].
        others: Follow-ups with other bytes.
    """

    same: int = 0
    changed: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    by_content: bool = False
    cases: dict[str, list[int]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)


def compare_data(
    surveyor: Surveyor,
    facts: SuiteFacts,
    seeds: Sequence[SeedLine],
    cases: Sequence[CaseLine],
    progress: Progress | None = None,
) -> DataCompared:
    """Compare a suite's seeds, and the follow-ups of those that are equal.

    Args:
        surveyor: Prepares the seeds of this machine.
        facts: Facts of the packed suite.
        seeds: The pack's seeds.
        cases: The pack's follow-ups.
        progress: Called with the number of finished seeds and their total.
    """
    own_keys, packed_keys = surveyor.hashed, facts.hashed
    result = DataCompared(by_content=("seed_ids" in packed_keys or "seed_ids" in own_keys) and own_keys != packed_keys)
    packed = {line.key: line for line in seeds}
    contents: dict[str, list[SeedLine]] = {}
    for line in seeds:
        contents.setdefault(line.image_sha256, []).append(line)
    of_seed: dict[tuple[str, str], list[CaseLine]] = {}
    for case in cases:
        of_seed.setdefault((case.dataset, case.seed_id), []).append(case)
        result.cases.setdefault(case.relation, [0, 0, 0])
    done: Counter[str] = Counter()
    for place in surveyor.places:
        try:
            seed = surveyor.parts.prepare(surveyor.load(place))
        except MedtestError as error:
            result.unread.append(" ".join(str(error).split())[:200])
            continue
        line = surveyor.line(seed)
        if result.by_content:
            alike = contents.get(line.image_sha256, [])
            other = alike.pop(0) if alike else None
        else:
            other = packed.pop(line.key, None)
        if _same(line, other, result) and other is not None:
            for case in of_seed.pop(other.key, ()):
                _compare_case(surveyor, seed, case, result)
                done[case.relation] += 1
        if progress is not None:
            progress(place.number + 1, len(surveyor.places))
    unmatched = (
        [seed_line for lines in contents.values() for seed_line in lines] if result.by_content else packed.values()
    )
    result.missing = [f"{seed_line.dataset}/{seed_line.seed_id}" for seed_line in unmatched]
    for lines in of_seed.values():
        for case in lines:
            result.cases[case.relation][2] += 1
    return result


def _same(line: SeedLine, other: SeedLine | None, result: DataCompared) -> bool:
    name = f"{line.dataset}/{line.seed_id}"
    if other is None:
        result.new.append(name)
        return False
    if line.image_sha256 != other.image_sha256:
        result.changed.append(name)
        return False
    if line.expected_sha256 and other.expected_sha256 and line.expected_sha256 != other.expected_sha256:
        result.expected.append(name)
        return False  # masks decide where objects go
    result.same += 1
    return True


def _compare_case(surveyor: Surveyor, seed: PreparedSeed, case: CaseLine, result: DataCompared) -> None:
    if case.step not in surveyor.shape:
        result.cases[case.relation][2] += 1
        return
    _, line = surveyor.case(seed, case.step)
    same = line.followup_sha256 == case.followup_sha256
    result.cases[case.relation][0 if same else 1] += 1
    if not same:
        why = f" ({line.reason or 'there was none'})" if not (line.followup_sha256 and case.followup_sha256) else ""
        result.others.append(f"{case.relation} severity {case.severity} of {line.dataset}/{line.seed_id}{why}")


def about_seeds(compared: DataCompared, packed: int, others: Sequence[OtherVersion]) -> PackFinding:
    """Return the finding on the seeds.

    Args:
        compared: Comparison of the data.
        packed: Number of seeds in the pack.
        others: Packages that decode pixels and differ in version.
    """
    groups = (
        ("changed", compared.changed, "different pixels"),
        ("changed", compared.expected, "same pixels, different expected mask, label or answer"),
        ("missing", compared.missing, "not here"),
        ("new", compared.new, "not in the pack"),
        ("not readable", compared.unread, "not loaded here"),
    )
    lines = [f"{len(names):,} {state} ({why}): {listed(names)}" for state, names, why in groups if names]
    if compared.by_content and lines:
        lines.append(
            "ids are hashed with another key, so seeds are matched by pixels; a changed seed counts as missing and new"
        )
    if compared.changed and others and len(compared.changed) == packed:
        names = listed([str(version) for version in others], 3)
        lines.append(f"every seed has different pixels; these versions may decode differently: {names}")
    words = f"{compared.same:,} of {packed:,} seeds are identical"
    if not lines:
        return PackFinding(topic="data", state=Sameness.SAME, words=words)
    lost = compared.changed or compared.expected or compared.missing or compared.unread
    if not lost:
        lines.append("figures over all seeds cover more seeds than the pack")
    return PackFinding(topic="data", state=Sameness.MATTERS, words=words, lines=tuple(lines))


def about_cases(compared: DataCompared, left_out: Mapping[str, str]) -> PackFinding:
    """Return the finding on the follow-ups.

    Args:
        compared: Comparison of the data.
        left_out: Relations without follow-ups in the pack, with the reason.
    """
    same, other, unknown = (sum(counts[at] for counts in compared.cases.values()) for at in range(3))
    words = f"{same:,} of {same + other:,} compared follow-ups of {len(compared.cases):,} relations are identical"
    lines = []
    changed = [
        f"{name} ({counts[1]} of {counts[0] + counts[1]})" for name, counts in compared.cases.items() if counts[1]
    ]
    if changed:
        lines.append(f"different: {listed(changed, 30)}; their figures are from different images")
        lines.append(f"first differences: {listed(compared.others, 3)}")
    equal = [name for name, counts in compared.cases.items() if counts[0] and not counts[1]]
    if changed and equal:
        lines.append(f"identical: {listed(equal, 30)}")
    if unknown:
        lines.append(f"{unknown:,} not compared: their seeds differ here")
    if left_out:
        lines.append(f"not compared: {listed(list(left_out), 30)}: {next(iter(left_out.values()))}")
    state = Sameness.MATTERS if changed else Sameness.SAME if same else Sameness.UNKNOWN
    return PackFinding(topic="follow-ups", state=state, words=words, lines=tuple(lines))


def about_suite(
    composed: Mapping[str, Any],
    packed: Mapping[str, Any],
    parts: Mapping[str, PackedPart],
    packed_parts: Mapping[str, PackedPart],
) -> PackFinding:
    """Return the finding on the composed suite.

    Args:
        composed: The suite as composed here, as plain data.
        packed: The suite as packed, as plain data.
        parts: Its parts here.
        packed_parts: Its parts when packed.
    """
    own, other = ({key: value for key, value in suite.items() if key != "systems"} for suite in (composed, packed))
    keys = _differing(other, own)
    lines = []
    if keys:
        lines.append(f"settings that differ here: {listed(keys)}")
    raised = [
        f"{key} {packed_parts[key].revision} → {part.revision}"
        for key, part in parts.items()
        if key in packed_parts and packed_parts[key].revision != part.revision and not key.startswith("systems.")
    ]
    if raised:
        lines.append(f"parts with another revision in this version of medtest: {listed(raised)}")
    if not lines:
        return PackFinding(topic="suite", state=Sameness.SAME, words="composes to the packed suite")
    return PackFinding(topic="suite", state=Sameness.MATTERS, words="composes to a different suite", lines=tuple(lines))


def about_systems(
    own: Mapping[str, Mapping[str, Any]], packed: Mapping[str, Mapping[str, Any]], *, same_seeds: bool
) -> PackFinding:
    """Return the finding on the systems, by the content covered by the digests of their runs.

    Args:
        own: Covered content by system id, of this machine.
        packed: Covered content by system id, of the pack.
        same_seeds: Whether the seeds are equal, even if their files differ.
    """
    lines: list[str] = []
    same, other, files = 0, False, False
    for name, covered in packed.items():
        if name not in own:
            lines.append(f"{name}: not compared, because parts of it are missing here")
            continue
        keys = _differing(covered, own[name])
        of_files = [key for key in keys if key.startswith("seeds.") and key.endswith(".digest")]
        rest = [key for key in keys if key not in of_files]
        if rest:
            other = True
            change = "different system" if any(key.startswith("system.") for key in rest) else "different run"
            lines.append(f"{name}: {change} ({listed(rest, 4)})")
            continue
        same += 1
        files = files or bool(of_files)
    if files:
        effect = "but their pixels are the same" if same_seeds else "so the figures are from different images"
        lines.append(f"the seed files differ, {effect}; a run here gets its own folder")
    words = f"{same:,} of {len(packed):,} have the same weights and settings"
    state = Sameness.SAME if packed and same == len(packed) else Sameness.UNKNOWN
    return PackFinding(topic="systems", state=Sameness.MATTERS if other else state, words=words, lines=tuple(lines))


def _differing(packed: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    """Return the dotted keys of the leaf values that differ."""
    first, second = dict(_leaves(packed)), dict(_leaves(own))
    return [key for key in {**first, **second} if first.get(key) != second.get(key)]


def _leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every leaf value with its dotted key."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{at}.{name}" if at else str(name))
    else:
        yield at, value

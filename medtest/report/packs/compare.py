"""Seeds, follow-ups and systems of a suite here beside those of a pack."""

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
    """What became of seeds and follow-ups.

    Attributes:
        same: Seeds whose pixels and expectation are those of the pack.
        changed: Seeds of other pixels, as ``dataset/seed``.
        expected: Seeds of the same pixels of which something else is expected.
        missing: Seeds that are not here.
        new: Seeds that the pack has not.
        unread: Seeds that cannot be loaded here, and why.
        by_content: Whether ids are hashed under another key, so that seeds are found by their pixels alone.
        cases: Follow-ups by relation: [same, other, not compared].
        others: Follow-ups of other bytes.
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
    """Compare a suite's seeds, and follow-ups of those that are the same.

    Args:
        surveyor: Prepares the seeds that are here.
        facts: What the pack says of its suite.
        seeds: The pack's seeds.
        cases: The pack's follow-ups.
        progress: Is told how many seeds are done, and of how many.
    """
    mine, theirs = surveyor.hashed, facts.hashed
    found = DataCompared(by_content=("seed_ids" in theirs or "seed_ids" in mine) and mine != theirs)
    packed = {line.key: line for line in seeds}
    contents: dict[str, list[SeedLine]] = {}
    for line in seeds:
        contents.setdefault(line.image_sha256, []).append(line)
    of_seed: dict[tuple[str, str], list[CaseLine]] = {}
    for case in cases:
        of_seed.setdefault((case.dataset, case.seed_id), []).append(case)
        found.cases.setdefault(case.relation, [0, 0, 0])
    done: Counter[str] = Counter()
    for place in surveyor.places:
        try:
            seed = surveyor.parts.prepare(surveyor.load(place))
        except MedtestError as error:
            found.unread.append(" ".join(str(error).split())[:200])
            continue
        line = surveyor.line(seed)
        if found.by_content:
            alike = contents.get(line.image_sha256, [])
            other = alike.pop(0) if alike else None
        else:
            other = packed.pop(line.key, None)
        if _same(line, other, found) and other is not None:
            for case in of_seed.pop(other.key, ()):
                _compare_case(surveyor, seed, case, found)
                done[case.relation] += 1
        if progress is not None:
            progress(place.number + 1, len(surveyor.places))
    left = [one for lines in contents.values() for one in lines] if found.by_content else packed.values()
    found.missing = [f"{one.dataset}/{one.seed_id}" for one in left]
    for lines in of_seed.values():
        for case in lines:
            found.cases[case.relation][2] += 1
    return found


def _same(line: SeedLine, other: SeedLine | None, found: DataCompared) -> bool:
    name = f"{line.dataset}/{line.seed_id}"
    if other is None:
        found.new.append(name)
        return False
    if line.image_sha256 != other.image_sha256:
        found.changed.append(name)
        return False
    if line.expected_sha256 and other.expected_sha256 and line.expected_sha256 != other.expected_sha256:
        found.expected.append(name)
        return False  # a mask decides where objects go
    found.same += 1
    return True


def _compare_case(surveyor: Surveyor, seed: PreparedSeed, case: CaseLine, found: DataCompared) -> None:
    if case.step not in surveyor.shape:
        found.cases[case.relation][2] += 1
        return
    line = surveyor.case(seed, case.step)
    same = line.followup_sha256 == case.followup_sha256
    found.cases[case.relation][0 if same else 1] += 1
    if not same:
        why = f" ({line.reason or 'there was none'})" if not (line.followup_sha256 and case.followup_sha256) else ""
        found.others.append(f"{case.relation} severity {case.severity} of {line.dataset}/{line.seed_id}{why}")


def about_seeds(found: DataCompared, packed: int, others: Sequence[OtherVersion]) -> PackFinding:
    """Return what to make of the seeds.

    Args:
        found: What was compared.
        packed: Seeds of the pack.
        others: Packages that decode pixels and are of another version.
    """
    groups = (
        ("changed", found.changed, "other pixels"),
        ("changed", found.expected, "same pixels, another mask, label or answer is expected"),
        ("missing", found.missing, "not here"),
        ("new", found.new, "not in the pack"),
        ("not readable", found.unread, "no seed here"),
    )
    lines = [f"{len(names):,} {what} ({why}): {listed(names)}" for what, names, why in groups if names]
    if found.by_content and lines:
        lines.append("ids are hashed under another key: seeds are found by their pixels, a changed one is one of each")
    if found.changed and others and len(found.changed) == packed:
        names = listed([str(one) for one in others], 3)
        lines.append(f"every seed has other pixels, and so may decode otherwise: {names}")
    words = f"{found.same:,} of {packed:,} seeds the same"
    if not lines:
        return PackFinding(topic="data", state=Sameness.SAME, words=words)
    lost = found.changed or found.expected or found.missing or found.unread
    if not lost:
        lines.append("figures of all seeds are of more seeds than the pack's")
    return PackFinding(topic="data", state=Sameness.MATTERS, words=words, lines=tuple(lines))


def about_cases(found: DataCompared, left_out: Mapping[str, str]) -> PackFinding:
    """Return what to make of the follow-ups.

    Args:
        found: What was compared.
        left_out: Relations of which there is none in the pack, and why.
    """
    same, other, unknown = (sum(counts[at] for counts in found.cases.values()) for at in range(3))
    words = f"{same:,} of {same + other:,} compared have the same bits, of {len(found.cases):,} relations"
    lines = []
    changed = [f"{name} ({counts[1]} of {counts[0] + counts[1]})" for name, counts in found.cases.items() if counts[1]]
    if changed:
        lines.append(f"other bits: {listed(changed, 30)}; their figures are of other images")
        lines.append(f"the first: {listed(found.others, 3)}")
    kept = [name for name, counts in found.cases.items() if counts[0] and not counts[1]]
    if changed and kept:
        lines.append(f"same bits: {listed(kept, 30)}")
    if unknown:
        lines.append(f"{unknown:,} not compared: their seeds are not the same here")
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
    """Return what to make of a suite that is composed here.

    Args:
        composed: The suite as composed here, plain data.
        packed: The suite as it was packed, likewise.
        parts: Its parts here.
        packed_parts: Its parts where it was packed.
    """
    mine = dict(_leaves({key: value for key, value in composed.items() if key != "systems"}))
    theirs = dict(_leaves({key: value for key, value in packed.items() if key != "systems"}))
    keys = [key for key in {**theirs, **mine} if mine.get(key) != theirs.get(key)]
    lines = []
    if keys:
        lines.append(f"settings that are others here: {listed(keys)}")
    raised = [
        f"{key} {packed_parts[key].revision} → {part.revision}"
        for key, part in parts.items()
        if key in packed_parts and packed_parts[key].revision != part.revision and not key.startswith("systems.")
    ]
    if raised:
        lines.append(f"made or judged otherwise by this version of medtest (revision): {listed(raised)}")
    if not lines:
        return PackFinding(topic="suite", state=Sameness.SAME, words="composes to what was packed")
    return PackFinding(topic="suite", state=Sameness.MATTERS, words="composes to something else", lines=tuple(lines))


def about_systems(
    here: Mapping[str, Mapping[str, Any]], packed: Mapping[str, Mapping[str, Any]], *, same_seeds: bool
) -> PackFinding:
    """Return what to make of the systems: what the digests of their runs cover.

    Args:
        here: By system id, of those that are here.
        packed: Likewise, of the pack.
        same_seeds: Whether seeds are the same here, whatever their files are.
    """
    lines: list[str] = []
    same, other, files = 0, False, False
    for name, theirs in packed.items():
        if name not in here:
            lines.append(f"{name}: not looked at, for it is not all here")
            continue
        left, right = dict(_leaves(theirs)), dict(_leaves(here[name]))
        keys = [key for key in {**left, **right} if left.get(key) != right.get(key)]
        of_files = [key for key in keys if key.startswith("seeds.") and key.endswith(".digest")]
        rest = [key for key in keys if key not in of_files]
        if rest:
            other = True
            what = "another system" if any(key.startswith("system.") for key in rest) else "a run of something else"
            lines.append(f"{name}: {what} ({listed(rest, 4)})")
            continue
        same += 1
        files = files or bool(of_files)
    if files:
        said = "and their pixels are not" if same_seeds else "so its figures are of other images"
        lines.append(f"files of seeds are others, {said}: a run gets a folder of its own")
    words = f"{same:,} of {len(packed):,} the same, weights and settings"
    state = Sameness.SAME if packed and same == len(packed) else Sameness.UNKNOWN
    return PackFinding(topic="systems", state=Sameness.MATTERS if other else state, words=words, lines=tuple(lines))


def _leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value that holds no others, by its dotted key."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{at}.{name}" if at else str(name))
    else:
        yield at, value

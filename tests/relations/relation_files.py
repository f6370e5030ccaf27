"""Check of the YAML file of every relation."""

from __future__ import annotations

from medtest.core.plugins import parts


def assert_every_key_is_documented(name: str) -> None:
    """Check that a comment is above every key, or above several that belong together."""
    file = parts("relations")[name].file
    assert file is not None
    lines = file.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if not line or line.startswith((" ", "#")):
            continue
        above = number
        while above > 0 and lines[above] and not lines[above].startswith("#"):
            above -= 1
        assert lines[above].startswith("#"), f"{file.name}: no comment above {line!r}"

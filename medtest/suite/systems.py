"""Every system that ``model=`` can name: ours, those of installed packages, and a team's own ``--config-dir``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from medtest.cases import ID_PATTERN
from medtest.errors import Mistake, UserMistakes, nearest_name
from medtest.plugins import PartInfo, parts

_OWN_KEYS = ("class", "use", "summary")


def system_infos(config_folders: Sequence[Path] = ()) -> Mapping[str, PartInfo]:
    """Return every system by name; a team's file wins over ours of the same name.

    Args:
        config_folders: Folders given with ``--config-dir``; their ``model/*.yaml`` are read. Such a file names a
            ``class`` as ours do, or says ``use: NAME`` to take one of ours with other defaults.

    Raises:
        UserMistakes: A team's file cannot be read or names neither.
    """
    known = dict(parts("systems"))
    for folder in config_folders:
        for path in sorted((folder / "model").glob("*.yaml")):
            if ID_PATTERN.fullmatch(path.stem):
                known[path.stem] = _from_team(path, known)
    return known


def _from_team(path: Path, known: Mapping[str, PartInfo]) -> PartInfo:
    where = f"{path.parent.parent.name}/model/{path.name}"
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserMistakes([Mistake(where=where, found=str(error), allowed="a YAML file")]) from error
    content = content if isinstance(content, dict) else {}
    own = {key: value for key, value in content.items() if key not in _OWN_KEYS}
    summary = str(content.get("summary", ""))
    target, used = content.get("class"), content.get("use")
    if isinstance(used, str) and used in known:
        base = known[used]
        return PartInfo(
            family="systems",
            name=path.stem,
            target=base.target,
            summary=summary or base.summary,
            defaults={**base.defaults, **own},
            origin=where,
            file=path,
        )
    if isinstance(target, str) and ":" in target:
        return PartInfo(
            family="systems", name=path.stem, target=target, summary=summary, defaults=own, origin=where, file=path
        )
    if used is not None:
        raise UserMistakes(
            [
                Mistake(
                    where=where,
                    key="use",
                    found=repr(used),
                    allowed=", ".join(known),
                    nearest=nearest_name(str(used), known),
                )
            ]
        )
    raise UserMistakes(
        [
            Mistake(
                where=where,
                key="class",
                found="nothing" if target is None else repr(target),
                allowed="class: package.module:Class, or use: one of " + ", ".join(known),
            )
        ]
    )

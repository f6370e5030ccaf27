"""JSON Schema (draft 2020-12) of suite files.

It describes a file as written, before defaults and extended suites are merged. It is never stricter than ``medtest
check``, except for an id of an extended suite that is not among the suites it was made with; mistakes that only show
between keys, or between files, are found by ``medtest check`` alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from medtest.core.address import ID_PATTERN
from medtest.core.errors import MedtestError
from medtest.core.plugins import Family, PartInfo, parts
from medtest.suite.checking.checks import RESERVED, USES
from medtest.suite.checking.editors.settings import Json, SettingsSchemas, merged, missing, named, nullable
from medtest.suite.checking.exclusion import PLAIN_NAME
from medtest.suite.checking.judging import can_read, criterion_names
from medtest.suite.checking.systems import system_infos
from medtest.suite.reading.library import load_tree, suite_folders, suite_names
from medtest.suite.schema import (
    ExcludeBlock,
    GateBlock,
    Head,
    PrepareBlock,
    PrimaryBlock,
    PrivacyBlock,
    ShownBlock,
    UseBlock,
)

FILE = "medtest.schema.json"
"""Name of the schema that is shipped beside the suites."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FAMILIES: Mapping[Family, str] = {
    "seeds": "Sources of source cases, by the id of the data set in tables.",
    "relations": "Changes of the source cases, by the id in tables. `unchanged` belongs to every suite.",
    "systems": "Systems under test, by id. `model=NAME` on the command line replaces them.",
}
_REQUIRED = ("name", "version", "seed", "seeds", "relations")
"""Keys of a suite that extends no other."""
_BLOCKS: Mapping[str, type[BaseModel]] = {"privacy": PrivacyBlock, "prepare": PrepareBlock, "exclude": ExcludeBlock}
_ORACLE_BLOCKS = (PrimaryBlock, ShownBlock)


def schema_text(*, suite_dirs: Iterable[Path] = (), config_dirs: Sequence[Path] = ()) -> str:
    """Return the schema of suite files as JSON, with every part that is installed.

    Args:
        suite_dirs: Further folders of suites, which other suites extend.
        config_dirs: Folders like ``conf/``, whose systems a suite may name.
    """
    schema = _SuiteSchema(suite_folders(suite_dirs), system_infos(config_dirs)).document()
    return _lines(schema, depth=4) + "\n"


def _lines(value: Any, *, depth: int, pad: str = "") -> str:
    """Return JSON with one key per line down to a depth, so that two schemas can be compared line by line."""
    if depth == 0 or not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    items = (f"{pad} {json.dumps(key)}: {_lines(item, depth=depth - 1, pad=pad + ' ')}" for key, item in value.items())
    return "{\n" + ",\n".join(items) + f"\n{pad}}}"


class _SuiteSchema:
    """Schema of suites, built from the parts of each family."""

    def __init__(self, folders: Sequence[Path], systems: Mapping[str, PartInfo]) -> None:
        self.infos: dict[Family, Mapping[str, PartInfo]] = {
            "seeds": _loadable(parts("seeds")),
            "relations": _loadable(parts("relations")),
            "systems": _loadable(systems),
            "oracles": _loadable(parts("oracles")),
            "readers": _loadable(parts("readers")),
        }
        settings = [info.load().Settings for infos in self.infos.values() for info in infos.values()]
        self.schemas = SettingsSchemas([*settings, Head, GateBlock, UseBlock, *_BLOCKS.values(), *_ORACLE_BLOCKS])
        self.meanings = _meanings(folders)
        crafter = {"type": "object", "required": ["use"], "$ref": self._chosen("systems", changed=False)}
        for content in self.schemas.definitions.values():
            if "crafted_on" in content.get("properties", {}):
                content["properties"]["crafted_on"]["anyOf"] = [{"type": "string"}, crafter]

    def document(self) -> Json:
        """Return the schema."""
        head = self.schemas.block(Head)["properties"]
        head["version"] = {**head["version"], "type": ["string", "number"]}  # YAML reads 1.0 as a number
        blocks = {key: self.schemas.block(model) for key, model in _BLOCKS.items()}
        blocks["exclude"]["properties"]["study"]["pattern"] = f"^{PLAIN_NAME.pattern}$"
        parents = {"type": "string", "pattern": r"^(?:/?suite/)?_?[a-z0-9][a-z0-9_-]*$"}
        listed = {"type": "array", "items": parents, "minItems": 1}
        extends = {"description": "Suite, or suites, that this one extends.", "anyOf": [parents, listed]}
        optional: Json = {
            **{key: schema for key, schema in head.items() if key not in _REQUIRED},
            "oracles": self._oracles(),
            "gates": self._gates(),
            **blocks,
        }
        schema: Json = {
            "$schema": _DIALECT,
            "title": "medtest suite",
            "description": "Suite of tests for medtest. `medtest check FILE` also finds mistakes between keys.",
            "type": "object",
            "properties": {
                "extends": extends,
                "defaults": {**extends, "description": "The same as extends, as Hydra spells it."},
                **{key: head[key] for key in _REQUIRED if key in head},
                **{family: {"description": text} for family, text in _FAMILIES.items()},
                **{key: nullable(item) for key, item in optional.items()},
            },
            "additionalProperties": False,
            "if": {"anyOf": [{"required": ["extends"]}, {"required": ["defaults"]}]},
            "then": {"properties": {family: self._family(family, changed=True) for family in _FAMILIES}},
            "else": {
                "required": list(_REQUIRED),
                "properties": {family: self._family(family, changed=False) for family in _FAMILIES},
            },
        }
        return {**schema, "$defs": self.schemas.without_unused(schema)}

    # --- seeds, relations, systems ------------------------------------------------------------------------------

    def _family(self, family: Family, *, changed: bool) -> Json:
        """Return the schema of a family's block: ids with settings, or a list of names.

        Args:
            family: seeds, relations or systems.
            changed: True for a block that changes that of an extended suite.
        """
        names: dict[str, Sequence[str]] = {name: [name] for name in self.infos[family]}
        if changed:
            names |= {key: sorted({*meant, *names.get(key, ())}) for key, meant in self.meanings[family].items()}
        block = {
            "type": "object",
            "propertyNames": {"pattern": f"^{ID_PATTERN.pattern}$", "not": {"enum": list(RESERVED.get(family, ()))}},
            "properties": {key: self._entry(family, meant, changed=changed) for key, meant in names.items()},
            "additionalProperties": self._entry(family, (), changed=changed),
            "minProperties": 1,
        }
        items = {"enum": list(self.infos[family])}
        return {"anyOf": [block, {"type": "array", "items": items, "minItems": 1, "uniqueItems": True}]}

    def _entry(self, family: Family, names: Sequence[str], *, changed: bool) -> Json:
        """Return the schema of the settings below an id.

        Args:
            family: Family of the part.
            names: Parts that the id means where the settings name none; empty for an id that is no part's name.
            changed: True if an extended suite may have named the part.
        """
        uses, infos = USES.get(family, "use"), self.infos[family]
        options: list[Json] = [{"$ref": self._part(family, name)} for name in names]
        if not changed:
            options = [{**option, **missing(infos[name])} for option, name in zip(options, names, strict=True)]
        if not options:
            options = [{"$ref": self._any(family)} if changed else {"required": [uses]}]
        return {
            "type": ["object", "null", "boolean"],
            "if": {"required": [uses]},
            "then": {"$ref": self._chosen(family, changed=changed)},
            "else": options[0] if len(options) == 1 else {"anyOf": options},
        }

    def _part(self, family: Family, name: str) -> str:
        uses = USES.get(family, "use")
        beside = self._beside(family, {uses: {"type": "string"}})
        return self.schemas.define(f"{family}.{name}", lambda: self.schemas.part(self.infos[family][name], beside))

    def _beside(self, family: Family, uses: Json) -> Json:
        """Return the properties that stand beside a part's settings: its name, and ties and search of relations."""
        return {**uses, **(self.schemas.block(UseBlock)["properties"] if family == "relations" else {})}

    def _any(self, family: Family) -> str:
        """Return the reference to settings with the keys of every part of a family."""
        uses = USES.get(family, "use")
        blocks = [self.schemas.block(info.load().Settings) for info in self.infos[family].values()]
        return self.schemas.define(
            f"{family}:any", lambda: merged([{"properties": self._beside(family, {uses: {"type": "string"}})}, *blocks])
        )

    def _chosen(self, family: Family, *, changed: bool) -> str:
        """Return the reference to settings that name their part."""
        uses, infos = USES.get(family, "use"), self.infos[family]

        def build() -> Json:
            rules = []
            for name, info in infos.items():
                then = {"$ref": self._part(family, name), **({} if changed else missing(info))}
                rules.append({"if": {"properties": {uses: {"const": name}}, "required": [uses]}, "then": then})
            return {"properties": {uses: named(infos, "Name of the part.")}, "allOf": rules}

        return self.schemas.define(f"{family}:{'changed' if changed else 'chosen'}", build)

    # --- oracles and gates --------------------------------------------------------------------------------------

    def _oracles(self) -> Json:
        infos, any_scores = self.infos["oracles"], self._scores()
        own = {name: self.schemas.block(info.load().Settings) for name, info in infos.items()}
        reader = self._entry("readers", (), changed=True)
        block = merged([self._judging(any_scores), *own.values()])
        block["properties"] |= {
            "oracle": named(infos, "Name of the oracle; the default depends on the seeds."),
            "reader": reader,
        }
        block["allOf"] = [
            {
                "if": {"properties": {"oracle": {"const": name}}, "required": ["oracle"]},
                "then": self._judged_by(info, own[name]),
            }
            for name, info in infos.items()
        ]
        return {**block, "description": "Oracle, primary criterion, and further columns of tables."}

    def _judged_by(self, info: PartInfo, own: Json) -> Json:
        """Return the schema of ``oracles`` under one oracle."""
        oracle = info.load()
        properties = {**self._judging(criterion_names(info))["properties"], **own["properties"], "oracle": {}}
        if oracle.reads:
            fitting = [name for name, reader in self.infos["readers"].items() if can_read(reader, oracle)]
            properties["reader"] = {"properties": {"use": named(fitting, "Name of the reader.")}}
        return {"description": info.summary, "properties": properties, "additionalProperties": False}

    def _judging(self, scores: Sequence[str]) -> Json:
        """Return the keys of criteria and tables."""
        primary, shown = self.schemas.block(PrimaryBlock), self.schemas.block(ShownBlock)
        primary["properties"]["score"] = {**primary["properties"]["score"], **named(scores)}
        shown["properties"]["scores"] = {**shown["properties"]["scores"], "items": named(scores)}
        return merged([{"properties": {"primary": nullable(primary)}}, shown])

    def _scores(self) -> list[str]:
        names = (name for info in self.infos["oracles"].values() for name in criterion_names(info))
        return list(dict.fromkeys(names))

    def _gates(self) -> Json:
        gate = self.schemas.block(GateBlock)
        filled = PrimaryBlock.model_fields  # what a gate omits comes from the primary criterion
        gate["required"] = [k for k, field in GateBlock.model_fields.items() if field.is_required() and k not in filled]
        gate["properties"]["score"] = {**gate["properties"]["score"], **named(self._scores())}
        return {"type": "array", "items": gate, "minItems": 1, "description": "Bounds; exit code 1 where one fails."}


def _loadable(infos: Mapping[str, PartInfo]) -> dict[str, PartInfo]:
    """Leave out parts of broken packages; `medtest check` of a suite that names one says why."""
    loadable: dict[str, PartInfo] = {}
    for name, info in infos.items():
        with suppress(MedtestError):
            info.load()
            loadable[name] = info
    return loadable


def _meanings(folders: Sequence[Path]) -> dict[str, dict[str, set[str]]]:
    """Return the parts that suites give to ids of other names, by family and id."""
    meanings: dict[str, dict[str, set[str]]] = {family: {} for family in _FAMILIES}
    for name in suite_names(folders):
        values = load_tree(name, folders).values
        for family, ids in meanings.items():
            block = values.get(family)
            for key, settings in block.items() if isinstance(block, dict) else ():
                part = settings.get(USES[family]) if isinstance(settings, dict) else None
                if isinstance(part, str) and part in parts(family):
                    ids.setdefault(str(key), set()).add(part)
    return meanings

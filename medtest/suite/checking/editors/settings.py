"""JSON Schema of the settings of parts, and of the fixed blocks of a suite."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from medtest.core.plugins import PartInfo, is_trusted

Json = dict[str, Any]
REFERENCE = r"^\$\{"
"""Start of a value that repeats another key of the suite: ``${seed}``."""
_KINDS: Mapping[str, str] = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}

_SECTION = re.compile(r"^(?:Attributes|Args):\n((?:[ ].*\n?|\n)*)", flags=re.MULTILINE)
_ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", flags=re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")


class _Described(GenerateJsonSchema):
    """Schema with the docstrings' texts, without titles, and without fields that no suite may set."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        content, model = super().model_schema(schema), schema["cls"]
        content.pop("title", None)
        content.pop("required", None)  # defaults and extended suites provide what a file omits; `medtest check` knows
        content["description"] = plain_text((model.__doc__ or "").partition("\n\n")[0])
        content["additionalProperties"] = False
        texts, properties = _attribute_texts(model), content.setdefault("properties", {})
        for name, field in model.model_fields.items():
            if is_trusted(field):
                properties.pop(name, None)
            elif name in properties:
                properties[name].pop("typed_as", None)
                properties[name]["description"] = field.description or texts.get(name, "")
        return content

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        content = super().dict_schema(schema)
        if schema.get("keys_schema", {}).get("type") == "int":
            content["propertyNames"] = {"pattern": r"^-?\d+$"}
        return content


class SettingsSchemas:
    """Schemas of many models, in one pool of definitions.

    Attributes:
        definitions: ``$defs`` that the models refer to.
    """

    def __init__(self, models: Iterable[type[BaseModel]]) -> None:
        unique = list(dict.fromkeys(models))
        places, document = models_json_schema(
            [(model, "validation") for model in unique],
            schema_generator=_Described,
            ref_template="#/$defs/{model}",
        )
        self.definitions: dict[str, Json] = {
            name: _with_references(content) for name, content in document["$defs"].items()
        }
        self._names = {model: places[model, "validation"]["$ref"].rpartition("/")[2] for model in unique}

    def block(self, model: type[BaseModel]) -> Json:
        """Return a copy of the schema of one model: an object with ``properties``."""
        content = self.definitions[self._names[model]]
        return {**content, "properties": dict(content["properties"])}

    def part(self, info: PartInfo, beside: Json) -> Json:
        """Return the schema of a part's settings; parts of one class share a definition.

        Args:
            info: The part.
            beside: Properties beside the settings.
        """
        model = info.load().Settings
        block = self.block(model)
        defaults = {key: {"default": value} for key, value in info.defaults.items() if key in block["properties"]}
        shared = {"properties": {**beside, **block["properties"]}, "additionalProperties": False}
        reference = self.define(f"{info.family}:{self._names[model]}", lambda: shared)
        text = info.summary or block["description"]
        return {"description": text, "allOf": [{"$ref": reference}], "properties": defaults}

    def define(self, name: str, build: Callable[[], Json]) -> str:
        """Add a definition unless it exists, and return the reference to it."""
        if name not in self.definitions:
            self.definitions[name] = build()
        return f"#/$defs/{name}"

    def without_unused(self, document: Json) -> dict[str, Json]:
        """Return the definitions that a document refers to, directly or through others."""
        used: dict[str, Json] = {}
        queue = [document]
        while queue:
            for name in _referred(queue.pop()):
                if name not in used:
                    used[name] = self.definitions[name]
                    queue.append(used[name])
        return dict(sorted(used.items()))


def missing(info: PartInfo) -> Json:
    """Return ``required`` with the settings of a part that a suite must state, empty if there are none."""
    fields = info.load().Settings.model_fields.items()
    names = [k for k, field in fields if field.is_required() and k not in info.defaults and not is_trusted(field)]
    return {"required": names} if names else {}


def _referred(schema: Any) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rpartition("/")[2]
        schema = list(schema.values())
    for item in schema if isinstance(schema, list) else ():
        yield from _referred(item)


def named(names: Iterable[str], text: str = "") -> Json:
    """Return the schema of one of several names.

    Args:
        names: The names.
        text: Description; "" for none.
    """
    return {"enum": list(names), **({"description": text} if text else {})}


def merged(schemas: Iterable[Json]) -> Json:
    """Return a schema that allows the keys of any of several objects."""
    alternatives: dict[str, list[Json]] = {}
    for schema in schemas:
        for name, field in schema["properties"].items():
            plain = {key: value for key, value in field.items() if key != "default"}
            if plain not in alternatives.setdefault(name, []):
                alternatives[name].append(plain)
    properties = {
        name: options[0] if len(options) == 1 else {"anyOf": options} for name, options in alternatives.items()
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def nullable(schema: Json) -> Json:
    """Return a schema that also allows null, which omits a key."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": [*kinds, "null"]}


def _with_references(schema: Any) -> Any:
    """Return a schema in which every scalar may also be a ``${…}`` reference."""
    if isinstance(schema, list):
        return [_with_references(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if "const" in schema or "enum" in schema:
        values = {"enum": schema.get("enum", [schema.get("const")])}
        rest = {key: value for key, value in schema.items() if key not in ("type", "enum", "const")}
        return {**rest, "anyOf": [values, {"type": "string", "pattern": REFERENCE}]}
    if isinstance(kind, str) and kind in _KINDS:
        hint = f"{_KINDS[kind]}, or ${{KEY}}"
        return {**schema, "type": [kind, "string"], "pattern": REFERENCE, "patternErrorMessage": hint}
    if kind == "string" and "pattern" in schema:
        return {**schema, "pattern": f"(?:{schema['pattern']})|{REFERENCE}"}
    if kind == "array":  # suites have no empty lists
        schema = {**schema, "minItems": max(1, schema.get("minItems", 0))}
    unchanged = ("default", "propertyNames", "description", "examples")
    return {key: value if key in unchanged else _with_references(value) for key, value in schema.items()}


def _attribute_texts(settings: type) -> dict[str, str]:
    """Return the descriptions in the docstrings of a class and its bases, by attribute.

    Args:
        settings: A class with Google-style docstrings: ``Attributes:``, or ``Args:`` of the function it is made from.
    """
    texts: dict[str, str] = {}
    for base in reversed(settings.__mro__):
        section = _SECTION.search(inspect.cleandoc(base.__dict__.get("__doc__") or ""))
        entries = [] if section is None else _ENTRY.findall(section[1])
        texts |= {name: plain_text(text) for name, text in entries}
    return texts


def plain_text(text: str) -> str:
    """Return a docstring's paragraph as one line, without the marks of reStructuredText."""
    return _ROLE.sub(r"\1", " ".join(text.split())).replace("``", "")

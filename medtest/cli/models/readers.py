"""``medtest readers``: sensitivity and specificity of picture readers, measured on labelled pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medtest.cli.terminal import GroupedCommands, bar, console, say
from medtest.core.errors import Mistake, UserMistakes, nearest_name, typed_error
from medtest.core.files.written import check_out, note_out

if TYPE_CHECKING:
    from rich.console import Console

    from medtest.readers.pictures.base import PictureReader
    from medtest.readers.pictures.card import Card
    from medtest.readers.pictures.labelled import LabelledPictures

app = typer.Typer(cls=GroupedCommands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
_OWN = ("reader", "data", "scenes", "questions", "films", "capsules", "limit", "seed", "card", "device", "threads")
_SOURCES = ("data", "scenes", "questions", "films", "capsules")
_MOST_NAMES = 5
_MOST = {
    **dict.fromkeys(("scenes", "questions", "films", "capsules"), 100_000),
    "limit": 10_000_000,
    "seed": 2**31 - 1,
    "threads": 1024,
}


@app.callback()
def readers() -> None:
    """Measure how often picture readers recognise what is shown."""


@app.command("card")
def card_command(
    tokens: Annotated[
        list[str],
        typer.Argument(
            help="reader=NAME and data=FOLDER (COCO labels), scenes=N (drawn), questions=N (drawn endoscopy), films=N "
            "(drawn chest films) or capsules=N (drawn capsule frames); then path=FILE and other settings of the "
            "reader, card=FILE, limit=N, seed=N, device=cuda:0"
        ),
    ],
) -> None:
    """Measure a reader and write its card: medtest readers card reader=detector path=yolox.onnx data=FOLDER."""
    out = console()
    own, settings = _sorted(tokens)
    reader = _reader(own, settings)
    target = _target(own, reader)
    table = target.with_suffix(".csv")
    check_out([target, table], "card")
    labelled = _labelled(own)
    card = _make_card(reader, labelled, own, out)
    from medtest.results.cards import card_rows, write_card_table
    from medtest.runner.folder import output_problems

    rows = card_rows(card)
    if not rows:
        names = ", ".join(sorted(labelled.classes)[:_MOST_NAMES])
        allowed = f"a reader that names what the pictures show: {names} …"
        raise typed_error("reader", f"{reader.name}, which names nothing of it", allowed)
    card.write(target)
    write_card_table(rows, table)
    with output_problems(table):
        note_out([target, table])
    _show(rows, card, out)
    say(out, f"{card.data}: card of {reader.name} in {target}, table in {table}")
    if own.get("card"):
        say(out, f"Use it: oracles.reader.card={own['card']}")


def _sorted(tokens: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the command's own keys and the reader's settings."""
    words = [token for token in tokens if "=" not in token]
    if words:
        raise typed_error("", words[0], "KEY=VALUE", nearest=nearest_name(words[0], _OWN))
    values = dict(token.split("=", 1) for token in tokens)
    own = {key: value for key, value in values.items() if key in _OWN}
    for key, most in _MOST.items():
        least = 0 if key == "seed" else 1
        if key in own and not (own[key].isdecimal() and least <= int(own[key]) <= most):
            raise typed_error(key, own[key], f"a number from {least} to {most:,}")
    if "reader" not in own:
        raise typed_error("reader", "nothing", "reader=NAME", fix="medtest list readers")
    named = [key for key in _SOURCES if key in own]
    if len(named) != 1:
        raise typed_error(
            "data", " and ".join(named) or "nothing", "one of data=FOLDER, scenes=N, questions=N, films=N, capsules=N"
        )
    return own, {key: value for key, value in values.items() if key not in _OWN}


def _reader(own: Mapping[str, str], typed: Mapping[str, str]) -> PictureReader:
    from medtest.core.plugins import part, parts
    from medtest.readers.pictures.base import NO_CARD, PictureReader
    from medtest.suite.checking.validation import validate
    from medtest.suite.reading.library import COMMAND_LINE, deep_merge
    from medtest.training.settings.recipe_files import typed_value

    info = part("readers", own["reader"], where="command line", key="reader")
    reader_class = info.load()
    if not issubclass(reader_class, PictureReader):
        seeing = [info.name for info in parts("readers").values() if issubclass(info.load(), PictureReader)]
        raise typed_error("reader", own["reader"], f"a reader of pictures: {', '.join(seeing)}")
    texts = {name for name, field in reader_class.Settings.model_fields.items() if field.annotation is str}
    parsed: dict[str, Any] = {}
    for key, value in typed.items():
        _put(parsed, key.split("."), value if key in texts else typed_value(value))
    mistakes: list[Mistake] = []
    # A card describes the reader without any earlier card.
    values = deep_merge(info.defaults, {**parsed, "card": NO_CARD})
    settings = validate(
        reader_class.Settings, values, at=(), origin=lambda key: COMMAND_LINE, mistakes=mistakes, given=parsed
    )
    reader = None if settings is None else reader_class(info.name, settings)
    mistakes += [] if reader is None else reader.check()
    if mistakes or reader is None:
        raise UserMistakes(mistakes)
    return reader


def _put(values: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        inner = values.setdefault(key, {})
        values = inner if isinstance(inner, dict) else {}
    values[keys[-1]] = value


def _target(own: Mapping[str, str], reader: PictureReader) -> Path:
    """Return the path for the card: as typed, else beside the reader's own file."""
    named = own.get("card")
    target = Path(named).expanduser() if named else reader.card_beside()
    if target is None:
        raise typed_error(
            "card", "nothing", "the file to write", fix=f"{reader.name} has no default file: add card=FILE"
        )
    if not target.parent.is_dir():
        raise typed_error("card", str(target), "a file in an existing folder")
    return target


def _labelled(own: Mapping[str, str]) -> LabelledPictures:
    limit = int(own["limit"]) if "limit" in own else None
    seed = int(own.get("seed", "0"))
    if "data" in own:
        from medtest.readers.pictures.labelled import coco_pictures

        place = Path(own["data"]).expanduser()
        if not place.exists():
            raise typed_error("data", own["data"], "an existing folder or file of labels")
        return coco_pictures(place, limit=limit)
    from medtest.cli.data.labelled import capsule_pictures, film_pictures, question_pictures, scene_pictures

    drawn = {
        "scenes": scene_pictures,
        "questions": question_pictures,
        "films": film_pictures,
        "capsules": capsule_pictures,
    }
    name = next(key for key in drawn if key in own)
    return drawn[name](min(int(own[name]), limit or int(own[name])), seed)


def _make_card(reader: PictureReader, labelled: LabelledPictures, own: Mapping[str, str], out: Console) -> Card:
    from medtest.readers.pictures.labelled import make_card
    from medtest.runner.pool.layout import resolve_device
    from medtest.suite.commandline.short_keys import device_mistake

    wrong = device_mistake(own.get("device", "auto"))
    if wrong is not None:
        raise wrong.as_error()
    reader.open(device=resolve_device(own.get("device", "auto")), threads=int(own.get("threads", "1")))
    try:
        with bar(out, "pictures") as progress:
            return make_card(
                reader,
                labelled,
                seed=int(own.get("seed", "0")),
                progress=lambda done: progress(done, len(labelled.pictures)),
            )
    finally:
        reader.close()


def _show(rows: Sequence[Mapping[str, Any]], card: Card, out: Console) -> None:
    from rich.table import Table

    table = Table(title=f"{card.pictures:,} pictures")
    for column in ("", "name", "present", "seen", "sensitivity", "absent", "spurious", "specificity", ""):
        table.add_column(column)
    for row in rows:
        cells = [row["kind"], row["name"], row["present"], row["seen"], _share(row, "sensitivity")]
        cells += [row["absent"], row["spurious"], _share(row, "specificity"), "" if row["told"] else "not used"]
        table.add_row(*(str(cell) for cell in cells))
    out.print(table)
    lost = sum(not row["told"] for row in rows)
    say(out, f"{lost} of {len(rows)} names are not used: sensitivity and specificity add up to less than 1.5")


def _share(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    return "-" if value is None else f"{value:.2f} [{row[f'{name}_low']:.2f}, {row[f'{name}_high']:.2f}]"

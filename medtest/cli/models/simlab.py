"""``medtest simlab``: manual start of the simulated product's server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from rich.console import Console

from medtest.api.faulty.faults import SHARES, Faults
from medtest.cli.terminal import say
from medtest.core.errors import Mistake, UserMistakes, nearest_name
from medtest.simlab.config import MODEL, Config, engine_of
from medtest.simlab.defects import Defects
from medtest.simlab.drawing.defects import RATES, DrawingDefects

WHERE = "medtest simlab"
_KEY = "key"
DRAWS = "drawing."
"""Prefix of the names of drawing defects."""


def config_of(
    *,
    port: int = 0,
    seed: int = 0,
    defects: Sequence[str] = (),
    faults: Sequence[str] = (),
    key_variable: str = "",
    ocr: str = "edges",
) -> Config:
    """Return the configuration for the typed options; ``defects`` and ``faults`` are texts NAME=VALUE.

    Raises:
        UserMistakes: A name is unknown, or a value is out of bounds.
    """
    mistakes: list[Mistake] = []
    drawing = {f"{DRAWS}{name}": rate for name, rate in asdict(DrawingDefects()).items() if not isinstance(rate, tuple)}
    rates: dict[str, Any] = _read(defects, asdict(Defects()) | drawing, "--defect", mistakes)
    answering = {name: value for name, value in rates.items() if name not in drawing}
    drawn = {name.removeprefix(DRAWS): value for name, value in rates.items() if name in drawing}
    defaults = {name: value for name, value in asdict(Faults()).items() if name != _KEY}
    served: dict[str, Any] = _read(faults, defaults, "--fault", mistakes)
    if ocr not in ("edges", "rapidocr", "auto"):
        mistakes.append(Mistake(where=WHERE, key="--ocr", found=ocr, allowed="edges, rapidocr, auto"))
    elif ocr == "rapidocr" and engine_of("auto") != "rapidocr":
        fix = "pip install 'medtest[ocr]'"
        mistakes.append(Mistake(where=WHERE, key="--ocr", found="rapidocr, which is not installed", fix=fix))
    key = os.environ.get(key_variable, "") if key_variable else ""
    if key_variable and not key:
        # The typed value may be the key itself, so it is not repeated.
        mistakes.append(Mistake(where=WHERE, key="--key-variable", found="an environment variable that is not set"))
    if mistakes:
        raise UserMistakes(mistakes)
    return Config(
        seed=seed,
        defects=replace(Defects(), **answering),
        drawing=replace(DrawingDefects(), **drawn),
        faults=replace(Faults(), **served, key=key),
        ocr=engine_of(ocr),
        port=port,
    )


def _read(texts: Sequence[str], defaults: dict[str, Any], option: str, mistakes: list[Mistake]) -> dict[str, Any]:
    """Return values by name; problems are added to the mistakes."""
    values: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in defaults:
            nearest = nearest_name(name, list(defaults))
            mistakes.append(
                Mistake(where=WHERE, key=option, found=text[:80], allowed=", ".join(defaults), nearest=nearest)
            )
            continue
        read = _value(name, value, defaults[name])
        if read is None:
            mistakes.append(
                Mistake(
                    where=WHERE,
                    key=f"{option} {name}",
                    found=value[:80] or "nothing",
                    allowed=_allowed(name, defaults[name]),
                )
            )
        else:
            values[name] = read
    return values


def _is_share(name: str) -> bool:
    if name.startswith(DRAWS):
        return name.removeprefix(DRAWS) in RATES
    return name in SHARES or (name in {field.name for field in fields(Defects)} and name != "cap")


def _value(name: str, text: str, default: object) -> bool | int | float | str | None:
    if isinstance(default, bool):
        return {"true": True, "false": False}.get(text.lower())
    if isinstance(default, str):
        return text if text in ("seconds", "date", "none") else None
    try:
        number = int(text) if isinstance(default, int) else float(text)
    except ValueError:
        return None
    if not 0 <= number < 1e6 or (_is_share(name) and number > 1) or (name in ("rate", "burst") and number == 0):
        return None
    return number


def _allowed(name: str, default: object) -> str:
    if isinstance(default, bool):
        return "true, false"
    if isinstance(default, str):
        return "seconds, date, none"
    return "a number from 0 to 1" if _is_share(name) else "a whole number" if isinstance(default, int) else "a number"


def serve_simlab(config: Config, *, console: Console) -> None:
    """Serve until Ctrl-C.

    Raises:
        UserMistakes: The port is taken.
    """
    from medtest.simlab.serve import server_of

    async def live() -> None:
        server = server_of(config)
        try:
            await server.start()
        except OSError as error:
            problem = f"{config.port}, which cannot be used ({error.strerror})"
            raise Mistake(where=WHERE, key="--port", found=problem, fix="use --port 0").as_error() from error
        try:
            console.print("SIMULATED product: its answers say nothing about any real product.")
            say(console, f"{server.base_url}  model {MODEL}")
            console.print(f"Counts and faults: GET or PUT http://127.0.0.1:{server.port}/faults. Press Ctrl-C to stop.")
            await asyncio.Event().wait()
        finally:
            await server.stop()

    # A shell that starts it in the background makes it ignore Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(live())

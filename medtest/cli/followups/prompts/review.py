"""``medtest prompts review``: a local page on which a person checks how prompts were read."""

from __future__ import annotations

import secrets
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import typer

from medtest.cli.terminal import bar, console, say
from medtest.cli.typed import Port
from medtest.core.errors import typed_error

DEFAULT_PORT = 8767
_MOST_KEPT = 4096


def review(
    file: Annotated[Path, typer.Argument(help="File of prompts, as seeds of captions read it.")],
    only: Annotated[
        Literal["all", "doubtful"],
        typer.Option(help="doubtful: those that are not plain English, or not understood."),
    ] = "all",
    port: Port = DEFAULT_PORT,
) -> None:
    """Check how prompts are read: medtest prompts review prompts.txt (a local page; runs use what you accept)."""
    from medtest.language.captions.reading.reader import read_prompt
    from medtest.language.captions.reading.reviewed import read_reviews, reviewed_file
    from medtest.seeds.captions.files import read
    from medtest.study.server.guard import site_of
    from medtest.study.server.review import build_review
    from medtest.study.server.serve import listening, serve_app

    out = console()
    prompts = file.expanduser()
    if not prompts.is_file():
        raise typed_error("file", str(file), "an existing file of prompts")
    rows, bad = read(prompts, prompts.name)
    texts = list(dict.fromkeys(row.text for row in rows))
    target = reviewed_file(prompts)
    reviews = read_reviews(target)
    reading_of = lru_cache(maxsize=_MOST_KEPT)(read_prompt)
    if only == "doubtful":
        with bar(out, "prompts") as progress:
            doubtful = []
            for number, text in enumerate(texts):
                progress(number, len(texts))
                if text in reviews or reading_of(text).confidence != "high":
                    doubtful.append(text)
        texts = doubtful
    if bad:
        say(out, f"{len(bad):,} rows hold no prompt and are left out; the first: {bad[0].place} {bad[0].wrong}")
    if not texts:
        raise typed_error("file", str(file), "a file with prompts to review", "--only all shows every prompt")
    site, token = site_of("127.0.0.1", port), secrets.token_urlsafe(24)
    with listening("127.0.0.1", port) as listener:
        count = sum(text in reviews for text in texts)
        say(out, f"{len(texts):,} prompts, {count:,} reviewed. Open {site.url}/a/{token} (Ctrl-C stops it).")
        out.file.flush()
        with suppress(KeyboardInterrupt):
            serve_app(build_review(texts, reading_of, target, site, token), listener)
    count = len(read_reviews(target))
    say(out, f"{target}: {count:,} reviewed prompts. Runs on {prompts.name} read them first.")

"""Attributes and relations that a prompt denies, looked for in its picture."""

from __future__ import annotations

from collections.abc import Iterator

from medtest.tasks.depict.views import Said, SceneLook


def denied(after: SceneLook, prompt: Said) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield the denials of a prompt that the reader can detect, and whether each is in the picture.

    Args:
        after: Scene of the picture.
        prompt: The prompt's pool.

    Yields:
        An attribute with its class, or a triple; and True if it was detected.
    """
    tells = after.tells
    for absence in prompt.denied:
        name = absence[0]
        if len(absence) == 2 and tells.names(name) and tells.describes(absence[1], name) and after.names[name]:
            yield (absence[1], name), after.attributes[name, absence[1]] > 0
        elif len(absence) == 3 and tells.relates(triple := (name, absence[1], absence[2])):
            yield absence, triple in after.triples

"""Forbidden strings in a suite: URLs, variables, commands, import paths, checkpoints, outside paths."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CHECKPOINT = re.compile(
    r"\.(?:pth|pt|ckpt|safetensors|onnx|pkl|pickle|joblib|npz|npy|h5|hdf5|tflite|torchscript)(?!\w)", re.IGNORECASE
)
_CODE = re.compile(r"\.(?:pb|bin|tar|gz|zip|whl|so|dll|exe|py|pyc|sh|bat|ps1)(?!\w)", re.IGNORECASE)

_ANYWHERE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]"), "no control characters"),
    (
        re.compile(
            r"://"
            r"|(?<![a-z0-9_])(?:https?|ftp|file|data|javascript|mailto|sqlite|postgresql|mysql|databricks|s3|gs):\S"
            r"|(?<![a-z0-9_])databricks(?![a-z0-9_])|(?<![a-z0-9_.])www\.",
            re.IGNORECASE,
        ),
        "no URL and no server: set them in conf/ or on the command line",
    ),
    (
        re.compile(
            r"\$[A-Za-z_(]|%[A-Za-z_][A-Za-z0-9_]*%"
            r"|(?<![A-Za-z0-9_])[A-Z][A-Z0-9]*_[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS|URI)(?![A-Za-z0-9_])"
        ),
        "no environment variable and no command",
    ),
    (
        re.compile(r"(?:^|[\s\"'(=,;:\[{<>|])(?:/[\w.~-]|\\\\\w|~[\w-]*[/\\]|[A-Za-z]:[\\/])|^[/~\\]"),
        "no absolute path: set data and weights on the command line (data=, checkpoint=)",
    ),
    (re.compile(r"(?:^|[/\\\s\"'(=,])\.\.(?:[/\\]|$)"), "no path out of its folder"),
    (_CHECKPOINT, "no file of weights or code: set it in conf/ or on the command line"),
    (
        re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+:[A-Za-z_]\w*"),
        "no import path: set classes and functions in conf/ or on the command line",
    ),
)

_IN_SETTINGS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"^(?!.*\.(?:csv|tsv|png|jpe?g|tiff?|bmp|webp)$)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(.*)?$"),
        "no import path: set classes and functions in conf/ or on the command line",
    ),
    (re.compile(r"`|&&|\|\||;\s*\w|\|\s*\w|>\s*\S|<\("), "no command"),
    (re.compile(r"^!"), "no command"),
    (_CODE, "no file of weights or code: set it in conf/ or on the command line"),
)


def forbidden(text: str, *, prose: bool) -> Iterator[str]:
    """Yield the reasons why a suite may not hold this string; nothing if it may.

    Args:
        text: The string, without interpolations.
        prose: True if it is a sentence for people and not a setting.
    """
    for pattern, reason in (*_ANYWHERE, *(() if prose else _IN_SETTINGS)):
        if pattern.search(text):
            yield reason

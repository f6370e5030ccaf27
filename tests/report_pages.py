"""Reports as tests read them: the page without its scripts, and the data of its browsers."""

from __future__ import annotations

import json
import re
from typing import Any

_DATA = re.compile(r'<script type="application/json">(.*?)</script>', re.DOTALL)
_SCRIPT = re.compile(r"<script[^>]*>.*?</script>", re.DOTALL)


def without_scripts(text: str) -> str:
    """Return a page without script elements; as a parser does, each ends at the first end tag."""
    return _SCRIPT.sub("", text)


def browser_data(text: str) -> list[dict[str, Any]]:
    """Return the data of every browser of a page."""
    return [json.loads(data) for data in _DATA.findall(text)]

"""A server built on LitServe and its OpenAISpec that answers from pixels: ``litserve_eyes.py PORT``."""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import litserve
import numpy as np
from PIL import Image


class Eyes(litserve.LitAPI):
    """Answers how bright and how red the sent picture is."""

    def setup(self, device: Any) -> None:
        self.device = device

    def predict(self, request: Any) -> Iterator[dict[str, Any]]:
        content = request.messages[-1].content
        (picture,) = (part.image_url for part in content if part.type == "image_url")
        (text,) = (part.text for part in content if part.type == "text")
        question = text.partition("\n\nAnswer with one JSON object")[0]
        head, _, coded = getattr(picture, "url", picture).partition(",")
        assert head == "data:image/png;base64"
        with Image.open(io.BytesIO(base64.b64decode(coded))) as opened:
            assert not opened.info, "a picture is sent without metadata"
            pixels = np.asarray(opened.convert("RGB"))
        means = pixels.mean(axis=(0, 1))
        values = {"bright": float(means.mean() > 80), "level": float(means.mean()), "red": float(means[0])}
        if request.response_format is None:
            words = {"Is it bright?": "bright", "How bright is it?": "level", "How red is it?": "red"}
            text = f"{values[words[question]]:.3f}"
        else:
            assert list(request.response_format.json_schema.schema_["properties"]) == list(values)
            text = json.dumps({name: round(value) for name, value in values.items()})
        yield {"role": "assistant", "content": text, "prompt_tokens": pixels.size, "completion_tokens": len(text)}


def main() -> None:
    """Serve on loopback until the process is ended."""
    server = litserve.LitServer(Eyes(spec=litserve.OpenAISpec()), accelerator="cpu", workers_per_device=1)
    server.run(host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False, log_level="warning")


if __name__ == "__main__":
    main()

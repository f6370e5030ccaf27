"""The simulated drawing product as a system: from prompts over its own server to pictures by content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchanges import ask, output

from medtest.core.cases import NO_IMAGE, Address
from medtest.core.files.by_content import PictureFiles
from medtest.core.plugins import part
from medtest.core.records import PICTURES, is_simulated
from medtest.core.scenes import Prompt
from medtest.simlab.drawing.artist import Artist
from medtest.simlab.drawing.defects import RATES, DrawingDefects
from medtest.systems.answering.asking import Asked, Asking
from medtest.systems.pictures.simlab_images import DrawingDefectSettings, SimlabImages

SOURCE, AFTER = "A red dog is on a table. There is a cat.", "A red dog is on a table."


def system(**settings: Any) -> SimlabImages:
    info = part("systems", "simlab_images")
    settings_ = {**info.defaults, "size": "128x128", "defects": {}, **settings}
    kind = info.load()
    return kind("simlab_images", kind.Settings(**settings_))


def asking(number: int, text: str, *, source: str = SOURCE, relation: str = "source") -> Asking:
    address = Address(dataset="drawn", seed_id="s", relation=relation)
    return Asking(
        number=number,
        label=str(address),
        addresses=(address,),
        image=NO_IMAGE,
        sha256=Prompt(text=text).sha256,
        asks=(),
        seed=number,
        prompt=Prompt(text=text),
        source_prompt=Prompt(text=source),
    )


def draw_both(system_: SimlabImages, folder: Path) -> list[Asked]:
    calls = [asking(0, SOURCE), asking(1, AFTER, relation="er_r")]
    return sorted(ask(system_, folder, calls), key=lambda result: result.number)


def own(text: str, seed: int, earlier: str = "", **defects: Any) -> np.ndarray[Any, Any]:
    artist = Artist(0, DrawingDefects(**defects))
    return artist.paint(artist.draw(text, seed=seed, earlier=earlier), 128)


def test_pictures_are_stored_by_content_and_the_notice_calls_it_simulated(tmp_path: Path) -> None:
    painter = system()
    assert painter.check() == []
    assert is_simulated(painter.record_name)
    assert painter.record_name.endswith("-simulated")
    assert painter.notice().startswith("SIMULATED")
    assert "nothing about any real product" in painter.notice()
    outputs = [output(result) for result in draw_both(painter, tmp_path)]
    files = PictureFiles(tmp_path / "run" / PICTURES)
    assert [answer.state for answer in outputs] == ["answered"] * 2
    assert np.array_equal(files.read("images", outputs[0].picture), own(SOURCE, 0))
    assert np.array_equal(files.read("images", outputs[1].picture), own(AFTER, 1))
    assert outputs[0].cost_usd == 0
    assert painter._server is None  # closed with the system


def test_pictures_are_also_fetched_by_address(tmp_path: Path) -> None:
    outputs = [output(result) for result in draw_both(system(response_format="url"), tmp_path)]
    files = PictureFiles(tmp_path / "run" / PICTURES)
    assert np.array_equal(files.read("images", outputs[1].picture), own(AFTER, 1))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["policy", "empty_list", "empty_base64", "blank"])
def test_moderation_is_a_state_in_every_form(form: str, tmp_path: Path) -> None:
    defects = {"blank_pictures": 1.0} if form == "blank" else {"refusals": 1.0, "refused_as": [form]}
    for result in draw_both(system(defects=defects), tmp_path):
        assert output(result).state == "content_filter"
        assert output(result).why
        assert output(result).picture == ""
        assert output(result).attempts == 1


def test_a_rewritten_prompt_and_the_memory_of_a_session_are_there(tmp_path: Path) -> None:
    painter = system(defects={"removed_kept": 1.0, "prompts_rewritten": 1.0})
    outputs = [output(result) for result in draw_both(painter, tmp_path)]
    assert all("flower" in answer.revised_prompt for answer in outputs)
    picture = PictureFiles(tmp_path / "run" / PICTURES).read("images", outputs[1].picture)
    defects = {"removed_kept": 1.0, "prompts_rewritten": 1.0}
    assert np.array_equal(picture, own(AFTER, 1, SOURCE, **defects))
    assert not np.array_equal(picture, own(AFTER, 1, **defects))


def test_an_address_and_a_key_are_mistakes() -> None:
    problems = system(base_url="https://example.org/v1", key_variable="HOME", send_prompts=True).check()
    assert {mistake.key for mistake in problems} == {"base_url", "key_variable", "send_prompts"}


def test_settings_are_in_the_content_and_every_defect_can_be_set() -> None:
    assert set(DrawingDefectSettings.model_fields) == {
        *RATES,
        "most_entities",
        "cap",
        "anew",
        "refused_as",
    }
    contents = {system(defects={name: 0.5}).content() for name in RATES}
    contents |= {system(product_seed=1).content(), system().content()}
    assert len(contents) == len(RATES) + 2
    for name in RATES:
        with pytest.raises(ValueError, match=name):
            system(defects={name: 1.5})
        assert f"{name} 0.5 per call" in system(defects={name: 0.5, "anew": [name]}).notice()
    assert "MEDTEST_SIMLAB_KEY" not in str(system().settings) or os.environ.get("MEDTEST_SIMLAB_KEY") is None

"""The simulated product that draws, as a system: from prompts over a server of its own to pictures by content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchanges import asked, output

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
    given = {**info.defaults, "size": "128x128", "defects": {}, **settings}
    made = info.load()
    return made("simlab_images", made.Settings(**given))


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


def both(made: SimlabImages, folder: Path) -> list[Asked]:
    calls = [asking(0, SOURCE), asking(1, AFTER, relation="er_r")]
    return sorted(asked(made, folder, calls), key=lambda one: one.number)


def own(text: str, seed: int, earlier: str = "", **defects: Any) -> np.ndarray[Any, Any]:
    artist = Artist(0, DrawingDefects(**defects))
    return artist.paint(artist.draw(text, seed=seed, earlier=earlier), 128)


def test_what_it_paints_is_kept_by_content_and_it_says_that_it_is_simulated(tmp_path: Path) -> None:
    made = system()
    assert made.check() == []
    assert is_simulated(made.record_name)
    assert made.record_name.endswith("-simulated")
    assert made.notice().startswith("SIMULATED")
    assert "nothing about any real product" in made.notice()
    found = [output(one) for one in both(made, tmp_path)]
    files = PictureFiles(tmp_path / "run" / PICTURES)
    assert [one.state for one in found] == ["answered"] * 2
    assert np.array_equal(files.read("images", found[0].picture), own(SOURCE, 0))
    assert np.array_equal(files.read("images", found[1].picture), own(AFTER, 1))
    assert found[0].cost_usd == 0
    assert made._server is None  # closed with the system


def test_pictures_come_by_address_as_well(tmp_path: Path) -> None:
    found = [output(one) for one in both(system(response_format="url"), tmp_path)]
    files = PictureFiles(tmp_path / "run" / PICTURES)
    assert np.array_equal(files.read("images", found[1].picture), own(AFTER, 1))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["policy", "empty_list", "empty_base64", "blank"])
def test_moderation_is_a_state_in_every_form(form: str, tmp_path: Path) -> None:
    defects = {"blank_pictures": 1.0} if form == "blank" else {"refusals": 1.0, "refused_as": [form]}
    for one in both(system(defects=defects), tmp_path):
        assert output(one).state == "content_filter"
        assert output(one).why
        assert output(one).picture == ""
        assert output(one).attempts == 1


def test_a_rewritten_prompt_and_what_a_session_kept_are_there(tmp_path: Path) -> None:
    made = system(defects={"removed_kept": 1.0, "prompts_rewritten": 1.0})
    found = [output(one) for one in both(made, tmp_path)]
    assert all("flower" in one.revised_prompt for one in found)
    picture = PictureFiles(tmp_path / "run" / PICTURES).read("images", found[1].picture)
    defects = {"removed_kept": 1.0, "prompts_rewritten": 1.0}
    assert np.array_equal(picture, own(AFTER, 1, SOURCE, **defects))
    assert not np.array_equal(picture, own(AFTER, 1, **defects))


def test_an_address_or_a_key_have_no_use() -> None:
    problems = system(base_url="https://example.org/v1", key_variable="HOME", send_prompts=True).check()
    assert {one.key for one in problems} == {"base_url", "key_variable", "send_prompts"}


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

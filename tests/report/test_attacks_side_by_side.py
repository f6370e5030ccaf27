"""Systems side by side under attack: matrix of crafters and answering systems, and the paper's table 4."""

from __future__ import annotations

import pandas as pd
import pytest
from attack_records import attack_records, noise, pgd
from test_attack_page import material_of

from medtest.report.attacks.side_by_side import table_four, transfer, transfer_heats

RIGHT = {("attnmel", "attnmel"): 2, ("attnmel", "vgg19"): 30, ("vgg19", "attnmel"): 25, ("vgg19", "vgg19"): 5}
"""Crafted on, answered by: how many of 48 stay right."""


@pytest.fixture
def materials(tmp_path):
    result = []
    for system in ("attnmel", "vgg19"):
        settings = [
            pgd(2, 4, right, relation=f"pgd_on_{crafter}", crafted_on=crafter)
            for (crafter, other), right in RIGHT.items()
            if other == system
        ]
        frame = attack_records([*settings, noise(2, 4, 40)], system=system)
        parts = {"pgd_on_attnmel": "pgd", "pgd_on_vgg19": "pgd", "uniform_noise": "uniform_noise"}
        result.append(material_of(frame, tmp_path, relations=parts))
    return result


def test_the_matrix_holds_every_pair(materials):
    table = transfer(materials)
    rows = {(row.crafted_on, row.system): row for row in table[table.attack == "pgd"].itertuples()}
    assert {key: row.accuracy * 48 for key, row in rows.items()} == pytest.approx(RIGHT, abs=1e-3)
    assert table[table.attack == "uniform_noise"].crafted_on.eq("").all()
    (heat,) = transfer_heats(materials)
    cells = [[cell["value"] for cell in row["cells"]] for row in heat["rows"]]
    assert heat["columns"] == ["attnmel", "vgg19"] and [row["name"] for row in heat["rows"]] == ["attnmel", "vgg19"]
    assert cells == [["4.2 %", "62.5 %"], ["52.1 %", "10.4 %"]]


def test_attacks_on_itself_alone_do_not_make_a_matrix(tmp_path):
    assert transfer_heats([material_of(attack_records([pgd(2, 4, 1)]), tmp_path)]) == []


def sequences(flips, system):
    """Return frames of a relation of which some flip, together with the attack of table 4."""
    frame = attack_records([pgd(2, 4, 6, steps=4)], system=system)
    rows = []
    for row in frame[frame.relation == "source"].to_dict("records"):
        for number in range(4):
            flipped = number % 2 == 1 and int(row["seed_id"][-4:]) < flips
            label = {"benign": "melanoma", "melanoma": "benign"}[row["label"]] if flipped else row["label"]
            more = {"relation": "snow", "group": "weather", "severity": 1, "frame": number, "label": label}
            rows.append({**row, **more, "crafted_on": None})
    return pd.concat([frame, pd.DataFrame(rows)], ignore_index=True)


def test_table_four_has_accuracy_attack_and_relative_flips(tmp_path):
    names = {"pgd": "pgd", "snow": "corruption_snow"}
    systems = [("attnmel", 24), ("vgg19", 12)]
    materials_ = [material_of(sequences(flips, name), tmp_path, relations=names) for name, flips in systems]
    table = table_four(materials_)
    assert [(row["name"], row["clean"], row["attacked"], row["fp"], row["rfp"]) for row in table["rows"]] == [
        ("attnmel", "89.6 %", "12.5 %", "50.0 %", "1.00"),
        ("vgg19", "89.6 %", "12.5 %", "25.0 %", "0.50"),
    ]
    assert {"name": "VGG19", "clean": "83.4 %", "attacked": "52.8 %", "rfp": "0.03"} in table["published"]
    assert "CheXNet 0.3 %" in table["words"] and "0.09 to 0.15" in table["words"]
    assert table_four([material_of(attack_records([pgd(2, 4, 1)]), tmp_path)]) is None

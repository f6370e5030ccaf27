"""Suites of prompts from the command line: a budget in dollars for pictures ends a run with its own exit code."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest
from forked_program import command
from prompt_parts import stripes

ROOT = Path(__file__).parents[2]
NAME = "openai_images_compatible"
RUN = ("suite=t2i", f"model={NAME}", "model_name=stripes", "limit=2", "relations=[unchanged,ec]", "tracking=none")


def ended(home: Path, *typed: str) -> tuple[int | None, str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MEDTEST_HOME": str(home)}
    line = [str(ROOT / "run.py"), *RUN, "oracles.figures.pictures=none", *typed]
    program = command(*line, environment=environment, folder=ROOT)
    out, err = program.communicate(timeout=280)
    assert "Traceback" not in err, err
    return program.returncode, out + err


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_budget_with_a_price_per_picture_ends_a_run_with_code_5_and_is_raised(tmp_path: Path) -> None:
    price = f"systems.{NAME}.prices={{stripes: {{picture: 0.04}}}}"
    with stripes() as server:
        where = (f"base_url={server.base_url}", price)
        code, text = ended(tmp_path, *where, "budget.max_usd=0.21")
        assert code == 5, text
        assert len(server.asked) == 5, text
        assert "budget.max_usd=0.21 is reached after $0.2000 in 5 calls; the next may cost $0.0400" in text
        code, text = ended(tmp_path, *where, "budget.max_usd=5")
        assert code == 0, text
    frame = pd.read_parquet(next(tmp_path.glob("outputs/t2i/*/*/records.parquet")))
    assert len(server.asked) == len(frame) == 8
    assert frame["cost_usd"].tolist() == pytest.approx([0.04] * 8)

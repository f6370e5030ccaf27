"""(α,σ) against the values that its paper published, hand-made curves, and properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records_maker import make_records

from medtest.results.records.records_io import Records
from medtest.results.series.alpha_sigma import NO_LOSS, TOO_FEW_SCALES, TOO_FEW_SEEDS, alpha_sigma, alpha_sigma_table

SCALES = (5, 10, 15, 20, 25)
PUBLISHED = {
    # SSIM over five noise levels and (α, σ): Vacavant et al., (α,σ)-robustness, figure 2
    "SmoothedShock": ((0.9131, 0.8841, 0.8457, 0.7990, 0.7523), 0.009, 20.0),
    "SmoothedMedian": ((0.8900, 0.8668, 0.8325, 0.7907, 0.7454), 0.009, 20.0),
    "EnhancedShock": ((0.9532, 0.8504, 0.7330, 0.6256, 0.5343), 0.023, 10.0),
    "ComplexShock": ((0.9599, 0.8678, 0.7599, 0.6576, 0.5681), 0.022, 10.0),
    "OriginalShock": ((0.9496, 0.8381, 0.7154, 0.6053, 0.5132), 0.025, 10.0),
    "Coherence": ((0.9021, 0.7931, 0.6750, 0.5716, 0.4870), 0.024, 10.0),
    "Median": ((0.8776, 0.7507, 0.6162, 0.5028, 0.4144), 0.027, 10.0),
    "Bilateral": ((0.9559, 0.9198, 0.8352, 0.7199, 0.6058), 0.023, 15.0),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_values(name):
    qualities, alpha, sigma = PUBLISHED[name]
    result = alpha_sigma(SCALES, qualities)
    assert (round(result.alpha, 3), result.sigma) == (alpha, sigma)


def test_order_of_scales_does_not_matter_and_ties_go_to_the_larger():
    assert alpha_sigma([3, 1, 2], [0.7, 0.9, 0.8]).sigma == 2  # both steps lose 0.1, up to rounding


def test_alpha_may_be_below_zero():
    result = alpha_sigma([1, 2, 4], [0.5, 0.6, 0.7])
    assert result.alpha == pytest.approx(-0.05)
    assert result.sigma == 2


@pytest.mark.parametrize(
    ("scales", "qualities"), [([1], [1]), ([1, 1], [1, 0]), ([1, 2], [1, float("nan")]), ([1, 2, 3], [1, 2])]
)
def test_invalid_curves_are_refused(scales, qualities):
    with pytest.raises(ValueError, match="scales"):
        alpha_sigma(scales, qualities)


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=8),
    st.floats(0.1, 100),
    st.floats(0.1, 10),
)
def test_units_scale_as_they_should(qualities, unit, gain):
    scales = np.arange(1, len(qualities) + 1, dtype=float)
    plain = alpha_sigma(scales, qualities)
    scaled = alpha_sigma(scales * unit, np.array(qualities) * gain)
    assert scaled.alpha == pytest.approx(plain.alpha * gain / unit, rel=1e-9, abs=1e-12)
    steepest = max(-np.diff(qualities))
    assert plain.alpha == pytest.approx(steepest, abs=1e-12)


def _blur(frame):
    records = Records.of(frame)
    table = alpha_sigma_table(records, ["dice"], ["truth", "source"])
    return table[(table.relation == "blur") & (table.dataset == "all")].set_index("against")


def test_the_curve_is_over_scale_and_over_complete_seeds_alone():
    frame = make_records(seeds=12, errors=0, skips=0)
    blur = frame.relation == "blur"
    frame.loc[blur, "scale"] = frame.severity[blur].map({1: 1.0, 2: 2.0, 3: 4.0, 4: 8.0, 5: 16.0})
    lost = blur & (frame.seed_id == "seed00003") & (frame.severity == 4)
    frame.loc[lost, ["dice", "iou"]] = np.nan
    frame.loc[lost, "verdict"] = "ERROR"
    row = _blur(frame).loc["truth"]
    complete = frame[blur & (frame.seed_id != "seed00003")]
    mean = complete.groupby("severity").dice.mean()
    steps = -np.diff(mean) / np.diff([1, 2, 4, 8, 16])
    assert row.seeds == 11
    assert row.alpha == pytest.approx(steps.max(), abs=1e-8)
    assert row.sigma == [1, 2, 4, 8][int(steps.argmax())]
    assert row.alpha_low <= row.alpha <= row.alpha_high or row.alpha_low < row.alpha_high
    assert 0 < row.sigma_share <= 1


def test_an_unchanged_quality_loses_zero_and_not_minus_zero():
    frame = make_records(seeds=12, errors=0, skips=0)
    blur = frame.relation == "blur"
    frame.loc[blur, "scale"] = frame.severity[blur].astype(float)
    frame.loc[blur, "dice"] = 0.5
    row = _blur(frame).loc["truth"]
    assert [str(row[name]) for name in ("alpha", "alpha_low", "alpha_high")] == ["0.0", "0.0", "0.0"]


def test_no_loss_one_scale_and_no_complete_seed_are_noted():
    frame = make_records(seeds=4, errors=0, skips=0)
    text = frame.relation == "text"
    table = alpha_sigma_table(Records.of(frame[text | (frame.relation == "source")]), ["dice"], ["truth"])
    assert (table.note == NO_LOSS).all()
    assert (table.alpha == 0).all()
    single_scale = frame[frame.severity.isin([0, 1])]
    assert (alpha_sigma_table(Records.of(single_scale), ["dice"], ["truth"]).note == TOO_FEW_SCALES).all()
    holes = frame.copy()
    holes.loc[holes.relation.eq("blur") & holes.severity.eq(2), "dice"] = np.nan
    assert _blur(holes).loc["truth"].note == TOO_FEW_SEEDS


def test_cases_without_room_have_no_scale_and_leave_the_curve_of_the_others():
    frame = make_records(seeds=12, errors=0, skips=0)
    blur = frame.relation.eq("blur")
    skipped = blur & frame.severity.eq(2) & frame.seed_id.eq("seed00003")
    frame.loc[skipped, ["scale", "dice", "self_dice"]] = np.nan
    frame.loc[skipped, "verdict"] = "SKIP"
    row = _blur(frame).loc["truth"]
    assert row.seeds == 11
    assert row.scales == "2 4 6 8 10"
    everywhere = blur & frame.severity.eq(2)
    frame.loc[everywhere, ["scale", "dice", "self_dice"]] = np.nan
    assert _blur(frame).loc["truth"].note == TOO_FEW_SEEDS

"""Value for value the same as tbparse reads, on files of the real writers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tensorboard_events import FIXTURES, read_file


@pytest.mark.parametrize("folder", ["torch", "tensorboardx", "restart"])
def test_same_rows_as_tbparse(folder: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tbparse = pytest.importorskip("tbparse", reason="tbparse is not installed")
        frame = tbparse.SummaryReader(str(FIXTURES / folder), extra_columns={"wall_time"}).scalars
    ours = read_file(*sorted((FIXTURES / folder).glob("events*"))).signals
    assert set(frame["tag"]) == set(ours)
    assert len(frame) == sum(len(signal) for signal in ours.values())
    for tag, unsorted in frame.groupby("tag"):
        signal = ours[tag]
        order = np.argsort(signal.steps, kind="stable")
        theirs = unsorted.sort_values("step", kind="stable")  # copies of a step stay in the order written
        np.testing.assert_array_equal(signal.steps[order], theirs["step"].to_numpy())
        np.testing.assert_array_equal(signal.values[order], theirs["value"].to_numpy())
        assert signal.wall_times is not None
        np.testing.assert_array_equal(signal.wall_times[order], theirs["wall_time"].to_numpy())

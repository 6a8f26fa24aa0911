from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from forensics.model import FloatArray
from forensics.primitives.robust import centred_median, forward_median, local_sd, mad_sd, trailing_median

VALUES = arrays(np.float64, st.integers(1, 60), elements=st.floats(-1e6, 1e6))


def test_empty_stays_empty() -> None:
    empty = np.empty(0)
    assert [len(moved) for moved in (centred_median(empty, 5), trailing_median(empty, 5, 2), forward_median(empty, 5), local_sd(empty, 5))] == [0] * 4


@given(VALUES, st.integers(1, 15))
def test_centred(values: FloatArray, window: int) -> None:
    half = window // 2
    expected = [np.median(values[max(0, i - half) : i + half + 1]) for i in range(len(values))]
    got = centred_median(values, window)
    assert len(got) == len(values)
    inside = slice(None) if 2 * half + 1 <= len(values) else slice(0, 0)
    np.testing.assert_allclose(got[inside], np.array(expected)[inside], rtol=1e-12, atol=1e-9)


@given(VALUES, st.integers(1, 15))
def test_forward(values: FloatArray, window: int) -> None:
    expected = [np.median(values[i : i + window]) for i in range(len(values))]
    np.testing.assert_allclose(forward_median(values, window), expected, rtol=1e-12, atol=1e-9)


@given(VALUES, st.integers(2, 15))
def test_trailing_leaves_the_point_out(values: FloatArray, window: int) -> None:
    got = trailing_median(values, window, 2)
    assert np.isnan(got[: min(2, len(values))]).all()
    for i in range(2, len(values)):
        if window <= len(values):
            assert got[i] == pytest.approx(np.median(values[max(0, i - window) : i]), rel=1e-12, abs=1e-9)


def test_nan_is_ignored() -> None:
    assert centred_median(np.array([1.0, np.nan, 3.0]), 3).tolist() == [1.0, 2.0, 3.0]


def test_one_point() -> None:
    one = np.array([4.0])
    assert centred_median(one, 51).tolist() == [4.0]
    assert forward_median(one, 8).tolist() == [4.0]
    assert np.isnan(trailing_median(one, 8, 1)).all()


def test_standard_deviation_of_a_normal_sample() -> None:
    sample = np.random.default_rng(0).normal(3.0, 2.0, 20_000)
    assert mad_sd(sample) == pytest.approx(2.0, rel=0.03)
    assert local_sd(sample - 3.0, 20_001)[10_000] == pytest.approx(2.0, rel=0.03)


def test_an_outlier_does_not_raise_it() -> None:
    sample = np.random.default_rng(0).normal(size=1001)
    spoiled = sample.copy()
    spoiled[::10] = 1e9
    assert mad_sd(spoiled) < 1.5 * mad_sd(sample)


def test_empty_and_constant_samples_have_none() -> None:
    assert mad_sd(np.empty(0)) == 0.0
    assert mad_sd(np.full(9, 7.0)) == 0.0

"""Which step a metric is drawn over."""

import numpy as np
import pytest

from forensics.parsers.wandb_axes import LOG_CALL, Axes
from forensics.parsers.wandb_history import Column
from forensics.parsers.wandb_wire import Metric

ROWS = 10


def column(name, rows, values):
    return Column(name, np.asarray(rows, np.int64), np.asarray(values))


def axes(*columns, metrics=()):
    return Axes(np.arange(ROWS), metrics, {c.name: c for c in columns})


EVERY = range(ROWS)
LOSS = column("train/loss", EVERY, np.ones(ROWS))


@pytest.mark.parametrize(
    "values",
    [np.arange(ROWS) + 0.5, np.full(ROWS, 3), np.full(ROWS, np.nan), np.full(ROWS, 1e300), np.where(np.arange(ROWS) == 3, np.inf, np.arange(ROWS))],
    ids=["fractions", "constant", "nan", "huge", "infinite"],
)
def test_a_step_metric_that_is_no_step_is_not_used(values):
    found = axes(LOSS, column("s", EVERY, values), metrics=[Metric("", "*", "s")])
    assert found.name_for(LOSS) == LOG_CALL


def test_a_step_metric_that_was_never_logged():
    assert axes(LOSS, metrics=[Metric("", "*", "s")]).name_for(LOSS) == LOG_CALL


def test_an_epoch_is_no_step():
    found = axes(LOSS, column("epoch", EVERY, np.arange(ROWS)), metrics=[Metric("", "*", "epoch")])
    assert found.name_for(LOSS) == LOG_CALL


def test_a_step_logged_once_at_the_end_is_no_axis():
    found = axes(LOSS, column("global_step", [8, 9], [500, 501]))
    assert found.name_for(LOSS) == LOG_CALL


def test_a_step_of_some_rows_serves_the_keys_of_these_rows():
    found = axes(LOSS, column("trainer/global_step", [2, 4], [20, 40]), lone := column("val", [2, 4], [1.0, 2.0]))
    assert found.name_for(lone) == "trainer/global_step"
    assert found.name_for(LOSS) == LOG_CALL


def test_exact_names_go_before_globs_and_underscores_match_none():
    s, t = column("s", EVERY, np.arange(ROWS) * 10), column("t", EVERY, np.arange(ROWS) * 7)
    found = axes(LOSS, s, t, column("_x", EVERY, np.ones(ROWS)), metrics=[Metric("", "train/*", "s"), Metric("train/loss", "", "t")])
    assert found.name_for(LOSS) == "t"
    assert found.name_for(column("train/other", EVERY, np.ones(ROWS))) == "s"
    assert found.name_for(column("eval/other", EVERY, np.ones(ROWS))) == LOG_CALL
    assert axes(LOSS, s, metrics=[Metric("", "*", "s")]).name_for(column("_x", EVERY, np.ones(ROWS))) == LOG_CALL
    assert axes(LOSS, s, metrics=[Metric("", "*/lo?s", "s")]).name_for(LOSS) == "s"


def test_rows_without_the_step_metric_take_the_last_value():
    found = axes(LOSS, column("s", [2, 3, 6], [20, 30, 60]), metrics=[Metric("", "*", "s")])
    assert found.steps("s").tolist() == [0, 1, 20, 30, 30, 30, 60, 60, 60, 60]
    assert found.steps(LOG_CALL).tolist() == list(EVERY)


def test_well_known_steps_and_the_main_axis():
    found = axes(LOSS, column("train/global_step", EVERY, np.arange(ROWS) * 10))
    assert found.name_for(LOSS) == "train/global_step"
    assert found.main() == "train/global_step"
    assert axes().main() == LOG_CALL

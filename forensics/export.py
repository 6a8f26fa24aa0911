"""Every point of a run as one Parquet table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from forensics.model import Run, Signal


def write_parquet(run: Run, path: Path | str) -> None:
    """Write (signal, attempt, step, wall_time, value, value_int, source), one row per point in the order written.

    ``value`` is float64; ``value_int`` int64 where the logged value is an integer, else null. Raises OSError.
    """
    frames = [_frame(run, signal) for signal in run.signals if len(signal)]
    table = pl.concat(frames) if frames else pl.DataFrame(schema=_SCHEMA)
    table.write_parquet(path)


_SCHEMA = {"signal": pl.String, "attempt": pl.Int32, "step": pl.Int64, "wall_time": pl.Float64, "value": pl.Float64, "value_int": pl.Int64, "source": pl.String}


def _frame(run: Run, signal: Signal) -> pl.DataFrame:
    n = len(signal)
    attempt = np.zeros(n, np.int32)
    for start in signal.starts[1:]:
        attempt[start:] += 1
    source = np.full(n, -1, np.int64)
    for span in signal.spans:
        source[span.start : span.stop] = span.source
    whole = signal.values.dtype == np.int64
    names = pl.Series([s.path for s in run.sources] or [""])
    return pl.DataFrame(
        {
            "signal": pl.repeat(signal.name, n, dtype=pl.String, eager=True),
            "attempt": attempt,
            "step": signal.steps,
            "wall_time": signal.wall_times if signal.wall_times is not None else pl.repeat(None, n, dtype=pl.Float64, eager=True),
            "value": signal.values.astype(np.float64),
            "value_int": signal.values if whole else pl.repeat(None, n, dtype=pl.Int64, eager=True),
            "source": names.gather(pl.Series(np.maximum(source, 0))),
        },
        schema=_SCHEMA,
    )

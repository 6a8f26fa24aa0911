"""Parquet tables: wide ones (a column per metric), and long ones (signal, step, value) such as ``inspect --export`` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink
from forensics.parsers.table import Column, claim_confidence, emit

if TYPE_CHECKING:
    import polars as pl

NAME = "parquet"

MAGIC = b"PAR1"
SUFFIXES = frozenset({".parquet", ".pq"})
MAX_CELLS = 2_000_000_000
"""Cells of a table that is read: a file of a few bytes may promise more than any memory holds."""
MAX_COLUMNS = 20_000

LONG = frozenset({"signal", "step", "value"})
"""Columns of a table with one point a row. ``value_int``, ``wall_time`` and ``attempt`` may be there too."""


def sniff(source: Source) -> Claim | None:
    """Claim by the magic number; how surely, by the names of the columns."""
    if source.is_dir or not source.head.startswith(MAGIC):
        return None
    names = _names(source)
    if names is None:
        return Claim(NAME, 25) if source.path.suffix.lower() in SUFFIXES else None
    if set(names) >= LONG:
        return Claim(NAME, 90)
    return Claim(NAME, claim_confidence(names, named=False))


def head_columns(source: Source) -> tuple[str, ...]:
    """The column names, for deciding which tables of a folder belong together."""
    return _names(source) or ()


def _names(source: Source) -> tuple[str, ...] | None:
    import polars as pl  # noqa: PLC0415 - costs 0.14 s of import, paid only where there is such a table

    try:
        return tuple(pl.read_parquet_schema(source.path))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        return None


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a table holds one run
    """Read the table. Nested columns are no metrics and are noted; a file that cannot be read is damage."""
    import polars as pl  # noqa: PLC0415

    try:
        lazy = pl.scan_parquet(source.path)
        schema = lazy.collect_schema()
        rows = int(lazy.select(pl.len()).collect().item())
        if len(schema) > MAX_COLUMNS or rows * max(1, len(schema)) > MAX_CELLS:
            sink.damage(f"a table of {rows:,} rows and {len(schema):,} columns is larger than what is read", "the whole file")
            return
        flat = [name for name, kind in schema.items() if not kind.is_nested()]
        frame = lazy.select(flat).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as problem:
        sink.damage(f"the table cannot be read ({type(problem).__name__}: {str(problem)[:200]})", "the whole file")
        return
    sink.progress(source.size)
    nested = [name for name in schema if name not in flat]
    if nested:
        sink.note("nested_columns", nested[:50])
    if set(flat) >= LONG:
        _long(frame, sink)
    else:
        emit({name: _column(frame[name]) for name in flat}, np.arange(1, frame.height + 1, dtype=np.int64), sink)


def _long(frame: pl.DataFrame, sink: Sink) -> None:
    import polars as pl  # noqa: PLC0415

    frame = frame.with_row_index("record", offset=1)
    known = frame.filter(pl.col("step").is_not_null() & pl.col("signal").is_not_null())
    if known.height < frame.height:
        sink.damage("rows without a signal or a step", f"{frame.height - known.height} points")
    for table in known.partition_by("signal", maintain_order=True):
        _signal(table, sink)


def _signal(table: pl.DataFrame, sink: Sink) -> None:
    import polars as pl  # noqa: PLC0415

    name = str(table["signal"][0])
    values = table["value"].cast(pl.Float64, strict=False)
    if "value_int" in table.columns and table["value_int"].null_count() == 0:
        values = table["value_int"].cast(pl.Int64, strict=False)
    here = values.is_not_null()
    if not here.all():
        sink.damage(f"rows of {name[:80]!r} without a value", f"{int((~here).sum())} points")
    table, values = table.filter(here), values.filter(here)
    times = table["wall_time"].cast(pl.Float64, strict=False) if "wall_time" in table.columns else None
    sink.points(
        name,
        table["step"].cast(pl.Int64, strict=False).to_numpy(),
        values.to_numpy(),
        wall_times=times.to_numpy() if times is not None and times.null_count() == 0 else None,
        records=table["record"].cast(pl.Int64).to_numpy(),
    )


def _column(series: pl.Series) -> Column:
    import polars as pl  # noqa: PLC0415

    if series.dtype.is_temporal():
        series = series.cast(pl.Datetime("us"), strict=False).dt.epoch("us").cast(pl.Float64) / 1e6
    rows = None
    if series.null_count():
        rows = series.is_not_null().arg_true().to_numpy().astype(np.int64)
        series = series.drop_nulls()
    if series.dtype.is_integer() or series.dtype == pl.Boolean:
        whole = series.cast(pl.Int64, strict=False)
        return Column(rows, whole.to_numpy() if whole.null_count() == 0 else series.cast(pl.Float64).to_numpy())
    if series.dtype.is_numeric():
        return Column(rows, series.cast(pl.Float64).to_numpy())
    return Column(rows, None, series.cast(pl.String, strict=False).to_list())

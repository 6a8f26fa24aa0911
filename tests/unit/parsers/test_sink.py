"""What is kept of facts that several sources of a run state."""

from __future__ import annotations

from forensics.parsers.sink import Collector


def test_the_last_process_tells_how_the_run_ended() -> None:
    collector = Collector()
    first, second, other = (collector.sink(path, kind) for path, kind in (("a", "wandb"), ("b", "wandb"), ("c", "mlflow")))
    first.note("finished", False)
    first.note("run_name", "first")
    second.note("finished", True)
    second.note("run_name", "second")
    other.note("finished", False)
    assert collector.notes == {"finished": True, "run_name": "first"}


def test_what_was_counted_in_each_file_is_added() -> None:
    collector = Collector()
    for path in ("a", "b"):
        sink = collector.sink(path, "csv")
        sink.note("rows_without_step", 2)
        sink.note("null_values", {"loss": 1, path: 3})
        sink.note("messages", [path])
    assert collector.notes == {"rows_without_step": 4, "null_values": {"loss": 2, "a": 3, "b": 3}, "messages": ["a", "b"]}

"""Hugging Face Trainer's ``trainer_state.json``: the log history, also out of a cut or damaged file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink
from forensics.parsers.table import column_of

NAME = "hf_trainer"

FILE_NAME = "trainer_state.json"
MAX_BYTES = 1 << 30
"""A log history of ten million entries stays below this."""

SUMMARY_MARK = "train_runtime"
"""A row with this key is the summary at the end of ``train()``, not a point of a curve."""
SUMMARY_KEYS = frozenset({"train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos", "train_loss"})

_NOTES = ("global_step", "max_steps", "logging_steps", "num_train_epochs")
_CONFIG = ("train_batch_size", "num_train_epochs", "max_steps", "logging_steps", "eval_steps", "save_steps")
_STEP = re.compile(rb'"global_step"\s*:\s*(\d{1,18})')
_HISTORY = re.compile(r'"log_history"\s*:\s*\[')


@dataclass(frozen=True, slots=True)
class History:
    """What a trainer_state holds. ``problem`` is set where the file could not be read as a whole."""

    entries: tuple[Mapping[str, object], ...]
    state: Mapping[str, object]
    problem: str = ""


def sniff(source: Source) -> Claim | None:
    """Claim by file name, or a JSON object with a log_history. ``order`` of the run is its global step."""
    named = source.path.name == FILE_NAME
    if source.is_dir or not (named or (source.head.lstrip()[:1] == b"{" and b'"log_history"' in source.head)):
        return None
    found = _STEP.search(source.head)
    return Claim(NAME, 95 if named else 85, (RunKey(order=float(found[1]) if found else 0.0),))


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a file holds one run
    """Read the log history: numbers by key, each at the step of its entry; ``records`` is the entry number."""
    history = load(source, sink)
    if history.problem:
        sink.damage(history.problem, f"{len(history.entries)} entries were read; everything after them is lost")
    for key in _NOTES:
        if isinstance(history.state.get(key), (int, float)):
            sink.note(key, history.state[key])
    sink.note("nan_filter_possible", True)
    sink.config({k: history.state[k] for k in _CONFIG if isinstance(history.state.get(k), (int, float))})
    _emit(history, sink)


def load(source: Source, sink: Sink | None = None) -> History:
    """The entries of the file; of a damaged one every complete entry."""
    with source.path.open("rb") as file:
        data = file.read(MAX_BYTES)
    if sink is not None:
        sink.progress(len(data))
    try:
        state = json.loads(data)
        problem = ""
    except (ValueError, RecursionError) as reason:
        return _salvage(data.decode("utf-8", errors="replace"), reason)
    if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
        return History((), {}, "no log_history in the file")
    entries = tuple(state["log_history"])
    if set(map(type, entries)) - {dict}:
        entries = tuple(e for e in entries if isinstance(e, dict))
    if len(entries) < len(state["log_history"]):
        problem = f"{len(state['log_history']) - len(entries)} entries of log_history are no objects"
    return History(entries, {k: v for k, v in state.items() if k != "log_history"}, problem)


def first_difference(newest: History, older: History) -> int | None:
    """The step from which an older copy tells another story than the newest; None where it is its exact beginning."""
    for one, other in zip(older.entries, newest.entries, strict=False):
        if one != other and repr(one) != repr(other):  # repr: NaN does not equal itself
            return _step_of(one)
    if len(older.entries) > len(newest.entries):
        return _step_of(older.entries[len(newest.entries)])
    return None


def _step_of(entry: Mapping[str, object]) -> int:
    step = entry.get("step")
    return int(step) if isinstance(step, (int, float)) and abs(step) < 2**63 else 0


def _salvage(text: str, reason: Exception) -> History:
    found = _HISTORY.search(text)
    why = "nested too deeply" if isinstance(reason, RecursionError) else str(reason)
    problem = f"the JSON is damaged ({why[:120]})"
    state: dict[str, object] = {k: int(m[1]) for k in _NOTES if (m := re.search(rf'"{k}"\s*:\s*(\d{{1,18}})\b', text))}
    if found is None:
        return History((), state, problem)
    decoder = json.JSONDecoder()
    entries: list[Mapping[str, object]] = []
    position = found.end()
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        try:
            entry, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        if isinstance(entry, dict):
            entries.append(entry)
    return History(tuple(entries), state, problem)


def _emit(history: History, sink: Sink) -> None:
    """Write the numbers. Entries with the same keys are handled together: a log has a handful of key sets, not of entries."""
    steps = [entry.get("step") for entry in history.entries]
    kept: Sequence[Mapping[str, object]] = history.entries
    numbers: Sequence[int] = range(1, len(kept) + 1)
    if set(map(type, steps)) - {int} or not all(-(2**63) < bound < 2**63 for bound in (min(steps, default=0), max(steps, default=0))):  # type: ignore[type-var,operator]
        numbers = [number for number, step in enumerate(steps, start=1) if _is_step(step)]
        kept = [history.entries[number - 1] for number in numbers]
        steps = [int(step) for step in steps if _is_step(step)]  # type: ignore[call-overload]
    alike: dict[tuple[str, ...], list[int]] = {}
    for row, keys in enumerate(map(tuple, kept)):
        if keys not in alike:
            alike[keys] = []
        alike[keys].append(row)
    without = len(history.entries) - len(kept)
    if without:
        sink.damage(f"{without} entries have no step", f"{without} entries")
    step_array, record_array = np.array(steps, dtype=np.int64), np.array(numbers, dtype=np.int64)
    for key, (rows, values) in _cells(kept, alike).items():
        if not rows:
            continue
        index = np.array(rows, dtype=np.int64)
        order = np.argsort(index, kind="stable")
        column = column_of(rows, values, len(steps))
        assert column.values is not None
        sink.points(key, step_array[index[order]], column.values[order], records=record_array[index[order]])


def _is_step(step: object) -> bool:
    return not isinstance(step, bool) and isinstance(step, (int, float)) and abs(step) < 2**63


def _cells(entries: Sequence[Mapping[str, object]], alike: Mapping[tuple[str, ...], list[int]]) -> dict[str, tuple[list[int], list[object]]]:
    """Row numbers and numbers of every key that is a curve."""
    out: dict[str, tuple[list[int], list[object]]] = {}
    for keys, members in alike.items():
        left_out = SUMMARY_KEYS if SUMMARY_MARK in keys else frozenset()
        for key in keys:
            if key == "step" or key in left_out:
                continue
            rows, values = out.setdefault(key, ([], []))
            found = [entries[row][key] for row in members]
            if set(map(type, found)) <= {float, int}:
                rows.extend(members)
                values.extend(found)
                continue
            for row, value in zip(members, map(_number, found), strict=True):
                if value is not None:
                    rows.append(row)
                    values.append(value)
    return out


def _number(value: object) -> int | float | None:
    if type(value) is float or type(value) is int:
        return value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and len(value) < 64:
        try:
            return float(value)
        except ValueError:
            return None
    return None

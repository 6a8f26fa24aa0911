"""R9: the same steps on another device."""

from __future__ import annotations

import torch

from forensics.replay.child.bench import Bench, shown
from forensics.replay.child.session import Session
from forensics.replay.wire import Outcome

ID, WHAT = "R9", "another device"


def run(bench: Bench) -> Outcome:
    """Only where two accelerators exist."""
    count = torch.cuda.device_count()
    if not bench.session.device.startswith("cuda") or count < 2:
        return Outcome(ID, WHAT, {}, f"not done: it needs two GPUs, {count} found")
    from dataclasses import replace

    mine = torch.device(bench.session.device).index or 0
    other = Session(bench.session.recipe, replace(bench.request, device=f"cuda:{(mine + 1) % count}"))
    rows = other.run(bench.before(), bench.target.last + 1)
    returned = bench.returned(rows)
    return Outcome(ID, WHAT, {"device": other.device, **shown(rows)}, "the event comes there too" if returned else "the other device is calm", returned)

"""A run of two processes (gloo), DDP and FSDP2, saved by torch.distributed.checkpoint, and its steps again in one process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="recipes need PyTorch")
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)

from forensics.replay.recipes.distributed import load_distributed  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

SCRIPT = """
import datetime, json, os, sys, warnings
import torch, torch.distributed as dist
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
warnings.simplefilter("ignore")

def build():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)

def batch(step):
    g = torch.Generator().manual_seed(step)
    x = torch.randn(8, 8, generator=g)
    return x, x[:, :4] * 2

def main(kind, place, rank, store, out):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2, timeout=datetime.timedelta(seconds=90))
    model, _ = build()
    if kind == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(6):
        if step == 3:
            weights, states = get_state_dict(model, optimizer)
            saved = {"model": weights, "optimizer": states, "step": step}
            dcp.save({"app": saved} if place == "app" else saved, checkpoint_id=out + "/step3")
        x, y = (t[rank * 4: rank * 4 + 4] for t in batch(step))
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach() / 2
        dist.all_reduce(mean)
        if rank == 0:
            with open(out + "/log.jsonl", "a") as log:
                log.write(json.dumps({"step": step, "loss": mean.item()}) + "\\n")
    dist.destroy_process_group()

if __name__ == "__main__":  # PyTorch is loaded once, and both ranks are forks of this process
    kind, place, store, out = sys.argv[1:]
    os.environ["GLOO_SOCKET_IFNAME"] = "lo" if sys.platform == "linux" else "lo0"
    other = os.fork()
    if other == 0:
        main(kind, place, 1, store, out)
        os._exit(0)
    main(kind, place, 0, store, out)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))
"""


def names() -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "script"}
    exec(SCRIPT, space)
    return space


@pytest.fixture(scope="module", params=[("ddp", "top"), ("fsdp2", "app")], ids=["ddp", "fsdp2"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("distributed")
    (folder / "script.py").write_text(SCRIPT)
    arguments = [sys.executable, "script.py", *request.param, str(folder / "store"), str(folder)]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_another_model_is_refused(run: Path) -> None:
    other = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4), torch.nn.Linear(4, 4))
    with pytest.raises(ValueError, match="another model"):
        load_distributed(other, torch.optim.AdamW(other.parameters()), run / "step3")


def test_another_folder_is_refused(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    with pytest.raises(ValueError, match="metadata"):
        load_distributed(model, torch.optim.AdamW(model.parameters()), tmp_path)


def test_one_process_takes_the_steps_of_two(run: Path) -> None:
    space = names()
    logged = {row["step"]: row["loss"] for row in map(json.loads, (run / "log.jsonl").read_text().splitlines())}
    model, optimizer = space["build"]()
    load_distributed(model, optimizer, run / "step3")
    for step in range(3, 6):
        x, y = space["batch"](step)
        loss = torch.nn.functional.mse_loss(model(x), y)
        assert loss.item() == pytest.approx(logged[step], rel=1e-5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_without_the_optimizer_state_the_steps_would_be_others(run: Path) -> None:
    space = names()
    logged = {row["step"]: row["loss"] for row in map(json.loads, (run / "log.jsonl").read_text().splitlines())}
    model, optimizer = space["build"]()
    load_distributed(model, optimizer, run / "step3")
    fresh = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in (3, 4):
        x, y = space["batch"](step)
        loss = torch.nn.functional.mse_loss(model(x), y)
        fresh.zero_grad()
        loss.backward()
        fresh.step()
    assert loss.item() != pytest.approx(logged[4], rel=1e-5)

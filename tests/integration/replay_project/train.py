"""A small classifier, trained the way people write such scripts, with faults that a test may switch on.

It knows nothing of any analysis tool. A batch is a function of the step, so any step can be run again.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import torch
from torch import nn

CONFIG = {"seed": 3, "steps": 160, "batch": 16, "samples": 20000, "dim": 12, "lr": 0.01, "warmup": 10, "clip": 1.0, "save_every": 40}


def build(config):
    torch.manual_seed(config["seed"])
    model = nn.Sequential(nn.Linear(config["dim"], 24), nn.GELU(), nn.Dropout(config.get("dropout", 0.0)), nn.Linear(24, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=config["lr"], betas=(0.9, 0.98))


def make_data(config, root):
    rng = np.random.default_rng(config["seed"])
    x = rng.normal(size=(config["samples"], config["dim"])).astype(np.float32)
    y = (x[:, :4] + 0.7 * rng.normal(size=(config["samples"], 4))).argmax(1).astype(np.float32)
    np.save(Path(root) / "data.npy", np.concatenate([x, y[:, None]], axis=1))


def sample_ids(step, config):
    return np.random.default_rng([config["seed"], step]).integers(0, config["samples"], config["batch"])


def get_batch(step, config, root):
    rows = torch.from_numpy(np.load(Path(root) / "data.npy", mmap_mode="r")[sample_ids(step, config)])
    return {"x": rows[:, :-1], "y": rows[:, -1].long()}


def learning_rate(step, config):
    if str(step) in config.get("lr_overrides", {}):
        return config["lr_overrides"][str(step)]
    return config["lr"] * min(1.0, (step + 1) / config["warmup"])


def loss_fn(model, batch):
    return nn.functional.cross_entropy(model(batch["x"]), batch["y"])


def save(path, step, model, optimizer):
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}, path)


def main(root, config, hook=None, first=0, resume=None, weights_only=False, last=None):
    root = Path(root)
    root.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    (root / "config.json").write_text(json.dumps(config))
    if not (root / "data.npy").exists():
        make_data(config, root)
    model, optimizer = build(config)
    if resume:
        state = torch.load(resume, weights_only=True)
        model.load_state_dict(state["model"])
        if not weights_only:
            optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["rng"])
    with (root / "metrics.jsonl").open("a") as log:
        for step in range(first, config["steps"] if last is None else last):
            if hook:
                hook(step, model, optimizer)
            lr = learning_rate(step, config)
            for group in optimizer.param_groups:
                group["lr"] = lr
            loss = loss_fn(model, get_batch(step, config, root))
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), config["clip"] or math.inf)
            optimizer.step()
            log.write(json.dumps({"step": step, "loss": loss.item(), "lr": lr, "grad_norm": norm.item()}) + "\n")
            if (step + 1) % config["save_every"] == 0:
                save(root / "checkpoints" / f"step_{step + 1:06d}.pt", step + 1, model, optimizer)

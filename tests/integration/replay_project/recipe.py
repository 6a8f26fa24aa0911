"""The recipe that a user of ``train.py`` would write."""

from __future__ import annotations

import train


class Recipe:
    def __init__(self, context):
        self.config, self.root = context.config, context.run_dir
        self.clip = self.config["clip"]

    def build(self):
        return train.build(self.config)

    def batch(self, step):
        return train.get_batch(step, self.config, self.root)

    def loss(self, model, batch):
        return train.loss_fn(model, batch)

    def lr(self, step):
        return train.learning_rate(step, self.config)

    def sample_ids(self, step):
        return train.sample_ids(step, self.config)


def recipe(context):
    return Recipe(context)


class OwnStep(Recipe):
    """The whole step is the user's own."""

    def step(self, model, optimizer, batch, step):
        for group in optimizer.param_groups:
            group["lr"] = train.learning_rate(step, self.config)
        loss = self.loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        norm = train.nn.utils.clip_grad_norm_(model.parameters(), self.config["clip"])
        optimizer.step()
        return {"loss": loss.item(), "grad_norm": norm}


def raises(context):
    raise KeyError("vocab_file")


def exits(context):
    raise SystemExit(4)


def dies(context):
    import os

    os._exit(7)


def hangs(context):
    import time

    time.sleep(600)


def incomplete(context):
    return object()


class OtherModel(Recipe):
    def build(self):
        return train.build({**self.config, "dim": 5})


class BadBatch(Recipe):
    def batch(self, step):  # noqa: ARG002 - a test
        raise FileNotFoundError("shard_0003.bin")


class OtherData(Recipe):
    def batch(self, step):
        return train.get_batch(step + 1, self.config, self.root)


class Noisy(Recipe):
    def __init__(self, context):
        super().__init__(context)
        import os
        import sys

        print('{"message": "done"}')
        sys.stderr.write("a warning\n")
        if os.fork() == 0:
            raise RuntimeError("the forked process came back")

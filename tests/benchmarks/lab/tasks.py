"""Tasks: data that is made up but has to be learned, a model for it, and its loss.

Data come from a pool that is drawn once; batch ``i`` is always the same rows. ``shifted`` is a second pool from another source.
A batch is a list of tensors, inputs first; ``corrupt`` damages one as broken loaders do.
"""

# ruff: noqa: ARG002 - tasks share one signature

from __future__ import annotations

import math
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.benchmarks.lab.models import Gan, Recurrent, Transformer, Vae, cnn, mlp
from tests.benchmarks.lab.recipes import Recipe

Batch = list[Tensor]

VOCABULARY, CONTEXT = 48, 24
SIDE = 12
CLASSES = 8
FEATURES = 16
POOL = 24_000
"""Most samples of a pool; longer runs see them again, as a second epoch."""


class Task:
    """Supervised learning of ``y`` from ``x``; other tasks override what differs."""

    unit = "nats"
    """Kind of loss: ``nats`` are positive log-likelihoods."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.random = torch.Generator().manual_seed(recipe.seed + 1)
        torch.manual_seed(recipe.seed)
        self.source = torch.Generator().manual_seed(recipe.seed + 2)
        self.model = self.build()
        count = min(POOL, recipe.samples or recipe.steps * recipe.batch + 256)
        self.rules = self.make_rules(torch.Generator().manual_seed(recipe.seed + 3))
        self.pool = self.make(count, self.rules)
        self.held_out = self.make(256, self.rules)
        self.shifted: Batch | None = None
        self.order = torch.arange(count)
        self.epoch = -1

    # What differs between tasks.

    def build(self) -> nn.Module:
        raise NotImplementedError

    def make_rules(self, random: torch.Generator) -> Batch:
        raise NotImplementedError

    def make(self, count: int, rules: Batch) -> Batch:
        raise NotImplementedError

    def loss(self, batch: Batch, step: int) -> tuple[Tensor, dict[str, float]]:
        raise NotImplementedError

    def backward(self, batch: Batch, step: int, factor: float) -> tuple[float, dict[str, float]]:
        """Gradients of ``factor`` times the loss are added; the loss itself is returned."""
        loss, extras = self.loss(batch, step)
        (loss * factor).backward()
        return float(loss.detach()), extras

    def after(self, step: int) -> None:
        """Called after every update."""

    # What is the same.

    @property
    def count(self) -> int:
        return len(self.order)

    @property
    def batches_per_epoch(self) -> int:
        return max(1, self.count // self.recipe.batch)

    def rows(self, index: int, size: int) -> Tensor:
        """Rows of batch ``index``. Every epoch is shuffled anew where the recipe says so; one batch may be of another size."""
        epoch, position = divmod(index, self.batches_per_epoch)
        if self.recipe.shuffle and epoch != self.epoch:
            self.order = torch.randperm(self.count, generator=torch.Generator().manual_seed(self.recipe.seed + 10 + epoch))
            self.epoch = epoch
        start = position * self.recipe.batch
        return self.order[start : start + min(size, self.recipe.batch)]

    def batch(self, index: int, size: int, *, shifted: bool = False) -> Batch:
        """Batch ``index`` of the usual or of the shifted data."""
        if not shifted:
            rows = self.rows(index, size)
            return [t[rows] for t in self.pool]
        if self.shifted is None:
            self.shifted = self.make(4096, self.make_rules(torch.Generator().manual_seed(self.recipe.seed + 4)))
        rows = (torch.arange(size) + index * size) % 4096
        return [t[rows] for t in self.shifted]

    def corrupt(self, batch: Batch, mode: str, random: torch.Generator) -> Batch:
        """A broken batch: noise for inputs, labels of other samples, inputs at another scale, NaN."""
        x, rest = batch[0], batch[1:]
        if mode == "labels" and rest:
            return [x, *(t[torch.randperm(len(t), generator=random)] for t in rest)]
        if mode == "nan":
            broken = x.clone()
            broken[0] = math.nan
            return [broken, *rest]
        if mode == "scale":
            return [x * self.recipe.fault_size, *rest]
        return [3.0 * torch.randn(x.shape, generator=random), *rest]

    def held_out_loss(self) -> float:
        self.model.eval()
        with torch.no_grad():
            loss = float(self.loss(self.held_out, 10**9)[0])
        self.model.train()
        return loss


class Language(Task):
    """Next tokens of a noisy Markov chain with two letters of memory."""

    def build(self) -> nn.Module:
        r = self.recipe
        if r.model in {"gru", "lstm", "rnn"}:
            return Recurrent(VOCABULARY, width=r.width, layers=r.depth, kind=r.model, dropout=r.dropout)
        return Transformer(VOCABULARY, CONTEXT, width=r.width, layers=r.depth, dropout=r.dropout, post=r.model == "post")

    def make_rules(self, random: torch.Generator) -> Batch:
        return [(3.0 * torch.randn(VOCABULARY, VOCABULARY, generator=random)).softmax(-1), torch.randint(VOCABULARY, (VOCABULARY,), generator=random)]

    def make(self, count: int, rules: Batch) -> Batch:
        chain, partner = rules
        text = torch.zeros(count, CONTEXT + 1, dtype=torch.long)
        text[:, 0] = torch.randint(VOCABULARY, (count,), generator=self.source)
        for t in range(1, CONTEXT + 1):
            text[:, t] = torch.multinomial(chain[text[:, t - 1]], 1, generator=self.source)[:, 0]
            if t >= 2:
                copied = torch.rand(count, generator=self.source) < 0.35
                text[:, t] = torch.where(copied, partner[text[:, t - 2]], text[:, t])
        return [text[:, :-1].contiguous(), text[:, 1:].contiguous()]

    def loss(self, batch: Batch, step: int) -> tuple[Tensor, dict[str, float]]:
        x, y = batch[0], batch[1]
        losses = functional.cross_entropy(self.model(x).flatten(0, 1), y.flatten(), reduction="none").view(y.shape)
        if len(batch) > 2:
            losses = losses * batch[2]
            loss = losses.sum() / batch[2].sum().clamp(min=1) if self.recipe.mask_mean else losses.mean()
        else:
            loss = losses.mean()
        return loss, {"attn_logit_max": self.model.logit_max} if isinstance(self.model, Transformer) else {}

    def corrupt(self, batch: Batch, mode: str, random: torch.Generator) -> Batch:
        x, y = batch[0], batch[1]
        if mode == "nan":
            return [x, y, torch.full(y.shape, math.nan)]
        if mode == "scale":
            one = torch.randint(VOCABULARY, (1,), generator=random)
            return [one.expand(x.shape).clone(), one.expand(y.shape).clone()]
        if mode == "labels":
            return [x, y.flatten()[torch.randperm(y.numel(), generator=random)].view(y.shape)]
        return [torch.randint(VOCABULARY, t.shape, generator=random) for t in (x, y)]


class Images(Task):
    """Classes of small images: a template each, shifted, faint, under noise."""

    def build(self) -> nn.Module:
        r = self.recipe
        if r.model == "cnn":
            return cnn(CLASSES, norm=r.norm, act=r.act, dropout=r.dropout)
        return mlp(SIDE * SIDE, CLASSES, width=r.width, depth=r.depth, act=r.act, dropout=r.dropout, residual=r.model == "resmlp")

    def make_rules(self, random: torch.Generator) -> Batch:
        return [torch.randn(CLASSES, 1, SIDE, SIDE, generator=random)]

    def make(self, count: int, rules: Batch) -> Batch:
        y = torch.randint(CLASSES, (count,), generator=self.source)
        if self.recipe.sorted_data:
            y = y.sort().values
        strength = 0.15 + 0.45 * torch.rand(count, 1, 1, 1, generator=self.source)
        x = strength * rules[0][y] + torch.randn(count, 1, SIDE, SIDE, generator=self.source)
        wrong = torch.rand(count, generator=self.source) < self.recipe.label_noise
        y = torch.where(wrong, torch.randint(CLASSES, (count,), generator=self.source), y)
        return [x, y]

    def loss(self, batch: Batch, step: int) -> tuple[Tensor, dict[str, float]]:
        logits = self.model(batch[0])
        extras = {"accuracy": float((logits.detach().argmax(-1) == batch[1]).float().mean())}
        if len(batch) > 2:
            losses = functional.cross_entropy(logits, batch[1], reduction="none") * batch[2]
            return (losses.sum() / batch[2].sum().clamp(min=1) if self.recipe.mask_mean else losses.mean()), extras
        return functional.cross_entropy(logits, batch[1]), extras


class Regression(Task):
    """A teacher network to imitate, with noise that may have heavy tails."""

    unit = "squares"

    def build(self) -> nn.Module:
        r = self.recipe
        return mlp(FEATURES, 1, width=r.width, depth=r.depth, act=r.act, dropout=r.dropout, residual=r.model == "resmlp")

    def make_rules(self, random: torch.Generator) -> Batch:
        return [torch.randn(FEATURES, 24, generator=random) / 3, torch.randn(24, 1, generator=random) / 3]

    def make(self, count: int, rules: Batch) -> Batch:
        x = torch.randn(count, FEATURES, generator=self.source)
        noise = torch.randn(count, 1, generator=self.source)
        if self.recipe.heavy:
            noise = noise / (torch.randn(count, 3, generator=self.source).square().mean(-1, keepdim=True)).sqrt()
        return [x, torch.tanh(x @ rules[0]) @ rules[1] + self.recipe.target_noise * noise]

    def loss(self, batch: Batch, step: int) -> tuple[Tensor, dict[str, float]]:
        errors = (self.model(batch[0]) - batch[1]).square()
        if len(batch) > 2:
            errors = errors * batch[2].view(-1, 1)
            return (errors.sum() / batch[2].sum().clamp(min=1) if self.recipe.mask_mean else errors.mean()), {}
        return errors.mean(), {}


class Autoencoding(Images):
    """A VAE on the images; the weight of the KL term may be warmed up, so that the loss rises by plan."""

    unit = "squares"

    def build(self) -> nn.Module:
        return Vae(SIDE * SIDE, width=self.recipe.width)

    def loss(self, batch: Batch, step: int) -> tuple[Tensor, dict[str, float]]:
        x = batch[0]
        noise = torch.randn(len(x), 6, generator=self.random)
        made, mean, log_var = self.model(x, noise)
        rebuilt = (made - x.flatten(1)).square().sum(-1).mean()
        kl = 0.5 * (mean.square() + log_var.exp() - 1 - log_var).sum(-1).mean()
        weight = min(1.0, step / self.recipe.kl_warmup) if self.recipe.kl_warmup else 1.0
        return rebuilt + weight * kl, {"kl_loss": float(kl.detach()), "recon_loss": float(rebuilt.detach())}


class Contrast(Images):
    """Two noisy views of every image must find each other in the batch."""

    def build(self) -> nn.Module:
        return mlp(SIDE * SIDE, 16, width=self.recipe.width, depth=2, act=self.recipe.act)

    def loss(self, batch: Batch, step: int) -> tuple[Tensor, dict[str, float]]:
        x = batch[0]
        views = [functional.normalize(self.model(x + 0.7 * torch.randn(x.shape, generator=self.random)), dim=-1) for _ in range(2)]
        return functional.cross_entropy(views[0] @ views[1].T / 0.2, torch.arange(len(x))), {}


class Adversaries(Task):
    """A GAN on points of a few clusters."""

    unit = "game"

    def build(self) -> nn.Module:
        return Gan(FEATURES, width=self.recipe.width)

    def make_rules(self, random: torch.Generator) -> Batch:
        return [2.0 * torch.randn(5, FEATURES, generator=random)]

    def make(self, count: int, rules: Batch) -> Batch:
        which = torch.randint(5, (count,), generator=self.source)
        return [rules[0][which] + 0.7 * torch.randn(count, FEATURES, generator=self.source)]

    def losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        model: Gan = self.model  # type: ignore[assignment]
        fake = model.generator(torch.randn(len(batch[0]), model.latent, generator=self.random))
        real, fooled = model.discriminator(batch[0]), model.discriminator(fake.detach())
        judge = functional.softplus(-real).mean() + functional.softplus(fooled).mean()
        return judge, functional.softplus(-model.discriminator(fake)).mean()

    def loss(self, batch: Batch, step: int) -> tuple[Tensor, dict[str, float]]:
        judge, made = self.losses(batch)
        return judge, {"loss_G": float(made.detach())}

    def backward(self, batch: Batch, step: int, factor: float) -> tuple[float, dict[str, float]]:
        model: Gan = self.model  # type: ignore[assignment]
        judge, made = self.losses(batch)
        for loss, part in ((judge, model.discriminator), (made, model.generator)):
            parameters = list(part.parameters())
            for parameter, gradient in zip(parameters, torch.autograd.grad(loss * factor, parameters, retain_graph=True), strict=True):
                parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        return float(judge.detach()), {"loss_G": float(made.detach())}


class Policy(Task):
    """REINFORCE with an entropy bonus: eight actions, one of them best in each state."""

    unit = "reward"

    def build(self) -> nn.Module:
        self.baseline = 0.0
        return mlp(FEATURES, CLASSES, width=self.recipe.width, depth=2, act="tanh")

    def make_rules(self, random: torch.Generator) -> Batch:
        return [torch.randn(FEATURES, CLASSES, generator=random) / 2]

    def make(self, count: int, rules: Batch) -> Batch:
        x = torch.randn(count, FEATURES, generator=self.source)
        return [x, x @ rules[0] + 0.5 * torch.randn(count, CLASSES, generator=self.source)]

    def loss(self, batch: Batch, step: int) -> tuple[Tensor, dict[str, float]]:
        log_p = self.model(batch[0]).log_softmax(-1)
        action = torch.multinomial(log_p.detach().exp().nan_to_num(0.1).clamp(min=1e-6), 1, generator=self.random)
        reward = batch[1].gather(1, action)
        self.baseline = 0.95 * self.baseline + 0.05 * float(reward.mean())
        entropy = -(log_p.exp() * log_p).sum(-1).mean()
        loss = -((reward - self.baseline) * log_p.gather(1, action)).mean() - 0.02 * entropy
        return loss, {"reward": float(reward.mean()), "entropy": float(entropy.detach())}


class Values(Task):
    """Q-learning on a random decision process with a target network that is renewed now and then."""

    unit = "squares"
    renewed = 100

    def build(self) -> nn.Module:
        model = mlp(FEATURES, 4, width=self.recipe.width, depth=2)
        self.target = deepcopy(model)
        return model

    def make_rules(self, random: torch.Generator) -> Batch:
        return [torch.randn(4, FEATURES, FEATURES, generator=random) / 4, torch.randn(FEATURES, generator=random) / 2]

    def make(self, count: int, rules: Batch) -> Batch:
        x = torch.randn(count, FEATURES, generator=self.source)
        action = torch.randint(4, (count,), generator=self.source)
        following = torch.tanh(torch.einsum("nij,nj->ni", rules[0][action], x)) + 0.1 * torch.randn(count, FEATURES, generator=self.source)
        return [x, action, (x @ rules[1]).tanh(), following]

    def loss(self, batch: Batch, step: int) -> tuple[Tensor, dict[str, float]]:
        x, action, reward, following = batch[:4]
        with torch.no_grad():
            aim = reward + 0.9 * self.target(following).max(-1).values
        value = self.model(x).gather(1, action[:, None])[:, 0]
        return functional.smooth_l1_loss(value, aim), {"q_mean": float(value.detach().mean())}

    def after(self, step: int) -> None:
        if step % self.renewed == self.renewed - 1:
            self.target.load_state_dict(self.model.state_dict())


TASKS: dict[str, type[Task]] = {
    "language": Language,
    "images": Images,
    "regression": Regression,
    "vae": Autoencoding,
    "contrast": Contrast,
    "gan": Adversaries,
    "policy": Policy,
    "q": Values,
}

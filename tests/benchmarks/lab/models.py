"""Tiny models. What matters is that they learn within seconds and that their curves are not alike."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "tanh": nn.Tanh, "silu": nn.SiLU}


class Residual(nn.Module):
    """A block of a deep MLP with a way around it."""

    def __init__(self, width: int, act: str, dropout: float) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), ACTIVATIONS[act](), nn.Dropout(dropout), nn.Linear(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


def mlp(inputs: int, outputs: int, *, width: int = 64, depth: int = 2, act: str = "relu", dropout: float = 0.0, residual: bool = False) -> nn.Module:
    """A plain or a residual MLP."""
    layers: list[nn.Module] = [nn.Flatten(), nn.Linear(inputs, width), ACTIVATIONS[act]()]
    for _ in range(depth - 1):
        layers += [Residual(width, act, dropout)] if residual else [nn.Linear(width, width), ACTIVATIONS[act](), nn.Dropout(dropout)]
    return nn.Sequential(*layers, nn.Linear(width, outputs))


def cnn(outputs: int, *, channels: int = 8, norm: bool = True, act: str = "relu", dropout: float = 0.0) -> nn.Module:
    """Two convolutions over images of 12 x 12."""
    first = [nn.BatchNorm2d(channels)] if norm else []
    second = [nn.BatchNorm2d(2 * channels)] if norm else []
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, stride=2, padding=1),
        *first,
        ACTIVATIONS[act](),
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
        *second,
        ACTIVATIONS[act](),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(2 * channels * 9, outputs),
    )


class Recurrent(nn.Module):
    """A language model of one or two recurrent layers."""

    def __init__(self, vocabulary: int, *, width: int = 48, layers: int = 1, kind: str = "gru", dropout: float = 0.0) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        cell = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}[kind]
        self.cells = cell(width, width, layers, batch_first=True)
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.cells(self.embed(x))[0]))


class Block(nn.Module):
    """A transformer block with its attention written out, so that its logits can be seen."""

    def __init__(self, width: int, heads: int, dropout: float, post: bool) -> None:
        super().__init__()
        self.heads, self.post = heads, post
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.drop = nn.Dropout(dropout)
        self.logit_max = 0.0

    def attend(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
        self.logit_max = float(scores.detach().abs().max())
        hidden = torch.ones(time, time, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(hidden, -math.inf).softmax(-1) @ v
        return self.drop(self.out(mixed.transpose(1, 2).reshape(batch, time, width)))

    def forward(self, x: Tensor) -> Tensor:
        if self.post:
            x = self.first(x + self.attend(x))
            return self.second(x + self.drop(self.down(nn.functional.gelu(self.up(x)))))
        x = x + self.attend(self.first(x))
        return x + self.drop(self.down(nn.functional.gelu(self.up(self.second(x)))))


class Transformer(nn.Module):
    """A causal language model."""

    def __init__(self, vocabulary: int, context: int, *, width: int = 32, layers: int = 2, heads: int = 2, dropout: float = 0.0, post: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.place = nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.ModuleList(Block(width, heads, dropout, post) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.embed(x) + self.place[: x.shape[1]]
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden))

    @property
    def logit_max(self) -> float:
        return max(block.logit_max for block in self.blocks)  # type: ignore[union-attr, arg-type]


class Vae(nn.Module):
    """A variational autoencoder of two small MLPs."""

    def __init__(self, inputs: int, latent: int = 6, width: int = 48) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, width), nn.ReLU(), nn.Linear(width, inputs))

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_var = self.encoder(x).chunk(2, -1)
        return self.decoder(mean + noise * (0.5 * log_var.clamp(-20, 20)).exp()), mean, log_var


class Gan(nn.Module):
    """A generator and a discriminator."""

    def __init__(self, size: int, latent: int = 8, width: int = 48) -> None:
        super().__init__()
        self.latent = latent
        self.generator = mlp(latent, size, width=width, depth=2)
        self.discriminator = nn.Sequential(nn.Linear(size, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, 1))

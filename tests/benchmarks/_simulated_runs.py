"""Simulated runs for the detection study: healthy ones of many kinds, and nine events of any size to put into them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from forensics.model import EventKind, Run, Signal

Array = NDArray[np.float64]

SHORTEST, LONGEST = 200, 20_000
CADENCES = (1, 5, 10, 50)
DECAYS = ("power", "exponential", "hump", "stretched")
SCHEDULES = ("constant", "cosine", "wsd", "multi-step", "restarts", "triangle", "one-cycle", "inverse-sqrt")
NOISES = ("gaussian", "student", "growing", "shrinking", "correlated")
SCALES = ("plain", "plain", "plain", "near-zero", "negative", "bf16")
ODDITIES = ("none", "none", "epochs", "norm spikes")
FAMILIES = (*("supervised",) * 6, "overfit", "gaps", "self-supervised", "adversarial", "reinforcement")

MARKS: dict[str, dict[str, object]] = {"self-supervised": {"method": "simsiam"}, "adversarial": {"model": "gan"}, "reinforcement": {"algorithm": "ppo"}}
"""How a run says what it optimises."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a healthy run is like. ``sd`` of the noise on the log loss; ``coupling`` of the log loss to the learning rate."""

    seed: int
    number: int
    points: int
    cadence: int
    decay: str
    schedule: str
    noise: str
    scale: str
    oddity: str
    sd: float
    phi: float
    df: float
    coupling: float
    family: str = "supervised"


@dataclass(slots=True)
class Material:
    """A run while it is made: log loss without noise, noise and its size, log grad norm, learning rate, loss scale; all (points,)."""

    trend: Array
    noise: Array
    sd: Array
    norm: Array
    lr: Array
    loss_scale: Array
    bad: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Truth:
    """The event that was added at points ``first`` to ``last``; ``size`` in the unit of its kind."""

    first: int
    last: int
    size: float
    accept: frozenset[EventKind]


def draw_setting(seed: int, number: int, points: int | None = None) -> Setting:
    """A healthy run's setting, the same for the same seed and number; ``points`` overrides its length."""
    rng = np.random.default_rng([seed, number])
    return Setting(
        seed=seed,
        number=number,
        points=_drawn(int(np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST)))), points),
        cadence=int(rng.choice(CADENCES)),
        decay=str(rng.choice(DECAYS)),
        schedule=str(rng.choice(SCHEDULES)),
        noise=str(rng.choice(NOISES)),
        scale=str(rng.choice(SCALES)),
        oddity=str(rng.choice(ODDITIES)),
        sd=float(np.exp(rng.uniform(np.log(0.003), np.log(0.15)))),
        phi=float(rng.uniform(0.1, 0.5)),
        df=float(rng.uniform(3.0, 8.0)),
        coupling=float(rng.uniform(0.02, 0.12)),
        family=str(rng.choice(FAMILIES)),
    )


def _drawn(own: int, wanted: int | None) -> int:
    return own if wanted is None else wanted


def make_material(s: Setting) -> tuple[Material, np.random.Generator]:
    """The healthy run of a setting."""
    rng = np.random.default_rng([s.seed, s.number, 1])
    n = s.points
    lr = _schedule(s.schedule, n, rng)
    trend = _decay(s, rng) + s.coupling * _lagged(lr, max(2.0, 0.004 * n))
    if s.oddity == "epochs":
        trend = trend - _epochs(n, s.sd, rng)
    noise, sd = _noise(s, n, rng)
    if s.family in MARKS:
        trend = trend + _wander(n, rng)
    elif s.family == "overfit":
        trend = trend - rng.uniform(2.0, 6.0) * (1 - np.exp(-np.arange(n) / n / rng.uniform(0.2, 0.8)))
    norm = np.log(rng.uniform(0.2, 3.0)) + 0.3 * trend + rng.uniform(0.08, 0.3) * rng.standard_t(6.0, n)
    if s.oddity == "norm spikes":
        places = rng.choice(np.arange(n // 20, n), size=max(1, n // 1500), replace=False)
        norm[places] += np.log(rng.uniform(3.0, 9.0, len(places)))
    loss_scale = _scaler(s, rng)
    return Material(trend, noise, sd, norm, 3e-4 * lr, loss_scale, np.zeros(n, dtype=bool)), rng


def finish(s: Setting, m: Material) -> Run:
    """The run as it would be logged."""
    u = m.trend + m.noise
    if s.scale == "negative":
        loss = u - float(m.trend.mean()) - 4.0
    elif s.scale == "near-zero":
        loss = np.exp(u - 7.0)
    else:
        loss = np.exp(u)
    if s.scale == "bf16":
        loss = _bf16(loss)
    if s.family == "reinforcement":
        loss = loss - float(loss[len(loss) // 2 :].mean())
    loss = np.where(m.bad, np.nan, loss)
    if s.family == "gaps":
        loss = np.where(np.arange(s.points) % 5 == 0, loss, np.nan)
    steps = np.arange(1, s.points + 1, dtype=np.int64) * s.cadence
    rows = (("loss", loss), ("grad_norm", np.exp(m.norm)), ("lr", m.lr), ("loss_scale", m.loss_scale))
    signals = [Signal(name, steps, values, role=name) for name, values in rows]
    if s.family == "reinforcement":
        signals.append(Signal("reward", steps, -loss, role="reward"))
    return Run("memory", "simulated", (), tuple(signals), (), MARKS.get(s.family, {}))


def _decay(s: Setting, rng: np.random.Generator) -> Array:
    """Log loss without noise: from about 10.8 to between 1.5 and 4 nats, in four shapes."""
    x = np.arange(s.points) / s.points
    start, end = rng.uniform(5.0, 11.0), rng.uniform(1.5, 4.0)
    if s.decay == "exponential":
        shape = np.exp(-x / rng.uniform(0.03, 0.3))
    elif s.decay == "stretched":
        shape = np.exp(-((x / rng.uniform(0.02, 0.2)) ** 0.5))
    else:
        shape = (1 + x / rng.uniform(0.002, 0.02)) ** -rng.uniform(0.4, 1.0)
    trend = np.log(end + (start - end) * shape)
    if s.decay == "hump":
        trend = trend + rng.uniform(0.02, 0.1) * np.exp(-0.5 * ((x - 0.02) / 0.007) ** 2)
    return np.asarray(trend, dtype=np.float64)


def _schedule(kind: str, n: int, rng: np.random.Generator) -> Array:
    """Learning rate as a share of its peak, with a warmup of up to 4 % of the run."""
    x = np.arange(n) / n
    if kind == "cosine":
        lr = 0.1 + 0.45 * (1 + np.cos(np.pi * x))
    elif kind == "wsd":
        lr = np.clip((1 - x) / 0.2, 0.0, 1.0)
    elif kind == "multi-step":
        lr = np.where(x < 0.5, 1.0, np.where(x < 0.75, 0.1, 0.01))
    elif kind == "restarts":
        lr = 0.55 + 0.45 * np.cos(np.pi * ((x * int(rng.integers(2, 6))) % 1.0))
    elif kind == "triangle":
        lr = 0.1 + 0.9 * np.abs((x * int(rng.integers(2, 6))) % 1.0 * 2.0 - 1.0)
    elif kind == "one-cycle":
        lr = np.where(x < 0.3, 0.04 + 0.96 * x / 0.3, np.maximum((1 - x) / 0.7, 1e-3))
    elif kind == "inverse-sqrt":
        lr = np.minimum(1.0, np.sqrt(0.05 / np.maximum(x, 1e-9)))
    else:
        lr = np.ones(n)
    warm = int(n * rng.uniform(0.0, 0.04))
    return np.asarray(lr * np.minimum(1.0, (np.arange(n) + 1) / max(warm, 1)), dtype=np.float64)


def _lagged(lr: Array, points: float) -> Array:
    """The loss follows the learning rate with a delay (first-order lag)."""
    a = float(np.exp(-1.0 / points))
    return np.asarray(lfilter([1 - a], [1, -a], lr - lr[0]) + lr[0], dtype=np.float64)


def _wander(n: int, rng: np.random.Generator) -> Array:
    """A slow course that goes up as well as down: what two players, or a moving target, make of a loss."""
    knots = rng.normal(0.0, rng.uniform(0.05, 0.4), 12)
    smooth = np.interp(np.arange(n), np.linspace(0, n, 12), knots)
    return np.asarray(smooth - smooth[0], dtype=np.float64)


def _epochs(n: int, sd: float, rng: np.random.Generator) -> Array:
    """A fall at every epoch boundary of one to four noise sds, a third of which is lost again within the epoch."""
    count = int(rng.integers(3, 12))
    position = np.arange(n) / n * count
    step = sd * rng.uniform(1.0, 4.0)
    return np.asarray(step * (np.floor(position) - 0.3 * (position % 1.0) * (position >= 1)), dtype=np.float64)


def _noise(s: Setting, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Noise of the log loss and its standard deviation (robust, of the bulk) at every point."""
    white = rng.standard_t(s.df, n) if s.noise == "student" else rng.standard_normal(n)
    sd = np.full(n, s.sd)
    if s.noise == "growing":
        sd = s.sd * np.linspace(1.0, 3.0, n)
    elif s.noise == "shrinking":
        sd = s.sd * np.linspace(3.0, 1.0, n)
    elif s.noise == "correlated":
        white = _autoregressive(white, s.phi)
    return white * sd, sd


def _autoregressive(white: Array, phi: float) -> Array:
    return np.asarray(lfilter([np.sqrt(1 - phi**2)], [1, -phi], white), dtype=np.float64)


def _scaler(s: Setting, rng: np.random.Generator) -> Array:
    """A dynamic loss scale: doubles after 2,000 good steps and halves once, some time later, because that was too much."""
    interval = max(10, 2000 // s.cadence)
    log2 = np.full(s.points, 16.0)
    for start in range(interval, s.points, interval):
        log2[start : start + int(rng.integers(1, interval))] = 17.0
    return np.asarray(2.0**log2, dtype=np.float64)


def _bf16(values: Array) -> Array:
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


LOSS_KINDS = frozenset(
    {EventKind.SPIKE, EventKind.SLOW_SPIKE, EventKind.LEVEL_SHIFT, EventKind.DRIFT, EventKind.DIVERGENCE, EventKind.NOISE_CHANGE, EventKind.OSCILLATION}
)


def _spike(s: Setting, m: Material, at: int, rng: np.random.Generator) -> Truth:
    width = int(rng.integers(1, 6))
    size = float(np.exp(rng.uniform(np.log(3), np.log(60))))
    shape = np.linspace(1.0, 0.5, width)
    m.trend[at : at + width] += size * m.sd[at] * shape[: s.points - at]
    return Truth(at, at + width - 1, size, LOSS_KINDS)


def _slow_spike(s: Setting, m: Material, at: int, rng: np.random.Generator) -> Truth:
    size = float(np.exp(rng.uniform(np.log(1), np.log(30))))
    length = rng.uniform(20, max(25, min(600, s.points / 20)))
    k = np.arange(s.points - at)
    m.trend[at:] += size * m.sd[at] * np.minimum(1.0, (k + 1) / 5) * np.exp(-k / length)
    return Truth(at, min(s.points - 1, at + int(3 * length)), size, LOSS_KINDS)


def _level_shift(s: Setting, m: Material, at: int, rng: np.random.Generator) -> Truth:
    size = float(np.exp(rng.uniform(np.log(0.5), np.log(20))))
    m.trend[at:] += size * m.sd[at]
    return Truth(at, s.points - 1, size, LOSS_KINDS)


def _drift(s: Setting, m: Material, at: int, rng: np.random.Generator) -> Truth:
    """Rises steadily from ``at`` to the end by ``size`` sds over the level it had at ``at``."""
    size = float(np.exp(rng.uniform(np.log(1), np.log(40))))
    k = np.linspace(0.0, 1.0, s.points - at)
    m.trend[at:] = m.trend[at] + size * m.sd[at] * k
    return Truth(at, s.points - 1, size, LOSS_KINDS)


def _divergence(s: Setting, m: Material, at: int, rng: np.random.Generator) -> Truth:
    """Rises exponentially to ``size`` sds within 10 points up to a fifth of what is left, and stays."""
    size = float(np.exp(rng.uniform(np.log(5), np.log(100))))
    k = np.arange(s.points - at)
    length = rng.uniform(10, max(11, 0.2 * len(k)))
    m.trend[at:] = m.trend[at] + size * m.sd[at] * np.expm1(np.minimum(3.0, 3.0 * k / length)) / np.expm1(3.0)
    m.norm[at:] += np.minimum(3.0, 3.0 * k / length)
    return Truth(at, s.points - 1, size, LOSS_KINDS | {EventKind.GRAD_NORM_SURGE})


def _noise_change(s: Setting, m: Material, at: int, rng: np.random.Generator) -> Truth:
    size = float(rng.uniform(1.2, 6.0))
    m.noise[at:] *= size
    return Truth(at, s.points - 1, size, LOSS_KINDS)


def _non_finite(s: Setting, m: Material, at: int, rng: np.random.Generator) -> Truth:
    size = float(rng.choice([1, 2, 5, s.points]))
    stop = min(s.points, at + int(size))
    m.bad[at:stop] = True
    return Truth(at, stop - 1, size, frozenset({EventKind.NON_FINITE}))


def _scale_burst(s: Setting, m: Material, at: int, rng: np.random.Generator) -> Truth:
    halvings = int(rng.integers(2, 13))
    gap = int(rng.integers(1, 4))
    fall = np.minimum(halvings, 1 + np.arange(s.points - at) // gap)
    m.loss_scale[at:] /= 2.0**fall
    return Truth(at, min(s.points - 1, at + halvings * gap), float(halvings), frozenset({EventKind.LOSS_SCALE_DROP, EventKind.LOSS_SCALE_COLLAPSE}))


def _lr_jump(s: Setting, m: Material, at: int, rng: np.random.Generator) -> Truth:
    """The learning rate is ``size`` times the schedule from ``at`` on, without effect on the loss in half of the runs."""
    size = float(np.exp(rng.uniform(np.log(1.25), np.log(20))))
    m.lr[at:] *= size
    if rng.random() < 0.5:
        m.trend[at:] += 10 * m.sd[at]
    return Truth(at, s.points - 1, size, frozenset({EventKind.LR_ANOMALY, EventKind.LEVEL_SHIFT, EventKind.DIVERGENCE}))


Maker = Callable[[Setting, Material, int, np.random.Generator], Truth]

EVENTS: dict[str, tuple[Maker, str, tuple[float, ...]]] = {
    "spike": (_spike, "sds", (3, 5, 7, 9, 12, 20, 60)),
    "slow_spike": (_slow_spike, "sds", (1, 2, 3, 5, 8, 30)),
    "level_shift": (_level_shift, "sds", (0.5, 1, 2, 3, 5, 20)),
    "drift": (_drift, "sds", (1, 2, 4, 8, 16, 40)),
    "divergence": (_divergence, "sds", (5, 10, 20, 40, 100)),
    "noise_change": (_noise_change, "factor", (1.2, 1.6, 2, 2.5, 3, 4, 6)),
    "non_finite": (_non_finite, "points", (1, 2, 5, 200, 20_001)),
    "loss_scale": (_scale_burst, "halvings", (2, 3, 4, 6, 13)),
    "lr_jump": (_lr_jump, "factor", (1.25, 1.5, 2, 5, 20)),
}

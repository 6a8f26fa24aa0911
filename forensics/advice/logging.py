"""What to log next time, as code for the user's framework. What is missing is read off the case; so is the framework."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from forensics.model import Case, Severity


class Framework(StrEnum):
    """Whose training loop it is."""

    HF = "Hugging Face Trainer"
    LIGHTNING = "Lightning"
    MEGATRON = "Megatron-LM"
    OWN = "a loop of your own"


class Logger(StrEnum):
    """Where its numbers go."""

    WANDB = "wandb"
    TENSORBOARD = "tensorboard"
    MLFLOW = "mlflow"
    LINES = "lines"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One signal to log: ``name`` as it is recognised, ``why`` for a person."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class LoggingAdvice:
    """``code`` is ready to paste; empty where nothing is missing."""

    framework: Framework
    logger: Logger
    wanted: tuple[Wanted, ...]
    settings: tuple[str, ...]
    code: str


ALWAYS = (
    Wanted("lr", "causes that need the learning rate could be neither found nor excluded"),
    Wanted("grad_norm", "whether gradients led the loss is unknown"),
    Wanted("batch_id", "the batch at an event cannot be named, and a batch that comes back is not seen"),
)
"""Signals without which every explanation is weaker."""

SCALE = Wanted("loss_scale", "the run is in float16: skipped steps and overflow are not seen")
UPDATE = Wanted("update_rms", "it tells stale second moments (values of 2 and more, 1 to 8 steps before the loss) from a bad batch")

STATE = frozenset({"adam_v_stale", "batch_state_interaction", "momentum_contamination", "gradient_explosion_depth", "sdc_transient", "embedding_grad_surge"})
"""Causes among which the size of the update decides."""

HF_FORMATS = frozenset({"hf_trainer", "console.hf_print", "console.axolotl"})
"""Formats that only this Trainer writes."""

_ALIASES: Mapping[str, tuple[str, ...]] = {"batch_id": ("batch_id", "samples", "tokens")}


def logging_advice(case: Case) -> LoggingAdvice:
    """What to add to the training loop so that the next analysis is surer."""
    framework, logger = _framework(case), _logger(case)
    wanted = _wanted(case)
    settings = _settings(case, framework)
    return LoggingAdvice(framework, logger, wanted, settings, _code(framework, logger, tuple(w.name for w in wanted), settings))


def _wanted(case: Case) -> tuple[Wanted, ...]:
    roles = {s.role for s in case.signals if s.points}
    out = [w for w in ALWAYS if not roles & set(_ALIASES.get(w.name, (w.name,)))]
    precision = str(case.run.config.get("dtype") or case.run.config.get("precision") or "").lower()
    if (case.run.config.get("fp16") is True or precision in {"fp16", "float16", "16", "16-mixed"}) and "loss_scale" not in roles:
        out.append(SCALE)
    named = {h.cause for e in case.events if e.severity is not Severity.INFO for h in e.hypotheses}
    if named & STATE and "update_rms" not in roles:
        out.append(UPDATE)
    return tuple(out)


def _framework(case: Case) -> Framework:
    formats = {s.format for s in case.run.sources}
    names = {s.name for s in case.signals}
    config = set(case.run.config)
    if formats & HF_FORMATS or {"train/global_step", "train/grad_norm"} <= names or "per_device_train_batch_size" in config:
        return Framework.HF
    if formats & {"console.megatron"} or {"lm loss", "lm-loss-training/lm loss"} & names:
        return Framework.MEGATRON
    if formats & {"console.lightning"} or "trainer/global_step" in names or any(n.endswith(("_step", "_epoch")) and "loss" in n for n in names):
        return Framework.LIGHTNING
    return Framework.OWN


def _logger(case: Case) -> Logger:
    formats = " ".join(s.format for s in case.run.sources)
    return next((logger for logger in (Logger.WANDB, Logger.TENSORBOARD, Logger.MLFLOW) if logger.value in formats), Logger.LINES)


def _settings(case: Case, framework: Framework) -> tuple[str, ...]:
    """Options of the framework, instead of code."""
    out = []
    every = next((s.every for s in case.signals if s.role == "loss" and s.primary), 1.0) or 1.0
    if every > 1:
        out.append({Framework.HF: "logging_steps=1", Framework.LIGHTNING: "log_every_n_steps=1", Framework.MEGATRON: "--log-interval 1"}.get(framework, ""))
    if framework is Framework.HF and any(n.what == "NaN losses" for n in case.not_checked):
        out.append("logging_nan_inf_filter=False")
    if framework is Framework.MEGATRON:
        out += ["--log-params-norm", "--log-num-zeros-in-grad"]
    return tuple(option for option in out if option)


_BATCH_ID = '''
def batch_id(batch):
    """24 bits of what is in the batch: exact in every logger, the same whenever the batch comes back."""
    tensors = batch.values() if hasattr(batch, "values") else batch if isinstance(batch, (list, tuple)) else [batch]
    digest = hashlib.blake2b(digest_size=3)
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor):
            digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return int.from_bytes(digest.digest(), "big")
'''

_GRAD_NORM = '''
def grad_norm(model):
    """L2 norm of all gradients, before clipping."""
    norms = [torch.linalg.vector_norm(p.grad.detach().float()) for p in model.parameters() if p.grad is not None]
    return float(torch.linalg.vector_norm(torch.stack(norms))) if norms else 0.0
'''

_UPDATE_RMS = '''
def update_rms(optimizer):
    """Largest RMS of g / sqrt(v) over the tensors of an Adam-like optimizer, before its step; about 1 when healthy."""
    worst = 0.0
    for group in optimizer.param_groups:
        beta2 = group.get("betas", (0.9, 0.999))[1]
        for p in group["params"]:
            state = optimizer.state.get(p, {})
            if p.grad is None or "exp_avg_sq" not in state or not float(state["step"]):
                continue
            v = state["exp_avg_sq"].float() / (1 - beta2 ** float(state["step"]))
            ratio = p.grad.detach().float() ** 2 / torch.clamp(v, min=group.get("eps", 1e-8) ** 2)
            worst = max(worst, float(ratio.mean().sqrt()))
    return worst
'''

_HELPERS = {"batch_id": _BATCH_ID, "grad_norm": _GRAD_NORM, "update_rms": _UPDATE_RMS}

_VALUES = {
    "lr": 'optimizer.param_groups[0]["lr"]',
    "grad_norm": "grad_norm(model)",
    "batch_id": "batch_id(batch)",
    "loss_scale": "scaler.get_scale()",
    "update_rms": "update_rms(optimizer)",
}

_SEND = {
    Logger.WANDB: "wandb.log(facts, step=step)",
    Logger.TENSORBOARD: "for name, value in facts.items():\n    writer.add_scalar(name, value, step)",
    Logger.MLFLOW: "mlflow.log_metrics(facts, step=step)",
    Logger.LINES: 'log_file.write(json.dumps({"step": step, **facts}) + "\\n")',
}


def _code(framework: Framework, logger: Logger, names: Sequence[str], settings: Sequence[str]) -> str:
    if framework is Framework.MEGATRON:
        return " ".join(settings) + "\n" if settings else ""
    if framework is Framework.HF:
        names = [n for n in names if n not in {"lr", "grad_norm"}]  # the Trainer logs both by itself
    parts = []
    if settings and framework is not Framework.OWN:
        where = "TrainingArguments" if framework is Framework.HF else "Trainer"
        parts.append(f"# Options of {where}: {', '.join(settings)}\n")
    if names:
        helpers = [_HELPERS[n].strip("\n") for n in names if n in _HELPERS]
        loop = {Framework.HF: _hf, Framework.LIGHTNING: _lightning}.get(framework)
        body = _own(logger, names) if loop is None else loop(names)
        parts.append("\n\n\n".join([_imports(framework, logger, names), *helpers, body]) + "\n")
    return "\n".join(parts)


def _imports(framework: Framework, logger: Logger, names: Sequence[str]) -> str:
    lines = ["import hashlib"] if "batch_id" in names else []
    lines += ["import json"] if framework is Framework.OWN and logger is Logger.LINES else []
    lines += [""] if lines else []
    if framework is Framework.HF:
        lines += ["import torch", "from transformers import Trainer"]
    elif framework is Framework.LIGHTNING:
        lines += ["import lightning as L", "import torch"]
    else:
        lines += ["import torch"]
    return "\n".join(lines)


def _own(logger: Logger, names: Sequence[str]) -> str:
    facts = "\n".join(f'    "{n}": {_VALUES[n]},' for n in names)
    head = "# In the loop, after backward (and after scaler.unscale_(optimizer)), before clipping and optimizer.step():"
    return f"{head}\nfacts = {{\n{facts}\n}}\n{_SEND[logger]}"


def _hf(names: Sequence[str]) -> str:
    inside = {
        "batch_id": "batch_id(inputs)",
        "update_rms": "update_rms(self.optimizer)",
        "loss_scale": "self.accelerator.scaler.get_scale() if self.accelerator.scaler else 1.0",
    }
    facts = "\n".join(f'            "{n}": {inside[n]},' for n in names)
    return f'''class LoggingTrainer(Trainer):
    """Logs what the last run lacked. With gradient accumulation the values are those of the last micro-batch."""

    def training_step(self, model, inputs, *args, **kwargs):
        loss = super().training_step(model, inputs, *args, **kwargs)
        self.facts = {{
{facts}
        }}
        return loss

    def log(self, logs, *args, **kwargs):
        more = getattr(self, "facts", {{}}) if "loss" in logs else {{}}
        super().log({{**logs, **more}}, *args, **kwargs)'''


def _lightning(names: Sequence[str]) -> str:
    inside = {
        "lr": 'optimizer.param_groups[0]["lr"]',
        "grad_norm": "grad_norm(module)",
        "batch_id": "self.batch",
        "loss_scale": "trainer.precision_plugin.scaler.get_scale()",
        "update_rms": "update_rms(optimizer)",
    }
    facts = "\n".join(f'            "{n}": {inside[n]},' for n in names)
    keep = "\n    def on_train_batch_start(self, trainer, module, batch, batch_idx):\n        self.batch = batch_id(batch)\n" if "batch_id" in names else ""
    return f'''class LoggingCallback(L.Callback):
    """Logs what the last run lacked: Trainer(callbacks=[LoggingCallback()])."""
{keep}
    def on_before_optimizer_step(self, trainer, module, optimizer):
        facts = {{
{facts}
        }}
        trainer.logger.log_metrics(facts, step=trainer.global_step)'''


def sentence(advice: LoggingAdvice) -> str:
    """The advice in one line; empty where nothing is missing."""
    names = [w.name for w in advice.wanted]
    parts = ([f"log {', '.join(names)}"] if names else []) + ([f"set {', '.join(advice.settings)}"] if advice.settings else [])
    return textwrap.shorten("; ".join(parts), 300)

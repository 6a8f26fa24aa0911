"""The recorder in Hugging Face's Trainer.

``watch(trainer, FlightRecorder(args.output_dir))`` between making the Trainer and ``trainer.train()`` is all there is to do.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forensics.recorder import FlightRecorder


def watch(trainer: Any, recorder: FlightRecorder) -> None:
    """Record every optimizer step under the number that the Trainer logs it with.

    The inputs, loss and gradient norm are taken where the Trainer has them: around ``training_step`` and the clipping of
    gradients. Returns at once; the recorder is closed when training ends.
    """
    from transformers import TrainerCallback

    plain_step, plain_clip = trainer.training_step, trainer.accelerator.clip_grad_norm_
    seen: dict[str, Any] = {"loss": None, "norm": None}

    @wraps(plain_step)
    def training_step(model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        recorder.begin(trainer.state.global_step + 1, inputs)
        loss = plain_step(model, inputs, *args, **kwargs)
        seen["loss"] = loss if seen["loss"] is None else seen["loss"] + loss
        return loss

    @wraps(plain_clip)
    def clip_grad_norm_(*args: Any, **kwargs: Any) -> Any:
        seen["norm"] = plain_clip(*args, **kwargs)
        return seen["norm"]

    class Recording(TrainerCallback):  # type: ignore[misc]
        """Ends the recorder's step with the Trainer's."""

        lr: float | None = None

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the framework's signature
            """Take the learning rate that the step is taken with."""
            optimizer = kwargs.get("optimizer") or trainer.optimizer
            self.lr = float(optimizer.param_groups[0]["lr"])

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the framework's signature
            """The step is over."""
            recorder.end(loss=seen["loss"], grad_norm=seen["norm"], lr=self.lr, scaler=getattr(trainer.accelerator, "scaler", None))
            seen.update(loss=None, norm=None)

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the framework's signature
            """Training is over."""
            recorder.close()

    trainer.training_step, trainer.accelerator.clip_grad_norm_ = training_step, clip_grad_norm_
    trainer.add_callback(Recording())

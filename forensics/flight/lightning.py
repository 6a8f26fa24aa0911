"""The recorder in Lightning.

``Trainer(callbacks=[recording(FlightRecorder(run_dir))])`` is all there is to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forensics.flight import rng

if TYPE_CHECKING:
    from forensics.recorder import FlightRecorder

RNG_KEY = "flight_recorder_rng"
"""Where the random states lie in a checkpoint."""


def recording(recorder: FlightRecorder) -> Any:
    """A callback that records every optimizer step under the number that Lightning's loggers use (``global_step``).

    With manual optimization or several optimizers, what one batch did counts as one step of the first optimizer's count.
    """
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback

    class Recording(Callback):  # type: ignore[misc]
        """Begins and ends the recorder's steps with the trainer's batches."""

        def __init__(self) -> None:
            self._norm: Any = None
            self._lr: float | None = None
            self._losses: list[Any] = []
            self._step: int | None = None

        def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:  # noqa: ARG002 - the framework's signature
            """A batch is there; nothing was drawn for it yet."""
            self._step = int(trainer.global_step)
            recorder.begin(self._step, batch)

        def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:  # noqa: ARG002 - the framework's signature
            """Gradients are there, not clipped yet."""
            import torch

            found = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
            if found:
                norms = torch._foreach_norm([g.detach() for g in found])
                self._norm = torch.linalg.vector_norm(torch.stack([n.to(norms[0].device) for n in norms]))
            self._lr = float(optimizer.param_groups[0]["lr"])

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:  # noqa: ARG002 - the framework's signature
            """The step is over if the optimizer took it; else this was a micro-batch."""
            loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
            if loss is not None:
                self._losses.append(loss.detach())
            if trainer.global_step == self._step:
                return
            plugin = getattr(trainer, "precision_plugin", None)
            total = None if not self._losses else sum(self._losses[1:], self._losses[0])
            recorder.end(loss=total, grad_norm=self._norm, lr=self._lr, scaler=getattr(plugin, "scaler", None))
            self._norm, self._lr, self._losses = None, None, []

        def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:  # noqa: ARG002 - the framework's signature
            """Put the random states into the checkpoint, which Lightning does not: without them no dropout comes back."""
            import torch

            checkpoint[RNG_KEY] = {name: torch.from_numpy(array.copy()) for name, array in rng.capture().arrays().items()}

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002 - the framework's signature
            """Lightning ends the process in its own ways after this."""
            recorder.flush(f"{type(exception).__name__}: {str(exception)[:200]}")

        def on_fit_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 - the framework's signature
            """Training is over."""
            recorder.close()

    return Recording()

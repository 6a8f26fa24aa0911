from __future__ import annotations

from forensics.correlate.checkpoint_evidence import CheckpointEvidence
from forensics.model import Checkpoint, Damage, Fault, Inspected, Outlier, ParamGroup, TensorChange, TensorInfo, TensorKind, TensorStats


def saved(
    step: int,
    *,
    count: int | None = None,
    groups: bool = True,
    fault: Fault | None = None,
    change: TensorChange | None = None,
    since: int | None = None,
) -> Inspected:
    checkpoint = Checkpoint(
        f"run/{step}.pt",
        "torch zip",
        step,
        "step",
        None if count is None else (count, count),
        (ParamGroup(1e-3, params=("w",)),) if groups else (),
    )
    return Inspected(checkpoint, {}, () if fault is None else (fault,), None if change is None else (change,), since)


def rotten(name: str = "w") -> Fault:
    return Fault(name, TensorKind.PARAM, f"{name}: element [1, 2] is -3000, the largest of the others 0.1", (1, 2), -3000.0)


def change(*, unchanged: int = 0, jump: bool = False, was: float = 0.02) -> TensorChange:
    outlier = Outlier((1, 2), -3000.0, 0.03) if jump else None
    return TensorChange("w", TensorKind.PARAM, 100, 1.0, 1.0, 0.1, unchanged, 3000.0, (1, 2), 0, 0, outlier, was if jump else None)


def test_without_checkpoints_nothing_is_said() -> None:
    seen = CheckpointEvidence((), 100, 100)
    assert not seen
    assert seen.before is None
    assert seen.loaded is None
    assert seen.count_reset() is None
    assert seen.count_went_on() is None
    assert seen.sound_around() is None
    assert seen.rotten_since() == seen.rotten_when_loaded() == ()
    assert seen.still() is None
    assert seen.rounded_away() is None


def test_a_checkpoint_without_a_step_is_on_no_axis() -> None:
    seen = CheckpointEvidence((Inspected(Checkpoint("a.pt", "torch zip")),), 100)
    assert not seen


def test_numbers_that_were_not_read_are_not_sound() -> None:
    unread = Inspected(saved(200).checkpoint, unread="too large")
    assert CheckpointEvidence((saved(100), unread), 150).sound_around() is None
    damaged = Inspected(Checkpoint("b.pt", "torch zip", 200, damage=(Damage("b.pt", "cut off", "all"),)), {})
    assert CheckpointEvidence((saved(100), damaged), 150).sound_around() is False


def test_a_rotten_number_that_was_there_before_is_not_news() -> None:
    seen = CheckpointEvidence((saved(100, fault=rotten()), saved(200, fault=rotten())), 150)
    assert seen.rotten_since() == ()


def test_a_rotten_number_since_the_last_checkpoint() -> None:
    after = saved(200, fault=rotten(), change=change(jump=True), since=100)
    (fact,) = CheckpointEvidence((saved(100), after, saved(300)), 150).rotten_since()
    assert fact.step == 200
    assert "it was 0.02 at step 100" in fact.text
    assert fact.source.startswith("run/200.pt#")


def test_a_jump_within_the_usual_range_of_the_tensor_counts_too() -> None:
    (fact,) = CheckpointEvidence((saved(100), saved(200, change=change(jump=True), since=100)), 150).rotten_since()
    assert "went from 0.02 at step 100 to -3000 at step 200" in fact.text


def test_the_checkpoint_that_was_loaded() -> None:
    found = (saved(100), saved(200, fault=rotten()))
    assert len(CheckpointEvidence(found, 200, 200).rotten_when_loaded()) == 1
    assert len(CheckpointEvidence(found, 201, 201).rotten_when_loaded()) == 1
    assert CheckpointEvidence(found, 250, 250).rotten_when_loaded() == ()
    assert CheckpointEvidence(found, 250, None).rotten_when_loaded() == ()
    assert CheckpointEvidence(found, 250).last_good is found[0]
    assert CheckpointEvidence(found, 250).first_bad is found[1]


def test_a_count_that_began_again() -> None:
    reset = CheckpointEvidence((saved(300, count=300), saved(400, count=400), saved(500, count=100)), 400, 400).count_reset()
    assert reset is not None
    assert (reset.began, reset.count) == (400, 100)
    assert reset.before is not None
    assert reset.before.step == 400


def test_a_count_that_began_again_with_only_the_later_checkpoint() -> None:
    reset = CheckpointEvidence((saved(500, count=100),), 400, 400).count_reset()
    assert reset is not None
    assert reset.before is None
    assert CheckpointEvidence((saved(500, count=100),), 400, 250).count_reset() is None


def test_skipped_and_accumulated_steps_are_no_reset() -> None:
    assert CheckpointEvidence((saved(400, count=380), saved(500, count=475)), 400, 400).count_reset() is None
    assert CheckpointEvidence((saved(400, count=100), saved(500, count=125)), 400, 400).count_reset() is None


def test_a_count_that_went_on() -> None:
    fact = CheckpointEvidence((saved(400, count=400), saved(500, count=500)), 410, 410).count_went_on()
    assert fact is not None
    assert "400 at step 400, 500 at step 500" in fact.text
    assert CheckpointEvidence((saved(400, count=400), saved(500, count=90)), 410, 410).count_went_on() is None


def test_a_checkpoint_without_the_optimizer() -> None:
    found = (saved(100), saved(200, groups=False))
    assert CheckpointEvidence(found, 200, 200).without_optimizer() is not None
    assert CheckpointEvidence(found, 100, 100).without_optimizer() is None
    assert CheckpointEvidence((saved(200, groups=False),), 200, 200).without_optimizer() is None


def pair(*, unchanged: int, since: int = 100, gradient: float = 1.0, dtype: str = "float32", more: tuple[TensorInfo, ...] = ()) -> Inspected:
    tensors = (TensorInfo("w", TensorKind.PARAM, (100,), dtype), *more)
    checkpoint = Checkpoint("run/200.pt", "torch zip", 200, param_groups=(ParamGroup(1e-3, params=("w",)),), tensors=tensors)
    stats = {("w", TensorKind.EXP_AVG): TensorStats(100, gradient, gradient, 0, 0)}
    return Inspected(checkpoint, stats, (), (change(unchanged=unchanged),), since)


def test_parameters_that_do_not_move() -> None:
    found = CheckpointEvidence((saved(100), pair(unchanged=100)), 150).still()
    assert found is not None
    assert found.names == ("w",)
    assert "all 1 parameters that have gradients are equal to the last bit at steps 100 and 200: w" in found.fact.text


def test_parameters_that_move_or_were_never_trained() -> None:
    moved = CheckpointEvidence((saved(100), pair(unchanged=99)), 150).still()
    assert moved is not None
    assert moved.names == ()
    assert CheckpointEvidence((saved(195), pair(unchanged=100, since=195)), 197).still() is None
    assert CheckpointEvidence((saved(100), pair(unchanged=100, gradient=0.0)), 150).still() is None


def test_updates_that_are_rounded_away() -> None:
    fact = CheckpointEvidence((saved(100), pair(unchanged=80, dtype="bfloat16")), 150).rounded_away()
    assert fact is not None
    assert fact.text.startswith("80% of the numbers of 1 half-precision tensors are unchanged between steps 100 and 200")


def test_updates_that_are_not_rounded_away() -> None:
    copy = (TensorInfo("w.master", TensorKind.OTHER, (100,), "float32"),)
    half = [pair(unchanged=u, dtype="bfloat16") for u in (40, 100)]
    for one in (pair(unchanged=80), *half, pair(unchanged=80, dtype="bfloat16", more=copy)):
        assert CheckpointEvidence((saved(100), one), 150).rounded_away() is None

"""Every framework's lines: torn at any byte, told from every other framework's, read value by value."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest
from console_reading import ConsoleParser, Read, claim, put, read_text
from console_samples import SAMPLES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.parsers import builtin
from forensics.parsers.console import axolotl, composer, deepspeed, fairseq, hf_print, lightning, nanogpt, olmo, pytorch_examples, torchtitan
from forensics.parsers.interface import NotMine

CONSOLE = [p for p in builtin.parsers().loaded if p.NAME.startswith("console.")]


def parser(name: str) -> ConsoleParser:
    return cast("ConsoleParser", builtin.parsers().named(name))


def values(got: Read) -> dict[str, list[str]]:
    return {name: [repr(v) for v in signal.values.tolist()] for name, signal in got.signals.items()}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_torn_log_invents_nothing(tmp_path: Path, name: str) -> None:
    whole = values(read_text(parser(name), tmp_path, SAMPLES[name]))
    for cut in range(0, len(SAMPLES[name]), 7):
        try:
            torn = values(read_text(parser(name), tmp_path, SAMPLES[name][:cut]))
        except NotMine:
            continue
        for signal, points in torn.items():
            assert signal in whole, f"{signal} out of {SAMPLES[name][:cut][-40:]!r}"
            if signal.startswith("notice/skipped"):
                continue  # how many were skipped before a record is known with the record
            rest = iter(whole[signal])
            if name == "console.lightning":
                rest = iter(point for point in whole[signal] for _ in range(2))
            assert all(point in rest for point in points[:-1]), f"{signal} {points} out of {SAMPLES[name][:cut][-40:]!r}"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_bytes_may_be_in_it(tmp_path: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(SAMPLES)))
    text = SAMPLES[name].encode()
    at = data.draw(st.integers(0, len(text)))
    noise = data.draw(st.binary(max_size=60))
    with suppress(NotMine):
        read_text(parser(name), tmp_path, text[:at] + noise + text[at + len(noise) :])


@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_is_told_from_the_others(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, SAMPLES[name])
    claims = sorted(((claim(cast("ConsoleParser", p), path), p.NAME) for p in CONSOLE), reverse=True)
    assert claims[0][1] == name
    assert claims[1][0] < claims[0][0]
    own = cast("ConsoleParser", builtin.parsers().named(name))
    for other, text in SAMPLES.items():
        if {name, other} != {"console.hf_print", "console.axolotl"} and other != name:
            assert claim(own, put(tmp_path, text)) <= deepspeed.SURE, other


@pytest.mark.parametrize("name", SAMPLES)
def test_tables_and_json_lines_are_not_taken(tmp_path: Path, name: str) -> None:
    assert claim(parser(name), put(tmp_path, "step,loss\n1,2.0\n2,1.9\n")) == 0
    assert claim(parser(name), put(tmp_path, '{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.9}\n')) == 0
    assert claim(parser(name), put(tmp_path, SAMPLES[name], "train.jsonl")) == 0
    assert claim(parser(name), put(tmp_path, SAMPLES[name], "README")) == 0


@pytest.mark.parametrize("name", SAMPLES)
def test_compressed_and_windows_texts(tmp_path: Path, name: str) -> None:
    import gzip

    plain = values(read_text(parser(name), tmp_path, SAMPLES[name]))
    path = put(tmp_path, gzip.compress(SAMPLES[name].encode()), "train.log.gz")
    assert claim(parser(name), path) > 0
    assert values(read_text(parser(name), tmp_path, path.read_bytes(), "train.log.gz")) == plain
    assert values(read_text(parser(name), tmp_path, SAMPLES[name].replace("\n", "\r\n"))) == plain
    wide = b"\xff\xfe" + SAMPLES[name].encode("utf-16-le")
    assert values(read_text(parser(name), tmp_path, wide)) == plain


def test_modules_know_their_names() -> None:
    for module in (axolotl, composer, deepspeed, fairseq, hf_print, lightning, nanogpt, olmo, pytorch_examples, torchtitan):
        assert isinstance(module, ModuleType)
        assert module.__name__.endswith(module.NAME)


def test_nanogpt(tmp_path: Path) -> None:
    got = read_text(nanogpt, tmp_path, SAMPLES["console.nanogpt"])
    assert got.points("loss") == [(0, 10.9885), (10, 10.3742), (20, 9.7410), (250, 6.1234)]
    assert got.points("val loss") == [(0, 10.9898), (250, 6.1412)]
    assert got.points("mfu (%)")[0] == (10, 25.10)  # -100 is no measurement


def test_torchtitan(tmp_path: Path) -> None:
    got = read_text(torchtitan, tmp_path, SAMPLES["console.torchtitan"])
    assert got.points("loss") == [(1, 12.2410), (40, 7.7499), (50, 7.1839)]
    assert got.points("tps")[1] == (40, 11527)
    assert got.points("memory (%)")[0] == (1, 65.53)
    assert got.points("validation loss") == [(50, 7.2011)]
    times = got.signals["loss"].wall_times
    assert times is not None
    assert times[1] - times[0] == 80.0


def test_torchtitan_in_colour_from_every_process(tmp_path: Path) -> None:
    line = SAMPLES["console.torchtitan"].splitlines()[2].replace("[rank0]:", "")
    coloured = line.replace("step:", "\x1b[31mstep:").replace("  loss:", "  \x1b[32mloss:") + "\x1b[39m"
    got = read_text(torchtitan, tmp_path, f"{coloured}\n" * 8)
    assert got.points("loss") == [(40, 7.7499)]
    assert got.notes["repeated_points"] == 7 * len(got.signals)


def test_olmo(tmp_path: Path) -> None:
    got = read_text(olmo, tmp_path, SAMPLES["console.olmo"])
    assert got.points("train/CrossEntropyLoss") == [(1, 11.25), (2, 10.73)]
    assert got.points("throughput/total_tokens") == [(1, 4194304), (2, 8388608)]
    assert got.points("eval/books-validation/CrossEntropyLoss") == [(2, 10.81)]
    assert "seed" not in got.signals  # stands before the first step
    assert got.notes["max_steps"] == 739328


def test_composer(tmp_path: Path) -> None:
    got = read_text(composer, tmp_path, SAMPLES["console.composer"])
    assert got.points("LanguageCrossEntropy") == [(1, 10.9736), (2, 10.9724)]
    assert math.isnan(got.points("loss/train/total")[1][1])
    assert got.points("metrics/eval/LanguageCrossEntropy") == [(2, 10.9001)]


def test_composer_counts_batches_within_epochs(tmp_path: Path) -> None:
    old = "".join(f"[epoch={e}][batch={b}/5]: loss/train/total: {10 - e - b / 10:.4f}\n" for e in (0, 1) for b in range(5))
    assert read_text(composer, tmp_path, old).signals["loss/train/total"].steps.tolist() == list(range(10))
    new = "".join(f"0: [epoch={e}][batch={b}/5]:\n0: \t Train loss/train/total: {10 - e - b / 10:.4f}\n" for e in (1, 2) for b in range(1, 6))
    assert read_text(composer, tmp_path, new).signals["loss/train/total"].steps.tolist() == list(range(1, 11))


def test_fairseq(tmp_path: Path) -> None:
    got = read_text(fairseq, tmp_path, SAMPLES["console.fairseq"])
    assert got.points("loss") == [(1, 16.475), (2, 16.446), (3, 25.22)]
    assert got.points("valid_loss") == [(3, 8.751)]
    assert got.points("notice/loss scale") == [(3, 2.0), (3, 1.0)]
    assert got.points("notice/skipped") == [(1, 0), (2, 0), (3, 2)]


def test_fairseq_simple(tmp_path: Path) -> None:
    text = (
        "2025-10-15 11:33:32 | INFO | train_inner | epoch 001:    100 / 487 loss=4.655, nll_loss=4.1, ppl=17.2, num_updates=100, lr=5e-05, gnorm=1.7\n"
        "2025-10-15 11:33:36 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 2.001 | ppl 4 | num_updates 487 | best_loss 2.0\n"
        "2025-10-15 11:33:44 | INFO | train | epoch 001 | loss 3.663 | ppl 12.67 | num_updates 487 | gnorm 1.2\n"
    )
    got = read_text(fairseq, tmp_path, text)
    assert got.points("loss") == [(100, 4.655)]
    assert got.points("valid_loss") == [(487, 2.001)]
    assert got.points("train_loss") == [(487, 3.663)]


def test_hugging_face_steps_come_from_the_bar(tmp_path: Path) -> None:
    got = read_text(hf_print, tmp_path, SAMPLES["console.hf_print"])
    assert got.points("loss") == [(10, 0.6916), (20, 0.5916), (30, 0.4916)]
    assert math.isnan(got.points("grad_norm")[1][1])
    assert got.points("eval_loss") == [(20, 0.5063)]
    assert "train_loss" not in got.signals  # the mean over the run is no curve
    assert got.notes["step_axis"] == "step of the progress bar"


def test_hugging_face_without_a_bar(tmp_path: Path) -> None:
    entry = "{{'loss': '{}', 'grad_norm': '1.2', 'learning_rate': '5e-05', 'epoch': '{}'}}\n"
    text = "".join(entry.format(3 - i / 10, i / 100) for i in range(1, 6)) + "".join(entry.format(3 - i / 10, i / 100) for i in range(4, 8))
    got = read_text(hf_print, tmp_path, text)
    assert got.signals["loss"].steps.tolist() == [1, 2, 3, 4, 5, 4, 5, 6, 7]
    assert "counted" in str(got.notes["step_axis"])


def test_hugging_face_with_named_steps(tmp_path: Path) -> None:
    text = "".join(f"{{'loss': {3 - i / 10}, 'learning_rate': 5e-05, 'epoch': 0.6, 'global_step': {i * 5}}}\n" for i in range(1, 4))
    got = read_text(hf_print, tmp_path, text + "{'eval_loss': 2.5, 'epoch': 0.6}\n")
    assert got.signals["loss"].steps.tolist() == [5, 10, 15]
    assert got.points("eval_loss") == [(15, 2.5)]


def test_lightning(tmp_path: Path) -> None:
    got = read_text(lightning, tmp_path, SAMPLES["console.lightning"])
    assert got.points("train_loss") == [(6, 1.8), (100, 1.59), (150, 1.2), (200, 1.1)]
    assert got.points("val_loss") == [(100, 1.42), (200, 1.22)]
    assert got.lines("train_loss") == [2, 2, 3, 4]
    assert "v_num" not in got.signals


def test_nemo_bars_name_their_step(tmp_path: Path) -> None:
    bar = "\rEpoch 0: :   0%|          | {}/300000 [02:16<2281:40:05, v_num=0, reduced_train_loss=11.{}0, global_step={}.000, "
    bar += "train_step_timing in s=10.40]"
    text = "".join(bar.format(i, i, i - 1) for i in range(1, 4))
    got = read_text(lightning, tmp_path, text + "\n")
    assert got.points("reduced_train_loss") == [(0, 11.1), (1, 11.2), (2, 11.3)]
    assert "train_step_timing in s" in got.signals


def test_rich_bars(tmp_path: Path) -> None:
    text = "".join(f"Epoch {e}/9 ━━━━ {b}/100 0:00:05 • 0:00:10 14.19it/s v_num: 0.000 train_loss: 1.{e}{b}\n" for e in (0, 1) for b in (50, 99))
    assert read_text(lightning, tmp_path, text).signals["train_loss"].steps.tolist() == [50, 99, 150, 199]


def test_imagenet(tmp_path: Path) -> None:
    got = read_text(pytorch_examples, tmp_path, SAMPLES["console.pytorch_examples"])
    assert got.points("Loss") == [(1, 6.9481), (11, 6.9023), (5006, 4.9481)]
    assert got.points("Loss (avg)")[1] == (11, 6.9423)
    assert got.points("val Acc@1") == [(11, 12.13)]


def test_mnist(tmp_path: Path) -> None:
    text = "".join(f"Train Epoch: {e} [{i * 640}/60000 ({i}%)]\tLoss: {3 - e - i / 10:.6f}\n" for e in (1, 2) for i in range(3))
    text += "\nTest set: Average loss: 0.0513, Accuracy: 9834/10000 (98%)\n\n"
    got = read_text(pytorch_examples, tmp_path, text)
    assert got.signals["Loss"].steps.tolist() == [0, 640, 1280, 60000, 60640, 61280]
    assert got.points("test average loss") == [(61280, 0.0513)]
    assert got.points("test accuracy (%)") == [(61280, 98)]
    assert "samples" in str(got.notes["step_axis"])


def test_word_language_model(tmp_path: Path) -> None:
    text = "".join(f"| epoch   {e} | {b:5d}/ 2983 batches | lr 20.00 | ms/batch 40.91 | loss   nan | ppl      nan\n" for e in (1, 2) for b in (200, 400))
    text += "-" * 89 + "\n| end of epoch   2 | time: 50.98s | valid loss  5.46 | valid ppl   236.02\n" + "-" * 89 + "\n"
    got = read_text(pytorch_examples, tmp_path, text)
    assert got.signals["loss"].steps.tolist() == [200, 400, 3183, 3383]
    assert all(math.isnan(v) for _, v in got.points("loss"))
    assert got.points("valid loss") == [(3383, 5.46)]


def test_cifar(tmp_path: Path) -> None:
    text = "".join(f"[{e}, {b:5d}] loss: {2.5 - e / 10:.3f}\n" for e in (1, 2) for b in (2000, 4000))
    assert read_text(pytorch_examples, tmp_path, text).signals["loss"].steps.tolist() == [2000, 4000, 2000, 4000]


def test_deepspeed(tmp_path: Path) -> None:
    got = read_text(deepspeed, tmp_path, SAMPLES["console.deepspeed"])
    assert got.points("skipped") == [(10, 1), (20, 1)]
    assert got.points("lr") == [(10, 0.0001), (20, 0.0002)]
    assert got.points("lr_group1") == [(10, 0.001), (20, 0.002)]
    assert got.points("notice/loss scale") == [(10, 32768.0), (21, 65536.0)]
    assert got.points("notice/skipped") == [(10, 1), (20, 0)]


@pytest.mark.parametrize(
    "line",
    [
        b" " * 50_000,
        b"1" * 50_000,
        b"a" * 50_000,
        b"step 1 " + b"a" * 3_900,
        b"step 1 " + b"1,222" * 800,
        b"step" + b" " * 50_000,
        b"step=1, " * 5_000,
        b"iteration 1/ 2 | " + b"a" * 50_000,
        b"iteration 1/ 2 | " + b" " * 50_000,
        b"step 1/2 | loss 1 " + b"1" * 50_000,
        b"step: 1  loss: " + b"a.b" * 15_000,
        b"{'" * 25_000,
        b"Epoch 0/1 " + b"1" * 50_000,
        b"Epoch 0: |" + b", a" * 15_000,
        b"Epoch: [0][1/2] " + b"a " * 25_000,
        b"| epoch 1 | 1/2 batches | " + b"| a " * 12_000,
        b"train_inner | epoch 1" + b" a" * 25_000,
        b"\x1b[" * 25_000,
    ],
)
def test_no_text_takes_for_ever(tmp_path: Path, line: bytes) -> None:
    path = put(tmp_path, line + b"\n" + line)
    for each in CONSOLE:
        one = cast("ConsoleParser", each)
        claim(one, path)
        with suppress(NotMine):
            read_text(one, tmp_path, path.read_bytes())

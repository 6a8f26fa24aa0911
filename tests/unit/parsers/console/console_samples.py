"""A few lines of every framework, as its own format strings print them."""
# ruff: noqa: E501 - their lines are long

from __future__ import annotations

_NANOGPT = """\
tokens per iteration will be: 491,520
number of parameters: 123.59M
step 0: train loss 10.9896, val loss 10.9898
iter 0: loss 10.9885, time 41264.92ms, mfu -100.00%
iter 10: loss 10.3742, time 2703.44ms, mfu 25.10%
iter 20: loss 9.7410, time 2704.01ms, mfu 25.11%
step 250: train loss 6.1034, val loss 6.1412
saving checkpoint to out
iter 250: loss 6.1234, time 41264.92ms, mfu 24.11%
"""

_TORCHTITAN = """\
[rank0]:[titan] 2025-10-30 20:34:10,463 - root - INFO - Training starts at step 1
[rank0]:[titan] 2025-10-30 20:34:15,463 - root - INFO - step:  1  loss: 12.2410  grad_norm:  3.1042  memory: 51.90GiB(65.53%)  tps: 1,021  tflops: 18.48  mfu: 1.87%
[rank0]:[titan] 2025-10-30 20:35:35,463 - root - INFO - step: 40  loss:  7.7499  grad_norm:  1.2642  memory: 52.53GiB(66.33%)  tps: 11,527  tflops: 208.71  mfu: 21.10%
[rank0]:[titan] 2025-10-30 20:35:36,463 - root - INFO - [GC] Performing periodic GC collection took 0.09 seconds
[rank0]:[titan] 2025-10-30 20:35:49,953 - root - INFO - step: 50  loss:  7.1839  grad_norm:  0.9971  memory: 52.53GiB(66.33%)  tps: 11,481  tflops: 207.87  mfu: 21.02%
[rank0]:[titan] 2025-10-30 20:35:59,953 - root - INFO - validate step: 50  loss:  7.2011  memory: 52.53GiB(66.33%)  tps: 21,481
"""

_OLMO = """\
[2024-04-17 09:42:20] INFO     [olmo.train:210, rank=0] Loading model...
    seed=3
[2024-04-17 09:42:26] INFO     [olmo.train:816, rank=0] [step=1/739328]
    train/CrossEntropyLoss=11.25
    train/Perplexity=76,631
    throughput/total_tokens=4,194,304
    System/Peak GPU Memory (MB)=42,133
[2024-04-17 09:42:38] INFO     [olmo.train:816, rank=0] [step=2/739328,epoch=0]
    train/CrossEntropyLoss=10.73
    train/Perplexity=45,773
    throughput/total_tokens=8,388,608
    throughput/device/tokens_per_second=45,538
    System/Peak GPU Memory (MB)=43,309
[2024-04-17 09:43:38] INFO     [olmo.eval:16, rank=0] [eval_step=3/16]
[2024-04-17 09:43:40] INFO     [olmo.train:830, rank=0] books-validation
    eval/books-validation/CrossEntropyLoss=10.81
"""

_COMPOSER = """\
[batch=1/100]:
\t Train time/batch: 0
\t Train LanguageCrossEntropy: 10.9736
\t Train loss/train/total: 10.9736
\t Train lr-DecoupledAdamW/group0: 0.0000
\t Train expert_selection/layer: <wandb.sdk.data_types.image.Image object at 0x711e4ce7f800>
[batch=2/100]:
\t Train time/batch: 1
\t Train LanguageCrossEntropy: 10.9724
\t Train loss/train/total: nan
\t Train lr-DecoupledAdamW/group0: 0.0001
[Eval batch=1/4] Eval on eval data
\t Eval metrics/eval/LanguageCrossEntropy: 10.9001
"""

_FAIRSEQ = """\
2021-03-08 12:29:51 | INFO | fairseq_cli.train | training on 1 devices (GPUs/TPUs)
2021-03-08 12:31:36 | INFO | train_inner | {"epoch": 1, "update": 0.0, "loss": "16.475", "ppl": "91120.8", "wps": "0", "num_updates": "1", "lr": "2e-05", "gnorm": "20.751", "loss_scale": "4", "train_wall": "99", "wall": "105"}
2021-03-08 12:32:33 | INFO | train_inner | {"epoch": 1, "update": 0.0, "loss": "16.446", "ppl": "89281.6", "wps": "288.7", "num_updates": "2", "lr": "4e-05", "gnorm": "19.777", "loss_scale": "4", "train_wall": "57", "wall": "161"}
2021-03-08 12:33:12 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 2.0
2021-03-08 12:33:51 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 1.0
2021-03-08 12:34:45 | INFO | train_inner | {"epoch": 1, "update": 0.001, "loss": "25.22", "ppl": "3.9e+07", "wps": "124.1", "num_updates": "3", "lr": "6e-05", "gnorm": "131.2", "loss_scale": "1", "train_wall": "132", "wall": "293"}
2021-01-12 14:37:14 | INFO | valid | {"epoch": 1, "valid_loss": "8.751", "valid_nll_loss": "8.101", "valid_ppl": "274.56", "valid_num_updates": "3", "valid_best_loss": "8.751"}
"""

_HF = """\
  0%|          | 0/6315 [00:00<?, ?it/s]\r  0%|          | 9/6315 [00:20<3:55:12,  2.24s/it]\r
{'loss': 0.6916, 'grad_norm': 1.2597789764404297, 'learning_rate': 4.99e-05, 'epoch': 0.0}
\r  0%|          | 10/6315 [00:22<3:55:12,  2.24s/it]\r  0%|          | 19/6315 [00:44<3:55:12,  2.24s/it]
{'loss': 0.5916, 'grad_norm': nan, 'learning_rate': 4.98e-05, 'epoch': 0.01}
\r  0%|          | 20/6315 [00:44<3:55:12,  2.24s/it]
\r  0%|          | 0/28 [00:00<?, ?it/s]\r 50%|#####     | 14/28 [00:04<00:04, 3.10it/s]
{'eval_loss': 0.5063, 'eval_accuracy': 0.71, 'eval_runtime': 22.7, 'eval_steps_per_second': 1.2, 'epoch': 0.01}
\r  0%|          | 29/6315 [01:10<3:55:12,  2.24s/it]
{'loss': 0.4916, 'grad_norm': 1.2, 'learning_rate': 4.97e-05, 'epoch': 0.01}
\r  0%|          | 30/6315 [01:12<3:55:12,  2.24s/it]
{'train_runtime': 17598.0878, 'train_samples_per_second': 11.4, 'train_steps_per_second': 0.359, 'train_loss': 0.31, 'epoch': 3.0}
"""

_LIGHTNING = """\
11.2 M    Trainable params
Epoch 0:   0%|          | 0/100 [00:00<?, ?it/s]\rEpoch 0:   6%|#         | 6/100 [00:06<01:44, 14.19it/s, v_num=0, train_loss=1.800, train_acc=0.281]\
\rEpoch 0: 100%|##########| 100/100 [01:57<00:00, 13.25it/s, v_num=0, train_loss=1.590, train_acc=0.688]\
\rValidation DataLoader 0:   3%|3         | 1/38 [00:00<00:00, 40.91it/s]\
\rEpoch 0: 100%|##########| 100/100 [02:00<00:00, 13.25it/s, v_num=0, train_loss=1.590, train_acc=0.688, val_loss=1.420]
Epoch 1:  50%|#####     | 50/100 [02:30<01:44, 14.19it/s, v_num=0, train_loss=1.200, train_acc=0.750, val_loss=1.420]
Epoch 1: 100%|##########| 100/100 [03:00<00:00, 13.25it/s, v_num=0, train_loss=1.100, train_acc=0.781, val_loss=1.220]
"""

_IMAGENET = """\
=> creating model 'resnet18'
Epoch: [0][   1/5005]\tTime  4.512 ( 4.512)\tData  2.1 ( 2.1)\tLoss 6.9481e+00 (6.9481e+00)\tAcc@1   0.00 (  0.00)
Epoch: [0][  11/5005]\tTime  0.131 ( 0.512)\tData  0.1 ( 0.2)\tLoss 6.9023e+00 (6.9423e+00)\tAcc@1   0.39 (  0.10)
Test: [  1/196]\tTime  3.1 ( 3.1)\tLoss 5.1e+00 (5.1e+00)\tAcc@1  10.00 ( 10.00)
 *   Acc@1 12.130 Acc@5 29.862
Epoch: [1][   1/5005]\tTime  4.512 ( 4.512)\tData  2.1 ( 2.1)\tLoss 4.9481e+00 (4.9481e+00)\tAcc@1  12.00 ( 12.00)
"""

_DEEPSPEED = """\
[2023-07-24 13:21:30,102] [INFO] [config.py:957:print] DeepSpeedEngine configuration:
[2023-07-24 13:21:32,378] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768
[2023-07-24 13:21:33,512] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=1, lr=[0.0001, 0.001], mom=[(0.9, 0.999), (0.9, 0.999)]
[2023-07-24 13:21:33,513] [INFO] [timer.py:215:stop] epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=19.1, CurrSamplesPerSec=20.2, MemAllocated=1.1GB, MaxMemAllocated=2.0GB
[2023-07-24 13:21:40,512] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=1, lr=[0.0002, 0.002], mom=[(0.9, 0.999), (0.9, 0.999)]
[2023-07-24 13:21:41,257] [INFO] [fused_optimizer.py:352:_update_scale] No Grad overflow for 500 iterations
[2023-07-24 13:21:41,257] [INFO] [fused_optimizer.py:353:_update_scale] Increasing dynamic loss scale from 32768.0 to 65536.0
"""

_AXOLOTL = "[2024-01-30 22:19:31,104] [INFO] [axolotl.train.train:86] [PID:123] [RANK:0] Starting trainer...\n" + _HF

SAMPLES = {
    "console.nanogpt": _NANOGPT,
    "console.torchtitan": _TORCHTITAN,
    "console.olmo": _OLMO,
    "console.composer": _COMPOSER,
    "console.fairseq": _FAIRSEQ,
    "console.hf_print": _HF,
    "console.axolotl": _AXOLOTL,
    "console.lightning": _LIGHTNING,
    "console.pytorch_examples": _IMAGENET,
    "console.deepspeed": _DEEPSPEED,
}

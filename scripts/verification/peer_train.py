"""A training step of GPT-2 in kbench and in PyTorch.

In each round PyTorch runs first, then kbench, then torch.compile. Of a side's medians the better one counts, and how far
they lie apart is shown. Two things are timed:

  gradients   forward, loss and backward     (kbench: --direction train --optimizer none)
  train       the same and AdamW             (kbench: --direction train)

The work is the same: the loss is the mean over all tokens that have a next one, there is no dropout and no clipping,
bf16 is of weights, gradients and optimizer state alike (model.to(bfloat16); kbench's --master none), and AdamW is
PyTorch's fused one. In fp32 torch's tf32 is off, in tf32 on. fp16 is not offered: without fp32 weights PyTorch's
GradScaler refuses to train in it. PyTorch runs eagerly, timed with CUDA events, steps enqueued without waiting; on a
CPU with a thread bound to each physical core. It warms up for 1 s, as kbench does. kbench's figure is its headline
latency: a CUDA graph, or the CPU's steps.

torch.compile needs a C compiler and minutes: where it fails or is not done within --compile-limit, "did not run" and
the reason stand in its place. Where no case of it ran, the next rounds do without it.

It writes train-peer.json and train-peer.md. Needs torch and transformers.
"""

from typing import Any

from verification import peer, peer_gpt2

OPTIMIZERS = {"gradients": "none", "train": "adamw"}


class Workload(peer_gpt2.Workload):
    stem = "train-peer"
    schema = "kbench.train-peer/2"
    cases = {"cuda": "bf16:4,bf16:16,tf32:4,fp32:4", "cpu": "fp32:1,fp32:4,bf16:1,bf16:4"}
    precisions = {"cuda": ["bf16", "tf32", "fp32"], "cpu": ["bf16", "fp32"]}
    left = 3

    program = "torch_steps"
    work = "training"
    parts = tuple(OPTIMIZERS)
    explained = "gradients: forward, loss and backward; train: with AdamW."
    models = {"cuda": "gpt2-large", "cpu": "gpt2"}
    ways = {"cuda": ["eager"], "cpu": ["eager"]}
    least_seq = 2  # a token and its next one

    def of_kbench(self, number: int) -> dict[str, Any]:
        both: dict[str, Any] = {"commands": [], "figures": [], "seconds": 0.0}
        for what, optimizer in OPTIMIZERS.items():
            command = [*self.command(), "--direction", "train", "--optimizer", optimizer]
            verify = number == 1 and what == "train"  # every step that the other runs have
            run = self.run_points(f"kbench-{number}-{what}", command, verify)
            both |= {"started_at": both.get("started_at", run["started_at"]), "environment": run["environment"]}
            both["commands"].append(run["command"])
            both["seconds"] += run["seconds"]
            both["figures"] += [{"what": what} | figure for figure in run["figures"]]
        return both

    def rates(self, document: dict[str, Any]) -> list[peer.Column]:
        def tokens(row: dict[str, Any]) -> str:
            timed = row["what"] == "train" and row["kbench_ms"]
            return f"{row['batch'] * document['seq'] / row['kbench_ms'] * 1e3:.0f}" if timed else ""

        return [("kbench tokens/s", tokens), peer.DRIFT]

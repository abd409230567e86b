"""A training step of GPT-2 in kbench and in PyTorch.

The order is PyTorch, kbench, PyTorch, kbench, then torch.compile. Of two medians the better one counts on both sides,
and how far they lie apart is shown. Two things are timed:

  gradients   forward, loss and backward     (kbench: --direction train --optimizer none)
  train       the same and AdamW             (kbench: --direction train)

The work is the same: the loss is the mean over all tokens that have a next one, there is no dropout and no clipping,
bf16 is of weights, gradients and optimizer state alike (model.to(bfloat16); kbench's --master none), and AdamW is
PyTorch's fused one. In fp32 torch's tf32 is off, in tf32 on. fp16 is not offered: without fp32 weights PyTorch's
GradScaler refuses to train in it. PyTorch runs eagerly, timed with CUDA events, steps enqueued without waiting; on a
CPU with a thread bound to each physical core. It warms up for 1 s, as kbench does. kbench's figure is its headline
latency: a CUDA graph, or the CPU's steps.

torch.compile needs a C compiler and minutes: where it fails or is not done within --compile-limit, "did not run" and
the reason stand in its place.

It writes train-peer.json and train-peer.md. Needs torch and transformers.
"""

import argparse
from collections.abc import Iterator
from typing import Any

from verification import peer
from verification.process import BAD_USAGE, Stop

OPTIMIZERS = {"gradients": "none", "train": "adamw"}
MODELS = {"cuda": "gpt2-large", "cpu": "gpt2"}


class Workload(peer.Workload):
    stem = "train-peer"
    schema = "kbench.train-peer/1"
    libraries = ("torch", "transformers")
    cases = {"cuda": "bf16:4,bf16:16,tf32:4,fp32:4", "cpu": "fp32:1,fp32:4,bf16:1,bf16:4"}
    precisions = {"cuda": ["bf16", "tf32", "fp32"], "cpu": ["bf16", "fp32"]}
    left = 3
    names = {"kbench": "kbench", "eager": "torch eager", "compile": "torch.compile"}

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--model", help="[gpt2-large; on a CPU gpt2]")
        parser.add_argument("--seq", type=int, default=1024, help="[%(default)s]")
        parser.add_argument("--no-compile", action="store_true", help="no torch.compile; a CPU has none")
        parser.add_argument("--compile-limit", type=float, default=300, help="seconds, for all cases [%(default)s]")
        super().add_options(parser)

    def check(self) -> None:
        super().check()
        asked = self.asked
        asked.model = asked.model or MODELS[asked.backend]
        longest = peer.gpt2_config(asked.model)["n_positions"]
        if not 2 <= asked.seq <= longest:
            raise Stop(BAD_USAGE, f"--seq {asked.seq}: must be in 2 to {longest}")

    def settings(self) -> dict[str, Any]:
        same = {key: getattr(self.asked, key) for key in ("model", "seq", "backend", "rounds")}
        return same | {"eager": [], "kbench": [], "compile": []}

    def run(self, document: dict[str, Any]) -> Iterator[None]:
        asked = self.asked
        request = {"model": asked.model, "seq": asked.seq, "cases": asked.cases}
        for number in range(1, asked.rounds + 1):
            document["eager"].append(self.run_torch("torch_steps", **request, way="eager"))
            document["kbench"].append(self.both_of_kbench(number))
            yield
        if asked.backend == "cuda" and not asked.no_compile:
            document["compile"].append(self.run_torch("torch_steps", asked.compile_limit, **request, way="compile"))
            yield

    def both_of_kbench(self, number: int) -> dict[str, Any]:
        both: dict[str, Any] = {"commands": [], "figures": [], "seconds": 0.0}
        for what, optimizer in OPTIMIZERS.items():
            command = ["--model", self.asked.model, "--seq", str(self.asked.seq), *self.case_options()]
            command += ["--direction", "train", "--optimizer", optimizer, "--latency-only"]
            command += ["--time-budget", f"{self.asked.seconds:g}"]
            verify = number == 1 and what == "train"  # every step that the other runs have
            run = self.run_points(f"kbench-{number}-{what}", command, verify)
            both |= {"started_at": both.get("started_at", run["started_at"]), "environment": run["environment"]}
            both["commands"].append(run["command"])
            both["seconds"] += run["seconds"]
            both["figures"] += [{"what": what} | figure for figure in run["figures"]]
        return both

    def rows(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        sides = {name: (document[name], {}) for name in self.names}
        return [
            peer.row_of({"precision": precision, "batch": batch, "what": what}, sides)
            for precision, batch in self.asked.cases
            for what in OPTIMIZERS
        ]

    def title(self, document: dict[str, Any]) -> str:
        environment = document["kbench"][-1]["environment"]
        return f"{document['model']}, seq {document['seq']}, training, on {peer.device(environment)}"

    def about(self, document: dict[str, Any]) -> str:
        what = "gradients: forward, loss and backward; train: with AdamW."
        return self.about_rounds(document, "eager", what)

    def columns(self, document: dict[str, Any]) -> list[peer.Column]:
        def tokens(row: dict[str, Any]) -> str:
            timed = row["what"] == "train" and row["kbench_ms"]
            return f"{row['batch'] * document['seq'] / row['kbench_ms'] * 1e3:.0f}" if timed else ""

        names = {side: name for side, name in self.names.items() if document[side]}
        what = ("", lambda row: row["what"])
        rate = ("kbench tokens/s", tokens)
        return [*peer.texts("precision", "batch"), what, *peer.times(names), peer.RATIO, rate, peer.DRIFT]

    def failed(self, document: dict[str, Any]) -> bool:
        return any("eager" in row["missing"] for row in document["rows"])

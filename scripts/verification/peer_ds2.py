"""Deep Speech 2 in kbench and in PyTorch: its forward, or a training step.

The order is PyTorch, kbench, PyTorch, kbench. Of two medians the better one counts on both sides, and how far they lie
apart is shown. PyTorch runs the model of deepspeech.pytorch, forward in inference mode, eagerly, with cudnn.benchmark,
weights and spectrogram in the precision's type (model.to(bfloat16), also on a CPU). In fp32 tf32 is off for products and
for cuDNN, in tf32 on for both. All utterances are full, and their lengths lie on the device already. It runs in two
ways, of which the better one counts: packed as the model does it, and plain without packing, for which cuDNN and oneDNN
have faster kernels.

--direction train times a training step instead: forward, CTC and backward, without an optimizer, and cuDNN's CTC where
PyTorch takes it.

PyTorch is timed with CUDA events, calls enqueued without waiting; on a CPU with a thread bound to each physical
core. It warms up for 1 s, as kbench does. kbench's figure is its headline latency: a CUDA graph, or the CPU's steps.

It writes ds2-peer.json and ds2-peer.md. Needs torch.
"""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from verification import peer
from verification.deepspeech2 import CONFIG
from verification.pytorch import TYPES

WAYS = ("packed", "plain")
WHAT = {"fwd": "forward", "train": "forward, CTC and backward"}


class Workload(peer.Workload):
    stem = "ds2-peer"
    schema = "kbench.ds2-peer/1"
    counts = ("frames", "hidden", "layers", "rounds")
    cases = {"cuda": "fp16:32,fp32:8,tf32:32,fp64:8", "cpu": "fp32:1,fp32:8,bf16:1,bf16:8"}
    precisions = {"cuda": list(TYPES), "cpu": [precision for precision in TYPES if precision != "tf32"]}
    left = 2
    names = {"kbench": "kbench", "packed": "torch packed", "plain": "torch plain"}

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--frames", type=int, default=1000, help="[%(default)s]")
        parser.add_argument("--direction", choices=list(WHAT), default="fwd", help="[%(default)s]")
        parser.add_argument("--cell", choices=["lstm", "gru", "rnn"], default="lstm", help="[%(default)s]")
        parser.add_argument("--hidden", type=int, default=CONFIG["hidden_size"], help="[%(default)s]")
        parser.add_argument("--layers", type=int, default=CONFIG["hidden_layers"], help="[%(default)s]")
        parser.add_argument("--steps", action="store_true", help="kbench times its steps too, outside of the samples")
        super().add_options(parser)

    def settings(self) -> dict[str, Any]:
        asked = self.asked
        sizes = {"rnn_type": asked.cell, "hidden_size": asked.hidden, "hidden_layers": asked.layers}
        same = {key: getattr(asked, key) for key in ("frames", "direction", "backend", "rounds")}
        return {"config": CONFIG | sizes} | same | {"torch": [], "kbench": []}

    def run(self, document: dict[str, Any]) -> Iterator[None]:
        asked, config = self.asked, self.asked.out / "config.json"
        config.write_text(json.dumps(document["config"]), encoding="utf-8")
        command = ["--config", str(config), "--frames", str(asked.frames), *self.case_options()]
        if asked.direction == "train":
            command += ["--direction", "train", "--optimizer", "none"]
        command += ["--time-budget", f"{asked.seconds:g}"]
        command += ["--counters", "none", "--ceilings", "none"] if asked.steps else ["--latency-only"]
        request = {key: document[key] for key in ("config", "frames", "direction")} | {"cases": asked.cases}
        for number in range(1, asked.rounds + 1):
            document["torch"].append(self.run_torch("torch_speech", **request))
            document["kbench"].append(self.run_points(f"kbench-{number}", command, verify=number == 1))
            yield

    def rows(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        sides = {"kbench": (document["kbench"], {})} | {way: (document["torch"], {"way": way}) for way in WAYS}
        return [peer.row_of({"precision": precision, "batch": batch}, sides) for precision, batch in self.asked.cases]

    def title(self, document: dict[str, Any]) -> str:
        config, environment = document["config"], document["kbench"][-1]["environment"]
        layers = f"{config['hidden_layers']} layers of {config['rnn_type']} {config['hidden_size']}"
        what = f"{document['frames']} frames, {WHAT[document['direction']]}"
        return f"deepspeech2, {layers}, {what}, on {peer.device(environment)}"

    def about(self, document: dict[str, Any]) -> str:
        what = "packed: recurrent layers as deepspeech.pytorch runs them; plain: without packing."
        return self.about_rounds(document, "torch", what)

    def columns(self, document: dict[str, Any]) -> list[peer.Column]:
        return [*peer.texts("precision", "batch"), *peer.times(self.names), peer.RATIO, peer.DRIFT]

    def failed(self, document: dict[str, Any]) -> bool:
        return any(all(way in row["missing"] for way in WAYS) for row in document["rows"])

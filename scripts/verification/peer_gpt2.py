"""GPT-2's forward in kbench and in PyTorch.

Three runs in this order: PyTorch, kbench, PyTorch again. Of PyTorch's two medians the better one counts, so a machine
that drifts speaks for PyTorch, and how far they lie apart is shown. PyTorch runs Hugging Face's GPT2LMHeadModel with
scaled_dot_product_attention: on a GPU eagerly, as a CUDA graph and, with --compile, through torch.compile's
reduce-overhead mode (first run only: compiling takes minutes), timed with CUDA events; on a CPU eagerly, with a thread
bound to each physical core. It warms up for 1 s, as kbench does. kbench's figure is its headline latency: a CUDA graph,
or the CPU's forward. In fp32 torch's tf32 is off, in tf32 on.

It writes peers.json and peers.md; kbench's result and reports are in DIR/kbench/. Needs torch and transformers.
"""

import argparse
import platform
from collections.abc import Iterator
from typing import Any

from verification import peer, process
from verification.process import BAD_USAGE, FAILED, Stop
from verification.pytorch import TYPES

LIMIT_S = 7200


class Workload(peer.Workload):
    stem = "peers"
    schema = "kbench.peers/2"
    sign = "kbench/result.json"
    libraries = ("torch", "transformers")
    rounds = 0
    counts = ()

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--model", default="gpt2-large", help="[%(default)s]")
        parser.add_argument("--seq", type=int, default=1024, help="[%(default)s]")
        parser.add_argument("--batches", default="1,4", help="[%(default)s]")
        parser.add_argument("--precisions", help="of fp16, bf16, tf32, fp32, fp64 [fp16,tf32,fp32; on a CPU fp32,bf16]")
        parser.add_argument("--compile", action="store_true", help="also torch.compile (GPU)")
        super().add_options(parser)

    def check(self) -> None:
        asked = self.asked
        on_gpu = asked.backend == "cuda"
        if asked.compile and not on_gpu:
            raise Stop(BAD_USAGE, "--compile: is for --backend cuda")
        super().check()
        peer.gpt2_config(asked.model)
        precisions = asked.precisions or ("fp16,tf32,fp32" if on_gpu else "fp32,bf16")
        known = [precision for precision in TYPES if on_gpu or precision != "tf32"]
        asked.precisions = process.parameter_list("--precisions", precisions, known)
        asked.batches = process.number_list("--batches", asked.batches)

    def settings(self) -> dict[str, Any]:
        same = {key: getattr(self.asked, key) for key in ("model", "seq", "backend")}
        host = {"python": platform.python_version(), "host": platform.platform()}
        return same | {"order": ["torch", "kbench", "torch"]} | host

    def run(self, document: dict[str, Any]) -> Iterator[None]:
        asked = self.asked
        ways = ["eager", "graph"] if asked.backend == "cuda" else ["eager"]
        command = ["--model", asked.model, "--seq", str(asked.seq)]
        command += ["--batch", ",".join(map(str, asked.batches)), "--precision", ",".join(asked.precisions)]
        before = self.torch(ways + ["compile"] * asked.compile)
        document["kbench"] = self.run_points("kbench", command, limit_s=LIMIT_S)
        document["torch"] = [before, self.torch(ways)]
        yield

    def torch(self, ways: list[str]) -> dict[str, Any]:
        request = {key: getattr(self.asked, key) for key in ("model", "seq", "batches", "precisions")}
        run = self.run_torch("torch_gpt2", LIMIT_S, **request, ways=ways)
        if run["stopped"]:
            raise Stop(FAILED, f"PyTorch: {run['stopped']}")
        return run

    def rows(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        """A row for every precision and batch."""
        rows = []
        for kbench in document["kbench"]["figures"]:
            case = {key: kbench[key] for key in ("precision", "batch")}
            sides = {way: (document["torch"], {"way": way}) for way in ways_of(document)}
            row = peer.row_of(case, {"kbench": ([{"figures": [kbench]}], {})} | sides)
            kept = {key: row[key] for key in ("drift", "kbench_over_best_torch")}
            rows.append(case | {"kbench": kbench, "torch_ms": {way: row[way + "_ms"] for way in sides}} | kept)
        return rows

    def title(self, document: dict[str, Any]) -> str:
        return f"{document['model']}, seq {document['seq']}, forward, on {peer.device(document['kbench']['environment'])}"

    def about(self, document: dict[str, Any]) -> str:
        programs = self.programs(document, document["kbench"]["environment"], document["torch"][0]["machine"])
        return (
            f"{programs} Medians in milliseconds; torch ran before and after kbench, the better median counts, and drift is "
            "how far the two lie apart at most."
        )

    def columns(self, document: dict[str, Any]) -> list[peer.Column]:
        def interval(row: dict[str, Any]) -> str:
            kbench = row["kbench"]
            if "median_ms" not in kbench:
                return f"{kbench['status']}: {kbench['reason']}"
            return f"{kbench['median_ms']:.3f} [{kbench['ci_low_ms']:.3f}, {kbench['ci_high_ms']:.3f}]"

        theirs = [
            (f"torch {way}", lambda row, way=way: peer.number(row["torch_ms"][way], 3, "failed")) for way in ways_of(document)
        ]
        ours = ("kbench [95 % interval]", interval)
        return [*peer.texts("precision", "batch"), ours, *theirs, peer.RATIO, peer.DRIFT]


def ways_of(document: dict[str, Any]) -> list[str]:
    """Those of the first run, which has all."""
    return document["torch"][0]["request"]["ways"]

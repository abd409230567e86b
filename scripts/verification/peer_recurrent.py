"""Recurrent layers in kbench and by each of cuDNN's algorithms, on one GPU.

The figures are microseconds of a time step of both directions, forward (fwd), backward through time (bwd) and for the
gradients of the weights (wgrad).

cuDNN's figures are cudnn_peer's (docs/microbenchmarks.md): a call through all steps, divided by them, packed or padded,
launched or as a CUDA graph, whichever is the fastest. It multiplies an input of 8 numbers besides, backward too, which
kbench's op does not; kbench reads what the product with the input made, which cuDNN does not. kbench's are those of
`kbench micro`, hot, of every provider that computes the op, of which the fastest counts, also divided by the steps.
Both sides warm up, all sequences are full, and of the rounds the fastest counts. Rows called bwd+wgrad are sums: where
a library ends the one call and begins the other is its own affair.

It writes recurrent-peer.json and recurrent-peer.md.
"""

import argparse
import itertools
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

from verification import peer, process
from verification.process import DONE, FAILED, MISSING, Stop

CELLS = ["lstm", "gru", "rnn"]
DIRECTIONS = ["fwd", "bwd", "wgrad"]
BACKWARD = "bwd+wgrad"
ALGORITHMS = ["standard", "persist_static", "persist_dynamic", "persist_static_small_h"]
PRECISIONS = ["fp16", "bf16", "tf32", "fp32", "fp64"]


class Workload(peer.Workload):
    stem = "recurrent-peer"
    schema = "kbench.recurrent-peer/2"
    other = "cuDNN"
    libraries = ()
    rounds = 1
    counts = ("steps", "rounds")
    left = 6

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--peer", metavar="PATH", help="cudnn_peer [the one that scripts/test builds in this checkout]")
        parser.add_argument("--cells", default="lstm", help="[%(default)s]")
        parser.add_argument("--directions", default="fwd", help="of fwd, bwd and wgrad [%(default)s]")
        parser.add_argument("--hidden", default="256,512,1024,2048", help="[%(default)s]")
        parser.add_argument("--batches", default="1,2,4,8,16,32,64,128", help="[%(default)s]")
        parser.add_argument("--precisions", default="fp16,tf32,fp32", help="[%(default)s]")
        parser.add_argument("--steps", type=int, default=100, help="[%(default)s]")
        parser.add_argument("--seconds", type=float, default=0.02, help="of samples for each of cuDNN's figures [%(default)s]")
        parser.add_argument("--kbench-seconds", type=float, default=0.1, help="for each of kbench's [%(default)s]")
        super().add_options(parser)

    def check(self) -> None:
        asked = self.asked
        for option, known in (("cells", CELLS), ("directions", DIRECTIONS), ("precisions", PRECISIONS)):
            setattr(asked, option, process.parameter_list(f"--{option}", getattr(asked, option), known))
        for option in ("hidden", "batches"):
            setattr(asked, option, process.number_list(f"--{option}", getattr(asked, option)))
        super().check()
        asked.peer = pathlib.Path(asked.peer or process.ROOT / "build/ci/tests/cudnn_peer")
        if not asked.peer.is_file():
            build = "scripts/setup --with-cudnn, then scripts/test"
            raise Stop(MISSING, f"--peer {asked.peer}: no such program; a build of the tests with cuDNN has it ({build})")

    def settings(self) -> dict[str, Any]:
        return {"steps": self.asked.steps, "rounds": self.asked.rounds, "cudnn": [], "kbench": []}

    def run(self, document: dict[str, Any]) -> Iterator[None]:
        for number in range(1, self.asked.rounds + 1):
            document["cudnn"].append(self.run_cudnn())
            yield
            for cell in self.asked.cells:
                document["kbench"].append(self.run_micro(cell, number))
                yield

    def run_cudnn(self) -> dict[str, Any]:
        asked = self.asked
        command = [str(asked.peer), "recurrent", "--cell", joined(asked.cells), "--hidden", joined(asked.hidden)]
        command += ["--direction", joined(asked.directions), "--batch", joined(asked.batches)]
        command += ["--precision", joined(asked.precisions), "--steps", str(asked.steps), "--seconds", f"{asked.seconds:g}"]
        started_at = process.utc_now()
        done = process.run(command, peer.PROGRAM_LIMIT_S)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{") and line.endswith("}")]
        if not lines:
            done.check("cudnn_peer: ")
        return {
            "started_at": started_at,
            "command": command,
            "seconds": round(done.seconds, 2),
            "machine": lines[0],
            "figures": lines[1:],
            "stopped": "" if done.exit_code in (DONE, FAILED) else done.last_line,  # before all of its figures
        }

    def run_micro(self, cell: str, number: int) -> dict[str, Any]:
        asked = self.asked
        shapes = [f"t{asked.steps}n{batch}h{hidden}" for hidden in asked.hidden for batch in asked.batches]
        command = ["micro", "--backend", "cuda", "--op", cell, "--shape", joined(shapes)]
        command += ["--direction", joined(asked.directions), "--precision", joined(asked.precisions)]
        command += ["--cache", "hot", "--ceilings", "none", "--counters", "none", "--benchmark_format=json"]
        command += ["--time-budget", f"{asked.kbench_seconds:g}", f"--benchmark_min_time={asked.kbench_seconds:g}"]
        run, done = self.run_kbench(f"kbench-{cell}-{number}", command, number == 1, "kbench micro")
        content = json.loads(done.stdout)
        return run | {"context": content["context"], "figures": content["benchmarks"]}

    def rows(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        """A row for each case. What did not run has its reason in place of a time."""
        asked, rows = self.asked, []
        for values in itertools.product(asked.cells, asked.precisions, asked.hidden, asked.batches):
            case = dict(zip(("cell", "precision", "hidden", "batch"), values, strict=True))
            of = {way: one_case(document, case | {"direction": way}, asked.steps) for way in asked.directions}
            rows += of.values()
            if "bwd" in of and "wgrad" in of:
                rows.append(whole_backward(of["bwd"], of["wgrad"]))
        return rows

    def title(self, document: dict[str, Any]) -> str:
        gpu = document["cudnn"][0]["machine"]["gpu"]
        return f"Recurrent layers, both directions, {document['steps']} steps, on {gpu}"

    def about(self, document: dict[str, Any]) -> str:
        ours, theirs = document["kbench"][0]["context"]["kbench"], document["cudnn"][0]["machine"]["cudnn"]
        return (
            f"{ours}, cuDNN {theirs}; {document['started_at']}. Microseconds of a time step; of {document['rounds']} rounds "
            "in turn, and of cuDNN's launches and graphs, the fastest."
        )

    def columns(self, document: dict[str, Any]) -> list[peer.Column]:
        case = peer.texts("cell", "direction", "precision", "hidden", "batch")
        provider = ("provider", lambda row: row["provider"] or "–")
        ours = ("kbench", lambda row: peer.number(row["kbench_us"], 2))
        theirs = [
            ("cuDNN " + name.replace("_", " "), lambda row, name=name: peer.number(row["cudnn_us"][name], 2))
            for name in ALGORITHMS
        ]
        ratio = ("kbench / best cuDNN", lambda row: peer.number(row["kbench_over_best_cudnn"], 3))
        return [*case, provider, ours, *theirs, ratio]

    def missing(self, document: dict[str, Any]) -> list[str]:
        counts: dict[str, int] = {}
        for row in document["rows"]:
            for who, why in row["reasons"].items():
                line = f"- {who}, {row['direction']}, {row['precision']}: {why}"
                counts[line] = counts.get(line, 0) + 1
        return [f"{line} ({count} of the cases)" for line, count in counts.items()]

    def failed(self, document: dict[str, Any]) -> bool:
        figures = [figure for run in document["cudnn"] for figure in run["figures"]]
        wrong = [figure for figure in figures if figure.get("failed") or figure.get("passed") is False]
        lines = [f"cuDNN failed: {json.dumps(figure)}" for figure in wrong]
        lines += [f"cudnn_peer stopped: {run['stopped']}" for run in document["cudnn"] if run["stopped"]]
        for line in lines:
            print(f"peer: {line}", file=sys.stderr)
        return bool(lines)


def joined(values: list[Any]) -> str:
    return ",".join(map(str, values))


def kbench_side(figures: list[dict[str, Any]], case: dict[str, Any], steps: int) -> dict[str, Any]:
    """The fastest provider's, and why others have no time."""
    side: dict[str, Any] = {"kbench_us": None, "provider": None, "implementation": None, "reasons": {}}
    wanted = (case["cell"], case["precision"], case["direction"], f"t{steps}n{case['batch']}h{case['hidden']}")
    for figure in figures:
        op, provider, precision, direction, shape, _ = figure["name"].split("/")
        if (op, precision, direction, shape) != wanted:
            continue
        if figure.get("error_occurred") or figure.get("skipped"):
            side["reasons"][provider] = figure.get("error_message") or figure.get("skip_message")
            continue
        step_us = figure["real_time"] / steps
        if side["kbench_us"] is None or step_us < side["kbench_us"]:
            side |= {"kbench_us": step_us, "provider": provider, "implementation": figure.get("label")}
    return side


def with_ratio(row: dict[str, Any]) -> dict[str, Any]:
    best = min((us for us in row["cudnn_us"].values() if us), default=None)
    row["kbench_over_best_cudnn"] = row["kbench_us"] / best if best and row["kbench_us"] else None
    return row


def one_case(document: dict[str, Any], case: dict[str, Any], steps: int) -> dict[str, Any]:
    of_peer = [figure for run in document["cudnn"] for figure in run["figures"] if "hidden" in figure]
    of_kbench = [figure for run in document["kbench"] for figure in run["figures"]]
    row: dict[str, Any] = case | kbench_side(of_kbench, case, steps) | {"cudnn_us": {}}
    for algorithm in ALGORITHMS:
        wanted = {("op" if key == "cell" else key): value for key, value in case.items()} | {"algorithm": algorithm}
        found = [figure for figure in of_peer if wanted.items() <= figure.items()]
        times = [figure[key] for figure in found for key in ("step_us", "graph_step_us") if figure.get(key)]
        row["cudnn_us"][algorithm] = min(times, default=None)
        if not times:
            refusals = (figure.get("failed") or figure.get("why_not") for figure in found)
            row["reasons"][algorithm] = next(refusals, "it was not asked to")
    return with_ratio(row)


def whole_backward(bwd: dict[str, Any], wgrad: dict[str, Any]) -> dict[str, Any]:
    """cuDNN's two parts by one algorithm: it makes the weights' gradients from what its own backward left."""

    def total(a: float | None, b: float | None) -> float | None:
        return a + b if a and b else None

    both = {algorithm: total(us, wgrad["cudnn_us"][algorithm]) for algorithm, us in bwd["cudnn_us"].items()}
    row = {key: bwd[key] for key in ("cell", "precision", "hidden", "batch")}
    row |= {"direction": BACKWARD, "kbench_us": total(bwd["kbench_us"], wgrad["kbench_us"])}
    providers = dict.fromkeys(side["provider"] for side in (bwd, wgrad))
    row |= {"provider": ", ".join(providers) if row["kbench_us"] else None, "implementation": None}
    return with_ratio(row | {"reasons": {}, "cudnn_us": both})

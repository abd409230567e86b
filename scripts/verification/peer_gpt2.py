"""GPT-2's forward in kbench and in PyTorch.

In each round PyTorch runs first, then kbench, then torch.compile. Of a side's medians the better one counts, and how far
they lie apart is shown. PyTorch runs Hugging Face's GPT2LMHeadModel with scaled_dot_product_attention: on a GPU eagerly,
as a CUDA graph, and through torch.compile's reduce-overhead mode, timed with CUDA events; on a CPU eagerly, with a
thread bound to each physical core. It warms up for 1 s, as kbench does. kbench's figure is its headline latency: a CUDA
graph, or the CPU's forward. In fp32 torch's tf32 is off, in tf32 on.

torch.compile needs a C compiler and minutes: where it fails or is not done within --compile-limit, "did not run" and
the reason stand in its place. Where no case of it ran, the next rounds do without it.

It writes peers.json and peers.md. Needs torch and transformers.
"""

import argparse
from collections.abc import Iterator
from typing import Any

from verification import peer
from verification.process import BAD_USAGE, Stop
from verification.pytorch import TYPES


class Workload(peer.Workload):
    """Training steps are one, too: they differ in what a subclass sets and in of_kbench()."""

    stem = "peers"
    schema = "kbench.peers/3"
    libraries = ("torch", "transformers")
    cases = {"cuda": "fp16:1,fp16:4,tf32:1,tf32:4,fp32:1,fp32:4", "cpu": "fp32:1,bf16:1"}
    precisions = {"cuda": list(TYPES), "cpu": [precision for precision in TYPES if precision != "tf32"]}
    left = 2
    names = {"kbench": "kbench", "eager": "torch eager", "graph": "torch graph", "compile": "torch.compile"}

    program = "torch_gpt2"  # PyTorch's side
    work = "forward"  # for the title
    parts: tuple[str, ...] = ()  # what a case times, if not one thing
    explained = ""  # what these are
    models = {"cuda": "gpt2-large", "cpu": "gpt2-large"}
    ways = {"cuda": ["eager", "graph"], "cpu": ["eager"]}  # besides torch.compile
    least_seq = 1

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--model", help="[{cuda}; on a CPU {cpu}]".format(**cls.models))
        parser.add_argument("--seq", type=int, default=1024, help="[%(default)s]")
        parser.add_argument("--no-compile", action="store_true", help="no torch.compile; a CPU has none")
        parser.add_argument("--compile-limit", type=float, default=600, help="seconds a round [%(default)s]")
        super().add_options(parser)

    def check(self) -> None:
        super().check()
        asked = self.asked
        asked.model = asked.model or self.models[asked.backend]
        longest = peer.gpt2_config(asked.model)["n_positions"]
        if not self.least_seq <= asked.seq <= longest:
            raise Stop(BAD_USAGE, f"--seq {asked.seq}: must be in {self.least_seq} to {longest}")

    def settings(self) -> dict[str, Any]:
        same = {key: getattr(self.asked, key) for key in ("model", "seq", "backend", "rounds")}
        return same | {"torch": [], "compile": [], "kbench": []}

    def run(self, document: dict[str, Any]) -> Iterator[None]:
        asked = self.asked
        request = {"model": asked.model, "seq": asked.seq, "cases": asked.cases}
        compiles = asked.backend == "cuda" and not asked.no_compile
        for number in range(1, asked.rounds + 1):
            document["torch"].append(self.run_torch(self.program, **request, ways=self.ways[asked.backend]))
            document["kbench"].append(self.of_kbench(number))
            yield
            if compiles:
                document["compile"].append(self.compiled(request))
                compiles = any("median_ms" in figure for figure in document["compile"][-1]["figures"])
                yield

    def compiled(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return self.run_torch(self.program, self.asked.compile_limit, **request, ways=["compile"])
        except Stop as stop:  # before it told of its machine
            return {"figures": [], "stopped": str(stop)}

    def of_kbench(self, number: int) -> dict[str, Any]:
        return self.run_points(f"kbench-{number}", self.command(), verify=number == 1)

    def command(self) -> list[str]:
        asked = self.asked
        command = ["--model", asked.model, "--seq", str(asked.seq), *self.case_options()]
        return [*command, "--latency-only", "--time-budget", f"{asked.seconds:g}"]

    def rows(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        sides = {"kbench": (document["kbench"], {})}
        sides |= {way: (document["torch"], {"way": way}) for way in self.ways[self.asked.backend]}
        sides |= {"compile": (document["compile"], {})}
        whats = [{"what": part} for part in self.parts] or [{}]
        cases = [{"precision": precision, "batch": batch} for precision, batch in self.asked.cases]
        return [peer.row_of(case | what, sides) for case in cases for what in whats]

    def title(self, document: dict[str, Any]) -> str:
        on = peer.device(document["kbench"][-1]["environment"])
        return f"{document['model']}, seq {document['seq']}, {self.work}, on {on}"

    def about(self, document: dict[str, Any]) -> str:
        return self.about_rounds(document, "torch", self.explained).rstrip()

    def columns(self, document: dict[str, Any]) -> list[peer.Column]:
        ran = {"kbench", *self.ways[self.asked.backend], *(["compile"] if document["compile"] else [])}
        names = {side: name for side, name in self.names.items() if side in ran}
        part = [("", lambda row: row["what"])] if self.parts else []
        cases = [*peer.texts("precision", "batch"), *part]
        return [*cases, *peer.times(names), peer.RATIO, *self.rates(document)]

    def rates(self, document: dict[str, Any]) -> list[peer.Column]:
        return [peer.DRIFT]

    def failed(self, document: dict[str, Any]) -> bool:
        return any("eager" in row["missing"] for row in document["rows"])

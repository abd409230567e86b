"""What the tests of `peer gpt2`, `train` and `ds2` have in common: a kbench that only prints, and a PyTorch whose times are
planted."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import types
import unittest
from typing import Any
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/peer"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
from verification import peer, process  # noqa: E402

# Takes 40 ms in its first round and 30 in the second, without an optimizer 10 ms less; of a batch of 9 it has no time.
KBENCH = """#!{python}
import json, pathlib, sys
arguments = sys.argv[1:]
with pathlib.Path(__file__).with_name("calls").open("a") as calls:
    calls.write(json.dumps(["kbench", *arguments]) + chr(10))
after = lambda option: arguments[arguments.index(option) + 1]
if "--fails" in arguments:
    sys.exit(print("kbench: verification failed", file=sys.stderr) or 1)
if "--config" in arguments:
    json.loads(pathlib.Path(after("--config")).read_text())
out = pathlib.Path(after("--out"))
ms = (40 if "kbench-1" in out.name else 30) - (10 if "none" in arguments else 0)
points = []
for precision, batch in zip(after("--precision").split(","), map(int, after("--batch").split(","))):
    latency = dict(summary_ms=dict(median=ms, ci_low=ms, ci_high=ms))
    end_to_end = dict(latency=latency, converged=True)
    point = dict(precision=precision, batch=batch, status="done", reason="", end_to_end=end_to_end,
                 conditions=dict(sm_clock_mhz=dict(value=1700)))
    points.append(point | (dict(status="skipped", reason="no room", end_to_end=None) if batch == 9 else {{}}))
out.mkdir()
environment = dict(kbench_version="0", git_revision="abc", gpu=dict(name="a GPU"), host=dict(cpu="a CPU", threads=2))
(out / "result.json").write_text(json.dumps(dict(environment=environment, points=points)))
"""


def load() -> types.ModuleType:
    loader = importlib.machinery.SourceFileLoader("peer_script", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("peer_script", loader))
    loader.exec_module(module)
    return module


class PeerRuns(unittest.TestCase):
    """A test says which workload it is, and plants PyTorch's times: by way and round, a figure or why there is none."""

    workload = program = stem = ""  # the argument of scripts/peer, PyTorch's side, the file that is written
    parts: dict[str, int] = {"": 0}  # what a case times, and how many ms less than planted that takes
    planted: dict[str, list[float | str]] = {}

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.kbench, self.out = self.folder / "kbench", self.folder / "out"
        self.kbench.write_text(KBENCH.format(python=sys.executable))
        self.kbench.chmod(0o755)
        self.times = {way: list(of_rounds) for way, of_rounds in self.planted.items()}
        self.stopped: dict[str, str] = {}  # by way: why its program gave no more figures
        self.finished = 0  # cases before that
        self.ends_at_once = ""  # the way whose program says nothing at all

    def torch(self, program: str, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
        with (self.folder / "calls").open("a") as calls:
            calls.write(json.dumps(["torch", request | {"program_limit_s": limit_s}]) + "\n")
        self.assertEqual(program, self.program)
        ways = request.get("ways", list(self.planted))
        times = {way: self.times[way].pop(0) for way in ways}
        if "ctrl-c" in times.values():
            raise KeyboardInterrupt
        stopped = next((self.stopped[way] for way in ways if way in self.stopped), "")
        if self.ends_at_once in ways:
            raise process.Stop(process.FAILED, "PyTorch: it ended")
        figures = []
        for precision, batch in request["cases"][: self.finished] if stopped else request["cases"]:
            for way, ms in times.items():
                for what, less in self.parts.items():
                    time = {"error": ms} if isinstance(ms, str) else {"median_ms": ms - less}
                    part = {"what": what} if what else {}
                    figures.append({"precision": precision, "batch": batch, "way": way} | part | time)
        machine = {"versions": {"torch": "0", "transformers": "0"}, "threads": 2}
        return {"machine": machine, "figures": figures, "stopped": stopped}

    def run_script(self, *more: str, packages: bool = True) -> tuple[int, str, dict[str, Any]]:
        module = load()
        command = [str(SCRIPT), self.workload, "--kbench", str(self.kbench), "--out", str(self.out), *more]
        spec = object() if packages else None
        output = io.StringIO()
        with (
            mock.patch.object(sys, "argv", command),
            mock.patch.object(importlib.util, "find_spec", lambda name: spec),
            mock.patch.object(peer, "run_torch", self.torch),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(output),
        ):
            try:
                code = module.main()
            except process.Stop as stop:
                code = stop.code
                print(stop)
            except SystemExit as end:
                code = end.code
        written = self.out / f"{self.stem}.json"
        return code, output.getvalue(), json.loads(written.read_text()) if written.exists() else {}

    def calls(self, side: str = "") -> list[list[Any]]:
        calls = [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]
        return [call for call in calls if side in ("", call[0])]

    def requests(self) -> list[dict[str, Any]]:
        return [request for _, request in self.calls("torch")]


class Refusals:
    """Tests of every workload; PeerRuns goes behind it."""

    case = "fp16:32"
    libraries = "torch transformers"

    def test_a_kbench_that_fails(self) -> None:
        code, output, document = self.run_script("--cases", self.case, "--", "--fails")
        self.assertEqual((code, document), (1, {}), output)
        self.assertIn("verification failed", output)

    def test_a_comparison_is_not_overwritten(self) -> None:
        self.run_script("--cases", self.case)
        code, output, _ = self.run_script("--cases", self.case)
        self.assertEqual(code, 2)
        self.assertIn("holds a comparison already", output)

    def test_pytorch_is_missing(self) -> None:
        code, output, _ = self.run_script("--cases", self.case, packages=False)
        self.assertEqual(code, 3)
        self.assertIn(f"pip install {self.libraries}\n", output)

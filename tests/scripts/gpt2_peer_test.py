"""`peer gpt2` and `peer train` against planted times of PyTorch and a kbench that only prints: what they start in which
order, which times count, and what they say where one is missing. Needs numpy, and neither PyTorch nor a GPU.
"""

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

if importlib.util.find_spec("numpy") is None:
    sys.exit(print("Python has no numpy") or 77)

# Takes 40 ms a step in its first round and 30 in its second, without AdamW 10 ms less; of a batch of 9 it has no time.
KBENCH = """#!{python}
import json, pathlib, sys
arguments = sys.argv[1:]
with pathlib.Path(__file__).with_name("calls").open("a") as calls:
    calls.write(json.dumps(["kbench", *arguments]) + chr(10))
after = lambda option: arguments[arguments.index(option) + 1]
if "--fails" in arguments:
    sys.exit(print("kbench: verification failed", file=sys.stderr) or 1)
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


class Peer(unittest.TestCase):
    """A script, its times planted."""

    workload, program, stem = "train", "torch_steps", "train-peer"
    parts: dict[str, int] = {"gradients": 10, "train": 0}  # how many ms less than it

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.kbench, self.out = self.folder / "kbench", self.folder / "out"
        self.kbench.write_text(KBENCH.format(python=sys.executable))
        self.kbench.chmod(0o755)
        self.eager = [60.0, 50.0]  # what `train` takes, round after round
        self.compiled: float | str = 45.0  # a time, or why there is none
        self.stopped = ""

    def torch(self, program: str, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
        with (self.folder / "calls").open("a") as calls:
            calls.write(json.dumps([*request["ways"], request["cases"], limit_s]) + "\n")
        self.assertEqual((program, request["seq"]), (self.program, 1024))
        compiles = request["ways"] == ["compile"]
        times = {"compile": self.compiled} if compiles else {"eager": self.eager.pop(0), "graph": 55.0}
        figures = []
        for precision, batch in [] if self.stopped and compiles else request["cases"]:
            for way in request["ways"]:
                for what, less in self.parts.items():
                    ms = times[way]
                    time = {"error": ms} if isinstance(ms, str) else {"median_ms": ms - less}
                    part = {"what": what} if what else {}
                    figures.append({"precision": precision, "batch": batch, "way": way} | part | time)
        machine = {"versions": {"torch": "0", "transformers": "0"}, "threads": 2}
        return {"machine": machine, "figures": figures, "stopped": self.stopped if compiles else ""}

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

    def calls(self) -> list[list[Any]]:
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]


class TrainPeer(Peer):
    def test_both_sides_run_in_turn_and_the_better_median_of_each_counts(self) -> None:
        code, output, document = self.run_script("--cases", "bf16:4,fp32:16")
        self.assertEqual(code, 0, output)
        order = [call[0] for call in self.calls()]
        self.assertEqual(order, ["eager", "compile", "kbench", "kbench"] * 2)
        self.assertEqual(len(document["rows"]), 4)
        row = document["rows"][1]
        self.assertEqual((row["precision"], row["batch"], row["what"]), ("bf16", 4, "train"))
        self.assertEqual((row["kbench_ms"], row["eager_ms"], row["compile_ms"]), (30, 50, 45))
        self.assertAlmostEqual(row["kbench_over_best_torch"], 30 / 45)
        self.assertAlmostEqual(row["drift"], 40 / 30 - 1)
        self.assertEqual(document["rows"][0]["kbench_ms"], 20)
        self.assertIn("| bf16 | 4 | train | 30.00 | 50.00 | 45.00 | 0.667 | 136533 | 33.3% |", output)
        self.assertEqual((self.out / "train-peer.md").read_text(), output)

    def test_kbench_does_the_same_work_and_verifies_it_once(self) -> None:
        self.run_script("--cases", "bf16:4,fp32:16", "--seconds", "3")
        commands = [call for call in self.calls() if call[0] == "kbench"]
        self.assertEqual([call[call.index("--optimizer") + 1] for call in commands], ["none", "adamw"] * 2)
        self.assertEqual(["--no-verify" in call for call in commands], [True, False, True, True])
        wanted = {"--direction": "train", "--precision": "bf16,fp32", "--batch": "4,16", "--zip": "precision,batch"}
        wanted |= {"--model": "gpt2-large", "--seq": "1024", "--time-budget": "3"}
        for command in commands:
            for option, value in wanted.items():
                self.assertEqual(command[command.index(option) + 1], value)
            self.assertIn("--latency-only", command)
            self.assertNotIn("--master", command)

    def test_options_for_kbench_are_passed_on_once(self) -> None:
        self.run_script("--cases", "bf16:4", "--", "--no-verify", "--retune")
        for command in (call for call in self.calls() if call[0] == "kbench"):
            self.assertEqual((command.count("--no-verify"), command.count("--retune")), (1, 1))

    def test_a_compiler_that_fails_or_is_too_slow_did_not_run(self) -> None:
        for stopped in ("", "stopped after 300 s"):
            with self.subTest(stopped):
                self.setUp()
                self.compiled, self.stopped = "Failed to find C compiler", stopped
                code, output, document = self.run_script("--cases", "bf16:4")
                self.assertEqual(code, 0, output)
                self.assertIn("| train | 30.00 | 50.00 | did not run | 0.600 |", output)
                self.assertIn(f"torch.compile, bf16 x 4, train: {stopped or self.compiled}", output)
                asked = [call for call in self.calls() if call[0] == "compile"]
                self.assertEqual([call[-1] for call in asked], [300])  # once, and no more in the second round

    def test_without_a_compiler_nobody_asks_for_one(self) -> None:
        for options in (["--no-compile", "--cases", "bf16:4"], ["--backend", "cpu"]):
            with self.subTest(options):
                self.setUp()
                code, output, _ = self.run_script(*options)
                self.assertEqual((code, "compile" in output), (0, False), output)
        self.assertEqual(self.calls()[0][1], [["fp32", 1], ["fp32", 4], ["bf16", 1], ["bf16", 4]])

    def test_what_kbench_skips_is_told(self) -> None:
        code, output, _ = self.run_script("--cases", "bf16:4,bf16:9")
        self.assertEqual(code, 0, output)
        self.assertIn("| bf16 | 9 | train | did not run | 50.00 | 45.00 | – |", output)
        self.assertIn("- kbench, bf16 x 9, train: no room", output)

    def test_pytorch_without_a_time_fails(self) -> None:
        self.eager = ["out of memory", "out of memory"]  # type: ignore[list-item]
        code, output, document = self.run_script("--cases", "bf16:4")
        self.assertEqual(code, 1, output)
        self.assertIn("- torch eager, bf16 x 4, gradients: out of memory", output)

    def test_a_kbench_that_fails(self) -> None:
        code, output, document = self.run_script("--cases", "bf16:4", "--", "--fails")
        self.assertEqual((code, document), (1, {}), output)
        self.assertIn("verification failed", output)

    def test_bad_usage(self) -> None:
        wrong = [["--cases", "bf16"], ["--cases", "fp16:4"], ["--cases", "bf16:0"], ["--cases", "tf32:1", "--backend", "cpu"]]
        wrong += [["--model", "gpt3"], ["--seq", "1"], ["--seq", "2000"], ["--rounds", "0"], ["--kbench", "no-such-program"]]
        for options in [*wrong, ["--unknown"]]:
            with self.subTest(options):
                code, output, document = self.run_script(*options)
                self.assertEqual((code, document), (2, {}), output)

    def test_a_comparison_is_not_overwritten(self) -> None:
        self.run_script("--cases", "bf16:4")
        code, output, _ = self.run_script("--cases", "bf16:4")
        self.assertEqual(code, 2)
        self.assertIn("holds a comparison already", output)

    def test_pytorch_is_missing(self) -> None:
        code, output, _ = self.run_script("--cases", "bf16:4", packages=False)
        self.assertEqual(code, 3)
        self.assertIn("pip install torch transformers", output)


class Gpt2Peer(Peer):
    workload, program, stem = "gpt2", "torch_gpt2", "peers"
    parts = {"": 0}

    def test_three_ways_of_pytorch_take_turns_with_kbench(self) -> None:
        code, output, document = self.run_script("--cases", "fp16:1,fp32:4")
        self.assertEqual(code, 0, output)
        order = [call[:-2] if call[0] != "kbench" else call[:1] for call in self.calls()]
        self.assertEqual(order, [["eager", "graph"], ["compile"], ["kbench"]] * 2)
        self.assertIn("| fp16 | 1 | 30.00 | 50.00 | 55.00 | 45.00 | 0.667 | 33.3% |", output)
        self.assertIn("# gpt2-large, seq 1024, forward, on a GPU", output)
        for number, command in enumerate(call for call in self.calls() if call[0] == "kbench"):
            self.assertEqual("--no-verify" in command, number > 0)
            self.assertNotIn("--direction", command)

    def test_a_cpu_has_one_way(self) -> None:
        code, output, document = self.run_script("--backend", "cpu")
        self.assertEqual(code, 0, output)
        self.assertIn("| precision | batch | kbench | torch eager | kbench / best torch | drift |", output)
        self.assertEqual(self.calls()[0][:2], ["eager", [["fp32", 1], ["bf16", 1]]])

    def test_no_token_is_no_forward(self) -> None:
        self.assertEqual(self.run_script("--seq", "0")[0], 2)


class Program(unittest.TestCase):
    """What peer.run_torch makes of what a program printed."""

    def run_torch(self, exit_code: int, stdout: str, stderr: str = "") -> dict[str, Any]:
        done = process.Finished(["python"], exit_code, 1.0, stdout, stderr)
        with mock.patch.object(process, "run", lambda *_: done):
            return peer.run_torch("torch_steps", {"device": "cpu"}, 1)

    def test_figures_before_a_time_limit_are_kept(self) -> None:
        run = self.run_torch(124, 'a warning\n{"threads": 2}\n{"median_ms": 1}\n{"median_m', "stopped after 1 s")
        self.assertEqual((run["machine"], run["figures"]), ({"threads": 2}, [{"median_ms": 1}]))
        self.assertEqual(run["stopped"], "stopped after 1 s")

    def test_a_program_that_ends_well_was_not_stopped(self) -> None:
        self.assertEqual(self.run_torch(0, '{"threads": 2}\n')["stopped"], "")

    def test_a_program_without_a_word_ends_the_script_with_its_reason(self) -> None:
        with self.assertRaisesRegex(process.Stop, "PyTorch: PyTorch finds no GPU") as caught:
            self.run_torch(3, "", "PyTorch finds no GPU")
        self.assertEqual(caught.exception.code, 3)


if __name__ == "__main__":
    unittest.main()

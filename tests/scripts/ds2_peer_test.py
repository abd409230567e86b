"""`peer ds2` against planted times of PyTorch and a kbench that only prints: what it starts in which order, which times
count, and what it says where one is missing. Needs neither PyTorch nor a GPU.
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

# Takes 20 ms in its first round and 16 in its second; of a batch of 9 it has no time.
KBENCH = """#!{python}
import json, pathlib, sys
arguments = sys.argv[1:]
with pathlib.Path(__file__).with_name("calls").open("a") as calls:
    calls.write(json.dumps(["kbench", *arguments]) + chr(10))
after = lambda option: arguments[arguments.index(option) + 1]
if "--fails" in arguments:
    sys.exit(print("kbench: verification failed", file=sys.stderr) or 1)
json.loads(pathlib.Path(after("--config")).read_text())
out = pathlib.Path(after("--out"))
ms = 20 if out.name == "kbench-1" else 16
points = []
for precision, batch in zip(after("--precision").split(","), map(int, after("--batch").split(","))):
    latency = dict(summary_ms=dict(median=ms, ci_low=ms, ci_high=ms))
    point = dict(precision=precision, batch=batch, status="done", reason="", end_to_end=dict(latency=latency, converged=True),
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


class DeepSpeech2Peer(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.kbench, self.out = self.folder / "kbench", self.folder / "out"
        self.kbench.write_text(KBENCH.format(python=sys.executable))
        self.kbench.chmod(0o755)
        self.times: dict[str, list[float | str]] = {"packed": [70.0, 80.0], "plain": [40.0, 50.0]}  # by round

    def torch(self, program: str, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
        with (self.folder / "calls").open("a") as calls:
            calls.write(json.dumps(["torch", request]) + "\n")
        self.assertEqual(program, "torch_speech")
        figures = []
        times = {way: of_rounds.pop(0) for way, of_rounds in self.times.items()}
        for precision, batch in request["cases"]:
            for way, ms in times.items():
                time = {"error": ms} if isinstance(ms, str) else {"median_ms": ms}
                figures.append({"precision": precision, "batch": batch, "way": way} | time)
        return {"machine": {"versions": {"torch": "0"}, "threads": 2}, "figures": figures, "stopped": ""}

    def run_script(self, *more: str, packages: bool = True) -> tuple[int, str, dict[str, Any]]:
        module = load()
        command = [str(SCRIPT), "ds2", "--kbench", str(self.kbench), "--out", str(self.out), *more]
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
        written = self.out / "ds2-peer.json"
        return code, output.getvalue(), json.loads(written.read_text()) if written.exists() else {}

    def calls(self, side: str = "") -> list[list[Any]]:
        calls = [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]
        return [call for call in calls if side in ("", call[0])]

    def test_both_sides_run_in_turn_and_the_better_median_of_each_counts(self) -> None:
        code, output, document = self.run_script("--cases", "fp16:32,fp32:8")
        self.assertEqual(code, 0, output)
        self.assertEqual([call[0] for call in self.calls()], ["torch", "kbench"] * 2)
        self.assertEqual(len(document["rows"]), 2)
        row = document["rows"][0]
        self.assertEqual((row["precision"], row["batch"]), ("fp16", 32))
        self.assertEqual((row["kbench_ms"], row["packed_ms"], row["plain_ms"]), (16, 70, 40))
        self.assertAlmostEqual(row["kbench_over_best_torch"], 16 / 40)
        self.assertAlmostEqual(row["drift"], 20 / 16 - 1)
        self.assertIn("| fp16 | 32 | 16.00 | 70.00 | 40.00 | 0.400 | 25.0% |", output)
        self.assertEqual((self.out / "ds2-peer.md").read_text(), output)

    def test_both_sides_get_the_same_model_and_kbench_verifies_it_once(self) -> None:
        sizes = ["--cell", "gru", "--hidden", "64", "--layers", "2", "--frames", "100"]
        self.run_script("--cases", "fp16:32,fp32:8", "--seconds", "3", *sizes)
        config = json.loads((self.out / "config.json").read_text())
        self.assertEqual((config["rnn_type"], config["hidden_size"], config["hidden_layers"]), ("gru", 64, 2))
        for _, request in self.calls("torch"):
            self.assertEqual((request["config"], request["frames"]), (config, 100))
        commands = self.calls("kbench")
        self.assertEqual(["--no-verify" in call for call in commands], [False, True])
        wanted = {"--precision": "fp16,fp32", "--batch": "32,8", "--zip": "precision,batch", "--frames": "100"}
        wanted |= {"--backend": "cuda", "--time-budget": "3", "--config": str(self.out / "config.json")}
        for command in commands:
            for option, value in wanted.items():
                self.assertEqual(command[command.index(option) + 1], value)
            self.assertIn("--latency-only", command)

    def test_steps_are_timed_where_they_are_asked_for(self) -> None:
        self.run_script("--cases", "fp16:32", "--steps", "--rounds", "1", "--", "--no-verify")
        (command,) = self.calls("kbench")
        self.assertNotIn("--latency-only", command)
        self.assertEqual(command[command.index("--counters") + 1], "none")
        self.assertEqual(command.count("--no-verify"), 1)

    def test_a_cpu_has_its_own_cases(self) -> None:
        self.run_script("--backend", "cpu")
        self.assertEqual(self.calls("torch")[0][1]["cases"], [["fp32", 1], ["fp32", 8], ["bf16", 1], ["bf16", 8]])

    def test_one_way_of_pytorch_is_enough(self) -> None:
        self.times["plain"] = ["no such kernel", "no such kernel"]
        code, output, _ = self.run_script("--cases", "fp16:32")
        self.assertEqual(code, 0, output)
        self.assertIn("| fp16 | 32 | 16.00 | 70.00 | did not run | 0.229 |", output)
        self.assertIn("- torch plain, fp16 x 32: no such kernel", output)

    def test_pytorch_without_a_time_fails(self) -> None:
        self.times = {way: ["out of memory", "out of memory"] for way in self.times}
        code, output, _ = self.run_script("--cases", "fp16:32")
        self.assertEqual(code, 1, output)

    def test_what_kbench_skips_is_told(self) -> None:
        code, output, _ = self.run_script("--cases", "fp16:9,fp16:32")
        self.assertEqual(code, 0, output)
        self.assertIn("| fp16 | 9 | did not run | 70.00 | 40.00 | – |", output)
        self.assertIn("- kbench, fp16 x 9: no room", output)

    def test_a_kbench_that_fails(self) -> None:
        code, output, document = self.run_script("--cases", "fp16:32", "--", "--fails")
        self.assertEqual((code, document), (1, {}), output)
        self.assertIn("verification failed", output)

    def test_bad_usage(self) -> None:
        wrong = [["--cases", "fp16"], ["--cases", "fp8:4"], ["--cases", "fp16:0"], ["--cases", "tf32:1", "--backend", "cpu"]]
        wrong += [["--cell", "mlp"], ["--frames", "0"], ["--rounds", "0"], ["--kbench", "no-such-program"], ["--unknown"]]
        for options in wrong:
            with self.subTest(options):
                code, output, document = self.run_script(*options)
                self.assertEqual((code, document), (2, {}), output)

    def test_a_comparison_is_not_overwritten(self) -> None:
        self.run_script("--cases", "fp16:32")
        code, output, _ = self.run_script("--cases", "fp16:32")
        self.assertEqual(code, 2)
        self.assertIn("holds a comparison already", output)

    def test_pytorch_is_missing(self) -> None:
        code, output, _ = self.run_script("--cases", "fp16:32", packages=False)
        self.assertEqual(code, 3)
        self.assertIn("pip install torch", output)


if __name__ == "__main__":
    unittest.main()

"""`peer gpt2` and `peer train` against planted times of PyTorch and a kbench that only prints: what they start in which
order, which times count, and what they say where one is missing. Needs numpy, and neither PyTorch nor a GPU.
"""

import importlib.util
import sys
import unittest
from typing import Any
from unittest import mock

from peer_runs import PeerRuns, Refusals

from verification import peer, process

if importlib.util.find_spec("numpy") is None:
    sys.exit(print("Python has no numpy") or 77)


def order_of(calls: list[list[Any]]) -> list[str]:
    """Which ways of PyTorch, and kbench, in turn."""
    return ["+".join(call[1]["ways"]) if call[0] == "torch" else "kbench" for call in calls]


class TrainPeer(Refusals, PeerRuns):
    workload, program, stem = "train", "torch_steps", "train-peer"
    parts = {"gradients": 10, "train": 0}
    case = "bf16:4"
    planted = {"eager": [60.0, 50.0], "compile": [48.0, 45.0]}

    def test_both_sides_run_in_turn_and_the_better_median_of_each_counts(self) -> None:
        code, output, document = self.run_script("--cases", "bf16:4,fp32:16")
        self.assertEqual(code, 0, output)
        self.assertEqual(order_of(self.calls()), ["eager", "kbench", "kbench", "compile"] * 2)
        self.assertEqual({request["seq"] for request in self.requests()}, {1024})
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
        commands = self.calls("kbench")
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
        for command in self.calls("kbench"):
            self.assertEqual((command.count("--no-verify"), command.count("--retune")), (1, 1))

    def test_a_compiler_that_fails_or_is_too_slow_did_not_run(self) -> None:
        for stopped in ("", "stopped after 600 s"):
            with self.subTest(stopped):
                self.setUp()
                self.times["compile"] = ["Failed to find C compiler"]
                self.stopped = {"compile": stopped} if stopped else {}
                code, output, document = self.run_script("--cases", "bf16:4")
                self.assertEqual(code, 0, output)
                self.assertIn("| train | 30.00 | 50.00 | did not run | 0.600 |", output)
                self.assertNotIn("of them", output)
                self.assertIn(f"torch.compile, bf16 x 4, train: {stopped or 'Failed to find C compiler'}", output)
                limits = [request["program_limit_s"] for request in self.requests() if request["ways"] == ["compile"]]
                self.assertEqual(limits, [600])  # once, and no more in the second round

    def test_what_was_compiled_before_the_limit_counts_in_each_round(self) -> None:
        self.stopped, self.finished = {"compile": "stopped after 600 s"}, 1
        code, output, _ = self.run_script("--cases", "bf16:4,bf16:16")
        self.assertEqual(code, 0, output)
        self.assertIn("| bf16 | 4 | train | 30.00 | 50.00 | 45.00 |", output)
        self.assertIn("| bf16 | 16 | train | 30.00 | 50.00 | did not run |", output)
        self.assertIn("- torch.compile, bf16 x 16, train: stopped after 600 s", output)
        self.assertEqual(order_of(self.calls()).count("compile"), 2)

    def test_rounds_before_an_interruption_are_kept_and_counted(self) -> None:
        self.times["compile"] = [48.0, "ctrl-c"]
        code, output, document = self.run_script("--cases", "bf16:4")
        self.assertEqual(code, 1)
        self.assertIn("of 2 rounds in turn the better", output)
        self.assertIn(" torch.compile ran 1 of them.", output)
        self.assertIn("| train | 30.00 | 50.00 | 48.00 |", output)
        self.assertIn(f"interrupted; the rounds before are in {self.out}", output)
        self.assertEqual(len(document["kbench"]), 2)

    def test_an_interruption_before_any_round_says_so(self) -> None:
        self.times["eager"] = ["ctrl-c"]
        code, output, document = self.run_script("--cases", "bf16:4")
        self.assertEqual((code, output, document), (1, "interrupted; no round was done\n", {}))

    def test_a_compiler_that_ends_without_a_word_did_not_run(self) -> None:
        self.ends_at_once = "compile"
        code, output, _ = self.run_script("--cases", "bf16:4")
        self.assertEqual(code, 0, output)
        self.assertIn("- torch.compile, bf16 x 4, train: PyTorch: it ended", output)
        self.assertNotIn("of them", output)

    def test_without_a_compiler_nobody_asks_for_one(self) -> None:
        for options in (["--no-compile", "--cases", "bf16:4"], ["--backend", "cpu"]):
            with self.subTest(options):
                self.setUp()
                code, output, _ = self.run_script(*options)
                self.assertEqual((code, "compile" in output), (0, False), output)
        self.assertEqual(self.requests()[0]["cases"], [["fp32", 1], ["fp32", 4], ["bf16", 1], ["bf16", 4]])

    def test_what_kbench_skips_is_told(self) -> None:
        code, output, _ = self.run_script("--cases", "bf16:4,bf16:9")
        self.assertEqual(code, 0, output)
        self.assertIn("| bf16 | 9 | train | did not run | 50.00 | 45.00 | – |", output)
        self.assertIn("- kbench, bf16 x 9, train: no room", output)

    def test_pytorch_without_a_time_fails(self) -> None:
        self.times["eager"] = ["out of memory", "out of memory"]
        code, output, document = self.run_script("--cases", "bf16:4")
        self.assertEqual(code, 1, output)
        self.assertIn("- torch eager, bf16 x 4, gradients: out of memory", output)

    def test_bad_usage(self) -> None:
        wrong = [["--cases", "bf16"], ["--cases", "fp16:4"], ["--cases", "bf16:0"], ["--cases", "tf32:1", "--backend", "cpu"]]
        wrong += [["--model", "gpt3"], ["--seq", "1"], ["--seq", "2000"], ["--rounds", "0"], ["--kbench", "no-such-program"]]
        for options in [*wrong, ["--unknown"]]:
            with self.subTest(options):
                code, output, document = self.run_script(*options)
                self.assertEqual((code, document), (2, {}), output)


class Gpt2Peer(Refusals, PeerRuns):
    workload, program, stem = "gpt2", "torch_gpt2", "peers"
    planted = {"eager": [60.0, 50.0], "graph": [55.0, 55.0], "compile": [48.0, 45.0]}

    def test_three_ways_of_pytorch_take_turns_with_kbench(self) -> None:
        code, output, document = self.run_script("--cases", "fp16:1,fp32:4")
        self.assertEqual(code, 0, output)
        self.assertEqual(order_of(self.calls()), ["eager+graph", "kbench", "compile"] * 2)
        self.assertIn("| fp16 | 1 | 30.00 | 50.00 | 55.00 | 45.00 | 0.667 | 33.3% |", output)
        self.assertIn("# gpt2-large, seq 1024, forward, on a GPU", output)
        for number, command in enumerate(self.calls("kbench")):
            self.assertEqual("--no-verify" in command, number > 0)
            self.assertNotIn("--direction", command)

    def test_a_cpu_has_one_way(self) -> None:
        code, output, document = self.run_script("--backend", "cpu")
        self.assertEqual(code, 0, output)
        self.assertIn("| precision | batch | kbench | torch eager | kbench / best torch | drift |", output)
        self.assertEqual(self.requests()[0]["cases"], [["fp32", 1], ["bf16", 1]])

    def test_no_token_is_no_forward(self) -> None:
        code, output, _ = self.run_script("--seq", "0")
        self.assertEqual(code, 2)
        self.assertIn("--seq 0: must be in 1 to 1024", output)


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

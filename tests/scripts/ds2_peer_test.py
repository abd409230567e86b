"""`peer ds2` against planted times of PyTorch and a kbench that only prints: what it starts in which order, which times
count, and what it says where one is missing. Needs neither PyTorch nor a GPU.
"""

import json
import unittest

from peer_runs import PeerRuns, Refusals


class DeepSpeech2Peer(Refusals, PeerRuns):
    workload, program, stem = "ds2", "torch_speech", "ds2-peer"
    libraries = "torch"
    planted = {"packed": [70.0, 80.0], "plain": [40.0, 50.0]}

    def test_both_sides_run_in_turn_and_the_better_median_of_each_counts(self) -> None:
        code, output, document = self.run_script("--cases", "fp16:32,fp32:8")
        self.assertEqual(code, 0, output)
        self.assertEqual([call[0] for call in self.calls()], ["torch", "kbench"] * 2)
        self.assertEqual(len(document["rows"]), 2)
        row = document["rows"][0]
        self.assertEqual((row["precision"], row["batch"]), ("fp16", 32))
        self.assertEqual((row["kbench_ms"], row["packed_ms"], row["plain_ms"]), (30, 70, 40))
        self.assertAlmostEqual(row["kbench_over_best_torch"], 30 / 40)
        self.assertAlmostEqual(row["drift"], 40 / 30 - 1)
        self.assertIn("| fp16 | 32 | 30.00 | 70.00 | 40.00 | 0.750 | 33.3% |", output)
        self.assertEqual((self.out / "ds2-peer.md").read_text(), output)

    def test_both_sides_get_the_same_model_and_kbench_verifies_it_once(self) -> None:
        sizes = ["--cell", "gru", "--hidden", "64", "--layers", "2", "--frames", "100"]
        self.run_script("--cases", "fp16:32,fp32:8", "--seconds", "3", *sizes)
        config = json.loads((self.out / "config.json").read_text())
        self.assertEqual((config["rnn_type"], config["hidden_size"], config["hidden_layers"]), ("gru", 64, 2))
        for request in self.requests():
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
        self.assertEqual(self.requests()[0]["cases"], [["fp32", 1], ["fp32", 8], ["bf16", 1], ["bf16", 8]])

    def test_one_way_of_pytorch_is_enough(self) -> None:
        self.times["plain"] = ["no such kernel", "no such kernel"]
        code, output, _ = self.run_script("--cases", "fp16:32")
        self.assertEqual(code, 0, output)
        self.assertIn("| fp16 | 32 | 30.00 | 70.00 | did not run | 0.429 |", output)
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

    def test_bad_usage(self) -> None:
        wrong = [["--cases", "fp16"], ["--cases", "fp8:4"], ["--cases", "fp16:0"], ["--cases", "tf32:1", "--backend", "cpu"]]
        wrong += [["--cell", "mlp"], ["--frames", "0"], ["--rounds", "0"], ["--kbench", "no-such-program"], ["--unknown"]]
        for options in wrong:
            with self.subTest(options):
                code, output, document = self.run_script(*options)
                self.assertEqual((code, document), (2, {}), output)



if __name__ == "__main__":
    unittest.main()

"""train-curves on planted curves: which it accepts, which it does not, and what it reads of `kbench train`. Needs numpy;
the whole script also runs where PyTorch and transformers are. Takes the built kbench.
"""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
try:
    import numpy as np
    from verification import curves, gpt2
    from verification.process import Stop
except ImportError:
    sys.exit(print("Python has no numpy") or 77)

KBENCH = ""
STEPS = 60
ENTROPY = 1.8


def has(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) for package in packages)


def falling(to: float) -> list[float]:
    """From 11 nats; of the last 10 steps the first is 2e-7 above `to`."""
    return [to + (11 - to) * 0.7**step for step in range(STEPS)]


def script(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "scripts/train-curves"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


class Planted(unittest.TestCase):
    """Files as --out writes them, judged anew with --read."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        precisions = ("fp32", "bf16", "fp16")
        self.kbench: dict[str, list[Any]] = {precision: falling(1.85) for precision in precisions}
        self.torch: dict[str, list[Any]] = {precision: falling(1.85) for precision in precisions}

    def judge(self, *arguments: str) -> subprocess.CompletedProcess:
        settings = {"model": "gpt2", "steps": STEPS, "batch": 8, "seq": 1024, "lr": 3e-4, "weight_decay": 0, "clip_norm": 0}
        runs = {
            name: [{"precision": precision, "losses": losses} for precision, losses in side.items()]
            for name, side in (("kbench", self.kbench), ("torch", self.torch))
        }
        document = {"kbench": "kbench 0", "torch": {"device": None, "versions": {"torch": "0"}}, "settings": settings}
        document |= {"entropy": ENTROPY, "source": [ENTROPY] * STEPS, "runs": runs}
        (self.folder / "curves.json").write_text(json.dumps(document))
        return script("--read", str(self.folder / "curves.json"), *arguments)

    def passes(self) -> None:
        done = self.judge()
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertNotIn("FAILED", done.stdout)

    def fails(self, text: str) -> None:
        done = self.judge()
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        self.assertEqual(done.stdout.count("**FAILED**"), 1, done.stdout)
        self.assertIn(text, done.stdout)

    def test_the_same_curves(self) -> None:
        self.passes()

    def test_one_step_of_fp32_0_6_percent_off_is_found(self) -> None:
        self.kbench["fp32"][29] *= 1.004
        self.passes()
        self.kbench["fp32"][29] *= 1.006 / 1.004
        self.fails("**0.600% (step 30), over 0.5%**")

    def test_below_pytorch_is_off_as_well(self) -> None:
        self.kbench["fp32"][3] *= 0.994
        self.fails("**0.600% (step 4), over 0.5%**")

    def test_an_fp32_that_did_not_learn_enough(self) -> None:
        for side in (self.kbench, self.torch):
            side |= {precision: falling(ENTROPY * 1.06) for precision in side}
        self.fails("**+6.000%, over 5.0%**")

    def test_an_fp32_below_the_entropy_has_seen_its_targets(self) -> None:
        for side in (self.kbench, self.torch):
            side |= {precision: falling(ENTROPY * 0.94) for precision in side}
        self.fails("**-6.000%, over 5.0%**")

    def test_16_bits_whose_end_is_1_2_percent_off_are_found(self) -> None:
        self.kbench["bf16"] = falling(1.85 * 1.008)
        self.passes()
        self.kbench["bf16"] = falling(1.85 * 1.012)
        self.fails("**+1.200%, over 1.0%**")

    def test_16_bits_may_differ_on_the_way(self) -> None:
        self.kbench["fp16"][10] *= 1.05
        self.passes()

    def test_pytorchs_16_bits_are_told_and_decide_nothing(self) -> None:
        self.torch["fp16"] = falling(1.85 * 1.05)
        self.passes()

    def test_a_loss_that_is_not_finite(self) -> None:
        self.torch["fp32"][7] = None  # as JSON has it
        self.fails("nan% (step 8)")

    def test_curves_are_drawn(self) -> None:
        if not has("matplotlib"):
            self.skipTest("Python has no matplotlib")
        for kind, first in (("svg", b"<?xml"), ("png", b"\x89PNG")):
            done = self.judge("--plot", str(self.folder / f"curves.{kind}"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue((self.folder / f"curves.{kind}").read_bytes().startswith(first))


class Source(unittest.TestCase):
    def test_its_tokens_have_its_entropy(self) -> None:
        source = curves.MarkovSource(3)
        np.testing.assert_allclose(source.transitions.sum(1), 1, rtol=1e-14)
        tokens = source.tokens(200_000)
        self.assertEqual((tokens.dtype, int(tokens.min()), int(tokens.max())), (np.int32, 0, 63))
        # A token's loss has a deviation of about 1.3: 0.003 of the mean of 200,000.
        self.assertAlmostEqual(float(source.losses(tokens.reshape(1, 1, -1))[0]), source.entropy, delta=0.015)
        counts = np.zeros((64, 64))
        np.add.at(counts, (tokens[:-1], tokens[1:]), 1)
        conditional = counts / counts.sum(1, keepdims=True)
        self.assertLess(float(np.abs(conditional - source.transitions).max()), 0.1)
        self.assertTrue(np.array_equal(tokens, curves.MarkovSource(3).tokens(200_000)))
        self.assertFalse(np.array_equal(tokens[:100], curves.MarkovSource(4).tokens(100)))


class Kbench(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def test_losses_of_every_step_are_read(self) -> None:
        (self.folder / "config.json").write_text(json.dumps(gpt2.CONFIGS["gpt2-tiny"]))
        command = [KBENCH, "train", "--config", str(self.folder / "config.json"), "--backend", "cpu", "--batch", "2"]
        command += ["--seq", "8", "--steps", "12", "--log-every", "1"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        losses, skipped = curves.parse_losses(text, 12)
        self.assertEqual((len(losses), skipped), (12, []))
        self.assertAlmostEqual(losses[0], float(np.log(503)), delta=0.5)
        self.assertIn(f"loss {losses[0]:.4f} -> {curves.end(losses):.4f}", text)
        with self.assertRaisesRegex(Stop, "told of 12 steps; it was asked for 13"):
            curves.parse_losses(text, 13)

    def test_skipped_steps_are_read(self) -> None:
        text = "step 2: a gradient is not finite at loss scale 65536; skipped\n"
        lines = [f"step {step:>6}/2  loss 6.2136 (entropy 1.8215)  norm 2.3  1 tokens/s  0 s left\n" for step in (1, 2)]
        self.assertEqual(curves.parse_losses(lines[0] + text + lines[1], 2), ([6.2136, 6.2136], [2]))

    def test_a_small_model_learns_as_in_pytorch(self) -> None:
        if not has("torch", "transformers"):
            self.skipTest("Python has no torch or no transformers")
        out = self.folder / "curves.json"
        done = script("--kbench", KBENCH, "--backend", "cpu", "--model", "gpt2-tiny", "--precisions", "fp32", "--steps", "20",
                      "--batch", "4", "--seq", "16", "--lr", "1e-3", "--out", str(out))  # fmt: skip
        document = json.loads(out.read_text())
        steps = document["judged"]["fp32"]["every step, of PyTorch's"]
        self.assertEqual((done.returncode, steps["passed"]), (1, True), done.stdout + done.stderr)  # 20 are too few
        self.assertLess(steps["value"], 1e-3)
        self.assertEqual([len(run["losses"]) for side in document["runs"].values() for run in side], [20, 20])


class Usage(unittest.TestCase):
    def test_bad_usage(self) -> None:
        wrong = [["--precisions", "bf16"], ["--precisions", "fp8"], ["--model", "gpt3"], ["--seq", "2000"], ["--steps", "0"]]
        for options in [*wrong, ["--plot", "curves.bmp"], ["--read", "no-such-file"], ["--unknown"]]:
            with self.subTest(options):
                if options[0] not in ("--plot", "--read", "--unknown") and not has("torch", "transformers"):
                    continue
                done = script("--kbench", KBENCH, *options)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    KBENCH = sys.argv.pop(1)
    unittest.main()

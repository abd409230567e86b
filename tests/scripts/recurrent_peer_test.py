"""`peer recurrent` against a cudnn_peer and a kbench that only print: which times count, and what it says where one is
missing or wrong. Needs no GPU."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/peer"

# A step takes as many microseconds as its batch by the standard algorithm, launched 2 more than as a graph; packed half
# of that by the static one, which takes no fp32. Backward takes 10 more, the weights' gradients 20 more, which the static
# algorithm does not make.
PEER = """#!{python}
import itertools, json, pathlib, sys
arguments = sys.argv[1:]
with pathlib.Path(__file__).with_name("calls").open("a") as calls:
    calls.write("cudnn" + chr(10))
if pathlib.Path(__file__).with_name("broken").exists():
    sys.exit(print("cudnn_peer: no usable GPU", file=sys.stderr) or 3)
after = lambda option: arguments[arguments.index(option) + 1].split(",")
print(json.dumps(dict(gpu="a GPU", cudnn="9.0.0")))
wrong = pathlib.Path(__file__).with_name("wrong").exists()
for precision, direction in itertools.product(after("--precision"), after("--direction")):
    print(json.dumps(dict(op="lstm", direction=direction, precision=precision, check="reference", algorithm="standard",
                          layout="packed", error=1.0 if wrong else 1e-4, passed=not wrong)))
    more = dict(fwd=0, bwd=10, wgrad=20)[direction]
    for hidden in map(int, after("--hidden")):
        for batch in map(int, after("--batch")):
            case = dict(op="lstm", direction=direction, precision=precision, hidden=hidden, batch=batch, input=8)
            standard = dict(step_us=more + batch + 2, graph_step_us=more + batch)
            print(json.dumps(case | dict(algorithm="standard", layout="packed") | standard))
            refused = precision == "fp32" or direction == "wgrad"
            static = dict(why_not="CUDNN_STATUS_NOT_SUPPORTED") if refused else dict(step_us=more + batch / 2)
            print(json.dumps(case | dict(algorithm="persist_static", layout="packed") | static))
            padded = case | dict(algorithm="persist_static", layout="padded", why_not="CUDNN_STATUS_NOT_SUPPORTED")
            print(json.dumps(padded))
sys.exit(1 if wrong else 0)
"""
# A forward takes 1000 us by `native`, 100 us more by the step-by-step provider; it refuses a batch of 9. Backward takes
# 2000 and 2100 us; the weights' gradients are of the step-by-step provider alone, 500 us.
KBENCH = """#!{python}
import itertools, json, pathlib, sys
arguments = sys.argv[1:]
with pathlib.Path(__file__).with_name("calls").open("a") as calls:
    calls.write("kbench " + " ".join(arguments) + chr(10))
after = lambda option: arguments[arguments.index(option) + 1].split(",")
rows = []
for precision, direction in itertools.product(after("--precision"), after("--direction")):
    for shape in after("--shape"):
        name = "lstm/{{}}/" + precision + "/" + direction + "/" + shape + "/hot"
        if "n9h" in shape:
            rows.append(dict(name=name.format("native"), skipped=True, skip_message="no such batch"))
            continue
        us = dict(fwd=1000.0, bwd=2000.0, wgrad=400.0)[direction]
        rows.append(dict(name=name.format("steps"), real_time=us + 100, label="slow"))
        if direction != "wgrad":
            rows.append(dict(name=name.format("native"), real_time=us, label="persistent"))
print(json.dumps(dict(context=dict(kbench="kbench 0"), benchmarks=rows)))
"""


class RecurrentPeer(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.out = self.folder / "out"
        for name, text in (("peer", PEER), ("kbench", KBENCH)):
            (self.folder / name).write_text(text.format(python=sys.executable))
            (self.folder / name).chmod(0o755)

    def run_script(self, *more: str) -> tuple[int, str, dict[str, Any]]:
        command = [sys.executable, str(SCRIPT), "recurrent", "--kbench", str(self.folder / "kbench")]
        command += ["--peer", str(self.folder / "peer"), "--out", str(self.out), "--hidden", "256", *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        written = self.out / "recurrent-peer.json"
        return done.returncode, done.stdout + done.stderr, json.loads(written.read_text()) if written.exists() else {}

    def test_the_fastest_of_each_side_is_a_steps(self) -> None:
        code, output, document = self.run_script("--batches", "1,8", "--precisions", "fp16", "--steps", "100")
        self.assertEqual(code, 0, output)
        row = document["rows"][1]
        self.assertEqual((row["kbench_us"], row["provider"], row["implementation"]), (10, "native", "persistent"))
        self.assertEqual((row["cudnn_us"]["standard"], row["cudnn_us"]["persist_static"]), (8, 4))
        self.assertAlmostEqual(row["kbench_over_best_cudnn"], 10 / 4)
        self.assertIn("| lstm | fwd | fp16 | 256 | 8 | native | 10.00 | 8.00 | 4.00 | – | – | 2.500 |", output)

    def test_what_did_not_run_has_its_reason(self) -> None:
        code, output, _ = self.run_script("--batches", "8,9", "--precisions", "fp32")
        self.assertEqual(code, 0, output)
        self.assertIn("| lstm | fwd | fp32 | 256 | 9 | – | – | 9.00 | – | – | – | – |", output)
        self.assertIn("- persist_static, fwd, fp32: CUDNN_STATUS_NOT_SUPPORTED (2 of the cases)", output)
        self.assertIn("- native, fwd, fp32: no such batch (1 of the cases)", output)

    def test_the_whole_backward_is_by_one_algorithm(self) -> None:
        directions = ("--directions", "bwd,wgrad")
        code, output, document = self.run_script("--batches", "8", "--precisions", "fp16", "--steps", "100", *directions)
        self.assertEqual(code, 0, output)
        self.assertEqual([row["direction"] for row in document["rows"]], ["bwd", "wgrad", "bwd+wgrad"])
        bwd, wgrad, both = document["rows"]
        self.assertEqual((bwd["kbench_us"], wgrad["kbench_us"], both["kbench_us"]), (20, 5, 25))
        self.assertEqual((bwd["cudnn_us"]["persist_static"], wgrad["cudnn_us"]["persist_static"]), (14, None))
        self.assertEqual((both["cudnn_us"]["persist_static"], both["cudnn_us"]["standard"]), (None, 18 + 28))
        self.assertAlmostEqual(bwd["kbench_over_best_cudnn"], 20 / 14)
        self.assertAlmostEqual(both["kbench_over_best_cudnn"], 25 / 46)
        row = "| lstm | bwd+wgrad | fp16 | 256 | 8 | native, steps | 25.00 | 46.00 | – | – | – | 0.543 |"
        self.assertIn(row, output)
        self.assertIn("- persist_static, wgrad, fp16: CUDNN_STATUS_NOT_SUPPORTED (1 of the cases)", output)

    def test_a_direction_alone_has_no_sum(self) -> None:
        _, _, document = self.run_script("--batches", "8", "--precisions", "fp16", "--directions", "fwd,bwd")
        self.assertEqual([row["direction"] for row in document["rows"]], ["fwd", "bwd"])

    def test_the_sides_take_turns_and_kbench_verifies_once(self) -> None:
        self.run_script("--batches", "1", "--rounds", "2")
        calls = (self.folder / "calls").read_text().splitlines()
        self.assertEqual([call.split()[0] for call in calls], ["cudnn", "kbench"] * 2)
        self.assertEqual(["--no-verify" in call for call in calls if "kbench" in call], [False, True])

    def test_a_peer_that_computes_something_else_fails(self) -> None:
        (self.folder / "wrong").touch()
        code, output, document = self.run_script("--batches", "1", "--precisions", "fp16")
        self.assertEqual(code, 1, output)
        self.assertIn("cuDNN failed", output)
        self.assertTrue(document["rows"])

    def test_no_gpu(self) -> None:
        (self.folder / "broken").touch()
        code, output, _ = self.run_script("--batches", "1")
        self.assertEqual(code, 3)
        self.assertIn("no usable GPU", output)

    def test_bad_usage(self) -> None:
        for options in (["--batches", "0"], ["--precisions", "fp8"], ["--cells", "mlp"], ["--directions", "dgrad"], ["--steps", "0"], ["--unknown"]):
            with self.subTest(options):
                self.assertEqual(self.run_script(*options)[0], 2)
        self.assertEqual(self.run_script("--peer", "no-such-program")[0], 3)


if __name__ == "__main__":
    unittest.main()

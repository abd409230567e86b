"""gpu-verify on a tiny model on the CPU, with NumPy's fp64 forward as the truth: it passes a right kbench, and no wrong
one. Its one argument is the built kbench. Exits 77 (ctest's skip) where NumPy is missing.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KBENCH = sys.argv.pop(1) if len(sys.argv) > 1 else str(ROOT / "kbench")

# Runs kbench, then alters the logits that it wrote.
CULPRIT = """#!{python}
import subprocess, sys
import numpy as np
code = subprocess.call(["{kbench}", *sys.argv[1:]])
path = sys.argv[sys.argv.index("--dump-logits") + 1]
logits = np.load(path)
{change}
np.save(path, logits)
sys.exit(code)
"""

# Stands in for the program that plants truths: writes a matrix of one row, and ends as it is told to.
TRUTHS = """#!{python}
import json, sys
seed = int(sys.argv[sys.argv.index("--seed") + 1])
backend = sys.argv[sys.argv.index("--backend") + 1]
print("big-copy: {result}, 1.0 s", file=sys.stderr)
if {code} == 3:
    sys.exit(print("truths: no usable GPU", file=sys.stderr) or 3)
print("| big-copy | {result} |\\n1 truths: of seed", seed, backend)
matrix = {{"schema": "kbench.truths/1", "seed": seed, "truths": [{{"truth": "big-copy", "result": "{result}"}}]}}
json.dump(matrix, open(sys.argv[sys.argv.index("--json") + 1], "w"))
sys.exit({code})
"""


class GpuVerify(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)

    def verify(self, kbench: str, *arguments: str) -> tuple[int, dict]:
        out = self.directory / "verify.json"
        command = [sys.executable, str(ROOT / "scripts" / "gpu-verify"), "--kbench", kbench, "--out", str(out)]
        command += ["--backend", "cpu", "--truth", "numpy", "--models", "gpt2-tiny", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.directory)
        return done.returncode, json.loads(out.read_text()) if out.exists() else {"output": done.stdout + done.stderr}

    def culprit(self, change: str) -> str:
        program = self.directory / "kbench"
        program.write_text(CULPRIT.format(python=sys.executable, kbench=os.path.abspath(KBENCH), change=change))
        program.chmod(0o755)
        return str(program)

    def truths(self, result: str, code: int) -> tuple[int, dict]:
        build = self.directory / "build"
        (build / "tests").mkdir(parents=True)
        program = build / "tests" / "truths"
        program.write_text(TRUTHS.format(python=sys.executable, result=result, code=code))
        program.chmod(0o755)
        one_case = ["--precisions", "fp32", "--attentions", "fused", "--cases", "1x1"]
        return self.verify(KBENCH, *one_case, "--truths", str(build), "--seed", "5")

    def test_truths_are_planted_with_the_seed_and_kept(self) -> None:
        code, document = self.truths("ok", 0)
        self.assertEqual((code, document["counts"]), (0, {"passed": 2}), document)
        self.assertEqual(document["truths"]["matrix"]["seed"], 5)
        self.assertEqual(document["truths"]["matrix"]["truths"][0]["truth"], "big-copy")
        self.assertIn("of seed 5 cpu", (self.directory / "verify-truths.log").read_text())

    def test_a_wrong_truth_fails(self) -> None:
        code, document = self.truths("WRONG", 1)
        self.assertEqual((code, document["counts"]), (1, {"failed": 1, "passed": 1}), document)
        self.assertEqual(document["truths"]["reason"], "1 truths: of seed 5 cpu")

    def test_truths_that_nothing_can_count_are_no_pass(self) -> None:
        code, document = self.truths("", 3)
        self.assertEqual((code, document["counts"]), (3, {"passed": 1, "unavailable": 1}), document)
        self.assertEqual(document["truths"]["reason"], "truths: no usable GPU")

    def test_a_build_without_truths_is_bad_usage(self) -> None:
        code, document = self.verify(KBENCH, "--truths", str(self.directory))
        self.assertEqual(code, 2, document)
        self.assertIn("no tests/truths there", document["output"])

    def test_logits_agree_with_an_independent_forward(self) -> None:
        code, document = self.verify(KBENCH, "--precisions", "fp32,fp64")
        self.assertEqual(code, 0, document)
        self.assertEqual(document["counts"], {"passed": 12})
        self.assertIn("git_revision", document["kbench"])

    def test_logits_of_the_llama_family_agree_with_an_independent_forward(self) -> None:
        models = "llama-tiny,llama-yarn-tiny,mistral-tiny,qwen2-tiny,qwen3-tiny"
        code, document = self.verify(KBENCH, "--models", models, "--phases", "forward,decode", "--precisions", "fp64",
                                     "--cases", "3x40")
        self.assertEqual((code, document["counts"]), (0, {"passed": 10}), document)

    def test_a_decode_step_over_a_given_cache_agrees_with_the_forward(self) -> None:
        code, document = self.verify(KBENCH, "--phases", "decode", "--precisions", "fp32", "--cases", "3x17")
        self.assertEqual((code, document["counts"]), (0, {"passed": 1}), document)
        wrong = self.culprit("logits[-1, -1, -1] += 1e-3")
        code, document = self.verify(wrong, "--phases", "decode", "--precisions", "fp32", "--cases", "3x17")
        self.assertEqual((code, document["counts"]), (1, {"failed": 1}), document)

    def test_one_wrong_logit_fails(self) -> None:
        wrong = self.culprit("logits[-1, -1, -1] += 1e-3")
        code, document = self.verify(wrong, "--precisions", "fp32", "--attentions", "fused", "--cases", "3x17")
        self.assertEqual((code, document["counts"]), (1, {"failed": 1}), document)

    def test_a_logit_that_is_not_a_number_fails(self) -> None:
        wrong = self.culprit("logits[0, 0, 0] = np.nan")
        code, document = self.verify(wrong, "--precisions", "fp32", "--attentions", "fused", "--cases", "1x1")
        self.assertEqual((code, document["counts"]), (1, {"failed": 1}), document)

    def test_what_kbench_cannot_do_is_skipped_and_no_pass(self) -> None:
        code, document = self.verify(KBENCH, "--precisions", "tf32", "--attentions", "fused", "--cases", "1x1")
        self.assertEqual((code, document["counts"]), (3, {"skipped": 1}), document)
        self.assertIn("tf32", document["cases"][0]["reason"])

    def test_an_unknown_model_is_bad_usage(self) -> None:
        code, document = self.verify(KBENCH, "--models", "gpt5")
        self.assertEqual(code, 2, document)
        self.assertIn("gpt2-large", document["output"])


class Labels(unittest.TestCase):
    """What --tests runs is what has the label gpu: a program that loses it is never run, and nobody hears of it."""

    def test_each_test_of_a_gpu_program_has_the_label(self) -> None:
        build = pathlib.Path(KBENCH).resolve().parents[1]
        if not (build / "tests" / "profile_tests").is_file():
            self.skipTest("a build without CUDA")
        with tempfile.TemporaryDirectory() as beside:  # in the build itself it would write over the log of the ctest that runs this
            pathlib.Path(beside, "CTestTestfile.cmake").write_text(f'subdirs("{build}")\n', encoding="utf-8")
            done = subprocess.run(["ctest", "--test-dir", beside, "-N", "-L", "^gpu$"], capture_output=True, text=True)
        listed = [name for _, _, name in (line.partition(": ") for line in done.stdout.splitlines()) if name]
        for program in ("profile", "profile_alone_gpu"):
            tests = subprocess.run([str(build / "tests" / f"{program}_tests"), "--gtest_list_tests"], capture_output=True, text=True)
            names = sum(line.startswith("  ") for line in tests.stdout.splitlines())
            self.assertGreater(names, 0)
            self.assertEqual(sum(name.startswith(f"{program}.") for name in listed), names, done.stdout)
        for name in ("kernels.", "account.recurrent", "scripts.gpu_faults"):
            self.assertTrue(any(entry.startswith(name) for entry in listed), f"{name}: {done.stdout}")


if __name__ == "__main__":
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("skipped: the Python package numpy is missing")
        sys.exit(77)
    unittest.main()

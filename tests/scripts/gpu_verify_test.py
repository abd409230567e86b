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

    def test_logits_agree_with_an_independent_forward(self) -> None:
        code, document = self.verify(KBENCH, "--precisions", "fp32,fp64")
        self.assertEqual(code, 0, document)
        self.assertEqual(document["counts"], {"passed": 12})
        self.assertIn("git_revision", document["kbench"])

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


if __name__ == "__main__":
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("skipped: the Python package numpy is missing")
        sys.exit(77)
    unittest.main()

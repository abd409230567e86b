"""causes-verify on a program that answers as kbench does, with planted figures. Needs no GPU."""

import subprocess
import unittest

from planted_program import PlantedProgram

# $MISSED and $UNDECIDED are what it says of every run; runs whose options hold $FAILS fail.
PROGRAM = """\
    #!{python}
    import json, os, pathlib, sys
    if sys.argv[1] == "run":
        if os.environ.get("FAILS", "nothing") in " ".join(sys.argv):
            sys.exit(print("kbench: the device is lost", file=sys.stderr) or int(os.environ.get("CODE", 1)))
        out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
        out.mkdir()
        (out / "result.json").write_text("{{}}")
        print("a report")
    else:
        columns = sys.argv[sys.argv.index("-c") + 1].split(",")
        bad = os.environ.get("BAD", "nothing") in sys.argv[2]
        row = dict.fromkeys(columns, 1000.0) | dict(status="failed" if bad else "done", reason="wrong" if bad else None, latency_ms=4.25)
        row |= dict(misfit_pct=json.loads(os.environ["MISSED"]), undecided_pct=json.loads(os.environ["UNDECIDED"]))
        print(json.dumps([row]))
"""


class CausesVerify(PlantedProgram):
    PROGRAM = PROGRAM
    SCRIPT = "causes-verify"

    def setUp(self) -> None:
        super().setUp()
        self.out = self.folder / "out"

    def verify(self, *options: object, missed: str = "3.5", undecided: str = "0",
               **environment: str) -> subprocess.CompletedProcess:
        return self.script("--kbench", str(self.program), *map(str, options), MISSED=missed, UNDECIDED=undecided, **environment)

    def test_explained_cases_pass_and_are_kept(self) -> None:
        done = self.verify("--out", self.out, "--only", "gpt2-large-fp16-b1,deepspeech2-fp16-train-b32", "--runs", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| gpt2-large-fp16-b1-2 | 4.25 | 1.00 |", done.stdout)
        self.assertEqual((self.out / "causes.md").read_text(), done.stdout)
        self.assertEqual((self.out / "deepspeech2-fp16-train-b32-1/printed.txt").read_text(), "a report\n")
        (self.out / "causes.md").unlink()
        again = self.verify("--read", self.out, "--only", "gpt2-large-fp16-b1", "--runs", "2", FAILS="run")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertFalse((self.out / "causes.md").exists(), "reading writes nothing")

    def test_what_is_missed_undecided_or_unknown_fails(self) -> None:
        for missed, undecided, what in (("10.5", "0", "10.5 % is missed, 10 % may be"), ("1", "12", "12.0 % is undecided"),
                                        ("null", "0", "what is missed is not known")):
            with self.subTest(what):
                out = self.folder / what[:4]
                done = self.verify("--out", out, "--only", "gpt2-large-fp64-b4", missed=missed, undecided=undecided)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"gpt2-large-fp64-b4: {what}", done.stderr)
                self.assertIn("| gpt2-large-fp64-b4 | 4.25 |", done.stdout, "what was measured is shown")

    def test_a_failure_does_not_end_the_others_but_a_missing_gpu_does(self) -> None:
        options = ("--out", self.out, "--only", "gpt2-large-fp16-b1,gpt2-large-bf16-b1")
        done = self.verify(*options, FAILS="--precision fp16")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the device is lost", done.stderr)
        self.assertIn("| gpt2-large-bf16-b1 |", done.stdout)
        done = self.verify("--out", self.folder / "bad", *options[2:], BAD="fp16")
        self.assertEqual(done.returncode, 1)
        self.assertIn("gpt2-large-fp16-b1: failed: wrong", done.stderr)
        self.assertIn("| gpt2-large-bf16-b1 |", done.stdout)
        done = self.verify(*options, FAILS="--precision fp16", CODE="3")
        self.assertEqual((done.returncode, done.stdout), (3, ""))

    def test_bad_usage(self) -> None:
        for options, what in ((("--out", self.out, "--only", "gpt3"), "--only 'gpt3'"), (("--read", self.out), "no such directory"),
                              (("--out", self.out, "--runs", "0"), "--runs 0")):
            done = self.verify(*options)
            self.assertEqual(done.returncode, 2)
            self.assertIn(what, done.stderr)


if __name__ == "__main__":
    unittest.main()

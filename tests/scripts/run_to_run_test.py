"""run-to-run on a program that writes results of planted medians and intervals. Needs no GPU."""

import gzip
import json
import pathlib
import re
import subprocess
import unittest

from planted_program import PlantedProgram

# Medians spread by 0.2 %; $INTERVAL is the half-width that it claims, which the first $FEW runs have too few
# samples for; the run of number $FAILS fails.
PROGRAM = """\
    #!{python}
    import json, os, pathlib, random, sys
    count = pathlib.Path(__file__).with_name("count")
    number = int(count.read_text()) + 1 if count.exists() else 1
    count.write_text(str(number))
    if number == int(os.environ.get("FAILS", 0)):
        sys.exit(print("kbench: the device is lost", file=sys.stderr) or 3)
    half = float(os.environ["INTERVAL"])
    median = 4 * random.Random(number).gauss(1, 0.002)
    latency = dict(samples_ms=[median] * 3, summary_ms=dict(median=median, mean=median, ci_low=median * (1 - half),
                                                            ci_high=median * (1 + half), independent=5 if number <= int(os.environ.get("FEW", 0)) else 60))
    point = dict(status="done", end_to_end=dict(latency=latency), conditions=dict(sm_clock_mhz=dict(value=1700), power_w=dict(value=690)))
    out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
    (out / "result.json").write_text(json.dumps(dict(environment=dict(started_at="now"), points=[point])))
"""


class RunToRun(PlantedProgram):
    PROGRAM = PROGRAM
    SCRIPT = "run-to-run"

    def setUp(self) -> None:
        super().setUp()
        self.out = self.folder / "runs.json.gz"

    def runs(self, count: int, **environment: str) -> subprocess.CompletedProcess:
        return self.script("--kbench", str(self.program), "--runs", str(count), "--out", str(self.out), "--", "--model", "x",
                           **environment)

    def shares(self, text: str) -> list[float]:
        return [float(share) for share in re.findall(r"\(([0-9.]+) %\)", text)]

    def test_intervals_that_are_too_narrow_do_not_meet(self) -> None:
        narrow = self.runs(24, INTERVAL="0.0003")
        self.assertEqual(narrow.returncode, 0, narrow.stderr)
        own, difference = self.shares(narrow.stdout)
        self.assertLess(own, 30)
        self.assertTrue(88 <= difference <= 100, narrow.stdout)
        again = self.script("--read", str(self.out))
        self.assertTrue(narrow.stdout.endswith(again.stdout), "a file says what its runs said")
        (self.folder / "count").unlink()
        wide = self.runs(24, INTERVAL="0.004")
        self.assertGreater(self.shares(wide.stdout)[0], 90)

    def test_a_run_with_too_few_independent_samples_has_no_interval(self) -> None:
        some = self.runs(12, INTERVAL="0.004", FEW="7")
        self.assertEqual(some.stdout.count("no interval"), 7, some.stdout)
        self.assertIn("own intervals: 5 of 12 runs have one", some.stdout)
        self.assertIn("of 10 pairs meet", some.stdout)
        (self.folder / "count").unlink()
        self.assertIn("own intervals: 1 of 12 runs have one\n", self.runs(12, INTERVAL="0.004", FEW="11").stdout)

    def test_a_run_that_fails_ends_it_and_what_was_measured_stays(self) -> None:
        failed = self.runs(10, INTERVAL="0.001", FAILS="8")
        self.assertEqual(failed.returncode, 3)
        self.assertIn("the device is lost", failed.stderr)
        self.assertEqual(len(json.loads(gzip.decompress(self.out.read_bytes()))["runs"]), 7)
        whole = self.out.read_bytes()
        for bad in (whole, whole[:-20], whole[:40] + b"x" + whole[41:]):
            self.out.write_bytes(bad)
            short = self.script("--read", str(self.out))
            self.assertEqual((short.returncode, short.stderr.count("\n")), (2, 1), short.stderr)

    def test_bad_usage_is_one_line(self) -> None:
        for arguments in ([], ["--runs", "3", "--out", str(self.out), "--", "--model", "x"], ["--read", str(self.program)]):
            bad = self.script(*arguments)
            self.assertEqual((bad.returncode, bad.stderr.count("\n")), (2, 1), bad.stderr)


if __name__ == "__main__":
    unittest.main()

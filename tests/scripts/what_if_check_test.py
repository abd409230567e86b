"""what-if-check on a program that measures and expects planted times. Needs no GPU."""

import json
import pathlib
import subprocess
import unittest

from planted_program import PlantedProgram

# A GPU of 132 SMs on which a shape takes 1 ms; on n of them it is expected to take 132 / n ms, and takes $FACTOR times
# that. Every call is noted.
PROGRAM = """\
    #!{python}
    import json, os, pathlib, sys
    arguments = sys.argv[1:]
    with pathlib.Path(__file__).with_name("calls").open("a") as calls:
        calls.write(json.dumps(arguments) + "\\n")
    after = lambda option: arguments[arguments.index(option) + 1]
    factor = float(os.environ.get("FACTOR", 1))
    if arguments[0] == "report":
        sms = json.loads((pathlib.Path(after("--what-if")) / "result.json").read_text())["environment"]["gpu"]["multiprocessors"]
        expected = 132 / sms
        measured = expected * factor
        check = dict(unavailable="", measured_ms=measured, error=expected / measured - 1, inside=abs(factor - 1) < 0.1)
        print(json.dumps([dict(unavailable=os.environ.get("REFUSED", ""), here_ms=1, expected_ms=expected, low_ms=expected * 0.9,
                               high_ms=expected * 1.1, check=check)]))
        sys.exit(0)
    sms = int(after("--sms")) if "--sms" in arguments else 132
    if sms == int(os.environ.get("FAILS", 0)):
        sys.exit(print("kbench: the device is lost", file=sys.stderr) or 3)
    scaling = dict(unavailable="", runs=[dict(multiprocessors=n) for n in (132, 96, 64, 32)])
    if "OLD" in os.environ:
        scaling = dict(unavailable="the driver has no cuGreenCtxCreate", runs=[])
    point = dict(status="done", conditions=dict(sm_clock_mhz=dict(value=1700)), sm_scaling=scaling)
    out = pathlib.Path(after("--out"))
    out.mkdir()
    gpu = dict(multiprocessors=sms)
    points = [point] * int(os.environ.get("POINTS", 1))
    (out / "result.json").write_text(json.dumps(dict(environment=dict(gpu=gpu), points=points)))
"""


class WhatIfCheck(PlantedProgram):
    PROGRAM = PROGRAM
    SCRIPT = "what-if-check"

    def setUp(self) -> None:
        super().setUp()
        self.out = self.folder / "what-if.json"

    def check(self, *shapes: str, options: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess:
        return self.script("--kbench", str(self.program), "--out", str(self.out), *options, "--", *(shapes or ("--model x",)),
                           **environment)

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]

    def expectations(self) -> list[dict]:
        return json.loads(self.out.read_text())["expectations"]

    def test_every_shape_is_expected_on_the_counts_that_the_whole_run_names(self) -> None:
        done = self.check("--model x --seq 8", "--model y", FACTOR="1.05")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = self.expectations()
        self.assertEqual([(one["shape"], one["multiprocessors"]) for one in found],
                         [(shape, n) for shape in ("--model x --seq 8", "--model y") for n in (96, 64, 32)])
        for one in found:
            self.assertAlmostEqual(one["measured_ms"], 1.05 * 132 / one["multiprocessors"])
            self.assertAlmostEqual(one["error"], 1 / 1.05 - 1)
        self.assertIn("| --model x --seq 8 | 96 | 1.375 | 1.238 to 1.513 | 1.444 | -4.8 | yes |", done.stdout)
        self.assertIn("6 of 6 measurements are inside their interval; errors of -4.8 to -4.8 %", done.stdout)

    def test_the_whole_device_is_counted_and_parts_are_only_timed(self) -> None:
        self.check()
        whole, part = [call for call in self.calls() if call[0] == "run"][:2]
        self.assertEqual(whole[1:3], ["--model", "x"])
        self.assertNotIn("--sms", whole)
        self.assertEqual(whole[whole.index("--counters") + 1], "core")
        self.assertEqual((part[part.index("--sms") + 1], part[part.index("--counters") + 1]), ("96", "none"))
        for call in (whole, part):
            self.assertIn("--no-verify", call)

    def test_counts_may_be_named(self) -> None:
        done = self.check(options=("--sms", "48"), OLD="1")
        self.assertEqual([one["multiprocessors"] for one in self.expectations()], [48], done.stderr)

    def test_what_lies_outside_is_shouted_and_no_failure(self) -> None:
        done = self.check(FACTOR="2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| -50.0 | NO |", done.stdout)
        self.assertIn("0 of 3 measurements are inside", done.stdout)

    def test_failures_end_it_and_what_was_checked_stays(self) -> None:
        lost = self.check(FAILS="64")
        self.assertEqual(lost.returncode, 3)
        self.assertIn("the device is lost", lost.stderr)
        self.assertEqual(len(self.expectations()), 1)
        for environment, code, words in (({"OLD": "1"}, 3, "no cuGreenCtxCreate; name them by --sms"), ({"POINTS": "2"}, 1, "2 points"),
                                         ({"REFUSED": "it has no roofs"}, 1, "nothing is expected: it has no roofs")):
            failed = self.check(**environment)
            self.assertEqual((failed.returncode, failed.stderr.count("\n")), (code, 1), failed.stderr)
            self.assertIn(words, failed.stderr)

    def test_bad_usage_is_one_line(self) -> None:
        for arguments in ([], ["--out", str(self.out)], ["--sms", "a", "--out", str(self.out), "--", "--model x"]):
            bad = self.script(*arguments)
            self.assertEqual((bad.returncode, bad.stderr.count("\n")), (2, 1), bad.stderr)


if __name__ == "__main__":
    unittest.main()

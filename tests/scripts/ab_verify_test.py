"""ab-verify on a program that writes comparisons of planted verdicts. Needs no GPU."""

import json
import subprocess
import unittest

from planted_program import PlantedProgram

# Trial N of those without a difference says $FALSE where N is below $HOW_MANY; those with one say $FOUND.
PROGRAM = """\
    #!{python}
    import json, os, pathlib, shlex, sys
    if "--version" in sys.argv:
        sys.exit(print("kbench of a test"))
    option = lambda name: sys.argv[sys.argv.index(name) + 1]
    sides = [shlex.split(option(name)) for name in ("--a", "--b")]
    assert all(pathlib.Path(side[3]).is_file() for side in sides), sides
    count = pathlib.Path(__file__).with_name("count")
    number = int(count.read_text()) if count.exists() else 0
    count.write_text(str(number + 1))
    if number == int(os.environ.get("FAILS", -1)):
        sys.exit(print("kbench: the device is lost", file=sys.stderr) or 3)
    is_planted = sides[0][4] != sides[1][4]
    assert is_planted == (number % 3 == 2)
    verdict = os.environ.get("FOUND", "slower") if is_planted else "a small difference"
    if not is_planted and number < int(os.environ.get("HOW_MANY", 0)):
        verdict = "lower"
    point = dict(verdict=verdict, ratio=1, ratio_low=1, ratio_high=1, pairs=[dict(a_ms=1, b_ms=1)] * (10 + number))
    out = pathlib.Path(option("--out"))
    out.mkdir()
    (out / "ab.json").write_text(json.dumps(dict(machine="a CPU", ended="so", points=[point])))
"""


class AbVerify(PlantedProgram):
    PROGRAM = PROGRAM
    SCRIPT = "ab-verify"

    def trials(self, count: int, **environment: str) -> subprocess.CompletedProcess:
        self.out = self.folder / "trials.json.gz"
        (self.folder / "count").unlink(missing_ok=True)
        self.out.unlink(missing_ok=True)
        return self.script("--kbench", str(self.program), "--trials", str(count), "--out", str(self.out), **environment)

    def test_what_is_as_stated_passes(self) -> None:
        done = self.trials(40)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()[-5:]
        self.assertEqual(lines[0], "a CPU; kbench of a test")
        self.assertIn("wall, runs of 1.0 ms, planted 0 %: B is higher in 0 of 20, lower in 0, cannot tell in 0; 10 to 65 pairs", lines[1])
        self.assertIn("wall, runs of 1.0 ms, planted 1 %: B is higher in 10 of 10, lower in 0", lines[2])
        self.assertIn("printed, runs of 1.0 ms, planted 0 %: B is higher in 0 of 20", lines[3])
        self.assertIn("printed, runs of 1.0 ms, planted 1 %: B is higher in 10 of 10", lines[4])
        self.assertEqual(self.script("--read", str(self.out)).stdout.splitlines(), lines)

    def test_five_in_a_hundred_and_chance_are_the_limit(self) -> None:
        # 20 trials with a true rate of 5 % have at most 3 false ones in 97.5 % of cases. Trials 0, 1, 6 and 7 are of wall.
        self.assertEqual(self.trials(40, HOW_MANY="7").returncode, 0)
        self.assertEqual(self.trials(40, HOW_MANY="8").returncode, 1)

    def test_planted_differences_must_be_found_the_right_way(self) -> None:
        for found in ("cannot tell", "a small difference", "faster"):
            self.assertEqual(self.trials(4, FOUND=found).returncode, 1, found)

    def test_what_was_measured_stays(self) -> None:
        failed = self.trials(40, FAILS="5")
        self.assertEqual(failed.returncode, 3, failed.stderr)
        self.assertIn("the device is lost", failed.stderr)
        again = self.script("--kbench", str(self.program), "--out", str(self.out))
        self.assertEqual((again.returncode, again.stderr.count("\n")), (2, 1), again.stderr)
        self.assertIn("must be a new file", again.stderr)
        self.assertIn("of 2,", self.script("--read", str(self.out)).stdout)

    def test_mistakes_end_with_2(self) -> None:
        broken = self.folder / "broken.json.gz"
        broken.write_text(json.dumps({}))
        for arguments in ([], ["--trials", "1", "--out", "x"], ["--planted", "0", "--out", "x"], ["--read", str(broken)],
                          ["--out", str(self.folder / "nowhere/x")]):
            bad = self.script("--kbench", str(self.program), *arguments)
            self.assertEqual((bad.returncode, bad.stderr.count("\n")), (2, 1), bad.stderr)


if __name__ == "__main__":
    unittest.main()

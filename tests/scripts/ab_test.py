"""kbench ab with two programs of planted times, and with any commands. Needs no GPU. Argument: the kbench to test."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

KBENCH = sys.argv.pop(1)

# A result of the real kbench whose times are times $SLOWER, which differ from run to run by 0.2 %; run $FAILS fails.
PROGRAM = """\
    #!{python}
    import gzip, json, os, pathlib, random, sys, time
    here = pathlib.Path(__file__)
    if "--help" in sys.argv:
        sys.exit(0)
    if "--dry-run" in sys.argv:
        sys.exit(2 if "--latency-only" in sys.argv and here.name == "old" else 0)
    with here.with_name("order").open("a") as order:
        order.write(here.name[0] + ("" if "--no-verify" in sys.argv else "v"))
    number = len(here.with_name("order").read_text())
    if number >= int(os.environ.get("FAILS", 10**9)):
        sys.exit(print("kbench: the device is lost", file=sys.stderr) or 3)
    if here.name == "old" and "--latency-only" in sys.argv:
        sys.exit(print("kbench: unknown option --latency-only", file=sys.stderr) or 2)
    time.sleep(float(os.environ.get("SECONDS", 0)))
    factor = random.Random(number).gauss(1, 0.002) * float(os.environ["SLOWER"] if here.name == "new" else 1)
    result = json.loads(here.with_name("result.json").read_text())
    latency = result["points"][0]["end_to_end"]["latency"]
    latency["samples_ms"] = [factor * ms for ms in latency["samples_ms"]]
    latency["summary_ms"]["median"] *= factor
    out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
    (out / "result.json.gz").write_bytes(gzip.compress(json.dumps(result).encode()))
    (out / "report.html").write_text("large")
"""


class Ab(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.out = self.folder / "out"
        subprocess.run([KBENCH, "run", "--model", "mlp", "--backend", "cpu", "--precision", "fp32", "--latency-only", "--quick",
                        "--no-verify", "--out", str(self.folder)], check=True, capture_output=True, timeout=100)
        for name in ("old", "new"):
            (self.folder / name).write_text(textwrap.dedent(PROGRAM).format(python=sys.executable))
            (self.folder / name).chmod(0o755)

    def command(self, *arguments: str) -> list[str]:
        return [KBENCH, "ab", "--a", str(self.folder / "old"), "--b", str(self.folder / "new"), "--out", str(self.out),
                *arguments, "--", "--model", "mlp"]

    def ab(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=100, env=os.environ | environment)

    def document(self) -> dict:
        return json.loads((self.out / "ab.json").read_text())

    def test_two_percent_are_found_and_fail_where_that_is_asked(self) -> None:
        done = self.ab("--fail-above", "1%", SLOWER="1.02")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"B takes (1\.[6-9]|2\.[0-4])\d % longer than A")
        self.assertIn("a regression", done.stdout)
        document = self.document()
        self.assertEqual(document["points"][0]["verdict"], "slower")
        self.assertEqual(document["regressions"], 1)
        order = (self.folder / "order").read_text()
        self.assertTrue(order.startswith("ovnv" + "onnoonnoonno"), order)
        kept = sorted(path.name for path in self.out.glob("run-003-A/*"))
        self.assertEqual(kept, ["result.json.gz"])

    def test_nothing_is_found_where_there_is_nothing(self) -> None:
        done = self.ab("--fail-above", "0.5%", "--format", "json", SLOWER="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document, self.document())
        self.assertEqual(document["points"][0]["verdict"], "a small difference")
        self.assertIn("narrow", document["ended"].replace("within", "narrow"))

    def test_a_budget_that_ends_too_early_is_no_failure(self) -> None:
        done = self.ab("--budget", "1", "--fail-above", "0.1%", SLOWER="1.5", SECONDS="0.3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Cannot tell", done.stdout)
        self.assertIn("budget of 1 s", self.document()["ended"])

    def test_a_side_that_fails_ends_it_and_what_was_measured_stays(self) -> None:
        failed = self.ab(SLOWER="1", FAILS="13")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("the device is lost", failed.stderr)
        self.assertEqual(failed.stderr.count("kbench: "), 2, failed.stderr)
        self.assertGreaterEqual(len(self.document()["points"][0]["pairs"]), 3)
        self.assertIn("failed with exit code 3", self.document()["ended"])

    def test_a_stop_keeps_what_was_measured(self) -> None:
        with subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=os.environ | {"SLOWER": "1", "SECONDS": "0.2"}) as process:
            for line in process.stderr:
                if line.startswith("pair 2"):
                    process.send_signal(signal.SIGTERM)
                    break
            stdout, _ = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertIn("Cannot tell: 2 pairs", stdout)
        self.assertEqual(len(self.document()["points"][0]["pairs"]), 2)

    def test_mistakes_end_with_2(self) -> None:
        for arguments in (["--a", str(self.folder / "nothing"), "--b", ""], ["--b", "--batch x"], ["--budget", "-1", "--b", ""]):
            bad = subprocess.run([KBENCH, "ab", "--out", str(self.folder / "bad"), *arguments, "--", "--model", "mlp"],
                                 capture_output=True, text=True, timeout=100)
            self.assertEqual((bad.returncode, bad.stderr.count("\n")), (2, 1), bad.stderr)

    def of_commands(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([KBENCH, "ab", "--out", str(self.out), *arguments], capture_output=True, text=True, timeout=100)

    def printing(self, name: str, rate: float) -> str:
        """A command that prints a rate, which differs from run to run by 0.2 %, after one of its warm-up."""
        path = self.folder / name
        path.write_text(textwrap.dedent(f"""\
            #!{sys.executable}
            import pathlib, random
            runs = pathlib.Path(__file__).with_suffix(".runs")
            with runs.open("a") as file:
                file.write(".")
            print("warm-up: 1 tokens/s")
            print(f"mean: {{random.Random(len(runs.read_text())).gauss({rate}, {0.002 * rate}):.2f}} tokens/s")
            """))
        path.chmod(0o755)
        return str(path)

    def test_what_any_commands_print_is_compared(self) -> None:
        sides = ["--a", self.printing("one", 500), "--b", self.printing("two", 490), "--metric", ": ([0-9.]+) tokens"]
        done = self.of_commands(*sides, "--fail-above", "1%")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"B is (1\.[6-9]|2\.[0-4])\d % lower than A")
        document = self.document()
        self.assertEqual((document["metric"], document["points"][0]["verdict"]), ("printed", "lower"))
        self.assertEqual(document["pattern"], ": ([0-9.]+) tokens")
        self.assertGreater(document["points"][0]["pairs"][0]["a"], 490, "the last number that matches")
        self.assertEqual((self.out / "run-001-A.txt").read_text().splitlines()[0], "warm-up: 1 tokens/s")
        self.assertIn("holds ", self.of_commands(*sides).stderr, "earlier runs stay")
        self.out = self.folder / "again"
        self.assertEqual(self.of_commands(*sides, "--fail-below", "1%").returncode, 1)

    def test_whole_runs_of_any_commands_are_timed(self) -> None:
        done = self.of_commands("--a", "sleep 0.05", "--b", "sleep 0.2", "--metric", "wall", "--fail-above", "50%", "--budget", "5")
        self.assertEqual(done.returncode, 1, done.stderr)
        pair = self.document()["points"][0]["pairs"][0]
        self.assertGreaterEqual(pair["a_ms"], 50)
        self.assertGreaterEqual(pair["b_ms"], 200)
        self.assertEqual(sorted(path.name for path in self.out.iterdir() if path.suffix == ".txt"), ["run-001-A.txt", "run-002-B.txt"])

    def test_commands_that_fail_or_print_no_number_end_it(self) -> None:
        for number, (b, code, said) in enumerate([("sh -c 'echo lost >&2; exit 3'", 1, "B failed with exit code 3: lost; its output is "),
                                                  ("echo step: none", 2, "B printed nothing that --metric matches")]):
            self.out = self.folder / str(number)
            done = self.of_commands("--a", "echo step: 7", "--b", b, "--metric", "step: ([0-9]+)")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(said, done.stderr)

    def test_a_stop_reaches_what_a_command_started(self) -> None:
        command = [KBENCH, "ab", "--out", str(self.out), "--a", f"sh -c 'sleep 60 & echo $! >{self.folder}/pid; wait'", "--b", "true",
                   "--metric", "wall"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            pid = self.folder / "pid"
            while not pid.exists() or not pid.read_text():
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        stat = pathlib.Path(f"/proc/{pid.read_text().strip()}/stat")
        deadline = time.monotonic() + 5
        while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z" and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertTrue(not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z", "it runs on")

    def test_the_spread_of_runs_is_remembered_and_compare_uses_it(self) -> None:
        environment = os.environ | {"KBENCH_CACHE_DIR": str(self.folder / "cache")}
        model = ["--model", "mlp", "--backend", "cpu", "--precision", "fp32", "--quick", "--latency-only", "--no-verify",
                 "--time-budget", "0.2"]

        def kbench(*arguments: str) -> subprocess.CompletedProcess:
            return subprocess.run([KBENCH, *arguments], capture_output=True, text=True, timeout=200, env=environment)

        noise = kbench("doctor", "--noise", "--", *model)
        self.assertEqual(noise.returncode, 0, noise.stderr)
        self.assertRegex(noise.stdout, r"from run to run: .* deviation [0-9.e+-]+ %; two single runs cannot tell below")
        for name in ("one", "two"):
            self.assertEqual(kbench("run", *model, "--out", str(self.folder / name)).returncode, 0)
        known = json.loads((self.folder / "two/result.json").read_text())["environment"]["run_to_run"]
        self.assertEqual(known["runs"], 8)
        for name, slower in (("one", 1), ("two", 1.1)):
            path = self.folder / name / "result.json"
            result = json.loads(path.read_text())
            result["points"][0]["end_to_end"]["latency"]["summary_ms"] |= {"median": slower, "ci_low": slower, "ci_high": slower}
            result["environment"]["run_to_run"]["deviation"] = 0.1
            path.write_text(json.dumps(result))
        compared = kbench("compare", "--fail-above", "1%", str(self.folder / "one"), str(self.folder / "two"))
        self.assertEqual(compared.returncode, 0, compared.stderr)
        self.assertIn("cannot tell below 33 %", " ".join(compared.stdout.split()))
        for arguments in (["--nois"], ["--noise", "--model", "mlp"], ["--noise", "--", "--model", "mlp", "--batch", "1,2"]):
            bad = kbench("doctor", *arguments)
            self.assertEqual((bad.returncode, bad.stderr.count("\n")), (2, 1), bad.stderr)


if __name__ == "__main__":
    unittest.main()

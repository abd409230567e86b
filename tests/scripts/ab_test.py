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
# What is ignored stays so, and whoever starts the tests may have them ignore these.
AS_USUAL = ["env", "--default-signal=INT,HUP"]

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
    @classmethod
    def setUpClass(cls) -> None:
        measured = tempfile.TemporaryDirectory()
        cls.addClassCleanup(measured.cleanup)
        subprocess.run([KBENCH, "run", "--model", "mlp", "--backend", "cpu", "--precision", "fp32", "--latency-only", "--quick",
                        "--no-verify", "--out", measured.name], check=True, capture_output=True, timeout=100)
        cls.result = (pathlib.Path(measured.name) / "result.json").read_bytes()

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.out = self.folder / "out"
        (self.folder / "result.json").write_bytes(self.result)
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

    def files(self) -> list[str]:
        return sorted(path.name for path in self.out.glob("[!.]*"))

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
            print(f"mean: {{random.Random('{name}' + runs.read_text()).gauss({rate}, {0.002 * rate}):.2f}} tokens/s")
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
        point = document["points"][0]
        self.assertGreater(point["pairs"][0]["a"], 490, "the last number that matches")
        self.assertGreater(point["ratio_high"] - point["ratio_low"], 0.0005)
        self.assertTrue(document["machine"])
        self.assertEqual((self.out / "run-001-A.txt").read_text().splitlines()[0], "warm-up: 1 tokens/s")
        self.assertEqual(self.files(), ["ab.json", "run-001-A.txt", "run-002-B.txt"])
        self.assertIn("holds ", self.of_commands(*sides).stderr, "earlier runs stay")
        self.out = self.folder / "again"
        self.assertEqual(self.of_commands(*sides, "--fail-below", "1%").returncode, 1)

    def test_whole_runs_of_any_commands_are_timed(self) -> None:
        done = self.of_commands("--a", "sleep 0.05", "--b", "sleep 0.2", "--metric", "wall", "--fail-above", "50%", "--interval", "20%",
                                "--budget", "60")
        self.assertEqual(done.returncode, 1, done.stderr)
        pair = self.document()["points"][0]["pairs"][0]
        self.assertGreaterEqual(pair["a_ms"], 50)
        self.assertGreaterEqual(pair["b_ms"], 200)

    def test_commands_that_fail_or_print_no_number_end_it(self) -> None:
        metric = ["--metric", "step: ([0-9.]+)"]
        wrong = self.of_commands("--a", "echo step: 7.001", "--b", "echo step: none", *metric)
        self.assertEqual((wrong.returncode, wrong.stderr.count("\n")), (2, 1), wrong.stderr)
        self.assertIn("B printed nothing that --metric matches; last it wrote 'step: none'", wrong.stderr)
        self.assertEqual(self.files(), ["output-B.txt"], "others would refuse the corrected command")
        self.assertEqual((self.out / "output-B.txt").read_text(), "step: none\n")
        failed = self.of_commands("--a", "echo step: 7.001", "--b", "sh -c 'echo lost >&2; exit 3'", *metric)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("B failed with exit code 3: lost; its output is ", failed.stderr)
        self.assertEqual((self.out / "run-002-B.txt").read_text(), "lost\n")

    def test_digits_that_are_not_printed_are_not_known(self) -> None:
        done = self.of_commands("--a", "echo 3.5", "--b", "echo 3.6", "--metric", "(.+)", "--fail-above", "1%", "--interval", "10%")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("few digits", done.stdout)
        point = self.document()["points"][0]
        self.assertAlmostEqual(point["ratio_low"], 1, 6, "3.55 / 3.55")
        self.assertAlmostEqual(point["ratio_high"], 3.65 / 3.45, 6)

    def test_a_command_finds_its_surroundings_as_a_shell_leaves_them(self) -> None:
        # More than a pipe holds: errors of a broken one where SIGPIPE is ignored; a core of OpenBLAS that kbench chose for itself is not handed on.
        script = "for i in $(seq 200000); do echo x; done | head -1; echo core: ${OPENBLAS_CORETYPE-none}; echo 7.001"
        done = subprocess.run([KBENCH, "ab", "--out", str(self.out), "--a", f"sh -c '{script}'", "--b", "", "--metric", "^(7.*)", "--budget", "1"],
                              capture_output=True, text=True, timeout=100,
                              env=os.environ | {"OPENBLAS_CORETYPE": "Haswell", "KBENCH_SET_OPENBLAS_CORETYPE": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.out / "run-001-A.txt").read_text().splitlines(), ["x", "core: none", "7.001"])

    def test_what_a_command_leaves_behind_has_a_second(self) -> None:
        # The last number comes from the background, a little after the shell's end; the sleep is ended.
        command = f"sh -c 'sleep 60 & echo $! $$ >{self.folder}/pids; echo 1.5; (sleep 0.05; echo 7.001) & exit 0'"
        done = self.of_commands("--a", command, "--b", "", "--metric", "([0-9.]+)", "--budget", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.document()["points"][0]["pairs"][0]["a"], 7.001)
        self.expect_gone([int(pid) for pid in (self.folder / "pids").read_text().split()])

    def test_who_opens_its_errors_anew_empties_nothing(self) -> None:
        done = self.of_commands("--a", "sh -c 'echo one; echo 7.001 | tee /dev/stderr; echo two'", "--b", "", "--metric", "^([0-9.]+)$",
                                "--budget", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted((self.out / "run-001-A.txt").read_text().split()), ["7.001", "7.001", "one", "two"])

    def test_a_command_may_stop_what_it_left_behind(self) -> None:
        # The sleep has lost its parent: whoever takes it over must reap it, or it is there for ever.
        command = f"sh -c 'sh -c \"sleep 60 & echo \\$! >{self.folder}/pid\"; P=$(cat {self.folder}/pid); kill $P; while kill -0 $P; do sleep 0.01; done'"
        done = self.of_commands("--a", command, "--b", "", "--metric", "wall", "--budget", "1")
        self.assertEqual(done.returncode, 0, done.stderr)

    def runs_on(self, pid: int) -> bool:
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def started(self, command: str, process: subprocess.Popen) -> list[int]:
        """What wrote its number into the file `pids`, once there are two."""
        pids = self.folder / "pids"
        deadline = time.monotonic() + 30
        while not pids.exists() or len(pids.read_text().split()) < 2:
            self.assertIsNone(process.poll(), command)
            self.assertLess(time.monotonic(), deadline, command)
            time.sleep(0.01)
        return [int(pid) for pid in pids.read_text().split()]

    def expect_gone(self, pids: list[int]) -> None:
        deadline = time.monotonic() + 5
        while any(map(self.runs_on, pids)) and time.monotonic() < deadline:
            time.sleep(0.01)
        for pid in pids:
            self.assertFalse(self.runs_on(pid), pid)

    def test_a_stop_reaches_all_that_a_command_started(self) -> None:
        for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.out = self.folder / stop.name
            command = f"sh -c 'sleep 60 & echo $! $$ >{self.folder}/pids; wait'"
            with subprocess.Popen([*AS_USUAL, KBENCH, "ab", "--out", str(self.out), "--a", command, "--b", "true", "--metric", "wall"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                pids = self.started(command, process)
                process.send_signal(stop)
                process.communicate(timeout=20)
            self.assertEqual(process.returncode, 128 + stop)
            self.expect_gone(pids)
            (self.folder / "pids").unlink()

    def test_a_second_stop_ends_what_ignores_the_first(self) -> None:
        command = f"sh -c 'trap \"\" INT TERM; sleep 60 & echo $! $$ >{self.folder}/pids; wait; sleep 60'"
        with subprocess.Popen([*AS_USUAL, KBENCH, "ab", "--out", str(self.out), "--a", command, "--b", "true", "--metric", "wall"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            pids = self.started(command, process)
            process.send_signal(signal.SIGINT)
            time.sleep(1.2)
            self.assertIsNone(process.poll(), "it waits for the command")
            for _ in range(20):  # one that comes within a second is the same wish
                process.send_signal(signal.SIGINT)
                try:
                    process.communicate(timeout=1.2)
                    break
                except subprocess.TimeoutExpired:
                    pass
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.expect_gone(pids)

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

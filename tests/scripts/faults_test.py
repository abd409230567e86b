"""What ends a sweep in the middle, and what is left: a user's kernel that throws, crashes or takes all memory, a GPU
that is lost. Each time the finished points are as they were, and --resume goes on to the end.

faults_test.py FAULTY_KBENCH [--backend cuda]: a kbench with a layer norm and a CUDA runtime that fail on request
(tests/faults). Skips (77) without a GPU where one is asked for.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterator

KBENCH = pathlib.Path()
BACKEND = "cpu"
CONFIG = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 301, "n_positions": 32}
SWEEP = ["--seq", "16", "--batch", "1,2,3", "--precision", "fp32", "--provider", "layernorm=faulty", "--quick", "--time-budget", "0.05",
         "--ceilings", "none"]
SECOND = "at 32 rows"  # batch 2 at 16 tokens
MIB = 1 << 20


def memory_group() -> pathlib.Path:
    """The folder of this process's control group that limits memory; OSError where there is none to be seen."""
    own = {}
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            own[name] = path
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        before, behind = line.split(" - ", 1)
        root, point = before.split()[3:5]
        kind, _, options = behind.split(" ", 2)
        name = {"cgroup": "memory", "cgroup2": ""}.get(kind)
        if name is None or name not in own or (name and name not in options.split(",")):
            continue
        folder = pathlib.Path(point) / os.path.relpath(own[name], root)
        if (folder / "cgroup.procs").exists() and (name or "memory" in (folder / "cgroup.subtree_control").read_text()):
            return folder
    raise OSError("no control group of this process limits memory")


@contextlib.contextmanager
def limited(limit: int) -> Iterator[Callable[[], None]]:
    """What a child calls before it begins, to have no more memory than that; OSError where nobody may make a group."""
    group = memory_group() / f"kbench-test-{os.getpid()}"
    group.mkdir()
    try:
        first = (group / "memory.limit_in_bytes").exists()
        (group / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(limit))
        for name, value in (("memory.swappiness", "0"), ("memory.swap.max", "0")):
            with contextlib.suppress(OSError):
                (group / name).write_text(value)
        yield lambda: (group / "cgroup.procs").write_text(str(os.getpid())) and None
    finally:
        group.rmdir()


class Faults(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kbench_faults_"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.out = self.folder / "out"
        (self.folder / "small.json").write_text(json.dumps(CONFIG))

    def sweep(self, *more: str, before: Callable[[], None] | None = None, **environment: str) -> subprocess.CompletedProcess:
        command = [str(KBENCH), "run", "--config", str(self.folder / "small.json"), "--backend", BACKEND, *SWEEP, "--out", str(self.out), *more]
        return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=before, timeout=300,
                              env={**os.environ, "KBENCH_CACHE_DIR": str(self.folder / "cache"), "OMP_WAIT_POLICY": "passive", **environment})

    def points(self) -> dict[str, bytes]:
        return {file.stem: file.read_bytes() for file in sorted(self.out.glob("points/[!.]*.json"))}

    def statuses(self) -> list[str]:
        return [point["status"] for point in json.loads((self.out / "result.json").read_text())["points"]]

    def check_resumed(self) -> None:
        """Goes on without a fault: what was done stays, and in the end all is done."""
        done = {name: text for name, text in self.points().items() if json.loads(text)["points"][0]["status"] == "done"}
        resumed = self.sweep("--resume")
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertIn(f"{len(done)} of 3 points are finished", resumed.stderr)
        self.assertEqual(self.statuses(), ["done"] * 3)
        for name, text in done.items():
            self.assertEqual(self.points()[name], text, f"{name} was measured again")
        self.assertEqual(list(self.out.rglob("*.tmp")), [])


class CpuFaults(Faults):
    def check_ended(self, fault: str, signal: int, **more) -> None:
        ended = self.sweep(KBENCH_FAULT=fault, **more)
        self.assertEqual(ended.returncode, -signal, ended.stderr)
        self.assertEqual(list(self.points()), ["seq16-batch1-fp32"])
        self.check_resumed()

    def test_a_kernel_that_crashes_loses_no_finished_point(self) -> None:
        self.check_ended(f"segfault {SECOND}", 11)

    def test_a_kill_in_the_midst_of_a_point_loses_no_finished_point(self) -> None:
        self.check_ended(f"kill {SECOND} from call 40", 9)

    def test_a_kernel_that_throws_fails_its_point_alone(self) -> None:
        ended = self.sweep(KBENCH_FAULT=f"throw {SECOND}")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertEqual(self.statuses(), ["done", "failed", "done"])
        self.assertRegex(ended.stderr, r"1 of 3 points failed, the first: .*: layernorm r32w64 by faulty, fp32: as asked for")
        self.check_resumed()

    def test_a_kill_for_want_of_memory_loses_no_finished_point(self) -> None:
        try:
            with limited(1024 * MIB) as join:
                self.check_ended(f"memory {SECOND}", 9, before=join)
        except OSError as error:
            self.skipTest(f"no control group can be made here: {error}")

    def test_plans_keep_to_the_memory_of_the_control_group(self) -> None:
        try:
            with limited(1024 * MIB) as join:
                done = self.sweep(before=join)
        except OSError as error:
            self.skipTest(f"no control group can be made here: {error}")
        self.assertEqual(done.returncode, 0, done.stderr)
        for point in json.loads((self.out / "result.json").read_text())["points"]:
            for largest in point["largest_batches"]:
                self.assertLess(largest["available_bytes"], 768 * MIB, "256 MiB of the limit are reserved")


class GpuFaults(Faults):
    def check_lost(self, done: int, why: str, **environment: str) -> subprocess.CompletedProcess:
        ended = self.sweep(**environment)
        self.assertEqual(ended.returncode, 3, ended.stderr)
        lines = [line for line in ended.stderr.splitlines() if "the device was lost" in line]
        self.assertEqual(len(lines), 1, ended.stderr)
        self.assertRegex(lines[0], why)
        self.assertEqual(self.statuses(), ["done"] * done + ["failed"], "nothing is measured after it")
        return ended

    def test_an_illegal_address_ends_the_run_with_what_is_finished(self) -> None:
        self.check_lost(1, r"lost \(verify layernorm r32w64: .*cudaErrorIllegalAddress.*\) after 2 of 3 points; `--resume` goes on",
                        KBENCH_FAULT=f"address {SECOND}")
        self.check_resumed()

    def test_a_kernel_that_ends_itself_does_too(self) -> None:
        self.check_lost(1, r"lost \(verify layernorm r32w64: .*cudaError(LaunchFailure|IllegalInstruction)", KBENCH_FAULT=f"trap {SECOND}")

    def test_an_illegal_address_while_it_is_timed_names_the_part(self) -> None:
        # cuBLAS, where it is the first to see the error, gives it a name of its own.
        self.check_lost(1, r"lost \([a-z]+.*: .*(cudaErrorIllegalAddress|CUBLAS_STATUS_)", KBENCH_FAULT=f"address {SECOND} from call 4")

    def test_a_gpu_that_is_lost_at_any_call_keeps_what_is_finished(self) -> None:
        lost_after_points = 0
        errors = itertools.cycle((46, 214, 700, 719))  # devices unavailable, ECC, illegal address, launch failure
        for call in (1, 10, 30, 100, 300, 600, 1000, 2000, 3000, 5000, 7000, 10000, 15000, 20000, 30000, 50000):
            error = next(errors)
            with self.subTest(error=error, call=call):
                shutil.rmtree(self.out, ignore_errors=True)
                ended = self.sweep(KBENCH_LOST_GPU=f"{error} from call {call}")
                if ended.returncode == 0:  # it came to its end before
                    self.assertEqual(self.statuses(), ["done"] * 3)
                    continue
                self.assertEqual(ended.returncode, 3, ended.stderr)
                self.assertRegex(ended.stderr, r"\bcu(da|blas)\w+|driver error|no usable GPU")
                states = [json.loads(text)["points"][0]["status"] for text in self.points().values()]
                self.assertEqual([state for state in states[:-1] if state != "done"], [], "points after the loss")
                lost_after_points += len(states) > 1
        self.assertGreater(lost_after_points, 0, "every loss came before the first finished point: nothing was tried")


def main() -> None:
    global KBENCH, BACKEND
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kbench", type=pathlib.Path)
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    arguments = parser.parse_args()
    KBENCH, BACKEND = arguments.kbench.resolve(), arguments.backend
    asked = [KBENCH, "micro", "--backend", BACKEND, "--op", "softmax", "--shape", "r4w4", "--benchmark_list_tests"]
    device = subprocess.run(asked, capture_output=True, text=True, check=False)
    if device.returncode == 3:
        print(f"skipped: {device.stderr.strip()}")
        sys.exit(77)
    chosen = CpuFaults if BACKEND == "cpu" else GpuFaults
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(chosen)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())


if __name__ == "__main__":
    main()

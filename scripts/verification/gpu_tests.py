"""The GPU test programs under ctest and compute-sanitizer, and the planted truths, as entries of verify.json.

An entry's status is `passed`, `failed`, or `unavailable` when the tool is missing or no test found a GPU: that is no
pass.
"""

import json
import pathlib
import re
import shutil
import tempfile
from typing import Any

from verification.process import DONE, MISSING, Finished, find_cuda_tool, run

LIMIT_S = 1800

# What launches the library's kernels: under racecheck they end in an error of compute-sanitizer itself (2025.3, sm_90).
NOT_FOR_RACECHECK = "Tuning*:*GemmOnDevice*:*AddsUpGradientsOfWeights/*16_*"


def _entry(name: str, done: Finished, log: pathlib.Path, tests: int, problem: str, unavailable: str) -> dict[str, Any]:
    log.write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.exit_code == 124:
        problem = done.last_line
    status = "unavailable" if unavailable else "failed" if problem else "passed"
    reason = unavailable or problem
    return {
        "name": name,
        "status": status,
        "reason": reason,
        "tests": tests,
        "seconds": round(done.seconds, 1),
        "exit_code": done.exit_code,
        "command": done.command,
        "log": log.name,
    }


def _not_run(name: str, reason: str) -> dict[str, Any]:
    return {"name": name, "status": "unavailable", "reason": reason, "tests": 0}


def ctest(build: pathlib.Path, log: pathlib.Path) -> dict[str, Any]:
    """Every test with the label gpu, one entry of ctest at a time; an entry may be many tests: its own sums count."""
    if shutil.which("ctest") is None:
        return _not_run("ctest", "no ctest on PATH: install CMake")
    done = run(["ctest", "--test-dir", str(build), "-L", "gpu", "--no-tests=error", "--verbose"], LIMIT_S)
    ran = sum(map(int, re.findall(r"^\d+: \[  (?:PASSED|FAILED)  \] (\d+) tests?[.,]", done.stdout, re.MULTILINE)))
    problem = "" if done.exit_code == 0 else done.last_line
    return _entry("ctest", done, log, ran, problem, "every test skipped: no GPU" if ran == 0 and not problem else "")


def truths(build: pathlib.Path, seed: int, backend: str, log: pathlib.Path) -> tuple[dict[str, Any], str]:
    """Work of known behaviour, planted with `seed`: the entry, with the matrix, and the matrix as text."""
    with tempfile.TemporaryDirectory(prefix="gpu-verify-") as folder:
        matrix = pathlib.Path(folder, "truths.json")
        command = [str(build / "tests" / "truths"), "--seed", str(seed), "--backend", backend, "--json", str(matrix)]
        done = run(command, LIMIT_S)
        document = json.loads(matrix.read_text(encoding="utf-8")) if matrix.is_file() else None
    found = document["truths"] if document else []
    unavailable = done.last_line if done.exit_code == MISSING else ""
    summary = (done.stdout.strip() or done.last_line).splitlines()[-1]  # stderr tells of the progress
    problem = "" if done.exit_code in (DONE, MISSING) else summary
    entry = _entry("truths", done, log, len(found), problem, unavailable)
    return entry | {"seed": seed, "matrix": document}, done.stdout


def _under_sanitizer(name: str, tool: str, options: list[str], command: list[str], log: pathlib.Path) -> dict[str, Any]:
    program = find_cuda_tool("compute-sanitizer")
    if program is None:
        return _not_run(name, "no compute-sanitizer on PATH, in $CUDA_HOME/bin or /usr/local/cuda/bin")
    done = run([program, "--tool", tool, "--error-exitcode", "9", *options, *command], LIMIT_S)
    text = done.stdout + done.stderr
    if "Device not supported" in text:
        return _entry(name, done, log, 0, "", "compute-sanitizer: Device not supported")
    passed = re.search(r"\[  PASSED  \] (\d+) test", text)
    ran = int(passed[1]) if passed else len(re.findall(r"^ *verified +\d", text, re.MULTILINE))
    summary = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) .*", text)
    unavailable = "everything skipped: no GPU" if ran == 0 and done.exit_code == 0 else ""
    clean = done.exit_code == 0 and summary is not None and summary[1] == "0"
    problem = "" if clean else summary[0] if summary and summary[1] != "0" else done.last_line
    return _entry(name, done, log, ran, problem, unavailable)


def sanitize_tests(tool: str, build: pathlib.Path, test_filter: str, log: pathlib.Path) -> dict[str, Any]:
    """The kernels' test program under memcheck or racecheck: kbench's own kernels, by their namespace.

    The library's kernels are left out here: the tests try every algorithm of every shape, which takes an hour under
    memcheck. `sanitize_model` checks those that a run uses.
    """
    tests = build / "tests" / "kernels_tests"
    if not tests.is_file():
        return _not_run(f"{tool} tests", f"{tests} is missing: build kbench's tests with CUDA")
    if tool == "racecheck" and "-" not in test_filter:
        test_filter += f"-{NOT_FOR_RACECHECK}"
    command = [str(tests), "--gtest_brief=1", f"--gtest_filter={test_filter}"]
    return _under_sanitizer(f"{tool} tests", tool, ["--kernel-regex", "kns=kbench"], command, log)


def sanitize_model(kbench: str, attention: str, log: pathlib.Path) -> dict[str, Any]:
    """Whole forwards under memcheck, every kernel of them, the library's too."""
    command = [kbench, "run", "--model", "gpt2", "--batch", "3", "--seq", "17", "--precision", "all", "--backend"]
    command += ["cuda", "--attention", attention, "--time-budget", "0.1"]
    name = f"memcheck {attention} model"
    with tempfile.TemporaryDirectory(prefix="gpu-verify-") as folder:
        done = run([*command, "--out", f"{folder}/choose"], LIMIT_S)  # chooses algorithms where memcheck cannot slow it
        if done.exit_code != 0:
            return _entry(name, done, log, 0, done.last_line, "")
        return _under_sanitizer(name, "memcheck", [], [*command, "--out", f"{folder}/checked"], log)

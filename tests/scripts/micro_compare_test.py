#!/usr/bin/env python3
"""kbench micro's JSON, through Google Benchmark's own compare.py: usage micro_compare_test.py KBENCH.

compare.py comes with Debian's libbenchmark-tools; exit code 77, with the reason, where it or SciPy is missing.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

COMPARE = Path("/usr/share/benchmark/compare.py")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def run(*command, expect=0, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == expect, f"{command} gave {done.returncode}: {done.stdout}{done.stderr}"
    return done


def python_with_scipy():
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import scipy.stats"], capture_output=True).returncode == 0:
            return python
    skip("no python3 has SciPy (Debian's python3-scipy)")


def micro(kbench, directory, name, *arguments):
    """One run in `directory`; its JSON by --benchmark_format and by --benchmark_out, which must agree."""
    environment = dict(os.environ, KBENCH_CACHE_DIR=str(directory / "cache"))
    file = directory / f"{name}.json"
    printed = run(
        kbench, "micro", "--backend", "cpu", "--ceilings", "none", "--counters", "none", "--cache", "hot",
        "--time-budget", "0.02", "--out", str(directory / name), "--benchmark_min_time=0.001",
        "--benchmark_format=json", f"--benchmark_out={file}", *arguments, env=environment).stdout
    shown, written = json.loads(printed), json.loads(file.read_text())
    assert shown["benchmarks"] == written["benchmarks"], "what is shown and what is written differ"
    return file, written


def check_rows(content):
    rows = {row["name"]: row for row in content["benchmarks"]}
    assert set(rows) == {
        "residual/native/fp32/fwd/r64w64/hot",
        "residual/native/fp64/fwd/r64w64/hot",
        "residual/native/tf32/fwd/r64w64/hot",
    }, sorted(rows)
    for precision in ("fp32", "fp64"):
        row = rows[f"residual/native/{precision}/fwd/r64w64/hot"]
        assert row["real_time"] > 0 and row["iterations"] >= 3 and row["time_unit"] == "us", row
        bytes_moved = 3 * 64 * 64 * (4 if precision == "fp32" else 8)
        expected = bytes_moved / (row["real_time"] * 1e-6) * 1e-9
        assert abs(row["GB/s"] / expected - 1) < 1e-6, (row, expected)
        assert row.get("ci%", 0) >= 0  # none where too few of the samples are independent
    refused = rows["residual/native/tf32/fwd/r64w64/hot"]
    assert refused["error_occurred"] and "tensor-core" in refused["error_message"], refused
    assert "kbench" in content["context"] and "cpu" in content["context"], content["context"]


def check_repetitions(kbench, directory):
    _, content = micro(kbench, directory, "repeated", "--op", "residual", "--shape", "r64w64", "--precision", "fp32",
                       "--benchmark_repetitions=4", "--benchmark_report_aggregates_only=true")
    names = [row["name"] for row in content["benchmarks"]]
    # Repetitions in turn with those of others: each benchmark is prepared again, and must run as often as before.
    _, turns = micro(kbench, directory, "turns", "--op", "residual,gelu", "--shapes-of", "gpt2", "--seq", "16",
                     "--precision", "fp32", "--benchmark_repetitions=3", "--benchmark_enable_random_interleaving=true")
    rows = [row for row in turns["benchmarks"] if row["run_type"] == "iteration"]
    assert len(rows) == 6 and len({(row["name"], row["iterations"]) for row in rows}) == 2, rows
    assert names == [f"residual/native/fp32/fwd/r64w64/hot_{what}" for what in ("mean", "median", "stddev", "cv")], names


def main():
    kbench = sys.argv[1]
    if not COMPARE.exists():
        skip(f"{COMPARE} is missing (Debian's libbenchmark-tools)")
    python = python_with_scipy()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        arguments = ("--op", "residual", "--shape", "r64w64", "--precision", "fp32,fp64,tf32")
        old, content = micro(kbench, directory, "old", *arguments)
        check_rows(content)
        # The same measurement, twice as slow in one row: compare.py must find that row and the factor.
        for row in content["benchmarks"]:
            if "/fp32/" in row["name"]:
                row["real_time"] *= 2
        new = directory / "new.json"
        new.write_text(json.dumps(content))
        table = run(python, str(COMPARE), "--no-color", "benchmarks", str(old), str(new)).stdout
        changes = dict(re.findall(r"^(\S+/hot)\s+([+-]\d+\.\d+)", table, re.M))
        assert changes == {
            "residual/native/fp32/fwd/r64w64/hot": "+1.0000",
            "residual/native/fp64/fwd/r64w64/hot": "+0.0000",
            "residual/native/tf32/fwd/r64w64/hot": "+0.0000",  # refused in both, which compare.py takes for 0
        }, table
        # Providers beside each other, as compare.py's filters do it.
        run(python, str(COMPARE), "--no-color", "filters", str(old), "fp32", "fp64")
        check_repetitions(kbench, directory)
    print("ok")


if __name__ == "__main__":
    main()

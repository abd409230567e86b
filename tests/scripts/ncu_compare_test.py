"""ncu-compare against a kbench and an ncu that only print: what it accepts, what it refuses, and what it writes. Needs
neither a GPU nor Nsight Compute.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
from verification import ncu  # noqa: E402
from verification.process import Stop  # noqa: E402

# Writes the result that stands beside it, as kbench would.
KBENCH = """#!{python}
import json, pathlib, sys
here, arguments = pathlib.Path(__file__).parent, sys.argv[1:]
with (here / "calls.txt").open("a") as calls:
    calls.write(json.dumps(arguments) + chr(10))
out = pathlib.Path(arguments[arguments.index("--out") + 1])
if (out / "result.json").exists():
    sys.exit(print("kbench: --out holds a result", file=sys.stderr) or 2)
code = here / "exit_code"
if code.exists():
    sys.exit(print("kbench: the last word", file=sys.stderr) or int(code.read_text()))
out.mkdir(parents=True, exist_ok=True)
(out / "result.json").write_text((here / "result.json").read_text())
print("a table")
"""

# Runs the program twice, as application replay does, and writes the table that stands beside it.
NCU = """#!{python}
import pathlib, subprocess, sys
here, arguments = pathlib.Path(__file__).parent, sys.argv[1:]
if arguments == ["--version"]:
    sys.exit(print("NVIDIA (R) Nsight Compute Command Line Profiler" + chr(10) + "Version 2025.4.0.0 (build 1)"))
log = pathlib.Path(arguments[arguments.index("--log-file") + 1])
for _ in range(2):
    code = subprocess.call(arguments[arguments.index("sh"):])
    if code:
        log.write_text("==ERROR== The application returned an error code (%d)." % code)
        sys.exit(code)
lines = (here / "ncu.csv").read_text().splitlines()
count = int(arguments[arguments.index("--launch-count") + 1])
log.write_text(chr(10).join(lines[:count + 3]) + chr(10))
sys.exit(1 if lines[0].startswith("==ERROR==") else 0)
"""

TITLES = ["ID", "Process ID", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", *ncu.METRICS]
UNITS = [*[""] * 7, "ns", "byte", "%", "%", "%", "%", "register/thread", "byte/block", "byte/block", "", ""]


def kernel(name: str, short_name: str) -> dict[str, Any]:
    return {
        "name": name,
        "short_name": short_name,
        "grid": [8, 2, 1],
        "block": [128, 1, 1],
        "registers": 40,
        "static_shared_bytes": 1024,
        "dynamic_shared_bytes": 0,
        "theoretical_occupancy_pct": {"value": 75.0, "origin": "derived", "reason": ""},
        "time_us": 20.0,
    }


def step(index: int, layer: str, op: str, kernels: list[dict[str, Any]]) -> dict[str, Any]:
    counters = {
        "dram_read_bytes": 8e6 * len(kernels),
        "achieved_occupancy": 50.0,
        "sm_throughput": 30.0,
        "memory_throughput": 60.0,
        "time": 20300,
    }
    place = {"index": index, "layer": layer, "op": op}
    return place | {"kernels": kernels, "counters": counters, "counters_discarded": ""}


def result() -> dict[str, Any]:
    split = [kernel("gemm_128", "gemm_128"), kernel("void a::reduce<1>(b<1>)", "reduce<1>")]
    steps = [
        step(0, "wte+wpe", "embedding", [kernel("kbench::cuda::embed(float*)", "embed")]),
        step(1, "h.0.ln_1", "layernorm", [kernel("void kbench::(anonymous namespace)::norm<8>(int)", "norm<8>")]),
        step(2, "h.0.attn.c_attn", "gemm", split),
        step(3, "h.1.ln_1", "layernorm", [kernel("void kbench::(anonymous namespace)::norm<8>(int)", "norm<8>")]),
    ]
    point = {
        "status": "done",
        "reason": "",
        "activity": {"unavailable": ""},
        "counters": {"unavailable": "", "seconds": 1.5, "passes": 4, "metrics": [{"origin": "measured"}]},
        "steps": steps,
    }
    gpu = {"name": "a GPU"}
    steps[0]["kernels"].append(kernel("memset32", "memset32"))  # a fill, which ncu has no row for
    return {"environment": {"kbench_version": "1", "git_revision": "abc", "gpu": gpu}, "points": [point]}


def launch(number: int, name: str) -> list[str]:
    row = [str(number), "7", name, "1", "13", "(128, 1, 1)", "(8, 2, 1)", "20,100", "8,000,000"]
    return [*row, "50.3", "31.5", "58.5", "75", "40", "1,024", "0", "16", "128"]


def launches() -> list[list[str]]:
    names = ["kbench::cuda::embed(float *)", "void kbench::<unnamed>::norm<(int)8>(T1)", "gemm_128"]
    names += ["void a::reduce<(int)1>(a::b<(bool)1>)", "void kbench::<unnamed>::norm<(int)8>(T1)"]
    return [launch(number, name) for number, name in enumerate(names)]


def csv_text(rows: list[list[str]], units: list[str] = UNITS) -> str:
    lines = ["==PROF== Connected to process 7"]
    lines += [",".join(f'"{cell}"' for cell in cells) for cells in (TITLES, units, *rows)]
    return "\n".join(lines) + "\n"


class Files(unittest.TestCase):
    """A directory with the two programs."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)
        for name, text in (("kbench", KBENCH), ("ncu", NCU)):
            (self.directory / name).write_text(text.format(python=sys.executable))
            (self.directory / name).chmod(0o755)
        self.result, self.launches = result(), launches()

    def compare(
        self, *more: str, table: str | None = None, environment: dict[str, str] | None = None
    ) -> tuple[int, dict[str, Any], str]:
        """With an environment, ncu is not named."""
        (self.directory / "result.json").write_text(json.dumps(self.result))
        (self.directory / "ncu.csv").write_text(table or csv_text(self.launches))
        command = [sys.executable, str(ROOT / "scripts" / "ncu-compare"), "--kbench", str(self.directory / "kbench")]
        if environment is None:
            command += ["--ncu", str(self.directory / "ncu")]
        command += ["--out", str(self.directory / "out"), *more]
        everything = os.environ | (environment or {})
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.directory, env=everything)
        written = self.directory / "out" / "ncu.json"
        document = json.loads(written.read_text()) if written.exists() else {}
        return done.returncode, document, done.stdout + done.stderr

    def one(self, *more: str, table: str | None = None) -> tuple[int, dict[str, Any], str]:
        return self.compare("--model", "m", "--seq", "8", "--kernels", "5", "--no-cost", *more, table=table)

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.directory / "calls.txt").read_text().splitlines()]


class Agreement(Files):
    def test_the_default_cases_agree_and_the_cost_is_measured(self) -> None:
        code, document, output = self.compare("--kernels", "3")
        self.assertEqual(code, 0, output)
        self.assertEqual([case["status"] for case in document["cases"]], ["agrees"] * 3)
        self.assertEqual(document["schema"], "kbench.ncu/1")
        self.assertEqual(sum(document["deviations"].values()), 0)
        self.assertEqual(document["kernels"], 12)  # three asked for, the step with the third is whole
        self.assertIn("2025.4.0.0", document["versions"]["ncu"])
        cost = document["cost"]
        self.assertEqual((cost["ncu"]["kernels"], cost["kernels_of_forward"]), (3, 5))  # layer h.0
        self.assertAlmostEqual(cost["ncu"]["forward_seconds"], cost["ncu"]["seconds"] / 3 * 5)
        self.assertEqual(cost["kbench"]["seconds"], 1.5)
        command = cost["ncu"]["command"]
        self.assertEqual(command[command.index("--launch-skip") + 1], "6")  # a forward, and what is before the layer
        self.assertIn("kernel", command)
        self.assertIn("SpeedOfLight", command)
        text = (self.directory / "out" / "ncu.md").read_text()
        row = "| h.0.ln_1 layernorm | norm\\<8> | 20.30 / 20.10 (+1.0%) | 20.00 / 20.10 (-0.5%) |"
        for part in (row, "sum of 2 kernels", "## Cost", " equal |"):
            self.assertIn(part, text)
            self.assertIn(part, output)

    def test_ncu_is_asked_for_the_second_forward_with_the_caches_as_they_are(self) -> None:
        code, document, output = self.one("--attention", "unfused", "--provider", "gemm=cublas", "--precision", "fp32")
        self.assertEqual(code, 0, output)
        command = document["cases"][0]["ncu"]["command"]
        options = {"--replay-mode": "application", "--cache-control": "none", "--clock-control": "none"}
        options |= {"--nvtx-include": "kbench@forward/", "--launch-skip": "5", "--launch-count": "5", "--page": "raw"}
        for option, value in options.items():
            self.assertEqual(command[command.index(option) + 1], value)
        calls = self.calls()
        self.assertEqual(len(calls), 3)  # kbench itself, and two passes under ncu
        self.assertEqual(len({call[call.index("--out") + 1] for call in calls}), 3)
        counters = [call[call.index("--counters") + 1] for call in calls]
        self.assertEqual(counters, ["core,speed-of-light", "none", "none"])
        for call in calls:
            self.assertEqual(call[call.index("--provider") + 1], "gemm=cublas")
        self.assertFalse(pathlib.Path(calls[1][calls[1].index("--out") + 1]).exists())

    def test_differences_within_the_tolerances_agree(self) -> None:
        self.result["points"][0]["steps"][0]["counters"] |= {"dram_read_bytes": 8.06e6}
        self.result["points"][0]["steps"][0]["kernels"][0]["time_us"] = 20.9
        self.result["points"][0]["steps"][1]["counters"] |= {"achieved_occupancy": 51.3, "time": 20600}
        self.result["points"][0]["steps"][1]["counters"] |= {"sm_throughput": 33.5, "memory_throughput": 56.5}
        self.result["points"][0]["steps"][0]["kernels"][0]["theoretical_occupancy_pct"]["value"] = 75.1
        code, _, output = self.one()
        self.assertEqual(code, 0, output)

    def test_a_sum_has_the_absolute_tolerance_of_each_kernel(self) -> None:
        self.result["points"][0]["steps"][2]["kernels"][0]["time_us"] = 20.2 + 1.99
        code, _, output = self.one()
        self.assertEqual(code, 0, output)

    def test_what_is_no_sum_is_not_compared_where_the_range_is_not_of_one_kernel(self) -> None:
        of_range = {"achieved_occupancy": 1, "time": 1, "sm_throughput": 1, "memory_throughput": 1}
        for at in (0, 2):  # a kernel and a fill, and two kernels
            self.result["points"][0]["steps"][at]["counters"] |= of_range
        code, document, output = self.one()
        self.assertEqual(code, 0, output)
        for quantity in ("achieved_occupancy_pct", "duration_ns", "sm_throughput_pct", "memory_throughput_pct"):
            self.assertEqual(document["counts"][quantity], {"agrees": 2, "deviates": 0, "not compared": 2}, quantity)


class Deviation(Files):
    def deviates(self, quantity: str) -> None:
        code, document, output = self.one()
        self.assertEqual((code, document["cases"][0]["status"]), (1, "deviates"), output)
        self.assertEqual({name: n for name, n in document["deviations"].items() if n}, {quantity: 1})
        self.assertIn("**", (self.directory / "out" / "ncu.md").read_text())

    def counter(self, name: str, value: float, at: int = 0) -> None:
        self.result["points"][0]["steps"][at]["counters"][name] = value

    def recorded(self, time_us: float, at: int = 0) -> None:
        self.result["points"][0]["steps"][at]["kernels"][0]["time_us"] = time_us

    def test_duration(self) -> None:
        self.counter("time", 20705, at=1)
        self.deviates("duration_ns")

    def test_recorded_time(self) -> None:
        self.recorded(22.0)
        self.deviates("recorded_ns")

    def test_recorded_times_of_a_sum(self) -> None:
        self.recorded(23.0, at=2)
        self.deviates("recorded_ns")

    def test_a_short_kernels_duration_beyond_half_a_microsecond(self) -> None:
        self.counter("time", 3590, at=1)
        self.launches[1][TITLES.index(ncu.DURATION)] = "3,100"
        self.recorded(3.1, at=1)
        code, document, output = self.one()
        self.assertEqual((code, document["deviations"]["duration_ns"]), (0, 0), output)
        shutil.rmtree(self.directory / "out")
        self.counter("time", 3610, at=1)
        self.deviates("duration_ns")

    def test_sm_throughput(self) -> None:
        self.counter("sm_throughput", 29.4, at=1)
        self.deviates("sm_throughput_pct")

    def test_memory_throughput(self) -> None:
        self.counter("memory_throughput", 60.6, at=1)
        self.deviates("memory_throughput_pct")

    def test_dram_read(self) -> None:
        self.counter("dram_read_bytes", 8.2e6)
        self.deviates("dram_read_bytes")

    def test_achieved_occupancy(self) -> None:
        self.counter("achieved_occupancy", 48.9, at=1)
        self.deviates("achieved_occupancy_pct")

    def test_what_the_launch_says(self) -> None:
        changes = {"registers": 41, "static_shared_bytes": 1025, "dynamic_shared_bytes": 16}
        changes |= {"grid": [2, 8, 1], "block": [64, 2, 1]}
        changes |= {"theoretical_occupancy_pct": {"value": 75.2, "origin": "derived", "reason": ""}}
        for quantity, value in changes.items():
            with self.subTest(quantity):
                self.setUp()
                self.result["points"][0]["steps"][1]["kernels"][0][quantity] = value
                self.deviates(quantity)


class Refusal(Files):
    def fails(self, expected: int, word: str, *more: str, table: str | None = None) -> dict[str, Any]:
        code, document, output = self.one(*more, table=table)
        self.assertEqual(code, expected, output)
        self.assertIn(word, output)
        self.assertNotIn("Traceback", output)
        return document

    def test_another_kernel(self) -> None:
        self.launches[1][2] = "void kbench::<unnamed>::softmax<(int)8>(T1)"
        document = self.fails(1, "kernel 2 is not the same: kbench ran norm<8> (h.0.ln_1 layernorm), ncu profiled void")
        self.assertEqual((document["cases"][0]["status"], document["cases"][0]["rows"]), ("failed", []))

    def test_fewer_kernels(self) -> None:
        self.launches.pop()
        self.fails(1, "ncu profiled 4 kernels, 5 were asked for")

    def test_no_kernel(self) -> None:
        self.fails(1, "kbench@forward/", table="==WARNING== No kernels were profiled.\n")

    def test_no_permission(self) -> None:
        table = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters\n"
        document = self.fails(3, "NVreg_RestrictProfilingToAdminUsers=0", table=table)
        self.assertEqual(document["cases"][0]["status"], "missing")

    def test_another_error_of_ncu(self) -> None:
        self.fails(1, "ncu: a driver resource was unavailable", table="==ERROR== a driver resource was unavailable\n")

    def test_a_unit_that_nobody_knows(self) -> None:
        units = ["fortnight" if unit == "ns" else unit for unit in UNITS]
        self.fails(1, "unit 'fortnight' of gpu__time_duration.sum", table=csv_text(self.launches, units))

    def test_a_quantity_that_ncu_never_has(self) -> None:
        for row in self.launches:
            row[TITLES.index(ncu.DRAM_READ)] = "n/a"
        self.fails(1, "dram_read_bytes could not be compared on any kernel: ncu has no value")

    def test_counters_that_kbench_discarded(self) -> None:
        for entry in self.result["points"][0]["steps"]:
            entry |= {"counters": {}, "counters_discarded": "the clock changed"}
        self.fails(1, "duration_ns could not be compared on any kernel: the clock changed")

    def test_kbench_without_counters(self) -> None:
        self.result["points"][0]["counters"]["unavailable"] = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
        self.fails(3, "kbench has no counters: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES; this user may not")

    def test_kbench_without_a_gpu_or_with_a_wrong_option_or_failing(self) -> None:
        for exit_code, expected in ((3, 3), (2, 2), (1, 1)):
            with self.subTest(exit_code):
                self.setUp()
                (self.directory / "exit_code").write_text(str(exit_code))
                self.fails(expected, "kbench: kbench: the last word")

    def test_a_failed_case_keeps_the_others(self) -> None:
        self.launches[0][2] = "something_else"
        code, document, output = self.compare("--no-cost")
        self.assertEqual((code, len(document["cases"])), (1, 3), output)

    def test_ncu_is_missing(self) -> None:
        if pathlib.Path("/usr/local/cuda/bin/ncu").exists():
            self.skipTest("this machine has an ncu where the script looks last")
        nowhere = str(self.directory / "nowhere")
        code, document, output = self.compare(environment={"PATH": nowhere, "CUDA_HOME": nowhere})
        self.assertEqual((code, document), (3, {}), output)
        self.assertIn("ncu is missing", output)

    def test_ncu_is_found_in_cuda_home(self) -> None:
        for name in ("toolkit/bin", "tools"):
            (self.directory / name).mkdir(parents=True)
        (self.directory / "tools" / "sh").symlink_to("/bin/sh")
        (self.directory / "tools" / "mktemp").symlink_to(shutil.which("mktemp") or "/bin/mktemp")
        for name in ("ncu", "ncu.csv"):  # the false ncu looks for its table beside itself
            (self.directory / "toolkit" / "bin" / name).symlink_to(self.directory / name)
        environment = {"PATH": str(self.directory / "tools"), "CUDA_HOME": str(self.directory / "toolkit")}
        code, document, output = self.compare("--model", "m", "--kernels", "5", "--no-cost", environment=environment)
        self.assertEqual(code, 0, output)
        self.assertEqual(document["cases"][0]["ncu"]["command"][0], str(self.directory / "toolkit" / "bin" / "ncu"))

    def test_bad_usage(self) -> None:
        wrong = [["--seq", "8"], ["--model", "m", "--seq", "0"], ["--kernels", "x"], ["--ncu", "no-such-program"]]
        wrong += [["--kbench", "no-such-program"], ["--precision", "fp8", "--model", "m"], ["--unknown"]]
        for options in wrong:
            with self.subTest(options):
                code, document, output = self.compare(*options)
                self.assertEqual((code, document), (2, {}), output)
                self.assertNotIn("Traceback", output)

    def test_a_comparison_is_not_overwritten(self) -> None:
        self.one()
        self.fails(2, "holds a comparison already")


class Parsing(unittest.TestCase):
    def test_units_separators_and_other_lines(self) -> None:
        units = [{"ns": "usecond", "byte": "Mbyte", "byte/block": "Kbyte/block"}.get(unit, unit) for unit in UNITS]
        row = launch(0, "void k<(int)8>(float *, int)")
        row[TITLES.index(ncu.DURATION)] = "1,234.5"
        row[TITLES.index(ncu.DRAM_READ)] = "2.5"
        row[TITLES.index(ncu.STATIC_SHARED)] = "4.096"
        row[TITLES.index(ncu.ACHIEVED)] = "n/a"
        (parsed,) = ncu.parse_csv("the program's own\n" + csv_text([row], units) + "==PROF== Disconnected\nmore\n")
        self.assertEqual(parsed.name, "void k<(int)8>(float *, int)")
        self.assertEqual(parsed.metrics[ncu.DURATION], 1234500)
        self.assertEqual(parsed.metrics[ncu.DRAM_READ], 2.5e6)
        self.assertAlmostEqual(parsed.metrics[ncu.STATIC_SHARED] or 0, 4096)
        self.assertIsNone(parsed.metrics[ncu.ACHIEVED])
        self.assertEqual((parsed.grid, parsed.block), ((8, 2, 1), (128, 1, 1)))

    def test_an_ncu_without_the_columns_of_grid_and_block(self) -> None:
        row = launch(0, "k")
        row[5] = row[6] = ""
        (parsed,) = ncu.parse_csv(csv_text([row]))
        self.assertEqual((parsed.grid, parsed.block), (None, None))
        self.assertEqual(ncu.check_dimensions("grid", [4, 4, 1], parsed)["verdict"], "agrees")
        self.assertEqual(ncu.check_dimensions("block", [64, 1, 1], parsed)["verdict"], "deviates")

    def test_no_table(self) -> None:
        self.assertEqual(ncu.parse_csv("==PROF== nothing\n"), [])

    def test_base_names(self) -> None:
        names = {
            "void kbench::(anonymous namespace)::softmax<(int)8, float>(float const*, int)": "softmax",
            "kbench::cuda::embed(float *)": "embed",
            "gemm_128x64_tn": "gemm_128x64_tn",
            "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_128x256>(T1::Params)": "Kernel2",
            "std::enable_if<(1 > 0), void>::type a::b<c<d>>(e<f>)": "b",
            "void k<(bool)1>(void (*)(int)) [clone .part.0]": "k",
            "": "",
        }
        for name, base in names.items():
            self.assertEqual(ncu.base_name(name), base, name)

    def test_kernels_that_differ_in_a_long_argument_only(self) -> None:
        one = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nn_align1>(P)"
        entry = {"name": one, "short_name": "Kernel2<...>"}
        self.assertTrue(ncu.same_kernel(entry, one.replace("(P)", "(T1::Params)")))
        self.assertTrue(ncu.same_kernel(entry, "Kernel2"))
        self.assertFalse(ncu.same_kernel(entry, one.replace("128x256", "256x128")))

    def test_old_results_are_refused(self) -> None:
        with self.assertRaisesRegex(Stop, "older than this script"):
            ncu.usable_point({"points": [{"status": "done", "reason": "", "steps": []}]})


if __name__ == "__main__":
    unittest.main()

"""kbench as installed: found by CMake, and with a kernel from outside the tree in it that is verified, timed and set
beside the built-in ones, and refused when it is wrong. And as released: cpack's archive and the wheel run and are found
by CMake where nothing that kbench is built from is installed.

installed_test.py BUILD_FOLDER; skips (77) without Ninja. Installs into a temporary folder, which it removes.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # for the other test that lies beside this one
from runpath_test import entries, programs, wrong  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path()
SHAPE = "r1000w1280"
# An off-by-one: the last element of a row is missing from its sum.
BUGS = {"my_layernorm.cpp": ("column < width; ++column) sum +=", "column < width - 1; ++column) sum +="),
        "my_layernorm.cu": ("column < width; column += warp) sum +=", "column < width - 1; column += warp) sum +="),
        # A sign: the gate is not silu.
        "geglu.cpp": ("1 + std::erf(x", "1 - std::erf(x")}


def run(*command: str | pathlib.Path, **more) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)


def must(*command: str | pathlib.Path) -> str:
    done = run(*command)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def configure_example(folder: pathlib.Path, prefix: pathlib.Path, *options: str, example: str = "my_kernel") -> subprocess.CompletedProcess:
    if not (folder / "source").exists():
        shutil.copytree(ROOT / "examples" / example, folder / "source")
    # PTX alone is compiled once and runs on every GPU.
    return run("cmake", "-S", folder / "source", "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
               "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_CUDA_ARCHITECTURES=80-virtual", *options)


def needed(program: pathlib.Path) -> list[str]:
    """The libraries without which the loader does not start it."""
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]", must("readelf", "--dynamic", "--wide", program))


class Installed(unittest.TestCase):
    folder: pathlib.Path
    prefix: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kbench_installed_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.environment = {**os.environ, "KBENCH_CACHE_DIR": str(cls.folder / "cache"), "OMP_WAIT_POLICY": "passive"}
        must("cmake", "--install", BUILD, "--prefix", cls.folder / "staged")
        # What is installed may be moved: nothing in it names the folder it was first in.
        cls.prefix = (cls.folder / "staged").rename(cls.folder / "installed")
        cls.build_example("right")

    @classmethod
    def configure(cls, name: str, *options: str) -> subprocess.CompletedProcess:
        return configure_example(cls.folder / name, cls.prefix, *options)

    @classmethod
    def build_example(cls, name: str) -> None:
        configured = cls.configure(name)
        if configured.returncode != 0:
            raise AssertionError(configured.stdout + configured.stderr)
        must("cmake", "--build", cls.folder / name / "build")

    def kbench(self, name: str, *arguments: str) -> subprocess.CompletedProcess:
        return run(self.folder / name / "build/my_kbench", *arguments, env=self.environment, cwd=self.folder)

    def micro(self, name: str, backend: str, out: str) -> tuple[subprocess.CompletedProcess, dict]:
        """The call and its rows by provider."""
        done = self.kbench(name, "micro", "--op", "layernorm", "--shape", SHAPE, "--provider", "mine,native", "--precision", "fp32",
                           "--cache", "hot", "--backend", backend, "--ceilings", "none", "--time-budget", "0.2",
                           "--benchmark_format=json", "--out", out)
        if done.returncode == 3:
            self.skipTest(done.stderr.strip())
        rows = {row["name"].split("/")[1]: row for row in json.loads(done.stdout)["benchmarks"]}
        self.assertEqual(set(rows), {"mine", "native"}, done.stderr)
        return done, rows

    def check_right(self, backend: str) -> None:
        done, rows = self.micro("right", backend, f"right-{backend}")
        self.assertEqual(done.returncode, 0, done.stderr)
        for provider, row in rows.items():
            self.assertNotIn("error_occurred", row, provider)
            self.assertGreater(row["real_time"], 0, provider)
            self.assertGreater(row["GB/s"], 0, provider)
        points = json.loads((self.folder / f"right-{backend}/result.json").read_text())["points"]
        verified = {step["provider"]: step for point in points for step in point["verification"]["steps"]}
        for provider in ("mine", "native"):
            self.assertEqual(verified[provider]["elements_checked"], 1000 * 1280, provider)
            self.assertGreater(verified[provider]["error_over_bound"], 0, provider)

    def check_wrong(self, backend: str) -> None:
        done, rows = self.micro("wrong", backend, f"wrong-{backend}")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(rows["mine"]["error_occurred"])
        message = rows["mine"]["error_message"]
        self.assertRegex(message, r"verification failed: layernorm r1000w1280 .* by mine .* out\[\d+, \d+\] is .* the reference says")
        self.assertIn(message, done.stderr)
        for figure in ("GB/s", "TFLOP/s", "roof%"):
            self.assertNotIn(figure, rows["mine"])
        self.assertFalse(rows["mine"].get("real_time"), "a wrong kernel has no time")
        self.assertGreater(rows["native"]["real_time"], 0, "the right one beside it is measured all the same")
        points = {point["status"]: point for point in json.loads((self.folder / f"wrong-{backend}/result.json").read_text())["points"]}
        self.assertIsNone(points["failed"].get("end_to_end"))
        self.assertIn("out[", points["failed"]["reason"])

    def plant_bugs(self) -> None:
        if (self.folder / "wrong").exists():
            return
        shutil.copytree(ROOT / "examples/my_kernel", self.folder / "wrong/source")
        for name, (right, wrong) in BUGS.items():
            path = self.folder / "wrong/source" / name
            text = path.read_text()
            self.assertEqual(text.count(right), 1, f"{name} no longer has the line that this test breaks")
            path.write_text(text.replace(right, wrong))
        self.build_example("wrong")

    def test_completion_and_the_man_page_are_installed(self) -> None:
        for file in ("bash-completion/completions/kbench", "zsh/site-functions/_kbench", "fish/vendor_completions.d/kbench.fish",
                     "man/man1/kbench.1"):
            self.assertIn("gpt2-large" if "man" not in file else "OPTIONS OF run", (self.prefix / "share" / file).read_text())

    def test_a_kernel_is_verified_and_timed_beside_the_built_in_one(self) -> None:
        self.check_right("cpu")

    def test_on_a_gpu_too(self) -> None:
        if not self.has_cuda():
            self.skipTest("built without CUDA")
        self.check_right("cuda")
        self.plant_bugs()
        self.check_wrong("cuda")

    def test_a_wrong_kernel_is_refused_with_the_element_and_gets_no_time(self) -> None:
        self.plant_bugs()
        self.check_wrong("cpu")

    def test_a_whole_model_runs_with_it(self) -> None:
        config = self.folder / "config.json"
        config.write_text(json.dumps({"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 301, "n_positions": 32}))
        done = self.kbench("right", "--config", str(config), "--seq", "32", "--provider", "layernorm=mine", "--quick", "--backend", "cpu",
                           "--ceilings", "none", "--counters", "none", "--out", "model")
        self.assertEqual(done.returncode, 0, done.stderr)
        steps = json.loads((self.folder / "model/result.json").read_text())["points"][0]["steps"]
        self.assertEqual([step["provider"] for step in steps if step["op"] == "layernorm"], ["mine"] * 5)

    def test_it_is_listed(self) -> None:
        listed = self.kbench("right", "list", "providers").stdout
        self.assertRegex(listed, r"(?m)^cpu +mine +layer norm and GEGLU in plain C\+\+$")
        if self.has_cuda():
            self.assertRegex(listed, r"(?m)^cuda +mine +layer norm and GEGLU, plain CUDA$")
        self.assertRegex(self.kbench("right", "list", "ops").stdout, r"(?m)^geglu +r4096w11008 +GEGLU's gate")

    def check_own_op(self, backend: str, name: str) -> subprocess.CompletedProcess:
        done = self.kbench(name, "micro", "--op", "geglu", "--shape", "r100w1000", "--provider", "mine", "--precision", "fp32",
                           "--cache", "hot", "--backend", backend, "--ceilings", "none", "--time-budget", "0.1",
                           "--benchmark_format=json", "--out", f"geglu-{name}-{backend}")
        if done.returncode == 3:
            self.skipTest(done.stderr.strip())
        return done

    def test_an_op_kind_of_ones_own_is_verified_timed_and_costed(self) -> None:
        for backend in ("cpu", "cuda") if self.has_cuda() else ("cpu",):
            with self.subTest(backend=backend):
                done = self.check_own_op(backend, "right")
                self.assertEqual(done.returncode, 0, done.stderr)
                point = json.loads((self.folder / f"geglu-right-{backend}/result.json").read_text())["points"][0]
                self.assertEqual(point["steps"][0]["op"], "geglu")
                self.assertEqual(point["steps"][0]["cost"]["flops"], 6 * 100 * 1000)
                self.assertEqual(sum(point["steps"][0]["cost"]["bytes_read"].values()), 4 * 100 * 2000)
                self.assertEqual(point["verification"]["steps"][0]["elements_checked"], 100 * 1000)
                self.assertGreater(json.loads(done.stdout)["benchmarks"][0]["real_time"], 0)

    def test_a_wrong_kernel_for_it_is_refused_too(self) -> None:
        self.plant_bugs()
        done = self.check_own_op("cpu", "wrong")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("verification failed: geglu r100w1000", done.stderr)

    def test_results_are_read_through_the_public_header_alone(self) -> None:
        source = self.folder / "reader.cpp"
        source.write_text('#include <kbench/error.h>\n#include <kbench/result.h>\n#include <cstdio>\n'
                          "double median(const char* path) {\n"
                          "    return kbench::read_result(path).result.points.at(0).end_to_end->latency.summary_ms.median;\n}\n")
        entry = next(e for e in json.loads((self.folder / "right/build/compile_commands.json").read_text())
                     if e["file"].endswith(".cpp"))
        command = entry["command"].replace(entry["file"], str(source)).replace(" -c ", " -fsyntax-only ")
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, cwd=entry["directory"])
        self.assertEqual(done.returncode, 0, done.stderr)

    def has_cuda(self) -> bool:
        text = (self.prefix_package() / "kbench-config.cmake").read_text()
        return re.search(r"set\(KBENCH_HAS_CUDA (\w+)\)", text)[1] == "ON"

    def prefix_package(self) -> pathlib.Path:
        return next(self.prefix.glob("lib*/**/cmake/kbench"))

    def test_the_program_runs_from_where_it_is(self) -> None:
        done = run(self.prefix / "bin/kbench", "--version")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^kbench \d+\.\d+\.\d+ ")

    def test_a_users_program_never_loads_from_the_current_directory(self) -> None:
        if shutil.which("readelf") is None:
            self.skipTest("no readelf")
        program = self.folder / "right/build/my_kbench"
        self.assertEqual(wrong(entries(program)), [], entries(program))

    def test_our_warnings_and_paths_are_not_the_users(self) -> None:
        commands = (self.folder / "right/build/compile_commands.json").read_text()
        for flag in ("-Wall", "-Werror", "-Wshadow", "-fsanitize", str(ROOT)):
            self.assertNotIn(flag, commands)
        for file in self.prefix_package().glob("kbench-targets*.cmake"):
            self.assertNotIn(str(ROOT), file.read_text(), file.name)

    def test_every_installed_header_compiles_with_the_exported_folders(self) -> None:
        root = self.prefix / "include"
        headers = sorted(str(path.relative_to(root)) for path in root.rglob("*.h"))
        self.assertIn("kbench/kernel.h", headers)
        self.assertIn("kbench/result.h", headers)
        self.assertIn("kbench/ops/gemm.h", headers)
        self.assertEqual([header for header in headers if not header.startswith("kbench/")], [])
        for name in headers:
            for line in (root / name).read_text().splitlines():
                if match := re.match(r'\s*#\s*include\s*"([^"]+)"', line):
                    self.assertTrue((root / match[1]).exists(), f"{name} includes {match[1]}, which is not installed")
        entry = next(e for e in json.loads((self.folder / "right/build/compile_commands.json").read_text())
                     if e["file"].endswith(".cpp"))
        source = self.folder / "headers.cpp"
        source.write_text("".join(f'#include "{header}"\n' for header in headers))
        command = entry["command"].replace(entry["file"], str(source)).replace(" -c ", " -fsyntax-only ")
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, cwd=entry["directory"])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_program_measures_itself_with_the_profiler_alone_or_is_compiled_without(self) -> None:
        if not self.has_cuda():
            self.skipTest("built without CUDA")
        # What the rest of kbench needs is not even looked for.
        without = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("fmt", "CLI11", "dnnl", "OpenMP", "PkgConfig")]
        for profiling in ("ON", "OFF"):
            folder = self.folder / f"training_loop_{profiling}"
            done = configure_example(folder, self.prefix, f"-DKBENCH_PROFILING={profiling}", *without, example="training_loop")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            must("cmake", "--build", folder / "build")
            program = folder / "build/training_loop"
            self.assertEqual("libkbench_profile.so.0" in needed(program), profiling == "ON")
            self.assertEqual("kbench" in must("nm", "--demangle", program), profiling == "ON")
            done = run(program, "--steps", "100", cwd=folder, env={**os.environ, "KBENCH_PROFILE_SCHEDULE": str(folder / "prof.schedule")})
            if done.returncode == 3:
                self.assertEqual(done.stderr, "training_loop: --gpus 1: this machine has 0\n")
            else:
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(run(program, "--gpus", "1000").returncode, 3)

    def test_what_is_missing_is_said_in_one_line(self) -> None:
        done = self.configure("lacking", "-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON")
        self.assertNotEqual(done.returncode, 0)
        said = " ".join(done.stderr.split())
        self.assertRegex(said, r"kbench \S+ needs what was not found: fmt \d+ \(libfmt-dev\), benchmark 1\.7 \(libbenchmark-dev\)")

    def test_licences_of_what_is_inside_come_along(self) -> None:
        licences = {path.parent.name for path in self.prefix.glob("share/doc/kbench/licences/*/LICENSE*")}
        self.assertLessEqual({"kbench", "plotly"}, licences)
        if list(self.prefix.glob("lib*/**/libdnnl.so*")):
            self.assertIn("onednn", licences)
        targets = "".join(path.read_text() for path in self.prefix_package().glob("kbench-targets*.cmake"))
        if "KBENCH_HAVE_CUDNN" in targets and (ROOT / ".deps/cudnn").exists():
            self.assertIn("cudnn_frontend", licences)


@unittest.skipUnless(shutil.which("patchelf") and shutil.which("dpkg-query"), "no patchelf, or no Debian, whose licence texts are packed")
class Released(unittest.TestCase):
    # What kbench's own build finds, and whoever has an archive or a wheel need not have.
    INSIDE = ("fmt", "CLI11", "nlohmann_json", "ZLIB", "benchmark", "dnnl", "PkgConfig")
    SYSTEM = r"(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)|ld-linux-x86-64)\.so\.\d+"
    folder: pathlib.Path
    archive: pathlib.Path
    prefix: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kbench_released_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        must("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", cls.folder / "packed")
        (cls.archive,) = (cls.folder / "packed").glob("*.tar.gz")
        must("tar", "xzf", cls.archive, "-C", cls.folder)
        (cls.prefix,) = cls.folder.glob("kbench-*")
        cls.environment = {"HOME": str(cls.folder), "PATH": "/usr/bin:/bin", "OMP_WAIT_POLICY": "passive"}

    def kbench(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        return run(self.prefix / "bin/kbench", *arguments, env={**self.environment, **environment}, cwd=self.folder)

    def has_cuda(self) -> bool:
        return "-cuda" in self.archive.name

    def test_every_library_lies_inside_or_is_the_systems(self) -> None:
        found = programs(self.prefix)
        inside = {path.name for path in found}
        self.assertLessEqual({"kbench", "libdnnl.so.3", "libopenblas.so.0", "libgomp.so.1"}, inside)
        for path in found:
            with self.subTest(path=path.name):
                self.assertEqual([entry for entry in entries(path) if not entry.startswith("$ORIGIN")], [])
                # It is put into programs that use CUDA, with kbench's CUPTI in reach (kbench attach).
                own = r"libcupti\.so\.\d+" if path.name == "libkbench_attach.so" else "none"
                outside = [name for name in needed(path) if name not in inside and not re.fullmatch(self.SYSTEM, name)]
                self.assertEqual([name for name in outside if not re.fullmatch(own, name)], [])

    def test_nothing_is_compiled_for_this_machine_alone(self) -> None:
        for entry in json.loads((BUILD / "compile_commands.json").read_text()):
            self.assertNotRegex(entry["command"], r"-m(arch|tune|cpu)=native|-arch=native", entry["file"])

    def test_licences_of_all_that_is_inside_come_along(self) -> None:
        licences = {path.parent.name for path in self.prefix.glob("share/doc/kbench/licences/*/*") if path.stat().st_size > 0}
        libraries = {path.name.split(".so")[0] for path in programs(self.prefix)} - {"kbench", "libdnnl", "libkbench_attach", "libkbench_profile"}
        compiled_in = {"kbench", "plotly", "cli11", "nlohmann_json"} | ({"cuda_runtime"} if self.has_cuda() else set())
        self.assertLessEqual(libraries | compiled_in, licences)
        self.assertTrue(licences & {"onednn", "libdnnl"})

    def check_runs(self, *program: str | pathlib.Path, **environment: str) -> None:
        config = self.folder / "config.json"
        config.write_text(json.dumps({"n_embd": 64, "n_layer": 1, "n_head": 4, "vocab_size": 301, "n_positions": 32}))
        done = run(*program, "--config", config, "--seq", "32", "--quick", "--backend", "cpu", "--ceilings", "none", "--counters", "none",
                   "--out", tempfile.mkdtemp(dir=self.folder) + "/run", env={**self.environment, **environment}, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_it_runs(self) -> None:
        self.assertRegex(self.kbench("--version").stdout, r"^kbench \d+\.\d+\.\d+ ")
        self.check_runs(self.prefix / "bin/kbench")

    def test_without_cudas_libraries_it_starts_and_says_which_one_a_call_lacks(self) -> None:
        if not self.has_cuda():
            self.skipTest("built without CUDA")
        empty = self.folder / "empty"
        empty.mkdir()
        (self.folder / "empty.c").write_text("")
        for name in ("cublas", "cublasLt", "cupti"):
            major = re.search(r"-cuda(\d+)", self.archive.name)[1]
            must("cc", "-shared", "-o", empty / f"lib{name}.so.{major}", self.folder / "empty.c")
        self.assertEqual(self.kbench("--version", LD_LIBRARY_PATH=str(empty)).returncode, 0)
        done = self.kbench("list", "metrics", "--chip", "GH100", LD_LIBRARY_PATH=str(empty))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^passes are unknown: no libcupti\.so\.\d+ with all that kbench calls was found .*--backend cpu$")

    def check_found(self, name: str, prefix: pathlib.Path) -> None:
        done = configure_example(self.folder / name, prefix, *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in self.INSIDE))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_cmake_finds_it_and_builds_the_example_without_what_kbench_is_built_from(self) -> None:
        self.check_found("example", self.prefix)
        must("cmake", "--build", self.folder / "example/build")
        listed = must(self.folder / "example/build/my_kbench", "list", "providers")
        self.assertRegex(listed, r"(?m)^cpu +mine ")

    def test_the_wheel_gives_the_command_and_the_cmake_package(self) -> None:
        python = next((python for python in (sys.executable, "/usr/bin/python3") if run(python, "-c", "import pip").returncode == 0), None)
        if python is None:
            self.skipTest("no pip")
        made = run(ROOT / "scripts/wheel", self.archive)
        if made.returncode == 3:
            self.skipTest(made.stderr.strip())
        self.assertEqual(made.returncode, 0, made.stderr)
        (wheel,) = self.archive.parent.glob("kbench_cuda-*-py3-none-manylinux_2_*_x86_64.whl")
        site = self.folder / "site"
        must(python, "-m", "pip", "install", "--no-index", "--no-deps", "--target", site, wheel)
        self.check_runs(site / "bin/kbench", PYTHONPATH=str(site))
        prefix = run(sys.executable, "-m", "kbench_cuda", "--cmake-prefix", env={**os.environ, "PYTHONPATH": str(site)}).stdout.strip()
        self.check_found("wheel", pathlib.Path(prefix))
        metadata = next(site.glob("kbench_cuda-*.dist-info/METADATA")).read_text()
        self.assertEqual("Requires-Dist: nvidia-cublas" in metadata, self.has_cuda())
        self.assertEqual(any("/nvidia/cu" in entry for entry in entries(pathlib.Path(prefix) / "bin/kbench")), self.has_cuda())


if __name__ == "__main__":
    for tool in ("ninja", "cmake"):
        if shutil.which(tool) is None:
            print(f"skipped: no {tool} on PATH")
            sys.exit(77)
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()

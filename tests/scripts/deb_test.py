"""The Debian package kbench-profile as `cpack -G DEB` makes it: it is for the release that it was made on and holds the
profiler alone; unpacked, programs in C and C++ find it, link it and run.

deb_test.py BUILD_FOLDER; skips (77) where a tool is missing. Everything is made in a temporary folder, which it removes.
"""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # for the other test that lies beside this one
from installed_test import must, needed, run  # noqa: E402

BUILD = pathlib.Path()

PROGRAM = """#include <kbench/profile.h>

int main(void) {
    for (int step = 0; step < 3; ++step) {
        kbench_iteration(0);
        kbench_scope_begin("work", 0);
        kbench_scope_end("work", 0);
    }
    kbench_profile_finish();
    return 0;
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(two LANGUAGES C CXX)
find_package(kbench 0.1 REQUIRED COMPONENTS profile)
foreach(language c cpp)
    add_executable(in_${language} program.${language})
    target_link_libraries(in_${language} PRIVATE kbench::profile)
    target_compile_options(in_${language} PRIVATE -Wall -Wextra -Werror)
endforeach()
set_target_properties(in_c PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
"""


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


class Packed(unittest.TestCase):
    folder: pathlib.Path
    package: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kbench_deb_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.packed = run("cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", cls.folder / "packed")
        if "which is built only with CUDA: -DKBENCH_CUDA=ON" in cls.packed.stderr:
            raise unittest.SkipTest("built without CUDA")
        if cls.packed.returncode != 0:
            raise AssertionError(cls.packed.stdout + cls.packed.stderr)
        (cls.package,) = (cls.folder / "packed").glob("*.deb")
        must("dpkg", "--extract", cls.package, cls.folder / "root")
        source = cls.folder / "source"
        source.mkdir()
        for language in ("c", "cpp"):
            (source / f"program.{language}").write_text(PROGRAM)
        (source / "CMakeLists.txt").write_text(PROJECT)

    def field(self, name: str) -> str:
        return must("dpkg-deb", "--field", self.package, name).strip()

    def configure(self, source: pathlib.Path, build: str) -> subprocess.CompletedProcess:
        return run("cmake", "-S", source, "-B", self.folder / build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.folder / 'root/usr'}")

    def test_it_is_for_the_release_that_it_was_made_on(self) -> None:
        suite = re.search(r"(?m)^VERSION_CODENAME=\"?(\w+)", pathlib.Path("/etc/os-release").read_text())[1]
        version = re.search(r'set\(CPACK_PACKAGE_VERSION "(.*)"\)', (BUILD / "CPackConfig.cmake").read_text())[1]
        architecture = must("dpkg", "--print-architecture").strip()
        self.assertEqual(self.package.name, f"kbench-profile_{version}~{suite}_{architecture}.deb")
        self.assertEqual((self.field("Package"), self.field("Version")), ("kbench-profile", f"{version}~{suite}"))
        depends = self.field("Depends")
        self.assertEqual(set(re.findall(r"(\S+) \(>= \S+\)", depends)), {"libc6", "libgcc-s1", "libstdc++6"}, depends)

    def test_it_holds_the_profiler_alone(self) -> None:
        root = self.folder / "root/usr"
        self.assertEqual({str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir() and "cmake" not in path.parts}, {
            "include/kbench/profile.h", "lib/libkbench_profile.so", "lib/libkbench_profile.so.0", "share/doc/kbench-profile/copyright"})
        self.assertIn("ldconfig", must("dpkg-deb", "--info", self.package, "postinst"))

    def test_programs_in_c_and_cpp_find_it_and_run_without_a_gpu(self) -> None:
        done = self.configure(self.folder / "source", "build")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        must("cmake", "--build", self.folder / "build")
        (self.folder / "wrong").write_text("scope *\nrepeat often\n")
        (self.folder / "right").write_text("scope *\n")
        for language in ("c", "cpp"):
            program = self.folder / f"build/in_{language}"
            self.assertIn("libkbench_profile.so.0", needed(program))
            for schedule, said in (("", r"^$"), ("wrong", r"^kbench: profile: wrong:2: repeat 'often' must .*; profiling is off\n$"),
                                   ("right", r"^kbench: profile: no CUDA driver is loaded \(libcuda\.so\.1\); profiling is off\n$")):
                if schedule == "right" and has_driver():
                    continue
                done = run(program, cwd=self.folder, env={**os.environ, "KBENCH_PROFILE_SCHEDULE": schedule})
                self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
                self.assertRegex(done.stderr, said)

    def test_who_asks_for_the_rest_of_kbench_is_told_what_is_there(self) -> None:
        source = self.folder / "whole"
        source.mkdir()
        (source / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(whole LANGUAGES CXX)\nfind_package(kbench REQUIRED)\n")
        done = self.configure(source, "build_whole")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(" ".join(done.stderr.split()), r"only the profiler is installed here: find_package\(kbench COMPONENTS profile\)")


if __name__ == "__main__":
    for tool in ("ninja", "cmake", "cpack", "dpkg", "dpkg-shlibdeps", "file", "readelf"):
        if shutil.which(tool) is None:
            print(f"skipped: no {tool} on PATH")
            sys.exit(77)
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()

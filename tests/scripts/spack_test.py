"""The recipes for Spack (packaging/spack), read with a stand-in for Spack's directives: each thing that CMake and
scripts/setup look for is named there, no older than they want it, and every option that is set exists.

spack_test.py, without arguments.
"""

import importlib.util
import pathlib
import re
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "packaging/spack/spack_repo/kbench/packages"
CMAKE = (ROOT / "CMakeLists.txt").read_text()

# What Spack calls the packages that CMake finds; None: it comes with the compiler or the C library.
NAMES = {"CLI11": "cli11", "benchmark": "benchmark", "fmt": "fmt", "nlohmann_json": "nlohmann-json", "ZLIB": "zlib-api", "dnnl": "onednn",
         "openblas": "openblas", "PkgConfig": "pkgconfig", "OpenMP": None, "Threads": None}
# And commands that scripts/setup installs: git tells a checkout's revision, and Spack has it where it clones this one.
COMMANDS = {"ninja": "generator", "pkg-config": "pkgconfig", "git": None}


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


class Directives:
    """Records what a recipe calls; what Spack's base classes are is not asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple, dict]] = []

    def named(self, name: str):
        def directive(*arguments, **options):
            self.calls.append((name, arguments, options))
            return lambda method: method
        return directive

    def all(self, name: str) -> list[tuple[tuple, dict]]:
        return [(arguments, options) for called, arguments, options in self.calls if called == name]


def module(name: str, **members) -> None:
    made = types.ModuleType(name)
    vars(made).update(members, __path__=[], __all__=list(members))
    sys.modules[name] = made


def read_recipe(package: str, directives: Directives) -> type:
    cuda = type("CudaPackage", (), {"cuda_arch_values": ("70", "75", "80", "90", "90a", "100f")})
    build_systems = "spack_repo.builtin.build_systems"
    for name in ("spack_repo", "spack_repo.builtin", build_systems, "spack_repo.builtin.packages", "spack_repo.builtin.packages.onednn", "spack"):
        module(name)
    module("spack_repo.builtin.packages.onednn.package", Onednn=type("Onednn", (), {}))
    module(f"{build_systems}.cmake", CMakePackage=type("CMakePackage", (), {}), generator=directives.named("generator"))
    module(f"{build_systems}.cuda", CudaPackage=cuda)
    module("spack.package", **{name: directives.named(name) for name in ("conflicts", "depends_on", "license", "resource", "run_before", "version")})
    found = importlib.util.spec_from_file_location(f"recipe_{package}", PACKAGES / package / "package.py")
    recipe = importlib.util.module_from_spec(found)
    found.loader.exec_module(recipe)
    return getattr(recipe, package.capitalize())


class Spec:
    """A concrete spec, such as +cuda cuda_arch=80,90."""

    def __init__(self, cuda: bool, architectures: tuple[str, ...]) -> None:
        self.holds = {"+cuda" if cuda else "~cuda"} | (set() if architectures else {"cuda_arch=none"})
        self.variants = {"cuda_arch": types.SimpleNamespace(value=architectures or ("none",))}

    def satisfies(self, what: str) -> bool:
        return what in self.holds


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        sys.dont_write_bytecode = True
        cls.directives = Directives()
        cls.kbench = read_recipe("kbench", cls.directives)
        cls.depends = {}  # package -> oldest version, or nothing
        for (spec,), _ in cls.directives.all("depends_on"):
            name, oldest = re.match(r"([\w-]+)(?:@([\d.]+):)?", spec).groups()
            cls.depends[name] = oldest

    def check(self, name: str, oldest: str | None) -> None:
        self.assertIn(name, self.depends)
        if oldest and name != "zlib-api":  # its versions are those of the package that provides it
            self.assertEqual(numbers(self.depends[name] or "0"), numbers(oldest), f"{name} {oldest}")

    def test_what_cmake_looks_for_is_named(self) -> None:
        found = re.findall(r"find_package\((\w+)(?: ([\d.]+))?", CMAKE) + re.findall(r"pkg_check_modules\((\w+) [^)]*>=([\d.]+)\)", CMAKE)
        self.assertLessEqual(set(NAMES), {name for name, _ in found})
        for name, oldest in found:
            with self.subTest(name):
                self.assertIn(name, NAMES, "CMakeLists.txt needs it: add it to packaging/spack and to NAMES here")
                if NAMES[name]:
                    self.check(NAMES[name], oldest)
        self.check("cmake", re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", CMAKE)[1])
        self.check("cuda", re.search(r"CUDAToolkit_VERSION VERSION_LESS ([\d.]+)\)", (ROOT / "cmake/cuda.cmake").read_text())[1])
        self.check("googletest", re.search(r"find_package\(GTest ([\d.]+)", (ROOT / "tests/CMakeLists.txt").read_text())[1])

    def test_what_setup_installs_is_named(self) -> None:
        needs = re.findall(r'^    "[^"|]*\|[^"|]*\|[^"|]*\|[^"|]*\|(\w+) (\S+)(?: ([\d.]+))?"$',
                           re.search(r"^needs=\(\n(.*?)^\)", (ROOT / "scripts/setup").read_text(), re.M | re.S)[1], re.M)
        self.assertGreater(len(needs), 9)
        for kind, name, oldest in needs:
            with self.subTest(name):
                if kind == "package":
                    self.check(NAMES[name], oldest)
                elif kind == "cmake":
                    self.check("cmake", oldest)
                elif kind == "compiler":
                    self.assertIn(((f"%gcc@:{int(oldest) - 1}",), {}), self.directives.all("conflicts"))
                elif COMMANDS[name] == "generator":
                    self.assertEqual(self.directives.all("generator"), [((name,), {})])
                elif COMMANDS[name]:
                    self.check(COMMANDS[name], None)

    def test_plotly_is_the_one_that_setup_takes(self) -> None:
        version, digest = re.search(r"^plotly==(\S+) --hash=sha256:(\w+)$", (ROOT / "scripts/requirements-plotly.txt").read_text(), re.M).groups()
        ((_, resource),) = self.directives.all("resource")
        self.assertEqual(resource["sha256"], digest)
        self.assertTrue(resource["url"].endswith(f"/plotly-{version}-py3-none-any.whl"), resource["url"])
        self.assertIn(f"${{CMAKE_SOURCE_DIR}}/{resource['placement']} ", (ROOT / "cmake/embed_report.cmake").read_text())

    def test_onednn_is_pinned_and_new_enough(self) -> None:
        directives = Directives()
        read_recipe("onednn", directives)
        (((version,), pin),) = directives.all("version")
        self.assertGreaterEqual(numbers(version), numbers(self.depends["onednn"]))
        self.assertRegex(pin["commit"], r"^[0-9a-f]{40}$")

    def test_the_source_is_this_checkout(self) -> None:
        self.assertEqual(self.kbench.git, ROOT.as_uri())

    def test_gpus_that_kbench_does_not_support_are_refused(self) -> None:
        refused = {spec for (spec,), options in self.directives.all("conflicts") if "msg" in options}
        self.assertEqual(refused, {"cuda_arch=70", "cuda_arch=75"})

    def arguments(self, cuda: bool, *architectures: str) -> dict:
        made = self.kbench()
        made.spec, made.run_tests = Spec(cuda, architectures), False
        made.define = lambda name, value: (name, value)
        return dict(made.cmake_args())

    def test_every_option_that_is_set_exists(self) -> None:
        for cuda, architectures in ((False, ()), (True, ()), (True, ("80", "90"))):
            options = self.arguments(cuda, *architectures)
            for name in options:
                if name.startswith("KBENCH_"):
                    self.assertRegex(CMAKE, rf"(?:option|set)\({name} ")
            self.assertEqual(options["KBENCH_CUDA"], "ON" if cuda else "OFF")
            self.assertEqual(options.get("CMAKE_CUDA_ARCHITECTURES"), list(architectures) or None, "else CMakeLists.txt chooses")


if __name__ == "__main__":
    unittest.main()

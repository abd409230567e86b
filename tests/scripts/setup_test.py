"""scripts/setup in a checkout of its own, with what it would install or ask replaced by stand-ins: no network, no root,
and nothing of the machine changes."""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Checkout(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        # Every command but those that tell of a GPU, a toolkit or a package manager.
        cls.farm = pathlib.Path(tempfile.mkdtemp(prefix="kbench_setup_"))
        cls.addClassCleanup(shutil.rmtree, cls.farm)
        for folder in os.environ["PATH"].split(":"):
            for path in pathlib.Path(folder).glob("*"):
                if not path.name.startswith(("nvidia-smi", "nvcc", "apt-get", "sudo")) and not (cls.farm / path.name).is_symlink():
                    (cls.farm / path.name).symlink_to(path)

    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kbench_setup_"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.root = self.folder / "checkout"
        (self.root / "scripts").mkdir(parents=True)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for name in ("setup", "common.sh", *(path.name for path in (ROOT / "scripts").glob("requirements-*.txt"))):
            path = self.root / "scripts" / name
            shutil.copy(ROOT / "scripts" / name, path)
            # The machine's files are stand-ins, too.
            text = path.read_text()
            for there in ("/proc/driver/nvidia", "/dev/nvidiactl", "/usr/lib/wsl", "/etc/os-release", "/usr/local/cuda/bin"):
                text = text.replace(there, f"{self.folder}{there}")
            path.write_text(text)
        for name in ("onednn", "plotly"):
            self.unpacked(name)
        for name in ("apt-get", "sudo"):
            self.stand_in(name, f'echo "{name} $*" >>{self.folder}/calls; exit 1')
        self.stand_in("ldconfig", "")
        self.cmake("CLI11 benchmark fmt nlohmann_json openblas ZLIB dnnl")
        self.environment = os.environ | {"PATH": f"{self.bin}:{self.farm}", "KBENCH_CUDA": "OFF", "PIP_NO_INDEX": "1"}
        for name in ("CUDACXX", "CUDA_HOME"):
            self.environment.pop(name, None)

    def unpacked(self, name: str) -> None:
        """As if .deps/NAME had been installed from today's requirements."""
        folder = self.root / ".deps" / name
        folder.mkdir(parents=True)
        shutil.copy(ROOT / f"scripts/requirements-{name}.txt", folder / "requirements.txt")

    def stand_in(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def cmake(self, found: str, version: str = "3.28.3") -> None:
        """A CMake that finds these."""
        self.stand_in("cmake", f'[ "$1" = --version ] && echo "cmake version {version}" && exit\n'
                      f'for name in {found}; do grep -q "find_package($name [0-9]\\|openblas>=" CMakeLists.txt && printf " %s " $name >>found; done')

    def setup(self, *arguments: str, folder: pathlib.Path | None = None, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run([self.root / "scripts/setup", *arguments], cwd=folder or self.folder, env=self.environment | environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


    def calls(self) -> str:
        """What was asked of apt-get and sudo."""
        path = self.folder / "calls"
        return path.read_text() if path.exists() else ""


class Foreign(Checkout):
    """What lies in the directory from which it is called is not run."""

    def wheel(self) -> None:
        """A wheel in place of plotly's, so that unpacking it needs no network."""
        shutil.rmtree(self.root / ".deps/plotly")
        files = {"plotly/package_data/plotly.min.js": "// charts", "plotly-7.1.0.dist-info/licenses/LICENSE.txt": "MIT",
                 "plotly-7.1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: plotly\nVersion: 7.1.0\n",
                 "plotly-7.1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
        digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record = "".join(f"{name},sha256={digest(text)},{len(text)}\n" for name, text in files.items())
        path = self.folder / "wheels/plotly-7.1.0-py3-none-any.whl"
        path.parent.mkdir()
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in (files | {"plotly-7.1.0.dist-info/RECORD": record}).items():
                archive.writestr(name, text)
        digest_of_wheel = hashlib.sha256(path.read_bytes()).hexdigest()
        (self.root / "scripts/requirements-plotly.txt").write_text(f"plotly==7.1.0 --hash=sha256:{digest_of_wheel}\n")

    def test_modules_of_the_current_directory_are_not_imported(self) -> None:
        self.wheel()
        foreign = self.folder / "foreign"
        (foreign / "pip").mkdir(parents=True)
        for name in ("pip/__init__.py", "pip/__main__.py", "zipfile.py", "runpy.py", "os.py"):
            (foreign / name).write_text(f"open({str(self.folder / 'ran')!r}, 'a').write({name!r})\n")
        for environment in ({}, {"PYTHONPATH": str(foreign)}, {"PYTHONPATH": ""}):
            shutil.rmtree(self.root / ".deps/plotly", ignore_errors=True)
            run = self.setup(folder=foreign, PIP_FIND_LINKS=str(self.folder / "wheels"), **environment)
            self.assertFalse((self.folder / "ran").exists(), "ran what lay in the current directory")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual((self.root / ".deps/plotly/plotly.min.js").read_text(), "// charts")
        self.assertEqual(self.calls(), "")

    def test_a_peer_imports_nothing_of_the_current_directory(self) -> None:
        foreign = self.folder / "foreign"
        foreign.mkdir()
        for name in ("json.py", "torch.py", "numpy.py"):
            (foreign / name).write_text(f"open({str(self.folder / 'ran')!r}, 'a').write({name!r})\n")
        program = "import os, sys; from verification import peer; os.chdir(sys.argv[1]); peer.run_torch('torch_steps', {'device': 'cpu'}, 60)"
        subprocess.run([sys.executable, "-c", program, foreign], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT / "scripts")},
                       capture_output=True, timeout=120)
        self.assertFalse((self.folder / "ran").exists(), "ran what lay in the current directory")


class Driver(Checkout):
    """A toolkit that the driver runs is found, or what to do is said before anything is installed."""

    def setUp(self) -> None:
        super().setUp()
        self.environment["KBENCH_CUDA"] = "AUTO"

    def driver(self, cuda: str) -> None:
        self.stand_in("nvidia-smi", f"echo '| NVIDIA-SMI 1.0    Driver Version: 1.0    CUDA Version: {cuda}     |'")

    def nvcc(self, version: str, path: pathlib.Path | None = None) -> None:
        self.stand_in("nvcc", f"echo 'Cuda compilation tools, release {version}, V{version}.1'")
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            (self.bin / "nvcc").rename(path)

    def check(self, code: int, *words: str) -> None:
        run = self.setup()
        self.assertEqual(run.returncode, code, run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)
        self.assertEqual(self.calls(), "")

    def test_a_driver_of_13_takes_any_toolkit_since_12_6(self) -> None:
        self.driver("13.0")
        for version in ("12.6", "12.9", "13.0", "13.1"):
            self.nvcc(version)
            self.check(0)

    def test_a_driver_of_13_without_a_toolkit_gets_one_from_pypi(self) -> None:
        self.driver("13.0")
        self.nvcc("12.4")
        self.check(1, "to install from PyPI into .deps/cuda: CUDA 13.0", "installing cuda into .deps/cuda from PyPI failed")

    def test_a_driver_of_12_takes_a_toolkit_of_12(self) -> None:
        self.driver("12.8")
        self.nvcc("12.9")
        self.check(0)

    def test_a_driver_of_12_never_gets_a_toolkit_of_13(self) -> None:
        self.driver("12.8")
        self.check(3, "driver runs CUDA 12.8, and there is no nvcc 12.6 to 12.9", "KBENCH_CUDA=OFF ./kbench ... --backend cpu")
        self.nvcc("13.0")
        self.check(3, "driver runs CUDA 12.8, and nvcc is 13.0", "an nvcc 12 first on PATH")
        self.nvcc("12.8")
        self.check(0)
        self.nvcc("13.0", self.root / ".deps/cuda/bin/nvcc")
        self.nvcc("12.8")
        self.check(3, f"remove {self.root}/.deps/cuda")

    def test_an_old_driver_is_told_before_anything_is_installed(self) -> None:
        self.driver("12.4")
        self.nvcc("12.4")
        shutil.rmtree(self.root / ".deps/plotly")
        self.check(3, "driver runs CUDA 12.4, and kbench needs 12.6", "KBENCH_CUDA=OFF ./kbench ... --backend cpu")

    def test_the_kernel_driver_tells_its_version_where_nvidia_smi_does_not(self) -> None:
        version = self.folder / "proc/driver/nvidia/version"
        version.parent.mkdir(parents=True)
        for number, code, word in (("535.183.01", 3, "before 12.6"), ("560.35.03", 3, "CUDA 12.6,"), ("575.57.08", 3, "CUDA 12.9,"), ("580.95.05", 1, "CUDA 13.0 (550 MB")):
            for name in ("NVIDIA UNIX x86_64 Kernel Module ", "NVIDIA UNIX Open Kernel Module for x86_64 "):
                version.write_text(f"NVRM version: {name} {number}  Release Build  (root)\nGCC version:  gcc version 12.2.0\n")
                self.check(code, word)


class Packages(Checkout):
    """What is missing is told first, in this system's words; nothing is installed unasked."""

    def setUp(self) -> None:
        super().setUp()
        self.cmake("CLI11 benchmark nlohmann_json openblas ZLIB dnnl")

    def test_what_cmake_finds_is_not_missing(self) -> None:
        (self.bin / "cmake").unlink()
        shutil.rmtree(self.root / ".deps/onednn")
        config = self.folder / "conda/lib/cmake/dnnl"
        config.mkdir(parents=True)
        (config / "dnnl-config.cmake").touch()
        (config / "dnnl-config-version.cmake").write_text('set(PACKAGE_VERSION "3.9.0")\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n')
        run = self.setup(CMAKE_PREFIX_PATH=str(self.folder / "conda"))
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_the_versions_are_those_of_cmake(self) -> None:
        setup = (ROOT / "scripts/setup").read_text()
        needed = re.findall(r"^find_package\((\w+) ([\d.]+)(?: CONFIG)? REQUIRED\)", (ROOT / "CMakeLists.txt").read_text(), re.M)
        self.assertGreater(len(needed), 4)
        for name, version in needed:
            self.assertIn(f"|package {name} {version}\"", setup)

    def test_other_systems_get_a_line_of_their_own(self) -> None:
        (self.bin / "apt-get").unlink()
        release = self.folder / "etc/os-release"
        release.parent.mkdir()
        for text, line in (("ID=fedora\n", "sudo dnf install -y fmt-devel\n"),
                           ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "sudo dnf install -y fmt-devel\n"),
                           ('ID="rhel"\nID_LIKE="fedora"\n', "sudo dnf install -y fmt-devel\n"),
                           ('ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n', "sudo zypper install -y fmt-devel\n"),
                           ("ID=arch\n", "sudo pacman -S --needed fmt\n"),
                           ("ID=endeavouros\nID_LIKE=arch\n", "sudo pacman -S --needed fmt\n")):
            release.write_text(text)
            run = self.setup()
            self.assertEqual(run.returncode, 3, run.stderr)
            self.assertIn("\n" + line, run.stderr)
            self.assertIn("\nconda create ", run.stderr)
            self.assertEqual("EPEL" in run.stderr, "rhel" in text, text)
            self.assertNotIn("libfmt-dev", run.stderr)
        release.write_text("ID=gentoo\n")
        self.assertIn("missing: libfmt-dev (Debian's names)", self.setup().stderr)

    def test_a_formatter_that_the_release_lacks_is_not_asked_for(self) -> None:
        formatter = self.farm / "clang-format-14"
        if formatter.is_symlink():
            self.addCleanup(formatter.symlink_to, os.readlink(formatter))
            formatter.unlink()
        for name in ("actionlint", "axe"):
            self.unpacked(name)
        for packaged in (True, False):
            self.stand_in("apt-cache", f'{{ [ "$2" = bash ] || {str(packaged).lower()}; }} && echo "$2 | 1"')
            self.assertEqual("clang-format-14" in self.setup("--tests").stderr, packaged)

    def test_what_is_too_old_is_told_before_anything_is_installed(self) -> None:
        self.cmake("", version="3.22.1")
        self.stand_in("sudo", 'shift; exec "$@"')
        self.stand_in("apt-get", f'echo "apt-get $*" >>{self.folder}/calls')
        self.stand_in("apt-cache", "case $2 in cmake) echo '  Candidate: 3.22.1-1ubuntu1';; g++) echo '  Candidate: 4:13.2.0-7';; *) echo '  Candidate: (none)';; esac")
        run = self.setup("--yes")
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertIn("this system's cmake is 3.22.1, and 3.25 or newer is needed", run.stderr)
        self.assertIn("\nconda create ", run.stderr)
        self.assertNotIn(" install ", self.calls())

    def test_a_user_without_a_terminal_gets_the_line_and_nothing_is_installed(self) -> None:
        self.as_a_user()
        self.stand_in("sudo", f'echo "sudo $*" >>{self.folder}/calls')
        run = self.setup()
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertIn("to install with apt-get: libfmt-dev\n", run.stderr)
        self.assertIn("\nsudo apt-get install -y --no-install-recommends libfmt-dev\n", run.stderr)
        self.assertEqual(self.calls(), "")

    def test_a_user_is_asked_once_on_a_terminal_and_yes_answers(self) -> None:
        self.as_a_user()
        self.stand_in("sudo", f'echo "sudo $*" >>{self.folder}/calls')
        for arguments, typed, code, asked, called in (((), b"n\n", 3, 1, False), ((), b"y\n", 3, 1, True), (("--yes",), b"", 3, 0, True)):
            (self.folder / "calls").unlink(missing_ok=True)
            ours, terminal = os.openpty()
            os.write(ours, typed)
            run = subprocess.run([self.root / "scripts/setup", *arguments], env=self.environment, stdin=terminal, capture_output=True, text=True, timeout=120)
            os.close(terminal), os.close(ours)
            self.assertEqual(run.returncode, code, run.stderr)
            self.assertEqual(run.stderr.count("install them with sudo?"), asked)
            self.assertEqual("apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends libfmt-dev" in self.calls(), called, run.stderr)
            # The stand-in installs nothing, and that is told.
            self.assertEqual("still not found" in run.stderr, called)

    def as_a_user(self) -> None:
        """Bash's EUID cannot be set."""
        script = self.root / "scripts/setup"
        text = script.read_text()
        self.assertIn("((EUID != 0))", text)
        script.write_text(text.replace("((EUID != 0))", "true"))


if __name__ == "__main__":
    if subprocess.run([sys.executable, "-I", "-m", "pip", "--version"], capture_output=True).returncode:
        print("skipped: no pip")
        sys.exit(77)
    unittest.main()

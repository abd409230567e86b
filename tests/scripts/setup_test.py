"""scripts/setup in a checkout of its own, with what it would install or ask replaced by stand-ins: no network, no root,
and nothing of the machine changes."""

import base64
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Checkout(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kbench_setup_"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.root = self.folder / "checkout"
        (self.root / "scripts").mkdir(parents=True)
        for name in ("setup", "common.sh", *(path.name for path in (ROOT / "scripts").glob("requirements-*.txt"))):
            shutil.copy(ROOT / "scripts" / name, self.root / "scripts")
        for name in ("onednn", "plotly"):
            self.unpacked(name)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.stand_in("apt-get", f'echo "apt-get $*" >>{self.folder}/apt; exit 1')
        self.stand_in("sudo", "exit 1")
        self.environment = os.environ | {"PATH": f"{self.bin}:{os.environ['PATH']}", "KBENCH_CUDA": "OFF", "PIP_NO_INDEX": "1"}

    def unpacked(self, name: str) -> None:
        """As if .deps/NAME had been installed from today's requirements."""
        folder = self.root / ".deps" / name
        folder.mkdir(parents=True)
        shutil.copy(ROOT / f"scripts/requirements-{name}.txt", folder / "requirements.txt")

    def stand_in(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def setup(self, *arguments: str, folder: pathlib.Path | None = None, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run([self.root / "scripts/setup", *arguments], cwd=folder or self.folder, env=self.environment | environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


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
        self.assertFalse((self.folder / "apt").exists())

    def test_a_peer_imports_nothing_of_the_current_directory(self) -> None:
        foreign = self.folder / "foreign"
        foreign.mkdir()
        for name in ("json.py", "torch.py", "numpy.py"):
            (foreign / name).write_text(f"open({str(self.folder / 'ran')!r}, 'a').write({name!r})\n")
        program = "import os, sys; from verification import peer; os.chdir(sys.argv[1]); peer.run_torch('torch_steps', {'device': 'cpu'}, 60)"
        subprocess.run([sys.executable, "-c", program, foreign], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT / "scripts")},
                       capture_output=True, timeout=120)
        self.assertFalse((self.folder / "ran").exists(), "ran what lay in the current directory")


if __name__ == "__main__":
    if subprocess.run([sys.executable, "-I", "-m", "pip", "--version"], capture_output=True).returncode:
        print("skipped: no pip")
        sys.exit(77)
    unittest.main()

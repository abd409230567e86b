"""What tests have in common whose script runs a program in kbench's place: one that writes planted figures."""

import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class PlantedProgram(unittest.TestCase):
    """A test gives the program's text, in which {python} is the interpreter, and the name of the script."""

    PROGRAM = ""
    SCRIPT = ""

    def setUp(self) -> None:
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)
        self.program = self.folder / "kbench"
        self.program.write_text(textwrap.dedent(self.PROGRAM).format(python=sys.executable))
        self.program.chmod(0o755)

    def script(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, str(ROOT / "scripts" / self.SCRIPT), *arguments], capture_output=True, text=True,
                              env={"PATH": "/usr/bin:/bin"} | environment, timeout=100)

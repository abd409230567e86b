"""The workflows in .github: actionlint finds nothing in them, they try the compilers that scripts/compilers knows, and
what they run of others is pinned. And what scripts/compilers refuses before it makes any system.

workflows_test.py; the test of actionlint skips without it (scripts/setup --tests installs it).
"""

import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
COMPILERS = ROOT / "scripts/compilers"
ACTIONLINT = shutil.which("actionlint", path=ROOT / ".deps/actionlint") or shutil.which("actionlint")


class Workflows(unittest.TestCase):
    @unittest.skipIf(ACTIONLINT is None, "no actionlint: scripts/setup --tests installs it")
    def test_actionlint_finds_nothing(self) -> None:
        self.assertTrue(WORKFLOWS)
        # Outside a repository of GitHub's it finds no folder by itself.
        result = subprocess.run([ACTIONLINT, "-no-color", *WORKFLOWS], capture_output=True, text=True, cwd=ROOT)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)

    def test_the_matrix_has_every_compiler(self) -> None:
        names = subprocess.run([COMPILERS, "--list"], capture_output=True, text=True, check=True).stdout.split()
        matrix = re.search(r"^\s+compiler: \[(.*)\]$", (ROOT / ".github/workflows/test.yml").read_text(), re.MULTILINE)
        self.assertEqual(matrix and matrix[1].split(", "), names)

    def test_actions_are_pinned(self) -> None:
        for workflow in WORKFLOWS:
            for action in re.findall(r"uses: *(\S+)", workflow.read_text()):
                self.assertRegex(action, r"^[\w-]+/[\w-]+@(v\d|[0-9a-f]{40}$)", workflow.name)


class Compilers(unittest.TestCase):
    def refused(self, *arguments: str) -> str:
        result = subprocess.run([COMPILERS, *arguments], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), result)
        return result.stderr

    def test_unknown_names_and_options_are_refused(self) -> None:
        self.assertIn("no compiler is called 'gcc-4'; they are gcc-12 gcc-13", self.refused("gcc-12", "gcc-4"))
        self.assertIn("no compiler is called 'gcc-12 gcc-13'", self.refused("gcc-12 gcc-13"))
        self.assertIn("no compiler is called ''", self.refused(""))
        self.assertIn("unknown option '--all'", self.refused("--all"))

    def test_every_toolkit_has_its_wheels(self) -> None:
        names = subprocess.run([COMPILERS, "--list"], capture_output=True, text=True, check=True).stdout.split()
        for name in (name for name in names if name.startswith("cuda-")):
            text = (ROOT / f"scripts/requirements-{name}.txt").read_text()
            self.assertRegex(text, rf"nvidia-cuda-runtime-cu12=={re.escape(name.removeprefix('cuda-'))}\.")


if __name__ == "__main__":
    unittest.main()

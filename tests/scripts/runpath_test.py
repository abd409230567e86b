"""Where the loader looks for the libraries of kbench's programs: absolute folders or ones relative to the program, never
the current directory, from which anybody's library would be run.

runpath_test.py BUILD_FOLDER; skips (77) without readelf. Installs into a temporary folder, which it removes.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path()


def entries(program: pathlib.Path) -> list[str]:
    """The entries of RPATH and RUNPATH; an empty one is the current directory."""
    dynamic = subprocess.run(["readelf", "--dynamic", "--wide", program], capture_output=True, text=True, check=True).stdout
    paths = re.findall(r"\((?:RPATH|RUNPATH)\)\s+Library \w+: \[(.*)\]", dynamic)
    return [entry for path in paths for entry in path.split(":")]


def wrong(paths: list[str]) -> list[str]:
    return [path for path in paths if not path.startswith("/") and path.split("/")[0] not in ("$ORIGIN", "${ORIGIN}")]


def programs(folder: pathlib.Path) -> list[pathlib.Path]:
    """Every ELF file below `folder` that the loader would open: programs and shared libraries."""
    found = []
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_file() or path.suffix in (".o", ".a") or "CMakeFiles" in path.parts:
            continue
        with path.open("rb") as file:
            if file.read(4) == b"\x7fELF":
                found.append(path)
    return found


class Runpath(unittest.TestCase):
    def check(self, folder: pathlib.Path) -> None:
        found = programs(folder)
        self.assertTrue([path for path in found if path.name == "kbench"], f"no kbench below {folder}")
        for path in found:
            self.assertEqual(wrong(entries(path)), [], f"{path}: {entries(path)}")

    def test_built_programs_never_load_from_the_current_directory(self) -> None:
        self.check(BUILD)

    def test_installed_programs_never_load_from_the_current_directory(self) -> None:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kbench_runpath_"))
        self.addCleanup(shutil.rmtree, folder)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", folder], capture_output=True, check=True)
        self.check(folder)

    def test_empty_and_relative_entries_are_found(self) -> None:
        self.assertEqual(wrong(["/usr/lib", "$ORIGIN/../lib", "${ORIGIN}"]), [])
        self.assertEqual(wrong("/usr/lib::".split(":")), ["", ""])
        self.assertEqual(wrong(["lib", "./lib", "$ORIGINAL"]), ["lib", "./lib", "$ORIGINAL"])


if __name__ == "__main__":
    if shutil.which("readelf") is None:
        print("skipped: no readelf")
        sys.exit(77)
    BUILD = pathlib.Path(sys.argv.pop(1))
    unittest.main()

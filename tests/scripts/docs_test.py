"""README and docs say what kbench says: a block that begins with "$ kbench ..." has that command's output below it, and
every command over committed results runs.

docs_test.py KBENCH
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KBENCH = ""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OMITTED = "..."  # a line of it stands for any lines, also none
THE_READERS_FILE = "mine.json"
# What needs neither a device nor a file of the reader's.
READERS = {"report", "table", "compare", "claim", "list"}


def code_blocks(text: str) -> list[str]:
    """Indented and fenced blocks, without indentation or fence."""
    fenced = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.M | re.S)
    rest = re.sub(r"^```[^\n]*\n.*?^```", "", text, flags=re.M | re.S)
    indented = re.findall(r"(?:^|(?<=\n\n))((?:(?: {4}[^\n]*|[ ]*)\n)+)", rest)
    return fenced + [textwrap.dedent(block).strip("\n") for block in indented if block.strip()]


def printed_blocks(text: str) -> list[tuple[str, list[str]]]:
    """Commands behind "$ ", each with the lines below it."""
    found = []
    for block in code_blocks(text):
        lines = [line.rstrip() for line in block.splitlines()]
        if lines and is_kbench(lines[0].removeprefix("$ ")) and lines[0].startswith("$ "):
            found.append((lines[0][2:], lines[1:]))
    return found


def is_kbench(line: str) -> bool:
    return line.startswith(("kbench ", "./kbench "))


def commands(text: str) -> list[str]:
    """Commands of blocks, and whole ones of `code`, that read committed results or need nothing."""
    block_lines = [line for block in code_blocks(text) for line in re.sub(r"\\\n\s*", "", block).splitlines()]
    whole = [line for line in re.findall(r"`([^`\n]+)`", text) if "results/" in line or "--machine " in line]
    found = []
    for line in block_lines + whole:
        line = re.sub(r"\s{2,}#.*", "", line.removeprefix("$ ").strip())
        words = line.split()
        if len(words) < 3 or not is_kbench(line) or words[1] not in READERS:
            continue
        if "results/" in line or (words[1] in ("claim", "list") and THE_READERS_FILE not in line):
            found.append(line)
    return found


def is_quoted(name: str, texts: str) -> bool:
    """Whether texts name a file of results/, or a folder that it lies in, but not only the day's."""
    path = pathlib.PurePosixPath(name).relative_to("results")
    places = [path, *(folder for folder in path.parents if len(folder.parts) > 1)]
    return any(re.search(re.escape(str(place)) + r"(?![\w-]|\.\w)", texts) for place in places)


def first_difference(printed: list[str], quoted: list[str]) -> str:
    """What of the quoted lines is not printed in that order; empty where all is."""
    at, may_skip = 0, False
    for line in quoted:
        if line.strip() == OMITTED:
            may_skip = True
            continue
        found = at
        while may_skip and found < len(printed) and printed[found] != line:
            found += 1
        if found >= len(printed) or printed[found] != line:
            there = printed[at] if at < len(printed) else "the end"
            return f"quoted:  {line}\nprinted: {there}"
        at, may_skip = found + 1, False
    return "" if may_skip or at == len(printed) else f"quoted:  the end\nprinted: {printed[at]}"


def taken_for_html(text: str) -> list[str]:
    """What a renderer reads as tags, and so does not show: a < outside code and comments that no backslash precedes."""
    for hidden in (r"^```.*?^```", r"<!--.*?-->", r"(?:(?<=\n\n)|\A)(?: {4}[^\n]*\n|[ ]*\n)+", r"(`+).*?\1"):
        text = re.sub(hidden, "", text, flags=re.M | re.S)
    return re.findall(r"(?<!\\)<[A-Za-z/!?][^\n]{0,40}", text)


class Docs(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        for name in ("results", "docs", "examples"):
            (self.directory / name).symlink_to(ROOT / name)

    def run_command(self, command: str) -> subprocess.CompletedProcess:
        arguments = shlex.split(command)[1:]
        return subprocess.run([KBENCH, *arguments], cwd=self.directory, capture_output=True, text=True, check=False,
                              env={**os.environ, "KBENCH_CACHE_DIR": str(self.directory / "cache")})

    def test_what_is_quoted_is_printed(self):
        blocks = 0
        for page in PAGES:
            for command, quoted in printed_blocks(page.read_text()):
                with self.subTest(page=page.name, command=command):
                    outcome = self.run_command(command)
                    printed = [line.rstrip() for line in outcome.stdout.splitlines()]
                    self.assertEqual(outcome.returncode, 0, outcome.stderr)
                    self.assertEqual(first_difference(printed, quoted), "")
                blocks += 1
        self.assertGreaterEqual(blocks, 3)

    def test_every_angle_bracket_is_shown(self):
        pages = [*PAGES, ROOT / "CONTRIBUTING.md", *ROOT.glob("results/**/*.md")]
        self.assertEqual({str(page.relative_to(ROOT)): found for page in pages if (found := taken_for_html(page.read_text()))}, {})

    def test_every_command_over_committed_results_runs(self):
        done = set()
        for page in PAGES:
            for command in commands(page.read_text()):
                if command in done:
                    continue
                done.add(command)
                with self.subTest(page=page.name, command=command):
                    outcome = self.run_command(command)
                    self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertGreaterEqual(len(done), 20)


class Results(unittest.TestCase):
    """Committed results are those that a page or a test names, and few enough for a checkout."""

    MOST_BYTES = 5_000_000

    def test_each_is_quoted_and_all_are_small(self):
        names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=False).stdout.split("\0")
        names = [name for name in names if (ROOT / name).is_file()]
        if not names:
            self.skipTest("no git, or no checkout of it")
        results = [name for name in names if name.startswith("results/")]
        texts = "".join((ROOT / name).read_text() for name in set(names) - set(results) if name.endswith((".md", ".py", ".cpp")))
        runs = [name for name in results if name.count("/") > 1]
        self.assertGreater(len(runs), 100)
        self.assertEqual([name for name in runs if not is_quoted(name, texts)], [])
        self.assertLess(sum((ROOT / name).stat().st_size for name in results), self.MOST_BYTES)

    def test_what_is_not_quoted_is_found(self):
        texts = "[runs](results/day/run), [a file](results/day/lines.txt) and day/other-run"
        for name in ("day/run/result.json.gz", "day/run/peers/gpu.md", "day/lines.txt", "day/other-run/report.md"):
            self.assertTrue(is_quoted(f"results/{name}", texts), name)
        for name in ("day/wall.txt", "day/other/report.md", "day/run-2/result.json.gz", "day/lines.txt.gz"):
            self.assertFalse(is_quoted(f"results/{name}", texts), name)


class Search(unittest.TestCase):
    """The search finds what is planted."""

    PAGE = "Text\n\n    $ kbench list a\n    one\n    ...\n    three\n\nAnd `kbench claim --machine x` in text.\n\n```\n$ kbench list b\n```\n"

    def test_only_tags_outside_code_are_taken_for_html(self):
        page = "`<a>` and \\<b> or 1 < 2\n\n    <code>\n\n```\n<fenced>\n```\n<!-- figures: <x> -->\n"
        self.assertEqual(taken_for_html(page), [])
        self.assertEqual(taken_for_html(page + "| DIR | runs/<time>-run |\n"), ["<time>-run |"])

    def test_blocks_have_their_command_and_lines(self):
        self.assertEqual(sorted(printed_blocks(self.PAGE)), [("kbench list a", ["one", "...", "three"]), ("kbench list b", [])])
        self.assertEqual(sorted(set(commands(self.PAGE))), ["kbench claim --machine x", "kbench list a", "kbench list b"])

    def test_a_difference_is_found_and_omission_is_none(self):
        printed = ["one", "two", "three"]
        self.assertEqual(first_difference(printed, ["one", "...", "three"]), "")
        self.assertEqual(first_difference(printed, ["...", "two", "..."]), "")
        for quoted in (["two"], ["...", "two"], ["one", "three"], ["one", "two", "three", "four"], ["...", "four"], ["...", "two", "one"]):
            self.assertNotEqual(first_difference(printed, quoted), "", quoted)


if __name__ == "__main__":
    KBENCH = os.path.abspath(sys.argv.pop(1))
    unittest.main()

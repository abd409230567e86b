"""Figures of README and docs/results come from committed files, and a stale one fails.

A comment directly above a table, list or paragraph names its sources, one a line. A line that begins with a blank
continues the one before it:

    <!-- figures:
    kbench table results/DAY/RUN --by op -c op,time_us
    kbench report results/DAY/RUN --format md --out page
    kbench table results/DAY/RUN --format json | [[row['layer'], row['time_us'] / 1000] for row in of]
    results/DAY/causes.md
    results/DAY/a.json.gz results/DAY/b.json.gz [[row['batch'], row['ms'] / 1000] for row in of[0]['rows'] + of[1]['rows']]
    given 8, 1024
    -->

A command's lines are what it prints, and those of a report.md that it writes. A file's lines are its text. A Python
expression behind either gives rows instead. `of` is what JSON holds, or a text's lines, each split into words, or a list
of these where there are several files. EXPRESSION_NAMES are what an expression may call. `given` has what nobody
measured: settings, limits and versions.

- A table's row holds if one line of the sources has its numbers in the same order. If any line has the text of the
  row's first cell, only such lines count.
- Another paragraph holds if each of its numbers is one of the sources.
- A number equals a figure if it gives the figure when rounded to the digits shown. Only in figures of 1,000 or more may
  zeros at the end be rounded. Nothing is scaled.
- No figure: digits within a word (fp16), a date, a link's target, `code`, a table's head.

Each table with figures has a comment, and each other paragraph with a figure and a unit behind it, or a line in
EXCEPTIONS. figures_test.py KBENCH
"""

import gzip
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
KBENCH = ""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/results").glob("*.md"))]
COMMENT = re.compile(r"^<!-- figures:\s*(.*?)\s*-->$", re.M | re.S)
NUMBER = re.compile(r"(?<![\w.])(?<![A-Za-z]-)(?:(?<![\d\])])[-+])?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?!\w|\.\d)")
UNITS = r" ?(?:%|ns|[uµm]?s|J|W|MHz|[GT]B/s|TFLOP/s|tokens/s|times)(?![\w])"
MEASURED = re.compile(NUMBER.pattern + UNITS)
NO_FIGURES = re.compile(r"\]\([^)]*\)|`[^`]*`|\b\d{4}-\d\d-\d\d\b|<!--.*?-->")

# What has figures and no sources: page, beginning of the block, reason.
EXCEPTIONS = [
    ("README.md", "| I want to | command |", "commands"),
    ("README.md", "| page | answers |", "a list of pages"),
    ("truths.md", "| result | what it means |", "the program's terms"),
    ("truths.md", "| truth | planted | right verdict |", "what each truth plants and tolerates"),
]


@dataclass(frozen=True)
class Block:
    """Lines of a page without a blank one between them, with the comment's sources above them."""

    page: str
    lines: tuple[str, ...]
    sources: tuple[str, ...]

    def is_table(self) -> bool:
        return len(self.lines) > 1 and self.lines[0].startswith("|") and set(self.lines[1]) <= set("|-: ")

    def has_figures(self) -> bool:
        text = NO_FIGURES.sub(" ", " ".join(self.rows()))
        return bool(NUMBER.search(text) if self.is_table() else MEASURED.search(text))

    def rows(self) -> list[str]:
        return list(self.lines[2:]) if self.is_table() else list(self.lines)


def blocks(page: str, text: str) -> list[Block]:
    """All blocks of a page but code."""
    text = re.sub(r"^```[^\n]*\n.*?^```", "", text, flags=re.M | re.S)
    text = COMMENT.sub(lambda found: found[0].replace("\n\n", "\n"), text)
    found, sources = [], ()
    for part in re.split(r"\n\s*\n", text):
        if comment := COMMENT.search(part):
            sources = tuple(re.sub(r"\n\s+", " ", comment[1]).splitlines())
            part = COMMENT.sub("", part)
        lines = tuple(line for line in part.splitlines() if line.strip())
        if not lines:
            continue
        if not lines[0].startswith("    "):
            found.append(Block(page, lines, sources))
        sources = ()
    return found


def figures(text: str) -> list[str]:
    return NUMBER.findall(NO_FIGURES.sub(" ", text.replace("−", "-")))


def value(figure: str) -> float:
    return float(figure.replace(",", ""))


def equals(number: float, figure: str) -> bool:
    """Whether a number gives the figure when rounded to its digits."""
    mantissa, _, exponent = figure.partition("e")
    whole, _, decimals = mantissa.replace(",", "").partition(".")
    last = -len(decimals)
    if not decimals and "," in mantissa:
        last = len(whole) - len(whole.rstrip("0"))
    half = 0.5 * 10 ** (last + int(exponent or 0))
    return abs(number - value(figure)) <= half * (1 + 1e-6) + 1e-12 * abs(number)


def is_within(wanted: list[str], numbers: list[float]) -> bool:
    """Whether the figures are among the numbers in the same order."""
    rest = iter(numbers)
    return all(any(equals(number, figure) for number in rest) for figure in wanted)


def first_cell(row: str) -> str:
    cell = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", row).split("|")[1]
    return re.sub(r"[`*]", "", cell).strip()


def wrong_rows(block: Block, output: list[str]) -> list[str]:
    """What of a block's figures the lines of its sources do not have."""
    numbers = [[value(figure) for figure in figures(line)] for line in output]
    if not block.is_table():
        pool = [number for line in numbers for number in line]
        return [figure for line in block.lines for figure in figures(line) if not any(equals(n, figure) for n in pool)]
    wrong = []
    for row in block.rows():
        named = [has for line, has in zip(output, numbers) if re.search(rf"(?<![\w.]){re.escape(first_cell(row))}(?![\w.])", line)]
        if not any(is_within(figures(row), has) for has in named or numbers):
            wrong.append(row)
    return wrong


def by(rows: list[dict], **fields: object) -> dict:
    """The one row with these fields."""
    found = [row for row in rows if all(row.get(name) == wanted for name, wanted in fields.items())]
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows with {fields}")
    return found[0]


def tables(lines: list[list[str]]) -> list[dict[str, str]]:
    """Rows of a text's Markdown tables by the columns' names, the first of those of one name; an empty first cell stands for that
    of the row above."""
    rows, head = [], []
    for line in (" ".join(words) for words in lines):
        if not line.startswith("|"):
            head = []
        elif set(line) <= set("|-: "):
            continue
        elif cells := [cell.strip() for cell in line.strip("|").split("|")]:
            if head:
                cells[0] = cells[0] or rows[-1][head[0]]
                rows.append(dict(reversed(list(zip(head, cells)))))
            else:
                head = cells
    return rows


def having(lines: list[list[str]], *texts: str) -> list[list[str]]:
    """The lines that have one of the texts."""
    return [line for line in lines if any(text in " ".join(line) for text in texts)]


EXPRESSION_NAMES = {"by": by, "having": having, "tables": tables, "mean": statistics.fmean, "median": statistics.median}


def parsed(text: str) -> object:
    """JSON, lines of it, or lines of words."""
    if text.startswith(("[", "{")):
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return [json.loads(line) for line in text.splitlines()]
    return [line.split() for line in text.splitlines()]


def rows_of(expression: str, of: object) -> list[str]:
    rows = eval(expression, {**EXPRESSION_NAMES, "of": of})  # who writes it writes the page, too
    return [" ; ".join(str(cell) for cell in row) for row in rows]


class Sources:
    """Output of commands and files; what was read once is kept."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._files: dict[str, str] = {}

    def lines(self, source: str) -> list[str]:
        if source not in self._lines:
            self._lines[source] = self._read(source)
        return self._lines[source]

    def _read(self, source: str) -> list[str]:
        if source.startswith("kbench "):
            command, _, expression = source.partition(" | ")
            printed = self._run(command)
            return rows_of(expression, parsed(printed)) if expression else printed.splitlines()
        if source.startswith("given "):
            return [source]
        names = re.match(r"(?:results/\S+\s*)+", source)
        if not names:
            raise ValueError(f"neither a kbench command, nor a file of results/, nor given: {source}")
        files = names[0].split()
        if expression := source[names.end():]:
            of = [parsed(self._text(name)) for name in files]
            return rows_of(expression, of if len(of) > 1 else of[0])
        return [line for name in files for line in self._text(name).splitlines()]

    def _run(self, command: str) -> str:
        """What it prints and the report.md that it writes; the working directory has results/ and nothing else."""
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "results").symlink_to(ROOT / "results")
            outcome = subprocess.run([KBENCH, *shlex.split(command)[1:]], cwd=directory, capture_output=True, text=True, check=False,
                                     env={**os.environ, "KBENCH_CACHE_DIR": directory + "/cache"})
            if outcome.returncode != 0:
                raise ValueError(f"{command}: {outcome.stderr}")
            return outcome.stdout + "".join(page.read_text() for page in pathlib.Path(directory).glob("*/report.md"))

    def _text(self, name: str) -> str:
        if name not in self._files:
            data = (ROOT / name).read_bytes()
            self._files[name] = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
        return self._files[name]


def excepted(block: Block) -> list[tuple[str, str, str]]:
    return [entry for entry in EXCEPTIONS if entry[0] == block.page and block.lines[0].startswith(entry[1])]


def with_changed_figure(row: str, which: int) -> str:
    """The row, in which one figure is one more in its last digit."""
    clean = NO_FIGURES.sub(" ", row)
    found = list(NUMBER.finditer(clean))[which]
    last = re.search(r"\d(?=\D*$)", found[0].partition("e")[0].rstrip("0") if "," in found[0] else found[0].partition("e")[0])
    at = found.start() + last.start()
    return clean[:at] + str((int(clean[at]) + 1) % 10) + clean[at + 1 :]


class Pages(unittest.TestCase):
    SOURCES: "Sources"

    @classmethod
    def setUpClass(cls):
        cls.SOURCES = Sources()

    def output(self, block: Block) -> list[str]:
        return [line for source in block.sources for line in self.SOURCES.lines(source)]

    def setUp(self):
        self.blocks = [block for page in PAGES for block in blocks(page.name, page.read_text())]

    def test_figures_are_those_of_their_sources(self):
        held = 0
        for block in self.blocks:
            if not block.sources:
                continue
            with self.subTest(page=block.page, head=block.lines[0]):
                self.assertEqual(wrong_rows(block, self.output(block)), [])
            held += sum(len(figures(row)) for row in block.rows())
        self.assertGreater(held, 0)

    def test_a_changed_figure_of_any_table_is_found(self):
        found = changed = 0
        for block in self.blocks:
            if not block.is_table() or not block.sources:
                continue
            with self.subTest(page=block.page, head=block.lines[0]):
                output, rows = self.output(block), [row for row in block.rows() if figures(row)]
                results = []
                for at, row in enumerate(rows[::3]):
                    planted = with_changed_figure(row, -1 - at % len(figures(row)))
                    results.append(bool(wrong_rows(Block(block.page, (*block.lines[:2], planted), ()), output)))
                self.assertIn(True, results)
                found, changed = found + sum(results), changed + len(results)
        self.assertGreater(changed, 50)
        self.assertGreater(found, 0.95 * changed, "a source has too many numbers on a line")

    def test_each_block_with_figures_has_sources_or_is_an_exception(self):
        without = [block for block in self.blocks if block.has_figures() and not block.sources]
        self.assertEqual([f"{block.page}: {block.lines[0]}" for block in without if not excepted(block)], [])
        used = {entry for block in without for entry in excepted(block)}
        self.assertEqual([entry for entry in EXCEPTIONS if entry not in used], [])


class Checker(unittest.TestCase):
    """A changed figure is found."""

    TABLE = "Text.\n\n<!-- figures:\nresults/x.md\n-->\n| op | ms | share |\n|---|---:|---:|\n| gemm | 2.98 | 73 |\n| attn | [0.80](a9) | 19.5 |\n\nNext 7.\n"
    OUTPUT = ["gemm  36  2.981 ms  72.7", "attn  36  0.798 ms  19.5"]

    def wrong(self, old: str = "", new: str = "") -> list[str]:
        return [row for block in blocks("p", self.TABLE.replace(old, new)) if block.sources for row in wrong_rows(block, self.OUTPUT)]

    def test_right_figures_hold(self):
        self.assertEqual([block.sources for block in blocks("p", self.TABLE)], [(), ("results/x.md",), ()])
        self.assertEqual(self.wrong(), [])

    def test_each_planted_error_is_found(self):
        for old, new in (("2.98", "2.97"), ("2.98", "2.980"), ("73", "72"), ("0.80", "0.79"), ("19.5", "19.50001"), ("2.98 | 73", "73 | 2.98"),
                         ("gemm |", "attn |"), ("2.98 |", "2.98 | 5 |"), ("2.98 | 73", "0.80 | 19.5")):
            self.assertEqual(len(self.wrong(old, new)), 1, (old, new))

    def test_figures_of_a_paragraph_are_found(self):
        block = Block("p", ("It takes 2.98 ms, of 3,100 [all](x7) in fp16 on 2026-11-27, -4 %.",), ("x",))
        self.assertEqual(wrong_rows(block, ["2.981 3,149 -4.2"]), [])
        self.assertEqual(wrong_rows(block, ["2.986 3,151 4.2"]), ["2.98", "3,100", "-4"])

    def test_what_needs_sources_is_told(self):
        for lines, needs in ((("It takes 3 ms.",), True), (("It took 4.1 times as long.",), True), (("At batch 4, 3 runs.",), False),
                             (("| a | 4 |", "|---|---|", "| b | c |"), False), (("| a |", "|---|", "| 5 |"), True)):
            self.assertEqual(Block("p", lines, ()).has_figures(), needs, lines)

    def test_numbers_are_told_from_words(self):
        self.assertEqual(figures("| conv2 | 1,024 x 3840 | 2.0e-7 | -0.4 | [1.4, 1.9] | h.0.ln_1 | 10-20 | 8192³ | GPT-2 |"),
                         ["1,024", "3840", "2.0e-7", "-0.4", "1.4", "1.9", "10", "20"])

    def test_a_row_is_found_by_its_fields(self):
        self.assertEqual(by([{"a": 1, "b": 2}, {"a": 2, "b": 3}], a=2)["b"], 3)
        with self.assertRaises(ValueError):
            by([{"a": 1}, {"a": 1}], a=1)


if __name__ == "__main__":
    KBENCH = os.path.abspath(sys.argv.pop(1))
    unittest.main()

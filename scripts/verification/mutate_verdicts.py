#!/usr/bin/env python3
"""Breaks the ledger and the verdicts in every way of a list, and sees that a test notices.

    scripts/verification/mutate_verdicts.py BUILD [--only FILE] [--jobs N]

BUILD is a build folder in which `analysis_tests` is built and passes. Mutants are made of the files of FILES, in a
folder of their own; the tree is left alone:

  threshold   a constant 10 % larger and 10 % smaller
  strictness  >= to >, <= to <, > to >=, < to <=
  direction   >= to <, <= to >, > to <=, < to >=
  sign        a - b to a + b, a + b to a - b, += to -=, -= to +=
  extreme     min to max, max to min

A mutant lives when the tests pass with it. EQUIVALENT lists those that cannot change what is computed, and why; one
that does not compile is counted apart.
Exit codes: 0 no other mutant lives; 1 one does; 2 bad usage. Not a part of CI: it takes minutes.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "analysis/explain/verdict_rules.cpp": ["analysis/explain/verdict_rules.cpp"],
    "analysis/explain/verdict_hypotheses.cpp": ["analysis/explain/verdict_hypotheses.cpp"],
    "analysis/explain/verdict.cpp": ["analysis/explain/verdict.cpp"],
    "analysis/explain/ledger.cpp": ["analysis/explain/ledger.cpp"],
    "analysis/explain/attribution.cpp": ["analysis/explain/attribution.cpp"],
    "analysis/explain/cycles.cpp": ["analysis/explain/cycles.cpp"],
    "analysis/explain/units.cpp": ["analysis/explain/units.cpp"],
    "analysis/explain/demands.cpp": ["analysis/explain/demands.cpp"],
    # A header, and what is compiled with it.
    "analysis/explain/verdict_rules.h": ["analysis/explain/verdict.cpp", "analysis/explain/verdict_hypotheses.cpp"],
    "analysis/explain/ledger.h": ["analysis/explain/ledger.cpp", "analysis/explain/attribution.cpp"],
}
# What looks at behaviour; not the tests that compare thresholds with their text.
TESTS = (
    "*Verdict*:*Hypotheses*:Evidence*:WithinErrors*:Cycles*:Units*:*Demand*:Ledger*:Recording*:Drift*:Marginal*"
    ":*Attribution*:LayerTraffic*:Closures*:Answer*:*Impossible*:WriteCeilings*"
    "-*EveryLineSaysItsThreshold"
)
# Text of a line, what it becomes, and why that is the same.
EQUIVALENT = [
    ("f.memory_share > f.compute_share", "memory_share >= ", "two equal roofs are two-roofs' before"),
    ("if (entry.time_us <= 0) return f;", "time_us < 0", "nobody looks at the facts of a step without a time"),
    ("if (entry.time_us <= 0) return variants;", "time_us < 0", "nor at those within their errors"),
    ("shortest_us > 0 ?", "shortest_us >= 0", "records do not take as long as the step"),
    ("f.rest_share < rejecting_part", "rest_share <= ", "half of a threshold rejects nothing by itself"),
    ("return percent < 0 ?", "percent <= 0", "shares that are equal agree"),
    ("if (counted >= total)", "counted > total", "all that is needed is then attributed by either branch"),
    ("(excess > 0 ?", "excess >= 0", "an excess of zero adds nothing to either"),
    ("if (gaps_us > 0)", "gaps_us >= 0", "no gaps are a share of zero"),
]

NOTICED, LIVES, INVALID = "noticed", "live", "do not compile"
STRICTNESS = {">=": ">", "<=": "<", ">": ">=", "<": "<="}
DIRECTION = {">=": "<", "<=": ">", ">": "<=", "<": ">="}
SIGN = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}
EXTREME = {"min": "max", "max": "min"}


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int  # from 1
    kind: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}: {self.before.strip()}  ->  {self.after.strip()}"


def code_of(line: str) -> str:
    """The line with comments and the insides of string literals blanked, so that columns stay."""
    blank = re.sub(r'"(\\.|[^"\\])*"', lambda m: '"' + "~" * (len(m.group()) - 2) + '"', line)
    start = blank.find("//")
    return blank if start < 0 else blank[:start] + "~" * (len(blank) - start)


def mutants_of(file: str) -> list[Mutant]:
    mutants = []
    for number, line in enumerate((ROOT / file).read_text().splitlines(), 1):
        code = code_of(line)

        def add(kind: str, match: re.Match, text: str) -> None:
            start, end = match.span(1)
            mutants.append(Mutant(file, number, kind, line, line[:start] + text + line[end:]))

        constant = re.search(r"constexpr double .* = ", code)
        for match in re.finditer(r"(?<![\w.])(\d+\.\d+|\d+)(?![\w.])", code):
            is_threshold = re.search(r'", \d|^\s+0\.\d+},', code) or constant
            if not is_threshold or float(match.group(1)) in (0, 1):
                continue
            for factor in (0.9, 1.1):
                add("threshold", match, f"{float(match.group(1)) * factor:.6g}")
        for match in re.finditer(r" (>=|<=|>|<) ", code):
            if "template" in code:
                continue
            if "for (" not in code:  # past the end of an array no behaviour is defined
                add("strictness", match, STRICTNESS[match.group(1)])
            add("direction", match, DIRECTION[match.group(1)])
        for match in re.finditer(r"(?<=[\w)\]]) (\+=|-=|\+|-) ", code):
            add("sign", match, SIGN[match.group(1)])
        for match in re.finditer(r"std::(?:ranges::)?(min|max)(?=[(_{])", code):
            if "ranges" not in match.group():
                add("extreme", match, EXTREME[match.group(1)])
    return mutants


class Build:
    """Compiles mutants as the build folder compiles, but unoptimised, and links them before the archive that holds the
    originals."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        names = {name for file, sources in FILES.items() for name in (file, *sources)}
        self.texts = {name: (ROOT / name).read_text() for name in names}
        commands = json.loads((folder / "compile_commands.json").read_text())
        self.compile = {Path(c["file"]).resolve(): shlex.split(c["command"]) for c in commands}
        listed = subprocess.run(
            ["ninja", "-C", folder, "-t", "commands", "tests/analysis_tests"], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        link = [line for line in listed if re.search(r" -o tests/analysis_tests ", line)][-1]
        self.link = re.sub(r"^: && | && :$", "", link)

    def outcome(self, mutant: Mutant | None) -> str:
        """NOTICED where the tests fail or do not end, LIVES where they pass, INVALID where it does not compile. Without
        a mutant: of the files as they are."""
        with tempfile.TemporaryDirectory() as scratch_name:
            scratch = Path(scratch_name)
            objects = []
            if mutant:
                lines = self.texts[mutant.file].splitlines(keepends=True)
                lines[mutant.line - 1] = mutant.after + "\n"
                sources = {source: self.texts[source] for source in FILES[mutant.file]}
                sources[mutant.file] = "".join(lines)
                for name, text in sources.items():
                    (scratch / name).parent.mkdir(parents=True, exist_ok=True)
                    (scratch / name).write_text(text)
                for source in FILES[mutant.file]:
                    objects.append(str(scratch / source) + ".o")
                    if not self._compile(source, scratch, objects[-1]):
                        return INVALID
            program = str(scratch / "tests")
            command = shlex.split(self.link)
            command[command.index("-o") + 1] = program
            first = next(i for i, word in enumerate(command) if word.endswith(".o"))
            command[first:first] = objects
            subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
            try:
                run = subprocess.run(
                    [program, f"--gtest_filter={TESTS}", "--gtest_brief=1"], capture_output=True, timeout=60
                )
            except subprocess.TimeoutExpired:
                return NOTICED
            return NOTICED if run.returncode != 0 else LIVES

    def _compile(self, source: str, scratch: Path, target: str) -> bool:
        command = [word for word in self.compile[ROOT / source] if word != "-Werror"]
        command[command.index("-o") + 1] = target
        command[command.index("-c") + 1] = str(scratch / source)
        compiler = 1 if "ccache" in command[0] else 0
        command = command[compiler:]
        command[1:1] = [f"-I{scratch}"]
        return subprocess.run([*command, "-O0"], cwd=self.folder, capture_output=True).returncode == 0


def is_equivalent(mutant: Mutant) -> bool:
    return any(text in mutant.before and becomes in mutant.after for text, becomes, _ in EQUIVALENT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="folder in which analysis_tests is built")
    parser.add_argument("--only", choices=FILES, help="mutants of this file alone")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if not (arguments.build / "compile_commands.json").exists():
        print(f"{arguments.build} holds no compile_commands.json; configure it with cmake", file=sys.stderr)
        return 2
    build = Build(arguments.build.resolve())
    if build.outcome(None) != LIVES:
        print("the tests fail without any mutant", file=sys.stderr)
        return 1
    mutants = [m for file in FILES if arguments.only in (None, file) for m in mutants_of(file)]
    mutants = [m for m in mutants if not is_equivalent(m)]
    outcomes: Counter[tuple[str, str]] = Counter()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, outcome in zip(mutants, pool.map(build.outcome, mutants)):
            outcomes[mutant.kind, outcome] += 1
            if outcome == LIVES:
                print(f"lives: {mutant}", flush=True)
    for kind in dict.fromkeys(m.kind for m in mutants):
        counts = ", ".join(f"{outcomes[kind, outcome]} {outcome}" for outcome in (NOTICED, LIVES, INVALID))
        print(f"{kind}: {counts}")
    return 1 if any(outcome == LIVES for _, outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())

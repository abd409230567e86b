#!/usr/bin/env python3
"""Breaks what explains and what compares in many small ways, and sees that a test notices.

    scripts/verification/mutate_analysis.py BUILD [--seed N] [--count N] [--least PERCENT] [--only FILE] [--again FILE]

BUILD is a build folder in which `analysis_tests` is built and passes. Mutants are made of all sources and headers of
analysis/explain and analysis/compare, by the kinds of mutants.py, in a folder of their own; the tree is left alone.

Of all mutants --count are drawn, evenly over the files; the same seed draws the same ones as long as a file is the
same. Those that are not compiled (in error, or of a header and used by tests alone) and those of EQUIVALENT, which
cannot change what is computed, are counted apart and others drawn in their place.

A mutant is noticed when a test of tests/analysis/explain or tests/analysis/compare fails, crashes or does not end; else
when one of the rooms that show what these two found does, which is counted too but said apart. Otherwise it lives, and
is printed. The score is noticed / (noticed + live).
Exit codes: 0 the score is at least --least; 1 it is less, or the tests fail without a mutant; 2 bad usage. Not a part
of CI: 300 mutants take a quarter of an hour of one core.
"""

import argparse
import itertools
import json
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants import KINDS, Mutant, drawn, mutants_of

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("analysis/facts", "analysis/explain", "analysis/compare")
SHOWN_BY = ("analysis/report", "analysis/study", "analysis/table")
# Compares each threshold with its own text, and no behaviour.
NO_BEHAVIOUR = "*EveryLineSaysItsThreshold"
# Text of a line, what it becomes, and why that is the same.
EQUIVALENT = [
    ("f.memory_share > f.compute_share", "memory_share >= ", "two equal roofs are two-roofs' before"),
    ("if (facts.time_us <= 0) return f;", "time_us < 0", "nobody looks at the facts of a step without a time"),
    ("if (time_us <= 0) return variants;", "time_us < 0", "nor at those within their errors"),
    ("return us > 0 ? us : recorded_us", "us >= 0", "records do not take as long as the step"),
    ("f.rest_share < rejecting_part", "rest_share <= ", "half of a threshold rejects nothing by itself"),
    ("if (difference >= 0)", "difference > 0", "shares that are equal agree"),
    ("if (counted >= total)", "counted > total", "all that is needed is then attributed by either branch"),
    ("(excess > 0 ?", "excess >= 0", "an excess of zero adds nothing to either"),
    ("if (gaps_us > 0)", "gaps_us >= 0", "no gaps are a share of zero"),
    ("(std::log(value) - mean) * (std::log(value) - mean)", ") + mean", "sum (x - m)(x + m) is sum (x - m)^2"),
    ("step->time_steps.value_or(1);", "value_or(0)", "none are as few as one"),
    ('counters.sm_cycles_active.value_or(0);', "value_or(1)", "one cycle is within any kernel's time"),
    ("all_mhz > 0 ?", "all_mhz > 1", "no clock is below 1 MHz"),
    ("return here_mhz > 0;", "here_mhz > 1", "nor here"),
    ("roof_time.roof.clock_mhz > 0 &&", "clock_mhz > 1 &&", "nor that of a roof"),
    ("if (by_unit.low > 1)", "low >= 1", "an interval that begins at 1 holds it, which is asked before"),
    ("if (times.value > most)", "times.value >= most", "a ratio that is the time's own fits"),
    ("if (times.value < least)", "times.value <= least", "likewise"),
    ("if (mean <= 0 || mhz <= 0) continue;", "mean <= 1", "no clock is below 1 MHz"),
    ("if (mean <= 0 || mhz <= 0) continue;", "mhz <= 1", "likewise"),
    ("memory_bytes > 0)", "memory_bytes > 1", "no device has one byte"),
    ("l2_bytes > 0)", "l2_bytes > 1", "nor in its L2"),
]

NOTICED, ELSEWHERE, LIVES = "noticed", "elsewhere", "live"
EQUAL, INVALID = "equivalent", "not compiled"
SECONDS = 60  # the tests take three; a mutant may loop for ever,
MEMORY = 4 << 30  # or fill all memory
SLOW = 0.05  # seconds: tests that take longer are asked last


def suites(folders: tuple[str, ...]) -> list[str]:
    """Patterns of gtest for all tests that stand there."""
    names = set()
    for folder in folders:
        for source in (ROOT / "tests" / folder).rglob("*_test.cpp"):
            for kind, suite in re.findall(r"^TEST(_F|_P)?\((\w+),", source.read_text(), re.MULTILINE):
                names.add(f"*/{suite}.*" if kind == "_P" else f"{suite}.*")
    return sorted(names)


class Build:
    """Compiles mutants as the build folder compiles, but unoptimised and with what a source includes parsed once, and
    links them before the archive that holds the originals."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder, self.scratch = folder, scratch
        files = sorted(f for f in (ROOT / "analysis").rglob("*") if f.suffix in (".cpp", ".h"))
        self.texts = {str(f.relative_to(ROOT)): f.read_text() for f in files}
        self.mutated = [file for file in self.texts if str(Path(file).parent) in FOLDERS]
        commands = json.loads((folder / "compile_commands.json").read_text())
        self.commands = {Path(c["file"]).resolve(): shlex.split(c["command"]) for c in commands}
        listing = ["ninja", "-C", folder, "-t", "commands", "tests/analysis_tests"]
        listed = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.splitlines()
        link = [line for line in listed if " -o tests/analysis_tests " in line][-1]
        self.link = [self._copied(word) for word in shlex.split(re.sub(r"^: && | && :$", "", link))]
        fastest = next((name for name in ("mold", "lld", "gold") if shutil.which(f"ld.{name}")), None)
        self.link += [f"-fuse-ld={fastest}"] if fastest else []
        self.parsed: set[Path] = set()
        own, shown = ":".join(suites(FOLDERS)), ":".join(suites(SHOWN_BY))
        self.filters = [(NOTICED, f"{own}-{NO_BEHAVIOUR}"), (ELSEWHERE, f"{shown}-{own}:{NO_BEHAVIOUR}")]

    def find_slow(self) -> bool:
        """Has slow tests asked last. False where the tests do not pass as they are."""
        report = self.scratch / "tests.json"
        program = str(self.folder / "tests/analysis_tests")
        for _, tests in reversed(self.filters):
            if not self._passes(program, tests, f"--gtest_output=json:{report}"):
                return False
        tests = [test for suite in json.loads(report.read_text())["testsuites"] for test in suite["testsuite"]]
        slow = ":".join(f"{t['classname']}.{t['name']}" for t in tests if float(t["time"].rstrip("s")) > SLOW)
        quick = self.filters[0][1] + f":{slow}"
        self.filters[:1] = [(NOTICED, quick), (NOTICED, slow)] if slow else self.filters[:1]
        return True

    def _copied(self, word: str) -> str:
        """Copies objects and archives, so that others may build meanwhile."""
        if not word.endswith((".o", ".a")) or Path(word).is_absolute():
            return word
        copy = self.scratch / "originals" / word
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.folder / word, copy)
        return str(copy)

    def includes(self, file: str) -> set[str]:
        """The headers of analysis that it sees."""
        seen: set[str] = set()
        todo = [file]
        while todo:
            found = set(re.findall(r'^#include "(.*)"', self.texts[todo.pop()], re.MULTILINE)) & self.texts.keys()
            todo += found - seen
            seen |= found
        return seen

    def sources(self, mutant: Mutant) -> list[str]:
        """What is compiled with the mutant: of a header, sources of analysis that name what its line defines. A test
        that does so itself keeps the original."""
        if mutant.file.endswith(".cpp"):
            return [mutant.file]
        names = re.findall(r"(\w+)\([^()]*\)(?: const)? \{|(\w+) = ", mutant.before)
        named = re.compile("|".join(rf"\b{a or b}\b" for a, b in names))
        return [
            source
            for source, text in self.texts.items()
            if source.endswith(".cpp") and mutant.file in self.includes(source) and named.search(text)
        ]

    def outcome(self, mutant: Mutant) -> str:
        with tempfile.TemporaryDirectory(dir=self.scratch) as name:
            folder = Path(name)
            objects: list[str] = []
            for source in self.sources(mutant):
                objects.append(str(folder / source) + ".o")
                if not self._compile(mutant, source, folder, objects[-1]):
                    return INVALID
            if not objects:
                return INVALID
            program = str(folder / "tests")
            command = [program if word == "tests/analysis_tests" else word for word in self.link]
            first = next(i for i, word in enumerate(command) if word.endswith(".o"))
            command[first:first] = objects
            subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
            return next((by for by, tests in self.filters if not self._passes(program, tests)), LIVES)

    def _passes(self, program: str, tests: str, *more: str) -> bool:
        command = [program, f"--gtest_filter={tests}", "--gtest_brief=1", "--gtest_fail_fast", *more]
        try:
            return subprocess.run(command, capture_output=True, timeout=SECONDS).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def _compile(self, mutant: Mutant, source: str, folder: Path, target: str) -> bool:
        texts = {name: self.texts[name] for name in (source, mutant.file)}
        lines = texts[mutant.file].splitlines(keepends=True)
        lines[mutant.line - 1] = mutant.after + "\n"
        texts[mutant.file] = "".join(lines)
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        original = self.commands[ROOT / source]
        flags = original[1 + ("ccache" in original[0]) : original.index("-o")]
        flags = [word for word in flags if word != "-Werror"] + ["-O0", "-w"]
        common = Path(flags.pop(flags.index("-include") + 1)) if "-include" in flags else None
        if common:
            flags.remove("-include")
        compiler = original["ccache" in original[0]]
        # When a header is mutated, only headers that are not ours can be parsed before.
        parsed = self._parsed(compiler, flags, common, source if mutant.file == source else None)
        command = [compiler, f"-I{folder}", *flags, "-include", str(parsed), "-o", target, "-c", str(folder / source)]
        return subprocess.run(command, cwd=self.folder, capture_output=True).returncode == 0

    def _parsed(self, compiler: str, flags: list[str], common: Path | None, source: str | None) -> Path:
        header = self.scratch / ((source or "common") + ".parsed.h")
        if header not in self.parsed:
            text = f'#include "{common}"\n' if common else ""
            if source:
                text += "".join(line + "\n" for line in self.texts[source].splitlines() if line.startswith("#include"))
            header.parent.mkdir(parents=True, exist_ok=True)
            header.write_text(text)
            command = [compiler, *flags, "-x", "c++-header", "-o", f"{header}.gch", str(header)]
            subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
            self.parsed.add(header)
        return header


def is_equivalent(mutant: Mutant) -> bool:
    return any(text in mutant.before and becomes in mutant.after for text, becomes, _ in EQUIVALENT)


def outcomes(build: Build, mutants: list[Mutant], count: int, jobs: int) -> list[tuple[Mutant, str]]:
    """Tries mutants in their order until `count` are noticed or live. Those that live are printed as they are found."""
    found: list[tuple[Mutant, str]] = []
    left = iter(mutants)
    with ThreadPoolExecutor(jobs) as pool:
        while missing := count - sum(outcome in (NOTICED, ELSEWHERE, LIVES) for _, outcome in found):
            batch = list(itertools.islice(left, min(jobs, missing)))
            if not batch:
                break
            of_batch = pool.map(lambda m: EQUAL if is_equivalent(m) else build.outcome(m), batch)
            for mutant, outcome in zip(batch, of_batch):
                found.append((mutant, outcome))
                if outcome in (LIVES, ELSEWHERE):
                    print(f"{'lives' if outcome == LIVES else 'elsewhere'}: {mutant}", flush=True)
                if len(found) % 25 == 0:
                    print(f"{len(found)} mutants", file=sys.stderr, flush=True)
    return found


def print_table(title: str, rows: dict[str, Counter[str]]) -> None:
    columns = (NOTICED, ELSEWHERE, LIVES, EQUAL, INVALID)
    print(f"\n{title}: " + ", ".join(columns))
    for name, counts in rows.items():
        print(f"  {name:<44}" + "".join(f"{counts[column]:>6}" for column in columns))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="folder in which analysis_tests is built")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300, help="mutants that compile and are not equivalent; 0: all")
    parser.add_argument("--least", type=float, default=80, help="score in percent from which on the exit code is 0")
    parser.add_argument("--only", help="mutants of this file alone: analysis/explain/time_breakdown.cpp")
    parser.add_argument("--again", type=Path, help="only mutants that a line of this file names, as printed before")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    if not (arguments.build / "compile_commands.json").exists():
        print(f"{arguments.build} holds no compile_commands.json; configure it with cmake", file=sys.stderr)
        return 2
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as scratch:
        build = Build(arguments.build.resolve(), Path(scratch))
        if arguments.only and arguments.only not in build.mutated:
            print(f"--only: {arguments.only} is no file of {' or '.join(FOLDERS)}", file=sys.stderr)
            return 2
        asked = build.filters[0][1]
        if not build.find_slow():
            print("the tests fail without any mutant", file=sys.stderr)
            return 1
        files = [file for file in build.mutated if arguments.only in (None, file)]
        mutants = drawn({file: mutants_of(file, build.texts[file]) for file in files}, arguments.seed)
        if arguments.again:
            named = re.sub(r"^.*?(analysis/\S+?):\d+:", r"\1:", arguments.again.read_text(), flags=re.MULTILINE)
            mutants = [m for m in mutants if m.key() in named.splitlines()]
        print(f"{len(mutants)} mutants in all, seed {arguments.seed}; tests: {asked}", flush=True)
        found = outcomes(build, mutants, arguments.count or len(mutants), arguments.jobs)

    def counts(group: str, of: str) -> Counter[str]:
        return Counter(outcome for mutant, outcome in found if getattr(mutant, group) == of)

    print_table("by kind", {kind.name: counts("kind", kind.name) for kind in KINDS})
    print_table("by file", {file: counts("file", file) for file in files if counts("file", file)})
    total = Counter(outcome for _, outcome in found)
    noticed = total[NOTICED] + total[ELSEWHERE]
    score = 100 * noticed / max(1, noticed + total[LIVES])
    print(f"\nscore {score:.1f} %: {noticed} of {noticed + total[LIVES]} noticed, {total[ELSEWHERE]} of them by "
          f"tests of {', '.join(SHOWN_BY)} alone; beside these {total[EQUAL]} equivalent and {total[INVALID]} that are "
          "not compiled")
    return 0 if score >= arguments.least else 1


if __name__ == "__main__":
    sys.exit(main())

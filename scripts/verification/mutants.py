"""Mutants of C++ source: one place of one line changed, by the rows of a table. For mutate_analysis.py.

The text is read line by line, as clang-format leaves it; no parser is needed for that. What does not compile is no
mutant, and is counted apart by whoever compiles it.
"""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Change = tuple[int, int, str]  # from where to where in the line, and what stands there instead


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int  # from 1
    kind: str
    before: str
    after: str

    def key(self) -> str:
        """What it is, wherever the line has moved to."""
        return f"{self.file}: {self.kind}: {self.before.strip()}  ->  {self.after.strip()}"

    def __str__(self) -> str:
        return self.key().replace(self.file, f"{self.file}:{self.line}", 1)


@dataclass(frozen=True)
class Place:
    """A line in its surroundings, with comments and the insides of literals blanked so that columns stay."""

    code: str
    before: str  # the code line before it, stripped
    in_bool: bool  # in the body of a function that is declared bool


def code_of(line: str) -> str:
    def blanked(match: re.Match) -> str:
        return match.group()[0] + "~" * (len(match.group()) - 2) + match.group()[-1]

    blank = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', blanked, line)
    start = blank.find("//")
    return blank if start < 0 else blank[:start] + "~" * (len(blank) - start)


def swap(pattern: str, pairs: dict[str, str]) -> Callable[[Place], Iterator[Change]]:
    def changes(place: Place) -> Iterator[Change]:
        for match in re.finditer(pattern, place.code):
            if match.group(1) in pairs:
                yield *match.span(1), pairs[match.group(1)]

    return changes


def both_ways(*pairs: tuple[str, str]) -> dict[str, str]:
    return dict(pairs) | {other: one for one, other in pairs}


def outside_for(changes: Callable[[Place], Iterator[Change]]) -> Callable[[Place], Iterator[Change]]:
    """Not in the head of a loop: past the end of an array no behaviour is defined."""
    return lambda place: iter(()) if re.search(r"\bfor \(", place.code) else changes(place)


def constants(place: Place) -> Iterator[Change]:
    for match in re.finditer(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)(?![\w.])", place.code):
        for factor in (0.9, 1.1):
            if float(match.group(1)) != 0:
                yield *match.span(1), f"{float(match.group(1)) * factor:.10g}"


def integers(place: Place) -> Iterator[Change]:
    for match in re.finditer(r"(?<![\w.])(?<!e-)(\d+)(?![\w.])", place.code):
        number = int(match.group(1))
        for other in (number + 1, number - 1):
            if other >= 0:
                yield *match.span(1), str(other)


def answers(place: Place) -> Iterator[Change]:
    for match in re.finditer(r"\breturn ([^;]+);", place.code) if place.in_bool else ():
        if match.group(1) not in ("true", "false"):
            yield *match.span(1), f"!({match.group(1)})"


def early_exits(place: Place) -> Iterator[Change]:
    if match := re.search(r"\bcontinue;", place.code):
        yield *match.span(), ";"
    if match := re.match(r"\s*(?:\} )?(?:else )?if \(.*\) (return\b[^;{}]*;)$", place.code):
        yield *match.span(1), ";"
    if (match := re.match(r"\s+(return\b[^;{}]*;)$", place.code)) and place.before.endswith(")"):
        yield *match.span(1), ";"


def statements(place: Place) -> Iterator[Change]:
    """Whole ones on a line of their own: an assignment, a call, a step."""
    begins = re.search(r"[;{}:]$|^(?:if|for)\b.*\)$|\belse$", place.before)
    assigned, called, stepped = r"[\w.>\[\]()*:-]+ [-+*/]?= .*;", r"[\w.>:-]+\(.*\);", r"\+\+[^;]+;"
    match = re.match(rf"\s+((?!return|throw|using)(?:{assigned}|{called}|{stepped}))$", place.code)
    if begins and match and match.group(1).count("(") == match.group(1).count(")"):
        yield *match.span(1), ";"


@dataclass(frozen=True)
class Kind:
    name: str
    what: str  # for people
    changes: Callable[[Place], Iterator[Change]]


# An operator ends a line where clang-format breaks it.
END = r"(?= |$)"
STRICTNESS = {">=": ">", "<=": "<", ">": ">=", "<": "<="}
DIRECTION = {">=": "<", "<=": ">", ">": "<=", "<": ">="}
SIGN = both_ways(("+", "-"), ("*", "/"), ("+=", "-="), ("*=", "/="))
KINDS = (
    Kind("constant", "a floating constant 10 % larger, and 10 % smaller", constants),
    Kind("off by one", "an integer one larger, and one smaller", integers),
    Kind("strictness", ">= to >, < to <=, and back", outside_for(swap(rf" (>=|<=|>|<){END}", STRICTNESS))),
    Kind("direction", ">= to <, > to <=, and back", swap(rf" (>=|<=|>|<){END}", DIRECTION)),
    Kind("equality", "== to !=, and back", swap(rf" (==|!=){END}", both_ways(("==", "!=")))),
    Kind("logic", "&& to ||, and back", swap(rf" (&&|\|\|){END}", both_ways(("&&", "||")))),
    Kind("negation", "!x to x", swap(r"(!)(?=[\w(*:])", {"!": ""})),
    Kind("answer", "the opposite of what a bool function returns", answers),
    Kind("boolean", "true to false, and back", swap(r"\b(true|false)\b", both_ways(("true", "false")))),
    Kind("arithmetic", "+ to -, * to /, += to -=, *= to /=, and back",
         swap(rf"(?<=[\w)\]}}]) ([-+*/]=?){END}", SIGN)),
    Kind("step", "++ to --", outside_for(swap(r"(\+\+|--)", both_ways(("++", "--"))))),
    Kind("extreme", "min to max, and back",
         swap(r"std::(?:ranges::)?(min|max|min_element|max_element)(?=[({])",
              both_ways(("min", "max"), ("min_element", "max_element")))),
    Kind("order", "std::greater to std::less, and back",
         swap(r"std::(greater|less)\b", both_ways(("greater", "less")))),
    Kind("quantifier", "all_of to any_of and back, none_of to any_of",
         swap(r"\b(all_of|any_of|none_of)\(", both_ways(("all_of", "any_of")) | {"none_of": "any_of"})),
    Kind("early exit", "a continue or an early return left out", early_exits),
    Kind("statement", "an assignment or a call left out", statements),
)  # fmt: skip

NO_CODE = re.compile(r"^\s*(?:#|using\b|namespace\b|template\b|static_assert\b|enum\b|friend\b)")
BOOL_FUNCTION = re.compile(r"^(\s*)(?:static |constexpr |inline )*bool [\w:]+\(.*\{")
# Lines of a header that compute: the defaults of a struct's members are data.
HEADER_CODE = re.compile(r"\breturn\b|^inline constexpr")


def mutants_of(file: str, text: str) -> list[Mutant]:
    mutants = []
    before, bool_indent = ";", None
    for number, line in enumerate(text.splitlines(), 1):
        code = code_of(line)
        if opened := BOOL_FUNCTION.match(code):
            bool_indent = opened.group(1)
        place = Place(code, before, bool_indent is not None)
        is_code = not NO_CODE.match(code) and (file.endswith(".cpp") or HEADER_CODE.search(code))
        for kind in KINDS if is_code else ():
            for start, end, instead in kind.changes(place):
                mutants.append(Mutant(file, number, kind.name, line, line[:start] + instead + line[end:]))
        if bool_indent is not None and (code == bool_indent + "}" or (opened and code.rstrip().endswith("}"))):
            bool_indent = None
        before = re.sub(r"~+$", "", code).strip() or before
    return mutants


def drawn(mutants: dict[str, list[Mutant]], seed: int) -> list[Mutant]:
    """All of them in an order that depends on nothing but them and the seed: one of each unit in turn, a header and its
    source being one unit. So the first N are spread evenly, and a changed file changes the draw of no other."""
    units: dict[str, list[Mutant]] = {}
    for file in sorted(mutants):
        units.setdefault(str(Path(file).with_suffix("")), []).extend(mutants[file])
    for unit, of_unit in units.items():
        random.Random(f"{seed} {unit}").shuffle(of_unit)
    order = []
    for turn in range(max(map(len, units.values()), default=0)):
        order += [of_unit[turn] for of_unit in units.values() if turn < len(of_unit)]
    return order

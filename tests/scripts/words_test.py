"""The words of comments and of user-facing text, and how long kernels are, as far as a script can judge them
(CONTRIBUTING.md has the style):

- a comment is a sentence with a subject: none begins with "Of";
- a file opens by saying what it is for: "See X.h" alone says nothing;
- a public header's opening has an example of its use;
- what a user reads (docs, README, string literals) uses the field's words and none of those that were retired;
- a function under kernels/ can be read in a minute: it has at most 120 lines.

Each rule has a planted file that breaks it. words_test.py; skips outside a git work tree.
"""

import pathlib
import re
import subprocess
import unittest
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
C_LIKE = (".h", ".cpp", ".cu", ".cuh", ".cu.in")
HASHES = (".py", ".sh", ".cmake")

# Retired words and what the field says instead.
RETIRED = {
    "ledger": "time breakdown",
    "closure": "cross-check",
    "streaming bytes": "unfused traffic",
    "least bytes": "compulsory traffic",
    "hearsay": "reported",
    "cannot be told": "unknown",
    "dependent step": "time step",
}
# Names in results of older versions, which are still read: whole string literals.
OLD_NAMES = {"dependent_steps", "least_bytes", "dependent_us", "dram_over_streaming", "l2_over_streaming"}

STRING = r'R"(?P<raw>\w*)\((?:.|\n)*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"'
TOKEN = re.compile(rf"(?P<comment>//[^\n]*|/\*(?:.|\n)*?\*/)|(?P<string>{STRING})|(?<!\w)'(?:\\.|[^'\\\n])+'")
HASH = re.compile(r"(?:^|(?<=\s))#(?!!).*|^\s*\"\"\".*", re.MULTILINE)
MARKS = re.compile(r"^\s*(?:///?<?|/\*\*?|#+|\"\"\"|\*)\s*")


def comments(name: str, text: str) -> Iterator[tuple[int, bool, str]]:
    """Line, whether code stands before it on its line, and words of each comment line."""
    c_like = name.endswith(C_LIKE)
    for match in TOKEN.finditer(text) if c_like else HASH.finditer(text):
        if c_like and not match["comment"]:
            continue
        first = text.count("\n", 0, match.start()) + 1
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        for number, line in enumerate(match[0].splitlines()):
            yield first + number, number == 0 and bool(before.strip()), MARKS.sub("", line).strip()


def begins_with_of(name: str, text: str) -> list[str]:
    """A line that begins with a small "of" continues the comment of the line before it, where there is one."""
    found, last = [], 0
    for line, trails, words in comments(name, text):
        begins = trails or line != last + 1
        if re.match(r"of\b" if begins else r"Of\b", words, re.IGNORECASE if begins else 0):
            found.append(f"{name}:{line}: '{words}' begins with \"of\": say what it is that is of it")
        last = line
    return found


def opens_with_see(name: str, text: str) -> list[str]:
    opening, last = [], 0
    for line, trails, words in comments(name, text):
        if trails or line != last + 1:
            break
        opening.append(words)
        last = line
    if re.fullmatch(r"See [\w/.`]+", " ".join(opening)):
        return [f"{name}:1: '{' '.join(opening)}' alone does not say what the file is for"]
    return []


def opens_without_example(name: str, text: str) -> list[str]:
    """An example is indented, as in Markdown."""
    opening = text.partition("#pragma once")[0]
    if re.search(r"^// {5}\S", opening, re.MULTILINE):
        return []
    return [f"{name}:1: the opening comment has no example of use, indented by four spaces"]


def retired_words(name: str, text: str) -> list[str]:
    """Adjacent literals are one; what is included is no text."""
    if name.endswith(C_LIKE):
        text = re.sub(r"^\s*#include.*", "", text, flags=re.MULTILINE)
        literals = [(match.start(), match["string"]) for match in TOKEN.finditer(text) if match["string"]]
    else:
        literals = [(0, text)]
    found, joined, end = [], "", 0
    for start, literal in [*literals, (len(text) + 1, "")]:
        if joined and (start > len(text) or text[end:start].strip()):
            if joined not in OLD_NAMES:
                plain = re.sub(r"\s+", " ", joined).lower()
                found += [f"{name}: '{word}' is retired: say '{RETIRED[word]}'" for word in RETIRED if re.search(rf"\b{word}", plain)]
            joined = ""
        joined, end = joined + (literal[1:-1] if literal.startswith('"') else literal), start + len(literal)
    return found


MOST_LINES = 120


def long_functions(name: str, text: str) -> list[str]:
    """Functions at the outermost level, from their first line at the margin to the brace that closes them there."""
    found, start = [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if line == "}" and number - start + 1 > MOST_LINES:
            found.append(f"{name}:{start}: a function of {number - start + 1} lines: name its stages")
        if re.match(r"[A-Za-z_]", line):
            start = number
    return found


def tracked() -> list[str]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    return [name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def has_comments(name: str) -> bool:
    path = ROOT / name
    if name.endswith(C_LIKE + HASHES) or path.name == "CMakeLists.txt":
        return True
    return not path.suffix and name.startswith("scripts/") and path.read_bytes().startswith(b"#!")


class Words(unittest.TestCase):
    def setUp(self) -> None:
        self.names = tracked()
        if not self.names:
            self.skipTest("no git work tree: what is tracked is not known")

    def check(self, rule, names: list[str]) -> None:
        self.assertGreater(len(names), 0)
        found = [breach for name in names for breach in rule(name, (ROOT / name).read_text())]
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def commented(self) -> list[str]:
        return [name for name in self.names if has_comments(name)]

    def test_no_comment_begins_with_of(self) -> None:
        self.check(begins_with_of, self.commented())

    def test_every_opening_comment_says_what_the_file_is_for(self) -> None:
        self.check(opens_with_see, self.commented())

    def test_public_headers_open_with_an_example(self) -> None:
        self.check(opens_without_example, [name for name in self.names if name.startswith("include/")])

    def test_what_a_user_reads_has_no_retired_word(self) -> None:
        texts = [name for name in self.names if name == "README.md" or re.fullmatch(r"docs/[^/]+\.md", name)]
        texts += [name for name in self.names if name.endswith(C_LIKE) and not name.startswith("tests/")]
        self.check(retired_words, texts)

    def test_functions_of_kernels_can_be_read_in_a_minute(self) -> None:
        self.check(long_functions, [n for n in self.names if n.startswith("kernels/") and n.endswith(C_LIKE)])


class Planted(unittest.TestCase):
    """A rule that finds nothing in a file that breaks it holds nothing."""

    def test_comments_that_begin_with_of(self) -> None:
        planted = '// Of lane 0.\nint a;  ///< of b\nauto c = "// of";\n/// The rows\n/// of d.\n/// Of e.\nf(/* of g */);\n'
        lines = [int(breach.split(":")[1]) for breach in begins_with_of("planted.cu", planted)]
        self.assertEqual(lines, [1, 2, 6, 7])
        planted = '#!/bin/bash\n# Of a run.\nb=1\t# of b\n# Runs\n# of c, ${#of}\n"""Of d."""\n'
        lines = [int(breach.split(":")[1]) for breach in begins_with_of("planted.py", planted)]
        self.assertEqual(lines, [2, 3, 6])

    def test_openings_that_say_nothing(self) -> None:
        self.assertEqual(len(opens_with_see("planted.cpp", '// See planted.h.\n#include "planted.h"\n')), 1)
        self.assertEqual(len(opens_with_see("planted.cpp", "// See `a/planted.h`\n\nint a;\n")), 1)
        for fine in ("// Sums rows. See a.h.\n", "int a;  // See b.h.\n", "// See b.h.\n// It sums rows.\n"):
            self.assertEqual(opens_with_see("planted.cpp", fine), [])

    def test_public_headers_without_an_example(self) -> None:
        body = "#pragma once\n//     f();\n"
        self.assertEqual(len(opens_without_example("planted.h", f"// It sums rows.\n//\n{body}")), 1)
        self.assertEqual(opens_without_example("planted.h", f"// It sums rows.\n//\n//     sum(rows);\n{body}"), [])

    def test_long_functions(self) -> None:
        for lines, found in ((MOST_LINES, 0), (MOST_LINES + 1, 1)):
            body = "    f();\n" * (lines - 3)
            planted = f"int g() {{\n    return 1;\n}}\n\ntemplate <class T>\n__global__ void\n    f(int a) {{\n{body}}}\n"
            self.assertEqual(len(long_functions("planted.cu", planted)), found)

    def test_retired_words(self) -> None:
        for word in RETIRED:
            first, _, second = word.title().partition(" ")
            self.assertEqual(len(retired_words("planted.md", f"The\n{first}\n{second} says so.")), 1, word)
        literals = 'f("the least "\n  "bytes");\n#include "a/ledger.h"\nledger = "least", "bytes";  // ledger\n'
        self.assertEqual(len(retired_words("planted.cpp", literals)), 1)
        self.assertEqual(len(retired_words("planted.h", 'R"(a "ledger")"')), 1)


if __name__ == "__main__":
    unittest.main()

"""Which mutants are made of a line, which are drawn, and how they are counted. Compiles nothing."""

import pathlib
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "verification"))

import mutate_analysis  # noqa: E402
import mutants  # noqa: E402

ROOM = "analysis/explain"


def changed(line: str, kind: str, before: str = "", file: str = f"{ROOM}/x.cpp") -> list[str]:
    """What the second of two lines becomes."""
    found = mutants.mutants_of(file, f"{before}\n{line}\n")
    return [m.after.strip() for m in found if m.kind == kind and m.line == 2]


class Lines(unittest.TestCase):
    def test_every_kind_changes_one_place(self) -> None:
        for line, kind, expected in (
            ("f(0.5);", "constant", ["f(0.45);", "f(0.55);"]),
            ("f(1e-3);", "constant", ["f(0.0009);", "f(0.0011);"]),
            ("f(2);", "off by one", ["f(3);", "f(1);"]),
            ("f(x[0]);", "off by one", ["f(x[1]);"]),
            ("if (a >= b && c <", "strictness", ["if (a > b && c <", "if (a >= b && c <="]),
            ("if (a > b)", "direction", ["if (a <= b)"]),
            ("if (a == b)", "equality", ["if (a != b)"]),
            ("return a || b;", "logic", ["return a && b;"]),
            ("if (!a.empty() && !(b))", "negation", ["if (a.empty() && !(b))", "if (!a.empty() && (b))"]),
            ("f(true);", "boolean", ["f(false);"]),
            ("x = a * b / (c) - d;", "arithmetic",
             ["x = a / b / (c) - d;", "x = a * b * (c) - d;", "x = a * b / (c) + d;"]),
            ("++n;", "step", ["--n;"]),
            ("x = std::max({a, b});", "extreme", ["x = std::min({a, b});"]),
            ("sort(x, std::greater{});", "order", ["sort(x, std::less{});"]),
            ("x = std::ranges::none_of(y);", "quantifier", ["x = std::ranges::any_of(y);"]),
            ("if (a) continue;", "early exit", ["if (a) ;"]),
            ("if (f(a)) return {b, c()};", "early exit", []),
            ("if (f(a)) return g(b);", "early exit", ["if (f(a)) ;"]),
        ):  # fmt: skip
            self.assertEqual(changed(line, kind), expected, line)

    def test_words_of_literals_and_comments_are_left_alone(self) -> None:
        for line in ('f("a > 0.5 && !b");  // + 2', "f('1');", "#include <a1.h>", "template <int n = 2>"):
            for kind in mutants.KINDS:
                if kind.name != "statement":
                    self.assertEqual(changed(line, kind.name), [], line)

    def test_a_pointer_is_no_product_and_a_name_no_number(self) -> None:
        self.assertEqual(changed("const Point *a = f(b2), *c = &l2;", "arithmetic"), [])
        self.assertEqual(changed("x = level_2.fp16;", "off by one"), [])

    def test_no_loop_runs_past_its_end(self) -> None:
        loop = "for (std::size_t i = 0; i < n; ++i)"
        self.assertEqual(changed(loop, "strictness"), [])
        self.assertEqual(changed(loop, "step"), [])

    def test_whole_statements_are_left_out_and_declarations_and_parts_are_not(self) -> None:
        for line in ("sum.us += f(x) * 2;", "found.push_back(g(x));", "++group.steps;", "a[i]->b = c;"):
            self.assertEqual(changed(f"    {line}", "statement", "x();"), [";"], line)
        for line in ("double us = 2;", "return f(x);", "throw Error(x);"):
            self.assertEqual(changed(f"    {line}", "statement", "x();"), [], line)
        self.assertEqual(changed("    f(x);", "statement", "a = b +"), [])

    def test_only_functions_of_bool_answer_the_opposite(self) -> None:
        self.assertEqual(changed("    return a > b;", "answer", "bool is_more(int a, int b) {"), ["return !(a > b);"])
        self.assertEqual(changed("    return a + b;", "answer", "int more(int a, int b) {"), [])
        self.assertEqual(changed("bool f() { return a; }", "answer"), ["bool f() { return !(a); }"])
        after = mutants.mutants_of(f"{ROOM}/x.cpp", "bool f() {\n}\nint g() {\n    return a;\n}\n")
        self.assertEqual([m for m in after if m.kind == "answer"], [])

    def test_a_return_behind_an_if_of_its_own_line_is_an_early_one(self) -> None:
        self.assertEqual(changed("        return b;", "early exit", "    if (f(a))"), [";"])
        self.assertEqual(changed("    return b;", "early exit", "    f(a);"), [])

    def test_of_a_header_only_what_computes(self) -> None:
        header = f"{ROOM}/x.h"
        self.assertEqual(changed("    double us = 1;", "off by one", file=header), [])
        self.assertTrue(changed("double us() const { return sum / 2; }", "off by one", file=header))


class Draws(unittest.TestCase):
    def setUp(self) -> None:
        self.all = {}
        for file, text, size in (("a.cpp", "p + q", 20), ("a.h", "2", 3), ("b.cpp", "a > b", 4)):
            name = f"{ROOM}/{file}"
            self.all[name] = mutants.mutants_of(name, "f(x);\n" + f"return {text};\n" * size)

    def test_a_seed_draws_the_same_and_another_one_others(self) -> None:
        one = [str(m) for m in mutants.drawn(self.all, 1)]
        self.assertEqual(one, [str(m) for m in mutants.drawn(self.all, 1)])
        self.assertNotEqual(one, [str(m) for m in mutants.drawn(self.all, 2)])
        self.assertEqual(sorted(one), sorted(str(m) for of_file in self.all.values() for m in of_file))

    def test_the_first_are_spread_evenly_with_a_header_beside_its_source(self) -> None:
        first = [m.file.removeprefix(f"{ROOM}/")[0] for m in mutants.drawn(self.all, 7)[:10]]
        self.assertEqual(first, ["a", "b"] * 5)

    def test_another_file_changes_no_draw(self) -> None:
        def of_a(drawn: list) -> list[str]:
            return [str(m) for m in drawn if "/a." in m.file]

        fewer = {name: of_file for name, of_file in self.all.items() if not name.endswith("b.cpp")}
        self.assertEqual(of_a(mutants.drawn(self.all, 3)), of_a(mutants.drawn(fewer, 3)))


class Counting(unittest.TestCase):
    def outcomes(self, by_line: dict[int, str], count: int, jobs: int = 1) -> list[tuple[int, str]]:
        build = mock.Mock()
        build.outcome = lambda mutant: by_line[mutant.line]
        of_lines = [mutants.Mutant("x.cpp", line, "constant", f"before {line}", "after") for line in by_line]
        with mock.patch("builtins.print"):
            found = mutate_analysis.outcomes(build, of_lines, count, jobs)
        return [(mutant.line, outcome) for mutant, outcome in found]

    def test_what_does_not_compile_or_is_equivalent_is_drawn_again(self) -> None:
        by_line = {1: "not compiled", 2: "noticed", 3: "noticed", 4: "live", 5: "noticed"}
        with mock.patch.object(mutate_analysis, "EQUIVALENT", [("before 3", "after", "because")]):
            for jobs in (1, 3):
                self.assertEqual(self.outcomes(by_line, 2, jobs),
                                 [(1, "not compiled"), (2, "noticed"), (3, "equivalent"), (4, "live")])  # fmt: skip

    def test_where_there_are_no_more_the_count_is_less(self) -> None:
        self.assertEqual(self.outcomes({1: "live"}, 300), [(1, "live")])

    def test_both_folders_of_tests_are_asked(self) -> None:
        asked = mutate_analysis.suites(mutate_analysis.FOLDERS)
        for suite in ("Breakdown*", "WhatIfTest.*", "*/VerdictOfOneStep.*"):
            self.assertTrue([pattern for pattern in asked if pattern.startswith(suite.rstrip("*"))], suite)

    def test_what_is_equivalent_is_a_line_that_stands_somewhere(self) -> None:
        text = "".join(path.read_text() for folder in mutate_analysis.FOLDERS for path in (ROOT / folder).iterdir())
        for line, _, _ in mutate_analysis.EQUIVALENT:
            self.assertTrue(line in text, line)  # assertIn would print all of the source


if __name__ == "__main__":
    unittest.main()

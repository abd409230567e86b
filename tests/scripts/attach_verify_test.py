"""What attach-verify accepts and what it refuses, on figures that are planted. Needs no GPU and no PyTorch."""

import copy
import importlib.machinery
import importlib.util
import json
import pathlib
import sys
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
from verification.process import Stop  # noqa: E402

loader = importlib.machinery.SourceFileLoader("attach_verify", str(ROOT / "scripts/attach-verify"))
spec = importlib.util.spec_from_loader(loader.name, loader)
assert spec
attach_verify = importlib.util.module_from_spec(spec)
sys.modules[loader.name] = attach_verify
loader.exec_module(attach_verify)

CASE = attach_verify.Case("eager", "", says=["launch-bound"], never=["pageable"])
RIGHT: dict[str, Any] = {
    "program": {"busy_ms": 7.0, "host_wait_ms": 2.9, "queued_ms": 0.2, "bare_ms": 10.0},
    "alone": {"mean_ms": 10.0, "median_ms": 10.0},
    "forwards": 0.995,
    "counters_s": 2.0,
    "counters_unavailable": "",
    "answer": ["  It is launch-", "bound.", "It is launch-bound."],
}


def kernel(grid: int) -> dict[str, Any]:
    return {"grid": [grid, 1, 1], "block": [32, 1, 1]}


class AttachVerify(unittest.TestCase):
    def failures(self, **planted: Any) -> list[str]:
        entry = copy.deepcopy(RIGHT)
        for path, value in planted.items():
            *outer, last = path.split("__")
            place = entry
            for name in outer:
                place = place[name]
            place[last] = value
        return attach_verify.failures(CASE, entry)

    def test_accepts_what_is_right(self) -> None:
        self.assertEqual(self.failures(), [])

    def test_names_each_planted_fault_and_no_other(self) -> None:
        for planted, words in (
            ({"program__host_wait_ms": 3.2}, "parts are +4.0% off"),
            ({"program__host_wait_ms": 2.4}, "parts are -4.0% off"),
            ({"alone__mean_ms": 9.8}, "+2.0% of the program alone"),
            ({"forwards": 0.98}, "98.0% of backward kernels"),
            ({"counters_s": 11.0}, "counting took 11.0 s"),
            ({"counters_unavailable": "no permission"}, "no counters: no permission"),
            ({"answer": ["No conclusion is drawn."]}, "does not say 'launch-bound'"),
            ({"answer": ["launch-bound", "copies from page", "able", "pageable memory"]}, "says 'pageable'"),
        ):
            with self.subTest(planted=planted):
                found = self.failures(**planted)
                self.assertEqual(len(found), 1, found)
                self.assertIn(words, found[0])

    def test_a_time_that_is_missing_is_no_closing_and_no_overhead(self) -> None:
        found = self.failures(program__bare_ms=0.0)
        self.assertEqual(len(found), 2, found)
        self.assertIn("parts are +nan% off", found[0])
        self.assertIn("+nan% of the program alone", found[1])

    def test_a_forward_has_no_share_of_named_backward_kernels(self) -> None:
        self.assertEqual(self.failures(forwards=None), [])
        steps = [{"direction": "fwd", "kernels": [1]}]
        self.assertIsNone(attach_verify.forwards_share(steps))
        steps += [{"direction": "dgrad", "kernels": [1, 2], "forward": "h.0:gemm"}, {"direction": "bwd", "kernels": [3, 4]}]
        self.assertEqual(attach_verify.forwards_share(steps), 0.5)

    def test_reads_the_times_that_a_program_prints(self) -> None:
        self.assertEqual(
            attach_verify.printed_ms("x\n7.9863 ms an iteration, 7.9847 median between returns\n"),
            {"mean_ms": 7.9863, "median_ms": 7.9847},
        )
        with self.assertRaisesRegex(Stop, "printed no time"):
            attach_verify.printed_ms("Traceback")

    def test_finds_the_last_iteration_among_the_records(self) -> None:
        point = {"steps": [{"kernels": [kernel(1), kernel(2)]}, {"kernels": [kernel(3)]}]}
        with tempfile.TemporaryDirectory() as folder:
            records = pathlib.Path(folder) / "1-records"
            records.mkdir()
            grids = [9, 1, 2, 3, 1, 2, 3, 1]
            lines = [{"kind": "process"}]
            for index, grid in enumerate(grids):
                lines.append({"kind": "launch", "correlation": 100 - index, "index": index})
                lines.append({"kind": "kernel", "correlation": 100 - index} | kernel(grid))
            path = records / "records.1.jsonl"
            path.write_text("\n".join(map(json.dumps, lines)))
            self.assertEqual(attach_verify.first_of_last_iteration(pathlib.Path(folder), point), 4)
            point["steps"][1]["kernels"] = [kernel(4)]
            with self.assertRaisesRegex(Stop, "not in the records"):
                attach_verify.first_of_last_iteration(pathlib.Path(folder), point)

    def test_every_case_names_a_program_that_can_be_asked_for(self) -> None:
        text = (ROOT / "scripts/verification/torch_attached.py").read_text(encoding="utf-8")
        for case in attach_verify.CASES:
            for option in [word for word in case.options.split() if word.startswith("--")]:
                self.assertIn(f'"{option}"', text)


if __name__ == "__main__":
    unittest.main()

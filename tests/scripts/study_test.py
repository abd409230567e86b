"""kbench study on the CPU, whole: what its report says is what result.json holds. Every figure of every sentence is
computed again here, from samples, steps and ceilings alone; a study that is stopped goes on; shards join.

study_test.py KBENCH
"""

import base64
import functools
import gzip
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MATRIX_KINDS = {"gemm", "attention", "conv2d", "lstm", "gru", "rnn"}
CEILINGS = {"fp16": ["avx512_fp16"], "bf16": ["amx_bf16", "avx512_bf16"], "fp32": ["avx512_fp32", "avx2_fp32"],
            "fp64": ["avx512_fp64", "avx2_fp64"], "dram": ["cpu_dram_read", "cpu_dram_triad"]}
GPU_CEILINGS = {"fp16": ["fp16_tensor"], "bf16": ["bf16_tensor"], "tf32": ["tf32_tensor"], "fp32": ["fp32_plain"],
                "fp64": ["fp64_tensor", "fp64_plain"]}


def config(folder: pathlib.Path) -> pathlib.Path:
    path = folder / "config.json"
    path.write_text(json.dumps({"model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 64, "n_ctx": 64,
                                "n_positions": 64, "vocab_size": 512, "activation_function": "gelu_new"}))
    return path


def read(folder: pathlib.Path) -> dict:
    with gzip.open(folder / "result.json.gz", "rt") as file:
        return json.load(file)


def drawn(folder: pathlib.Path) -> dict:
    """The sections of report.html, and its sentences with their figures, from the table that has them."""
    page = (folder / "report.html").read_text()
    data = json.loads(gzip.decompress(base64.b64decode(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))))
    table = next(section for section in data["sections"] if section["id"] == "figures-of-the-sentences-above")["blocks"][0]
    headers = [column["header"] for column in table["columns"]]
    findings = []
    for row in table["rows"]:
        cells = dict(zip(headers, row))
        if not findings or findings[-1]["text"] != cells["sentence"]:
            findings.append({"text": cells["sentence"], "figures": []})
        findings[-1]["figures"].append({
            "text": cells["as it says"], "quantity": cells["quantity"], "part": cells.get("part", ""),
            "points": [int(point) for point in cells["points of the result"].split(", ")],
            **{end: float(cells[end]) for end in ("value", "low", "high")}})
    return {"titles": [section["title"] for section in data["sections"]], "findings": findings}


class Figures:
    """The quantities of docs/study.md, from a result alone: value, lower and upper end."""

    def __init__(self, result: dict):
        self.points = result["points"]
        self.roofs = {ceiling["name"]: ceiling for ceiling in result["ceilings"]["ceilings"]}

    def of(self, figure: dict):
        points = [self.points[i] for i in figure["points"]]
        return getattr(self, figure["quantity"])(*points, *([figure["part"]] if figure["part"] else []))

    @staticmethod
    def quotient(over, under):
        return over[0] / under[0], over[1] / under[2], over[2] / under[1]

    @staticmethod
    def latency_ms(point):
        latency = point["end_to_end"]["latency"]
        return statistics.median(latency["samples_ms"]), latency["summary_ms"]["ci_low"], latency["summary_ms"]["ci_high"]

    def sequences_per_s(self, point):
        return tuple(1e3 * point["batch"] / self.latency_ms(point)[i] for i in (0, 2, 1))

    def throughput_ratio(self, first, second):
        more = second["batch"] / first["batch"]
        return tuple(more * value for value in self.quotient(self.latency_ms(first), self.latency_ms(second)))

    def latency_ratio(self, first, second):
        return self.quotient(self.latency_ms(first), self.latency_ms(second))

    @staticmethod
    def step_us(step):
        """Its kernels and the gaps between them where they were recorded, with the samples' ends in proportion."""
        samples = step["time_us"]
        ends = samples["median"], samples["ci_low"], samples["ci_high"]
        if not step["kernels"]:
            return ends
        us = sum(kernel["time_us"] for kernel in step["kernels"]) + sum(kernel["gap_us"] for kernel in step["kernels"][1:])
        return tuple(us * end / samples["median"] for end in ends)

    def summed(self, steps):
        times = [self.step_us(step) for step in steps]
        return tuple(sum(time[i] for time in times) for i in range(3))

    @staticmethod
    def group(step):
        return re.sub(r"(?<=\.)\d+(?=\.|$)", "*", step["layer"])

    @staticmethod
    def share(own, rest):
        return tuple(100 * own[i] / (own[i] + rest[j]) for i, j in ((0, 0), (1, 2), (2, 1)))

    def layer_share(self, point, layer):
        own = [step for step in point["steps"] if self.group(step) == layer]
        rest = [step for step in point["steps"] if self.group(step) != layer]
        return self.share(self.summed(own), self.summed(rest))

    @staticmethod
    def is_gpu(point):
        return point["backend"] == "cuda"

    def roof(self, kind, ceilings=CEILINGS):
        present = [self.roofs[name] for name in ceilings[kind] if name in self.roofs and self.roofs[name]["value"]["value"]]
        best = max(present, key=lambda ceiling: ceiling["value"]["value"])
        return best["value"]["value"], best["low"], best["high"]

    def roof_ratio(self, first, second):
        of = GPU_CEILINGS if self.is_gpu(first) else CEILINGS
        return self.quotient(self.roof(second["precision"], of), self.roof(first["precision"], of))

    @staticmethod
    def energy_ratio(first, second):
        before, after = (point["end_to_end"]["energy_per_sequence_j"]["value"] for point in (first, second))
        return (after / before,) * 3

    def recoverable_ms(self, point, layer):
        """The value alone: the ends also hold what is known of clocks. Of a GPU not even that: its demands are those of
        caches and units, too, at the clocks of three runs (tests/analysis/explain/roof_times_test.cpp)."""
        if self.is_gpu(point):
            return None, None, None
        above = 0
        for step in point["steps"]:
            if self.group(step) != layer:
                continue
            precision = step["precision"] if step["op"] in MATRIX_KINDS or step["precision"] == "fp64" else "fp32"
            cost, counters = step["cost"], step["counters"]
            moved = sum(cost["bytes_read"].values()) + sum(cost["bytes_written"].values())
            if "dram_read_bytes" in counters and "dram_write_bytes" in counters:
                moved = counters["dram_read_bytes"] + counters["dram_write_bytes"]
            demand = max(cost["flops"] / self.roof(precision)[0] * 1e-6, moved / self.roof("dram")[0] * 1e-3)
            above += max(0, self.step_us(step)[0] - demand)
        return above * 1e-3, None, None

    @staticmethod
    def parts(point):
        """Steps of a training step: forward, loss, backward, optimizer."""
        steps = point["steps"]
        backward = [i for i, step in enumerate(steps) if step["direction"] != "fwd"]
        loss = [i for i in backward if "forward" not in steps[i]]
        return ([s for i, s in enumerate(steps) if s["direction"] == "fwd" and i < backward[-1]], [steps[i] for i in loss],
                [steps[i] for i in backward if i not in loss], [s for i, s in enumerate(steps) if i > backward[-1]])

    def part_share(self, point, part):
        parts = dict(zip(("forward", "loss", "backward", "optimizer"), (self.summed(steps) for steps in self.parts(point))))
        own = parts.pop(part)
        return self.ends_of(point, self.share(own, tuple(sum(other[i] for other in parts.values()) for i in range(3))))

    def ends_of(self, point, figure):
        """A GPU's hold what recording adds to kernels, too."""
        return (figure[0], None, None) if self.is_gpu(point) else figure

    def backward_ratio(self, point, kind=None):
        forward, _, backward, _ = self.parts(point)
        if kind:
            forward = [step for step in forward if step["op"] == kind]
            backward = [step for step in backward if step["op"] == kind]
        return self.ends_of(point, self.quotient(self.summed(backward), self.summed(forward)))

    def backward_flop_ratio(self, point):
        forward, _, backward, _ = self.parts(point)
        return (sum(step["cost"]["flops"] for step in backward) / sum(step["cost"]["flops"] for step in forward),) * 3


class Study(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.arguments = ["study", "--config", str(config(self.folder)), "--quick", "--backend", "cpu", "--batches", "1,2,4",
                          "--precisions", "fp32,bf16,fp64", "--time-budget", "0.3"]

    def kbench(self, *arguments, expect=0):
        done = subprocess.run([KBENCH, *map(str, arguments)], cwd=self.folder, text=True, capture_output=True)
        self.assertEqual(done.returncode, expect, done.stderr[-2000:])
        return done

    def measured(self):
        """The folder of a study of which no point lacked its CPUs: kbench concludes nothing from those that did. Whoever
        only reads it shares it: to measure it takes half a minute."""
        folder = self.shared()
        for attempt in range(3):
            out = folder / f"out{attempt}"
            if not out.exists():
                self.kbench(*self.arguments, "--out", out)
            if not any("lacked its CPUs" in warning for warning in read(out)["warnings"]):
                return out
        self.skipTest("other work took the CPUs, three times")

    @classmethod
    @functools.cache
    def shared(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        return pathlib.Path(temporary.name)

    def test_every_figure_of_every_sentence_is_in_the_result(self):
        out = self.measured()
        study = drawn(out)
        checked = self.check(read(out), study)
        self.assertGreater(checked, 15)
        quantities = {figure["quantity"] for finding in study["findings"] for figure in finding["figures"]}
        self.assertLessEqual({"latency_ms", "layer_share", "recoverable_ms", "latency_ratio", "roof_ratio", "backward_ratio", "part_share"},
                             quantities)
        self.assertEqual(study["titles"][:4], ["Bottlenecks", "Batch", "Precision", "Forward against backward"])

    def test_so_is_every_figure_of_the_committed_studies(self):
        found = 0
        for result in sorted(ROOT.glob("results/*/study-*/result.json.gz")):
            out = self.folder / result.parent.parent.name / result.parent.name
            out.mkdir(parents=True)
            (out / result.name).write_bytes(result.read_bytes())
            self.kbench("report", out, "--out", out)
            self.assertGreater(self.check(read(out), drawn(out)), 15)
            found += 1
        self.assertGreater(found, 0)

    def check(self, result, study):
        """How many figures of the study's sentences were found again; fails where one was not."""
        figures = Figures(result)
        checked = 0
        for finding in study["findings"]:
            text = finding["text"]
            for figure in finding["figures"]:
                self.assertIn(figure["text"], text)
                text = text.replace(figure["text"], "", 1)
                value, low, high = figures.of(figure)
                label = f"{figure['quantity']} in: {finding['text']}"
                if value is None:
                    continue
                self.assertTrue(math.isclose(figure["value"], value, rel_tol=1e-4, abs_tol=1e-6), f"{label}: {figure['value']} and {value}")
                for told, found in ((figure["low"], low), (figure["high"], high)):
                    self.assertTrue(found is None or math.isclose(told, found, rel_tol=1e-4, abs_tol=1e-6), f"{label}: {told} and {found}")
                checked += 1
        return checked

    def test_a_figure_that_is_not_in_the_result_is_found(self):
        """The check above can fail: samples that are another run's."""
        out = self.measured()
        result, study = read(out), drawn(out)
        for point in result["points"]:
            if point["end_to_end"]:
                point["end_to_end"]["latency"]["samples_ms"] = [3 * ms for ms in point["end_to_end"]["latency"]["samples_ms"]]
        first = study["findings"][0]["figures"][0]
        self.assertEqual(first["quantity"], "latency_ms")
        self.assertFalse(math.isclose(first["value"], Figures(result).of(first)[0], rel_tol=1e-2))

    def test_shards_join_and_a_study_goes_on(self):
        for shard in (1, 2):
            self.kbench(*self.arguments, "--ceilings", "none", "--shard", f"{shard}/2", "--out", self.folder / "parts" / str(shard))
        self.kbench("merge", "--out", self.folder / "joined", "--compress", self.folder / "parts" / "1", self.folder / "parts" / "2")
        joined = read(self.folder / "joined")
        planned = joined["study"]["points"]
        self.assertEqual(len(joined["points"]), len(planned))
        self.assertEqual([point["left_out"] for point in planned], [""] * len(planned))
        before = (self.folder / "joined/report.md").read_text()
        self.assertIn("## Precision", before)
        self.kbench("study", "--redraw", self.folder / "joined")
        self.assertEqual((self.folder / "joined/report.md").read_text(), before)
        self.kbench("study", "--redraw", self.folder / "joined", "--out", self.folder / "elsewhere")
        self.assertEqual((self.folder / "elsewhere/report.md").read_text(), before)

        out = self.folder / "parts" / "1"
        lost = sorted((out / "points").glob("*.json"))[0]
        lost.unlink()
        (out / "result.json.gz").unlink()
        again = self.kbench(*self.arguments, "--ceilings", "none", "--shard", "1/2", "--out", out, "--resume")
        self.assertIn("points are finished", again.stderr)
        self.assertTrue(lost.exists())

    def test_a_budget_leaves_out_and_says_so(self):
        out = self.folder / "out"
        arguments = [argument if argument != "1,2,4" else "1,200000" for argument in self.arguments]
        self.kbench(*arguments, "--ceilings", "none", "--budget", "20s", "--out", out)
        reasons = {point["batch"]: point["left_out"] for point in read(out)["study"]["points"] if "batch" in point["tasks"]}
        self.assertIn("would have taken", reasons[200000])
        self.assertIn("left out: it would have taken", (out / "report.md").read_text())

    def test_what_is_no_study_is_refused(self):
        self.kbench("run", "--config", config(self.folder), "--quick", "--backend", "cpu", "--ceilings", "none", "--out", self.folder / "run")
        refused = self.kbench("study", "--redraw", self.folder / "run", expect=2)
        self.assertIn("is no study", refused.stderr)


if __name__ == "__main__":
    KBENCH = str(pathlib.Path(sys.argv.pop(1)).resolve())
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    unittest.main()

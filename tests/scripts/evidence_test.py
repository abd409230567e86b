"""Results under results/ are evidence of what a machine can do, and one from a disturbed CPU is not.

On a shared host a CPU may have half of its cores' time without anything that tells so. What tells is another result of
the same machine: if GEMMs of the same shape and precision ran at less than half the speed of the fastest committed one,
the file is refused. A page that quotes one all the same stands in DISTURBED, with the reason. Needs nothing.
"""

import gzip
import json
import pathlib
import re
import statistics
import unittest
from collections.abc import Iterable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEAST = 0.5

# Files that are quoted as disturbed, and why they are not gone.
DISTURBED = {
    "results/xeon-2026-11-28/gpt2-large-fp32.json.gz": "the only forward with roofs read between its samples; both pages "
    "that quote it say that the host was busy",
    "results/h200-2026-11-22/micro/cpu/result.json.gz": "op by op beside PyTorch on one host, and the page says that others "
    "probably used it",
}

Key = tuple[Any, ...]  # a machine, who computes on it, and what


def results() -> Iterable[tuple[str, dict[str, Any]]]:
    for path in sorted((ROOT / "results").rglob("*.json*")):
        data = path.read_bytes()
        document = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data) if ".jsonl" not in path.name else None
        if isinstance(document, dict) and "points" in document:
            yield str(path.relative_to(ROOT)), document


def gemm_speeds(result: dict[str, Any]) -> dict[Key, float]:
    """FLOP/s of the fastest GEMM of a kind: a step is slower behind one that leaves it nothing in the caches."""
    host = result["environment"]["host"]
    speeds: dict[Key, float] = {}
    for point in result["points"]:
        for step in point["steps"] if point["backend"] == "cpu" else []:
            if step["op"] == "gemm" and step["matrix_flops"] > 0:
                product = re.match(r"\w+", step["shape"])[0]
                machine = (host["cpu"], host["physical_cores"], host["threads"], *host["isa"])
                key = (*machine, step["provider"], step["precision"], step["direction"], product)
                speeds[key] = max(speeds.get(key, 0.0), step["matrix_flops"] / step["time_us"]["median"] * 1e6)
    return speeds


def shares(files: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, float]:
    """By name, the median of its GEMMs' speeds over the fastest of any file; of those that another file has, too."""
    speeds = {name: gemm_speeds(result) for name, result in files}
    by_key: dict[Key, list[float]] = {}
    for of_file in speeds.values():
        for key, speed in of_file.items():
            by_key.setdefault(key, []).append(speed)
    compared = {
        name: [speed / max(by_key[key]) for key, speed in of_file.items() if len(by_key[key]) > 1]
        for name, of_file in speeds.items()
    }
    return {name: statistics.median(of_file) for name, of_file in compared.items() if of_file}


def disturbed(files: Iterable[tuple[str, dict[str, Any]]]) -> list[str]:
    return [name for name, share in shares(files).items() if share < LEAST]


def planted(us: float, *shapes: str, **host: Any) -> dict[str, Any]:
    gemm = {"op": "gemm", "provider": "onednn", "precision": "fp32", "direction": "fwd", "matrix_flops": 1e9}
    steps = [gemm | {"shape": shape, "time_us": {"median": us}} for shape in ("m8n8k8+bias", "m8n8k16", *shapes)]
    machine = {"cpu": "a CPU", "physical_cores": 16, "threads": 16, "isa": ["avx2"]} | host
    return {"environment": {"host": machine}, "points": [{"backend": "cpu", "steps": steps}]}


class Evidence(unittest.TestCase):
    def test_no_committed_result_is_half_as_fast_as_another_of_its_machine(self) -> None:
        files = list(results())
        self.assertGreater(len(shares(files)), 2, "too few to compare")
        self.assertEqual(sorted(disturbed(files)), sorted(DISTURBED))

    def test_half_the_speed_is_refused_and_three_quarters_are_not(self) -> None:
        files = {"quiet": planted(100), "noisy": planted(133), "disturbed": planted(210)}
        self.assertEqual(disturbed(files.items()), ["disturbed"])

    def test_shapes_of_its_own_do_not_excuse_a_file(self) -> None:
        files = {"quiet": planted(100), "disturbed": planted(210, "m1n1k1", "m2n2k2", "m3n3k3")}
        self.assertEqual(disturbed(files.items()), ["disturbed"])

    def test_another_machine_says_nothing(self) -> None:
        for host in ({"physical_cores": 8}, {"cpu": "another CPU"}, {"threads": 4}, {"isa": []}):
            self.assertEqual(disturbed({"quiet": planted(100), "other": planted(210, **host)}.items()), [])


if __name__ == "__main__":
    unittest.main()

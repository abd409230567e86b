"""PyTorch and kbench as programs that a script starts one after the other, and the figures they give."""

import json
import os
import pathlib
import re
import sys
from typing import Any

from verification import process

from verification.process import BAD_USAGE, Stop

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]


def parse_cases(text: str, precisions: list[str]) -> list[tuple[str, int]]:
    """Precision and batch of each case in --cases."""
    cases = []
    for case in text.split(","):
        match = re.fullmatch(r"(\w+):([1-9]\d*)", case)
        if not match or match[1] not in precisions:
            example, known = f"{precisions[0]}:4", ", ".join(precisions)
            raise Stop(BAD_USAGE, f"--cases '{case}': must be PRECISION:BATCH, such as {example}, of {known}")
        cases.append((match[1], int(match[2])))
    return cases


def physical_cores() -> int:
    """Counts the cores of the CPUs that this process may use."""
    cores = set()
    for cpu in os.sched_getaffinity(0):
        topology = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        try:
            cores.add(tuple((topology / name).read_text().strip() for name in ("physical_package_id", "core_id")))
        except OSError:
            cores.add((str(cpu),))
    return len(cores)


def run_torch(program: str, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
    """A run of a program of this folder that torch_program.py begins: its machine, its figures, when and how.

    `stopped` says why figures may be missing: "" where none is. A program that fails before it has told of its machine
    ends the script. On a CPU a thread is bound to each physical core.
    """
    request = {"threads": physical_cores()} | request
    # A torch.py or json.py that lies in the current directory is none of it.
    environment = {"PYTHONPATH": str(SCRIPTS), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    if request["device"] == "cpu":
        environment |= {"OMP_PLACES": "cores", "OMP_PROC_BIND": "close"}
    started_at = process.utc_now()
    done = process.run([sys.executable, "-m", f"verification.{program}", json.dumps(request)], limit_s, environment)
    # The last line is cut where the program was stopped.
    lines = [line for line in done.stdout.splitlines() if line.startswith("{") and line.endswith("}")]
    if not lines:
        done.check("PyTorch: ")
    machine, *figures = map(json.loads, lines)
    return {
        "started_at": started_at,
        "seconds": round(done.seconds, 2),
        "request": request,
        "machine": machine,
        "figures": figures,
        "stopped": "" if done.exit_code == process.DONE else done.last_line,
    }


def kbench_figures(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Each point's latency end to end: a CUDA graph, or the CPU's steps one after the other."""
    figures = []
    for point in result["points"]:
        figure = {key: point[key] for key in ("precision", "batch", "status", "reason")}
        if point["end_to_end"]:
            summary = point["end_to_end"]["latency"]["summary_ms"]
            figure |= {key + "_ms": summary[key] for key in ("median", "ci_low", "ci_high")}
            figure |= {
                "converged": point["end_to_end"]["converged"],
                "sm_clock_mhz": point["conditions"]["sm_clock_mhz"],
            }
        figures.append(figure)
    return figures


def _matching(runs: list[dict[str, Any]], wanted: dict[str, Any]) -> list[dict[str, Any]]:
    figures = [figure for run in runs for figure in run["figures"]]
    return [figure for figure in figures if all(figure.get(key) == value for key, value in wanted.items())]


def medians(runs: list[dict[str, Any]], **wanted: Any) -> list[float]:
    """In milliseconds, of the runs' figures that have these values."""
    return [figure["median_ms"] for figure in _matching(runs, wanted) if figure.get("median_ms")]


def reason(runs: list[dict[str, Any]], **wanted: Any) -> str:
    """Why there is no median."""
    for figure in _matching(runs, wanted):
        return figure.get("error") or figure.get("reason") or "no samples"
    return next((run["stopped"] for run in runs if run.get("stopped")), "it was not asked to")

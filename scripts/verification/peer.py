"""What scripts/peer's workloads have in common: kbench and PyTorch as programs that are started one after the other, the
figures they give, and a page of them."""

import argparse
import importlib.util
import json
import os
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

from verification import markdown, process
from verification.process import BAD_USAGE, DONE, FAILED, MISSING, Stop

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]
PROGRAM_LIMIT_S = 3600
Column = tuple[str, Callable[[dict[str, Any]], str]]  # its title, and its cell in a row


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
        "stopped": "" if done.exit_code == DONE else done.last_line,
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


def row_of(case: dict[str, Any], sides: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]]) -> dict[str, Any]:
    """The better median of each side, or why it has none; how far a side's lie apart at most; kbench's over the best.

    A side is its runs, and what its figures of this case have besides. One without runs has no reason either.
    """
    row: dict[str, Any] = case | {"drift": 0.0, "missing": {}}
    for name, (runs, more) in sides.items():
        figures = [figure for run in runs for figure in run["figures"] if (case | more).items() <= figure.items()]
        medians = [figure["median_ms"] for figure in figures if figure.get("median_ms")]
        row[name + "_ms"] = min(medians, default=None)
        if medians:
            row["drift"] = max(row["drift"], max(medians) / min(medians) - 1)
        elif figures:
            row["missing"][name] = figures[0].get("error") or figures[0].get("reason") or "no samples"
        elif runs:
            row["missing"][name] = next((run["stopped"] for run in runs if run.get("stopped")), "it was not asked to")
    best = min((row[name + "_ms"] for name in sides if name != "kbench" and row[name + "_ms"]), default=None)
    row["kbench_over_best_torch"] = row["kbench_ms"] / best if best and row["kbench_ms"] else None
    return row


def number(value: float | None, digits: int, otherwise: str = "–") -> str:
    return f"{value:.{digits}f}" if value else otherwise


def texts(*keys: str) -> list[Column]:
    return [(key, lambda row, key=key: str(row[key])) for key in keys]


def times(names: dict[str, str]) -> list[Column]:
    """Milliseconds of row_of's sides, by their titles."""
    return [(title, lambda row, key=name + "_ms": number(row[key], 2, "did not run")) for name, title in names.items()]


RATIO: Column = ("kbench / best torch", lambda row: number(row["kbench_over_best_torch"], 3))
DRIFT: Column = ("drift", lambda row: f"{row['drift']:.1%}")


def gpt2_config(model: str) -> dict[str, Any]:
    try:
        from verification import gpt2  # only now, as it needs numpy
    except ModuleNotFoundError as error:
        raise Stop(MISSING, f"the Python package {error.name} is missing: pip install {error.name}") from error

    process.parameter_list("--model", model, [name for name in gpt2.CONFIGS if name != "gpt2-tiny"])
    return gpt2.CONFIGS[model]


class Workload:
    """What is timed in kbench and in a peer. A subclass also has these, which take the document that is written:

    settings()  what it holds before anything has run; the only one that takes nothing
    run         starts both sides, and yields wherever the document is worth writing
    rows        by its runs; afterwards it has them, too
    title       of the page
    about       the paragraph above the table
    columns     of the table
    """

    stem = ""  # what its files are called
    schema = ""
    other = "PyTorch"  # who takes turns with kbench
    libraries: tuple[str, ...] = ("torch",)  # none where PyTorch is not the peer
    rounds = 2  # where it is not told
    counts: tuple[str, ...] = ("rounds",)  # options that are 1 or more
    cases: dict[str, str] = {}  # by backend, where it is not told; precisions likewise
    precisions: dict[str, list[str]] = {}
    left: int | None = None  # columns that hold no numbers; None: all
    names: dict[str, str] = {}  # titles of row_of's sides

    def __init__(self, asked: argparse.Namespace):
        self.asked = asked

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Those that several workloads have."""
        add, default = parser.add_argument, "[%(default)s]"
        if cls.cases:
            add("--cases", metavar="P:B,...", help="precision:batch [{cuda}; on a CPU {cpu}]".format(**cls.cases))
        add("--rounds", type=int, default=cls.rounds, help=f"of {cls.other} and kbench in turn {default}")
        if cls.libraries:
            add("--backend", choices=["cuda", "cpu"], default="cuda", help=default)
            add("--seconds", type=float, default=2, help=f"of samples for each figure of either side {default}")
            add("--min-runs", type=int, default=10, help=f"PyTorch's samples at the least {default}")
            add("--limit", type=float, default=60, help=f"seconds for each PyTorch figure at most {default}")
        add("--out", metavar="DIR", required=True)
        add("kbench_arguments", nargs="*", metavar="-- ARGUMENT", help="more for kbench")

    def check(self) -> None:
        asked = self.asked
        if self.cases:
            asked.cases = parse_cases(asked.cases or self.cases[asked.backend], self.precisions[asked.backend])
        process.at_least_one(asked, *self.counts)
        asked.out = pathlib.Path(asked.out)
        if (asked.out / f"{self.stem}.json").exists():
            raise Stop(BAD_USAGE, f"--out {asked.out}: holds a comparison already; choose another directory")
        asked.kbench = process.find_kbench(asked.kbench)
        for package in self.libraries:
            if importlib.util.find_spec(package) is None:
                install = "pip install " + " ".join(self.libraries)
                raise Stop(MISSING, f"the Python package {package} is missing: {install}")

    def missing(self, document: dict[str, Any]) -> list[str]:
        """What did not run, and why."""
        return [
            f"- {self.names[side]}, {row['precision']} x {row['batch']}{', ' + row['what'] if 'what' in row else ''}: {why}"
            for row in document["rows"]
            for side, why in row.get("missing", {}).items()
        ]

    def failed(self, document: dict[str, Any]) -> bool:
        return False

    def run_torch(self, program: str, limit_s: float = PROGRAM_LIMIT_S, **request: Any) -> dict[str, Any]:
        asked = self.asked
        request |= {"device": asked.backend, "seconds": asked.seconds, "min_runs": asked.min_runs, "limit_s": asked.limit}
        return run_torch(program, request, limit_s)

    def run_kbench(
        self, folder: str, command: list[str], verify: bool, name: str = "kbench", limit_s: float = PROGRAM_LIMIT_S
    ) -> tuple[dict[str, Any], process.Finished]:
        command = [self.asked.kbench, *command, "--out", str(self.asked.out / folder), *self.asked.kbench_arguments]
        if not verify and "--no-verify" not in command:
            command.append("--no-verify")
        started_at = process.utc_now()
        done = process.run(command, limit_s)
        done.check(f"{name}: ")
        return {"started_at": started_at, "command": command, "seconds": round(done.seconds, 2)}, done

    def run_points(self, folder: str, command: list[str], verify: bool = True, **more: Any) -> dict[str, Any]:
        """A `kbench run` with its environment and figures."""
        run, _ = self.run_kbench(folder, ["run", *command, "--backend", self.asked.backend], verify, **more)
        result = process.read_result(self.asked.out / folder)
        return run | {"environment": result["environment"], "figures": kbench_figures(result)}

    def case_options(self) -> list[str]:
        precisions, batches = zip(*self.asked.cases, strict=True)
        return ["--precision", ",".join(precisions), "--batch", ",".join(map(str, batches)), "--zip", "precision,batch"]

    def programs(self, document: dict[str, Any], environment: dict[str, Any], machine: dict[str, Any]) -> str:
        """Versions, threads of a CPU, and when."""
        ours = f"kbench {environment['kbench_version']} ({environment['git_revision']})"
        theirs = [f"{library} {machine['versions'][library]}" for library in self.libraries]
        threads = "" if environment["gpu"] else f", {environment['host']['threads']} and {machine['threads']} threads"
        return f"{', '.join([ours, *theirs])}{threads}; {document['started_at']}."

    def about_rounds(self, document: dict[str, Any], side: str, what: str) -> str:
        """An about() of what runs in rounds: PyTorch's runs are document[side], `what` says what rows or columns are."""
        environment, machine = document["kbench"][-1]["environment"], document[side][0]["machine"]
        rounds = len(document["kbench"])
        compiled = sum(any("median_ms" in f for f in one["figures"]) for one in document.get("compile", []))
        fewer = f" torch.compile ran {compiled} of them." if 0 < compiled < rounds else ""
        return (
            f"{self.programs(document, environment, machine)} Medians in milliseconds, of {rounds} rounds in turn the "
            f"better; drift is how far a side's lie apart at most.{fewer} {what}"
        )

    def page(self, document: dict[str, Any]) -> str:
        titles, cells = zip(*self.columns(document), strict=True)
        rows = [[cell(row) for cell in cells] for row in document["rows"]]
        missing = self.missing(document)
        notes = ["", "What did not run:", "", *missing] if missing else []
        head = [f"# {self.title(document)}", "", self.about(document), ""]
        return "\n".join(head + markdown.table(list(titles), rows, left=self.left) + notes) + "\n"

    def compare(self) -> int:
        """Whoever stops it keeps what is written."""
        out, table = self.asked.out, ""
        out.mkdir(parents=True, exist_ok=True)
        head = {"schema": self.schema, "command": process.command_line(), "started_at": process.utc_now()}
        document: dict[str, Any] = head | self.settings()
        try:
            for _ in self.run(document):
                document["rows"] = self.rows(document)
                process.write_json(out / f"{self.stem}.json", document)
                if document["kbench"]:
                    table = self.page(document)
                    (out / f"{self.stem}.md").write_text(table, encoding="utf-8")
        except KeyboardInterrupt:
            print(table, end="")
            kept = f"the rounds before are in {out}" if "rows" in document else "no round was done"
            raise Stop(FAILED, f"interrupted; {kept}") from None
        print(table, end="")
        # What this machine's kbench cannot do, such as bf16 on some CPUs, is no failure; its failures ended it above.
        return FAILED if self.failed(document) else DONE


def device(environment: dict[str, Any]) -> str:
    return environment["gpu"]["name"] if environment["gpu"] else environment["host"]["cpu"]

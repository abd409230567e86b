"""The shards of a sweep, run the two ways that docs/sweeps.md shows, give the points of the serial sweep: through GNU
parallel, and through the Slurm array script with its array's index set by hand.

sweep_scale_out_test.py KBENCH parallel|slurm; skips (77) without GNU parallel.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 301, "n_positions": 32}
# 8 points; no CPU has tf32, so half of them are skipped.
SWEEP = ["run", "--config", "a model.json", "--backend", "cpu", "--seq", "8,16", "--batch", "2,1", "--precision", "fp32,tf32",
         "--quick", "--time-budget", "0.05", "--ceilings", "none", "--counters", "none"]
SKIPPED = 4
NOTHING_MEASURED = 3


def key(point: dict) -> tuple:
    """What does not depend on the moment of measuring."""
    steps = [(step["layer"], step["op"], step["provider"], step["implementation"], step["shape"]) for step in point["steps"]]
    names = ("model", "backend", "attention", "seq", "batch", "repeat", "precision", "seed", "status", "reason", "parameters")
    return (*(point[name] for name in names), json.dumps(point["cost"], sort_keys=True), *steps)


def points_of(folder: pathlib.Path) -> list[tuple]:
    return sorted(key(point) for point in json.loads((folder / "result.json").read_text())["points"])


def documented() -> tuple[str, str]:
    """The line for GNU parallel and the Slurm script, as docs/sweeps.md has them, but for the sweep's own options."""
    text = (ROOT / "docs/sweeps.md").read_text()
    lines = re.findall(r"^    (parallel .*)$", text, re.MULTILINE)
    scripts = re.findall(r"^```bash\n(#!/bin/bash\n#SBATCH .*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(lines) == len(scripts) == 1, "docs/sweeps.md has one line for GNU parallel and one script for Slurm"
    own = r"kbench run .*?(?=(\\\s+)?--shard)"
    for part in (lines[0], scripts[0]):
        assert len(re.findall(own, part, re.DOTALL)) == 1, part
    return tuple(re.sub(own, shlex.join(["kbench", *SWEEP]) + " ", part, flags=re.DOTALL) for part in (lines[0], scripts[0]))


class Scratch:
    def __init__(self, kbench: str, folder: pathlib.Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "bin/kbench").symlink_to(kbench)
        (folder / "a model.json").write_text(json.dumps(CONFIG))
        self.environment = dict(os.environ, KBENCH_CACHE_DIR=str(folder / "cache"),
                                PATH=f"{folder / 'bin'}:{os.environ['PATH']}")

    def shell(self, command: str, exit_code: int = 0, **environment: str) -> str:
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment | environment, text=True,
                              capture_output=True, timeout=200)
        assert done.returncode == exit_code, f"{command}: exit code {done.returncode}, not {exit_code}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def serial(self) -> list[str]:
        """Runs the whole sweep at once; the names of its points in their order."""
        sweep = shlex.join(["kbench", *SWEEP])
        names = self.shell(f"{sweep} --dry-run").splitlines()
        assert not (self.folder / "kbench-runs").exists(), "--dry-run measures nothing"
        assert len(set(names)) == 8, names
        self.shell(f"{sweep} --out serial")
        return names

    def compare(self) -> None:
        self.shell("kbench merge --out sweep sweep.d")
        apart, serial = points_of(self.folder / "sweep"), points_of(self.folder / "serial")
        assert len(serial) == len(set(serial)) == 8, serial
        assert sum(point[8] == "skipped" for point in serial) == SKIPPED, serial
        assert apart == serial, f"{apart}\nnot\n{serial}"


def through_parallel(scratch: Scratch) -> None:
    scratch.serial()
    line, _ = documented()
    scratch.shell(line, exit_code=SKIPPED)  # parallel counts commands that fail: a shard of which nothing can be measured
    log = (scratch.folder / "sweep.log").read_text().splitlines()
    exit_codes = sorted(row.split("\t")[6] for row in log[1:])
    assert exit_codes == ["0"] * (8 - SKIPPED) + [str(NOTHING_MEASURED)] * SKIPPED, exit_codes
    scratch.compare()


def through_slurm(scratch: Scratch) -> None:
    names = scratch.serial()
    _, script = documented()
    (scratch.folder / "sweep.sbatch").write_text(script)
    scratch.shell("bash -n sweep.sbatch")

    def task(index: int, exit_code: int) -> None:
        scratch.shell("bash sweep.sbatch", exit_code, SLURM_ARRAY_TASK_ID=str(index), SLURM_ARRAY_TASK_COUNT="8")

    for index, name in enumerate(names, 1):
        task(index, NOTHING_MEASURED if "tf32" in name else 0)
        done = [path.stem for path in (scratch.folder / f"sweep.d/{index}/points").glob("*.json")]
        assert done == [name], f"task {index} ran {done}, not {name}"
    first = scratch.folder / f"sweep.d/1/points/{names[0]}.json"
    before = first.read_bytes()
    task(1, 0)
    assert first.read_bytes() == before, "a task that is requeued measures a finished point again"
    task(9, 2)
    scratch.shell("bash sweep.sbatch", exit_code=1)
    scratch.compare()


def main() -> None:
    kbench, way = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]
    if way == "parallel" and shutil.which("parallel") is None:
        print("skipped: no GNU parallel (scripts/setup --tests installs it)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        {"parallel": through_parallel, "slurm": through_slurm}[way](Scratch(kbench, pathlib.Path(folder)))
    print(f"shards through {way} give the points of the serial sweep")


if __name__ == "__main__":
    main()

"""A CPU sweep that is killed (SIGKILL) at random moments and resumed each time: no finished point is lost or measured
again, none occurs twice, and in the end the points are those of a sweep that nothing disturbed.

sweep_kill_test.py KBENCH [ROUNDS [SEED]]: a round is one kill. A sweep that ends before its next kill is followed by a
new one, until there were as many rounds. Needs nothing but Python.
"""

import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

CONFIG = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 301, "n_positions": 32}
# 16 points, one of them in a precision that no CPU has: skipped points are finished, too.
SWEEP = ["--backend", "cpu", "--seq", "8,16", "--batch", "1,2", "--precision", "fp32,tf32", "--repeat", "2",
         "--quick", "--time-budget", "0.05", "--ceilings", "none", "--counters", "none"]


class Failure(Exception):
    pass


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Failure(what)


def key(point: dict) -> tuple:
    return tuple(point[name] for name in ("seq", "batch", "batch_is_max", "precision", "repeat", "status"))


class Trial:
    """Sweeps of one configuration in directories of their own."""

    def __init__(self, kbench: str, scratch: pathlib.Path) -> None:
        self.kbench, self.scratch = kbench, scratch
        self.config = scratch / "small.json"
        self.config.write_text(json.dumps(CONFIG))
        self.environment = dict(os.environ, KBENCH_CACHE_DIR=str(scratch / "cache"))

    def start(self, out: pathlib.Path, *more: str) -> subprocess.Popen:
        command = [self.kbench, "run", "--config", self.config, *SWEEP, "--out", out, *more]
        # Python's own standard output stays free of the sweep's; stderr goes to a file, as a pipe could fill.
        with open(self.scratch / "stderr", "w") as errors:
            return subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=errors)

    def finish(self, process: subprocess.Popen) -> None:
        code = process.wait(timeout=300)
        require(code == 0, f"exit code {code}: {(self.scratch / 'stderr').read_text()}")

    def undisturbed(self) -> tuple[list[tuple], float]:
        """The points of a sweep that runs to its end, and how long it takes."""
        out = self.scratch / "undisturbed"
        begun = time.monotonic()
        self.finish(self.start(out))
        return points_of(out), time.monotonic() - begun


def points_of(out: pathlib.Path) -> list[tuple]:
    return [key(point) for point in json.loads((out / "result.json").read_text())["points"]]


def finished(out: pathlib.Path) -> dict[str, str]:
    """Finished points by file, as what they hold: each complete, whatever was killed."""
    found = {}
    for file in sorted((out / "points").glob("[!.]*.json")):
        text = file.read_bytes()
        result = json.loads(text)
        require(len(result["points"]) == 1, f"{file.name} holds {len(result['points'])} points")
        found[file.name] = hashlib.sha256(text).hexdigest()
    return found


def wait_for_file(process: subprocess.Popen, folder: pathlib.Path, chance: random.Random) -> None:
    """Until about the moment at which a file is begun in `folder`: the one at which a kill could do harm."""
    names = set(os.listdir(folder)) if folder.is_dir() else set()
    while process.poll() is None:
        if folder.is_dir() and set(os.listdir(folder)) != names:
            time.sleep(chance.uniform(0, 0.002))
            return


def check_kept(before: dict[str, str], after: dict[str, str]) -> None:
    for name, content in before.items():
        require(name in after, f"the finished point {name} was lost")
        require(after[name] == content, f"the finished point {name} was measured again")


def run(trial: Trial, rounds: int, seed: int) -> str:
    expected, seconds = trial.undisturbed()
    require(len(set(expected)) == len(expected) == 16, f"not 16 points: {expected}")
    require({"done", "skipped"} == {point[-1] for point in expected}, f"done and skipped points: {expected}")
    chance = random.Random(seed)
    kills = sweeps = temporaries = with_points = 0
    while kills < rounds:
        out = trial.scratch / f"killed-{sweeps}"
        sweeps += 1
        before: dict[str, str] = {}
        of_this = 0
        while True:
            process = trial.start(out, "--resume")
            try:
                # From before the first file to the middle of the sweep, so that several kills meet each; and every third
                # while a file is written.
                if kills < rounds and kills % 3 == 2:
                    wait_for_file(process, out / "points", chance)
                    process.wait(timeout=0)
                else:
                    process.wait(timeout=chance.uniform(0, 0.5 * seconds) if kills < rounds else 300)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
                of_this += 1
                after = finished(out)
                check_kept(before, after)
                with_points += len(after) > 0
                temporaries += len(list(out.glob("points/.*.tmp")))
                before = after
                continue
            trial.finish(process)
            break
        check_kept(before, finished(out))
        points = points_of(out)
        require(points == expected, f"after {of_this} kills the sweep holds other points:\n{points}\nnot\n{expected}")
        require(sorted(finished(out)) == sorted(finished(trial.scratch / "undisturbed")), "other files of points")
        shutil.rmtree(out)
    require(with_points > 0, "every kill came before the first finished point: nothing was tried")
    return (f"{kills} kills over {sweeps} sweeps of {len(expected)} points (seed {seed}): no finished point lost or measured again, "
            f"points equal those of the undisturbed sweep; {with_points} kills found finished points, {temporaries} temporary files were left behind")


def main() -> int:
    kbench = str(pathlib.Path(sys.argv[1]).resolve())
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with tempfile.TemporaryDirectory() as scratch:
        try:
            print(run(Trial(kbench, pathlib.Path(scratch)), rounds, seed))
        except Failure as failure:
            print(f"failed: {failure}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

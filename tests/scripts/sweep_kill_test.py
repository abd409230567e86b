"""A sweep that is killed (SIGKILL) and resumed each time: no finished point is lost or measured again, none occurs
twice, and in the end the points are those of a sweep that nothing disturbed. Whatever it was at, what lies on the disk
is whole: points, result.json, caches; and the next start removes what was half-written.

sweep_kill_test.py KBENCH [ROUNDS [SEED]] [--backend cuda]: a round is one kill. Kills come at any time, while a point's
file is written, in named parts of a point (algorithms are chosen in "plan") and while reports are written, by turns. A
sweep that ends before its next kill is followed by a new one, until there were as many rounds. Results are held against
the schema where Python has jsonschema.
"""

import argparse
import hashlib
import json
import os
import pathlib
import pty
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "analysis/result/result.schema.json"
CONFIG = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 301, "n_positions": 32}
# 16 points; on a CPU half of them in a precision that none has: skipped points are finished, too.
SWEEP = ["--seq", "8,16", "--batch", "1,2", "--precision", "fp32,tf32", "--repeat", "2", "--quick", "--time-budget", "0.05",
         "--ceilings", "none", "--counters", "none"]


class Failure(Exception):
    pass


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Failure(what)


def key(point: dict) -> tuple:
    return tuple(point[name] for name in ("seq", "batch", "batch_is_max", "precision", "repeat", "status"))


class Sweep:
    """One process, which shows its progress, as it believes that its stderr is a terminal."""

    def __init__(self, command: list, environment: dict[str, str], out: pathlib.Path) -> None:
        self.out, self.text = out, ""
        ours, its = pty.openpty()
        # Python's own standard output stays free of the sweep's.
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=its)
        os.close(its)
        self.reader = threading.Thread(target=self.read, args=(ours,))
        self.reader.start()

    def read(self, terminal: int) -> None:
        try:
            while text := os.read(terminal, 4096):
                self.text += text.decode(errors="replace")
        except OSError:  # the sweep has ended
            pass
        os.close(terminal)

    def ended(self) -> bool:
        return self.process.poll() is not None

    def wait_for(self, holds: Callable[[], bool]) -> None:
        while not self.ended() and not holds():
            time.sleep(0.0005)

    def kill(self) -> bool:
        """False where it had ended by itself."""
        if self.ended():
            return False
        self.process.kill()
        self.join()
        return True

    def join(self) -> int:
        code = self.process.wait(timeout=600)
        self.reader.join()
        return code


class Trial:
    """Sweeps of one configuration in directories of their own."""

    def __init__(self, kbench: str, backend: str, scratch: pathlib.Path) -> None:
        self.kbench, self.backend, self.scratch = kbench, backend, scratch
        self.config = scratch / "small.json"
        self.config.write_text(json.dumps(CONFIG))

    def cache(self, out: pathlib.Path) -> pathlib.Path:
        """Each sweep has its own: it chooses its algorithms anew."""
        return self.scratch / f"cache-{out.name}"

    def start(self, out: pathlib.Path, *more: str) -> Sweep:
        command = [self.kbench, "run", "--config", self.config, "--backend", self.backend, *SWEEP, "--out", out, *more]
        return Sweep(command, dict(os.environ, KBENCH_CACHE_DIR=str(self.cache(out))), out)

    def finish(self, sweep: Sweep) -> None:
        code = sweep.join()
        require(code == 0, f"exit code {code}: {sweep.text}")
        require(not temporaries(sweep.out, self.cache(sweep.out)), f"half-written files stayed: {temporaries(sweep.out)}")
        check_result(sweep.out)

    def undisturbed(self) -> tuple[list[tuple], float]:
        """The points of a sweep that runs to its end, and how long it takes."""
        out = self.scratch / "undisturbed"
        begun = time.monotonic()
        self.finish(self.start(out))
        return points_of(out), time.monotonic() - begun


def temporaries(*folders: pathlib.Path) -> list[pathlib.Path]:
    return [path for folder in folders for path in folder.rglob("*.tmp")]


def check_result(out: pathlib.Path) -> None:
    """result.json, where there is one, is whole, and as the schema says."""
    if not (out / "result.json").exists():
        return
    result = json.loads((out / "result.json").read_text())
    try:
        import jsonschema
    except ImportError:
        return
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).iter_errors(result))
    require(error is None, f"result.json: {error and error.message}")


def points_of(out: pathlib.Path) -> list[tuple]:
    return [key(point) for point in json.loads((out / "result.json").read_text())["points"]]


def finished(out: pathlib.Path) -> dict[str, str]:
    """Finished points by file, as what they hold: each complete, whatever was killed."""
    found = {}
    for file in sorted((out / "points").glob("[!.]*.json")):
        text = file.read_bytes()
        try:
            result = json.loads(text)
        except ValueError as error:
            raise Failure(f"{file.name} is not whole: {error}") from error
        require(len(result["points"]) == 1, f"{file.name} holds {len(result['points'])} points")
        found[file.name] = hashlib.sha256(text).hexdigest()
    return found


# Until about which moment a sweep goes on before it is killed.


def any_time(sweep: Sweep, chance: random.Random, seconds: float) -> None:
    """From before the first file to the middle of the sweep, so that several kills meet each."""
    end = time.monotonic() + chance.uniform(0, 0.5 * seconds)
    sweep.wait_for(lambda: time.monotonic() > end)


def file_of_a_point(sweep: Sweep, chance: random.Random, _: float) -> None:
    """While one is begun: when a kill could do harm."""
    def names() -> set[str]:
        folder = sweep.out / "points"
        return set(os.listdir(folder)) if folder.is_dir() else set()
    before = names()
    sweep.wait_for(lambda: names() != before)
    time.sleep(chance.uniform(0, 0.002))


def part(name: str) -> Callable[[Sweep, random.Random, float], None]:
    def moment(sweep: Sweep, chance: random.Random, _: float) -> None:
        times = chance.randint(1, 4)
        sweep.wait_for(lambda: len(re.findall(rf": {name}\b", sweep.text)) >= times)
        time.sleep(chance.uniform(0, 0.01))
    moment.__name__ = name
    return moment


def reports(sweep: Sweep, chance: random.Random, _: float) -> None:
    """result.json is written before them."""
    old = (sweep.out / "result.json").stat().st_ino if (sweep.out / "result.json").exists() else 0
    sweep.wait_for(lambda: (sweep.out / "result.json").exists() and (sweep.out / "result.json").stat().st_ino != old)
    time.sleep(chance.uniform(0, 0.1))


MOMENTS = [any_time, part("verify"), file_of_a_point, part("plan"), reports, part("measure")]


def check_kept(before: dict[str, str], after: dict[str, str]) -> None:
    for name, content in before.items():
        require(name in after, f"the finished point {name} was lost")
        require(after[name] == content, f"the finished point {name} was measured again")


def check_left(out: pathlib.Path, cache: pathlib.Path, before: dict[str, str]) -> dict[str, str]:
    """What a killed sweep left is whole, and what was finished is there. The finished points."""
    after = finished(out)
    check_kept(before, after)
    check_result(out)
    for file in cache.glob("*.json"):
        try:
            json.loads(file.read_text())
        except ValueError as error:
            raise Failure(f"the cache {file.name} is not whole: {error}") from error
    return after


def run(trial: Trial, rounds: int, seed: int) -> str:
    expected, seconds = trial.undisturbed()
    require(len(set(expected)) == len(expected) == 16, f"not 16 points: {expected}")
    require(len(finished(trial.scratch / "undisturbed")) == len(expected), "not every finished point has its file")
    if trial.backend == "cpu":
        require({"done", "skipped"} == {point[-1] for point in expected}, f"done and skipped points: {expected}")
    chance = random.Random(seed)
    by_moment = {moment.__name__: 0 for moment in MOMENTS}
    kills = sweeps = half_written = with_points = 0
    while kills < rounds:
        out = trial.scratch / f"killed-{sweeps}"
        sweeps += 1
        require(sweeps < 5 * rounds + 10, f"kills do not come: {by_moment}")
        before: dict[str, str] = {}
        of_this = 0
        while kills < rounds:
            sweep = trial.start(out, "--resume")
            moment = MOMENTS[kills % len(MOMENTS)]
            moment(sweep, chance, seconds)
            if not sweep.kill():
                break
            kills += 1
            of_this += 1
            by_moment[moment.__name__] += 1
            half_written += len(temporaries(out, trial.cache(out)))
            before = check_left(out, trial.cache(out), before)
            with_points += len(before) > 0
        else:
            sweep = trial.start(out, "--resume")
        trial.finish(sweep)
        check_left(out, trial.cache(out), before)
        points = points_of(out)
        require(points == expected, f"after {of_this} kills the sweep holds other points:\n{points}\nnot\n{expected}")
        require(sorted(finished(out)) == sorted(finished(trial.scratch / "undisturbed")), "other files of points")
        shutil.rmtree(out)
    require(with_points > 0, "every kill came before the first finished point: nothing was tried")
    return (f"{kills} kills over {sweeps} sweeps of {len(expected)} points (seed {seed}): no finished point lost or measured again, "
            f"points equal those of the undisturbed sweep; {with_points} kills found finished points; {half_written} half-written files "
            f"were left and removed by the next start; kills by moment: {', '.join(f'{name} {n}' for name, n in by_moment.items())}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kbench", type=pathlib.Path)
    parser.add_argument("rounds", type=int, nargs="?", default=12)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            trial = Trial(str(arguments.kbench.resolve()), arguments.backend, pathlib.Path(scratch))
            print(run(trial, arguments.rounds, arguments.seed))
        except Failure as failure:
            print(f"failed: {failure}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

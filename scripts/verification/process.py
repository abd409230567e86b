"""What scripts that run kbench and other programs have in common: options, one error type, exit codes, and what a run
wrote."""

import argparse
import gzip
import json
import math
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

ROOT = pathlib.Path(__file__).resolve().parents[2]

# kbench's own exit codes.
DONE, FAILED, BAD_USAGE, MISSING = range(4)


class Stop(Exception):
    """Ends a script with an exit code and one line."""

    def __init__(self, code: int, line: str):
        super().__init__(line)
        self.code = code


def exit_with(main: Callable[[], int]) -> NoReturn:
    """Ends the script with what `main` returns."""
    try:
        sys.exit(main())
    except Stop as stop:
        print(f"{pathlib.Path(sys.argv[0]).name}: {stop}", file=sys.stderr)
        sys.exit(stop.code)
    except KeyboardInterrupt:
        print(f"{pathlib.Path(sys.argv[0]).name}: interrupted", file=sys.stderr)
        sys.exit(FAILED)


@dataclass(frozen=True)
class Finished:
    """A program that ended: 124 stands for one that was stopped at its time limit, as in timeout(1)."""

    command: list[str]
    exit_code: int
    seconds: float
    stdout: str
    stderr: str

    @property
    def last_line(self) -> str:
        """Where kbench says what was wrong."""
        lines = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return lines[-1] if lines else f"exit code {self.exit_code} without a word"

    def check(self, prefix: str = "", code: int | None = None) -> None:
        """Stop where the program failed: with `code`, or with the program's own where kbench's says what is wrong."""
        if self.exit_code != DONE:
            own = self.exit_code if self.exit_code in (BAD_USAGE, MISSING) else FAILED
            raise Stop(own if code is None else code, prefix + self.last_line)


def run(command: list[str], limit_s: float | None = None, environment: dict[str, str] | None = None) -> Finished:
    start = time.monotonic()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            env=os.environ | (environment or {}),
        )
    except subprocess.TimeoutExpired as late:
        texts = [
            part.decode(errors="replace") if isinstance(part, bytes) else part or ""
            for part in (late.stdout, late.stderr)
        ]
        return Finished(command, 124, limit_s, texts[0], texts[1] + f"\nstopped after {limit_s:.0f} s")
    except OSError as error:
        raise Stop(MISSING, f"cannot run {command[0]}: {error.strerror}") from error
    return Finished(command, done.returncode, time.monotonic() - start, done.stdout, done.stderr)


def find_cuda_tool(name: str) -> str | None:
    """On PATH, then in $CUDA_HOME/bin and /usr/local/cuda/bin."""
    homes = [os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    path = os.pathsep.join([os.environ.get("PATH", ""), *(f"{home}/bin" for home in homes if home)])
    return shutil.which(name, path=path)


def argument_parser(description: str | None, **more: Any) -> argparse.ArgumentParser:
    """With the option that every script has."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=raw, **more)
    parser.add_argument("--kbench", metavar="PATH", help="the program to run [./kbench of this checkout]")
    return parser


def find_kbench(asked: str | None) -> str:
    path = pathlib.Path(asked) if asked else ROOT / "kbench"
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise Stop(BAD_USAGE, f"--kbench {path}: not a program; give the path of the built kbench")
    return str(path.resolve())


def read_result(directory: pathlib.Path) -> dict[str, Any]:
    return json.loads((directory / "result.json").read_text(encoding="utf-8"))


def parameter_list(option: str, text: str, known: list[str]) -> list[str]:
    """The values of a comma-separated option, each one of `known`."""
    values = text.split(",")
    for value in values:
        if value not in known:
            raise Stop(BAD_USAGE, f"{option} '{value}': must be one of {', '.join(known)}")
    return values


def number_list(option: str, text: str) -> list[int]:
    """The values of a comma-separated option, each 1 or more."""
    if not all(part.isdigit() and int(part) > 0 for part in text.split(",")):
        raise Stop(BAD_USAGE, f"{option} '{text}': must be whole numbers such as 1,8")
    return [int(part) for part in text.split(",")]


def at_least_one(arguments: argparse.Namespace, *options: str) -> None:
    for option in options:
        if getattr(arguments, option) < 1:
            raise Stop(BAD_USAGE, f"--{option} {getattr(arguments, option)}: must be 1 or more")


def finite(value: Any) -> Any:
    """The same document with null for every number that JSON cannot hold."""
    if isinstance(value, dict):
        return {key: finite(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [finite(element) for element in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: pathlib.Path, document: dict[str, Any]) -> None:
    """Whole or not at all, so that an interrupted run leaves the last complete file."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(finite(document), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    temporary.replace(path)


def write_compressed(path: pathlib.Path, document: dict[str, Any]) -> None:
    """As .json.gz: whole, or as it was."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(gzip.compress(json.dumps(document).encode(), mtime=0))
    temporary.replace(path)


def command_line() -> str:
    return shlex.join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]])


def utc_now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

#!/usr/bin/env python3
"""Compiles host code against the headers of a CUDA toolkit of which nothing else is there: neither nvcc nor a library.

    cuda_headers.py BUILD REQUIREMENTS

BUILD is configured with KBENCH_CUDA=OFF and without unity builds: the files are those that it leaves out and those that
ask whether there is CUDA. What needs cuDNN is not compiled, since cuDNN is optional. REQUIREMENTS are the toolkit's wheels.
Exit codes: 0 all compiled; 1 one did not; 2 bad usage.
"""

import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def unpack_headers(requirements: Path, include: Path) -> None:
    """All or none. A wheel is up to 600 MB of libraries and 10 MB of headers."""
    include.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=include.parent) as scratch:
        subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--only-binary", ":all:",
                        "--no-cache-dir", "--dest", scratch, "--requirement", requirements], check=True)
        for wheel in Path(scratch).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    _, found, after = name.partition("/include/")
                    if found and after and not name.endswith("/"):
                        header = Path(scratch) / "include" / after
                        header.parent.mkdir(parents=True, exist_ok=True)
                        header.write_bytes(archive.read(name))
        (Path(scratch) / "include").rename(include)


def sources(commands: list[dict]) -> list[Path]:
    compiled = {Path(command["file"]) for command in commands}
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "bench/*.cpp", "kernels/*.cpp", "tests/*.cpp"], check=True,
                             capture_output=True, text=True).stdout
    chosen = []
    for name in filter(None, tracked.split("\0")):
        text = (ROOT / name).read_text()
        asks = "KBENCH_HAVE_CUDA" in text
        if (asks or ROOT / name not in compiled) and not any(word in name for word in ("cudnn", "/peers/", "/fuzz/")):
            chosen.append(ROOT / name)
    return chosen


def flags(commands: list[dict]) -> list[str]:
    """Those of a neighbour, without its precompiled header and its output."""
    neighbour = str(ROOT / "bench/plan/provider.cpp")
    words = shlex.split(next(command["command"] for command in commands if command["file"] == neighbour))
    kept = [word for word in words if word.startswith(("-D", "-I", "-W", "-f", "-std")) and word != "-Winvalid-pch"]
    systems = [word for at, name in enumerate(words) if name == "-isystem" for word in ("-isystem", words[at + 1])]
    return [words[0], *kept, *systems]


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    build, requirements = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    include = build / "toolkits" / hashlib.sha256(requirements.read_bytes()).hexdigest()
    if not include.exists():
        unpack_headers(requirements, include)
    commands = json.loads((build / "compile_commands.json").read_text())
    toolkit = requirements.stem.removeprefix("requirements-")
    major = toolkit.removeprefix("cuda-").partition(".")[0]
    common = [*flags(commands), "-DKBENCH_HAVE_CUDA", f"-DKBENCH_CUDA_MAJOR={major}", '-DKBENCH_SOURCE_DIR=""', '-DKBENCH_BINARY=""', "-isystem",
              include, "-isystem", ROOT / ".deps/onednn/include", "-I", build / "generated", "-fsyntax-only"]

    def compiles(source: Path) -> bool:
        result = subprocess.run([*common, source], capture_output=True, text=True)
        print(f"{source.relative_to(ROOT)}: {'ok' if result.returncode == 0 else 'FAILED'}\n{result.stderr}", end="", flush=True)
        return result.returncode == 0

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        good = list(pool.map(compiles, sources(commands)))
    print(f"{sum(good)} of {len(good)} files compile against {toolkit}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

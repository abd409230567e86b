"""What programs that run PyTorch for a script have in common (peer.py starts them): a request comes as JSON in the one
argument; out go JSON objects, one a line: first the machine, then the figures."""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from verification import pytorch
from verification.sampler import Run, Sampler, SmClock, one_by_one


def emit(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def start(versions: dict[str, str]) -> dict[str, Any]:
    """The request, once the machine has been told, and `versions` of libraries with it."""
    request = json.loads(sys.argv[1])
    device = request["device"]
    pytorch.find(device)
    if device == "cpu":
        torch.set_num_threads(request["threads"])
    emit(
        versions=versions,
        device=torch.cuda.get_device_name() if device == "cuda" else None,
        threads=torch.get_num_threads(),
        binding={name: os.environ.get(name) for name in ("OMP_PLACES", "OMP_PROC_BIND")},
    )
    return request


def time_call(call: Callable[[], Any], on_gpu: bool, sampler: Sampler) -> dict[str, Any]:
    """Launched as they come; the first call may compile, or choose algorithms."""
    begin = time.monotonic()
    call()
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    prepare_s = time.monotonic() - begin
    runs = [Run(call)]
    samples = sampler.gpu(torch, SmClock(torch), one_by_one(runs)) if on_gpu else sampler.cpu(runs)
    return {
        "prepare_s": prepare_s,
        "median_ms": samples.median_s * 1e3,
        "samples_ms": [seconds * 1e3 for seconds in samples.seconds],
        "sm_clock_mhz": samples.sm_clock_mhz,
        "peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
    }


def first_line(error: Exception) -> str:
    """The first line of what PyTorch says, which may be pages."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]

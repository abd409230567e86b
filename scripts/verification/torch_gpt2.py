"""Times GPT-2's forward in PyTorch; peer-compare starts it as a program of its own.

A process of its own gives its memory back before kbench starts, and may bind its threads without binding kbench's.
Takes a request as JSON in its one argument; writes one JSON object a line: first the machine, then a figure each.
"""

import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import transformers

from verification import gpt2
from verification.transformers_gpt2 import DTYPES, set_fp32_matmul, versions

Forward = Callable[[], Any]
WARM_UP_CALLS = 3


def emit(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def event_ms(forward: Forward) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    forward()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def clock_ms(forward: Forward) -> float:
    begin = time.perf_counter()
    forward()
    return (time.perf_counter() - begin) * 1e3


def sample(forward: Forward, time_ms: Callable[[Forward], float], request: dict[str, Any]) -> list[float]:
    """At least `min_runs` samples and `seconds` of them, unless that takes longer than `limit_s`."""
    begin = time.monotonic()
    for _ in range(WARM_UP_CALLS):
        forward()
        if time.monotonic() - begin > request["limit_s"] / 4:
            break
    samples: list[float] = []
    while len(samples) < request["min_runs"] or sum(samples) < request["seconds"] * 1e3:
        samples.append(time_ms(forward))
        if time.monotonic() - begin > request["limit_s"]:
            break
    return samples


def graphed(forward: Forward) -> Forward:
    """The forward as a CUDA graph; warmed up on a side stream, as capture wants it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP_CALLS):
            forward()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        forward()
    return graph.replay


def gpu_state() -> dict[str, str] | None:
    """Clocks and power right after the samples: whether both sides ran under the same conditions."""
    fields = "clocks.sm,clocks.mem,power.draw,temperature.gpu"
    try:
        done = subprocess.run(
            ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader", "-i", "0"],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    values = done.stdout.strip().split(", ")
    return dict(zip(fields.split(","), values, strict=True)) if done.returncode == 0 and len(values) == 4 else None


def time_point(model: torch.nn.Module, batch: int, precision: str, request: dict[str, Any]) -> None:
    device = request["device"]
    tokens = torch.randint(0, model.config.vocab_size, (batch, request["seq"]), device=device)

    def eager() -> Any:
        return model(tokens, use_cache=False)

    for way in request["ways"]:
        figure: dict[str, Any] = {"precision": precision, "batch": batch, "way": way}
        try:
            begin = time.monotonic()
            forward: Forward = eager
            if way == "graph":
                forward = graphed(eager)
            elif way == "compile":
                compiled = torch.compile(model, mode="reduce-overhead", dynamic=False)
                forward = functools.partial(compiled, tokens, use_cache=False)
                forward()
            figure["prepare_s"] = time.monotonic() - begin
            samples = sample(forward, event_ms if device == "cuda" else clock_ms, request)
            figure |= {"median_ms": statistics.median(samples), "samples_ms": samples}
            figure["gpu"] = gpu_state() if device == "cuda" else None
        except (RuntimeError, NotImplementedError) as error:  # out of memory, or no such kernel: the next may go well
            figure["error"] = str(error).splitlines()[0][:300]
        emit(**figure)
        del forward


def main() -> None:
    request = json.loads(sys.argv[1])
    transformers.logging.set_verbosity_error()
    device = request["device"]
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch finds no GPU")
    if device == "cpu":
        torch.set_num_threads(request["threads"])
    emit(
        versions=versions(),
        device=torch.cuda.get_device_name() if device == "cuda" else None,
        threads=torch.get_num_threads(),
        binding={name: os.environ.get(name) for name in ("OMP_PLACES", "OMP_PROC_BIND")},
    )
    config = transformers.GPT2Config(**gpt2.CONFIGS[request["model"]])
    config._attn_implementation = "sdpa"
    torch.manual_seed(0)
    with torch.inference_mode():
        for precision in request["precisions"]:
            set_fp32_matmul(precision)
            torch.compiler.reset()  # a compiled forward does not notice that tf32 was switched
            with torch.device(device):
                model = transformers.GPT2LMHeadModel(config).to(DTYPES[precision]).eval()
            for batch in request["batches"]:
                time_point(model, batch, precision, request)
            del model
            if device == "cuda":
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

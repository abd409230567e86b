"""Times GPT-2's forward in PyTorch; `peer gpt2` starts it as a program of its own.

A process of its own gives its memory back before kbench starts, and may bind its threads without binding kbench's.
"""

import functools
import time
from typing import Any

import torch
import transformers

from verification import gpt2, process, pytorch, transformers_models
from verification.sampler import Run, Sampler, SmClock, graph_of, one_by_one
from verification.torch_program import emit, first_line, start

WARM_UP_S = 1.0  # as `kbench run`


def time_way(way: str, model: torch.nn.Module, tokens: torch.Tensor, sampler: Sampler) -> dict[str, Any]:
    begin = time.monotonic()
    if way == "compile":
        model = torch.compile(model, mode="reduce-overhead", dynamic=False)
    runs = [Run(functools.partial(model, tokens, use_cache=False))]
    if way == "compile":
        runs[0]()
    launch = graph_of(torch, runs) if way == "graph" else one_by_one(runs)
    prepare_s = time.monotonic() - begin
    samples = sampler.gpu(torch, SmClock(torch), launch) if tokens.is_cuda else sampler.cpu(runs)
    return {
        "prepare_s": prepare_s,
        "median_ms": samples.median_s * 1e3,
        "samples_ms": [seconds * 1e3 for seconds in samples.seconds],
        "sm_clock_mhz": samples.sm_clock_mhz,
    }


def main() -> int:
    transformers_models.quiet()
    request = start(transformers_models.versions())
    device = request["device"]
    config = transformers.GPT2Config(**gpt2.CONFIGS[request["model"]])
    config._attn_implementation = "sdpa"
    torch.manual_seed(0)
    sampler = Sampler(request["seconds"], WARM_UP_S, request["min_runs"], request["limit_s"])
    with torch.inference_mode():
        for precision, batch in request["cases"]:
            dtype = pytorch.set_precision(torch, precision)
            torch.compiler.reset()  # a compiled forward does not notice that tf32 was switched
            with torch.device(device):
                model = transformers.GPT2LMHeadModel(config).to(dtype).eval()
                tokens = torch.randint(0, config.vocab_size, (batch, request["seq"]))
            for way in request["ways"]:
                figure: dict[str, Any] = {"precision": precision, "batch": batch, "way": way}
                try:
                    figure |= time_way(way, model, tokens, sampler)
                except Exception as error:  # out of memory, no such kernel, or anything that a compiler says: go on
                    figure["error"] = first_line(error)
                emit(**figure)
            del model
            if device == "cuda":
                torch.cuda.empty_cache()
    return process.DONE


if __name__ == "__main__":
    process.exit_with(main)

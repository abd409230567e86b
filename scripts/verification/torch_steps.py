"""Times training steps of GPT-2 in PyTorch; `peer train` starts it as a program of its own.

`gradients` is forward, loss and backward; `train` has fused AdamW as well, of state in the weights' own type. A loss is
the mean over all tokens that have a next one, and dropout is 0. Ways: eager; compile, which is torch.compile as it comes.
"""

from collections.abc import Callable
from typing import Any

import torch
import transformers

from verification import gpt2, process, pytorch, transformers_models
from verification.sampler import Sampler
from verification.torch_program import emit, first_line, start, time_call

WARM_UP_S = 1.0  # as `kbench run`


def calls(model: torch.nn.Module, way: str, tokens: torch.Tensor) -> dict[str, Callable[[], None]]:
    forward = torch.compile(model, dynamic=False) if way == "compile" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def gradients() -> None:
        optimizer.zero_grad(set_to_none=True)
        forward(tokens, labels=tokens, use_cache=False).loss.backward()

    def train() -> None:
        gradients()
        optimizer.step()

    return {"gradients": gradients, "train": train}


def time_case(request: dict[str, Any], way: str, precision: str, batch: int, sampler: Sampler) -> None:
    device = request["device"]
    config = transformers.GPT2Config(**gpt2.CONFIGS[request["model"]], resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    config._attn_implementation = "sdpa"
    torch.manual_seed(0)
    dtype = pytorch.set_precision(torch, precision)
    torch.compiler.reset()  # what is compiled does not notice that tf32 was switched
    with torch.device(device):
        model = transformers.GPT2LMHeadModel(config).to(dtype).train()
        tokens = torch.randint(0, config.vocab_size, (batch, request["seq"]))
    for what, call in calls(model, way, tokens).items():
        figure: dict[str, Any] = {"precision": precision, "batch": batch, "what": what, "way": way}
        try:
            figure |= time_call(call, device == "cuda", sampler)
        except Exception as error:  # out of memory, no such kernel, or anything that a compiler says: go on
            figure["error"] = first_line(error)
        emit(**figure)


def main() -> int:
    transformers_models.quiet()
    request = start(transformers_models.versions())
    sampler = Sampler(request["seconds"], WARM_UP_S, request["min_runs"], request["limit_s"])
    for way in request["ways"]:
        for precision, batch in request["cases"]:
            time_case(request, way, precision, batch, sampler)
            if request["device"] == "cuda":
                torch.cuda.empty_cache()
    return process.DONE


if __name__ == "__main__":
    process.exit_with(main)

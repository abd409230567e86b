"""A PyTorch program as users have them, for `attach-verify`: it knows nothing of kbench. It repeats one iteration and
prints what that took: the mean, with one wait for the GPU at the end, and the median between the host's returns.

    torch_attached.py gpt2-large|deepspeech2 [--way eager|graph|compile] [--train] [--plant sleep|copy|fp32]

Plants are faults that a profiler should name: 5 ms of sleep in each iteration, a copy of 64 MB from pageable memory, and
the MLP of block 7 in fp32.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from verification import gpt2, pytorch
from verification.deepspeech2 import CONFIG

SEQ, FRAMES = 1024, 1000
SLEEP_S = 0.005
COPIED_BYTES = 64_000_000
MISTYPED_BLOCK = 7


class InFp32(torch.nn.Module):
    def __init__(self, module: torch.nn.Module):
        super().__init__()
        self.module = module.float()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x.float()).to(x.dtype)


def of_gpt2(asked: argparse.Namespace, dtype: Any) -> Callable[[], Any]:
    import transformers

    transformers.logging.set_verbosity_error()
    config = transformers.GPT2Config(**gpt2.CONFIGS[asked.model], resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    config._attn_implementation = "sdpa"
    with torch.device("cuda"):
        model = transformers.GPT2LMHeadModel(config).to(dtype).train(asked.train)
        tokens = torch.randint(0, config.vocab_size, (asked.batch, SEQ))
    if asked.plant == "fp32":
        block = model.transformer.h[MISTYPED_BLOCK]
        block.mlp = InFp32(block.mlp)
    forward = torch.compile(model, dynamic=False) if asked.way == "compile" else model
    if not asked.train:
        return lambda: forward(tokens, use_cache=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        forward(tokens, labels=tokens, use_cache=False).loss.backward()
        optimizer.step()

    return step


def of_speech(asked: argparse.Namespace, dtype: Any) -> Callable[[], Any]:
    from verification.torch_deepspeech2 import DeepSpeech2, randomised
    from verification.torch_speech import training_step

    model = randomised(DeepSpeech2(CONFIG), 0).to(device="cuda", dtype=dtype).train(asked.train)
    rows = int(CONFIG["sample_rate"] * CONFIG["window_size"] / 2) + 1
    x = torch.randn(asked.batch, 1, rows, FRAMES, device="cuda", dtype=dtype)
    lengths = torch.full((asked.batch,), FRAMES)
    on_device = lengths.to("cuda")

    def forward() -> torch.Tensor:
        return model(x, lengths, on_device)

    return training_step(model, forward, asked.batch, FRAMES) if asked.train else forward


def captured(call: Callable[[], Any]) -> Callable[[], Any]:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def planted(call: Callable[[], Any], plant: str | None) -> Callable[[], Any]:
    if plant == "sleep":

        def with_sleep() -> None:
            call()
            torch.cuda.synchronize()
            time.sleep(SLEEP_S)

        return with_sleep
    if plant == "copy":
        host = torch.zeros(COPIED_BYTES // 4)
        device = torch.empty_like(host, device="cuda")

        def with_copy() -> None:
            device.copy_(host)
            call()

        return with_copy
    return call


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["gpt2-large", "deepspeech2"])
    parser.add_argument("--way", choices=["eager", "graph", "compile"], default="eager")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--plant", choices=["sleep", "copy", "fp32"])
    parser.add_argument("--precision", choices=pytorch.TYPES, default="fp16")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=150)
    asked = parser.parse_args()
    pytorch.find("cuda")
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    dtype = pytorch.set_precision(torch, asked.precision)
    call = (of_gpt2 if asked.model == "gpt2-large" else of_speech)(asked, dtype)
    returned = []
    with torch.inference_mode(not asked.train):
        if asked.way == "graph":
            call = captured(call)
        call = planted(call, asked.plant)
        for _ in range(5):
            call()
        torch.cuda.synchronize()
        begin = time.monotonic()
        for _ in range(asked.iterations):
            call()
            returned.append(time.monotonic())
        torch.cuda.synchronize()
        mean_ms = (time.monotonic() - begin) / asked.iterations * 1e3
    median_ms = 1e3 * statistics.median(b - a for a, b in zip([begin, *returned], returned, strict=False))
    print(f"{mean_ms:.4f} ms an iteration, {median_ms:.4f} median between returns", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

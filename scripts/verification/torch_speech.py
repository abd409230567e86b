"""Times Deep Speech 2's forward in PyTorch; ds2-peer starts it as a program of its own.

All utterances are full. Ways: packed, as deepspeech.pytorch runs its recurrent layers; plain, which hands them tensors
as they are, and so lets cuDNN and oneDNN take kernels that packed sequences shut out.
"""

from typing import Any

import torch

from verification import process, pytorch
from verification.sampler import Sampler
from verification.torch_deepspeech2 import DeepSpeech2, randomised
from verification.torch_program import emit, first_line, start, time_call

WARM_UP_S = 1.0  # as `kbench run`


def time_case(request: dict[str, Any], precision: str, batch: int, sampler: Sampler) -> None:
    device, config, frames = request["device"], request["config"], request["frames"]
    dtype = pytorch.set_precision(torch, precision)
    torch.manual_seed(0)
    model = randomised(DeepSpeech2(config), 0).to(device=device, dtype=dtype)
    rows = int(config["sample_rate"] * config["window_size"] / 2) + 1
    x = torch.randn(batch, 1, rows, frames).to(device=device, dtype=dtype)
    lengths = torch.full((batch,), frames)
    device_lengths = lengths.to(device)
    for way in ("packed", "plain"):
        figure: dict[str, Any] = {"precision": precision, "batch": batch, "way": way}
        model.packs = way == "packed"
        try:
            figure |= time_call(lambda: model(x, lengths, device_lengths), device == "cuda", sampler)
        except (RuntimeError, NotImplementedError) as error:  # out of memory, or no such kernel: go on
            figure["error"] = first_line(error)
        emit(**figure)


def main() -> int:
    request = start(pytorch.versions(torch))
    torch.backends.cudnn.benchmark = True
    sampler = Sampler(request["seconds"], WARM_UP_S, request["min_runs"], request["limit_s"])
    with torch.inference_mode():
        for precision, batch in request["cases"]:
            time_case(request, precision, batch, sampler)
            if request["device"] == "cuda":
                torch.cuda.empty_cache()
    return process.DONE


if __name__ == "__main__":
    process.exit_with(main)

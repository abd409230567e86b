"""Times Deep Speech 2 in PyTorch, its forward or a training step; `peer ds2` starts it as a program of its own.

All utterances are full. Ways: packed, as deepspeech.pytorch runs its recurrent layers; plain, which hands them tensors
as they are, and so lets cuDNN and oneDNN take kernels that packed sequences shut out. A training step is forward, CTC in
fp32 or wider and backward, without an optimizer. Targets are given so that cuDNN's CTC takes them where it can.
"""

from collections.abc import Callable

from typing import Any

import torch

from verification import process, pytorch
from verification.sampler import Sampler
from verification.torch_deepspeech2 import DeepSpeech2, randomised
from verification.torch_program import emit, first_line, start, time_call

WARM_UP_S = 1.0  # as `kbench run`


def training_step(model: DeepSpeech2, forward: Callable[[], torch.Tensor], batch: int, frames: int) -> Callable[[], None]:
    """Texts of 15 labels a second, as kbench's."""
    target = max(1, frames * 15 // 100)
    generator = torch.Generator().manual_seed(0)
    labels = model.fc[0].module[1].out_features
    targets = torch.randint(1, labels, (batch * target,), generator=generator, dtype=torch.int32)
    steps, lengths = (torch.full((batch,), n, dtype=torch.int32) for n in ((frames + 1) // 2, target))

    def step() -> None:
        model.zero_grad(set_to_none=True)
        logits = forward()
        logits = logits if logits.dtype == torch.float64 else logits.float()
        losses = torch.nn.functional.ctc_loss(logits.log_softmax(2), targets, steps, lengths, reduction="none")
        losses.mean().backward()

    return step


def time_case(request: dict[str, Any], precision: str, batch: int, sampler: Sampler) -> None:
    device, config, frames = request["device"], request["config"], request["frames"]
    dtype = pytorch.set_precision(torch, precision)
    torch.manual_seed(0)
    model = randomised(DeepSpeech2(config), 0).to(device=device, dtype=dtype)
    rows = int(config["sample_rate"] * config["window_size"] / 2) + 1
    x = torch.randn(batch, 1, rows, frames).to(device=device, dtype=dtype)
    lengths = torch.full((batch,), frames)
    is_training = request["direction"] == "train"
    model.train(is_training)
    device_lengths = lengths.to(device)
    for way in ("packed", "plain"):
        figure: dict[str, Any] = {"precision": precision, "batch": batch, "way": way}
        model.packs = way == "packed"

        def forward() -> torch.Tensor:
            return model(x, lengths, device_lengths)

        try:
            call = training_step(model, forward, batch, frames) if is_training else forward
            with torch.inference_mode(not is_training):
                figure |= time_call(call, device == "cuda", sampler)
        except (RuntimeError, NotImplementedError) as error:  # out of memory, or no such kernel: go on
            figure["error"] = first_line(error)
        emit(**figure)


def main() -> int:
    request = start(pytorch.versions(torch))
    torch.backends.cudnn.benchmark = True
    sampler = Sampler(request["seconds"], WARM_UP_S, request["min_runs"], request["limit_s"])
    for precision, batch in request["cases"]:
        time_case(request, precision, batch, sampler)
        if request["device"] == "cuda":
            torch.cuda.empty_cache()
    return process.DONE


if __name__ == "__main__":
    process.exit_with(main)

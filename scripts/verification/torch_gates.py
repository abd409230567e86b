#!/usr/bin/env python3
"""What one element does to Deep Speech 2's gradients that rounding moves across an edge of Hardtanh, in PyTorch on a CPU.

Of a small model's first layers: relative errors of fp32's gradients against fp64's, and against those of fp64 with fp32's
gates, which are open where Hardtanh's input lies within its edges. What the first has and the second has not is what the
gates did. Prints a table for each of a few random inputs.
"""

import pathlib
import sys

import torch

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from verification.deepspeech2 import CONFIG  # noqa: E402
from verification.torch_deepspeech2 import DeepSpeech2, randomised  # noqa: E402
from verification.torch_flips import Gated, is_open  # noqa: E402

Gradients = dict[str, torch.Tensor]
SIZES = CONFIG | {"hidden_size": 64, "hidden_layers": 2}
FRAMES, LENGTHS, TARGETS = 1000, [1000, 830], [60, 50]
DRAWS = 6


class Hardtanh(torch.nn.Module):
    """With the gates that it is given, else its own, which it keeps."""

    def __init__(self, gates: torch.Tensor | None):
        super().__init__()
        self.given, self.own = gates, torch.empty(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.own = is_open(x).detach()
        return Gated.apply(x, (self.own if self.given is None else self.given).to(x.dtype))


def gradients(
    state: dict[str, torch.Tensor], dtype: torch.dtype, seed: int, gates: list[torch.Tensor] | None = None
) -> tuple[Gradients, list[torch.Tensor]]:
    """Gradients of the convolutions' parameters, and the gates of both Hardtanhs."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(len(LENGTHS), 1, 161, FRAMES, generator=generator)
    targets = torch.randint(1, SIZES["labels"], (len(TARGETS), max(TARGETS)), generator=generator)
    model = DeepSpeech2(SIZES)
    model.load_state_dict(state)
    model = model.to(dtype).train()
    clips = [Hardtanh(gates[i] if gates else None) for i in range(2)]
    model.conv.seq_module[2], model.conv.seq_module[5] = clips
    lengths = torch.tensor(LENGTHS)
    logits = model(x.to(dtype), lengths).double().log_softmax(2)
    steps = (lengths + 1) // 2
    torch.nn.functional.ctc_loss(logits, targets, steps, torch.tensor(TARGETS), reduction="sum").backward()
    made = {name: parameter.grad.double() for name, parameter in model.conv.named_parameters()}
    return made, [clip.own for clip in clips]


def main() -> None:
    torch.manual_seed(1)
    state = randomised(DeepSpeech2(SIZES), 2).state_dict()
    print(f"torch {torch.__version__}, {len(LENGTHS)} utterances of {LENGTHS} frames; relative errors of fp32's gradients\n")
    for seed in range(DRAWS):
        truth, own = gradients(state, torch.float64, seed)
        made, gates = gradients(state, torch.float32, seed)
        same_gates, _ = gradients(state, torch.float64, seed, gates)
        moved = [int((a != b).sum()) for a, b in zip(own, gates, strict=True)]
        print(f"input {seed}: of {own[0].numel()} and {own[1].numel()} gates {moved[0]} and {moved[1]} are other ones")
        print(f"{'':24}{'against fp64':>14}{'fp64, same gates':>18}")
        for name, of_truth in truth.items():
            errors = [float((made[name] - of[name]).norm() / of[name].norm()) for of in (truth, same_gates)]
            print(f"conv.{name:19}{errors[0]:14.1e}{errors[1]:18.1e}")


if __name__ == "__main__":
    main()

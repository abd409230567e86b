#!/usr/bin/env python3
"""Which precision PyTorch's layers really run in: errors of Deep Speech 2's convolutions and recurrent layers against
fp64, forward, gradient of the input and of the weights, with tf32 allowed and not. An error near 3e-4 is tf32's, one
below 1e-5 fp32's. A line each; needs torch and a GPU."""

import sys

import torch

STEPS, BATCH, HIDDEN = 59, 3, 1024
LAYERS = {
    "conv 1": (lambda: torch.nn.Conv2d(1, 32, (41, 11), (2, 2), (20, 5)), (BATCH, 1, 161, 117)),
    "conv 2": (lambda: torch.nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5)), (BATCH, 32, 81, 59)),
    "lstm": (lambda: torch.nn.LSTM(HIDDEN, HIDDEN, bidirectional=True), (STEPS, BATCH, HIDDEN)),
    "gru": (lambda: torch.nn.GRU(HIDDEN, HIDDEN, bidirectional=True), (STEPS, BATCH, HIDDEN)),
    "rnn": (lambda: torch.nn.RNN(HIDDEN, HIDDEN, bidirectional=True), (STEPS, BATCH, HIDDEN)),
    "linear": (lambda: torch.nn.Linear(HIDDEN, 29, bias=False), (STEPS, BATCH, HIDDEN)),
}


def run(layer: torch.nn.Module, x: torch.Tensor, dout: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
    layer.zero_grad(set_to_none=True)
    x = x.detach().requires_grad_()
    out = layer(x)
    out = out[0] if isinstance(out, tuple) else out
    dout = torch.randn_like(out) if dout is None else dout.to(out.dtype)
    out.backward(dout)
    weights = [p.grad.double().flatten() for name, p in layer.named_parameters() if "weight" in name]
    return out.detach().double(), x.grad.double(), torch.cat(weights), dout


def main() -> int:
    torch.manual_seed(1)
    for name, (make, shape) in LAYERS.items():
        layer, x = make().cuda(), torch.randn(shape, device="cuda")
        *truth, dout = run(layer.double(), x.double(), None)
        for allowed in (False, True):
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
            *made, _ = run(layer.float(), x, dout)
            errors = [float((a - b).norm() / b.norm()) for a, b in zip(made, truth, strict=True)]
            figures = ", ".join(f"{what} {error:.2e}" for what, error in zip(("forward", "dx", "dw"), errors, strict=True))
            print(f"{name}, tf32 {'allowed' if allowed else 'off'}: {figures}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

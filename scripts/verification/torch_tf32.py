"""Deep Speech 2's products in tf32, whatever kernels PyTorch takes: operands are rounded to tf32, forward and backward,
and multiplied and summed in fp32. With tf32 allowed PyTorch runs some of them in fp32 all the same (torch_precision.py
shows which), and then its error is not that of tf32."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from verification.torch_deepspeech2 import DeepSpeech2, Layer, recurrent


def rounded(x: torch.Tensor) -> torch.Tensor:
    """To 10 bits behind the leading one, halves away from zero, as cvt.rna.tf32.f32 does."""
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


class Product(torch.autograd.Function):
    """x [..., K] times the transpose of weight [N, K]."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        x, weight = rounded(x), rounded(weight)
        ctx.save_for_backward(x, weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx: Any, dout: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, weight = ctx.saved_tensors
        dout = rounded(dout)
        return dout @ weight, dout.flatten(0, -2).T @ x.flatten(0, -2)


class Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, stride: Any, padding: Any) -> torch.Tensor:
        x, weight = rounded(x), rounded(weight)
        ctx.save_for_backward(x, weight)
        ctx.geometry = {"stride": stride, "padding": padding}
        return torch.nn.functional.conv2d(x, weight, **ctx.geometry)

    @staticmethod
    def backward(ctx: Any, dout: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor, None, None]:
        x, weight = ctx.saved_tensors
        dout = rounded(dout)
        of_x = torch.nn.grad.conv2d_input(x.shape, weight, dout, **ctx.geometry) if ctx.needs_input_grad[0] else None
        return of_x, torch.nn.grad.conv2d_weight(x, weight.shape, dout, **ctx.geometry), None, None


def _convolve(module: torch.nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
    return Convolution.apply(x, module.weight, module.stride, module.padding) + module.bias[:, None, None]


@contextmanager
def emulated(model: DeepSpeech2) -> Iterator[None]:
    """Within, all products of `model`, which is in fp32, are tf32's; on a CPU, too."""
    allowed = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    patched: list[tuple[Any, str]] = []

    def patch(module: Any, name: str, function: Any) -> None:
        setattr(module, name, function)
        patched.append((module, name))

    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            patch(module, "forward", lambda x, conv=module: _convolve(conv, x))
        elif isinstance(module, torch.nn.Linear):
            patch(module, "forward", lambda x, linear=module: Product.apply(x, linear.weight))
        elif isinstance(module, Layer):
            patch(module, "recurrent", lambda x, steps, rnn=module.rnn: recurrent(rnn, x, steps, Product.apply))
    try:
        yield
    finally:
        for module, name in patched:
            delattr(module, name)
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = allowed

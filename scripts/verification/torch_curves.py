"""Trains GPT-2 in PyTorch as `kbench train` does and tells the losses; train-curves starts it as a program of its own.

In 16 bits weights, activations and gradients are of that type, and AdamW updates fp32 copies, from which the weights
are rounded anew. In fp16 the loss is scaled as torch.amp.GradScaler does: halved where a gradient is not finite, and
that step changes no weight; doubled after 2000 good steps.
"""

import copy
import math
import pathlib
import time
from typing import Any

import numpy as np
import torch
import transformers

from verification import gpt2, process, pytorch, transformers_models
from verification.torch_program import emit, start

GROWTH_INTERVAL = 2000


class Training:
    """`model`: with fp32 weights, on its device."""

    def __init__(self, model: torch.nn.Module, precision: str, request: dict[str, Any]):
        dtype = pytorch.set_precision(torch, precision)
        self.copies = [weight.detach().clone().requires_grad_() for weight in model.parameters()]
        self.model = model.to(dtype).train()
        self.weights = list(model.parameters())
        self.optimizer = torch.optim.AdamW(
            self.copies,
            lr=request["lr"],
            betas=(0.9, 0.999),
            eps=1e-8,
            weight_decay=request["weight_decay"],
            fused=True,
        )
        self.clip_norm = request["clip_norm"] or math.inf
        self.dynamic = precision == "fp16"
        self.scale = request["loss_scale"] if self.dynamic else 1.0
        self.good_in_a_row = 0

    def step(self, tokens: torch.Tensor) -> tuple[float, bool]:
        """The loss, and whether the weights changed."""
        loss = self.model(tokens, labels=tokens, use_cache=False).loss  # in fp32, mean over all that have a next token
        (loss * self.scale).backward()
        for weight, wide in zip(self.weights, self.copies, strict=True):
            wide.grad, weight.grad = weight.grad.to(wide.dtype) / self.scale, None
        norm = torch.nn.utils.clip_grad_norm_(self.copies, self.clip_norm)
        changes = bool(torch.isfinite(norm))
        if changes:
            self.optimizer.step()
            with torch.no_grad():
                for weight, wide in zip(self.weights, self.copies, strict=True):
                    weight.copy_(wide)
        if self.dynamic:
            self._adapt(changes)
        return loss.item(), changes

    def _adapt(self, good: bool) -> None:
        self.good_in_a_row = self.good_in_a_row + 1 if good else 0
        if not good:
            self.scale = max(1.0, self.scale / 2)
        elif self.good_in_a_row == GROWTH_INTERVAL:
            self.scale, self.good_in_a_row = self.scale * 2, 0


def main() -> int:
    transformers_models.quiet()
    request = start(transformers_models.versions())
    directory = pathlib.Path(request["directory"])
    config = transformers.GPT2Config(**gpt2.CONFIGS[request["model"]], resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    config._attn_implementation = "sdpa"
    torch.manual_seed(request["seed"])
    first = transformers.GPT2LMHeadModel(config)
    first.save_pretrained(directory / "start")  # model.safetensors, where kbench begins as well
    batches = np.load(directory / "tokens.npy").reshape(-1, request["batch"], request["seq"]).astype(np.int64)
    tokens = torch.from_numpy(batches).to(request["device"])
    for precision in request["precisions"]:
        training = Training(copy.deepcopy(first).to(request["device"]), precision, request)
        begin = time.monotonic()
        losses, skipped = [], []
        for i, batch in enumerate(tokens):
            loss, changed = training.step(batch)
            losses.append(loss)
            if not changed:
                skipped.append(i + 1)
        emit(precision=precision, losses=losses, skipped=skipped, seconds=time.monotonic() - begin)
    return process.DONE


if __name__ == "__main__":
    process.exit_with(main)

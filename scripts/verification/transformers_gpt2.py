"""The same model in Hugging Face transformers: in fp64 as the truth, and in a precision as kbench's peer."""

import copy
import pathlib
from typing import Any

import numpy as np
import torch
import transformers

from verification import pytorch

class TransformersGpt2:
    """A checkpoint on a device; modules are made as they are asked for, one precision at a time."""

    def __init__(self, directory: pathlib.Path, config: dict[str, Any], device: str):
        quiet()
        self._directory, self._config, self._device = directory, config, device
        self._loaded: dict[str, torch.nn.Module] = {}
        self._key: tuple[str, str] | None = None
        self._peer: torch.nn.Module | None = None

    def _load(self, attention: str) -> torch.nn.Module:
        if attention not in self._loaded:
            model = transformers.GPT2LMHeadModel.from_pretrained(self._directory, attn_implementation=attention)
            self._loaded[attention] = model.to(self._device).eval()
        return self._loaded[attention]

    def _logits(self, model: torch.nn.Module, tokens: np.ndarray) -> torch.Tensor:
        ids = torch.from_numpy(tokens.astype(np.int64)).to(self._device)
        with torch.inference_mode():
            return model(ids, use_cache=False).logits.double()

    def truths(self, batches: list[np.ndarray]) -> list[torch.Tensor]:
        """fp64 logits. Upcasting is switched off: it would bring fp64 scores *down* to fp32, and is exact otherwise."""
        model = copy.deepcopy(self._load("eager")).double()
        for module in model.modules():
            if hasattr(module, "reorder_and_upcast_attn"):
                module.reorder_and_upcast_attn = False
        return [self._logits(model, tokens) for tokens in batches]

    def peer(self, precision: str, attention: str, tokens: np.ndarray) -> torch.Tensor:
        """Logits in a precision: SDPA to compare with kbench's fused attention, eager with unfused.

        SDPA knows no upcasting, so a model that asks for it is always eager.
        """
        dtype = pytorch.set_precision(torch, precision)
        sdpa = attention == "fused" and not self._config["reorder_and_upcast_attn"]
        key = (precision, "sdpa" if sdpa else "eager")
        if key != self._key:
            self._peer = None
            self._peer = copy.deepcopy(self._load(key[1])).to(dtype)
            self._key = key
        return self._logits(self._peer, tokens)

    def as_tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values).to(self._device).double()


def quiet() -> None:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def versions() -> dict[str, str]:
    return pytorch.versions(torch) | {"transformers": transformers.__version__}

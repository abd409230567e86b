"""The same model in Hugging Face transformers: in fp64 as the truth, and in a precision as kbench's peer."""

import copy
import inspect
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import transformers

from verification import llama, pytorch

Caches = list[tuple[np.ndarray, np.ndarray]]  # keys and values of each layer: [batch, kv heads, tokens, head size]


def make_all_fp64(model: torch.nn.Module, config: dict[str, Any]) -> None:
    """transformers computes rotary angles and RMS norms in fp32 whatever the model's type."""
    rotary = model.model.rotary_emb
    frequencies, factor = llama.rope(config)
    exact = torch.from_numpy(frequencies).to(rotary.inv_freq.device)
    if not torch.allclose(rotary.inv_freq.double(), exact, rtol=1e-6, atol=0):
        raise ValueError("frequencies of rotary embeddings are not those of transformers")

    def angles(_: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        each = (position_ids[..., None].double() * exact).repeat(1, 1, 2)
        return factor * each.cos(), factor * each.sin()

    def norm_of(module: torch.nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
        return lambda x: x * (x.square().mean(-1, keepdim=True) + module.variance_epsilon).rsqrt() * module.weight

    rotary.forward = angles
    for module in model.modules():
        if hasattr(module, "variance_epsilon"):
            module.forward = norm_of(module)


class TransformersModel:
    """A checkpoint on a device; modules are made as they are asked for, one precision at a time."""

    def __init__(self, directory: pathlib.Path, config: dict[str, Any], device: str):
        quiet()
        self._directory, self._config, self._device = directory, config, device
        self._loaded: dict[str, torch.nn.Module] = {}
        self._key: tuple[str, str] | None = None
        self._peer: torch.nn.Module | None = None

    def _load(self, attention: str) -> torch.nn.Module:
        if attention not in self._loaded:
            model = transformers.AutoModelForCausalLM.from_pretrained(self._directory, attn_implementation=attention)
            self._loaded[attention] = model.to(self._device).eval()
        return self._loaded[attention]

    def _logits(self, model: torch.nn.Module, tokens: np.ndarray) -> torch.Tensor:
        ids = torch.from_numpy(tokens.astype(np.int64)).to(self._device)
        with torch.inference_mode():
            return model(ids, use_cache=False).logits.double()

    def _decoded(self, model: torch.nn.Module, tokens: np.ndarray, caches: Caches, positions: list[int]) -> torch.Tensor:
        """The logits of each sequence's token at its position, over the keys and values before it; one at a time."""
        keyword = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"  # until 5
        logits = []
        for b, position in enumerate(positions):
            cache = transformers.DynamicCache()
            for layer, keys_and_values in enumerate(caches):
                past = (torch.from_numpy(one[b : b + 1, :, :position]) for one in keys_and_values)
                cache.update(*(one.to(self._device, model.dtype) for one in past), layer)
            ids = torch.from_numpy(tokens[b : b + 1, position : position + 1].astype(np.int64)).to(self._device)
            with torch.inference_mode():
                logits.append(model(ids, **{keyword: cache}).logits.double())
        return torch.cat(logits)

    def truths(self, batches: list[np.ndarray]) -> list[torch.Tensor]:
        """fp64 logits. Upcasting is switched off: it would bring fp64 scores *down* to fp32, and is exact otherwise. So
        would the softmax of the Llama family's eager attention."""
        is_llama = self._config["model_type"] in llama.HEADS
        model = copy.deepcopy(self._load("sdpa" if is_llama else "eager")).double()
        for module in model.modules():
            if hasattr(module, "reorder_and_upcast_attn"):
                module.reorder_and_upcast_attn = False
        if is_llama:
            make_all_fp64(model, self._config)
        return [self._logits(model, tokens) for tokens in batches]

    def peer(
        self, precision: str, attention: str, tokens: np.ndarray, caches: Caches | None, positions: list[int]
    ) -> torch.Tensor:
        """Logits in a precision: SDPA to compare with kbench's fused attention and that over a cache, eager with
        unfused. With `caches`, those of the token of each sequence at its position.

        SDPA knows no upcasting, so a model that asks for it is always eager.
        """
        dtype = pytorch.set_precision(torch, precision)
        sdpa = attention != "unfused" and not self._config.get("reorder_and_upcast_attn")
        key = (precision, "sdpa" if sdpa else "eager")
        if key != self._key:
            self._peer = None
            self._peer = copy.deepcopy(self._load(key[1])).to(dtype)
            self._key = key
        if caches is not None:
            return self._decoded(self._peer, tokens, caches, positions)
        return self._logits(self._peer, tokens)

    def as_tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values).to(self._device).double()


def quiet() -> None:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def versions() -> dict[str, str]:
    return pytorch.versions(torch) | {"transformers": transformers.__version__}

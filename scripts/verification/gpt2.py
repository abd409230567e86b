"""GPT-2 for checks: sizes, sharp random weights, their files as Hugging Face lays them out, and a forward in NumPy.

Random weights as GPT-2 is initialised would hide errors: biases are 0 and layer norm weights 1 (so a dropped one
changes nothing), and attention is so flat that a wrong mask or scale hardly shows. Here every parameter is random, and
c_attn is three times as large: scores then have a standard deviation of 3 (width 768) to 5 (1280).
"""

import json
import math
import pathlib
import struct
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

Weights = dict[str, np.ndarray]

ATTENTION = "h.{}.attn"  # kbench's name of a layer's


def _config(
    n_embd: int, n_layer: int, n_head: int, vocab_size: int = 50257, n_positions: int = 1024, **options: bool
) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "activation_function": "gelu_new",
        "n_embd": n_embd,
        "n_layer": n_layer,
        "n_head": n_head,
        "vocab_size": vocab_size,
        "n_positions": n_positions,
        "layer_norm_epsilon": 1e-5,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "scale_attn_by_inverse_layer_idx": options.get("scale_attn_by_inverse_layer_idx", False),
        "reorder_and_upcast_attn": options.get("reorder_and_upcast_attn", False),
    }


# kbench's names and sizes, and a tiny one for machines without a GPU: odd vocabulary, both of CodeParrot's options.
CONFIGS = {
    "gpt2-tiny": _config(128, 2, 2, 503, 64, scale_attn_by_inverse_layer_idx=True, reorder_and_upcast_attn=True),
    "gpt2": _config(768, 12, 12),
    "gpt2-medium": _config(1024, 24, 16),
    "gpt2-large": _config(1280, 36, 20),
    "gpt2-large-codeparrot": _config(
        1280, 36, 20, 32768, scale_attn_by_inverse_layer_idx=True, reorder_and_upcast_attn=True
    ),
    "gpt2-xl": _config(1600, 48, 25),
}


def _shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    width = config["n_embd"]
    shapes: dict[str, tuple[int, ...]] = {
        "wte.weight": (config["vocab_size"], width),
        "wpe.weight": (config["n_positions"], width),
    }
    for layer in range(config["n_layer"]):
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"h.{layer}.{norm}.weight": (width,), f"h.{layer}.{norm}.bias": (width,)}
        linears = {"attn.c_attn": (1, 3), "attn.c_proj": (1, 1), "mlp.c_fc": (1, 4), "mlp.c_proj": (4, 1)}
        for name, (inputs, outputs) in linears.items():
            shapes[f"h.{layer}.{name}.weight"] = (inputs * width, outputs * width)
            shapes[f"h.{layer}.{name}.bias"] = (outputs * width,)
    return shapes | {"ln_f.weight": (width,), "ln_f.bias": (width,)}


def fill_weights(
    shapes: dict[str, tuple[int, ...]], seed: int, deviation_and_mean: Callable[[str], tuple[float, float]]
) -> Weights:
    """fp32 and normal, by name; the same for a seed on every machine, however many threads fill them."""

    def fill(item: tuple[str, tuple[int, ...]]) -> tuple[str, np.ndarray]:
        name, shape = item
        values = np.random.default_rng([seed, zlib.crc32(name.encode())]).standard_normal(shape, dtype=np.float32)
        deviation, mean = deviation_and_mean(name)
        values *= deviation
        values += mean
        return name, values

    with ThreadPoolExecutor() as pool:
        return dict(pool.map(fill, shapes.items()))


def random_weights(config: dict[str, Any], seed: int) -> Weights:
    """By the checkpoint's names."""

    def deviation_and_mean(name: str) -> tuple[float, float]:
        if ".ln_" in name or name.startswith("ln_"):
            return 0.2, float(name.endswith("weight"))
        if name.endswith("bias"):
            return 0.1, 0.0
        if name.endswith("c_proj.weight"):
            return 0.02 / math.sqrt(2 * config["n_layer"]), 0.0
        return (0.06 if "c_attn" in name else 0.02), 0.0

    return fill_weights(_shapes(config), seed, deviation_and_mean)


def write_safetensors_model(directory: pathlib.Path, config: dict[str, Any], weights: Weights) -> None:
    """config.json and model.safetensors: 8 bytes of header length, a JSON header, the tensors one after the other."""
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, values in weights.items():
        header[name] = {
            "dtype": "F32",
            "shape": list(values.shape),
            "data_offsets": [offset, offset + values.nbytes],
        }
        offset += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(directory / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in weights.values():
            file.write(values.data)


def write_model(directory: pathlib.Path, config: dict[str, Any], weights: Weights) -> None:
    write_safetensors_model(directory, config, {f"transformer.{name}": values for name, values in weights.items()})


def _layer_norm(x: np.ndarray, weights: Weights, name: str, epsilon: float) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt((centred * centred).mean(-1, keepdims=True) + epsilon)
    return centred * rstd * weights[name + ".weight"] + weights[name + ".bias"]


def _linear(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    return x @ weights[name + ".weight"].astype(np.float64) + weights[name + ".bias"]


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    batch, heads, seq, size = q.shape
    scores = np.where(np.tri(seq, dtype=bool), q @ k.swapaxes(-1, -2) * scale, -np.inf)
    probabilities = np.exp(scores - scores.max(-1, keepdims=True))
    probabilities /= probabilities.sum(-1, keepdims=True)
    return (probabilities @ v).transpose(0, 2, 1, 3).reshape(batch, seq, heads * size)


def forward_fp64(config: dict[str, Any], weights: Weights, tokens: np.ndarray) -> np.ndarray:
    """Logits [batch, seq, vocabulary]. One matrix at a time is widened, which keeps memory near the fp32 weights'."""
    return forward_and_caches_fp64(config, weights, tokens)[0]


def forward_and_caches_fp64(
    config: dict[str, Any], weights: Weights, tokens: np.ndarray
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Also the keys and values of each layer, [batch, heads, seq, head size]."""
    caches = []
    epsilon, heads = config["layer_norm_epsilon"], config["n_head"]
    x = weights["wte.weight"].astype(np.float64)[tokens] + weights["wpe.weight"][: tokens.shape[1]]
    for layer in range(config["n_layer"]):
        h = f"h.{layer}"
        scale = (config["n_embd"] // heads) ** -0.5
        if config["scale_attn_by_inverse_layer_idx"]:
            scale /= layer + 1
        qkv = _linear(_layer_norm(x, weights, h + ".ln_1", epsilon), weights, h + ".attn.c_attn")
        q, k, v = qkv.reshape(*tokens.shape, 3, heads, -1).transpose(2, 0, 3, 1, 4)
        caches.append((k, v))
        x = x + _linear(_attention(q, k, v, scale), weights, h + ".attn.c_proj")
        u = _linear(_layer_norm(x, weights, h + ".ln_2", epsilon), weights, h + ".mlp.c_fc")
        gelu = 0.5 * u * (1 + np.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3)))
        x = x + _linear(gelu, weights, h + ".mlp.c_proj")
    return _layer_norm(x, weights, "ln_f", epsilon) @ weights["wte.weight"].astype(np.float64).T, caches

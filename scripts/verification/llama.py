"""The Llama family for checks: sizes, sharp random weights, their files as Hugging Face lays them out, and a forward in
NumPy. As in gpt2.py every parameter is random, and attention is sharp, so that a wrong one shows.
"""

import math
from typing import Any

import numpy as np

from verification.gpt2 import Weights, fill_weights, write_safetensors_model

ATTENTION = "layers.{}.self_attn"  # kbench's name of a layer's

HEADS = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}


def _config(model_type: str, **keys: Any) -> dict[str, Any]:
    config = {
        "model_type": model_type,
        "architectures": [HEADS[model_type]],
        "hidden_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "intermediate_size": 176,
        "vocab_size": 503,
        "max_position_embeddings": 128,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    return config | keys


# Tiny ones, each with what its family has and the others lack.
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
CONFIGS = {
    "llama-tiny": _config("llama", rope_scaling=LLAMA3, tie_word_embeddings=True),
    "llama-yarn-tiny": _config(
        "llama",
        rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
        attention_bias=True,
        mlp_bias=True,
    ),
    "mistral-tiny": _config("mistral", sliding_window=9),
    "qwen2-tiny": _config("qwen2", use_sliding_window=True, sliding_window=7, max_window_layers=2),
    "qwen3-tiny": _config("qwen3", head_dim=32, rope_theta=1e6, tie_word_embeddings=True),
}


def head_dim(config: dict[str, Any]) -> int:
    return int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])


def _has_bias(config: dict[str, Any], product: str) -> bool:
    if product in ("q_proj", "k_proj", "v_proj") and config["model_type"] == "qwen2":
        return True
    return bool(config.get("mlp_bias" if product in ("gate_proj", "up_proj", "down_proj") else "attention_bias"))


def _shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    width, inner, size = config["hidden_size"], config["intermediate_size"], head_dim(config)
    q, kv = config["num_attention_heads"] * size, config["num_key_value_heads"] * size
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config["vocab_size"], width)}
    for index in range(config["num_hidden_layers"]):
        layer = f"model.layers.{index}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{layer}.{norm}.weight"] = (width,)
        products = {"self_attn": {"q_proj": (q, width), "k_proj": (kv, width), "v_proj": (kv, width)}}
        products["self_attn"]["o_proj"] = (width, q)
        products["mlp"] = {"gate_proj": (inner, width), "up_proj": (inner, width), "down_proj": (width, inner)}
        for module, of_module in products.items():
            for product, shape in of_module.items():
                shapes[f"{layer}.{module}.{product}.weight"] = shape
                if _has_bias(config, product):
                    shapes[f"{layer}.{module}.{product}.bias"] = shape[:1]
        if config["model_type"] == "qwen3":
            shapes |= {f"{layer}.self_attn.{norm}.weight": (size,) for norm in ("q_norm", "k_norm")}
    shapes["model.norm.weight"] = (width,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], width)
    return shapes


def random_weights(config: dict[str, Any], seed: int) -> Weights:
    """fp32, by the checkpoint's names; the same for a seed on every machine."""

    def deviation_and_mean(name: str) -> tuple[float, float]:
        if "norm." in name:
            return 0.2, 1.0
        if name.endswith("bias"):
            return 0.1, 0.0
        if ".o_proj." in name or ".down_proj." in name:
            return 0.1 / math.sqrt(2 * config["num_hidden_layers"]), 0.0
        return (0.2 if ".q_proj." in name or ".k_proj." in name else 0.1), 0.0

    return fill_weights(_shapes(config), seed, deviation_and_mean)


write_model = write_safetensors_model


def rope(config: dict[str, Any]) -> tuple[np.ndarray, float]:
    """Radians a token of each pair of columns, and the factor of cosines and sines: modeling_rope_utils.py in fp64."""
    size, theta = head_dim(config), config["rope_theta"]
    frequencies = theta ** (-np.arange(0, size, 2) / size)
    scaling = config.get("rope_scaling") or {"rope_type": "default"}
    kind = scaling["rope_type"]
    if kind == "default":
        return frequencies, 1.0
    factor = scaling["factor"]
    if kind == "linear":
        return frequencies / factor, 1.0
    original = scaling["original_max_position_embeddings"]
    if kind == "llama3":
        turns = original * frequencies / (2 * math.pi)
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        kept = np.clip((turns - low) / (high - low), 0, 1)
        return frequencies * (kept + (1 - kept) / factor), 1.0
    assert kind == "yarn", kind

    def pair_that_turns(times: float) -> float:
        return size * math.log(original / (times * 2 * math.pi)) / (2 * math.log(theta))

    first, last = max(math.floor(pair_that_turns(32)), 0), min(math.ceil(pair_that_turns(1)), size - 1)
    stretched = np.clip((np.arange(size // 2) - first) / max(last - first, 0.001), 0, 1)
    return frequencies * (1 - stretched + stretched / factor), 0.1 * math.log(factor) + 1


def window_of(config: dict[str, Any], layer: int) -> int | None:
    if config["model_type"] == "mistral":
        return config["sliding_window"]
    slides = config.get("use_sliding_window") and layer >= config["max_window_layers"]
    return config["sliding_window"] if slides else None


def _rms_norm(x: np.ndarray, weights: Weights, name: str, epsilon: float) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weights[name + ".weight"]


def _linear(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    product = x @ weights[name + ".weight"].astype(np.float64).T
    return product + weights[name + ".bias"] if name + ".bias" in weights else product


def _rotated(x: np.ndarray, cosines: np.ndarray, sines: np.ndarray) -> np.ndarray:
    low, high = np.split(x, 2, axis=-1)
    return np.concatenate([low * cosines - high * sines, high * cosines + low * sines], axis=-1)


def forward_fp64(config: dict[str, Any], weights: Weights, tokens: np.ndarray) -> np.ndarray:
    """Logits [batch, seq, vocabulary]."""
    return forward_and_caches_fp64(config, weights, tokens)[0]


def forward_and_caches_fp64(
    config: dict[str, Any], weights: Weights, tokens: np.ndarray
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Also the keys, rotated, and the values of each layer, [batch, kv heads, seq, head size]."""
    epsilon, size = config["rms_norm_eps"], head_dim(config)
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    batch, seq = tokens.shape
    frequencies, factor = rope(config)
    angles = np.arange(seq)[:, None] * frequencies
    cosines, sines = factor * np.cos(angles), factor * np.sin(angles)
    distance = np.arange(seq)[:, None] - np.arange(seq)
    x = weights["model.embed_tokens.weight"].astype(np.float64)[tokens]
    caches = []
    for index in range(config["num_hidden_layers"]):
        layer = f"model.layers.{index}"
        y = _rms_norm(x, weights, layer + ".input_layernorm", epsilon)

        def of_heads(name: str, y: np.ndarray = y, attention: str = layer + ".self_attn") -> np.ndarray:
            of_rows = _linear(y, weights, f"{attention}.{name}_proj").reshape(batch, seq, -1, size)
            if f"{attention}.{name}_norm.weight" in weights:
                of_rows = _rms_norm(of_rows, weights, f"{attention}.{name}_norm", epsilon)
            return of_rows.transpose(0, 2, 1, 3)

        q, k, v = _rotated(of_heads("q"), cosines, sines), _rotated(of_heads("k"), cosines, sines), of_heads("v")
        caches.append((k, v))
        k, v = (np.repeat(one, heads // kv_heads, axis=1) for one in (k, v))
        window = window_of(config, index)
        visible = (distance >= 0) & (distance < (window or seq))
        scores = np.where(visible, q @ k.swapaxes(-1, -2) / math.sqrt(size), -np.inf)
        probabilities = np.exp(scores - scores.max(-1, keepdims=True))
        probabilities /= probabilities.sum(-1, keepdims=True)
        y = (probabilities @ v).transpose(0, 2, 1, 3).reshape(batch, seq, heads * size)
        x = x + _linear(y, weights, layer + ".self_attn.o_proj")
        y = _rms_norm(x, weights, layer + ".post_attention_layernorm", epsilon)
        gate, up = _linear(y, weights, layer + ".mlp.gate_proj"), _linear(y, weights, layer + ".mlp.up_proj")
        x = x + _linear(gate / (1 + np.exp(-gate)) * up, weights, layer + ".mlp.down_proj")
    head = "model.embed_tokens" if config["tie_word_embeddings"] else "lm_head"
    return _linear(_rms_norm(x, weights, "model.norm", epsilon), weights, head), caches

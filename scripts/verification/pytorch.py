"""PyTorch as kbench's peer: whether it is there, and kbench's precisions in its words."""

from typing import Any

from verification.process import MISSING, Stop

TYPES = {"fp16": "float16", "bf16": "bfloat16", "tf32": "float32", "fp32": "float32", "fp64": "float64"}


def find(backend: str) -> Any:
    try:
        import torch
    except ImportError as error:
        raise Stop(MISSING, "Python has no PyTorch") from error
    if backend == "cuda" and not torch.cuda.is_available():
        raise Stop(MISSING, "PyTorch finds no GPU")
    return torch


def versions(torch: Any) -> dict[str, str]:
    return {"torch": torch.__version__, "cuda": str(torch.version.cuda)}


def set_precision(torch: Any, precision: str) -> Any:
    """The type of operands. Whether fp32 products may use tf32 is said in all of the places that PyTorch looks at."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    return getattr(torch, TYPES[precision])

"""What programs that run PyTorch for a script have in common (peer.py starts them): a request comes as JSON in the one
argument; out go JSON objects, one a line: first the machine, then the figures."""

import json
import os
import sys
from typing import Any

import torch
import transformers

from verification import pytorch
from verification.transformers_gpt2 import versions


def emit(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def start() -> dict[str, Any]:
    """The request, once the machine has been told."""
    request = json.loads(sys.argv[1])
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    device = request["device"]
    pytorch.find(device)
    if device == "cpu":
        torch.set_num_threads(request["threads"])
    emit(
        versions=versions(),
        device=torch.cuda.get_device_name() if device == "cuda" else None,
        threads=torch.get_num_threads(),
        binding={name: os.environ.get(name) for name in ("OMP_PLACES", "OMP_PROC_BIND")},
    )
    return request


def first_line(error: Exception) -> str:
    """Of what PyTorch says, which may be pages."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]

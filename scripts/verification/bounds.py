"""How far a model in a precision may be from the truth, and the cases that it is asked about."""

from dataclasses import dataclass
from typing import Any

from verification.process import BAD_USAGE, Stop


@dataclass(frozen=True)
class Bound:
    """On the relative error: never above `cap`, and above a multiple of the peer's only under `floor`."""

    cap: float
    floor: float


BOUNDS = {
    "fp16": Bound(5e-3, 1e-4),
    "bf16": Bound(4e-2, 1e-3),
    "tf32": Bound(5e-3, 1e-4),
    "fp32": Bound(1e-5, 2e-6),
    "fp64": Bound(1e-12, 1e-15),
}


def parse_cases(texts: list[str], model: str, config: dict[str, Any], least_seq: int = 1) -> list[tuple[int, int]]:
    """Batch and sequence length of each."""
    cases = []
    for text in texts:
        parts = text.split("x")
        if len(parts) != 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
            raise Stop(BAD_USAGE, f"--cases '{text}': must be BATCHxSEQ, such as 3x17")
        batch, seq = (int(part) for part in parts)
        if seq > config["n_positions"]:
            raise Stop(BAD_USAGE, f"--cases: seq {seq} is over {model}'s {config['n_positions']} positions")
        if seq < least_seq:
            raise Stop(BAD_USAGE, f"--cases '{text}': must be of {least_seq} tokens or more")
        cases.append((batch, seq))
    return cases

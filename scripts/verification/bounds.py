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
VANISHING = 1e-9  # a gradient that is this short compared with all together is rounding alone


def parse_batches(texts: list[str], length: str) -> list[tuple[int, int]]:
    """Batch and, in words, `length` of each."""
    cases = []
    for text in texts:
        parts = text.split("x")
        if len(parts) != 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
            raise Stop(BAD_USAGE, f"--cases '{text}': must be BATCHx{length.upper()}, such as 3x17")
        cases.append((int(parts[0]), int(parts[1])))
    return cases


def parse_cases(texts: list[str], model: str, config: dict[str, Any]) -> list[tuple[int, int]]:
    """Batch and sequence length of each."""
    cases = parse_batches(texts, "seq")
    for _, seq in cases:
        longest = config.get("n_positions") or config["max_position_embeddings"]
        if seq > longest:
            raise Stop(BAD_USAGE, f"--cases: seq {seq} is over {model}'s {longest} positions")
    return cases

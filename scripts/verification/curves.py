"""Loss curves: a source of tokens whose entropy is known, kbench's progress as numbers, and when two curves agree."""

import bisect
import re
from dataclasses import dataclass

import numpy as np

from verification.process import FAILED, Stop

LAST = 10  # steps whose mean is a curve's end; `kbench train` tells the same
OF_PEER = 0.005  # fp32: at every step, of PyTorch's loss
OF_ENTROPY = 0.05  # fp32's end, of the source's entropy, above and below: no model stays below it that sees no target
OF_FP32 = 0.01  # the other precisions' ends, of fp32's

STEP = re.compile(r"step +(\d+)/\d+  loss (\S+)")
SKIPPED = re.compile(r"step (\d+): a gradient is not finite")


class MarkovSource:
    """A first-order chain as `kbench train --data synthetic` draws from: 64 tokens, four likely successors each with
    90 % of the probability, the rest shared by all. Of the same law, not the same tokens."""

    states, likely, of_likely = 64, 4, 0.9

    def __init__(self, seed: int):
        self._random = np.random.default_rng(seed)
        self.transitions = np.full((self.states, self.states), (1 - self.of_likely) / self.states)
        for row in self.transitions:
            weights = 0.1 + self._random.random(self.likely)
            for weight in weights * (self.of_likely / weights.sum()):
                row[self._random.integers(self.states)] += weight  # drawn twice: so much likelier
        stationary = np.full(self.states, 1 / self.states)
        for _ in range(400):  # what is not stationary shrinks to 0.9 or less a step: 1e-18 is left
            stationary = stationary @ self.transitions
        # Nats a token (Cover and Thomas, "Elements of Information Theory", 2nd ed., theorem 4.2.4).
        self.entropy = float(-(stationary[:, None] * self.transitions * np.log(self.transitions)).sum())

    def tokens(self, count: int) -> np.ndarray:
        """The first ones; int32."""
        bounds = self.transitions.cumsum(1)
        bounds[:, -1] = 1  # not 1 - 1e-16: a draw may lie above it
        rows, state = bounds.tolist(), 0
        out = np.empty(count, dtype=np.int32)
        for i, draw in enumerate(self._random.random(count).tolist()):
            out[i] = state = bisect.bisect_right(rows[state], draw)
        return out

    def losses(self, batches: np.ndarray) -> np.ndarray:
        """What the source itself would lose a step, as it knows its probabilities; batches [steps, batch, seq]."""
        return -np.log(self.transitions[batches[..., :-1], batches[..., 1:]]).mean((1, 2))


def parse_losses(text: str, steps: int) -> tuple[list[float], list[int]]:
    """Reads `kbench train --log-every 1`: a loss a step (its four decimals are 0.003 % of a nat and a half), and the
    steps that loss scaling skipped."""
    found = [(int(step), float(loss)) for step, loss in STEP.findall(text)]
    if [step for step, _ in found] != list(range(1, steps + 1)):
        raise Stop(FAILED, f"kbench train told of {len(found)} steps; it was asked for {steps}, each with its loss")
    return [loss for _, loss in found], [int(step) for step in SKIPPED.findall(text)]


def end(losses: list[float]) -> float:
    return sum(losses[-LAST:]) / len(losses[-LAST:])


def largest_difference(losses: list[float], of: list[float]) -> tuple[float, int]:
    """Relative, and its step, from 1; NaN is larger than any."""
    differences = np.abs(np.array(losses) / np.array(of) - 1)
    worst = int(np.argmax(np.where(np.isnan(differences), np.inf, differences)))
    return float(differences[worst]), worst + 1


@dataclass(frozen=True)
class Figure:
    """How far one number is from another, relative to that; signed where both are ends."""

    value: float
    allowed: float | None = None  # a share of its magnitude; None: only told
    step: int | None = None

    @property
    def passed(self) -> bool:
        """NaN never has."""
        return self.allowed is None or abs(self.value) <= self.allowed

    def __str__(self) -> str:
        text = f"{self.value:+.3%}" if self.step is None else f"{self.value:.3%} (step {self.step})"
        if self.allowed is None:
            return text
        return f"{text}, at most {self.allowed:.1%}" if self.passed else f"**{text}, over {self.allowed:.1%}**"


FIGURES = [
    "every step, of PyTorch's",
    "end, of PyTorch's",
    "end, of the entropy",
    "end, of fp32's",
    "PyTorch's end, of its fp32's",
]


def judge(kbench: dict[str, list[float]], torch: dict[str, list[float]], entropy: float) -> dict[str, dict[str, Figure]]:
    """Compares curves by precision, fp32 among them: each precision has its figures by FIGURES."""
    ends = {precision: end(losses) for precision, losses in kbench.items()}
    torch_ends = {precision: end(losses) for precision, losses in torch.items()}
    judged = {}
    for precision, losses in kbench.items():
        fp32 = precision == "fp32"
        difference, step = largest_difference(losses, torch[precision])
        figures = {
            "every step, of PyTorch's": Figure(difference, OF_PEER if fp32 else None, step),
            "end, of PyTorch's": Figure(ends[precision] / torch_ends[precision] - 1),
            "end, of the entropy": Figure(ends[precision] / entropy - 1, OF_ENTROPY if fp32 else None),
        }
        if not fp32:
            figures |= {
                "end, of fp32's": Figure(ends[precision] / ends["fp32"] - 1, OF_FP32),
                "PyTorch's end, of its fp32's": Figure(torch_ends[precision] / torch_ends["fp32"] - 1),
            }
        judged[precision] = figures
    return judged

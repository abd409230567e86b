"""Gates of Hardtanh that rounding moves, and what each does to Deep Speech 2's gradients.

A gate is open where Hardtanh's input lies within its edges. Of some millions of inputs a few lie so close to an edge that
fp32's rounding carries them across, and each such gate moves the gradients by far more than all other rounding does.
That is no error of a sum. Here is the fp64 gradients' change by each gate that could move, so that what moved gates did
can be told from gradients alone, and taken out: gates are moved as a whole or not at all.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from verification.bounds import VANISHING

Gradients = dict[str, torch.Tensor]

# Share of what is left of an error's square: less is what its other rounding has in common with any direction.
GAIN = 1e-3
WEIGHT = 0.1


@dataclass
class Flips:
    """By gate: where it is (which Hardtanh, which element), and by parameter in front of it what moving it adds to the
    gradients [gates, ...]."""

    places: list[tuple[int, int]]
    changes: dict[str, torch.Tensor]


class _Inputs:
    """Within, what a model's Hardtanhs read and make, in their order."""

    def __init__(self, model: nn.Module):
        self.model, self.read, self.made = model, [], []

    def __enter__(self) -> "_Inputs":
        def keep(module: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
            self.read.append(inputs[0])
            self.made.append(output)

        self.handles = [m.register_forward_hook(keep) for m in self.model.modules() if isinstance(m, nn.Hardtanh)]
        return self

    def __exit__(self, *_: Any) -> None:
        for handle in self.handles:
            handle.remove()


def is_open(x: torch.Tensor) -> torch.Tensor:
    """Whether gradients pass Hardtanh(0, 20) at x."""
    return (x > 0) & (x < 20)


class Gated(torch.autograd.Function):
    """Hardtanh(0, 20) of x, whose gradients pass where `gates` say so."""

    @staticmethod
    def forward(context, x, gates):  # noqa: ANN001, ANN205
        context.save_for_backward(gates)
        return x.clamp(0, 20)

    @staticmethod
    def backward(context, gradient):  # noqa: ANN001, ANN205
        return gradient * context.saved_tensors[0], None


def find(model: Any, within: float, most: int) -> Flips:
    """Asks `model`, which is ready for its loss in fp64: model.loss() gives it. Gates at most `within` from an edge, the
    nearest `most` of them; masked elements, which are 0, have none."""
    with _Inputs(model.module) as clips:
        loss = model.loss()
    upstream = torch.autograd.grad(loss, clips.made, retain_graph=True)
    near = []
    for i, x in enumerate(clips.read):
        x = x.detach().flatten()
        distance = torch.minimum(x.abs(), (x - 20).abs())
        for element in ((distance <= within) & (x != 0)).nonzero().flatten().tolist():
            near.append((float(distance[element]), i, element))
    places = [(i, element) for _, i, element in sorted(near)[:most]]
    parameters = dict(model.in_front)
    changes: dict[str, list[torch.Tensor]] = {name: [] for name in parameters}
    for i, element in places:
        x = clips.read[i]
        of_gate = torch.zeros_like(x)
        sign = -1 if bool(is_open(x.detach().flatten()[element])) else 1
        of_gate.view(-1)[element] = sign * upstream[i].flatten()[element]
        made = torch.autograd.grad(x, list(parameters.values()), of_gate, retain_graph=True, allow_unused=True)
        for (name, parameter), change in zip(parameters.items(), made, strict=True):
            changes[name].append(torch.zeros_like(parameter) if change is None else change)
    return Flips(places, {name: torch.stack(of) for name, of in changes.items()} if places else {})


def gates(model: Any) -> list[torch.Tensor]:
    """Which are open, of each Hardtanh, as the model's own forward makes them."""
    with _Inputs(model.module) as clips, torch.no_grad():
        model.loss()
    return [is_open(x).flatten() for x in clips.read]


def moved(flips: Flips, made: Gradients, truth: Gradients) -> tuple[list[int], list[float]]:
    """The flips that bring `truth` nearest to `made`: one after another the one that brings it furthest, while any does.
    And by how much of its change each would do so best, all together: 1 where it is that gate that moved, and what is
    further from it than WEIGHT is not taken for one. Each parameter weighs by its length."""
    if not flips.places:
        return [], []
    names = list(flips.changes)
    norms = {name: float(truth[name].norm()) for name in names}
    of_all = math.hypot(*norms.values())
    # A bias in front of a batch norm has a gradient of rounding alone.
    scale = {name: 1 / (norm if norm > VANISHING * of_all else of_all) for name, norm in norms.items()}
    changes = torch.cat([flips.changes[name].flatten(1) * scale[name] for name in names], 1)
    error = torch.cat([(made[name] - truth[name]).flatten() * scale[name] for name in names])
    of_error, squares = changes @ error, changes @ changes.T
    products, left, found = of_error.clone(), float(error.square().sum()), []
    while True:
        gain = 2 * products - squares.diagonal()  # by how much the square of what is left shrinks
        gain[found] = -1
        best = int(gain.argmax())
        if not float(gain[best]) > GAIN * left:  # nor where an error is not a number
            break
        found.append(best)
        left -= float(gain[best])
        products = products - squares[best]
    while found:
        weights = torch.linalg.solve(squares[found][:, found], of_error[found])
        worst = int((weights - 1).abs().argmax())
        if abs(float(weights[worst]) - 1) <= WEIGHT:
            return found, weights.tolist()
        found.pop(worst)
    return [], []


def with_moved(truth: Gradients, flips: Flips, found: list[int]) -> Gradients:
    return truth | {name: truth[name] + change[found].sum(0) for name, change in flips.changes.items() if found}

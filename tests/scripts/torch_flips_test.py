"""What a moved gate does to gradients, and which moved, in a small model in PyTorch. Skipped (77) where that is missing."""

import pathlib
import sys
import unittest
from types import SimpleNamespace

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))

try:
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from verification import torch_flips  # noqa: E402


class Clip(torch.nn.Hardtanh):
    """Whose gates at some elements are the other way round backward."""

    def __init__(self) -> None:
        super().__init__(0, 20)
        self.moved: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gates = torch_flips.is_open(x)
        gates.view(-1)[self.moved] = ~gates.view(-1)[self.moved]
        return torch_flips.Gated.apply(x, gates)


class MovedGates(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(1)
        conv, norm = torch.nn.Conv2d, torch.nn.BatchNorm2d
        self.clips = [Clip(), Clip()]
        self.model = torch.nn.Sequential(
            conv(1, 4, 5, 2, 2), norm(4), self.clips[0], conv(4, 4, 3, 1, 1), norm(4), self.clips[1]
        ).double()
        x = torch.randn(2, 1, 20, 60, dtype=torch.float64)
        weights = torch.randn(2, 4, 10, 30, dtype=torch.float64)

        def loss() -> torch.Tensor:
            return (self.model(x).tanh() * weights).sum()

        self.asked = SimpleNamespace(module=self.model, loss=loss, in_front=list(self.model.named_parameters()))
        self.truth = self.gradients()
        self.flips = torch_flips.find(self.asked, within=1e-2, most=400)
        self.assertGreater(len(self.flips.places), 5)

    def gradients(self, moved: tuple[tuple[int, int], ...] = ()) -> torch_flips.Gradients:
        for i, clip in enumerate(self.clips):
            clip.moved = [element for which, element in moved if which == i]
        self.model.zero_grad()
        self.asked.loss().backward()
        made = {name: value.grad.clone() for name, value in self.model.named_parameters()}
        for clip in self.clips:
            clip.moved = []
        return made

    def noisy(self, gradients: torch_flips.Gradients, relative: float) -> torch_flips.Gradients:
        return {
            name: of + relative * of.norm() * torch.randn_like(of) / of.numel() ** 0.5 for name, of in gradients.items()
        }

    def test_a_gates_change_is_what_autograd_makes_with_that_gate_moved(self) -> None:
        for i, place in enumerate(self.flips.places):
            made = self.gradients((place,))
            for name, change in self.flips.changes.items():
                left = (made[name] - self.truth[name] - change[i]).norm()
                self.assertLess(float(left), 1e-10 * float(self.truth[name].norm()) + 1e-12, f"{place} {name}")
        self.assertTrue(any(which == 0 for which, _ in self.flips.places))
        self.assertTrue(any(which == 1 for which, _ in self.flips.places))

    def test_gates_that_moved_are_found_and_others_are_not(self) -> None:
        by_effect = sorted(
            range(len(self.flips.places)), key=lambda i: -sum(float(of[i].norm()) for of in self.flips.changes.values())
        )
        moved = sorted(by_effect[:2])
        made = self.noisy(self.gradients(tuple(self.flips.places[i] for i in moved)), 1e-5)
        found, weights = torch_flips.moved(self.flips, made, self.truth)
        self.assertLessEqual(set(moved), set(found))
        for index, weight in zip(found, weights, strict=True):
            self.assertAlmostEqual(weight, 1, delta=0.1)
            if index in moved:
                self.assertAlmostEqual(weight, 1, delta=0.02)
        without = torch_flips.with_moved(self.truth, self.flips, found)
        for name, gradient in made.items():
            if name.endswith("weight"):
                self.assertLess(float((gradient - without[name]).norm() / gradient.norm()), 3e-5, name)

    def test_nothing_is_found_in_errors_that_no_gate_made(self) -> None:
        for relative in (1e-6, 1e-3, 1e-1):
            made = self.noisy(self.truth, relative)
            found, _ = torch_flips.moved(self.flips, made, self.truth)
            without = torch_flips.with_moved(self.truth, self.flips, found)
            for name in ("0.weight", "3.weight"):
                errors = [float((made[name] - of[name]).norm()) for of in (self.truth, without)]
                self.assertGreater(errors[1], 0.95 * errors[0], f"{relative} {name} {len(found)}")

    def test_half_of_a_gate_is_none(self) -> None:
        strongest = max(
            range(len(self.flips.places)), key=lambda i: sum(float(of[i].norm()) for of in self.flips.changes.values())
        )
        half = {name: self.truth[name] + 0.7 * change[strongest] for name, change in self.flips.changes.items()}
        found, _ = torch_flips.moved(self.flips, half, self.truth)
        self.assertNotIn(strongest, found)

    def test_nothing_is_found_where_gradients_are_not_numbers(self) -> None:
        for name in ("0.weight", "4.bias"):
            made = self.truth | {name: torch.full_like(self.truth[name], float("nan"))}
            self.assertEqual(torch_flips.moved(self.flips, made, self.truth), ([], []))

    def test_gates_are_those_of_the_models_own_forward(self) -> None:
        gates = torch_flips.gates(self.asked)
        self.assertEqual([of.numel() for of in gates], [2 * 4 * 10 * 30] * 2)
        self.assertTrue(0 < int(gates[0].sum()) < gates[0].numel())


if __name__ == "__main__":
    unittest.main()

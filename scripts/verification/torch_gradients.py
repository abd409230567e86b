"""What gradient-verify asks of a model: random weights and inputs in files, kbench's options for them, and loss and
gradients as autograd makes them."""

import json
import pathlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from verification import gpt2, pytorch, torch_ctc, torch_flips, torch_tf32
from verification.deepspeech2 import CONFIG
from verification.process import BAD_USAGE, Stop
from verification.torch_deepspeech2 import DeepSpeech2, Layer, randomised, recurrent, steps_of

Inputs = dict[str, np.ndarray]
Gradients = dict[str, torch.Tensor]


class Autograd:
    """A model under test. Below: `length` is the axis that kbench calls by `axis`."""

    axis: str
    cases: str  # BxLENGTH,... that are verified unless asked
    loss_scale: float  # in fp16
    draws = 1  # random inputs of a case
    has_cap = True  # on errors, whatever PyTorch's own
    model: torch.nn.Module
    weights: dict[str, torch.Tensor]

    def write(self, directory: pathlib.Path) -> None:
        """config.json and model.safetensors."""
        raise NotImplementedError

    def check_case(self, batch: int, length: int) -> None:
        """Throws Stop for what the model does not take."""

    def draw(self, batch: int, length: int, random: np.random.Generator) -> Inputs:
        """By kbench's names of inputs."""
        raise NotImplementedError

    def loss_of(self, losses: np.ndarray, inputs: Inputs) -> float:
        """From kbench's output of that name."""
        raise NotImplementedError

    def loss(self, inputs: Inputs, precision: str) -> torch.Tensor:
        raise NotImplementedError

    def emulated(self, precision: str) -> AbstractContextManager[None] | None:
        """Within, the model computes in `precision` whatever kernels PyTorch has; None where PyTorch's own do."""
        return None

    def rounded_to(self, precision: str) -> torch.nn.Module:
        """The model, without gradients."""
        model = self.model.to(pytorch.set_precision(torch, precision))
        model.load_state_dict(self.weights)  # rounded anew from fp32
        model.zero_grad(set_to_none=True)
        return model

    def gradients(
        self, precision: str, inputs: Inputs, loss_scale: float, within: AbstractContextManager[None] = nullcontext()
    ) -> tuple[float, Gradients]:
        """The loss, and by the checkpoint's names the gradients in fp64, on the device."""
        model = self.rounded_to(precision)
        with within:
            loss = self.loss(inputs, precision)
            (loss * loss_scale).backward()
        return float(loss.detach()), {
            name.removeprefix("transformer."): parameter.grad.double() / loss_scale
            for name, parameter in model.named_parameters()
        }


class Gpt2(Autograd):
    """transformers' model; labels are the tokens."""

    axis, loss_scale = "seq", 4096

    def __init__(self, name: str, directory: pathlib.Path, device: str, seed: int):
        import transformers

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self.name, self.config, self.device = name, gpt2.CONFIGS[name], device
        self.cases = "1x64,3x17" if name == "gpt2-tiny" else "1x1024,3x17,2x1000"
        gpt2.write_model(directory, self.config, gpt2.random_weights(self.config, seed))
        self.model = transformers.GPT2LMHeadModel.from_pretrained(directory, attn_implementation="sdpa").to(device)
        self.model.eval()  # dropout is 0
        self.weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def check_case(self, batch: int, length: int) -> None:
        if length > self.config["n_positions"]:
            raise Stop(BAD_USAGE, f"--cases: seq {length} is over {self.name}'s {self.config['n_positions']} positions")
        if length < 2:
            raise Stop(BAD_USAGE, "--cases: the last token of a sequence has no next one; 2 tokens or more")

    def draw(self, batch: int, length: int, random: np.random.Generator) -> Inputs:
        return {"tokens": random.integers(0, self.config["vocab_size"], (batch, length), dtype=np.int32)}

    def loss_of(self, losses: np.ndarray, inputs: Inputs) -> float:
        batch, length = inputs["tokens"].shape
        return float(losses.astype(np.float64).sum() / (batch * (length - 1)))

    def loss(self, inputs: Inputs, precision: str) -> torch.Tensor:
        """In transformers' words, but for the loss in fp32 and wider alone."""
        ids = torch.from_numpy(inputs["tokens"].astype(np.int64)).to(self.device)
        logits = self.model(ids, use_cache=False).logits[:, :-1].flatten(0, 1)
        logits = logits if precision == "fp64" else logits.float()
        return torch.nn.functional.cross_entropy(logits, ids[:, 1:].flatten())


class DeepSpeech(Autograd):
    """In training; utterances of many lengths, the first of which is full, some of them without a text."""

    axis, loss_scale, draws, has_cap = "frames", 64, 3, False

    def __init__(self, cell: str, is_tiny: bool, directory: pathlib.Path, device: str, seed: int, plant: str | None):
        sizes = {"hidden_size": 48, "hidden_layers": 2} if is_tiny else {}
        self.config, self.device, self.plant = CONFIG | {"rnn_type": cell} | sizes, device, plant
        self.cases = "1x117,3x61" if is_tiny else "1x117,3x61,8x1000"
        torch.manual_seed(seed)
        self.model = randomised(DeepSpeech2(self.config), seed).train()
        self.weights = {name: value.detach().clone().to(device) for name, value in self.model.state_dict().items()}
        self.model.to(device)
        if plant in PLANTS:
            PLANTS[plant](self.model)
        from safetensors.torch import save_file

        save_file({name: value.cpu() for name, value in self.weights.items()}, directory / "model.safetensors")
        (directory / "config.json").write_text(json.dumps(self.config), encoding="utf-8")

    def draw(self, batch: int, length: int, random: np.random.Generator) -> Inputs:
        rows = int(self.config["sample_rate"] * self.config["window_size"] / 2) + 1
        lengths = random.integers(1, length + 1, batch, dtype=np.int32)
        lengths[0] = length
        # A text of at most a third of the steps always has an alignment: at the worst each label needs a blank.
        steps = (lengths + 1) // 2
        target_lengths = random.integers(0, steps // 3 + 1, dtype=np.int32)
        target = max(1, length * 15 // 100)
        targets = random.integers(1, self.config["labels"], (batch, target), dtype=np.int32)
        return {
            "spectrogram": random.standard_normal((batch, 1, rows, length), dtype=np.float32),
            "lengths": lengths,
            "targets": targets,
            "target_lengths": np.minimum(target_lengths, target).astype(np.int32),
        }

    def loss_of(self, losses: np.ndarray, inputs: Inputs) -> float:
        return float(losses.astype(np.float64).mean())

    def emulated(self, precision: str) -> AbstractContextManager[None] | None:
        return torch_tf32.emulated(self.model) if precision == "tf32" and not self.plant else None

    def flips(self, inputs: Inputs) -> torch_flips.Flips:
        """Finds gates that fp32 may move: its rounding of Hardtanh's inputs stays below 1e-5 by far."""
        return torch_flips.find(self._of(inputs, "fp64"), within=1e-5, most=400)

    def gates(self, inputs: Inputs, precision: str) -> list[torch.Tensor]:
        return torch_flips.gates(self._of(inputs, precision))

    def _of(self, inputs: Inputs, precision: str) -> SimpleNamespace:
        model = self.rounded_to(precision)
        return SimpleNamespace(
            module=model,
            loss=lambda: self.loss(inputs, precision),
            in_front=[(name, value) for name, value in model.named_parameters() if name.startswith("conv.")],
        )

    def loss(self, inputs: Inputs, precision: str) -> torch.Tensor:
        """PyTorch's own CTC, of logits in fp32 or wider."""
        x = torch.from_numpy(inputs["spectrogram"]).to(self.device, next(self.model.parameters()).dtype)
        lengths, targets, target_lengths = (
            torch.from_numpy(inputs[name].astype(np.int64)) for name in ("lengths", "targets", "target_lengths")
        )
        logits = self.model(x, lengths)
        logits = logits if precision == "fp64" else logits.float()
        rows = torch.log_softmax(logits, 2), targets.to(self.device)
        if self.plant == "blank":
            steps, target_lengths = steps_of(lengths).to(self.device), target_lengths.to(self.device)
            return torch_ctc.losses(rows[0], steps, rows[1], target_lengths, without_last_blank=True).mean()
        return torch.nn.functional.ctc_loss(
            *rows, steps_of(lengths).to(self.device), target_lengths.to(self.device), reduction="none"
        ).mean()


def _without_gate(rnn: Any, of_x: torch.Tensor, of_h: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> Any:
    """An LSTM's next state, whose forget gate gets no gradient."""
    i, f, g, o = (of_x + of_h).chunk(4, 1)
    c = f.sigmoid().detach() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _plant_gate(model: DeepSpeech2) -> None:
    for layer in model.rnns:
        assert isinstance(layer, Layer)
        layer.recurrent = lambda x, steps, rnn=layer.rnn: recurrent(rnn, x, steps, advance=_without_gate)


def _plant_mean(model: DeepSpeech2) -> None:
    """Batch norms whose backward takes the mean for a constant."""

    def normalise(norm: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        others = [0, *range(2, x.dim())]
        centred = x - x.mean(others, keepdim=True).detach()
        variance = (centred * centred).mean(others, keepdim=True)
        shape = [1, -1] + [1] * (x.dim() - 2)
        return centred / (variance + norm.eps).sqrt() * norm.weight.view(shape) + norm.bias.view(shape)

    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.forward = lambda x, norm=module: normalise(norm, x)


# Errors in PyTorch's model, by --plant; "blank" is one of the loss.
PLANTS: dict[str, Callable[[DeepSpeech2], None]] = {"gate": _plant_gate, "mean": _plant_mean}

SPEECH = {"deepspeech2": "lstm", "deepspeech2-gru": "gru", "deepspeech2-rnn": "rnn"}
NAMES = [*gpt2.CONFIGS, *SPEECH, *(name + "-tiny" for name in SPEECH)]


def make(name: str, directory: pathlib.Path, device: str, seed: int, plant: str | None) -> Autograd:
    if name in gpt2.CONFIGS:
        if plant:
            raise Stop(BAD_USAGE, f"--plant {plant}: an error of Deep Speech 2, not of {name}")
        return Gpt2(name, directory, device, seed)
    cell = SPEECH[name.removesuffix("-tiny")]
    if plant == "gate" and cell != "lstm":
        raise Stop(BAD_USAGE, f"--plant gate: an error of LSTMs, not of {name}")
    return DeepSpeech(cell, name.endswith("-tiny"), directory, device, seed, plant)

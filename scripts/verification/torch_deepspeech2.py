"""Deep Speech 2 in plain PyTorch, with the modules, and so the names, of deepspeech.pytorch's checkpoints."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

CELLS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
FRAMES_PER_STEP = 2


def steps_of(lengths: torch.Tensor) -> torch.Tensor:
    return (lengths + FRAMES_PER_STEP - 1) // FRAMES_PER_STEP


class Masked(nn.Module):
    """Convolutions' modules, behind each of which what lies past an utterance's end becomes 0."""

    def __init__(self, modules: nn.Sequential):
        super().__init__()
        self.seq_module = modules

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """`steps` lie where x does."""
        for module in self.seq_module:
            x = module(x)
            outside = torch.arange(x.shape[3], device=x.device) >= steps[:, None]
            x = x.masked_fill(outside[:, None, None, :], 0)
        return x


class PerStep(nn.Module):
    """A module of vectors, on all vectors of sequences."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x.flatten(0, 1)).unflatten(0, x.shape[:2])


class Layer(nn.Module):
    def __init__(self, cell: str, inputs: int, hidden: int, normalised: bool):
        super().__init__()
        self.batch_norm = PerStep(nn.BatchNorm1d(hidden)) if normalised else None
        self.rnn = CELLS[cell](inputs, hidden, bidirectional=True)

    def forward(self, x: torch.Tensor, steps: torch.Tensor | None) -> torch.Tensor:
        """`steps` lie in the host's memory; None: all that x has, nothing is packed."""
        x = self.batch_norm(x) if self.batch_norm else x
        return self.recurrent(x, steps).unflatten(2, (2, -1)).sum(2)

    def recurrent(self, x: torch.Tensor, steps: torch.Tensor | None) -> torch.Tensor:
        if steps is None:
            return self.rnn(x)[0]
        is_sorted = bool((steps[:-1] >= steps[1:]).all())  # else packing gathers, and copies to the device
        packed = nn.utils.rnn.pack_padded_sequence(x, steps, enforce_sorted=is_sorted)
        return nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], total_length=x.shape[0])[0]


class DeepSpeech2(nn.Module):
    """`config`: keys as in kbench's config.json. forward: spectrogram [N, 1, F, T], lengths [N]; logits [T', N, labels]."""

    packs = True  # for the recurrent layers, as deepspeech.pytorch does; only full utterances do without

    def __init__(self, config: dict[str, Any]):
        super().__init__()
        hidden, channels = config["hidden_size"], config["conv_channels"]
        rows = int(config["sample_rate"] * config["window_size"] / 2) + 1
        self.conv = Masked(
            nn.Sequential(
                nn.Conv2d(1, channels, (41, 11), (2, 2), (20, 5)),
                nn.BatchNorm2d(channels),
                nn.Hardtanh(0, 20),
                nn.Conv2d(channels, channels, (21, 11), (2, 1), (10, 5)),
                nn.BatchNorm2d(channels),
                nn.Hardtanh(0, 20),
            )
        )
        rows = (rows - 1) // 2 + 1
        rows = (rows - 1) // 2 + 1
        inputs = [channels * rows] + [hidden] * (config["hidden_layers"] - 1)
        self.rnns = nn.ModuleList(Layer(config["rnn_type"], size, hidden, i > 0) for i, size in enumerate(inputs))
        self.fc = nn.Sequential(
            PerStep(nn.Sequential(nn.BatchNorm1d(hidden), nn.Linear(hidden, config["labels"], bias=False)))
        )

    def forward(
        self, x: torch.Tensor, lengths: torch.Tensor, device_lengths: torch.Tensor | None = None
    ) -> torch.Tensor:
        """`lengths` in the host's memory; `device_lengths` are the same where x is, to spare a copy that waits."""
        device_lengths = lengths.to(x.device) if device_lengths is None else device_lengths
        x = self.conv(x, steps_of(device_lengths))
        steps = steps_of(lengths) if self.packs else None
        x = x.flatten(1, 2).permute(2, 0, 1).contiguous()
        for layer in self.rnns:
            x = layer(x, steps)
        return self.fc(x)


def next_state(rnn: nn.Module, of_x: torch.Tensor, of_h: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> Any:
    """h and c of the next step, from the products with the step's input and with h, both with their bias."""
    if isinstance(rnn, nn.LSTM):
        i, f, g, o = (of_x + of_h).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c
    if isinstance(rnn, nn.GRU):
        (r, z, n), (of_r, of_z, of_n) = of_x.chunk(3, 1), of_h.chunk(3, 1)
        r, z = (r + of_r).sigmoid(), (z + of_z).sigmoid()
        return (1 - z) * (n + r * of_n).tanh() + z * h, c
    return (of_x + of_h).tanh(), c


def recurrent(
    rnn: Any, x: torch.Tensor, steps: torch.Tensor | None, product: Callable = nn.functional.linear, advance: Callable = next_state
) -> torch.Tensor:
    """A bidirectional layer's outputs [T, N, 2 hidden], step by step; 0 past an utterance's end. `product` of inputs and
    a weight, `advance` as next_state."""
    steps = x.new_full((x.shape[1],), x.shape[0]) if steps is None else steps.to(x.device)
    outputs = []
    for suffix in ("", "_reverse"):
        w_ih, w_hh, b_ih, b_hh = (
            getattr(rnn, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        of_x = product(x, w_ih) + b_ih
        h = c = x.new_zeros(x.shape[1], rnn.hidden_size)
        made: list[Any] = [None] * x.shape[0]
        for t in range(x.shape[0]) if not suffix else reversed(range(x.shape[0])):
            next_h, next_c = advance(rnn, of_x[t], product(h, w_hh) + b_hh, h, c)
            inside = (t < steps)[:, None]
            h, c = torch.where(inside, next_h, h), torch.where(inside, next_c, c)
            made[t] = torch.where(inside, h, 0)
        outputs.append(torch.stack(made))
    return torch.cat(outputs, 2)


def randomised(model: DeepSpeech2, seed: int) -> DeepSpeech2:
    """Batch norms get random parameters and statistics, as one that is left out would not show: theirs are 0 and 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in model.modules():
            if not isinstance(module, nn.modules.batchnorm._BatchNorm):
                continue
            for values, mean in ((module.weight, 1), (module.bias, 0), (module.running_mean, 0)):
                values.copy_(mean + 0.2 * torch.randn(values.shape, generator=generator))
            module.running_var.copy_(0.5 + torch.rand(module.running_var.shape, generator=generator))
    return model.eval()

"""CTC's loss over its lattice, step by step, for autograd: what a wrong lattice is compared with."""

import torch

NEVER = -1e30  # a logarithm of 0 whose differences are numbers


def losses(
    log_probabilities: torch.Tensor,
    steps: torch.Tensor,
    targets: torch.Tensor,
    target_lengths: torch.Tensor,
    without_last_blank: bool = False,
) -> torch.Tensor:
    """[N] of log probabilities [T, N, labels] with the blank at 0, steps [N], targets [N, S] and target_lengths [N].

    `without_last_blank` plants an error: an alignment has to end on its last label.
    """
    batch, longest = targets.shape
    device = log_probabilities.device
    labels = torch.zeros(batch, 2 * longest + 1, dtype=torch.long, device=device)
    labels[:, 1::2] = targets
    from_two_before = torch.zeros_like(labels, dtype=torch.bool)
    from_two_before[:, 2:] = (labels[:, 2:] != 0) & (labels[:, 2:] != labels[:, :-2])
    place = torch.arange(labels.shape[1], device=device)
    alpha = torch.where(place < 2, log_probabilities[0].gather(1, labels), NEVER)
    rows = [alpha]
    for step in log_probabilities[1:]:
        one = torch.nn.functional.pad(alpha, (1, 0), value=NEVER)[:, :-1]
        two = torch.nn.functional.pad(alpha, (2, 0), value=NEVER)[:, :-2]
        two = torch.where(from_two_before, two, NEVER)
        alpha = torch.logsumexp(torch.stack((alpha, one, two)), 0) + step.gather(1, labels)
        rows.append(alpha)
    last = torch.stack(rows)[steps - 1, torch.arange(batch, device=device)]
    on_blank = last.gather(1, 2 * target_lengths[:, None])[:, 0]
    on_label = last.gather(1, (2 * target_lengths[:, None] - 1).clamp(min=0))[:, 0]
    has_label = target_lengths > 0
    ends = torch.where(has_label, torch.logaddexp(on_blank, on_label), on_blank)
    return -torch.where(has_label, on_label, on_blank) if without_last_blank else -ends

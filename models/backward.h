// The backward of a model, derived from its forward ops by the gradient rules of their kinds.
#pragma once

#include "models/model.h"

namespace kbench {

/// A model that runs `forward`, its loss and its backward, op by op from the last to the first. Ops are replaced by
/// their training variants (attention saves its log-sum-exp). A tensor that several ops read gets the sum of their
/// gradients. The gradient of a weight is called "WEIGHT.grad" and has its shape and memory of its own. The loss's
/// scale becomes an input called loss_scale; the outputs are the losses.
/// With `adamw`, an optimizer op at the end updates all weights. Each has two arrays of optimizer state and, with
/// `master`, a copy in fp32 or wider. AdamW's numbers for a step become an input called schedule; its learning rate
/// is 0 unless given, so that a run can repeat a step from the same weights. With `norm`, the gradients' GlobalNorm is
/// computed before AdamW and becomes an output called norm. schedule then also has max_norm (0 unless given), and
/// a step whose gradients are not finite is skipped (AdamW::clips).
/// With `recompute`, the forward keeps only what enters and leaves its blocks (recompute.h). Forward tensors that
/// the backward reads have the role of saved activations. Throws Unsupported where the model has no loss or an op has
/// no backward.
struct TrainingOptions {
    bool adamw = false, master = false, norm = false, recompute = false;
    /// Adds gradients of weights to what their arrays hold, zeros at first. Running the ops before the optimizer some
    /// number of times then makes one step of as many micro-batches. The caller clears them (Model::gradients).
    bool accumulate = false;
    double loss_scale = 1;  ///< factor on the loss; AdamW's multiplier is its inverse unless given
};
Model with_backward(Model forward, const TrainingOptions& options = {});

/// The same model, but everything up to the gradient of the loss runs once and is not timed.
Model backward_alone(Model forward, const TrainingOptions& options = {});

}  // namespace kbench

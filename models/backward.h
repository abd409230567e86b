// The backward of a model, derived from its forward ops by the rules that stand with their kinds.
#pragma once

#include "models/model.h"

namespace kbench {

/// `forward`, its loss and its backward, op by op from the last to the first. Ops are as training needs them (attention
/// leaves its log-sum-exp). A tensor that several ops read has the sum of their gradients. Gradients of weights are
/// called as the weight with ".grad" behind, have its shape and memory of their own. The loss's scale becomes an input
/// called loss_scale; the outputs are the losses.
/// With `adamw` all weights are updated in the end, each having two arrays of optimizer state and, with `master`, a
/// copy in fp32 or wider. What AdamW is told about its step becomes an input called schedule; unless given, its
/// learning rate is 0, so that a run does the work of a step again and again and starts from the same weights. With
/// `norm` the gradients' GlobalNorm is taken in front of it, an output called norm: schedule has max_norm, too, 0
/// unless given, and a step whose gradients are not finite is skipped (AdamW::clips). With
/// `recompute` the forward keeps only what enters and leaves its blocks (recompute.h). Tensors of the forward that the
/// backward reads have the role of saved activations. Throws Unsupported where the model has no loss, or an op no
/// backward.
struct TrainingOptions {
    bool adamw = false, master = false, norm = false, recompute = false;
    double loss_scale = 1;  ///< what the loss is scaled by, and AdamW's multiplier the inverse of, unless given
};
Model with_backward(Model forward, const TrainingOptions& options = {});

/// The same, of which all up to the loss's gradient runs once and is not timed.
Model backward_alone(Model forward, const TrainingOptions& options = {});

}  // namespace kbench

// The backward of a model, derived from its forward ops by the rules that stand with their kinds.
#pragma once

#include "models/model.h"

namespace kbench {

/// `forward`, its loss and its backward, op by op from the last to the first. Ops are as training needs them (attention
/// leaves its log-sum-exp). A tensor that several ops read has the sum of their gradients. Gradients of weights are
/// called as the weight with ".grad" behind, have its shape and memory of their own. The loss's scale becomes an input
/// called loss_scale, 1 unless given; the outputs are the losses.
/// Throws Unsupported where the model has no loss, or an op no backward.
Model with_backward(Model forward);

/// The same, of which all up to the loss's gradient runs once and is not timed.
Model backward_alone(Model forward);

}  // namespace kbench

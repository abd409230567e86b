// From the ops of a model to steps: which neighbouring ops one provider call computes.
// A fusion happens when a provider of the backend takes the fused step; nothing here knows any provider or op by name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/plan/provider.h"
#include "kbench/step.h"
#include "models/model.h"

namespace kbench {

/// A step and where it stands in a model.
struct StepOfModel {
    Step step;
    std::vector<std::size_t> ops;   ///< indices into Model::ops, in order
    std::size_t naming_op = 0;      ///< the one of `ops` whose layer names the step
    std::vector<TensorId> tensors;  ///< parallel to operands(step)
};

/// A step and who computes it.
struct AssignedStep : StepOfModel {
    Provider* provider = nullptr;
};

/// `--provider op=name`, by op name; "*" for all ops. No other provider computes an op that is named, not even fused
/// to another op.
using ProviderChoice = std::map<std::string, std::string, std::less<>>;

/// Throws Unsupported, with every provider's reason, when no provider (or not the chosen one) takes some op;
/// UsageError when `choice` names an op or a provider that this backend does not have.
/// An op that is computed again goes to its first provider, where that takes it.
/// `column_multiple`: the multiple to which a head's columns are padded, see padded_columns.
std::vector<AssignedStep> assign_steps(const Model& model, Precision precision, const Providers& providers,
                                       const ProviderChoice& choice, std::int64_t column_multiple);

/// Steps of exactly `ops` ops each, for any provider. Throws Unsupported when the ops do not form such steps.
std::vector<StepOfModel> steps_of(const Model& model, std::size_t ops, std::int64_t column_multiple);

/// Columns to compute of what `op` makes: the next multiple of `multiple` where its kind pads columns, so that rows of
/// the output stay aligned to tensor-core tiles (50257 -> 50304: 1.23 ms -> 0.175 ms in fp16 on an H200); 0 where that
/// changes nothing. Steps have them where nothing is fused to what they make and all that read it know padding.
std::int64_t padded_columns(const Op& op, Direction direction, std::int64_t multiple);

}  // namespace kbench

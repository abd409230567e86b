// Answers about a model that hold for any of them: counts, shapes and names.
#include "models/model.h"

#include <functional>
#include <numeric>

namespace kbench {

std::int64_t Tensor::rows() const {
    return std::accumulate(shape.begin(), shape.end() - 1, std::int64_t{1}, std::multiplies<>());
}

std::vector<TensorId> OpNode::outputs_of(OperandUse use) const {
    std::vector<TensorId> ids;
    std::size_t next = 0;
    for (const OperandSpec& spec : op.operands(direction)) {
        if (spec.use != OperandUse::output && spec.use != OperandUse::in_place) continue;
        const TensorId id = outputs.at(next++);
        if (spec.use == use) ids.push_back(id);
    }
    return ids;
}

std::vector<TensorId> Model::given() const {
    std::vector<TensorId> ids = inputs;
    for (TensorId id = 0; id < tensors.size(); ++id)
        if (tensors[id].role == Role::cache && tensors[id].resident) ids.push_back(id);
    return ids;
}

std::int64_t Model::parameter_count() const {
    std::int64_t count = 0;
    for (const Tensor& tensor : tensors)
        if (tensor.role == Role::weights) count += tensor.elements();
    return count;
}

}  // namespace kbench

// What can be said of any model without knowing which one it is.
#include "models/model.h"

namespace kbench {

std::int64_t Model::parameter_count() const {
    std::int64_t count = 0;
    for (const Tensor& tensor : tensors)
        if (tensor.role == Role::weights) count += tensor.rows * tensor.columns;
    return count;
}

}  // namespace kbench

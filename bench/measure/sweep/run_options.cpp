// The axes of a run's model.
#include "bench/measure/sweep/run_options.h"

#include <string>

namespace kbench {

AxisValues RunOptions::of_model() const {
    AxisValues own;
    for (const ModelAxis& axis : model.axes) {
        if (axis.name == "batch") continue;  // which every model has
        if (axis.is_count())
            own.set(axis.name, axis.usual);
        else if (!axis.changes_shapes() && inputs.contains(axis.name))
            own.set(axis.name, std::string(axis.row().of_file));
        else
            own.set(axis.name, std::string(axis.words().front()));
    }
    return own;
}

}  // namespace kbench

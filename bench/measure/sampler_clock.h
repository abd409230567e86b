// The sampling loop by another clock than the host's, for tests of where time budgets end.
#pragma once

#include "bench/measure/sampler.h"

namespace kbench {

/// As sample(); `now_s` gives seconds from any moment on.
Sampled sample_by_clock(const std::function<std::vector<double>()>& chunk, const SamplerOptions& options,
                        const std::function<bool()>& throttled, const WindowCalls& window,
                        const std::function<double()>& now_s);

}  // namespace kbench

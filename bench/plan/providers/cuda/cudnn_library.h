// cuDNN, loaded when the program first asks for it: a kbench that was built with cuDNN runs without it, too.
#pragma once

#include <string>

namespace kbench {

/// Empty when cuDNN's library is here; otherwise why not. Touches no device. The library is looked for where the loader
/// looks (LD_LIBRARY_PATH among that), then where it lay when kbench was built.
const std::string& cudnn_unavailable();

/// What was loaded, such as "9.19.0"; empty when unavailable.
std::string cudnn_version();

}  // namespace kbench

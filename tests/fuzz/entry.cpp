// libFuzzer's entry to the target that the build names.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto target =
        std::ranges::find(kbench::fuzz::targets(), std::string_view(KBENCH_FUZZ_TARGET), &kbench::fuzz::Target::name);
    target->run({reinterpret_cast<const char*>(data), size});
    return 0;
}

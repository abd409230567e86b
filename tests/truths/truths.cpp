// All truths in the order of the matrix.
#include "tests/truths/lists.h"

namespace kbench {

std::span<const Truth> truths() {
    static const std::vector<Truth> all = [] {
        std::vector<Truth> list;
        for (const auto& of :
             {memory_truths, unit_truths, schedule_truths, claim_truths, cause_truths, theft_truths, cpu_truths})
            for (Truth& truth : of()) list.push_back(std::move(truth));
        return list;
    }();
    return all;
}

}  // namespace kbench

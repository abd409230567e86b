// Reads from the environment which fault is wanted, and makes it happen there.
#include "tests/faults/fault.h"

#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>

namespace kbench::faults {
namespace {

Fault parse() {
    const char* text = std::getenv("KBENCH_FAULT");
    if (text == nullptr) return {};
    std::istringstream words(text);
    std::string at, rows, from, call;
    Fault fault;
    words >> fault.what >> at >> fault.rows >> rows;
    if (!words || at != "at" || rows != "rows") throw std::invalid_argument("KBENCH_FAULT: 'kill at 32 rows'");
    if (words >> from >> call >> fault.call; from == "from" && call != "call")
        throw std::invalid_argument("KBENCH_FAULT: 'kill at 32 rows from call 2'");
    return fault;
}

}  // namespace

const Fault& asked() {
    static const Fault fault = parse();
    return fault;
}

bool is_due(std::int64_t rows, const char* what) {
    const Fault& fault = asked();
    if (fault.what != what || fault.rows != rows) return false;
    static int calls = 0;
    return ++calls >= fault.call;
}

}  // namespace kbench::faults

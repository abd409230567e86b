// Everything that reports say about one point, computed once.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/attribution.h"
#include "analysis/explain/ledger.h"
#include "analysis/explain/roofline.h"
#include "analysis/explain/verdict.h"

namespace kbench {

struct Explanation {
    Ledger ledger;
    Roofline roofline;
    Attribution attribution;
    Verdicts verdicts;
    std::vector<std::string> answer;  ///< three sentences: how long, what binds it, what would change it
};

/// `point` must be one of `result`'s and outlive the explanation. A point that was not timed has an explanation whose
/// parts say that they are unavailable.
Explanation explain(const Result& result, const Point& point);

}  // namespace kbench

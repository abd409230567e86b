// The cycle account of a point, from its facts.
#pragma once

#include "analysis/explain/cycle_account.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

CycleAccount account_of(const StepFacts& step);
/// Accounts of all steps, timed or not.
CycleAccounts account_cycles(const PointFacts& facts);

}  // namespace kbench

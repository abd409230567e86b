// Numbers of SMs that a GPU can be taken as: how they are told, and which of them stand for shares of the device. Knows
// no GPU.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace kbench {

/// Rising numbers as a sentence needs them: "8, 16, 24 or 28"; four or more at equal distances as "8 to 128 in steps of
/// 8 or 132".
std::string counts_text(std::span<const int> counts);

/// All of `possible`, which rise, and the largest of them that are at most 3/4, 1/2 and 1/4 of all: most first, each
/// once.
std::vector<int> counts_at_shares(std::span<const int> possible);

/// How many of `all` SMs a thief of bandwidth has: 15 %, with which it can take 30 % of a roof, as an SM takes 60 to
/// 100 GB/s. 0: there are too few.
int multiprocessors_of_thief(int all);

}  // namespace kbench

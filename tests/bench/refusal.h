// The line with which a parser refuses arguments.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kbench/error.h"

namespace kbench {

/// What `parse()` says when it throws UsageError, which must be one line with exit code 2; "accepted" when it does not.
template <class Parse>
std::string refusal_of(const Parse& parse) {
    try {
        parse();
    } catch (const UsageError& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "one line";
        return error.what();
    }
    return "accepted";
}

}  // namespace kbench

// Names of device functions for people.
#pragma once

#include <string>
#include <string_view>

namespace kbench {

/// A compiled function as its source has it; a name that is not mangled stays.
std::string demangled(const std::string& name);

/// A demangled name without return type, parameters and namespaces: "attention_mma<64, 64, 2>" of "void
/// kbench::cuda::(anonymous namespace)::attention_mma<64, 64, 2>(Problem)". Template arguments are kept while they are
/// short, without their namespaces, because the libraries' kernels are told apart by nothing else.
std::string short_kernel_name(std::string_view demangled);

}  // namespace kbench

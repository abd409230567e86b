// What a user chooses by --backend.
//
//     kbench::name(kbench::BackendKind::cuda);  // "cuda", as --backend and result.json spell it
#pragma once

#include <string_view>

namespace kbench {

/// A kind of device, together with the providers that compute on it.
enum class BackendKind { cpu, cuda };
constexpr std::string_view name(BackendKind kind) { return kind == BackendKind::cpu ? "cpu" : "cuda"; }

}  // namespace kbench

// The table of providers of this build. A provider is one file under providers/ and one row in provider.cpp:
// docs/adding-a-provider.md.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kbench/provider.h"

namespace kbench {

using Providers = std::vector<std::unique_ptr<Provider>>;

std::span<const ProviderRow> provider_rows();

/// For providers of a CPU: why it has no tf32, empty for all other precisions.
std::string no_tf32(Precision precision);

/// The providers of one backend, in the order of the table.
Providers make_providers(BackendKind backend, const ProviderContext& context);

/// What computes `grown`, a larger step of the kind that `computation` of `provider` computes, by the same
/// implementation. Throws Unsupported where another one would run, or none.
std::unique_ptr<Computation> resized(const Computation& computation, const Provider& provider, const Step& grown,
                                     Precision precision);

/// `row`, refusing steps that are to leave behind what it makes on its way: a sum that backward reads again.
ProviderOp leaving_no_intermediates(ProviderOp row);

}  // namespace kbench

// The table, and the price of an activation in an epilogue.
#include "analysis/explain/cause_changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/format.h"

namespace kbench {
namespace {

constexpr std::string_view activations[] = {"gelu", "gelu_fast", "gelu_erf", "quick_gelu", "relu", "silu", "hardtanh"};
/// From here on an activation is why a product's fixed time is long: more than a launch costs.
constexpr double noteworthy_activation_us = 1;

bool is_any(const ChangeGrounds&) { return true; }
bool is_on_cpu(const ChangeGrounds& g) { return !g.facts.on_gpu; }
bool is_product(const ChangeGrounds& g) { return g.facts.step->matrix_flops > 0; }
bool is_attention(const ChangeGrounds& g) { return g.facts.step->op == "attention"; }
bool is_at_dram(const ChangeGrounds& g) { return g.causes.roof == name(Level::dram); }
bool is_at_memory(const ChangeGrounds& g) { return g.causes.is_at_memory; }
bool has_long_activation(const ChangeGrounds& g) { return g.activation_us >= noteworthy_activation_us; }
bool is_padded(const ChangeGrounds& g) { return g.facts.step->padding_flops > 0; }

/// The first row of a cause that applies says the change.
struct Change {
    Cause cause;
    bool (*applies)(const ChangeGrounds&);
    std::string_view text;
};
constexpr Change changes[] = {
    {Cause::useful, is_at_dram, "fewer bytes (fuse, narrower types)"},
    {Cause::useful, is_at_memory, "fewer bytes through it (larger tiles, reuse in registers)"},
    {Cause::useful, is_on_cpu, "wider instructions or a narrower precision"},
    {Cause::useful, is_any, "a faster unit or a narrower precision"},
    {Cause::clock, [](const ChangeGrounds& g) { return g.at_power_limit; }, "a higher power limit"},
    {Cause::clock, is_on_cpu, "a higher clock"},
    {Cause::clock, is_any, "a higher clock (nvidia-smi -lgc), cooling"},
    {Cause::main_loop, [](const ChangeGrounds& g) { return g.by_slower_unit && is_attention(g); }, "a wgmma attention"},
    {Cause::main_loop, [](const ChangeGrounds& g) { return g.by_slower_unit; }, "a wgmma kernel"},
    {Cause::main_loop, is_at_memory, "more bytes in flight (wider loads, deeper prefetch)"},
    {Cause::main_loop, is_product, "other tiles or a deeper pipeline"},
    {Cause::main_loop, is_any, "more independent work a warp"},
    {Cause::fixed, is_on_cpu, "fewer, larger ops (fuse with a neighbour, a larger batch)"},
    {Cause::fixed, has_long_activation, "a shorter epilogue"},
    {Cause::fixed, is_any, "fewer, larger kernels (fuse with a neighbour, a larger batch)"},
    {Cause::uneven, is_product, "tiles that fill the last wave (persistent, stream-k), or batch >= 2"},
    {Cause::uneven, is_any, "blocks that fill the last wave: persistent blocks, or batch >= 2"},
    {Cause::extra, is_padded, "shapes that need no padding, masked tiles skipped"},
    {Cause::extra, is_any, "tiles that do not overhang, nothing computed twice"},
    {Cause::dependency, is_any, "a quicker exchange between time steps, or a larger batch"},
    {Cause::gaps, is_on_cpu, "fewer, larger ops"},
    {Cause::gaps, is_any, "fewer kernels, programmatic dependent launch"},
};

}  // namespace

std::string_view activation_of(const StepResult& step) {
    for (const std::string& absorbed : step.absorbs)
        if (const std::string_view kind = kind_of(absorbed);
            std::ranges::find(activations, kind) != std::end(activations))
            return kind;
    return {};
}

std::string change_of(Cause cause, const ChangeGrounds& grounds) {
    const auto holds = [&](const Change& change) { return change.cause == cause && change.applies(grounds); };
    const auto* found = std::ranges::find_if(changes, holds);
    if (found == std::end(changes)) return "";
    if (cause == Cause::fixed && has_long_activation(grounds) && grounds.facts.on_gpu)
        return fmt::format("{}: with {} it is {} us longer than that of other products", found->text,
                           activation_of(*grounds.facts.step), significant(grounds.activation_us, 2));
    return std::string(found->text);
}

}  // namespace kbench

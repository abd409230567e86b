// Lays memory out, allocates it and loads weights.
#include "bench/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "bench/plan/current_call.h"
#include "kbench/error.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

constexpr std::int64_t alignment = 256;  // cudaMalloc's, and more than any vector load needs

std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

std::int64_t& of(MemoryPlan& memory, Role role) { return memory.bytes[static_cast<std::size_t>(role)]; }

/// The operand that the step's last op adds to what the head made, if it lies as the output does; nothing where the
/// head is the last op, or where what it made is multiplied (a gradient by GELU's slope): these may read in any order.
std::optional<TensorId> added_last(const StepOfModel& step, Precision precision) {
    const std::vector<Operand> list = operands(step.step, precision);
    if (step.step.head + 1 == step.step.ops.size() || !step.step.ops.back().is<ResidualAdd>()) return std::nullopt;
    std::size_t read = 0;  // what is read stands in front of what is left
    while (read < list.size() && list[read].use != OperandUse::output) ++read;
    if (read == 0 || read == list.size()) return std::nullopt;
    const Operand &added = list[read - 1], &out = list.back();
    const bool alike = added.use == OperandUse::input && added.type == out.type && added.rows == out.rows &&
                       added.columns == out.columns && added.stride == out.stride;
    return alike ? std::optional(step.tensors[read - 1]) : std::nullopt;
}

/// Whether an earlier step, the same but for its place, reads the same weight in the same packed form.
bool is_packed_before(const std::vector<AssignedStep>& steps, std::size_t s, std::size_t operand) {
    const AssignedStep& step = steps[s];
    return std::any_of(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(s), [&](const AssignedStep& other) {
        return other.provider == step.provider && other.tensors.size() > operand &&
               other.tensors[operand] == step.tensors[operand] && other.step == step.step;
    });
}

/// Steps of ops that run once, in front of the others.
std::size_t count_untimed(const Model& model, const auto& steps) {
    std::size_t count = 0;
    while (count < steps.size() && steps[count].ops.back() < model.untimed_ops) ++count;
    return count;
}

}  // namespace

Layout lay_out(const Model& model, Precision precision, const std::vector<AssignedStep>& steps,
               const std::function<std::int64_t(std::size_t, std::size_t)>& packed_bytes,
               std::int64_t workspace_bytes) {
    Layout layout;
    layout.places.resize(model.tensors.size());
    std::vector<std::size_t> first(model.tensors.size(), std::numeric_limits<std::size_t>::max());
    std::vector<std::size_t> last(model.tensors.size(), 0);
    std::vector<bool> plain(model.tensors.size(), false);
    for (TensorId id = 0; id < model.tensors.size(); ++id) layout.places[id].same_as = id;

    for (std::size_t s = 0; s < steps.size(); ++s) {
        const StepOfModel& step = steps[s];
        const std::vector<Operand> list = operands(step.step, precision);
        std::vector<TensorId> made_in_place;
        for (const std::size_t op : step.ops)
            std::ranges::copy(model.ops[op].outputs_of(OperandUse::in_place), std::back_inserter(made_in_place));
        std::size_t next_in_place = 0;
        for (std::size_t i = 0; i < list.size(); ++i) {
            const TensorId id = step.tensors[i];
            TensorPlace& place = layout.places[id];
            if (!place.used) place.operand = list[i];
            place.used = true;
            place.resident = model.tensors[id].role == Role::weights || model.tensors[id].resident;
            // An op that takes it for one long row needs it dense, and no other layout.
            if (list[i].columns == place.operand.columns) {
                place.operand.allocated_rows = std::max(place.operand.allocated_rows, list[i].allocated_rows);
                place.operand.stride = std::max(place.operand.stride, list[i].stride);
            }
            first[id] = std::min(first[id], s);
            last[id] = std::max(last[id], s);
            if (place.resident) {
                const std::int64_t packed = packed_bytes(s, i);
                if (packed == 0)
                    plain[id] = true;
                else if (!is_packed_before(steps, s, i))
                    of(layout.memory, Role::weights) += aligned(packed);
            }
            if (list[i].use == OperandUse::in_place) {
                const TensorId out = made_in_place.at(next_in_place++);
                layout.places[out].same_as = layout.places[id].same_as;
                first[out] = std::min(first[out], s);
                last[out] = std::max(last[out], s);
                if (!layout.places[out].used) layout.places[out].operand = list[i];  // for who reads it as a result
            }
        }
    }
    // Inputs serve the next forward, too, and outputs are read when all is done.
    for (const TensorId id : model.inputs) first[id] = 0, last[id] = steps.size();
    for (const TensorId id : model.outputs) last[id] = steps.size();
    // So does what untimed steps make for the others: these run again and again.
    const std::size_t first_timed = count_untimed(model, steps);
    for (TensorId id = 0; id < model.tensors.size(); ++id)
        if (first[id] < first_timed && last[id] >= first_timed) last[id] = steps.size();
    // What the last op adds (a residual) may be overwritten by the sum where nobody reads it afterwards: no copy, and
    // less memory.
    for (std::size_t s = 0; s < steps.size(); ++s) {
        const std::optional<TensorId> added = added_last(steps[s], precision);
        if (added && last[*added] == s && !layout.places[*added].resident)
            layout.places[steps[s].tensors.back()].same_as = layout.places[*added].same_as;
    }
    // A tensor made in place lives as long as the longer of the two.
    for (TensorId id = 0; id < model.tensors.size(); ++id) {
        const TensorId root = layout.places[id].same_as;
        if (root == id) continue;
        first[root] = std::min(first[root], first[id]);
        last[root] = std::max(last[root], last[id]);
    }

    MemoryPlan resident;  // weights, and what else has memory of its own
    std::vector<Lifetime> lifetimes;
    std::vector<TensorId> in_arena;
    for (TensorId id = 0; id < model.tensors.size(); ++id) {
        const TensorPlace& place = layout.places[id];
        if (!place.used) continue;
        if (place.resident) {
            if (plain[id] && place.same_as == id)
                of(resident, model.tensors[id].role) += aligned(place.operand.bytes());
        } else if (place.same_as == id) {
            lifetimes.push_back({place.operand.bytes(), first[id], last[id]});
            in_arena.push_back(id);
        }
    }
    const ArenaLayout arena = lay_out_arena(lifetimes, alignment);
    for (std::size_t i = 0; i < in_arena.size(); ++i) layout.places[in_arena[i]].offset = arena.offsets[i];
    layout.arena_bytes = arena.bytes;

    // The arena is shared over time: tokens, scores, logits and what the backward reads of the forward, all there at
    // the loss, count in full. Other activations and their gradients get the rest, so that the line of gradients is
    // that of weights alone.
    std::int64_t named = 0;
    std::vector<Role> roles(model.tensors.size());
    for (TensorId id = 0; id < model.tensors.size(); ++id) {
        roles[id] = model.tensors[id].role;
        if (roles[id] == Role::saved_activations) roles[layout.places[id].same_as] = roles[id];
    }
    for (const TensorId id : in_arena) {
        const Role role = roles[id];
        if (role == Role::activations || role == Role::gradients) continue;
        if (role == Role::scores) {
            of(layout.memory, role) = std::max(of(layout.memory, role), aligned(layout.places[id].operand.bytes()));
        } else {
            of(layout.memory, role) += aligned(layout.places[id].operand.bytes());
        }
    }
    for (const Role role : {Role::tokens, Role::saved_activations, Role::scores, Role::logits})
        named += of(layout.memory, role);
    of(layout.memory, Role::activations) = std::max<std::int64_t>(0, arena.bytes - named);
    of(layout.memory, Role::scores) -= std::max<std::int64_t>(0, named - arena.bytes);
    of(layout.memory, Role::workspace) = aligned(workspace_bytes);
    for (std::size_t role = 0; role < role_count; ++role) layout.memory.bytes[role] += resident.bytes[role];
    return layout;
}

std::int64_t largest_batch(const std::function<std::int64_t(std::int64_t)>& bytes_at, std::int64_t available) {
    std::int64_t fits = 1, bytes = bytes_at(1), over = 0;  // 0: none is known
    if (bytes > available) return 0;
    // Memory grows nearly by the same amount with each sequence, so that a guess along the line is right after four or
    // five plans, where halving takes twenty. Halving in between bounds how many there are.
    std::int64_t next = 2;
    for (bool halves = false; over == 0 || over - fits > 1; halves = !halves) {
        const std::int64_t before = fits, bytes_before = bytes, at_next = bytes_at(next);
        if (at_next <= available) {
            fits = next;
            bytes = at_next;
        } else {
            over = next;
        }
        const double a_sequence = static_cast<double>(at_next - bytes_before) / static_cast<double>(next - before);
        const double more = a_sequence > 0 ? static_cast<double>(available - bytes) / a_sequence : 0;
        const std::int64_t most = over > 0 ? over - 1 : fits * 1024;
        if (over == 0 && more <= 0)
            next = fits * 2;
        else if (over > 0 && halves && over - fits > 4)
            next = fits + (over - fits) / 2;
        else
            next = fits + static_cast<std::int64_t>(std::min(more, static_cast<double>(most - fits)));
        next = std::clamp(next, fits + 1, std::max(fits + 1, most));
    }
    return fits;
}

/// "gemm m256n256k256 of h.0.attn.c_attn by blas".
static std::string call_text(const Model& model, const AssignedStep& assigned) {
    return fmt::format("{} {} of {} by {}", op_name(assigned.step), shape_text(assigned.step),
                       model.ops[assigned.naming_op].layer, assigned.provider->name);
}

Plan::Plan(const Model& model, Precision precision, std::vector<AssignedStep> assigned)
    : model_(&model), precision_(precision) {
    steps_.reserve(assigned.size());
    for (const AssignedStep& a : assigned) {
        PlannedStep planned{a, nullptr, call_name(call_text(model, a))};
        const CurrentCall call(planned.call);  // making one may measure algorithms
        for (const PlannedStep& other : steps_)
            if (other.provider == a.provider && other.step == a.step) planned.computation = other.computation;
        if (!planned.computation) planned.computation = a.provider->make(a.step, precision);
        steps_.push_back(std::move(planned));
    }
    first_timed_ = count_untimed(model, steps_);
    std::size_t workspace = 0;
    for (const PlannedStep& s : steps_) workspace = std::max(workspace, s.computation->workspace_bytes());
    layout_ = lay_out(
        model, precision, assigned,
        [&](std::size_t s, std::size_t i) {
            return static_cast<std::int64_t>(steps_[s].computation->packed_bytes(i).value_or(0));
        },
        static_cast<std::int64_t>(workspace));
}

void* Plan::address(TensorId id) const {
    const TensorId root = layout_.places[id].same_as;
    const TensorPlace& place = layout_.places[root];
    return place.resident ? weights_[root].data() : arena_.data() + place.offset;
}

void Plan::allocate(Device& device, WeightSource& source) {
    device_ = &device;
    arena_ = DeviceBuffer(device, static_cast<std::size_t>(layout_.arena_bytes));
    workspace_ =
        DeviceBuffer(device, static_cast<std::size_t>(layout_.memory.bytes[static_cast<std::size_t>(Role::workspace)]));
    weights_.resize(model_->tensors.size());

    // Which packed forms each weight is wanted in, and whether anyone reads it plain.
    struct Use {
        std::size_t step, operand;
    };
    std::map<TensorId, std::vector<Use>> packed_uses;
    std::set<TensorId> plain;
    for (std::size_t s = 0; s < steps_.size(); ++s)
        for (std::size_t i = 0; i < steps_[s].tensors.size(); ++i) {
            const TensorId id = steps_[s].tensors[i];
            if (!layout_.places[id].resident) continue;
            if (steps_[s].computation->packed_bytes(i))
                packed_uses[id].push_back({s, i});
            else
                plain.insert(id);
        }

    pointers_.resize(steps_.size());
    for (std::size_t s = 0; s < steps_.size(); ++s) pointers_[s].assign(steps_[s].tensors.size(), nullptr);
    std::vector<std::byte> staging;
    for (TensorId id = 0; id < model_->tensors.size(); ++id) {
        const TensorPlace& place = layout_.places[id];
        if (!place.used || !place.resident || place.same_as != id) continue;
        const Tensor& tensor = model_->tensors[id];
        const auto bytes = static_cast<std::size_t>(place.operand.bytes());
        std::byte* host = nullptr;
        if (plain.contains(id)) {
            weights_[id] = DeviceBuffer(device, bytes);
            const bool zeros = tensor.contents.kind == Contents::Kind::zeros && !tensor.starts_as;
            if (tensor.role != Role::weights && zeros) {
                device.fill(weights_[id].data(), 0, bytes);
                continue;
            }
            host = static_cast<std::byte*>(device.host_view(weights_[id].data()));
        }
        if (host == nullptr) {
            if (staging.size() < bytes) staging.resize(bytes);
            host = staging.data();
        }
        const Tensor& values = tensor.starts_as ? model_->tensors[*tensor.starts_as] : tensor;
        const std::int64_t rows = tensor.rows(), padding = place.operand.allocated_rows - rows;
        source.read(values, place.operand.type, host, tensor.starts_as ? values.columns() : place.operand.stride);
        const std::size_t row_bytes = static_cast<std::size_t>(place.operand.stride) * size_of(place.operand.type);
        std::fill_n(host + static_cast<std::size_t>(rows) * row_bytes, static_cast<std::size_t>(padding) * row_bytes,
                    std::byte{0});
        if (plain.contains(id) && device.host_view(weights_[id].data()) == nullptr)
            device.upload(weights_[id].data(), host, bytes);
        const std::vector<Use>& uses = packed_uses[id];
        for (const Use& use : uses) {
            const Computation& computation = *steps_[use.step].computation;
            const auto alike = std::ranges::find_if(uses, [&](const Use& other) {
                return other.operand == use.operand && steps_[other.step].computation.get() == &computation;
            });
            if (alike->step != use.step) {
                pointers_[use.step][use.operand] = pointers_[alike->step][alike->operand];
                continue;
            }
            packed_.emplace_back(device, *computation.packed_bytes(use.operand));
            computation.pack(use.operand, host, packed_.back().data());
            pointers_[use.step][use.operand] = packed_.back().data();
        }
    }
    for (std::size_t s = 0; s < steps_.size(); ++s)
        for (std::size_t i = 0; i < pointers_[s].size(); ++i)
            if (pointers_[s][i] == nullptr) pointers_[s][i] = address(steps_[s].tensors[i]);
}

void Plan::set_input(TensorId id, std::span<const std::byte> bytes) {
    device_->upload(address(id), bytes.data(), bytes.size());
}

void Plan::run_step(std::size_t index, void* stream) const {
    run_step(index, *steps_[index].computation, workspace_.data(), stream);
}

void Plan::run_step(std::size_t index, const Computation& computation, void* workspace, void* stream) const {
    const CurrentCall call(steps_[index].call);
    computation.run({pointers_[index], workspace, stream});
}

std::optional<StepAccount> Plan::account_of_step(std::size_t index, void* stream) const {
    return steps_[index].computation->account({pointers_[index], workspace_.data(), stream});
}

}  // namespace kbench

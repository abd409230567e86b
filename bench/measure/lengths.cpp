// See lengths.h.
#include "bench/measure/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>

#include "kbench/error.h"
#include "models/lengths.h"

namespace kbench {
namespace {

/// FNV-1a (Fowler, Noll, Vo), 32 bits: tells lists apart.
std::uint32_t hash_of(std::span<const std::int32_t> lengths) {
    std::uint32_t hash = 0x811c9dc5u;
    for (const std::byte byte : std::as_bytes(lengths)) hash = (hash ^ static_cast<std::uint32_t>(byte)) * 0x01000193u;
    return hash;
}

void write_lines(const std::filesystem::path& path, std::span<const std::int32_t> numbers) {
    std::ofstream file(path);
    for (const std::int32_t number : numbers) file << number << "\n";
    if (!file.flush()) throw UsageError(fmt::format("cannot write {}", path.string()));
}

}  // namespace

std::filesystem::path lengths_file(const RunOptions& options, const Point& point) {
    if (const auto given = options.inputs.find(lengths_name); given != options.inputs.end()) return given->second;
    if (point.axes.find(lengths_name) == nullptr || point.axes.text(lengths_name) != drawn_lengths) return {};
    const std::int64_t frames = point.axes.count(frames_name).value(), batch = point.batch();
    const std::filesystem::path path = options.out / fmt::format("lengths-frames{}-batch{}.txt", frames, batch);
    write_lines(path, librispeech_like(options.seed, batch, frames));
    return path;
}

std::filesystem::path target_lengths_file(const RunOptions& options, const Plan& plan, std::int64_t longest,
                                          std::span<const std::int32_t> lengths) {
    constexpr std::string_view name = "target_lengths";
    const Model& model = plan.model();
    const auto input =
        std::ranges::find(model.inputs, name, [&](TensorId id) { return std::string_view(model.tensors[id].name); });
    if (input == model.inputs.end() || options.inputs.contains(name)) return {};
    const auto of_longest = static_cast<std::int64_t>(model.tensors[*input].contents.numbers.front());
    std::vector<std::int32_t> targets;
    for (const std::int32_t length : lengths)
        targets.push_back(static_cast<std::int32_t>(of_longest * length / longest));
    const std::filesystem::path path =
        options.out / fmt::format("target-lengths-frames{}-batch{}.txt", longest, lengths.size());
    write_lines(path, targets);
    return path;
}

void account_lengths(const Plan& plan, const std::vector<double>& useful, std::span<const std::int32_t> lengths,
                     Point& point) {
    const auto frames = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    if (frames == 0) throw UsageError("lengths are all 0; one at least should have a frame");
    const Model& model = plan.model();
    std::size_t next = 0;
    for (const PlannedStep& planned : plan.timed_steps()) {
        double padded = 0;
        for (const std::size_t op : planned.ops)
            padded += model.ops[op].op.work(model.ops[op].direction).flops - useful.at(op);
        StepResult& step = point.steps.at(next++);
        step.cost.flops -= padded;
        step.padding_flops += padded;
        point.cost.flops -= padded;
        point.padding_flops += padded;
    }
    point.set(lengths_name, fmt::format("{} {:08x}", point.axes.text(lengths_name), hash_of(lengths)));
    point.set("useful_frames", frames);
}

}  // namespace kbench

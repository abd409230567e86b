// Writes files of drawn lengths, and scales the plan's work to the lengths of a point's sequences.
#include "bench/measure/sweep/lengths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "bench/plan/data/read_file.h"
#include "bench/plan/data/tokens.h"
#include "kbench/error.h"
#include "models/base/write_file.h"
#include "models/lengths.h"

namespace kbench {
namespace {

/// FNV-1a (Fowler, Noll, Vo), 32 bits: tells lists apart.
std::uint32_t hash_of(std::span<const std::int32_t> lengths) {
    std::uint32_t hash = 0x811c9dc5u;
    for (const std::byte byte : std::as_bytes(lengths)) hash = (hash ^ static_cast<std::uint32_t>(byte)) * 0x01000193u;
    return hash;
}

constexpr std::string_view of_lengths = "lengths-", of_target_lengths = "target-lengths-", ending = ".txt";

/// "lengths-frames1000-batch32.txt".
std::string file_name(std::string_view what, std::int64_t frames, std::int64_t batch) {
    return fmt::format("{}frames{}-batch{}{}", what, frames, batch, ending);
}

/// Another point of the run, or a run that is resumed, has written the same. What else is called so stays.
void write_lines(const std::filesystem::path& path, std::span<const std::int32_t> numbers) {
    const std::string text = fmt::format("{}\n", fmt::join(numbers, "\n"));
    const bool is_file = stands(path) && why_not_a_file(path).empty();
    if (is_file && read_whole_file(path) == text) return;
    if (is_file)
        throw UsageError(fmt::format(
            "{}: holds other lengths than this run draws; choose another --out or move it away", path.string()));
    write_file_atomically(path, text);
}

/// That of options.inputs, or one of drawn lengths; empty where all are full.
std::filesystem::path lengths_file(const RunOptions& options, const Point& point) {
    if (const auto given = options.inputs.find(lengths_name); given != options.inputs.end()) return given->second;
    if (point.axes.find(lengths_name) == nullptr || point.axes.text(lengths_name) != drawn_lengths) return {};
    const std::int64_t frames = point.axes.count(frames_name).value(), batch = point.batch();
    const std::filesystem::path path = options.out / file_name(of_lengths, frames, batch);
    write_lines(path, librispeech_like(options.seed, batch, frames));
    return path;
}

/// Empty where the plan has no such input, or options.inputs has its file.
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
        options.out / file_name(of_target_lengths, longest, static_cast<std::int64_t>(lengths.size()));
    write_lines(path, targets);
    return path;
}

/// `useful`: useful_flops of the plan's model.
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

}  // namespace

bool is_lengths_name(std::string_view name) {
    return (name.starts_with(of_lengths) || name.starts_with(of_target_lengths)) && name.ends_with(ending);
}

FilesByName inputs_with_lengths(const RunOptions& options, const PointPlans& plans, const Plan& plan, Point& point) {
    FilesByName inputs = options.inputs;
    const std::filesystem::path file = lengths_file(options, point);
    if (file.empty()) return inputs;
    inputs[std::string(lengths_name)] = file;
    const ModelPoint padded = plans.model_point(point, point.batch());
    const std::int64_t longest = padded.count(frames_name);
    const std::vector<std::int32_t> lengths = read_numbers_of_rows(file, point.batch(), longest + 1, lengths_name);
    if (const std::filesystem::path of_targets = target_lengths_file(options, plan, longest, lengths);
        !of_targets.empty())
        inputs["target_lengths"] = of_targets;
    ModelSpec spec = options.model;
    spec.build_at = [&](const ModelPoint& of) { return PointPlans::in_direction(point, options.model.build(of)); };
    account_lengths(plan, useful_flops(spec, padded, lengths), lengths, point);
    return inputs;
}

}  // namespace kbench

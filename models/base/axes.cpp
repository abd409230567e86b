// The table of axes, and what follows from it: order, texts and values.
#include "kbench/axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "kbench/precision.h"

namespace kbench {
namespace {

constexpr std::string_view backend_words[] = {"cuda", "cpu"};
constexpr std::string_view attention_words[] = {"fused", "unfused"};
constexpr std::string_view phase_words[] = {"forward", "prefill", "decode"};
constexpr std::string_view of_forward[] = {"forward"};
constexpr std::string_view of_prompt[] = {"forward", "prefill"};
constexpr std::string_view of_prefill[] = {"prefill"};
constexpr std::string_view of_decode[] = {"decode"};
constexpr std::string_view cell_words[] = {"lstm", "gru", "rnn"};
constexpr std::string_view lengths_offered[] = {"full", "librispeech-like"};
constexpr std::string_view direction_words[] = {"fwd", "bwd", "train"};
constexpr std::string_view optimizer_words[] = {"none", "adamw"};
constexpr std::string_view master_words[] = {"none", "fp32"};
constexpr std::string_view recompute_words[] = {"none", "block"};
constexpr auto precision_words = [] {
    std::array<std::string_view, all_precisions.size()> words{};
    std::ranges::transform(all_precisions, words.begin(), [](Precision precision) { return name(precision); });
    return words;
}();

std::vector<const Axis*> sorted(auto place) {
    std::vector<const Axis*> list;
    for (const Axis& axis : axes()) list.push_back(&axis);
    std::ranges::stable_sort(list, {}, place);
    return list;
}

}  // namespace

std::span<const Axis> axes() {
    static const std::vector<Axis> table = {
        {.name = "model", .what = "model", .kind = AxisKind::name, .order = 10, .always_told = true, .needed = true},
        {.name = "backend",
         .what = "cuda or cpu",
         .kind = AxisKind::word,
         .words = backend_words,
         .role = AxisRole::where,
         .order = 60,
         .always_told = true,
         .needed = true},
        {.name = "attention",
         .what = "fused (one kernel) or unfused (scores, mask, softmax and context apart)",
         .kind = AxisKind::word,
         .words = attention_words,
         .usual = "fused",
         .option = "KIND",
         .of_model = true,
         .phases = of_forward},
        {.name = "batch",
         .unit = "sequences",
         .what = "sequences at once",
         .usual = 1,
         .order = 40,
         .option = "N",
         .sweeps = true,
         .takes_max = true,
         .always_told = true},
        {.name = "seq",
         .title = "sequence length",
         .column = "seq_len",  // PyProf's column "seq" numbers the ops
         .unit = "tokens",
         .what = "sequence length in tokens",
         .order = 30,
         .option = "N",
         .otherwise = "the model's n_ctx",
         .sweeps = true,
         .always_told = true,
         .of_model = true,
         .phases = of_prompt},
        {.name = "new",
         .title = "room for new tokens",
         .unit = "tokens",
         .what = "tokens that the cache has room for behind the prompt",
         .least = 0,
         .usual = 0,
         .order = 33,
         .option = "N",
         .of_model = true,
         .phases = of_prefill,
         .since = 6},
        {.name = "past",
         .title = "past length",
         .unit = "tokens",
         .what = "tokens in the cache before the new one",
         .least = 0,
         .order = 31,
         .option = "N",
         .otherwise = "the last token of --seq and --new with --phase prefill,decode; else the model's n_ctx less 1",
         .sweeps = true,
         .always_told = true,
         .of_model = true,
         .phases = of_decode,
         .since = 6},
        {.name = "frames",
         .unit = "frames",
         .what = "frames of the longest utterance",
         .order = 32,
         .option = "N",
         .otherwise = "1000, of a model that reads speech",
         .sweeps = true,
         .always_told = true,
         .of_model = true,
         .since = 6},
        {.name = "cell",
         .what = "cell of recurrent layers: lstm, gru or rnn",
         .kind = AxisKind::word,
         .words = cell_words,
         .usual = "lstm",
         .option = "KIND",
         .of_model = true,
         .since = 6},
        {.name = "lengths",
         .what =
             "lengths of a batch's utterances: full (all as long as --frames), librispeech-like (seeded, the longest --frames long, the longest first) or a file of frames, one number a line or .npy",
         .kind = AxisKind::name,
         .offered = lengths_offered,
         .of_file = "file",
         .usual = "full",
         .option = "WHICH",
         .of_model = true,
         .since = 6},
        {.name = "useful_frames",
         .unit = "frames",
         .what = "frames within the utterances of a batch whose lengths are not full; the others are padding",
         .of_model = true,
         .since = 6},
        {.name = "rank",
         .what = "process of a program of several, by the rank that its launcher gave it",
         .least = 0,
         .order = 22,
         .since = 6},
        {.name = "repeat",
         .what = "number of the repeat of the point in its sweep, from 1",
         .usual = 1,
         .role = AxisRole::again,
         .order = 20,
         .since = 4},
        {.name = "precision",
         .what = "precision asked for",
         .kind = AxisKind::word,
         .words = precision_words,
         .usual = "fp32",
         .order = 50,
         .option = "P",
         .sweeps = true,
         .always_told = true,
         .needed = true},
        {.name = "direction",
         .what = "what is timed: fwd, bwd (the backward alone, after a forward) or train (forward, loss and backward)",
         .kind = AxisKind::word,
         .words = direction_words,
         .usual = "fwd",
         .order = 25,
         .option = "D",
         .sweeps = true,
         .beside_model = true,
         .needed = true},
        {.name = "phase",
         .what =
             "forward (all tokens at once), prefill (a prompt's: all of its tokens fill the cache, the last one has logits) or decode (one token more, after those whose keys and values are cached)",
         .kind = AxisKind::word,
         .words = phase_words,
         .usual = "forward",
         .order = 27,
         .option = "PHASE",
         .sweeps = true,
         .beside_model = true,
         .of_model = true,
         .selects_phase = true,
         .since = 6},
        {.name = "optimizer",
         .what =
             "of --direction train: adamw, which it takes unless asked, or none for forward, loss and backward alone",
         .kind = AxisKind::word,
         .words = optimizer_words,
         .option = "NAME",
         .otherwise = "adamw in training",
         .of_training = true,
         .since = 5},
        {.name = "master",
         .title = "master weights",
         .what = "of --optimizer adamw in 16 bits: fp32 copies of the weights and fp32 state, or none",
         .kind = AxisKind::word,
         .words = master_words,
         .option = "P",
         .otherwise = "none",
         .of_training = true,
         .since = 5},
        {.name = "recompute",
         .what =
             "of --direction bwd and train: block keeps of each block its input alone and makes the rest again for its backward, none keeps all",
         .kind = AxisKind::word,
         .words = recompute_words,
         .usual = "none",
         .option = "WHAT",
         .of_backward = true,
         .since = 5},
    };
    return table;
}

const Axis& axis_named(std::string_view name) {
    const auto found = std::ranges::find(axes(), name, &Axis::name);
    if (found == axes().end()) throw std::logic_error(fmt::format("no axis is called '{}'", name));
    return *found;
}

const Axis& phase_axis() {
    static const Axis& axis = *std::ranges::find(axes(), true, &Axis::selects_phase);
    return axis;
}

std::span<const Axis* const> axes_in_order() {
    static const std::vector<const Axis*> list =
        sorted([](const Axis* axis) { return axis->order == 0 ? std::numeric_limits<int>::max() : axis->order; });
    return list;
}

std::span<const Axis* const> sweep_axes() {
    static const std::vector<const Axis*> list = [] {
        std::vector<const Axis*> swept;
        std::ranges::copy_if(axes_in_order(), std::back_inserter(swept), &Axis::sweeps);
        return swept;
    }();
    return list;
}

std::span<const Axis* const> axes_in_tables() {
    static const std::vector<const Axis*> list = sorted([](const Axis* axis) { return axis->kind == AxisKind::count; });
    return list;
}

const AxisValue* AxisValues::find(std::string_view axis) const {
    const auto found = values_.find(axis);
    return found == values_.end() ? nullptr : &found->second;
}

std::optional<std::int64_t> AxisValues::count(std::string_view axis) const {
    const AxisValue* value = find(axis);
    return value ? std::optional(std::get<std::int64_t>(*value)) : std::nullopt;
}

const std::string& AxisValues::text(std::string_view axis) const {
    static const std::string nothing;
    if (const AxisValue* value = find(axis)) return std::get<std::string>(*value);
    const std::optional<AxisValue>& usual = axis_named(axis).usual;
    return usual ? std::get<std::string>(*usual) : nothing;
}

void AxisValues::set(std::string_view axis, AxisValue value) {
    values_.insert_or_assign(std::string(axis_named(axis).name), std::move(value));
}

void AxisValues::erase(std::string_view axis) {
    if (const auto found = values_.find(axis); found != values_.end()) values_.erase(found);
}

bool AxisValues::is_usual(const Axis& axis) const {
    const AxisValue* value = find(axis.name);
    return value == nullptr || axis.usual == *value;
}

std::string text_of(const AxisValue& value) {
    const auto* number = std::get_if<std::int64_t>(&value);
    return number ? std::to_string(*number) : std::get<std::string>(value);
}

std::string asked_text(const Axis& axis, const AxisValue& value) {
    return axis.takes_max && value == AxisValue(0) ? "max" : text_of(value);
}

std::string said(const Axis& axis, const AxisValue& value) {
    return axis.is_bare() ? text_of(value) : fmt::format("{} {}", axis.name, text_of(value));
}

std::string said_in_full(const Axis& axis, const AxisValue& value) {
    return axis.is_bare() ? text_of(value) : fmt::format("{} {}", axis.in_full(), text_of(value));
}

std::string only_of_its_phases(const Axis& axis) {
    return fmt::format("--{}: only --{} {} has one", axis.name, phase_axis().name, fmt::join(axis.phases, " or "));
}

std::optional<AxisValue> sort_key(const Axis& axis, const AxisValues& values) {
    const AxisValue* value = values.find(axis.name);
    if (value == nullptr) return std::nullopt;
    if (axis.kind != AxisKind::word) return *value;
    return std::ranges::find(axis.words, std::get<std::string>(*value)) - axis.words.begin();
}

}  // namespace kbench

// Whether an alignment exists is computed from labels, repeats and steps (models/ops/ctc.h).
#include "bench/measure/point/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bench/measure/point/device_rows.h"
#include "bench/plan/data/token_file.h"
#include "kbench/error.h"
#include "kbench/lengths.h"
#include "models/ops/ctc.h"

namespace kbench {
namespace {

constexpr std::string_view targets_name = "targets", target_lengths_name = "target_lengths";

bool is_ctc(const std::optional<OpNode>& node) { return node && node->op.is<Ctc>(); }

/// The texts in the files, read once.
class GivenTexts {
  public:
    explicit GivenTexts(const FilesByName& inputs) {
        if (const auto file = inputs.find(targets_name); file != inputs.end())
            targets_ = read_integers(file->second, "label", RowLengths::of_any);
        if (const auto file = inputs.find(target_lengths_name); file != inputs.end())
            lengths_ = read_integers(file->second, "length").values;
    }

    /// Labels of the longest text at that batch; `usual` where the files do not tell, or hold what their reader will
    /// refuse. `most`: what is longer has no alignment with any utterance.
    std::int64_t longest(std::int64_t batch, std::int64_t usual, std::int64_t most) const {
        std::int64_t most_labels = 0;
        for (const std::int64_t length : lengths_) most_labels = std::max(most_labels, length);
        const std::int64_t by_lengths = most_labels > most ? usual : std::max(usual, most_labels);
        if (!targets_ || targets_->values.empty()) return by_lengths;
        if (targets_->shape.size() == 2) return targets_->shape[1];
        const auto count = static_cast<std::int64_t>(targets_->values.size());
        if (count == usual || count == batch * usual) return usual;
        const bool is_one_behind_the_other =
            std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0}) == count;
        if (is_one_behind_the_other) return most_labels;
        return count % batch == 0 ? count / batch : by_lengths;
    }

  private:
    std::optional<IntegerArray> targets_;
    std::vector<std::int64_t> lengths_;
};

void set_longest_text(Model& forward, std::int64_t longest) {
    Ctc ctc = *forward.loss->op.get_if<Ctc>();
    if (ctc.target == longest) return;
    ctc.target = longest;
    forward.loss->op = ctc;
    const std::vector<OperandSpec> operands = ctc.operands(Direction::fwd);
    for (std::size_t i = 0; i < forward.loss->inputs.size(); ++i) {
        const OperandSpec& spec = operands.at(i);
        if (spec.name != targets_name && spec.name != target_lengths_name) continue;
        Tensor& tensor = forward.tensors[forward.loss->inputs[i]];
        tensor.shape = {spec.rows, spec.columns};
        tensor.contents = spec.contents;
    }
}

std::vector<std::int32_t> integers_on(Device& device, const Plan& plan, TensorId id) {
    const Operand& operand = plan.operand(id);
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(operand.bytes()) / sizeof(std::int32_t));
    device.download(numbers.data(), plan.address(id), numbers.size() * sizeof(std::int32_t));
    return numbers;
}

/// The labels of `targets` from its file, [batch, columns], with rows padded to `columns`.
std::vector<std::int32_t> read_texts(const std::filesystem::path& file, const Tensor& targets,
                                     std::span<const std::int32_t> lengths) {
    const std::int64_t batch = targets.rows(), columns = targets.columns(), labels = targets.contents.bound;
    const IntegerArray given = read_integers(file, "label", RowLengths::of_any);
    const auto count = static_cast<std::int64_t>(given.values.size());
    const std::int64_t all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    const bool is_rows = count == batch * columns || count == columns;
    if ((given.shape.size() == 2 && given.shape[1] != columns) || given.shape.size() > 2 || (!is_rows && count != all))
        throw UsageError(fmt::format(
            "{}: {} labels; texts of {} utterances are [{}, {}], or one behind the other, as long as target_lengths says, {} in all",
            file.string(), count, batch, batch, columns, all));
    std::vector<std::int32_t> texts(static_cast<std::size_t>(batch * columns), 1);
    std::int64_t next = 0;
    for (std::int64_t row = 0; row < batch; ++row) {
        const std::int64_t first = is_rows ? row * columns % count : next;
        const std::int64_t here = is_rows ? columns : lengths[static_cast<std::size_t>(row)];
        for (std::int64_t i = 0; i < here; ++i) {
            const std::int64_t label = given.values[static_cast<std::size_t>(first + i)];
            if (label < 0 || label >= labels)
                throw UsageError(fmt::format("{}: label {} is {}; it should be in [1, {})", file.string(), first + i,
                                             label, labels));
            texts[static_cast<std::size_t>(row * columns + i)] = static_cast<std::int32_t>(label);
        }
        next += here;
    }
    return texts;
}

/// What lies behind a text's end is not checked. `file` is named in the error.
void refuse_blanks(const std::filesystem::path& file, std::span<const std::int32_t> texts, std::int64_t columns,
                   std::span<const std::int32_t> lengths) {
    for (std::size_t n = 0; n < lengths.size(); ++n)
        for (std::int64_t i = 0; i < std::min<std::int64_t>(lengths[n], columns); ++i)
            if (texts[n * static_cast<std::size_t>(columns) + static_cast<std::size_t>(i)] == 0)
                throw UsageError(fmt::format(
                    "{}: label {} of text {} is 0, the blank, which no text holds; only behind the end that target_lengths gives it ({} here) may it stand",
                    file.string(), i, n, lengths[n]));
}

/// The utterances of `node`, a Ctc op whose inputs are in memory, that have fewer steps than their text has labels and
/// blanks between equal ones.
std::vector<std::int64_t> without_alignment(const OpNode& node, const Plan& plan, Device& device) {
    const Ctc& ctc = *node.op.get_if<Ctc>();
    const std::vector<std::int32_t> lengths = integers_on(device, plan, node.inputs.at(1)),
                                    texts = integers_on(device, plan, node.inputs.at(2)),
                                    ends = integers_on(device, plan, node.inputs.at(3));
    const auto stride = static_cast<std::size_t>(plan.operand(node.inputs.at(2)).stride);
    std::vector<std::int64_t> without;
    for (std::size_t n = 0; n < static_cast<std::size_t>(ctc.batch); ++n) {
        const std::int32_t* const text = texts.data() + n * stride;
        const std::int64_t size = std::clamp<std::int64_t>(ends[n], 0, ctc.target);
        std::int64_t needed = size;
        for (std::int64_t i = 1; i < size; ++i) needed += text[i] == text[i - 1] ? 1 : 0;
        if (needed > steps_of(lengths[n], ctc.frames_per_step, ctc.steps))
            without.push_back(static_cast<std::int64_t>(n));
    }
    return without;
}

void load_texts(const PartContext& at, const OpNode& node) {
    const Model& model = at.plan.model();
    const TensorId targets = node.inputs.at(2), ends = node.inputs.at(3);
    const std::filesystem::path file = at.file_of(targets);
    if (!file.empty()) {
        const std::vector<std::byte> bytes =
            input_bytes(model.tensors[ends], at.plan.operand(ends), at.file_of(ends), at.options.seed);
        std::vector<std::int32_t> lengths(bytes.size() / sizeof(std::int32_t));
        std::memcpy(lengths.data(), bytes.data(), bytes.size());
        const std::vector<std::int32_t> texts = read_texts(file, model.tensors[targets], lengths);
        refuse_blanks(file, texts, model.tensors[targets].columns(), lengths);
        at.plan.set_input(targets, std::as_bytes(std::span(texts)));
    }
    if (const std::size_t without = without_alignment(node, at.plan, at.device).size(); without > 0)
        at.warn(fmt::format(
            "{} of {} utterances have more labels, and blanks between equal ones, than steps: their loss is infinite and their gradient 0",
            without, node.op.get_if<Ctc>()->batch));
}

/// The op whose losses `id` holds, where they are losses of texts; else null.
const OpNode* texts_behind(const Model& model, TensorId id) {
    for (const OpNode& node : model.ops)
        if (node.op.is<Ctc>() && std::ranges::find(node.outputs, id) != node.outputs.end() && node.inputs.front() != id)
            return &node;
    return nullptr;
}

}  // namespace

ModelSpec with_given_texts(const ModelSpec& spec, const FilesByName& inputs) {
    if (!inputs.contains(targets_name) && !inputs.contains(target_lengths_name)) return spec;
    ModelSpec given = spec;
    given.build_at = [build = spec.build_at, inputs,
                      texts = std::make_shared<std::optional<GivenTexts>>()](const ModelPoint& point) {
        Model model = build(point);
        if (!is_ctc(model.loss)) return model;
        if (!*texts) texts->emplace(inputs);
        const Ctc& ctc = *model.loss->op.get_if<Ctc>();
        set_longest_text(model, (*texts)->longest(ctc.batch, ctc.target, ctc.steps * ctc.frames_per_step));
        return model;
    };
    return given;
}

bool is_text_of_file(const PartContext& at, TensorId id) {
    return std::ranges::any_of(at.plan.model().ops, [&](const OpNode& node) {
        return node.op.is<Ctc>() && node.inputs.at(2) == id && !at.file_of(id).empty();
    });
}

void load_texts(const PartContext& at) {
    for (const OpNode& node : at.plan.model().ops)
        if (node.op.is<Ctc>()) load_texts(at, node);
}

std::optional<std::int64_t> count_wrong_losses(const PartContext& at, TensorId id) {
    const OpNode* const node = texts_behind(at.plan.model(), id);
    if (node == nullptr) return std::nullopt;
    const std::vector<std::int64_t> infinite = without_alignment(*node, at.plan, at.device);
    std::int64_t wrong = 0;
    visit_rows(at.device, at.plan.address(id), at.plan.operand(id), [&](const reference::View& slab, std::int64_t) {
        for (std::int64_t n = 0; n < slab.columns; ++n) {
            const double loss = slab(0, n);
            const bool is_infinite = std::ranges::binary_search(infinite, n);
            wrong += is_infinite ? loss != std::numeric_limits<double>::infinity() : !std::isfinite(loss);
        }
    });
    return wrong;
}

}  // namespace kbench

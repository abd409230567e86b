// The texts that a model of speech is trained with: their lengths by their files, and which of them have no alignment
// with the steps of their utterance (models/ops/ctc.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "bench/device/device.h"
#include "bench/plan/data/inputs.h"
#include "bench/plan/plan.h"
#include "models/registry.h"

namespace kbench {

/// The same model with texts as long as those in the files of `targets` or `target_lengths` among `inputs`, as people
/// may speak faster than a model expects. A model without texts, or without such files, stays as
/// it is. The files are read when the model is first built; that may throw UsageError.
ModelSpec with_given_texts(const ModelSpec& spec, const FilesByName& inputs);

/// The op whose losses `id` holds, where they are losses of texts; else null.
const OpNode* texts_behind(const Model& model, TensorId id);

/// The labels of `targets` from its file, [batch, columns], with rows padded to `columns`. The file has rows, one row
/// for all, or one text after the other with `lengths`, as torch.nn.CTCLoss takes them. Throws UsageError.
std::vector<std::int32_t> read_texts(const std::filesystem::path& file, const Tensor& targets,
                                     std::span<const std::int32_t> lengths);

/// Throws UsageError where a text has label 0, the blank, within its first `lengths` labels; what lies behind is not
/// checked. `file` is named in the error.
void refuse_blanks(const std::filesystem::path& file, std::span<const std::int32_t> texts, std::int64_t columns,
                   std::span<const std::int32_t> lengths);

/// The utterances of `node`, a Ctc op whose inputs are in memory, that have fewer steps than their text has labels and
/// blanks between equal ones.
std::vector<std::int64_t> without_alignment(const OpNode& node, const Plan& plan, Device& device);

/// How many of `losses`, those of `node`, are not what they should be: infinite without an alignment, finite with one.
std::int64_t count_wrong_losses(TensorId losses, const OpNode& node, const Plan& plan, Device& device);

}  // namespace kbench

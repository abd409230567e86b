// The texts that a model of speech is trained with: as long as their files have them, and what of them no alignment
// with the steps of its utterance has (models/ops/ctc.h).
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

/// The same model, which takes texts of as many labels as the files of `targets` or `target_lengths` among `inputs`
/// have: people speak faster than a model expects. Another model stays as it is, and so does this one without such
/// files. The files are read when the model is first built; that may throw UsageError.
ModelSpec with_given_texts(const ModelSpec& spec, const FilesByName& inputs);

/// The op that `id` holds the losses of, where these are of texts; else null.
const OpNode* texts_behind(const Model& model, TensorId id);

/// The labels of `targets` from its file, [batch, columns], rows padded to `columns`: rows, one row for all, or, as
/// torch.nn.CTCLoss takes them too, one text behind the other, `lengths` telling how long each is. Throws UsageError.
std::vector<std::int32_t> read_texts(const std::filesystem::path& file, const Tensor& targets,
                                     std::span<const std::int32_t> lengths);

/// Throws UsageError where a text has label 0, the blank, within its first `lengths` labels; what lies behind is not
/// looked at. `file` is where it is from.
void refuse_blanks(const std::filesystem::path& file, std::span<const std::int32_t> texts, std::int64_t columns,
                   std::span<const std::int32_t> lengths);

/// The utterances of `node`, a Ctc op whose inputs are in memory, that have fewer steps than their text has labels and
/// blanks between equal ones.
std::vector<std::int64_t> without_alignment(const OpNode& node, const Plan& plan, Device& device);

/// How many of `losses`, those of `node`, are not what they should be: infinite without an alignment, finite with one.
std::int64_t count_wrong_losses(TensorId losses, const OpNode& node, const Plan& plan, Device& device);

}  // namespace kbench

// The texts that a model of speech is trained with: their lengths by their files, and which of them have no alignment
// with the steps of their utterance (models/ops/ctc.h).
#pragma once

#include <cstdint>
#include <optional>

#include "bench/measure/point/parts.h"
#include "bench/plan/data/inputs.h"
#include "models/registry.h"

namespace kbench {

/// The same model with texts as long as those in the files of `targets` or `target_lengths` among `inputs`, as people
/// may speak faster than a model expects. A model without texts, or without such files, stays as
/// it is. The files are read when the model is first built; that may throw UsageError.
ModelSpec with_given_texts(const ModelSpec& spec, const FilesByName& inputs);

/// Whether the input `id` holds texts that load_texts reads from a file.
bool is_text_of_file(const PartContext& at, TensorId id);
/// Sets the texts of the plan's model from their file, once its other inputs are set, and warns of utterances that they
/// do not fit. The file has rows of labels, one row for all, or one text after the other with `target_lengths`, as
/// torch.nn.CTCLoss takes them. Throws UsageError for others, and for a text with the blank, label 0, in it.
void load_texts(const PartContext& at);

/// Where the output `id` holds losses of texts: how many are not what they should be, infinite without an alignment and
/// finite with one. Nothing for any other output.
std::optional<std::int64_t> count_wrong_losses(const PartContext& at, TensorId id);

}  // namespace kbench

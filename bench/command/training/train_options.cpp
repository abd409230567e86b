// The table of options of `kbench train`.
#include "bench/command/training/train_options.h"

#include <fmt/format.h>

#include "bench/command/option_values.h"
#include "bench/plan/data/checkpoint_files.h"
#include "bench/plan/data/token_file.h"
#include "kbench/error.h"

namespace kbench {
namespace {

double non_negative(std::string_view option, const std::string& text) {
    if (const std::optional<double> value = plain_number(text)) return *value;
    throw UsageError(fmt::format("{} '{}': must be a number of at least 0", option, text));
}

const OptionOf<TrainRequest> table[] = {
    {"--model", "NAME", "", "the model to train (`kbench list models`): one of language or of speech",
     [](TrainRequest& r, const std::string& text) { r.model = text; }},
    {"--config", "FILE", "", "a model's config.json instead of --model",
     [](TrainRequest& r, const std::string& text) { r.config_file = text; }},
    {"--steps", "N", "100", "updates of the weights, not counting those of --weights; a skipped step counts, too",
     [](TrainRequest& r, const std::string& text) {
         r.steps = number<std::int64_t>("--steps", text, 1, "a whole number");
     }},
    {"--batch", "N", "8", "sequences or utterances at once: a step's, or with --accumulate those of a part of it",
     [](TrainRequest& r, const std::string& text) {
         r.batch = number<std::int64_t>("--batch", text, 1, "a whole number");
     }},
    {"--accumulate", "N", "1", "batches whose gradients are added up before the weights are updated once",
     [](TrainRequest& r, const std::string& text) {
         r.train.micro_batches = number("--accumulate", text, 1, "a whole number");
     }},
    {"--seq", "N", "the model's longest", "tokens of a sequence; the last is a target only",
     [](TrainRequest& r, const std::string& text) {
         r.seq = number<std::int64_t>("--seq", text, 2, "a whole number, as the last token has no next one,");
     }},
    {"--frames", "N", "1000", "frames of the longest utterance, 10 ms each",
     [](TrainRequest& r, const std::string& text) {
         r.frames = number<std::int64_t>("--frames", text, 1, "a whole number");
     }},
    {"--precision", "P", "fp32", "fp16, bf16, tf32, fp32 or fp64",
     [](TrainRequest& r, const std::string& text) { r.precision = parse_one_precision(text); }},
    backend_option<TrainRequest>(),
    device_option<TrainRequest>(),
    threads_option<TrainRequest>(),
    {"--data", "FILE", "synthetic",
     "tokens (.npy, text, JSON or raw as FILE:uint16), one stream cut into batches and begun again at its end; or synthetic: tokens of a Markov source of known entropy, or speech whose text can be read off its spectrogram",
     [](TrainRequest& r, const std::string& text) { r.data = text; }},
    {"--lr", "X", "1e-4", "learning rate, the same in every step after --warmup",
     [](TrainRequest& r, const std::string& text) { r.train.lr = non_negative("--lr", text); }},
    {"--warmup", "N", "0", "updates in which the learning rate rises in equal steps to --lr",
     [](TrainRequest& r, const std::string& text) {
         r.train.warmup = number<std::int64_t>("--warmup", text, 0, "a whole number");
     }},
    {"--weight-decay", "X", "0.01", "decay of all weights",
     [](TrainRequest& r, const std::string& text) { r.train.weight_decay = non_negative("--weight-decay", text); }},
    {"--clip-norm", "X", "none", "gradients together longer than this are cut down to it; 0: none",
     [](TrainRequest& r, const std::string& text) { r.train.clip_norm = non_negative("--clip-norm", text); }},
    {"--loss-scale", "X", "65536 in fp16, else 1",
     "the loss times this is what gradients are taken of; in fp16 it is halved where a gradient is not finite and doubled after 2000 good steps",
     [](TrainRequest& r, const std::string& text) {
         r.loss_scale = non_negative("--loss-scale", text);
         if (!(*r.loss_scale >= 0x1p-100 && *r.loss_scale <= 0x1p+100))
             throw UsageError(fmt::format("--loss-scale {}: it and its inverse must be fp32 numbers", text));
     }},
    {"--master", "P", "fp32",
     "in fp16 and bf16: fp32, copies of the weights that are updated and optimizer state in fp32; or none",
     [](TrainRequest& r, const std::string& text) {
         r.master = word("--master", spelt_out(text), {"none", "fp32"}) == "fp32";
     }},
    {"--recompute", "WHAT", "none",
     "block keeps of each block its input alone and makes the rest again for its backward: less memory, more time",
     [](TrainRequest& r, const std::string& text) {
         r.recompute = word("--recompute", text, {"none", "block"}) == "block";
     }},
    {"--weights", "FILE", "",
     "safetensors (a file, an index or a folder) to go on from, with AdamW's state and the place in the data where it has them, as those of --save do; without it weights are random",
     [](TrainRequest& r, const std::string& text) { r.weights = text; }},
    {"--save", "FILE", "",
     "where weights and AdamW's state go at the end, or when SIGINT, SIGTERM or SIGHUP stop it, as safetensors",
     [](TrainRequest& r, const std::string& text) { r.save = text; }},
    {"--seed", "N", "1", "seed of random weights and synthetic data",
     [](TrainRequest& r, const std::string& text) {
         r.seed = number<std::uint64_t>("--seed", text, 0, "a whole number");
     }},
    {"--deterministic", "", "",
     "nothing is chosen by a measured time, and sums are made in one order: the same bits in every run on one device",
     [](TrainRequest& r, const std::string&) { r.deterministic = true; }},
    {"--log-every", "N", "10", "steps between two lines of progress",
     [](TrainRequest& r, const std::string& text) {
         r.log_every = number<std::int64_t>("--log-every", text, 1, "a whole number");
     }},
};

}  // namespace

std::span<const OptionOf<TrainRequest>> train_options() { return table; }

std::string train_options_markdown() { return markdown_of(train_options()); }

ParsedTrain parse_train(const std::vector<std::string>& arguments) {
    ParsedTrain parsed;
    constexpr CommandText command{.name = "kbench train",
                                  .what = "Trains a model: forward, loss, backward and AdamW, step after step.",
                                  .examples = {"kbench train --model gpt2 --steps 100 --precision bf16",
                                               "kbench train --model gpt2 --data tokens.npy --save gpt2.safetensors",
                                               "kbench train --model gpt2 --weights gpt2.safetensors --lr 1e-5"}};
    TrainRequest& request = parsed.request;
    parsed.help = parse_options(command, train_options(), request, arguments);
    if (!parsed.help.empty()) return parsed;
    request.spec = model_asked_for(request.model, request.config_file);
    if (request.save) {
        check_can_write("--save", *request.save);
        // What --weights names is gone on from, and may be replaced.
        for (const auto& [option, file] :
             {std::pair("--data", request.data), std::pair("--config", request.config_file)})
            if (!file.empty() && file != "synthetic" && is_same_file(*request.save, token_file(file).path))
                throw UsageError(
                    fmt::format("--save {}: is the file of {} too; give each its own", request.save->string(), option));
        // A whole checkpoint, that is: what is saved is one file.
        const std::vector<std::filesystem::path> shards = files_of_checkpoint(request.weights.value_or(""));
        for (const std::filesystem::path& shard : shards)
            if (shards.size() > 1 && is_same_file(*request.save, shard))
                throw UsageError(fmt::format("--save {}: is a part of --weights {}; choose another name",
                                             request.save->string(), request.weights->string()));
    }
    const bool fp16 = request.precision == Precision::fp16;
    request.train.loss_scale = request.loss_scale.value_or(fp16 ? 65536 : 1);
    request.train.dynamic_scale = fp16;
    request.master &= size_of(storage_type(request.precision)) == 2;
    return parsed;
}

}  // namespace kbench

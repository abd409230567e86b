// The loop over the points of a sweep.
#include "bench/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/result_json.h"
#include "analysis/write/writers.h"
#include "bench/tokens.h"
#include "models/error.h"

namespace kbench {
namespace {

using Providers = std::vector<std::unique_ptr<Provider>>;

/// One point of a model, all parts. `checkpoint` is null for random weights.
void run_point(const RunOptions& options, Backend& backend, const Providers& providers, SafetensorsWeights* checkpoint,
               Point& point, std::vector<std::string>& warnings, Progress& progress, const std::string& label) {
    if (const std::string why = backend.unsupported(point.precision); !why.empty()) throw Unsupported(why);
    const auto model_of = [&](std::int64_t batch) {
        return make_gpt2(options.config, batch, point.seq, options.attention);
    };
    const auto assign = [&](const Model& model) {
        return assign_steps(model, point.precision, providers, options.providers,
                            backend.column_multiple(point.precision));
    };
    const Model model = model_of(point.batch);
    point.parameters = model.parameter_count();
    if (checkpoint != nullptr) checkpoint->check(model);
    RandomWeights random(options.seed);
    WeightSource& weights = checkpoint != nullptr ? static_cast<WeightSource&>(*checkpoint) : random;
    point.weights = weights.name();

    PointRun run(options, backend, point, warnings, progress, label);
    run.plan(model, assign(model), [&](std::int64_t available) -> std::string {
        const std::int64_t fits = largest_batch(
            [&](std::int64_t batch) {
                const Model other = model_of(batch);
                return estimate_layout(other, point.precision, assign(other)).memory.total();
            },
            available);
        return fits > 0 ? fmt::format("the largest batch that fits is {}", fits) : "not even batch 1 fits";
    });
    const std::vector<std::int32_t> tokens = options.tokens
                                                 ? read_tokens(*options.tokens, point.batch, point.seq, model.vocab)
                                                 : random_tokens(options.seed, point.batch, point.seq, model.vocab);
    if (options.verify) run.verify();
    run.load(weights, tokens);
    run.measure();
    run.time_steps();
    run.check_logits(options.dump_logits);
    run.record_kernels();
    run.measure_marginal_costs();
    run.count();
    run.warn_of_other_precisions();
}

}  // namespace

void run_points(const RunOptions& options, Backend& backend, Result& result, Progress& progress) {
    const std::vector<std::unique_ptr<Provider>> providers =
        make_providers(backend.kind(), ProviderContext{options.cache_directory / "cublaslt.json", options.retune});
    std::unique_ptr<SafetensorsWeights> checkpoint;
    if (options.weights) checkpoint = std::make_unique<SafetensorsWeights>(*options.weights);
    const auto save = [&] {
        for (const auto& provider : providers)
            for (const std::string& warning : provider->warnings())
                if (std::find(result.warnings.begin(), result.warnings.end(), warning) == result.warnings.end())
                    result.warnings.push_back(warning);
        write_file_atomically(options.out / "result.json", to_text(result));
        write_file_atomically(options.out / "steps.csv", write_steps_csv(result));
        const auto has_kernels = [](const Point& point) { return point.activity.runs > 0; };
        if (std::ranges::any_of(result.points, has_kernels))
            write_file_atomically(options.out / "kernels.csv", write_kernels_csv(result));
    };

    const std::vector<std::int64_t> seqs = options.seqs.empty() ? std::vector{options.config.n_ctx} : options.seqs;
    const std::size_t total = options.precisions.size() * seqs.size() * options.batches.size();
    for (const Precision precision : options.precisions)
        for (const std::int64_t seq : seqs)
            for (const std::int64_t batch : options.batches) {
                Point& point = result.points.emplace_back();
                point.model = options.config.name;
                point.backend = name(backend.kind());
                point.attention = options.attention == AttentionKind::fused ? "fused" : "unfused";
                point.batch = batch;
                point.seq = seq;
                point.precision = precision;
                point.seed = options.seed;
                const std::string label = fmt::format("[{}/{}] {} {} batch {} seq {} {}", result.points.size(), total,
                                                      point.backend, point.model, batch, seq, name(precision));
                try {
                    run_point(options, backend, providers, checkpoint.get(), point, result.warnings, progress, label);
                    point.status = PointStatus::done;
                } catch (const Unsupported& refusal) {
                    point.status = PointStatus::skipped;
                    point.reason = refusal.what();
                } catch (const UsageError&) {
                    result.points.pop_back();  // a mistake, not a measurement; earlier points are on disk
                    progress.clear();
                    throw;
                } catch (const Error& error) {
                    point.status = PointStatus::failed;
                    point.reason = error.what();
                    progress.clear();
                    save();
                    throw;
                }
                save();
            }
    progress.clear();
}

}  // namespace kbench

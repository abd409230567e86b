// Builds a perceptron layer by layer and reads its configuration.
#include "models/mlp.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

#include "models/base/config_keys.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

ModelSpec spec_of(const MlpConfig& config) {
    ModelSpec spec{.name = config.name};
    spec.axes = {{.name = "batch"}};
    spec.description = fmt::format("{}: sizes {}", config.name, fmt::join(config.sizes, ", "));
    spec.build_at = [config](const ModelPoint& point) { return make_mlp(config, point.count("batch")); };
    return spec;
}

}  // namespace

std::vector<ModelSpec> mlp_models() { return {spec_of({"mlp", {1024, 4096, 4096, 1024}})}; }

ModelSpec read_mlp(const std::string& text, const std::string& path) {
    const ConfigKeys keys(text, path, mlp_keys());
    const std::string name = keys.text_or("name", std::filesystem::path(path).stem().string());
    std::vector<std::int64_t> sizes =
        keys.required_integers("sizes", 2, "an mlp's config.json needs sizes, such as [784, 512, 10]");
    keys.require_few_layers("sizes", static_cast<std::int64_t>(sizes.size()) - 1);
    ModelSpec spec = spec_of({name, std::move(sizes)});
    spec.configuration = keys.read();
    spec.notes = keys.notes();
    return spec;
}

Model make_mlp(const MlpConfig& config, std::int64_t batch) {
    Model model;
    model.name = config.name;
    const auto tensor = [&model](Tensor one) {
        model.tensors.push_back(std::move(one));
        return model.tensors.size() - 1;
    };
    const auto activation = [&](std::string name, std::int64_t columns) {
        return tensor({.name = std::move(name), .shape = {batch, columns}});
    };
    const auto add = [&model](Op op, const std::string& layer, std::vector<TensorId> inputs, TensorId output) {
        model.ops.push_back({std::move(op), layer, std::move(inputs), {output}});
        return output;
    };

    TensorId x = activation("inputs", config.sizes.front());
    model.inputs = {x};
    for (std::size_t i = 0; i + 1 < config.sizes.size(); ++i) {
        const std::int64_t in = config.sizes[i], out = config.sizes[i + 1];
        const bool last = i + 2 == config.sizes.size();
        const std::string layer = fmt::format("layers.{}", i);
        // Weights are scaled so that the sums stay near 1.
        const TensorId weight = tensor({.name = layer + ".weight",
                                        .role = Role::weights,
                                        .shape = {out, in},
                                        .contents = Contents::normal(1 / std::sqrt(static_cast<double>(in)))});
        const TensorId bias = tensor(
            {.name = layer + ".bias", .role = Role::weights, .shape = {out}, .contents = {Contents::Kind::zeros}});
        x = add(Gemm{batch, out, in, true}, layer, {x, weight}, activation(layer + ".gemm", out));
        x = add(BiasAdd{batch, out}, layer, {x, bias}, activation(last ? "outputs" : layer + ".out", out));
        if (!last) x = add(Gelu{batch, out}, layer + ".act", {x}, activation(layer + ".act.out", out));
    }
    model.outputs = {x};
    return model;
}

}  // namespace kbench

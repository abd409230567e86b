// Builds Deep Speech 2 layer by layer and reads its configuration.
#include "models/deepspeech2.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "kbench/error.h"
#include "models/base/config_keys.h"
#include "models/lengths.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

using Kind = Contents::Kind;

/// A batch of images whose width is time.
struct Image {
    TensorId tensor;
    std::int64_t channels, height, width;
};

/// Input frames per step after both convolutions: their strides over time are 2 and 1. The mask between them uses the
/// same number, because the first one already has stride 2.
constexpr std::int64_t frames_per_step = 2;

/// Appends tensors and ops. Each function returns the tensor that holds its result.
class DeepSpeech2Builder {
  public:
    DeepSpeech2Builder(const DeepSpeech2Config& config, std::int64_t batch, std::int64_t frames)
        : config_(config), batch_(batch), frames_(frames) {
        model_.name = config.name;
    }

    Model build() {
        const std::int64_t height = config_.frequencies();
        const TensorId spectrogram = tensor({.name = "spectrogram", .shape = {batch_, 1, height, frames_}});
        lengths_ = tensor({.name = "lengths",
                           .role = Role::tokens,
                           .shape = {batch_, 1},
                           .element = ElementType::int32,
                           .contents = lengths_operand(batch_, frames_).contents});
        Image image{spectrogram, 1, height, frames_};
        image = convolution("conv.seq_module", 0, image, {41, 11, 2, 2, 20, 5});
        image = convolution("conv.seq_module", 3, image, {21, 11, 2, 1, 10, 5});

        steps_ = image.width;
        const std::int64_t features = image.channels * image.height;
        TensorId x =
            op(ToSequence{batch_, features, steps_}, "conv", {image.tensor}, sequence("conv.sequence", features));
        for (std::int64_t i = 0; i < config_.hidden_layers; ++i)
            x = recurrent_layer(i, x, i == 0 ? features : config_.hidden_size);
        x = batch_norm("fc.0.module.0", x);
        const TensorId weight = parameter("fc.0.module.1.weight", {config_.labels, config_.hidden_size});
        const TensorId logits =
            tensor({.name = "logits", .role = Role::logits, .shape = {steps_, batch_, config_.labels}});
        op(Gemm{steps_ * batch_, config_.labels, config_.hidden_size, true}, "fc.0.module.1", {x, weight}, logits);
        model_.inputs = {spectrogram, lengths_};
        model_.outputs = {logits};
        if (config_.labels > 1) add_loss(logits);  // the blank alone is no label
        return std::move(model_);
    }

  private:
    struct Kernel {
        std::int64_t height, width, stride_h, stride_w, pad_h, pad_w;
    };

    /// CTC loss with as many labels as read speech has, about 15 characters a second.
    void add_loss(TensorId logits) {
        const std::int64_t target = std::max<std::int64_t>(1, frames_ * 15 / 100);
        const Ctc ctc{steps_, batch_, config_.labels, target, frames_per_step};
        std::vector<TensorId> inputs{logits, lengths_};
        for (const OperandSpec& spec : ctc.operands(Direction::fwd))
            if (spec.name == "targets" || spec.name == "target_lengths")
                inputs.push_back(tensor({.name = std::string(spec.name),
                                         .role = Role::tokens,
                                         .shape = {spec.rows, spec.columns},
                                         .element = spec.element,
                                         .contents = spec.contents}));
        model_.loss = OpNode{ctc, "loss", std::move(inputs), {}};
    }

    /// Convolution, batch norm and Hardtanh, which are modules `first` to `first` + 2, each followed by the time mask.
    Image convolution(const std::string& sequence, int first, const Image& x, const Kernel& kernel) {
        const auto module = [&](int offset) { return fmt::format("{}.{}", sequence, first + offset); };
        Conv2d conv{batch_,       x.channels,      x.height,        x.width,      config_.conv_channels, kernel.height,
                    kernel.width, kernel.stride_h, kernel.stride_w, kernel.pad_h, kernel.pad_w,          true};
        // PyTorch's reset_parameters draws uniformly within 1 / sqrt(fan in); this is the deviation of that.
        const double deviation = 1 / std::sqrt(3 * static_cast<double>(conv.taps()));
        const TensorId weight =
            parameter(module(0) + ".weight", {conv.out_channels, conv.in_channels, conv.kernel_h, conv.kernel_w},
                      Contents::normal(deviation));
        const TensorId bias = parameter(module(0) + ".bias", {conv.out_channels}, Contents::normal(deviation));
        const Image out{0, conv.out_channels, conv.out_height(), conv.out_width()};
        const std::int64_t rows = batch_ * out.channels * out.height;
        const auto made = [&](const std::string& name) {
            return tensor({.name = name, .shape = {batch_, out.channels, out.height, out.width}});
        };
        const auto masked = [&](TensorId id, const std::string& layer) {
            const TimeMask mask{batch_, out.channels * out.height, out.width, frames_per_step};
            return op(mask, layer, {id, lengths_}, made(layer + ".masked"));
        };
        TensorId y = op(conv, module(0), {x.tensor, weight, bias}, made(module(0) + ".out"));
        y = masked(y, module(0));
        const BatchNorm norm{rows, out.width, out.channels, out.height};
        y = op(norm, module(1), norm_inputs(module(1), y, out.channels), made(module(1) + ".out"));
        y = masked(y, module(1));
        y = op(Hardtanh{rows, out.width}, module(2), {y}, made(module(2) + ".out"));
        return {masked(y, module(2)), out.channels, out.height, out.width};
    }

    TensorId recurrent_layer(std::int64_t index, TensorId x, std::int64_t in) {
        const std::string layer = fmt::format("rnns.{}", index);
        if (index > 0) x = batch_norm(layer + ".batch_norm.module", x);
        switch (config_.cell) {
            case Cell::lstm: return bidirectional<Lstm>(layer + ".rnn", x, in);
            case Cell::gru: return bidirectional<Gru>(layer + ".rnn", x, in);
            case Cell::rnn: return bidirectional<Rnn>(layer + ".rnn", x, in);
        }
        return x;
    }

    /// A bidirectional layer: per direction the product of all steps with weight_ih and the recurrence; then the sum.
    template <class Layer>
    TensorId bidirectional(const std::string& layer, TensorId x, std::int64_t in) {
        const std::int64_t hidden = config_.hidden_size, width = Layer::gates * hidden, rows = steps_ * batch_;
        const char* const directions[] = {"", "_reverse"};
        std::vector<TensorId> read;
        for (const char* direction : directions) {
            const TensorId weight = recurrent_parameter(layer + ".weight_ih_l0" + direction, {width, in});
            read.push_back(op(Gemm{rows, width, in, true}, layer, {x, weight},
                              sequence(fmt::format("{}.gates_x{}", layer, direction), width)));
        }
        for (const char* name : {".weight_hh_l0", ".bias_ih_l0", ".bias_hh_l0"})
            for (const char* direction : directions) {
                const bool is_bias = std::string_view(name).starts_with(".bias");
                const std::vector<std::int64_t> shape = is_bias ? std::vector{width} : std::vector{width, hidden};
                read.push_back(recurrent_parameter(layer + name + direction, shape));
            }
        read.push_back(lengths_);
        const TensorId out = sequence(layer + ".out", hidden), out_reverse = sequence(layer + ".out_reverse", hidden);
        model_.ops.push_back({Layer{{steps_, batch_, hidden, frames_per_step}}, layer, read, {out, out_reverse}});
        return op(ResidualAdd{rows, hidden}, layer, {out, out_reverse}, sequence(layer + ".sum", hidden));
    }

    TensorId batch_norm(const std::string& layer, TensorId x) {
        const std::int64_t width = config_.hidden_size;
        return op(BatchNorm{steps_ * batch_, width}, layer, norm_inputs(layer, x, width),
                  sequence(layer + ".out", width));
    }
    std::vector<TensorId> norm_inputs(const std::string& layer, TensorId x, std::int64_t channels) {
        const TensorId weight = parameter(layer + ".weight", {channels}, {Kind::ones});
        const TensorId bias = parameter(layer + ".bias", {channels}, {Kind::zeros});
        const TensorId mean = parameter(layer + ".running_mean", {channels}, {Kind::zeros});
        return {x, weight, bias, mean, parameter(layer + ".running_var", {channels}, {Kind::ones})};
    }

    TensorId tensor(Tensor tensor) {
        model_.tensors.push_back(std::move(tensor));
        return model_.tensors.size() - 1;
    }
    TensorId parameter(const std::string& name, std::vector<std::int64_t> shape, Contents contents) {
        return tensor({.name = name, .role = Role::weights, .shape = std::move(shape), .contents = contents});
    }
    /// Initial values as in PyTorch's linear and recurrent layers.
    TensorId parameter(const std::string& name, std::vector<std::int64_t> shape) {
        const double deviation = 1 / std::sqrt(3 * static_cast<double>(shape.back()));
        return parameter(name, std::move(shape), Contents::normal(deviation));
    }
    TensorId recurrent_parameter(const std::string& name, std::vector<std::int64_t> shape) {
        const double deviation = 1 / std::sqrt(3 * static_cast<double>(config_.hidden_size));
        return parameter(name, std::move(shape), Contents::normal(deviation));
    }
    TensorId sequence(const std::string& name, std::int64_t width) {
        return tensor({.name = name, .shape = {steps_, batch_, width}});
    }
    TensorId op(const Op& op, const std::string& layer, std::vector<TensorId> inputs, TensorId output) {
        model_.ops.push_back({op, layer, std::move(inputs), {output}});
        return output;
    }

    const DeepSpeech2Config& config_;
    const std::int64_t batch_, frames_;
    std::int64_t steps_ = 0;  ///< time steps after the convolutions
    TensorId lengths_ = 0;
    Model model_;
};

/// The cell called `name`, one of cell_names.
Cell cell_named(std::string_view name) {
    return static_cast<Cell>(std::ranges::find(cell_names, name) - std::begin(cell_names));
}

ModelSpec spec_of(const DeepSpeech2Config& c) {
    ModelSpec spec{.name = c.name};
    spec.axes = {{.name = "batch"},
                 {.name = frames_name, .usual = 1000},
                 {.name = "cell", .usual_word = cell_names[static_cast<int>(c.cell)]},
                 {.name = lengths_name}};
    spec.description = fmt::format(
        "{}: rnn_type {}, hidden_size {}, hidden_layers {}, conv_channels {}, labels {}, sample_rate {}, window_size {}",
        c.name, cell_names[static_cast<int>(c.cell)], c.hidden_size, c.hidden_layers, c.conv_channels, c.labels,
        c.sample_rate, c.window_size);
    spec.build_at = [c](const ModelPoint& point) {
        DeepSpeech2Config config = c;
        config.cell = cell_named(point.word("cell"));
        return make_deepspeech2(config, point.count("batch"), point.count("frames"));
    };
    return spec;
}

}  // namespace

std::int64_t DeepSpeech2Config::frequencies() const {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(sample_rate) * window_size / 2)) + 1;
}

std::vector<ModelSpec> deepspeech2_models() { return {spec_of({.name = "deepspeech2"})}; }

ModelSpec read_deepspeech2(const std::string& text, const std::string& path) {
    const ConfigKeys keys(text, path, deepspeech2_keys());
    constexpr const char* its_own[] = {"rnn_type", "hidden_size", "hidden_layers", "conv_channels",
                                       "labels",   "sample_rate", "window_size"};
    // Every key has a default, so a file of another layout would silently be read as the published model.
    if (std::ranges::none_of(its_own, [&](const char* key) { return keys.has(key); }))
        keys.fail(fmt::format(
            "no key of a Deep Speech 2 was found; its keys are {}, at the top or as deepspeech.pytorch nests them in model and data.spect",
            fmt::join(its_own, ", ")));
    DeepSpeech2Config config{.name = keys.text_or("name", std::filesystem::path(path).stem().string())};
    const std::string cell = keys.text_or("rnn_type", std::string(cell_names[0]));
    if (std::ranges::find(cell_names, cell) == std::end(cell_names))
        keys.fail(fmt::format("rnn_type '{}' is not supported; lstm, gru and rnn are", cell));
    config.cell = cell_named(cell);
    config.hidden_size = keys.integer_or("hidden_size", config.hidden_size);
    config.hidden_layers = keys.integer_or("hidden_layers", config.hidden_layers);
    keys.require_few_layers("hidden_layers", config.hidden_layers);
    config.conv_channels = keys.integer_or("conv_channels", config.conv_channels);
    config.labels = keys.count_or("labels", config.labels);
    config.sample_rate = keys.integer_or("sample_rate", config.sample_rate);
    config.window_size = keys.number_or("window_size", config.window_size);
    ModelSpec spec = spec_of(config);
    spec.configuration = keys.read();
    spec.notes = keys.notes();
    return spec;
}

Model make_deepspeech2(const DeepSpeech2Config& config, std::int64_t batch, std::int64_t frames) {
    if (batch < 1) throw UsageError(fmt::format("batch {} must be at least 1", batch));
    if (frames < 1) throw UsageError(fmt::format("frames {} must be at least 1", frames));
    return DeepSpeech2Builder(config, batch, frames).build();
}

}  // namespace kbench

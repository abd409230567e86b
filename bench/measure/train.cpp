// See train.h.
#include "bench/measure/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "bench/measure/device_rows.h"
#include "bench/plan/data/convert.h"
#include "kbench/error.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

/// Where the optimizer begins.
std::size_t norm_of(const Plan& plan) {
    const auto is_norm = [](const PlannedStep& step) { return step.step.head_op().is<GlobalNorm>(); };
    return static_cast<std::size_t>(std::ranges::find_if(plan.steps(), is_norm) - plan.steps().begin());
}

TensorId named(const Model& model, const std::vector<TensorId>& ids, std::string_view name) {
    for (const TensorId id : ids)
        if (model.tensors[id].name == name) return id;
    throw std::logic_error(fmt::format("{} has no {} to train with", model.name, name));
}

/// A vector of the device, whose numbers are fp32 or fp64.
std::vector<double> read_numbers(const Plan& plan, TensorId id, Device& device) {
    const Operand& operand = plan.operand(id);
    std::vector<std::byte> bytes(static_cast<std::size_t>(operand.bytes()));
    device.download(bytes.data(), plan.address(id), bytes.size());
    std::vector<double> numbers(static_cast<std::size_t>(operand.columns));  // of its one row
    convert(operand.type, bytes.data(), DataType::fp64, numbers.data(), static_cast<std::int64_t>(numbers.size()));
    return numbers;
}

}  // namespace

Trainer::Trainer(Plan& plan, Device& device, const TrainOptions& options)
    : plan_(plan),
      device_(device),
      options_(options),
      first_of_update_(norm_of(plan)),
      tokens_(named(plan.model(), plan.model().inputs, "tokens")),
      schedule_(named(plan.model(), plan.model().inputs, "schedule")),
      loss_scale_(named(plan.model(), plan.model().inputs, "loss_scale")),
      losses_(named(plan.model(), plan.model().outputs, "losses")),
      norm_(named(plan.model(), plan.model().outputs, "norm")),
      scale_(options.loss_scale) {
    const auto enqueue = [this](std::size_t first, std::size_t end) {
        return [this, first, end] {
            for (std::size_t s = first; s < end; ++s) plan_.run_step(s, device_.stream());
        };
    };
    if (device.is_gpu()) {  // loads every kernel, which a capture does not allow
        const std::vector<std::int32_t> zeros(static_cast<std::size_t>(plan_.model().tensors[tokens_].elements()));
        plan_.set_input(tokens_, std::as_bytes(std::span(zeros)));
        set_numbers(loss_scale_, std::vector{1.0});
        set_schedule(0);
        enqueue(0, plan.steps().size())();
        device.synchronize();
    }
    micro_batch_ = device.capture(enqueue(0, first_of_update_));
    update_ = device.capture(enqueue(first_of_update_, plan.steps().size()));
    if (options.micro_batches > 1)
        clear_ = device.capture([this] {
            for (const auto& [weight, gradient] : plan_.model().gradients)
                device_.fill(plan_.address(gradient), 0, static_cast<std::size_t>(plan_.operand(gradient).bytes()));
        });
}

std::int64_t Trainer::tokens() const { return options_.micro_batches * plan_.model().tensors[tokens_].elements(); }

void Trainer::set_numbers(TensorId input, std::span<const double> numbers) {
    const Operand& operand = plan_.operand(input);
    std::vector<std::byte> bytes(static_cast<std::size_t>(operand.bytes()));
    convert(DataType::fp64, numbers.data(), operand.type, bytes.data(), static_cast<std::int64_t>(numbers.size()));
    plan_.set_input(input, bytes);
}

/// Of the update that comes next; a multiplier of 0 makes it none.
void Trainer::set_schedule(double multiplier) {
    const auto t = static_cast<double>(updates_ + 1);
    const TrainOptions& o = options_;
    set_numbers(schedule_, std::vector{o.lr, o.beta1, o.beta2, o.epsilon, o.weight_decay, 1 - std::pow(o.beta1, t),
                                       1 - std::pow(o.beta2, t), multiplier, o.clip_norm});
}

/// Rows without a target have the loss 0.
double Trainer::mean_loss() {
    const Tensor& tokens = plan_.model().tensors[tokens_];
    double sum = 0;
    for (const double loss : read_numbers(plan_, losses_, device_)) sum += loss;
    return sum / static_cast<double>(tokens.rows() * (tokens.columns() - 1));
}

void Trainer::begin(std::span<const std::int32_t> tokens) {
    // Each loss is a mean over one micro-batch, that of the step over all.
    set_numbers(loss_scale_, std::vector{scale_ / options_.micro_batches});
    set_schedule(1 / scale_);
    if (clear_) clear_->launch();
    losses_so_far_ = 0;
    const std::size_t each = tokens.size() / static_cast<std::size_t>(options_.micro_batches);
    for (std::size_t first = 0; first < tokens.size(); first += each) {
        if (first > 0) {  // the last one's tokens and losses are about to be overwritten
            device_.synchronize();
            losses_so_far_ += mean_loss();
        }
        plan_.set_input(tokens_, std::as_bytes(tokens.subspan(first, each)));
        micro_batch_->launch();
    }
    update_->launch();
}

TrainedStep Trainer::finish() {
    device_.synchronize();
    TrainedStep done;
    done.loss_scale = scale_;
    done.loss = (losses_so_far_ + mean_loss()) / options_.micro_batches;
    done.norm = read_numbers(plan_, norm_, device_).front() / scale_;
    done.skipped = !std::isfinite(done.norm);
    if (!std::isfinite(done.loss))
        throw MeasurementError(
            fmt::format("the loss is {} after {} updates: a smaller --lr may help", done.loss, updates_));
    if (!done.skipped) {
        ++updates_;
        if (options_.dynamic_scale && ++good_in_a_row_ == options_.growth_interval) {
            scale_ *= 2;
            good_in_a_row_ = 0;
        }
        return done;
    }
    if (!options_.dynamic_scale || scale_ <= 1)
        throw MeasurementError(
            fmt::format("a gradient is not finite after {} updates, at loss scale {}", updates_, scale_));
    scale_ = std::max(1.0, scale_ / 2);
    good_in_a_row_ = 0;
    return done;
}

void Trainer::save(const std::filesystem::path& path) const {
    const Model& model = plan_.model();
    std::vector<SafetensorsTensor> tensors;
    for (TensorId id = 0; id < model.tensors.size(); ++id) {
        if (model.tensors[id].role != Role::weights) continue;
        TensorId from = id;
        for (TensorId other = 0; other < model.tensors.size(); ++other)
            if (model.tensors[other].starts_as == id && model.tensors[other].resident) from = other;
        tensors.push_back(tensor_on(device_, plan_.address(from), plan_.operand(from), model.tensors[id]));
    }
    write_safetensors(path, tensors);
}

}  // namespace kbench

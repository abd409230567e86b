// Runs training steps: forward, loss, backward and AdamW, with the schedule and the loss scale between them.
#include "bench/measure/training/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/point/device_rows.h"
#include "bench/plan/data/checkpoint.h"
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
    std::vector<double> numbers(static_cast<std::size_t>(operand.columns));  // its one row
    convert(operand.type, bytes.data(), DataType::fp64, numbers.data(), static_cast<std::int64_t>(numbers.size()));
    return numbers;
}

const LossInfo& loss_of(const Model& model) {
    for (const OpNode& node : model.ops)
        if (const LossInfo* loss = node.op.kind().loss) return *loss;
    throw std::logic_error(fmt::format("{} has no loss to train with", model.name));
}

/// Throws MeasurementError, exit 1, where a tensor that is to be saved holds a number that no training should leave.
void refuse_bad_numbers(Device& device, void* memory, const Operand& operand, const Tensor& tensor, Allowed allowed) {
    visit_rows(device, memory, operand, [&](const reference::View& slab, std::int64_t first_row) {
        if (const auto bad = first_bad_number(slab.type, slab.data, slab.rows, slab.columns, slab.stride, allowed))
            throw MeasurementError(
                fmt::format("{}: number {} is {} after the training, and nothing is saved: a smaller --lr may help",
                            tensor.name, first_row * slab.columns + bad->index, bad->value));
    });
}

constexpr std::string_view schedule_name = "schedule", loss_scale_name = "loss_scale";

}  // namespace

std::vector<TensorId> batch_inputs(const Model& model) {
    std::vector<TensorId> inputs = model.inputs;
    std::erase_if(inputs, [&](TensorId id) {
        return model.tensors[id].name == schedule_name || model.tensors[id].name == loss_scale_name;
    });
    return inputs;
}

Trainer::Trainer(Plan& plan, Device& device, const TrainOptions& options)
    : plan_(plan),
      device_(device),
      options_(options),
      first_of_update_(norm_of(plan)),
      schedule_(named(plan.model(), plan.model().inputs, schedule_name)),
      loss_scale_(named(plan.model(), plan.model().inputs, loss_scale_name)),
      losses_(named(plan.model(), plan.model().outputs, "losses")),
      norm_(named(plan.model(), plan.model().outputs, "norm")),
      inputs_(batch_inputs(plan.model())),
      progress_{.loss_scale = options.loss_scale} {
    const auto enqueue = [this](std::size_t first, std::size_t end) {
        return [this, first, end] {
            for (std::size_t s = first; s < end; ++s) plan_.run_step(s, device_.stream());
        };
    };
    if (device.is_gpu()) {  // loads every kernel, which a capture does not allow
        for (const TensorId id : inputs_)
            plan_.set_input(id, std::vector<std::byte>(static_cast<std::size_t>(plan_.operand(id).bytes())));
        std::vector<std::pair<TensorId, std::vector<std::byte>>> before;
        for (const TensorId id : moved_by_the_forward()) {
            before.emplace_back(id, std::vector<std::byte>(static_cast<std::size_t>(plan_.operand(id).bytes())));
            device.download(before.back().second.data(), plan_.address(id), before.back().second.size());
        }
        set_numbers(loss_scale_, std::vector{1.0});
        set_schedule(0);
        enqueue(0, plan.steps().size())();
        device.synchronize();
        for (const auto& [id, bytes] : before) device.upload(plan_.address(id), bytes.data(), bytes.size());
    }
    micro_batch_ = device.capture(enqueue(0, first_of_update_));
    update_ = device.capture(enqueue(first_of_update_, plan.steps().size()));
    if (options.micro_batches > 1)
        clear_ = device.capture([this] {
            for (const auto& [weight, gradient] : plan_.model().gradients)
                device_.fill(plan_.address(gradient), 0, static_cast<std::size_t>(plan_.operand(gradient).bytes()));
        });
}

std::string_view Trainer::unit() const { return loss_of(plan_.model()).examples; }

std::int64_t Trainer::examples() const {
    const Tensor& counted = plan_.model().tensors[loss_of(plan_.model()).one_per_example ? losses_ : inputs_.front()];
    return options_.micro_batches * counted.elements();
}

std::vector<std::pair<std::string, double>> Trainer::numbers_of(const TrainingProgress& progress) const {
    return {{"training.steps", static_cast<double>(progress.steps)},
            {"training.updates", static_cast<double>(progress.updates)},
            {fmt::format("training.{}", unit()), static_cast<double>(progress.examples)},
            {"training.loss_scale", progress.loss_scale},
            {"training.good_in_a_row", static_cast<double>(progress.good_in_a_row)}};
}

std::vector<TensorId> Trainer::moved_by_the_forward() const {
    const Model& model = plan_.model();
    std::vector<TensorId> moved;
    for (const OpNode& node : model.ops)
        if (node.direction == Direction::fwd && !node.op.is<AdamW>())
            for (const TensorId id : node.outputs_of(OperandUse::in_place))
                if (model.tensors[id].role == Role::weights) moved.push_back(id);
    return moved;
}

void Trainer::set_numbers(TensorId input, std::span<const double> numbers) {
    const Operand& operand = plan_.operand(input);
    std::vector<std::byte> bytes(static_cast<std::size_t>(operand.bytes()));
    convert(DataType::fp64, numbers.data(), operand.type, bytes.data(), static_cast<std::int64_t>(numbers.size()));
    plan_.set_input(input, bytes);
}

/// Sets the numbers of the next update; a multiplier of 0 makes it change nothing.
void Trainer::set_schedule(double multiplier) {
    const auto t = static_cast<double>(progress_.updates + 1);
    const TrainOptions& o = options_;
    const double lr = o.lr * (o.warmup > 0 ? std::min(1.0, t / static_cast<double>(o.warmup)) : 1.0);
    set_numbers(schedule_, std::vector{lr, o.beta1, o.beta2, o.epsilon, o.weight_decay, 1 - std::pow(o.beta1, t),
                                       1 - std::pow(o.beta2, t), multiplier, o.clip_norm});
}

/// Rows without a target have the loss 0.
double Trainer::mean_loss() {
    double sum = 0;
    for (const double loss : read_numbers(plan_, losses_, device_)) sum += loss;
    const Tensor& read = plan_.model().tensors[inputs_.front()];
    const std::int64_t with_target = loss_of(plan_.model()).one_per_example ? plan_.model().tensors[losses_].elements()
                                                                            : read.rows() * (read.columns() - 1);
    return sum / static_cast<double>(with_target);
}

void Trainer::begin(std::span<const Batch> micro_batches) {
    // Each loss is a mean over one micro-batch, that of the step over all.
    set_numbers(loss_scale_, std::vector{progress_.loss_scale / options_.micro_batches});
    set_schedule(1 / progress_.loss_scale);
    if (clear_) clear_->launch();
    losses_so_far_ = 0;
    for (std::size_t i = 0; i < micro_batches.size(); ++i) {
        if (i > 0) {  // the last one's inputs and losses are about to be overwritten
            device_.synchronize();
            losses_so_far_ += mean_loss();
        }
        for (std::size_t k = 0; k < inputs_.size(); ++k) plan_.set_input(inputs_[k], micro_batches[i].at(k));
        micro_batch_->launch();
    }
    update_->launch();
}

TrainedStep Trainer::finish() {
    device_.synchronize();
    TrainingProgress& now = progress_;
    TrainedStep done;
    done.loss_scale = now.loss_scale;
    done.loss = (losses_so_far_ + mean_loss()) / options_.micro_batches;
    done.norm = read_numbers(plan_, norm_, device_).front() / now.loss_scale;
    done.skipped = !std::isfinite(done.norm);
    if (!std::isfinite(done.loss))
        throw MeasurementError(
            fmt::format("the loss is {} after {} updates: a smaller --lr may help", done.loss, now.updates));
    if (done.skipped && (!options_.dynamic_scale || now.loss_scale <= 1))
        throw MeasurementError(
            fmt::format("a gradient is not finite after {} updates, at loss scale {}", now.updates, now.loss_scale));
    ++now.steps;
    now.examples += examples();
    if (done.skipped) {
        now.loss_scale = std::max(1.0, now.loss_scale / 2);
        now.good_in_a_row = 0;
        return done;
    }
    ++now.updates;
    if (options_.dynamic_scale && ++now.good_in_a_row == options_.growth_interval) {
        now.loss_scale *= 2;
        now.good_in_a_row = 0;
    }
    return done;
}

std::vector<Trainer::StateTensor> Trainer::optimizer_state() const {
    const OpNode& node = plan_.model().ops.back();
    const auto* adamw = node.op.get_if<AdamW>();
    if (adamw == nullptr) throw std::logic_error("a model in training ends with AdamW");
    std::vector<StateTensor> tensors;
    for (std::size_t i = 0; i < adamw->sizes.size(); ++i) {  // each has weight, gradient, m, v
        const std::size_t first = adamw->first_operand() + i * adamw->operands_each();
        tensors.push_back({node.inputs.at(first + 2), Allowed::finite});
        tensors.push_back({node.inputs.at(first + 3), Allowed::finite_not_negative});
    }
    return tensors;
}

void Trainer::save(const std::filesystem::path& path) const {
    const Model& model = plan_.model();
    std::vector<SafetensorsTensor> tensors;
    const auto add = [&](TensorId id, TensorId from, Allowed allowed) {
        const Operand& operand = plan_.operand(from);
        refuse_bad_numbers(device_, plan_.address(from), operand, model.tensors[id], allowed);
        tensors.push_back(tensor_on(device_, plan_.address(from), operand, model.tensors[id]));
    };
    for (TensorId id = 0; id < model.tensors.size(); ++id) {
        if (model.tensors[id].role != Role::weights) continue;
        TensorId from = id;
        for (TensorId other = 0; other < model.tensors.size(); ++other)
            if (model.tensors[other].starts_as == id && model.tensors[other].resident) from = other;
        add(id, from, Allowed::finite);
    }
    for (const auto& [id, allowed] : optimizer_state()) add(id, id, allowed);
    for (const auto& [name, number] : numbers_of(progress_))
        tensors.push_back({name, DataType::fp64, {1}, [number](const FileSink& sink) {
                               sink(std::as_bytes(std::span(&number, 1)));
                           }});
    write_safetensors(path, tensors);
}

bool Trainer::go_on_from(const std::filesystem::path& path) {
    const Checkpoint file(path);
    std::vector<std::pair<std::string, double>> numbers = numbers_of(progress_);
    if (!file.has(numbers.front().first)) return false;
    for (auto& [name, number] : numbers) {
        file.load({.name = name, .role = Role::optimizer, .shape = {1}}, DataType::fp64, &number, 1);
        const bool is_scale = name == "training.loss_scale";
        const bool is_whole = is_scale || number == std::trunc(number);
        if (!is_whole || !(number >= (is_scale ? 0x1p-100 : 0) && number <= (is_scale ? 0x1p+100 : 0x1p+53)))
            throw UsageError(fmt::format("{}: {} is {}, which no training leaves", path.string(), name, number));
    }
    std::vector<std::byte> bytes;
    for (const StateTensor& state : optimizer_state()) {
        const TensorId id = state.id;
        const Operand& operand = plan_.operand(id);
        bytes.resize(static_cast<std::size_t>(operand.bytes()));
        file.load(plan_.model().tensors[id], operand.type, bytes.data(), operand.stride, state.allowed);
        device_.upload(plan_.address(id), bytes.data(), bytes.size());
    }
    const auto whole = [&](std::size_t i) { return static_cast<std::int64_t>(numbers[i].second); };
    const double scale = options_.dynamic_scale ? numbers[3].second : progress_.loss_scale;
    progress_ = {whole(0), whole(1), whole(2), scale, whole(4)};
    return true;
}

}  // namespace kbench

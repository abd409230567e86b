// Reads the ranges around a launch from the outermost to the innermost, and finds the forward of what a backward does.
#include "analysis/program/layers.h"

#include <algorithm>
#include <unordered_map>

#include "models/base/lists.h"
#include "models/base/values.h"

namespace kbench {
namespace {

using Chain = std::vector<OpFrame>;  // from the outermost range to the innermost

Chain chain_of(const ProgramFile& file, std::int64_t range) {
    Chain chain;
    for (; range != 0; range = file.range(range)->parent)
        chain.push_back({range, parse_frame(file.text(file.range(range)->text))});
    std::ranges::reverse(chain);
    return chain;
}

/// Place of the last frame of one of these kinds; nothing where there is none.
template <class... Kinds>
std::optional<std::size_t> last_of(const Chain& chain, Kinds... kinds) {
    for (std::size_t i = chain.size(); i-- > 0;)
        if (((chain[i].frame.kind == kinds) || ...)) return i;
    return std::nullopt;
}

/// The program's own ranges, joined; empty where there are none.
std::string own_ranges(const Chain& chain) {
    return joined(chain, "/", [](const OpFrame& own) {
        return own.frame.kind == FrameKind::user ? own.frame.name : std::string();
    });
}

void add_ops(ActivityLayer& layer, const Chain& chain, std::size_t from) {
    for (std::size_t i = from; i < chain.size(); ++i)
        if (chain[i].frame.kind == FrameKind::op) layer.ops.push_back(chain[i]);
}

void add_call(ActivityLayer& layer, const OpFrame& call) {
    layer.call = call.range;
    layer.op = call.frame.name;
}

/// Layer, class, type and line of the innermost module; else the program's own ranges, or the outermost op.
void add_module(ActivityLayer& layer, const Chain& chain, std::optional<std::size_t> module) {
    if (!module) {
        layer.layer = own_ranges(chain);
        if (layer.layer.empty() && !layer.ops.empty()) layer.layer = unqualified(layer.ops.front().frame.name);
        return;
    }
    const Frame& frame = chain[*module].frame;
    layer.layer = !frame.name.empty() ? frame.name : !frame.class_name.empty() ? frame.class_name : "model";
    layer.class_name = frame.class_name;
    layer.dtype = frame.dtype;
    layer.line = frame.line;
}

ActivityLayer forward_layer(const Chain& chain) {
    ActivityLayer layer;
    const std::optional<std::size_t> module = last_of(chain, FrameKind::module);
    add_ops(layer, chain, module ? *module + 1 : 0);
    add_module(layer, chain, module);
    if (!layer.ops.empty()) add_call(layer, layer.ops.front());
    for (const OpFrame& op : layer.ops)
        if (op.frame.sequence) layer.sequence = op.frame.sequence;
    return layer;
}

/// What the innermost special frame says; the forward of a node is added later.
ActivityLayer chain_layer(const Chain& chain) {
    const auto special = last_of(chain, FrameKind::backward, FrameKind::evaluation, FrameKind::gradient,
                                 FrameKind::optimizer, FrameKind::module);
    if (!special || chain[*special].frame.kind == FrameKind::module) return forward_layer(chain);
    ActivityLayer layer;
    const OpFrame& frame = chain[*special];
    add_ops(layer, chain, *special + 1);
    add_call(layer, frame);
    switch (frame.frame.kind) {
        case FrameKind::optimizer:
            layer.layer = "optimizer";
            layer.op = layer.op.substr(layer.op.find('#') + 1);  // "Optimizer.step#AdamW.step"
            return layer;
        case FrameKind::gradient: layer.layer = "gradients"; break;
        default:
            layer.node = frame.frame.name;
            layer.forward_sequence = frame.frame.sequence;
            layer.layer = own_ranges(chain);
            if (layer.layer.empty()) layer.layer = layer.node;
    }
    layer.direction = Direction::bwd;
    return layer;
}

/// By sequence number the range of the op in the forward whose node has that number and name.
class Forwards {
  public:
    /// `wanted`: names of nodes by sequence number.
    Forwards(const ProgramFile& file, const std::unordered_map<std::int64_t, std::string>& wanted) {
        for (const ProgramRange& range : file.ranges) {
            const std::optional<std::int64_t> sequence = sequence_in(file.text(range.text));
            if (!sequence) continue;
            const auto node = wanted.find(*sequence);
            if (node == wanted.end()) continue;
            const Frame frame = parse_frame(file.text(range.text));
            if (frame.kind != FrameKind::op) continue;
            const bool is_named = plain_op_name(frame.name) == plain_op_name(node->second);
            Found& found = ranges_[*sequence];
            if (found.range != nullptr &&
                std::pair(found.is_named, found.range->start_ns) > std::pair(is_named, range.start_ns))
                continue;
            found = {&range, is_named};
        }
    }
    const ProgramRange* find(std::int64_t sequence) const {
        const auto found = ranges_.find(sequence);
        return found == ranges_.end() ? nullptr : found->second.range;
    }

  private:
    struct Found {
        const ProgramRange* range = nullptr;
        bool is_named = false;
    };
    std::unordered_map<std::int64_t, Found> ranges_;
};

/// What runs around a node has no number: the node within it has.
void number_evaluations(const ProgramFile& file, std::vector<ActivityLayer>& layers) {
    std::unordered_map<std::int64_t, std::optional<std::int64_t>> numbers;
    for (const ActivityLayer& layer : layers)
        if (!layer.node.empty() && !layer.forward_sequence) numbers.try_emplace(layer.call);
    for (const ProgramRange& range : file.ranges)
        if (const auto number = numbers.find(range.parent); number != numbers.end())
            if (const Frame frame = parse_frame(file.text(range.text)); frame.kind == FrameKind::backward)
                number->second = frame.sequence;
    for (ActivityLayer& layer : layers)
        if (const auto number = numbers.find(layer.call); number != numbers.end() && !layer.node.empty())
            layer.forward_sequence = number->second;
}

void add_forward(const ProgramFile& file, ActivityLayer& layer, const Forwards& forwards) {
    const ProgramRange* range = layer.forward_sequence ? forwards.find(*layer.forward_sequence) : nullptr;
    if (range == nullptr) return;
    const Chain chain = chain_of(file, range->id);
    const ActivityLayer forward = forward_layer(chain);
    layer.layer = forward.layer;
    layer.class_name = forward.class_name;
    layer.dtype = forward.dtype;
    layer.line = forward.line;
    layer.forward = chain.back();
    layer.forward_op = forward.op;
}

}  // namespace

const std::string& ActivityLayer::parameters() const {
    static const std::string none;
    const auto sized = std::ranges::find_if(ops, [](const OpFrame& each) { return !each.frame.parameters.empty(); });
    return sized == ops.end() ? none : sized->frame.parameters;
}

const std::string& ActivityLayer::sub() const {
    static const std::string none;
    return ops.empty() || ops.back().range == call ? none : ops.back().frame.name;
}

std::string unqualified(std::string_view name) {
    const std::size_t colons = name.substr(0, name.find('<')).rfind("::");
    return std::string(colons == name.npos ? name : name.substr(colons + 2));
}

std::string plain_op_name(std::string_view name) {
    std::string plain;
    for (const char c : lower(unqualified(name)))
        if (c != '_') plain += c;
    const std::size_t end = plain.find_last_not_of("0123456789") + 1;
    constexpr std::string_view suffix = "backward";
    if (std::string_view(plain).substr(0, end).ends_with(suffix) && end > suffix.size())
        plain.resize(end - suffix.size());
    return plain;
}

std::vector<ActivityLayer> layers_of(const ProgramFile& file, std::size_t begin, std::size_t end) {
    std::vector<ActivityLayer> layers;
    std::unordered_map<std::int64_t, std::int64_t> threads;
    for (const ProgramLaunch& launch : file.launches) threads[launch.correlation] = launch.thread;
    for (std::size_t i = begin; i < end; ++i) {
        const ProgramActivity& activity = file.activities[i];
        ActivityLayer& layer = layers.emplace_back(chain_layer(chain_of(file, activity.range)));
        if (const auto thread = threads.find(activity.correlation); thread != threads.end())
            layer.thread = thread->second;
        else if (activity.range != 0)
            layer.thread = file.range(activity.range)->thread;
    }
    number_evaluations(file, layers);
    std::unordered_map<std::int64_t, std::string> wanted;
    for (const ActivityLayer& layer : layers)
        if (layer.forward_sequence) wanted[*layer.forward_sequence] = layer.node;
    const Forwards forwards(file, wanted);
    for (ActivityLayer& layer : layers) add_forward(file, layer, forwards);
    return layers;
}

}  // namespace kbench

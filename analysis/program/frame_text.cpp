#include "analysis/program/frame_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "kbench/error.h"
#include "models/base/json_text.h"

namespace kbench {
namespace {

using Json = nlohmann::json;

constexpr std::string_view module_prefix = "kbench:";
constexpr std::string_view evaluation_prefix = "autograd::engine::evaluate_function: ";
/// What may follow an op's name, in this order; a name may hold commas of its own.
constexpr std::string_view attributes[] = {", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "};

std::string member(const Json& json, const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<Frame> module_frame(std::string_view text) {
    if (!text.starts_with(module_prefix)) return std::nullopt;
    const std::string object(text.substr(module_prefix.size()));
    try {
        check_json_text(object, "range");
    } catch (const UsageError&) {
        return std::nullopt;
    }
    const Json json = Json::parse(object, nullptr, false);
    if (!json.is_object() || !json.contains("layer") || !json["layer"].is_string()) return std::nullopt;
    return Frame{.kind = FrameKind::module,
                 .name = member(json, "layer"),
                 .class_name = member(json, "class"),
                 .dtype = member(json, "dtype"),
                 .line = member(json, "line"),
                 .sequence = std::nullopt,
                 .sizes = {},
                 .parameters = {}};
}

/// The text of an attribute, up to the next one; empty where it is missing.
std::string_view attribute(std::string_view text, std::string_view name) {
    const std::size_t at = text.find(name);
    if (at == text.npos) return {};
    std::string_view value = text.substr(at + name.size());
    for (const std::string_view other : attributes)
        if (const std::size_t end = value.find(other); end != value.npos) value = value.substr(0, end);
    return value;
}

/// The largest dimension: no memory holds as many elements, and sums of such sizes fit into 64 bits.
constexpr std::int64_t most_dimension = std::int64_t{1} << 60;

std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
    return number;
}

/// "[[3840], [1024, 1280], []]"; nothing where it is anything else, such as a list that was cut.
std::optional<Sizes> sizes_in(std::string_view text) {
    Sizes sizes;
    std::size_t depth = 0, begin = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '[') {
            if (++depth > 2) return std::nullopt;
            if (depth == 2) sizes.emplace_back();
            begin = i + 1;
        } else if (c == ']' || c == ',') {
            if (depth == 0) return std::nullopt;
            std::string_view number = text.substr(begin, i - begin);
            number.remove_prefix(std::min(number.find_first_not_of(' '), number.size()));
            if (depth == 2 && !number.empty()) {
                const std::optional<std::int64_t> size = whole_number(number);
                if (!size || *size > most_dimension) return std::nullopt;
                sizes.back().push_back(*size);
            }
            if (c == ']') --depth;
            begin = i + 1;
        }
    }
    return depth == 0 && !text.empty() ? std::optional(sizes) : std::nullopt;
}

/// "AddmmBackward0", "MyFunctionBackward".
bool is_backward(std::string_view name) {
    while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
    return name.ends_with("Backward");
}

FrameKind kind_of_op(std::string_view name, bool has_sequence_or_sizes) {
    if (name.ends_with("AccumulateGrad")) return FrameKind::gradient;
    if (name.starts_with("Optimizer.")) return FrameKind::optimizer;
    const bool is_word = name.substr(0, name.find('<')).find(' ') == name.npos;
    const bool is_node = is_backward(name) || name.find("::CppNode<") != name.npos;
    if (is_node && is_word) return FrameKind::backward;
    constexpr std::string_view namespaces[] = {"aten::", "prims::", "c10d::", "torch::", "torchvision::"};
    const auto begins = [&](std::string_view space) { return name.starts_with(space); };
    const bool is_scoped = name.find("::") != name.npos && is_word;
    if (std::ranges::any_of(namespaces, begins) || (is_scoped && has_sequence_or_sizes)) return FrameKind::op;
    return FrameKind::user;
}

}  // namespace

std::optional<std::int64_t> sequence_in(std::string_view text) { return whole_number(attribute(text, attributes[0])); }

Frame parse_frame(std::string_view text) {
    if (std::optional<Frame> module = module_frame(text)) return *module;
    std::size_t end = text.size();
    for (const std::string_view name : attributes) end = std::min(end, text.find(name));
    Frame frame;
    const bool is_evaluation = text.starts_with(evaluation_prefix);
    frame.name = text.substr(0, end);
    const std::string_view rest = text.substr(end);
    frame.sequence = sequence_in(rest);
    const std::string_view sizes = attribute(rest, attributes[2]);
    if (const std::optional<Sizes> known = sizes_in(sizes)) {
        frame.sizes = *known;
        frame.parameters = sizes;
    }
    if (is_evaluation) frame.name.erase(0, evaluation_prefix.size());
    frame.kind = kind_of_op(frame.name, frame.sequence || !frame.sizes.empty());
    if (frame.kind == FrameKind::user && !is_evaluation) {
        // A program's own range keeps its whole text, unless the framework put a number of its own behind it.
        if (!rest.starts_with(attributes[1])) frame.name = text;
        frame.sequence.reset();
        frame.sizes.clear();
        frame.parameters.clear();
    }
    if (is_evaluation && frame.kind != FrameKind::gradient) frame.kind = FrameKind::evaluation;
    return frame;
}

}  // namespace kbench

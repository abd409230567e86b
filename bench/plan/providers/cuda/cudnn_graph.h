// What building graphs of cuDNN through the headers of cudnn-frontend takes. Slow to compile: for the files beside it
// alone.
#pragma once

#define CUDNN_FRONTEND_SKIP_JSON_LIB  // nothing here is serialised, and half of the time to compile is saved
#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/plan/bind.h"
#include "bench/plan/providers/cuda/cudnn_handle.h"
#include "kbench/provider.h"
#include "models/base/format.h"

namespace kbench::cudnn {

namespace fe = cudnn_frontend;
using Graph = fe::graph::Graph;

/// cuDNN's messages have several lines, errors of kbench one.
inline std::string message_of(fe::error_t error) {
    std::string text = one_line(error.get_message());
    while (text.ends_with(' ')) text.pop_back();
    return text;
}

inline void accept(fe::error_t error, const char* what) {
    if (error.is_bad()) throw Unsupported(fmt::format("cuDNN's {}: {}", what, message_of(std::move(error))));
}

inline fe::DataType_t graph_type(Precision precision) {
    switch (storage_type(precision)) {
        case DataType::fp16: return fe::DataType_t::HALF;
        case DataType::bf16: return fe::DataType_t::BFLOAT16;
        case DataType::fp64: return fe::DataType_t::DOUBLE;
        default: return fe::DataType_t::FLOAT;
    }
}

/// A tensor of a graph: a part of the operand of that name, `offset` elements behind its beginning.
struct Part {
    std::string_view operand;
    std::int64_t offset = 0;
};

/// A graph and what its tensors are bound to, which are operands of a step.
class GraphBuilder {
  public:
    GraphBuilder(const Step& step, Precision precision)
        : graph(std::make_shared<Graph>()),
          element_bytes_(size_of(storage_type(precision))),
          operands_(operands(step, precision)) {
        const auto wide = precision == Precision::fp64 ? fe::DataType_t::DOUBLE : fe::DataType_t::FLOAT;
        graph->set_io_data_type(graph_type(precision)).set_intermediate_data_type(wide).set_compute_data_type(wide);
    }
    using Numbers = std::vector<std::int64_t>;
    std::shared_ptr<fe::graph::Tensor_attributes> input(const char* name, const Part& part, const Numbers& dimensions,
                                                        const Numbers& strides) {
        return graph->tensor(
            fe::graph::Tensor_attributes().set_name(name).set_dim(dimensions).set_stride(strides).set_uid(bind(part)));
    }
    void output(fe::graph::Tensor_attributes& tensor, const Part& part, const Numbers& dimensions,
                const Numbers& strides) {
        tensor.set_output(true).set_dim(dimensions).set_stride(strides).set_uid(bind(part));
    }

    /// What the graph's tensors are bound to when it runs.
    std::unordered_map<std::int64_t, void*> memory(const Call& call) const {
        std::unordered_map<std::int64_t, void*> memory;
        for (std::size_t uid = 0; uid < tensors_.size(); ++uid) {
            const auto& [slot, offset] = tensors_[uid];
            memory[static_cast<std::int64_t>(uid)] =
                static_cast<std::byte*>(slot.of(call)) + static_cast<std::size_t>(offset) * element_bytes_;
        }
        return memory;
    }

    std::shared_ptr<Graph> graph;

  private:
    /// Returns its uid.
    std::int64_t bind(const Part& part) {
        tensors_.push_back({Slot(operands_, part.operand), part.offset});
        return static_cast<std::int64_t>(tensors_.size()) - 1;
    }

    struct Bound {
        Slot slot;
        std::int64_t offset;
    };
    std::size_t element_bytes_;
    std::vector<Operand> operands_;
    std::vector<Bound> tensors_;  ///< by uid
};

}  // namespace kbench::cudnn

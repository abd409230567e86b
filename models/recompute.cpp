// Repeats a block's forward ops in front of its backward, for the tensors that the backward needs.
#include "models/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "kbench/error.h"

namespace kbench {
namespace {

class Recomputation {
  public:
    Recomputation(Model& model, std::size_t forward_ops, std::size_t first_backward)
        : model_(model), forward_ops_(forward_ops), first_backward_(first_backward) {}

    void build() {
        find_inner();
        std::vector<OpNode> ops(model_.ops.begin(), at(first_backward_));
        std::set<std::string_view> begun;
        for (std::size_t i = first_backward_; i < model_.ops.size(); ++i) {
            OpNode node = model_.ops[i];
            const std::string_view block = block_of_backward(node);
            if (!block.empty() && begun.insert(block).second) repeat(block, ops);
            for (TensorId& id : node.inputs)
                if (const auto made = again_.find(id); made != again_.end()) id = made->second;
            ops.push_back(std::move(node));
        }
        if (again_.empty()) throw Unsupported(fmt::format("{} has no blocks to recompute", model_.name));
        model_.ops = std::move(ops);
    }

  private:
    std::vector<OpNode>::iterator at(std::size_t op) { return model_.ops.begin() + static_cast<std::ptrdiff_t>(op); }

    /// The block that contains the forward op of a backward op.
    std::string_view block_of_backward(const OpNode& node) const {
        return node.forward ? enclosing_block(model_.ops[*node.forward].layer) : std::string_view();
    }

    /// Finds tensors that only ops of their own block read in the forward, and the ops that make them.
    void find_inner() {
        for (std::size_t i = 0; i < forward_ops_; ++i)
            if (!enclosing_block(model_.ops[i].layer).empty())
                for (const TensorId id : model_.ops[i].outputs) maker_[id] = i;
        for (const TensorId id : model_.outputs) maker_.erase(id);
        for (std::size_t i = 0; i < first_backward_; ++i)  // the loss belongs to no block
            for (const TensorId id : model_.ops[i].inputs)
                if (const auto made = maker_.find(id); made != maker_.end())
                    if (enclosing_block(model_.ops[made->second].layer) != enclosing_block(model_.ops[i].layer))
                        maker_.erase(made);
    }

    /// Appends the forward ops whose results the backward of `block` needs.
    void repeat(std::string_view block, std::vector<OpNode>& ops) {
        std::vector<bool> needed(forward_ops_, false);
        const auto need = [&](const OpNode& node) {
            for (const TensorId id : node.inputs)
                if (const auto made = maker_.find(id); made != maker_.end()) needed[made->second] = true;
        };
        for (std::size_t i = first_backward_; i < model_.ops.size(); ++i)
            if (block_of_backward(model_.ops[i]) == block) need(model_.ops[i]);
        for (std::size_t i = forward_ops_; i-- > 0;)
            if (needed[i]) need(model_.ops[i]);
        for (std::size_t i = 0; i < forward_ops_; ++i) {
            if (!needed[i]) continue;
            OpNode node = model_.ops[i];
            node.forward = i;
            for (TensorId& id : node.inputs)
                if (const auto made = again_.find(id); made != again_.end()) id = made->second;
            for (TensorId& id : node.outputs) {
                Tensor tensor = model_.tensors[id];
                tensor.name += ".recomputed";
                again_[id] = model_.tensors.size();
                id = model_.tensors.size();
                model_.tensors.push_back(std::move(tensor));
            }
            ops.push_back(std::move(node));
        }
    }

    Model& model_;
    const std::size_t forward_ops_, first_backward_;
    std::map<TensorId, std::size_t> maker_;  ///< op that makes each tensor that only its block reads
    std::map<TensorId, TensorId> again_;     ///< recomputed copy of each tensor
};

}  // namespace

std::string_view enclosing_block(std::string_view layer) {
    for (std::size_t begin = 0; begin < layer.size();) {
        const std::size_t end = std::min(layer.find('.', begin), layer.size());
        const std::string_view part = layer.substr(begin, end - begin);
        if (!part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos)
            return layer.substr(0, end);
        begin = end + 1;
    }
    return {};
}

void recompute_blocks(Model& model, std::size_t forward_ops, std::size_t first_backward) {
    Recomputation(model, forward_ops, first_backward).build();
}

}  // namespace kbench

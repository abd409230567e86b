// The weights of a model as people have them on disk: one safetensors file, shards with an index, or a folder; under
// the names of the model or behind the prefixes that wrappers leave; matrices as the model has them or transposed.
//
//     Checkpoint checkpoint("folder/");
//     checkpoint.check(model);  // names and shapes, before any memory is planned
//     checkpoint.load(tensor, DataType::fp32, memory, tensor.columns());
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bench/plan/data/checkpoint_files.h"
#include "bench/plan/data/convert.h"
#include "bench/plan/data/safetensors.h"
#include "bench/plan/data/weights.h"
#include "models/model.h"

namespace kbench {

/// A tensor's name without what wrappers put in front: `module.` (DataParallel), `_orig_mod.` (torch.compile), `model.`
/// and `transformer.` (the model as a part of another), in any order and number; and without the parts `_orig_mod` and
/// FSDP's and activation checkpointing's within.
std::string unwrapped_name(std::string_view name);

/// Every error is a UsageError of one line: the file, the tensor, what was found and what would be right.
class Checkpoint {
  public:
    /// Maps the files and checks their headers and the index.
    explicit Checkpoint(const std::filesystem::path& path);

    /// Checks that every weight of `model` is here with the right shape and a type that can be read. Tensors that the
    /// model does not have (masks, a tied lm_head.weight) are ignored, but for those of further layers and of adapters.
    /// Notices when the matrices are those of nn.Linear, [out, in], where the model's products want [in, out]: all of
    /// them or none.
    void check(const Model& model);

    /// Converts one weight to `type` into rows `row_stride` elements apart; what lies between them is left alone.
    /// Refuses numbers that are not `allowed` in that type. On all OpenMP threads. Transposes what check() found to be.
    void load(const Tensor& tensor, DataType type, void* destination, std::int64_t row_stride,
              Allowed allowed = Allowed::finite) const;

    /// Whether load would find a tensor of that name.
    bool has(std::string_view name) const { return find(name) != nullptr; }

    /// For results: the last part of its path.
    std::string name() const { return checkpoint_name(path_); }

  private:
    struct Entry {
        const Safetensors* file;
        std::string full_name;  ///< in the file
        const SafetensorsEntry* entry;
    };

    void add(const Safetensors& file);
    void check_index(const CheckpointFiles& files) const;
    const Entry* find(std::string_view name) const;
    DataType check_entry(const Tensor& tensor, const Entry& entry) const;
    void load_whole(const Tensor& tensor, DataType type, void* destination, std::int64_t row_stride,
                    Allowed allowed) const;
    void find_layout(const Model& model);
    void refuse_more_of(const Model& model) const;
    std::string instead_of(const std::string& missing) const;
    std::string part_of_more() const;

    std::filesystem::path path_;
    std::vector<std::unique_ptr<Safetensors>> files_;
    std::map<std::string, Entry, std::less<>> entries_;      ///< by unwrapped name
    std::map<std::string, std::string, std::less<>> twice_;  ///< unwrapped names of several tensors: what to say
    std::set<std::string, std::less<>> transposed_;          ///< matrices of the model that the files have as [out, in]
};

/// They must have been checked against the model.
class CheckpointWeights final : public WeightSource {
  public:
    /// Throws UsageError when a file is damaged. What is no weight, such as a cache, is random by `seed`.
    explicit CheckpointWeights(const std::filesystem::path& path, std::uint64_t seed = 1)
        : checkpoint_(path), seed_(seed) {}
    /// Throws UsageError when a weight of `model` is missing or of the wrong shape or type.
    void check(const Model& model) { checkpoint_.check(model); }
    void read(const Tensor& tensor, DataType type, void* destination, std::int64_t row_stride_elements) override {
        if (tensor.role == Role::weights)
            checkpoint_.load(tensor, type, destination, row_stride_elements);
        else
            fill_random(tensor, seed_, type, destination, row_stride_elements);
    }
    std::string name() const override { return checkpoint_.name(); }

  private:
    Checkpoint checkpoint_;
    std::uint64_t seed_;
};

}  // namespace kbench

// Names are compared without what wrappers put around them.
#include "bench/plan/data/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "kbench/error.h"
#include "models/base/nearest.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

using Extents = std::vector<std::int64_t>;

std::string bracketed(const Extents& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

constexpr std::string_view prefixes[] = {"_orig_mod.", "module.", "model.", "transformer."};
/// Parts of a name that come from wrapping a part of a model. No layer has such a name.
constexpr std::string_view wrappers[] = {"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module."};

bool is_reverse(const Extents& a, const Extents& b) { return a.size() == 2 && Extents(a.rbegin(), a.rend()) == b; }

/// The weights that products of the model read as [in, out]. nn.Linear keeps them as [out, in].
std::vector<const Tensor*> matrices_in_out(const Model& model) {
    std::vector<const Tensor*> matrices;
    for (const OpNode& node : model.ops) {
        const auto* gemm = node.op.get_if<Gemm>();
        if (gemm == nullptr || gemm->weight_transposed || node.direction != Direction::fwd) continue;
        for (const TensorId id : node.inputs)
            if (const Tensor& tensor = model.tensors[id]; tensor.role == Role::weights && tensor.shape.size() == 2)
                matrices.push_back(&tensor);
    }
    return matrices;
}

/// A tensor of the file that a weight of the model is, or is made of, and where in the weight it begins.
struct InFile {
    Tensor tensor;
    std::int64_t first_row, first_column;
};
std::vector<InFile> in_file(const Tensor& weight) {
    if (weight.parts.empty()) return {{weight, 0, 0}};
    std::vector<InFile> list;
    std::int64_t first = 0;
    for (const TensorPart& part : weight.parts) {
        const bool is_vector = weight.shape.size() == 1;
        InFile& one = list.emplace_back(InFile{weight, is_vector ? 0 : first, is_vector ? first : 0});
        one.tensor.name = part.name;
        one.tensor.shape.front() = part.extent;
        one.tensor.parts.clear();
        first += part.extent;
    }
    return list;
}

template <class Number>
void transpose(const void* from, std::int64_t rows, std::int64_t columns, void* to, std::int64_t to_stride) {
    constexpr std::int64_t tile = 64;  // both matrices' tiles fit in L1
    const auto* const in = static_cast<const Number*>(from);
    auto* const out = static_cast<Number*>(to);
#pragma omp parallel for schedule(static)
    for (std::int64_t first = 0; first < rows; first += tile)
        for (std::int64_t left = 0; left < columns; left += tile)
            for (std::int64_t c = left; c < std::min(left + tile, columns); ++c)
                for (std::int64_t r = first; r < std::min(first + tile, rows); ++r)
                    out[c * to_stride + r] = in[r * columns + c];
}

/// `from`, [rows, columns] and dense, to [columns, rows] in rows `to_stride` elements apart.
void transpose(DataType type, const void* from, std::int64_t rows, std::int64_t columns, void* to,
               std::int64_t to_stride) {
    switch (size_of(type)) {
        case 2: return transpose<std::uint16_t>(from, rows, columns, to, to_stride);
        case 4: return transpose<std::uint32_t>(from, rows, columns, to, to_stride);
        default: return transpose<std::uint64_t>(from, rows, columns, to, to_stride);
    }
}

/// "h.#.ln_1.weight": what the layers of a model have in common.
std::string without_numbers(std::string_view name) {
    std::string text;
    while (!name.empty()) {
        const std::size_t end = std::min(name.find('.'), name.size());
        const std::string_view part = name.substr(0, end);
        const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
        text += is_number ? "#" : part;
        text += '.';
        name.remove_prefix(std::min(end + 1, name.size()));
    }
    return text;
}

}  // namespace

std::string unwrapped_name(std::string_view name) {
    for (bool again = true; again;) {
        again = false;
        for (const std::string_view prefix : prefixes)
            if (name.starts_with(prefix)) {
                name.remove_prefix(prefix.size());
                again = true;
            }
    }
    std::string text(name);
    for (const std::string_view wrapper : wrappers)
        for (std::size_t at = 0; (at = text.find(wrapper, at)) != std::string::npos;) {
            if (at == 0 || text[at - 1] == '.')
                text.erase(at, wrapper.size());
            else
                at += wrapper.size();
        }
    return text;
}

Checkpoint::Checkpoint(const std::filesystem::path& path) : path_(path) {
    const CheckpointFiles files = checkpoint_files(path);
    for (const std::filesystem::path& file : files.files) {
        files_.push_back(std::make_unique<Safetensors>(file));
        add(*files_.back());
    }
    check_index(files);
}

void Checkpoint::add(const Safetensors& file) {
    for (const auto& [full_name, entry] : file.entries()) {
        const auto [at, is_new] = entries_.try_emplace(unwrapped_name(full_name), Entry{&file, full_name, &entry});
        if (is_new) continue;
        const Entry& first = at->second;
        if (first.full_name == full_name)
            throw UsageError(fmt::format("{}: {}: stands in {} too", file.path().string(), full_name,
                                         first.file->path().filename().string()));
        twice_.try_emplace(at->first,
                           fmt::format("there are both {} and {}; one should be left out", first.full_name, full_name));
    }
}

void Checkpoint::check_index(const CheckpointFiles& files) const {
    for (const auto& [name, path] : files.file_of) {
        const auto file = std::ranges::find(files_, path, [](const auto& one) { return one->path(); });
        if (!(*file)->entries().contains(name))
            throw UsageError(fmt::format("{}: {}: is said to be in {}, which has no such tensor", files.index.string(),
                                         name, path.filename().string()));
    }
}

const Checkpoint::Entry* Checkpoint::find(std::string_view name) const {
    const auto found = entries_.find(unwrapped_name(name));
    if (found == entries_.end()) return nullptr;
    if (const auto twice = twice_.find(found->first); twice != twice_.end())
        throw UsageError(fmt::format("{}: {}: {}", path_.string(), name, twice->second));
    return &found->second;
}

DataType Checkpoint::check_entry(const Tensor& tensor, const Entry& entry) const {
    const Extents& shape = entry.entry->shape;
    if (transposed_.contains(tensor.name) ? !is_reverse(shape, tensor.shape) : shape != tensor.shape)
        throw UsageError(fmt::format("{}: {}: shape {}; the model needs {}{}", entry.file->path().string(), tensor.name,
                                     bracketed(shape), bracketed(tensor.shape),
                                     is_reverse(shape, tensor.shape) ? "; the matrix is transposed" : ""));
    const auto type = weight_type(entry.entry->dtype);
    if (!type)
        throw UsageError(fmt::format("{}: {}: dtype {}; weights are F16, BF16, F32 or F64", entry.file->path().string(),
                                     tensor.name, entry.entry->dtype));
    return *type;
}

/// Square matrices fit both ways, so the others decide their layout.
void Checkpoint::find_layout(const Model& model) {
    transposed_.clear();
    const std::vector<const Tensor*> matrices = matrices_in_out(model);
    const Tensor *kept = nullptr, *turned = nullptr;
    for (const Tensor* matrix : matrices) {
        const Entry* entry = find(matrix->name);
        if (entry == nullptr || matrix->rows() == matrix->columns()) continue;
        if (entry->entry->shape == matrix->shape) kept = matrix;
        if (is_reverse(entry->entry->shape, matrix->shape)) turned = matrix;
    }
    if (kept != nullptr && turned != nullptr)
        throw UsageError(fmt::format(
            "{}: {} is [in, out] (Conv1D) and {} is [out, in] (nn.Linear): all matrices should lie the same way",
            path_.string(), kept->name, turned->name));
    if (turned == nullptr) return;
    for (const Tensor* matrix : matrices) transposed_.insert(matrix->name);
}

/// What the files have in place of a tensor that is missing: an unknown prefix, or the nearest names.
std::string Checkpoint::instead_of(const std::string& missing) const {
    if (entries_.empty()) return "; it has no tensors";
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) {
        if (name.size() > missing.size() && name.ends_with("." + missing))
            return fmt::format("; it has {}: rename its tensors, without '{}'", entry.full_name,
                               entry.full_name.substr(0, entry.full_name.size() - missing.size()));
        names.push_back(entry.full_name);
    }
    // Distances of long names take time, so only some of the names are compared.
    if (names.size() > 2000) names.resize(2000);
    const std::vector<std::string> nearest = nearest_names(missing, names);
    return fmt::format("; it has {} tensors, such as {}", entries_.size(), fmt::join(nearest, ", "));
}

/// Where a single shard was named.
std::string Checkpoint::part_of_more() const {
    return path_.filename().string().find("-of-") != std::string::npos && files_.size() == 1
               ? "; it is one shard of several: name their index or their folder"
               : "";
}

void Checkpoint::check(const Model& model) {
    find_layout(model);
    std::string first_missing;
    int missing = 0, weights = 0;
    for (const Tensor& tensor : model.tensors) {
        if (tensor.role != Role::weights) continue;
        for (const InFile& one : in_file(tensor)) {
            ++weights;
            if (const Entry* entry = find(one.tensor.name)) {
                check_entry(one.tensor, *entry);
            } else if (missing++ == 0) {
                first_missing = one.tensor.name;
            }
        }
    }
    if (missing > 0)
        throw UsageError(fmt::format("{}: {}: missing, the first of {} missing of the {} weights of {}{}{}",
                                     path_.string(), first_missing, missing, weights, model.name,
                                     instead_of(first_missing), part_of_more()));
    refuse_more_of(model);
}

void Checkpoint::refuse_more_of(const Model& model) const {
    std::set<std::string, std::less<>> names, forms;
    for (const Tensor& tensor : model.tensors)
        if (tensor.role == Role::weights) {
            for (const InFile& one : in_file(tensor)) {
                names.insert(one.tensor.name);
                forms.insert(without_numbers(one.tensor.name));
            }
        }
    for (const auto& [name, entry] : entries_) {
        if (names.contains(name)) continue;
        if (forms.contains(without_numbers(name)))
            throw UsageError(fmt::format(
                "{}: {}: {} has no such layer: the file is of a model with more; should its configuration be another?",
                path_.string(), entry.full_name, model.name));
        if (name.find("lora_") != std::string::npos)
            throw UsageError(fmt::format("{}: {}: an adapter beside the weights changes the result; merge it into them",
                                         path_.string(), entry.full_name));
    }
}

void Checkpoint::load(const Tensor& tensor, DataType type, void* destination, std::int64_t row_stride,
                      Allowed allowed) const {
    for (const InFile& one : in_file(tensor)) {
        const auto first = static_cast<std::size_t>(one.first_row * row_stride + one.first_column);
        load_whole(one.tensor, type, static_cast<std::byte*>(destination) + first * size_of(type), row_stride, allowed);
    }
}

void Checkpoint::load_whole(const Tensor& tensor, DataType type, void* destination, std::int64_t row_stride,
                            Allowed allowed) const {
    const Entry* entry = find(tensor.name);
    if (entry == nullptr)
        throw UsageError(fmt::format("{}: {}: missing{}", path_.string(), tensor.name, instead_of(tensor.name)));
    const DataType stored = check_entry(tensor, *entry);
    const std::byte* const data = entry->file->data(*entry->entry);
    if (transposed_.contains(tensor.name)) {
        const std::int64_t rows = tensor.columns(), columns = tensor.rows();  // in the file
        std::vector<std::byte> converted(static_cast<std::size_t>(tensor.elements()) * size_of(type));
        convert_rows(stored, data, rows, columns, type, converted.data(), columns);
        transpose(type, converted.data(), rows, columns, destination, row_stride);
    } else {
        convert_rows(stored, data, tensor.rows(), tensor.columns(), type, destination, row_stride);
    }
    if (const auto bad = first_bad_number(type, destination, tensor.rows(), tensor.columns(), row_stride, allowed))
        throw UsageError(fmt::format("{}: {}: number {} is {} in {}; it should be {}", path_.string(), tensor.name,
                                     bad->index, bad->value, kbench::name(type),
                                     allowed == Allowed::finite ? "finite" : "finite and >= 0"));
}

}  // namespace kbench

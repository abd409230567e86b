// Checks oneDNN's calls, holds its engine, and runs primitives with memory objects made in advance.
#include "cpu/onednn/primitive.h"

#include <fmt/format.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include "cpu/onednn/onednn.h"
#include "kbench/error.h"

namespace kbench::cpu::onednn {

const dnnl::engine& engine() {
    static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
    return cpu;
}

dnnl::memory::data_type data_type(DataType type) {
    switch (type) {
        case DataType::fp16: return dnnl::memory::data_type::f16;
        case DataType::bf16: return dnnl::memory::data_type::bf16;
        case DataType::fp32: return dnnl::memory::data_type::f32;
        case DataType::fp64:
        case DataType::int32: break;
    }
    throw Unsupported(fmt::format("oneDNN's steps compute in fp16, bf16 or fp32, not in {}", name(type)));
}

void require(Precision precision) {
    if (const std::string reason = onednn_unsupported(precision); !reason.empty()) throw Unsupported(reason);
}

dnnl::primitive_attr attributes(const dnnl::post_ops& post_ops) {
    dnnl::primitive_attr attr;
    attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attr.set_post_ops(post_ops);
    return attr;
}

void create(std::string_view what, const std::function<void()>& create) {
    try {
        create();
    } catch (const dnnl::error& error) {
        if (error.status == dnnl_unimplemented)
            throw Unsupported(fmt::format("{} has no {} for this CPU ({})", onednn_version(), what, onednn_isa()));
        throw DeviceError(fmt::format("{}: {} failed: {}", onednn_version(), what, error.what()));
    }
}

void check(dnnl_status_t status, std::string_view what) {
    if (status != dnnl_success)
        throw DeviceError(fmt::format("{}: {} failed: {}", onednn_version(), what, dnnl_status2str(status)));
}

MadeForOneThread::MadeForOneThread() : threads_(omp_get_max_threads()) { omp_set_num_threads(1); }

MadeForOneThread::~MadeForOneThread() { omp_set_num_threads(threads_); }

dnnl::memory::dim block_size(const dnnl::memory::desc& desc, int d) {
    dnnl::memory::dim size = 1;
    for (std::size_t i = 0; i < desc.get_inner_blks().size(); ++i)
        if (desc.get_inner_idxs()[i] == d) size *= desc.get_inner_blks()[i];
    return size;
}

bool is_part_of(const dnnl::memory::desc& part, const dnnl::memory::desc& whole, int d, dnnl::memory::dim first) {
    if (part.get_inner_blks() != whole.get_inner_blks() || part.get_inner_idxs() != whole.get_inner_idxs())
        return false;
    for (int i = 0; i < 2; ++i) {
        const bool stride_matters = part.get_padded_dims()[static_cast<std::size_t>(i)] > block_size(part, i);
        if (stride_matters &&
            part.get_strides()[static_cast<std::size_t>(i)] != whole.get_strides()[static_cast<std::size_t>(i)])
            return false;
    }
    return first % block_size(whole, d) == 0;
}

Call::Call(const dnnl::primitive& primitive, const std::vector<Argument>& arguments)
    : primitive_(primitive), stream_(engine()) {
    for (const Argument& argument : arguments) {
        memories_.emplace_back(argument.desc, engine(), nullptr);  // without memory of its own
        arguments_.push_back({argument.name, memories_.back().get()});
    }
}

dnnl_status_t Call::run(std::initializer_list<const void*> data) const noexcept {
    auto argument = arguments_.begin();
    for (const void* pointer : data)
        if (const auto status = dnnl_memory_set_data_handle((argument++)->memory, const_cast<void*>(pointer));
            status != dnnl_success)
            return status;
    // Calls the C function, because dnnl::primitive::execute would build a map and a vector each time.
    return dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()),
                                  arguments_.data());
}

}  // namespace kbench::cpu::onednn

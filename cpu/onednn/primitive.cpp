// See primitive.h.
#include "cpu/onednn/primitive.h"

#include <fmt/format.h>
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

Call::Call(const dnnl::primitive& primitive, const std::vector<Argument>& arguments)
    : primitive_(primitive), stream_(engine()) {
    for (const Argument& argument : arguments) {
        memories_.emplace_back(argument.desc, engine(), nullptr);  // no memory of its own
        arguments_.push_back({argument.name, memories_.back().get()});
    }
}

dnnl_status_t Call::run(std::initializer_list<const void*> data) const noexcept {
    auto argument = arguments_.begin();
    for (const void* pointer : data)
        if (const auto status = dnnl_memory_set_data_handle((argument++)->memory, const_cast<void*>(pointer));
            status != dnnl_success)
            return status;
    // The C function: dnnl::primitive::execute would build a map and a vector each time.
    return dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()),
                                  arguments_.data());
}

}  // namespace kbench::cpu::onednn

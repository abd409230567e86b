// Chooses between oneDNN's matmul and our own bf16 panels for the product of a recurrent step.
#include "cpu/onednn/step_product.h"

#include <algorithm>

#include "cpu/native/half.h"
#include "cpu/threads.h"

namespace kbench::cpu::onednn {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

/// Most rows that our own panels multiply. With one row oneDNN's AMX tiles are mostly empty: 500 LSTM steps of 1024
/// units take a Xeon 29 ms, with panels 15. With two rows they take 30 and 29, with four 36 and 62, bound by vdpbf16ps.
/// Without AMX, oneDNN uses vdpbf16ps, too; panels were ahead at 1 to 8 rows on two cores of an EPYC.
std::int64_t most_rows() {
    static const bool has_tiles = std::ranges::count(cpu_info().isa, "amx_bf16") > 0;
    return has_tiles ? 1 : Bf16Panels::most_rows;
}

}  // namespace

StepProduct::StepProduct(std::int64_t rows, const Weight& weight, DataType stored) : weight_(weight) {
    const auto& [depth, columns, k_stride, column_stride] = weight;
    if (stored == DataType::bf16 && rows <= most_rows() && has_bf16_instructions()) {
        panels_.emplace(rows, depth, columns);
        return;
    }
    const auto type = data_type(stored);
    const memory::desc x({rows, depth}, type, Tag::ab), sums({rows, columns}, memory::data_type::f32, Tag::ab);
    const memory::desc any({depth, columns}, type, Tag::any), plain({depth, columns}, type, {k_stride, column_stride});
    desc_ = dnnl::matmul::primitive_desc(engine(), x, any, sums, attributes());
    const memory::desc packed = desc_.weights_desc();
    const dnnl::matmul matmul(desc_);
    for (Call& call : run_)
        call = Call(matmul, {{DNNL_ARG_SRC, x},
                             {DNNL_ARG_WEIGHTS, packed},
                             {DNNL_ARG_DST, sums},
                             {DNNL_ARG_SCRATCHPAD, desc_.scratchpad_desc()}});
    pack_desc_ = dnnl::reorder::primitive_desc(engine(), plain, engine(), packed, attributes());
    pack_ = Call(dnnl::reorder(pack_desc_),
                 {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, packed}, {DNNL_ARG_SCRATCHPAD, pack_desc_.scratchpad_desc()}});
}

std::size_t StepProduct::packed_bytes() const { return panels_ ? panels_->bytes() : desc_.weights_desc().get_size(); }

std::size_t StepProduct::pack_scratchpad_bytes() const { return panels_ ? 0 : pack_desc_.scratchpad_desc().get_size(); }

std::size_t StepProduct::scratchpad_bytes() const { return panels_ ? 0 : desc_.scratchpad_desc().get_size(); }

dnnl_status_t StepProduct::pack(const void* plain, void* packed, void* scratchpad) const {
    if (!panels_) return pack_.run({plain, packed, scratchpad});
    panels_->pack(static_cast<const BFloat16*>(plain), weight_.k_stride, weight_.column_stride, packed);
    return dnnl_success;
}

dnnl_status_t StepProduct::run(bool is_reverse, const void* x, const void* packed, float* sums,
                               void* scratchpad) const {
    if (!panels_) return run_[is_reverse].run({x, packed, sums, scratchpad});
    panels_->multiply(static_cast<const BFloat16*>(x), weight_.depth, packed, sums, weight_.columns);
    return dnnl_success;
}

std::string StepProduct::implementation() const { return panels_ ? "avx512_bf16 panels" : desc_.impl_info_str(); }

}  // namespace kbench::cpu::onednn

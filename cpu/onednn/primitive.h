// What all oneDNN steps share: engine, types, attributes, one check for every call, and running a primitive.
// Internal to cpu/onednn/; users include onednn.h only.
#pragma once

#include <dnnl.hpp>
#include <functional>
#include <string_view>
#include <vector>

#include "kbench/precision.h"

namespace kbench::cpu::onednn {

const dnnl::engine& engine();

/// oneDNN's name for a type. Throws Unsupported for types that it does not compute in (fp64, int32).
dnnl::memory::data_type data_type(DataType type);

/// Throws Unsupported with onednn_unsupported's reason, if there is one.
void require(Precision precision);

/// Attributes for strict arithmetic, whatever ONEDNN_DEFAULT_FPMATH_MODE says, and scratchpads given by the caller.
dnnl::primitive_attr attributes(const dnnl::post_ops& post_ops = {});

/// Runs `create`. A dnnl::error becomes Unsupported (there is no such primitive here) or DeviceError with `what`.
void create(std::string_view what, const std::function<void()>& create);

/// Throws DeviceError that names `what` unless `status` is success.
void check(dnnl_status_t status, std::string_view what);

/// Primitives made under this guard may run inside a parallel region, one thread each. oneDNN splits the work and sizes
/// the scratchpad for the number of threads that it sees when a primitive is made.
class MadeForOneThread {
  public:
    MadeForOneThread();
    ~MadeForOneThread();
    MadeForOneThread(const MadeForOneThread&) = delete;
    MadeForOneThread& operator=(const MadeForOneThread&) = delete;

  private:
    int threads_;
};

/// Elements of dimension `d` in one block of a blocked layout; 1 in a plain one.
dnnl::memory::dim block_size(const dnnl::memory::desc& desc, int d);

/// Whether the matrix `part`, taken from position `first` of dimension `d` of `whole`, has the same memory layout there
/// as it would have by itself.
bool is_part_of(const dnnl::memory::desc& part, const dnnl::memory::desc& whole, int d, dnnl::memory::dim first);

/// A primitive with its memory objects, made once, so that running it only sets pointers and allocates nothing of ours.
/// Only one thread at a time may use a Call; threads that share a primitive have one each.
class Call {
  public:
    struct Argument {
        int name;  ///< DNNL_ARG_...
        dnnl::memory::desc desc;
    };
    Call() = default;
    Call(const dnnl::primitive& primitive, const std::vector<Argument>& arguments);
    /// `data` is in the order of the arguments. Does not throw, because it is also called in parallel regions.
    dnnl_status_t run(std::initializer_list<const void*> data) const noexcept;

  private:
    dnnl::primitive primitive_;
    dnnl::stream stream_;
    std::vector<dnnl::memory> memories_;
    std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace kbench::cpu::onednn

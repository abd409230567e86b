// What all oneDNN steps share: the engine, types, attributes, one check for every call, and running a primitive.
// Internal to cpu/onednn/; its users see onednn.h only.
#pragma once

#include <dnnl.hpp>
#include <functional>
#include <string_view>
#include <vector>

#include "kbench/precision.h"

namespace kbench::cpu::onednn {

const dnnl::engine& engine();

/// Throws Unsupported for types that oneDNN does not compute in (fp64, int32).
dnnl::memory::data_type data_type(DataType type);

/// Throws Unsupported with onednn_unsupported's reason.
void require(Precision precision);

/// Strict arithmetic whatever ONEDNN_DEFAULT_FPMATH_MODE says, and scratchpads given by the caller.
dnnl::primitive_attr attributes(const dnnl::post_ops& post_ops = {});

/// Runs `create`; a dnnl::error becomes Unsupported (oneDNN has no such primitive here) or DeviceError, naming `what`.
void create(std::string_view what, const std::function<void()>& create);

/// Throws DeviceError naming `what` unless `status` is success.
void check(dnnl_status_t status, std::string_view what);

/// Primitives made under this guard may run inside a parallel region, by one thread each: oneDNN splits the work and
/// sizes the scratchpad for the thread count it sees when a primitive is made.
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

/// True when the elements of the matrix `part`, which begins at `first` in dimension `d` of `whole`, lie in `whole`'s
/// memory as they would by themselves.
bool is_part_of(const dnnl::memory::desc& part, const dnnl::memory::desc& whole, int d, dnnl::memory::dim first);

/// A primitive with its memory objects, made once, so that running it sets pointers and allocates no memory of ours.
/// One thread at a time may use a Call; threads that share a primitive have one each.
class Call {
  public:
    struct Argument {
        int name;  ///< DNNL_ARG_...
        dnnl::memory::desc desc;
    };
    Call() = default;
    Call(const dnnl::primitive& primitive, const std::vector<Argument>& arguments);
    /// `data` in the order of the arguments. Does not throw: it is called in parallel regions too.
    dnnl_status_t run(std::initializer_list<const void*> data) const noexcept;

  private:
    dnnl::primitive primitive_;
    dnnl::stream stream_;
    std::vector<dnnl::memory> memories_;
    std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace kbench::cpu::onednn

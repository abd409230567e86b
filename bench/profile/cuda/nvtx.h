// Ranges of NVTX in the domain "kbench", so that Nsight Systems and Nsight Compute show kbench's words. Without a tool
// a range costs a few nanoseconds.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <string>

namespace kbench::cuda {

/// A range of this thread, from construction to destruction.
class NvtxRange {
  public:
    explicit NvtxRange(const std::string& name) {
        nvtxEventAttributes_t event{};
        event.version = NVTX_VERSION;
        event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
        event.messageType = NVTX_MESSAGE_TYPE_ASCII;
        event.message.ascii = name.c_str();
        nvtxDomainRangePushEx(domain(), &event);
    }
    ~NvtxRange() { nvtxDomainRangePop(domain()); }
    NvtxRange(const NvtxRange&) = delete;
    NvtxRange& operator=(const NvtxRange&) = delete;

  private:
    static nvtxDomainHandle_t domain() {
        static const nvtxDomainHandle_t handle = nvtxDomainCreateA("kbench");
        return handle;
    }
};

}  // namespace kbench::cuda

// Parameters as CUPTI's generated headers, which cupti.h includes, lay them out.
#include "profile/attach/launch_stream.h"

#include <string_view>

namespace kbench::attach {
namespace {

template <class Params>
const Params& params(const CUpti_CallbackData& call) {
    return *static_cast<const Params*>(call.functionParams);
}

}  // namespace

std::optional<CUstream> launch_stream(const CUpti_CallbackData& call) {
    constexpr std::string_view per_thread = "_ptsz";
    std::string_view name = call.functionName;
    const bool is_per_thread = name.ends_with(per_thread);
    if (is_per_thread) name.remove_suffix(per_thread.size());
    CUstream stream = nullptr;
    if (name == "cudaLaunchKernel" || name == "__cudaLaunchKernel")
        stream = params<cudaLaunchKernel_v7000_params>(call).stream;
    else if (name == "cudaLaunchCooperativeKernel")
        stream = params<cudaLaunchCooperativeKernel_v9000_params>(call).stream;
    else if (name == "cudaLaunchKernelExC")
        stream = params<cudaLaunchKernelExC_v11060_params>(call).config->stream;
    else if (name == "cudaGraphLaunch")
        stream = params<cudaGraphLaunch_v10000_params>(call).stream;
    else if (name == "cuLaunchKernel")
        stream = params<cuLaunchKernel_params>(call).hStream;
    else if (name == "cuLaunchCooperativeKernel")
        stream = params<cuLaunchCooperativeKernel_params>(call).hStream;
    else if (name == "cuLaunchKernelEx")
        stream = params<cuLaunchKernelEx_params>(call).config->hStream;
    else if (name == "cuGraphLaunch")
        stream = params<cuGraphLaunch_params>(call).hStream;
    else
        return std::nullopt;
    return stream == nullptr && is_per_thread ? CU_STREAM_PER_THREAD : stream;
}

}  // namespace kbench::attach

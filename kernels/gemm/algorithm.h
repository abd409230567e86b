// An algorithm of cuBLASLt's that was chosen for a GEMM.
#pragma once

#include <cublasLt.h>

#include <cstddef>

namespace kbench::cuda {

/// A chosen way to run one problem: cuBLASLt's algorithm, and how it was found.
struct GemmAlgorithm {
    cublasLtMatmulAlgo_t algorithm;
    std::size_t workspace_bytes = 0;
    double median_us = 0;  ///< when chosen, with cold weights; with fewer rows than the problem where it has many
    int candidates = 0;    ///< number of algorithms that were measured
    bool from_cache = false;
};

}  // namespace kbench::cuda

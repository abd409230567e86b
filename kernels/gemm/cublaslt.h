// GEMM through cuBLASLt, bias, GELU and their gradients in the epilogue, the algorithm chosen by measurement.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kbench/precision.h"
#include "kernels/gemm/problem.h"

namespace kbench::cuda {

/// One chosen way to run one problem: cuBLASLt's algorithm, and how it was found.
struct GemmAlgorithm {
    cublasLtMatmulAlgo_t algorithm;
    std::size_t workspace_bytes = 0;
    double median_us = 0;  ///< measured when chosen, weights cold; of fewer rows than asked for where those are many
    int candidates = 0;    ///< how many algorithms were measured
    bool from_cache = false;
};

/// What a measured algorithm belongs to: the device, the library's version and every field of the problem. Not how many
/// of the device's SMs are used: candidates are measured on all of them.
std::string algorithm_key(const GemmProblem& problem, const std::string& device_name, std::size_t cublaslt_version);

/// Remembers measured algorithms in a JSON file keyed by device name, cuBLASLt version and problem.
/// A file that cannot be read, parsed or that belongs to another format version is ignored with one warning.
class AlgorithmCache {
  public:
    /// `retune`: ignore what the file says of problems asked for, measure again and replace it.
    AlgorithmCache(std::filesystem::path file, bool retune);
    const GemmAlgorithm* find(const std::string& key) const;
    /// Records and writes the file (temporary file, then rename). A directory that cannot be written is a warning.
    void store(const std::string& key, const GemmAlgorithm& algorithm);
    /// Warnings so far, one line each.
    const std::vector<std::string>& warnings() const;
    ~AlgorithmCache();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A problem made ready: descriptors and algorithm. Does not own workspace.
class LtGemm {
  public:
    /// Chooses the algorithm: from `cache` when it has it and cuBLASLt accepts it, else by measuring all that
    /// cublasLtMatmulAlgoGetHeuristic proposes within `workspace_limit` bytes, on seeded random operands whose weights
    /// rotate so that they stay cold; the largest problems are measured with fewer rows. Throws Unsupported when
    /// cuBLASLt offers no algorithm for the problem (fp64 has no bias or GELU epilogue, for example). Where rows of
    /// `out` are no multiple of 16 bytes, cuBLASLt may round the product to 16 bits before the epilogue.
    LtGemm(const GemmProblem& problem, AlgorithmCache& cache, std::size_t workspace_limit);
    /// Takes the first that it proposes and measures nothing, so that every process takes the same; only of those that
    /// add partial sums up in one order. Throws as the other.
    LtGemm(const GemmProblem& problem, std::size_t workspace_limit);
    ~LtGemm();
    LtGemm(LtGemm&&) noexcept;
    /// `accumulates`: the product is added to what `out` holds, by the algorithm that was chosen for the product alone.
    void run(const GemmPointers& pointers, void* workspace, cudaStream_t stream, bool accumulates = false) const;
    const GemmAlgorithm& algorithm() const;
    /// Such as "cublasLt algo 66 tile 18 stages 36 splitk 1".
    std::string description() const;

  private:
    friend std::string lt_lacks(const GemmProblem&, std::size_t, bool);
    struct State;
    std::unique_ptr<State> state_;
};

/// Empty when cuBLASLt has an algorithm for `problem`, else why LtGemm would throw Unsupported, before it measures. On
/// a machine without a device: as far as the library's documentation says. `one_order`: of those that LtGemm takes
/// without a cache.
std::string lt_lacks(const GemmProblem& problem, std::size_t workspace_limit, bool one_order);

/// The same product through cuBLAS (cublasGemmEx or its strided batched form), cuBLAS's own choice of algorithm, no
/// epilogue: throws Unsupported when one is asked for.
class CublasGemm {
  public:
    explicit CublasGemm(const GemmProblem& problem);
    ~CublasGemm();
    CublasGemm(CublasGemm&&) noexcept;
    static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
    void run(const GemmPointers& pointers, void* workspace, cudaStream_t stream, bool accumulates = false) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Version of the cuBLASLt library in use, such as 130101.
std::size_t cublaslt_version();

}  // namespace kbench::cuda

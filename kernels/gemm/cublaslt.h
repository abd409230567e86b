// GEMM through cuBLASLt, with bias, GELU and their gradients in the epilogue. Measurement chooses the algorithm.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kbench/precision.h"
#include "kernels/gemm/algorithm.h"
#include "kernels/gemm/problem.h"

namespace kbench::cuda {

/// The key of a measured algorithm: device, library version, every field of the problem, and how many of the device's
/// SMs it was measured on, where those are not all (0).
std::string algorithm_key(const GemmProblem& problem, const std::string& device_name, std::size_t cublaslt_version,
                          int some_multiprocessors = 0);

/// Remembers measured algorithms in a JSON file keyed as algorithm_key says.
/// A file that cannot be read, parsed or that belongs to another format version is ignored with one warning.
class AlgorithmCache {
  public:
    /// With `retune`, choices in the file are ignored, and problems are measured again and replaced.
    AlgorithmCache(std::filesystem::path file, bool retune);
    const GemmAlgorithm* find(const std::string& key) const;
    /// Records and writes the file (temporary file, then rename). A directory that cannot be written gives a warning.
    void store(const std::string& key, const GemmAlgorithm& algorithm);
    /// Warnings so far, one line each.
    const std::vector<std::string>& warnings() const;
    ~AlgorithmCache();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A problem made ready, with descriptors and algorithm. Does not own a workspace.
class LtGemm {
  public:
    /// Chooses the algorithm: from `cache` when it has it and cuBLASLt accepts it, else by measuring all that
    /// cublasLtMatmulAlgoGetHeuristic proposes within `workspace_limit` bytes, on seeded random operands whose weights
    /// rotate so that they stay cold; the largest problems are measured with fewer rows. Throws Unsupported when
    /// cuBLASLt offers no algorithm for the problem (fp64 has no bias or GELU epilogue, for example). Where rows of
    /// `out` are no multiple of 16 bytes, cuBLASLt may round the product to 16 bits before the epilogue. Candidates are
    /// measured on `stream`: some need clusters of SMs that a part of the device does not have. Null: on all SMs.
    LtGemm(const GemmProblem& problem, AlgorithmCache& cache, std::size_t workspace_limit,
           cudaStream_t stream = nullptr);
    /// Takes the first proposal without measuring, so that every process takes the same; only proposals that add
    /// partial sums in one order count. On a part of the device's SMs it is the first that starts on `stream`. Throws
    /// as the other constructor.
    LtGemm(const GemmProblem& problem, std::size_t workspace_limit, cudaStream_t stream = nullptr);
    /// Takes `algorithm`, which was chosen for a problem of other sizes, and measures nothing. Throws Unsupported where
    /// cuBLASLt does not run it on `problem` within `workspace_limit` bytes.
    LtGemm(const GemmProblem& problem, const GemmAlgorithm& algorithm, std::size_t workspace_limit);
    ~LtGemm();
    LtGemm(LtGemm&&) noexcept;
    /// With `accumulates`, the product is added to what `out` holds, by the algorithm chosen for the product alone.
    void run(const GemmPointers& pointers, void* workspace, cudaStream_t stream, bool accumulates = false) const;
    const GemmAlgorithm& algorithm() const;
    /// Text such as "cublasLt algo 66 tile 18 stages 36 splitk 1".
    std::string description() const;

  private:
    friend std::string lt_lacks(const GemmProblem&, std::size_t, bool);
    struct State;
    std::unique_ptr<State> state_;
};

/// Returns "" when cuBLASLt has an algorithm for `problem`, else why LtGemm would throw Unsupported; measures nothing.
/// Without a device it answers by the library's documentation. `one_order`: only algorithms that LtGemm takes
/// without a cache.
std::string lt_lacks(const GemmProblem& problem, std::size_t workspace_limit, bool one_order);

/// The same product through cuBLAS (cublasGemmEx or its strided batched form), which chooses the algorithm itself. It
/// has no epilogue: throws Unsupported when one is asked for.
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

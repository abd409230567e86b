// Connectionist temporal classification. Its time is a serial chain of steps: one block runs through a sequence's steps
// forwards, another backwards. Backward variables are forward ones of the reversed targets in reversed time, so one
// kernel computes both. A thread keeps a target and the blank before it in registers, and needs one number per step
// from its neighbours. Logarithms are to base 2, because ex2 and lg2 are instructions.
// Every 16 steps the largest variable is subtracted from all and summed in fp64. Otherwise those of 500 steps are near
// -2000, where fp32 has a resolution of 1e-4, and shares of a total are no better.
#include <cuda_runtime.h>

#include <algorithm>
#include <limits>

#include "kernels/check.h"
#include "kernels/ctc.h"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

constexpr int warp = 32, most_threads = 1024;
/// Warps per block, each with a row of logits.
constexpr int rows_per_block = 4;
/// Shared memory that a block may have without an attribute.
constexpr std::size_t plain_smem = 48 * 1024;
/// Steps whose logits are prefetched while as many are computed, at about 200 cycles each: L2's latency is 300.
constexpr int ahead = 4;
/// Steps between two subtractions of the largest variable; a multiple of `ahead`.
constexpr int steps_of_offset = 16;

/// Stands for log2(0), because -infinity minus itself is NaN. One per step over 1e8 steps still sums to a finite fp32.
constexpr float never = -1e30f;
/// Variables below this belong to states that cannot be reached.
constexpr float unreached = -1e29f;

__device__ inline float power_of_2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline double power_of_2(double x) { return exp2(x); }
__device__ inline float binary_logarithm(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline double binary_logarithm(double x) { return log2(x); }
/// The larger one. It ignores NaN, which then shows in the sum.
__device__ inline float larger(float a, float b) { return fmaxf(a, b); }
__device__ inline double larger(double a, double b) { return fmax(a, b); }
template <typename A>
constexpr A log2_e = A(1.44269504088896340735992468100189214);

/// log2 of a sum of powers of 2, given their exponents.
template <typename A>
__device__ A log2_sum(A a, A b) {
    const A largest = larger(a, b);
    return largest + binary_logarithm(power_of_2(a - largest) + power_of_2(b - largest));
}
template <typename A>
__device__ A log2_sum(A a, A b, A c) {
    const A largest = larger(larger(a, b), c);
    return largest + binary_logarithm(power_of_2(a - largest) + power_of_2(b - largest) + power_of_2(c - largest));
}

/// The variables of a target and of the blank before it.
template <typename A>
struct alignas(2 * sizeof(A)) Pair {
    A blank, label;
};

template <typename T>
struct Problem {
    using A = Arithmetic<T>;
    const T* logits;
    const std::int32_t *lengths, *targets, *target_lengths;
    A* losses;
    A* log_sums;     ///< [steps, batch]: log2 of the sum of a row's exponentials
    double* totals;  ///< [batch]: log2 of a sequence's probability
    /// [2, batch, offsets()]: what was subtracted from the forward and the backward variables in each block of steps,
    /// numbered in each one's direction.
    double* offsets;
    /// Variables [steps, batch, pairs]. Forward ones include what their step emits; backward ones do not, and count
    /// pairs and steps from the end. The forward alone stores none, or only two steps' where pairs do not fit in
    /// registers.
    Pair<A>*alpha, *beta;
    std::int32_t* next;   ///< [batch, target]: the next place of the same label in the targets, or their number
    std::int32_t* first;  ///< [batch, labels]: the first place of the label, or their number
    std::int64_t stride;
    int batch, labels, target, steps;
    std::int64_t frames_per_step;

    __device__ int pairs() const { return target + 1; }
    __device__ std::int64_t offset_at(int n, bool reversed, int step) const {
        const std::int64_t each = (steps + steps_of_offset - 1) / steps_of_offset;
        return (std::int64_t{reversed} * batch + n) * each + step / steps_of_offset;
    }
    __device__ int steps_of_sequence(int n) const {
        const std::int64_t begun = (lengths[n] + frames_per_step - 1) / frames_per_step;
        return static_cast<int>(min(max(begun, std::int64_t{0}), std::int64_t{steps}));
    }
    __device__ int targets_of(int n) const { return min(max(target_lengths[n], 0), target); }
    __device__ const T* row(int step, int n) const { return logits + (std::int64_t{step} * batch + n) * stride; }
};

/// log2 of a label's probability; NaN stays NaN.
template <typename T, typename A = Arithmetic<T>>
__device__ A log_p(T logit, A log_sum) {
    const A value = static_cast<A>(logit) * log2_e<A> - log_sum;
    return value < A(never) ? A(never) : value;
}

template <typename T>
__global__ void __launch_bounds__(warp* rows_per_block) ctc_log_sums_kernel(Problem<T> of) {
    using A = Arithmetic<T>;
    const std::int64_t index = std::int64_t{blockIdx.x} * rows_per_block + threadIdx.y;
    if (index >= std::int64_t{of.steps} * of.batch) return;
    const int step = static_cast<int>(index / of.batch), n = static_cast<int>(index % of.batch);
    if (step >= of.steps_of_sequence(n)) return;
    const T* const row = of.row(step, n);
    A largest = std::numeric_limits<A>::lowest(), sum = 0;
    for (int label = static_cast<int>(threadIdx.x); label < of.labels; label += warp)
        largest = larger(largest, static_cast<A>(row[label]));
#pragma unroll
    for (int distance = warp / 2; distance > 0; distance /= 2)
        largest = larger(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
    for (int label = static_cast<int>(threadIdx.x); label < of.labels; label += warp)
        sum += power_of_2((static_cast<A>(row[label]) - largest) * log2_e<A>);
#pragma unroll
    for (int distance = warp / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    if (threadIdx.x == 0) of.log_sums[index] = largest * log2_e<A> + log2(sum);
}

/// Links each of a sequence's targets to the next with the same label; the gradient adds them up in this order.
template <typename T>
__device__ void link_targets(const Problem<T>& of, int n) {
    const int count = of.targets_of(n);
    const std::int32_t* const targets = of.targets + std::int64_t{n} * of.target;
    std::int32_t* const next = of.next + std::int64_t{n} * of.target;
    std::int32_t* const first = of.first + std::int64_t{n} * of.labels;
    for (int label = static_cast<int>(threadIdx.x); label < of.labels; label += static_cast<int>(blockDim.x))
        first[label] = count;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
        const std::int32_t label = targets[i];
        int behind = i + 1, before = i - 1;
        while (behind < count && targets[behind] != label) ++behind;
        while (before >= 0 && targets[before] != label) --before;
        next[i] = behind;
        if (before < 0) first[label] = i;
    }
}

template <typename T, typename A = Arithmetic<T>>
__device__ void finish(const Problem<T>& of, int n, double total) {
    of.totals[n] = total;
    of.losses[n] =
        total < double{unreached} ? std::numeric_limits<A>::infinity() : static_cast<A>(-total / log2_e<double>);
}

/// The largest of the block's values, for all of its threads. `maxima` has a place per warp.
template <typename A>
__device__ A largest_of_block(A value, A* maxima) {
#pragma unroll
    for (int distance = warp / 2; distance > 0; distance /= 2)
        value = larger(value, __shfl_xor_sync(0xffffffffu, value, distance));
    if (threadIdx.x % warp == 0) maxima[threadIdx.x / warp] = value;
    __syncthreads();
    for (unsigned other = 0; other < blockDim.x / warp; ++other) value = larger(value, maxima[other]);
    return value;
}

/// The chain of block (n, direction). Direction 0 is forward; 1 is backward, with targets and steps reversed.
template <typename T>
struct Chain {
    const Problem<T>& of;
    int n;
    bool reversed;
    int steps = of.steps_of_sequence(n), count = of.targets_of(n);

    __device__ int time(int step) const { return reversed ? steps - 1 - step : step; }
    /// The label of pair `i` < count.
    __device__ std::int32_t label(int i) const {
        return of.targets[std::int64_t{n} * of.target + (reversed ? count - 1 - i : i)];
    }
    /// Whether an alignment may skip the blank of pair `i`.
    __device__ bool skips(int i) const { return i > 0 && i < count && label(i) != label(i - 1); }
    __device__ std::int64_t pairs_of(int time) const { return (std::int64_t{time} * of.batch + n) * of.pairs(); }
};

/// One thread per pair: blockDim.x exceeds the longest sequence's number of targets.
template <typename T, bool stores>
__global__ void __launch_bounds__(most_threads) ctc_chain_kernel(Problem<T> of) {
    using A = Arithmetic<T>;
    if (blockIdx.y == 2) return link_targets(of, static_cast<int>(blockIdx.x));
    const Chain<T> chain{of, static_cast<int>(blockIdx.x), blockIdx.y == 1};
    __shared__ A edges[2][most_threads / warp];  // the last label of each warp, of this step and of the one before
    __shared__ A ends[2], maxima[most_threads / warp];
    const int i = static_cast<int>(threadIdx.x), lane = i % warp, own_warp = i / warp;
    const int steps = chain.steps, count = chain.count;
    if (steps == 0) {
        if (!chain.reversed && i == 0) finish(of, chain.n, count == 0 ? 0 : double{never});
        return;
    }
    const bool has_label = i < count, skips = chain.skips(i);
    const std::int32_t label = has_label ? chain.label(i) : 0;

    struct Emitted {
        T blank, label;
        A log_sum;
    };
    const auto load = [&](Emitted(&to)[ahead], int first) {
#pragma unroll
        for (int j = 0; j < ahead; ++j) {
            const int time = chain.time(min(first + j, steps - 1));
            const T* const row = of.row(time, chain.n);
            to[j] = {row[0], row[label], of.log_sums[std::int64_t{time} * of.batch + chain.n]};
        }
    };
    Emitted coming[ahead];
    load(coming, 0);
    Pair<A> with{A(never), A(never)};  // what the step emits
    double offset = 0;
    for (int first = 0; first < steps; first += ahead) {
        if (first % steps_of_offset == 0) {
            if (first > 0) {
                const A largest = largest_of_block(larger(with.blank, with.label), maxima);
                if (largest > A(unreached)) {
                    offset += static_cast<double>(largest);
                    with = {with.blank - largest, with.label - largest};
                    if (lane == warp - 1) edges[first % 2][own_warp] = with.label;
                }
                __syncthreads();
            }
            if (stores && i == 0) of.offsets[of.offset_at(chain.n, chain.reversed, first)] = offset;
        }
        Pair<A> emitted[ahead];
#pragma unroll
        for (int j = 0; j < ahead; ++j)
            emitted[j] = {log_p(coming[j].blank, coming[j].log_sum),
                          has_label ? log_p(coming[j].label, coming[j].log_sum) : A(never)};
        load(coming, first + ahead);
#pragma unroll
        for (int j = 0; j < ahead; ++j) {
            const int step = first + j;
            if (step >= steps) break;
            A left = __shfl_up_sync(0xffffffffu, with.label, 1);
            if (lane == 0) left = own_warp > 0 ? edges[step % 2][own_warp - 1] : A(never);
            Pair<A> without;
            if (step == 0)
                without = {i == 0 ? A(0) : A(never), i == 0 && has_label ? A(0) : A(never)};
            else
                without = {log2_sum(with.blank, left), log2_sum(with.label, with.blank, skips ? left : A(never))};
            with = {without.blank + emitted[j].blank, without.label + emitted[j].label};
            if (lane == warp - 1) edges[(step + 1) % 2][own_warp] = with.label;
            if constexpr (stores) {
                if (i <= count)
                    (chain.reversed ? of.beta : of.alpha)[chain.pairs_of(chain.time(step)) + i] =
                        chain.reversed ? without : with;
            }
            __syncthreads();
        }
    }
    if (chain.reversed) return;
    if (i == count) ends[0] = with.blank;
    if (i == count - 1) ends[1] = with.label;
    if (i == 0 && count == 0) ends[1] = A(never);
    __syncthreads();
    if (i == 0) finish(of, chain.n, static_cast<double>(log2_sum(ends[0], ends[1])) + offset);
}

/// The chain for any number of targets: variables of `kept` steps lie in global memory, and nothing is subtracted.
template <typename T, bool stores>
__global__ void __launch_bounds__(most_threads) ctc_long_chain_kernel(Problem<T> of, int kept) {
    using A = Arithmetic<T>;
    if (blockIdx.y == 2) return link_targets(of, static_cast<int>(blockIdx.x));
    const Chain<T> chain{of, static_cast<int>(blockIdx.x), blockIdx.y == 1};
    const int steps = chain.steps, count = chain.count, thread = static_cast<int>(threadIdx.x);
    if (steps == 0) {
        if (!chain.reversed && thread == 0) finish(of, chain.n, count == 0 ? 0 : double{never});
        return;
    }
    for (int step = thread * steps_of_offset; stores && step < steps;
         step += static_cast<int>(blockDim.x) * steps_of_offset)
        of.offsets[of.offset_at(chain.n, chain.reversed, step)] = 0;
    Pair<A>* const pairs = chain.reversed ? of.beta : of.alpha;
    const auto emitted = [&](int step, int i) {
        const int time = chain.time(step);
        const T* const row = of.row(time, chain.n);
        const A log_sum = of.log_sums[std::int64_t{time} * of.batch + chain.n];
        return Pair<A>{log_p(row[0], log_sum), i < count ? log_p(row[chain.label(i)], log_sum) : A(never)};
    };
    const auto stored = [&](int step, int i) -> Pair<A>& { return pairs[chain.pairs_of(chain.time(step) % kept) + i]; };
    const auto with = [&](int step, int i) {
        const Pair<A> pair = stored(step, i);
        if (!chain.reversed) return pair;
        const Pair<A> adds = emitted(step, i);
        return Pair<A>{pair.blank + adds.blank, pair.label + adds.label};
    };
    for (int step = 0; step < steps; ++step) {
        for (int i = thread; i <= count; i += static_cast<int>(blockDim.x)) {
            Pair<A> sum{i == 0 ? A(0) : A(never), i == 0 && count > 0 ? A(0) : A(never)};
            if (step > 0) {
                const Pair<A> before = with(step - 1, i);
                const A left = i > 0 ? with(step - 1, i - 1).label : A(never);
                sum = {log2_sum(before.blank, left),
                       log2_sum(before.label, before.blank, chain.skips(i) ? left : A(never))};
            }
            if (!chain.reversed) {
                const Pair<A> adds = emitted(step, i);
                sum = {sum.blank + adds.blank, sum.label + adds.label};
            }
            stored(step, i) = sum;
        }
        __syncthreads();
    }
    if (!chain.reversed && thread == 0)
        finish(of, chain.n,
               static_cast<double>(log2_sum(stored(steps - 1, count).blank,
                                            count > 0 ? stored(steps - 1, count - 1).label : A(never))));
}

/// One warp per row of logits, which becomes its gradient. `kept`: shares of targets are in shared memory.
template <typename T, bool kept>
__global__ void __launch_bounds__(warp* rows_per_block)
    ctc_gradient_kernel(Problem<T> of, T* logits, const Arithmetic<T>* __restrict__ loss_scale) {
    using A = Arithmetic<T>;
    extern __shared__ double shares_in_smem[];
    const std::int64_t index = std::int64_t{blockIdx.x} * rows_per_block + threadIdx.y;
    if (index >= std::int64_t{of.steps} * of.batch) return;
    const int step = static_cast<int>(index / of.batch), n = static_cast<int>(index % of.batch);
    const int lane = static_cast<int>(threadIdx.x), count = of.targets_of(n);
    T* const row = logits + index * of.stride;
    const double total = of.totals[n];
    const int steps = of.steps_of_sequence(n);
    if (step >= steps || total < double{unreached}) {
        for (std::int64_t column = lane; column < of.stride; column += warp) row[column] = static_cast<T>(0.0f);
        return;
    }
    const Pair<A>* const alpha = of.alpha + index * of.pairs();
    const Pair<A>* const beta = of.beta + index * of.pairs();
    const auto shift = static_cast<A>(of.offsets[of.offset_at(n, false, step)] +
                                      of.offsets[of.offset_at(n, true, steps - 1 - step)] - total);
    const auto share_of = [&](int i) { return power_of_2(alpha[i].label + beta[count - 1 - i].label + shift); };
    A* const shares = reinterpret_cast<A*>(shares_in_smem) + std::int64_t{threadIdx.y} * of.pairs();
    A blanks = 0;
    for (int i = lane; i <= count; i += warp) {
        blanks += power_of_2(alpha[i].blank + beta[count - i].blank + shift);
        if constexpr (kept) {
            if (i < count) shares[i] = share_of(i);
        }
    }
#pragma unroll
    for (int distance = warp / 2; distance > 0; distance /= 2) blanks += __shfl_xor_sync(0xffffffffu, blanks, distance);
    __syncwarp();
    const A scale = *loss_scale / static_cast<A>(of.batch), log_sum = of.log_sums[index];
    const std::int32_t* const next = of.next + std::int64_t{n} * of.target;
    const std::int32_t* const first = of.first + std::int64_t{n} * of.labels;
    for (int label = lane; label < of.labels; label += warp) {
        A occupancy = label == 0 ? blanks : A(0);
        for (int i = first[label]; i < count; i = next[i]) {
            if constexpr (kept)
                occupancy += shares[i];
            else
                occupancy += share_of(i);
        }
        row[label] = static_cast<T>(scale * (power_of_2(log_p(row[label], log_sum)) - occupancy));
    }
    for (std::int64_t column = of.labels + lane; column < of.stride; column += warp) row[column] = static_cast<T>(0.0f);
}

bool in_registers(const Ctc& op) { return op.target < most_threads; }

/// Sizes and offsets of the parts of a workspace.
class Layout {
  public:
    template <typename T>
    Layout(const Ctc& op, bool gradient, Problem<T>& of, void* workspace) : memory_(static_cast<char*>(workspace)) {
        const std::int64_t kept = gradient ? op.steps : in_registers(op) ? 0 : std::min<std::int64_t>(op.steps, 2);
        of.alpha = take<Pair<Arithmetic<T>>>(kept * op.batch * (op.target + 1));
        of.beta = take<Pair<Arithmetic<T>>>(gradient ? kept * op.batch * (op.target + 1) : 0);
        of.log_sums = take<Arithmetic<T>>(op.steps * op.batch);
        of.totals = take<double>(op.batch);
        of.offsets = take<double>(gradient ? 2 * op.batch * divide_up(op.steps, steps_of_offset) : 0);
        of.next = take<std::int32_t>(gradient ? op.batch * op.target : 0);
        of.first = take<std::int32_t>(gradient ? op.batch * op.labels : 0);
    }
    std::size_t bytes() const { return bytes_; }

  private:
    template <typename Element>
    Element* take(std::int64_t count) {
        constexpr std::size_t boundary = 16;
        Element* const part = memory_ ? reinterpret_cast<Element*>(memory_ + bytes_) : nullptr;
        bytes_ += (static_cast<std::size_t>(count) * sizeof(Element) + boundary - 1) / boundary * boundary;
        return part;
    }
    char* memory_;
    std::size_t bytes_ = 0;
};

std::size_t workspace_bytes(DataType type, const Ctc& op, bool gradient) {
    std::size_t bytes = 0;
    dispatch(type, [&]<typename T>() {
        Problem<T> of;
        bytes = Layout(op, gradient, of, nullptr).bytes();
    });
    return bytes;
}

unsigned row_blocks(const Ctc& op) { return static_cast<unsigned>(divide_up(op.steps * op.batch, rows_per_block)); }

/// Computes losses and, with `gradient`, what it needs.
template <typename T>
Problem<T> run_chains(const Ctc& op, bool gradient, std::int64_t stride, const void* logits,
                      const std::int32_t* lengths, const std::int32_t* targets, const std::int32_t* target_lengths,
                      void* losses, void* workspace, cudaStream_t stream) {
    Problem<T> of{};
    Layout(op, gradient, of, workspace);
    of.logits = static_cast<const T*>(logits);
    of.lengths = lengths;
    of.targets = targets;
    of.target_lengths = target_lengths;
    of.losses = static_cast<Arithmetic<T>*>(losses);
    of.stride = stride;
    of.batch = static_cast<int>(op.batch);
    of.labels = static_cast<int>(op.labels);
    of.target = static_cast<int>(op.target);
    of.steps = static_cast<int>(op.steps);
    of.frames_per_step = op.frames_per_step;
    ctc_log_sums_kernel<T><<<row_blocks(op), dim3(warp, rows_per_block), 0, stream>>>(of);
    KBENCH_CUDA_LAUNCHED("ctc_log_sums_kernel");
    const dim3 grid(static_cast<unsigned>(op.batch), gradient ? 3 : 1);
    const auto threads =
        static_cast<unsigned>(std::min<std::int64_t>(divide_up(op.target + 1, warp) * warp, most_threads));
    if (!in_registers(op)) {
        (gradient ? ctc_long_chain_kernel<T, true> : ctc_long_chain_kernel<T, false>)<<<grid, threads, 0, stream>>>(
            of, gradient ? of.steps : std::min(of.steps, 2));
    } else if (gradient) {
        ctc_chain_kernel<T, true><<<grid, threads, 0, stream>>>(of);
    } else {
        ctc_chain_kernel<T, false><<<grid, threads, 0, stream>>>(of);
    }
    KBENCH_CUDA_LAUNCHED("ctc_chain_kernel");
    return of;
}

}  // namespace

std::size_t ctc_forward_workspace_bytes(DataType type, const Ctc& op) { return workspace_bytes(type, op, false); }
std::size_t ctc_gradient_workspace_bytes(DataType type, const Ctc& op) { return workspace_bytes(type, op, true); }

void ctc_forward(DataType type, const Ctc& op, Stride<"logits"> stride, In<"logits"> logits,
                 In<"lengths", std::int32_t> lengths, In<"targets", std::int32_t> targets,
                 In<"target_lengths", std::int32_t> target_lengths, Out<"losses"> losses, void* workspace,
                 cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        run_chains<T>(op, false, stride, logits, lengths, targets, target_lengths, losses, workspace, stream);
    });
}

void ctc_gradient(DataType type, const Ctc& op, Stride<"logits"> stride, Out<"logits"> logits,
                  In<"lengths", std::int32_t> lengths, In<"targets", std::int32_t> targets,
                  In<"target_lengths", std::int32_t> target_lengths, In<"loss_scale"> loss_scale, Out<"losses"> losses,
                  void* workspace, cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        using A = Arithmetic<T>;
        const Problem<T> of =
            run_chains<T>(op, true, stride, logits, lengths, targets, target_lengths, losses, workspace, stream);
        const std::size_t smem = sizeof(A) * static_cast<std::size_t>(rows_per_block * (op.target + 1));
        const dim3 block(warp, rows_per_block);
        if (smem <= plain_smem)
            ctc_gradient_kernel<T, true><<<row_blocks(op), block, smem, stream>>>(of, static_cast<T*>(logits),
                                                                                  static_cast<const A*>(loss_scale));
        else
            ctc_gradient_kernel<T, false>
                <<<row_blocks(op), block, 0, stream>>>(of, static_cast<T*>(logits), static_cast<const A*>(loss_scale));
        KBENCH_CUDA_LAUNCHED("ctc_gradient_kernel");
    });
}

}  // namespace kbench::cuda

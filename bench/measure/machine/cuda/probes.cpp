// The table of probes. Variants go from what is likely best; all of them are tried.
#include "bench/measure/machine/cuda/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>

#include "analysis/machine/tensor_cores.h"
#include "analysis/machine/usable_roofs.h"
#include "kbench/error.h"
#include "kernels/probe/cache.h"
#include "kernels/probe/fma.h"
#include "kernels/probe/latency.h"
#include "kernels/probe/memory.h"
#include "kernels/probe/mma.h"
#include "kernels/probe/unit.h"
#include "kernels/probe/wgmma.h"

namespace kbench::cuda {
namespace {

using Variants = std::vector<ProbeVariant>;
using Memory = std::shared_ptr<DeviceBuffer>;

constexpr std::uint32_t seed = 1;
constexpr std::int64_t most_buffer_bytes = std::int64_t{2} << 30;

Memory allocate(const ProbeContext& context, std::int64_t bytes) {
    return std::make_shared<DeviceBuffer>(context.device, static_cast<std::size_t>(bytes));
}

/// Zeroed, so that sanitizers see no read of what was never written.
Memory allocate_sums(const ProbeContext& context) {
    Memory sums = allocate(context, probe::memory_sums * sizeof(std::uint32_t));
    context.device.fill(sums->data(), 0, sums->bytes());
    return sums;
}

/// A buffer of random numbers.
Memory allocate_filled(const ProbeContext& context, std::int64_t bytes) {
    Memory memory = allocate(context, bytes);
    probe::stream_memory(probe::Traffic::write, {}, {memory->data(), nullptr, nullptr, bytes, nullptr}, seed,
                         context.gpu.multiprocessors, nullptr, context.stream);
    return memory;
}

/// 2 GiB, or an eighth of the free memory; at least 8 times L2.
std::int64_t stream_bytes(const ProbeContext& context) {
    const std::int64_t free = context.device.free_bytes();
    const std::int64_t bytes = std::min(most_buffer_bytes, free / 8) / probe::memory_chunk_bytes;
    if (bytes * probe::memory_chunk_bytes < 8 * context.gpu.l2_bytes)
        throw Unsupported(fmt::format("buffers of 8 times L2 ({} bytes) do not fit: {} bytes of memory are free",
                                      context.gpu.l2_bytes, free));
    return bytes * probe::memory_chunk_bytes;
}

std::string blocks_text(int blocks_per_sm) {
    return blocks_per_sm == 0 ? "a block a chunk" : fmt::format("{} blocks/SM", blocks_per_sm);
}

template <probe::Traffic traffic>
Variants memory_variants(const ProbeContext& context) {
    using probe::Hint;
    using probe::Traffic;
    const std::int64_t bytes = stream_bytes(context);
    const auto buffer = [&](bool used) { return used ? allocate_filled(context, bytes) : Memory(); };
    const Memory a = buffer(traffic != Traffic::read), b = buffer(traffic != Traffic::write),
                 c = buffer(traffic == Traffic::triad), sums = allocate_sums(context);
    const auto data = [](const Memory& memory) { return memory ? memory->data() : nullptr; };
    const probe::MemoryBuffers buffers{data(a), data(b), data(c), bytes,
                                       reinterpret_cast<std::uint32_t*>(sums->data())};
    // Only one kind of hint means something to a stream that only reads or only writes.
    const auto hints = traffic == Traffic::read    ? std::vector{Hint::no_allocate, Hint::none}
                       : traffic == Traffic::write ? std::vector{Hint::streaming, Hint::none}
                                                   : std::vector{Hint::streaming, Hint::no_allocate, Hint::none};
    Variants variants;
    for (const Hint hint : hints)
        for (const int loads : {1, 2, 4, 8})
            for (const int blocks_per_sm : {0, 2, 4, 8, 16}) {
                const probe::MemoryVariant variant{loads, blocks_per_sm, hint};
                variants.push_back({fmt::format("{} in flight, {}, {}", loads, blocks_text(blocks_per_sm),
                                                probe::hint_names[static_cast<int>(hint)]),
                                    probe::memory_bytes(traffic, bytes),
                                    [variant, buffers, context, held = std::array{a, b, c, sums}](int iterations) {
                                        for (int i = 0; i < iterations; ++i)
                                            probe::stream_memory(traffic, variant, buffers, seed,
                                                                 context.gpu.multiprocessors, context.span,
                                                                 context.stream);
                                    }});
            }
    return variants;
}

/// A part of L2 that a buffer takes.
struct PartOfL2 {
    int parts, of;
};
/// Where L2 has two partitions, each keeps what its SMs read: up to a half of L2 is read from the near one. An H200 was
/// seen to read more than that faster, by 5 %.
constexpr PartOfL2 fastest_parts[] = {{1, 4}, {1, 8}, {1, 2}, {5, 8}};
/// More than either partition holds, so that some reads go to the other one; not so much more that they go to DRAM.
constexpr PartOfL2 far_parts[] = {{5, 8}};

template <const auto& l2_parts>
Variants l2_variants(const ProbeContext& context) {
    const Memory sums = allocate_sums(context);
    Variants variants;
    for (const auto [parts, of] : l2_parts) {
        const std::int64_t chunks = context.gpu.l2_bytes * parts / of / probe::memory_chunk_bytes;
        const std::int64_t bytes = chunks * probe::memory_chunk_bytes;
        const Memory data = allocate_filled(context, bytes);
        for (const int loads : {2, 4, 8})
            for (const int blocks_per_sm : {2, 4, 8}) {
                constexpr int steps = 16;
                const int blocks = blocks_per_sm * context.gpu.multiprocessors;
                if (blocks * probe::l2_chunk_bytes(loads) > bytes) continue;  // two would read the same at a time
                variants.push_back(
                    {fmt::format("{}/{} of L2, {} in flight, {} blocks/SM", parts, of, loads, blocks_per_sm),
                     static_cast<double>(probe::l2_chunk_bytes(loads)) * blocks * steps, [=](int iterations) {
                         probe::read_l2(data->data(), bytes, loads, blocks, iterations * steps,
                                        reinterpret_cast<std::uint32_t*>(sums->data()), context.span, context.stream);
                     }});
            }
    }
    if (variants.empty()) throw Unsupported(fmt::format("L2 has only {} bytes", context.gpu.l2_bytes));
    return variants;
}

template <probe::NearMemory memory>
Variants near_variants(const ProbeContext& context) {
    const Memory data = allocate_filled(context, probe::memory_chunk_bytes), sums = allocate_sums(context);
    Variants variants;
    for (const int width : {16, 8, 4})
        for (const int blocks_per_sm : {2, 4, 8}) {
            constexpr int passes = 64;
            const int blocks = blocks_per_sm * context.gpu.multiprocessors;
            variants.push_back({fmt::format("loads of {} bytes, {} blocks/SM", width, blocks_per_sm),
                                static_cast<double>(probe::near_bytes(width)) * blocks * passes, [=](int iterations) {
                                    probe::read_near(memory, data->data(), width, blocks, iterations * passes,
                                                     reinterpret_cast<std::uint32_t*>(sums->data()), context.span,
                                                     context.stream);
                                }});
        }
    return variants;
}

template <DataType type>
Variants fma_variants(const ProbeContext& context) {
    Variants variants;
    for (const int chains : {8, 4, 16})
        for (const int blocks_per_sm : {2, 4}) {
            const int blocks = blocks_per_sm * context.gpu.multiprocessors;
            const Memory out =
                allocate(context, std::int64_t{blocks} * probe::fma_threads * probe::fma_result_bytes(type));
            variants.push_back({fmt::format("{} chains, {} blocks/SM", chains, blocks_per_sm),
                                probe::fma_flops(type, chains, blocks), [=](int iterations) {
                                    probe::fma_chains(type, chains, blocks, iterations, out->data(), context.span,
                                                      context.stream);
                                }});
        }
    return variants;
}

/// More blocks add nothing, and let the first one, which has the right of way, end too soon to tell the clock.
/// Fits a probe that takes chains, blocks, iterations, results of 4 bytes, a span and a stream.
template <auto launch, class Result>
Variants unit_variants(const ProbeContext& context) {
    Variants variants;
    for (const int chains : {4, 2, 8})
        for (const int blocks_per_sm : {2, 4}) {
            const int blocks = blocks_per_sm * context.gpu.multiprocessors;
            const Memory out = allocate(context, std::int64_t{blocks} * probe::unit_threads * 4);
            variants.push_back({fmt::format("{} chains, {} blocks/SM", chains, blocks_per_sm),
                                probe::unit_instructions(chains, blocks), [=](int iterations) {
                                    launch(chains, blocks, iterations, reinterpret_cast<Result*>(out->data()),
                                           context.span, context.stream);
                                }});
        }
    return variants;
}

void add_mma(const ProbeContext& context, probe::Mma mma, Variants& variants) {
    if (*probe::mma_unsupported(mma) != '\0') return;
    const probe::MmaShape& shape = probe::shape_of(mma);
    for (const int tiles : {8, 4})
        for (const int blocks_per_sm : {1, 2}) {
            const int blocks = blocks_per_sm * context.gpu.multiprocessors;
            const Memory out = allocate(context, std::int64_t{blocks} * probe::mma_threads * shape.result_bytes);
            variants.push_back({fmt::format("mma.sync.{}, {} tiles, {} blocks/SM", shape.name, tiles, blocks_per_sm),
                                probe::mma_flops(mma, tiles, blocks), [=](int iterations) {
                                    probe::mma_chains(mma, tiles, blocks, iterations, out->data(), context.span,
                                                      context.stream);
                                }});
        }
}

void add_wgmma(const ProbeContext& context, Precision precision, Variants& variants) {
    if (tensor_cores(context.gpu).family != TensorFamily::wgmma) return;
    struct Shape {
        int warpgroups, blocks_per_sm;
    };
    for (const auto [warpgroups, blocks_per_sm] : {Shape{2, 1}, {3, 1}, {1, 1}, {1, 2}, {1, 3}}) {
        const int blocks = blocks_per_sm * context.gpu.multiprocessors;
        const Memory out = allocate(context, std::int64_t{blocks} * warpgroups * 128 * 4);
        variants.push_back(
            {fmt::format("wgmma.m64n256, {} warpgroups a block, {} blocks/SM", warpgroups, blocks_per_sm),
             probe::wgmma_flops(precision, warpgroups, blocks), [=](int iterations) {
                 probe::wgmma_chains(precision, warpgroups, blocks, iterations, reinterpret_cast<float*>(out->data()),
                                     context.span, context.stream);
             }});
    }
}

constexpr probe::Mma mma_of(Precision precision) {
    return precision == Precision::fp16   ? probe::Mma::fp16_16x8x16
           : precision == Precision::bf16 ? probe::Mma::bf16_16x8x16
                                          : probe::Mma::tf32_16x8x8;
}

template <Precision precision>
Variants tensor_variants(const ProbeContext& context) {
    Variants variants;
    if constexpr (precision == Precision::fp64) {
        add_mma(context, probe::Mma::fp64_16x8x16, variants);
        add_mma(context, probe::Mma::fp64_8x8x4, variants);
    } else {
        // What mma.sync reaches where another instruction is faster is no roof, and correct kernels would exceed it.
        if (const std::string why = no_tensor_roof(context.gpu); !why.empty()) throw Unsupported(why);
        add_wgmma(context, precision, variants);
        add_mma(context, mma_of(precision), variants);
    }
    if (variants.empty()) throw Unsupported("kbench was not built for this architecture");
    return variants;
}

/// Kernels with mma.sync cannot reach what wgmma or tcgen05 does, so they have a ceiling of their own.
template <Precision precision>
Variants mma_sync_variants(const ProbeContext& context) {
    if (tensor_cores(context.gpu).family == TensorFamily::mma_sync)
        throw Unsupported("the ceiling of tensor cores is that of mma.sync, the only instruction for them here");
    Variants variants;
    add_mma(context, mma_of(precision), variants);
    if (variants.empty()) throw Unsupported("kbench was not built for this architecture");
    return variants;
}

Variants launch_variants(const ProbeContext& context) {
    return {{"empty kernels", 1, [stream = context.stream](int iterations) {
                 for (int i = 0; i < iterations; ++i) probe::empty(stream);
             }}};
}

Variants graph_variants(const ProbeContext& context) {
    constexpr int nodes = 200;
    probe::empty(context.stream);  // loaded before the capture
    const std::shared_ptr<DeviceGraph> graph = context.device.capture([stream = context.stream] {
        for (int i = 0; i < nodes; ++i) probe::empty(stream);
    });
    return {{fmt::format("a graph of {} empty kernels", nodes), nodes, [graph](int) { graph->launch(); }}};
}

Variants barrier_variants(const ProbeContext& context) {
    constexpr int barriers = 200;
    const int blocks = context.gpu.multiprocessors;
    const Memory state = allocate(context, sizeof(probe::BarrierState));
    return {{fmt::format("{} blocks", blocks), barriers, [=](int iterations) {
                 probe::grid_barriers(blocks, iterations * barriers,
                                      reinterpret_cast<probe::BarrierState*>(state->data()), nullptr, context.stream);
             }}};
}

constexpr Probe probes[] = {
    {"dram_read", Pace::busy, memory_variants<probe::Traffic::read>},
    {"dram_write", Pace::busy, memory_variants<probe::Traffic::write>},
    {"dram_copy", Pace::busy, memory_variants<probe::Traffic::copy>},
    {"dram_triad", Pace::busy, memory_variants<probe::Traffic::triad>},
    {"l2_read", Pace::busy, l2_variants<fastest_parts>},
    {"l2_far_read", Pace::busy, l2_variants<far_parts>},
    {"l1_read", Pace::rested, near_variants<probe::NearMemory::l1>},
    {"shared_read", Pace::rested, near_variants<probe::NearMemory::shared>},
    {"special", Pace::rested, unit_variants<probe::power_chains, float>},
    {"load_store", Pace::rested, unit_variants<probe::shuffle_chains, std::uint32_t>},
    {"fp16_plain", Pace::rested, fma_variants<DataType::fp16>},
    {"fp32_plain", Pace::rested, fma_variants<DataType::fp32>},
    {"fp64_plain", Pace::rested, fma_variants<DataType::fp64>},
    {"fp16_tensor", Pace::rested, tensor_variants<Precision::fp16>},
    {"bf16_tensor", Pace::rested, tensor_variants<Precision::bf16>},
    {"tf32_tensor", Pace::rested, tensor_variants<Precision::tf32>},
    {"fp64_tensor", Pace::rested, tensor_variants<Precision::fp64>},
    {"fp16_mma_sync", Pace::rested, mma_sync_variants<Precision::fp16>},
    {"bf16_mma_sync", Pace::rested, mma_sync_variants<Precision::bf16>},
    {"tf32_mma_sync", Pace::rested, mma_sync_variants<Precision::tf32>},
    {"launch", Pace::host, launch_variants},
    {"graph_node", Pace::single, graph_variants},
    {"grid_barrier", Pace::busy, barrier_variants},
};

}  // namespace

const Probe& probe_of(std::string_view ceiling) {
    const auto* found = std::ranges::find(probes, ceiling, &Probe::ceiling);
    if (found == std::end(probes)) throw std::out_of_range(fmt::format("no probe measures {}", ceiling));
    return *found;
}

}  // namespace kbench::cuda

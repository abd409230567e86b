// Which loop measures which ceiling, how often it runs, and how its runs become a ceiling.
#include "cpu/probe/probe.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <new>
#include <optional>
#include <random>
#include <string>

#include "analysis/machine/ceilings.h"
#include "analysis/machine/impossible_roofs.h"
#include "cpu/probe/chains.h"
#include "cpu/probe/core_clock.h"
#include "cpu/probe/on_threads.h"
#include "cpu/probe/streams.h"
#include "cpu/threads.h"
#include "kbench/statistics.h"

namespace kbench::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Fewer runs show too little of the spread; more than `most_runs` show no more of it.
constexpr int fewest_runs = 7, most_runs = 51;

/// Runs `rate`, which returns one run's rate in the ceiling's unit, for about `seconds`. Reads the core's clock between
/// the runs, while it is still what the work has made it.
Ceiling sample_ceiling(std::string_view name, double seconds, const std::function<double()>& rate) {
    std::vector<double> rates, clocks;
    const Clock::time_point start = Clock::now();
    rate();  // warms up pages, caches, clocks and the power of wide registers
    for (int run = 0; run < most_runs; ++run) {
        // Where one run takes long, fewer runs must do.
        const double spent = seconds_since(start);
        if (run >= 3 && spent > (run < fewest_runs ? 2 * seconds : seconds)) break;
        clocks.push_back(core_clock_mhz());
        rates.push_back(rate());
    }
    clocks.push_back(core_clock_mhz());
    // The fastest run: other work on a shared machine only takes speed away, and a roof is what nothing exceeds.
    const Summary summary = summarise(rates);
    const auto fastest = static_cast<std::size_t>(std::ranges::max_element(rates) - rates.begin());
    Ceiling ceiling;
    ceiling.name = name;
    ceiling.value = Quantity::measured(summary.max);
    ceiling.low = summary.median;
    ceiling.high = summary.max;
    ceiling.clock_mhz = std::max(clocks[fastest], clocks[fastest + 1]);
    return ceiling;
}

/// Operand values whose bits change. With a multiplier of -1 an FMA chain alternates for ever and stays finite. Sums of
/// products grow until fp32 rounds further ones away, so they stay finite, too.
struct ChainValues {
    std::vector<double> a, b, start, end;

    explicit ChainValues(const Chain& chain)
        : start(static_cast<std::size_t>(chain.elements())), end(static_cast<std::size_t>(chain.elements())) {
        std::mt19937 random(1);
        std::uniform_real_distribution<double> any(-1, 1), positive(1, 2);
        for (int i = 0; i < chain.operands; ++i) {
            a.push_back(chain.kind == ChainKind::fma ? -1 : any(random));
            b.push_back(chain.kind == ChainKind::fma ? positive(random) : any(random));
        }
        for (double& x : start) x = any(random);
    }
};

/// One run of the chain on all of `threads`, TFLOP/s. Made so that a run takes about `wanted_s`: long compared with
/// starting the threads, short compared with the interval in which clocks may change.
std::function<double()> chain_rate(const Chain& chain, int threads, double wanted_s) {
    const auto values =
        std::make_shared<std::vector<ChainValues>>(static_cast<std::size_t>(threads), ChainValues(chain));
    const auto run_s = [values, &chain, threads](std::int64_t rounds) {
        return seconds_on_threads(threads, [&](int thread) {
            ChainValues& v = (*values)[static_cast<std::size_t>(thread)];
            chain.run(rounds, v.a.data(), v.b.data(), v.start.data(), v.end.data());
        });
    };
    // One run that was disturbed would end this too early.
    const auto fastest_s = [&](std::int64_t of) { return std::min({run_s(of), run_s(of), run_s(of)}); };
    std::int64_t rounds = 1000;
    for (double once = fastest_s(rounds); once < wanted_s / 2; once = fastest_s(rounds))
        rounds = std::max<std::int64_t>(
            2 * rounds, static_cast<std::int64_t>(0.8 * wanted_s / std::max(once, 1e-6) * static_cast<double>(rounds)));
    return [=, flops = chain.flops_a_round() * static_cast<double>(rounds) * threads] {
        return flops / run_s(rounds) * 1e-12;
    };
}

Ceiling measure_chain(std::string_view name, const Chain& chain, int threads, double seconds) {
    return sample_ceiling(name, seconds, chain_rate(chain, threads, std::clamp(seconds / 20, 0.001, 0.02)));
}

/// One run of a stream by all its threads, GB/s.
std::function<double()> stream_rate(bool triad, Streams& streams) {
    return
        [triad, &streams, sums = std::make_shared<std::vector<double>>(static_cast<std::size_t>(streams.threads()))] {
            if (triad)
                return streams.triad_bytes() * 1e-9 /
                       seconds_on_threads(streams.threads(), [&](int thread) { streams.triad(thread, 3); });
            return streams.read_bytes() * 1e-9 / seconds_on_threads(streams.threads(), [&](int thread) {
                       (*sums)[static_cast<std::size_t>(thread)] = streams.read(thread);
                   });
        };
}

Ceiling none(std::string_view name, std::string why) {
    Ceiling ceiling;
    ceiling.name = name;
    ceiling.value = Quantity::unavailable(std::move(why));
    return ceiling;
}

constexpr std::string_view stream_prefix = "cpu_dram_";
bool is_triad(std::string_view ceiling) { return ceiling.find("triad") != ceiling.npos; }

const Chain* chain_of(std::string_view ceiling) {
    if (ceiling.ends_with(one_core_suffix)) ceiling.remove_suffix(one_core_suffix.size());
    const auto found = std::ranges::find(chains(), ceiling, &Chain::ceiling);
    return found == chains().end() ? nullptr : &*found;
}

/// Why `ceiling` cannot be measured here; empty where it can.
std::string unavailable(std::string_view ceiling) {
    if (ceiling.starts_with(stream_prefix)) return Streams::unavailable();
    const Chain* chain = chain_of(ceiling);
    return chain != nullptr ? chain->unavailable() : "kbench has loops for x86-64 only";
}

std::int64_t cache_bytes(int threads, bool one_core) {
    const CpuInfo& cpu = cpu_info();
    return std::int64_t{cpu.l3_bytes} * (one_core ? 1 : cpu.l3_instances) + std::int64_t{cpu.l2_bytes} * threads;
}

/// Chains are measured in turn, this many times over. A slow-down of a shared machine lasts for seconds and then hits
/// all chains instead of one.
constexpr int chain_rounds = 3;

void keep_better(Ceiling& best, const Ceiling& other) {
    if (best.value.value && other.value.value && *other.value.value > *best.value.value) best = other;
}

/// With one thread, "all cores" and "one core" are the same loop, so the better value stands for both.
void share_of_one_thread(std::vector<Ceiling>& ceilings) {
    for (Ceiling& one : ceilings) {
        if (!one.name.ends_with(one_core_suffix)) continue;
        const std::string all_cores = one.name.substr(0, one.name.size() - one_core_suffix.size());
        const auto all = std::ranges::find(ceilings, all_cores, &Ceiling::name);
        if (all == ceilings.end() || all->threads != 1) continue;
        const std::string name = one.name;
        keep_better(one, *all);
        *all = one;
        one.name = name;
        all->name = all_cores;
    }
}

bool is_probed(const CeilingKind& kind) { return kind.backend == "cpu" && kind.is_measured; }

class Probe {
  public:
    Probe(double seconds, std::int64_t free_bytes) : free_bytes_(free_bytes), threads_(omp_get_max_threads()) {
        int measured = 0;
        for (const CeilingKind& kind : ceiling_kinds())
            if (is_probed(kind)) measured += unavailable(kind.name).empty();
        seconds_each_ = seconds / std::max(1, measured);
    }

    /// Whether rounds measure the ceiling. Streams are measured once: allocating their arrays again takes longer still.
    bool in_rounds(std::string_view name) const {
        return !name.starts_with(stream_prefix) && unavailable(name).empty();
    }

    Ceiling measure(std::string_view name) {
        Ceiling ceiling = measure_value(name);
        ceiling.threads = name.ends_with(one_core_suffix) ? 1 : threads_;
        return ceiling;
    }

  private:
    Ceiling measure_value(std::string_view name) {
        if (std::string why = unavailable(name); !why.empty()) return none(name, std::move(why));
        const bool one_core = name.ends_with(one_core_suffix);
        if (!name.starts_with(stream_prefix))
            return measure_chain(name, *chain_of(name), one_core ? 1 : threads_, seconds_each_ / chain_rounds);
        try {
            return sample_ceiling(name, seconds_each_, stream_rate(is_triad(name), streams(one_core)));
        } catch (const std::bad_alloc&) {
            return none(name, "there is not enough memory for arrays that caches cannot hold");
        }
    }

    /// The arrays of the last call where they fit; only one set is in memory at a time.
    Streams& streams(bool one_core) {
        const int threads = one_core ? 1 : threads_;
        if (streams_ && streams_->threads() == threads) return *streams_;
        streams_.reset();
        return streams_.emplace(stream_bytes(cache_bytes(threads, one_core), free_bytes_), threads);
    }

    std::int64_t free_bytes_;
    int threads_;
    double seconds_each_ = 0;
    std::optional<Streams> streams_;
};

}  // namespace

RoofReader::RoofReader(const std::vector<std::string>& ceilings, std::int64_t free_bytes) {
    constexpr double chain_s = 0.005;
    const int threads = omp_get_max_threads();
    for (const std::string& name : ceilings) {
        if (!unavailable(name).empty()) continue;
        if (name.starts_with(stream_prefix)) {
            try {
                if (!streams_)
                    streams_ =
                        std::make_unique<Streams>(stream_bytes(cache_bytes(threads, false), free_bytes), threads);
            } catch (const std::bad_alloc&) {
                continue;
            }
            rates_.push_back(stream_rate(is_triad(name), *streams_));
        } else {
            rates_.push_back(chain_rate(*chain_of(name), threads, chain_s));
        }
        names_.push_back(name);
    }
}

RoofReader::~RoofReader() = default;

std::vector<double> RoofReader::read() const {
    std::vector<double> values;
    for (const std::function<double()>& rate : rates_) {
        rate();  // finds caches and clocks as the work left them
        values.push_back(rate());
    }
    return values;
}

std::int64_t stream_bytes(std::int64_t cache_bytes, std::int64_t free_bytes) {
    constexpr std::int64_t least = 256'000'000, most = 4'000'000'000;
    return std::min(std::clamp(3 * 4 * cache_bytes, least, most), free_bytes / 4);
}

std::vector<Ceiling> measure_ceilings(double seconds, std::int64_t free_bytes) {
    Probe probe(seconds, free_bytes);
    std::vector<Ceiling> ceilings;
    for (int round = 0; round < chain_rounds; ++round) {
        std::size_t next = 0;
        for (const CeilingKind& kind : ceiling_kinds()) {
            if (!is_probed(kind)) continue;
            if (round == 0)
                ceilings.push_back(probe.measure(kind.name));
            else if (probe.in_rounds(kind.name))
                keep_better(ceilings[next], probe.measure(kind.name));
            ++next;
        }
    }
    share_of_one_thread(ceilings);
    return ceilings;
}

}  // namespace kbench::cpu

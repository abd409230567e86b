// Where a step of the persistent LSTM spends its time: a table over hidden size, batch and precision, and the same as
// JSON, a line for each measurement. kernels_tests says whether the results are right; this program does not look.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "bench/plan/providers/cuda/persistent_account.h"
#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/owned.h"
#include "kernels/recurrent/persistent/persistent.h"

namespace kbench {
namespace {

using cuda::PersistentDirection;
using cuda::PersistentExchange;
using cuda::PersistentLstm;
using cuda::PersistentVariant;

struct Options {
    std::vector<std::int64_t> hidden{256, 512, 1024}, batch{1, 8, 16, 32, 64, 128};
    std::vector<std::string> precision{"fp16", "bf16"}, exchange{"polled"}, variants{"plain", "clocks"};
    std::vector<int> tiles{0};
    std::int64_t steps = 500;
    int runs = 7;
    std::filesystem::path json;
};

/// Returns whether there is something to do: not where help was asked for.
bool parse(int argc, char** argv, Options& options) {
    const auto names = [](const auto& table) { return std::vector<std::string>(std::begin(table), std::end(table)); };
    CLI::App app(
        "Microseconds of a step of the persistent LSTM, both directions at once, and cycles of its phases.\n"
        "Exit codes: 0 measured; 2 bad usage; 3 no GPU that computes it.");
    app.add_option("--hidden", options.hidden)->delimiter(',')->capture_default_str();
    app.add_option("--batch", options.batch)->delimiter(',')->capture_default_str();
    app.add_option("--precision", options.precision)
        ->delimiter(',')
        ->check(CLI::IsMember({"fp16", "bf16"}))
        ->capture_default_str();
    app.add_option("--exchange", options.exchange)
        ->delimiter(',')
        ->check(CLI::IsMember(names(cuda::persistent_exchange_names)))
        ->capture_default_str();
    app.add_option(
           "--variants", options.variants,
           "saves: with what a backward needs; clocks: phases; no_...: without that part, hidden above 512 in fp16")
        ->delimiter(',')
        ->check(CLI::IsMember(names(cuda::persistent_variant_names)))
        ->capture_default_str();
    app.add_option("--tile", options.tiles,
                   "sequences that take a step together, polled: 8, 16, or up to hidden 512 32; 0: as chosen")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--steps", options.steps)->check(CLI::Range(1, 1'000'000))->capture_default_str();
    app.add_option("--runs", options.runs, "of which the median counts")->check(CLI::PositiveNumber);
    app.add_option("--json", options.json, "also write a line for each measurement there");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return false;
    } catch (const CLI::ParseError& error) {
        throw UsageError(error.what());
    }
    return true;
}

/// Device memory as bytes.
class Memory {
  public:
    explicit Memory(std::size_t bytes) : memory_(cuda::allocate(bytes)) {}
    unsigned char* data() const { return static_cast<unsigned char*>(memory_.get()); }

  private:
    cuda::OwnedMemory memory_;
};

/// Numbers of variance `deviation`^2 in 16 bits; 65537 of them made on the host, the others copies on the device: the
/// host would take a minute for half a GB.
void fill(const Memory& memory, std::size_t elements, DataType type, double deviation, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, static_cast<float>(deviation));
    std::vector<std::uint16_t> numbers(std::min<std::size_t>(elements, 65537));
    for (std::uint16_t& bits : numbers) {
        const float value = normal(random);
        bits =
            type == DataType::fp16 ? __half_raw(__float2half(value)).x : __nv_bfloat16_raw(__float2bfloat16(value)).x;
    }
    KBENCH_CUDA(cudaMemcpy(memory.data(), numbers.data(), 2 * numbers.size(), cudaMemcpyHostToDevice));
    for (std::size_t there = numbers.size(); there < elements;) {
        const std::size_t more = std::min(there, elements - there);
        KBENCH_CUDA(cudaMemcpyAsync(memory.data() + 2 * there, memory.data(), 2 * more, cudaMemcpyDeviceToDevice));
        there += more;
    }
    KBENCH_CUDA(cudaDeviceSynchronize());
}

/// What layers of one precision and hidden size read and write, large enough for the largest batch.
class Operands {
  public:
    Operands(DataType type, std::int64_t hidden, std::int64_t batch, std::int64_t steps)
        : rows_(static_cast<std::size_t>(steps * batch)),
          hidden_(static_cast<std::size_t>(hidden)),
          gates_x_{Memory(rows_ * 8 * hidden_), Memory(rows_ * 8 * hidden_)},
          weight_(8 * hidden_ * hidden_),
          bias_(8 * hidden_),
          out_{Memory(rows_ * 2 * hidden_), Memory(rows_ * 2 * hidden_)},
          gates_{Memory(rows_ * 8 * hidden_), Memory(rows_ * 8 * hidden_)},
          cells_{Memory(rows_ * 2 * hidden_), Memory(rows_ * 2 * hidden_)},
          lengths_(4 * static_cast<std::size_t>(batch)) {
        for (unsigned d = 0; d < 2; ++d) fill(gates_x_[d], rows_ * 4 * hidden_, type, 1, 1 + d);
        // As PyTorch's at first, which are uniform in +-1 / sqrt(hidden).
        const double deviation = 1 / std::sqrt(3 * static_cast<double>(hidden));
        fill(weight_, 4 * hidden_ * hidden_, type, deviation, 3);
        fill(bias_, 4 * hidden_, type, deviation, 4);
        const std::vector<std::int32_t> full(static_cast<std::size_t>(batch), static_cast<std::int32_t>(steps));
        KBENCH_CUDA(cudaMemcpy(lengths_.data(), full.data(), 4 * full.size(), cudaMemcpyHostToDevice));
    }
    PersistentDirection direction(unsigned d) const {
        return {gates_x_[d].data(), weight_.data(),   bias_.data(),    bias_.data(),
                out_[d].data(),     gates_[d].data(), cells_[d].data()};
    }
    const std::int32_t* lengths() const { return reinterpret_cast<const std::int32_t*>(lengths_.data()); }

  private:
    std::size_t rows_, hidden_;
    Memory gates_x_[2], weight_, bias_, out_[2], gates_[2], cells_[2], lengths_;
};

nlohmann::json json_of(const PersistentLstm& layer, std::string_view exchange, std::string_view variant) {
    return {{"cell", "lstm"},
            {"precision", name(layer.type)},
            {"hidden", layer.shape.hidden},
            {"batch", layer.shape.batch},
            {"steps", layer.shape.steps},
            {"exchange", exchange},
            {"tile", layer.tile},
            {"variant", variant}};
}

class Account {
  public:
    explicit Account(const Options& options) : options_(options) {
        if (!options.json.empty()) {
            json_.open(options.json);
            if (!json_) throw UsageError(fmt::format("--json {}: cannot be written", options.json.string()));
        }
        fmt::print("{:9} {:>6} {:>5} {:10} {:>8} {:>8}  {}\n", "precision", "hidden", "batch", "variant", "us/step",
                   "least", "kernel");
    }

    void add(const PersistentLstm& layer, const Operands& operands) {
        const std::string_view exchange = cuda::persistent_exchange_names[static_cast<int>(layer.exchange)];
        const std::string_view variant = cuda::persistent_variant_names[static_cast<int>(layer.variant)];
        const std::string head =
            fmt::format("{:9} {:6} {:5} {:10}", name(layer.type), layer.shape.hidden, layer.shape.batch, variant);
        nlohmann::json line = json_of(layer, exchange, variant);
        if (const std::string reason = persistent_lstm_unsupported(layer); !reason.empty()) {
            fmt::print("{} {:>8} {:>8}  {}: {}\n", head, "", "", exchange, reason);
            line["unsupported"] = reason;
        } else {
            const Memory workspace(persistent_lstm_workspace(layer));
            const PersistentTimes made =
                time_persistent_lstm(layer, operands.direction(0), operands.direction(1), operands.lengths(),
                                     workspace.data(), nullptr, options_.runs);
            fmt::print("{} {:8.3f} {:8.3f}  {}\n", head, made.us, made.least_us, persistent_lstm_name(layer));
            line["kernel"] = persistent_lstm_name(layer);
            line["us_per_step"] = made.us;
            line["least_us_per_step"] = made.least_us;
            for (const StepPhase& phase : made.phases) {
                fmt::print("    {:8} {:6.0f} cycles ({:.0f} to {:.0f})\n", phase.name, phase.median_cycles,
                           phase.least_cycles, phase.most_cycles);
                line["cycles_per_step"][phase.name] = {
                    {"median", phase.median_cycles}, {"least", phase.least_cycles}, {"most", phase.most_cycles}};
            }
        }
        std::fflush(stdout);
        if (json_.is_open()) json_ << line.dump() << std::endl;
    }

  private:
    const Options& options_;
    std::ofstream json_;
};

/// The place of `name` in `table`.
template <class Enum, class Table>
Enum named(const Table& table, const std::string& name) {
    return static_cast<Enum>(std::ranges::find(table, name) - std::begin(table));
}

void account_of(DataType type, std::int64_t hidden, const Options& options, Account& account) {
    const Operands operands(type, hidden, std::ranges::max(options.batch), options.steps);
    for (const std::int64_t batch : options.batch)
        for (const std::string& exchange : options.exchange)
            for (const int tile : options.tiles)
                for (const std::string& variant : options.variants)
                    account.add({.type = type,
                                 .shape = {options.steps, batch, hidden},
                                 .exchange = named<PersistentExchange>(cuda::persistent_exchange_names, exchange),
                                 .variant = named<PersistentVariant>(cuda::persistent_variant_names, variant),
                                 .tile = tile},
                                operands);
}

ExitCode run(int argc, char** argv) {
    Options options;
    if (!parse(argc, argv, options)) return ExitCode::success;
    if (const std::string reason = cuda::persistent_lstm_unsupported({DataType::fp16, {1, 1, 16}}); !reason.empty())
        throw DeviceError("the persistent LSTM " + reason);
    Account account(options);
    for (const std::string& precision : options.precision)
        for (const std::int64_t hidden : options.hidden)
            account_of(precision == "fp16" ? DataType::fp16 : DataType::bf16, hidden, options, account);
    return ExitCode::success;
}

}  // namespace
}  // namespace kbench

int main(int argc, char** argv) {
    try {
        return static_cast<int>(kbench::run(argc, argv));
    } catch (const kbench::Error& error) {
        fmt::print(stderr, "recurrent_account: {}\n", error.what());
        return static_cast<int>(error.code());
    } catch (const std::exception& error) {
        fmt::print(stderr, "recurrent_account: {}\n", error.what());
        return static_cast<int>(kbench::ExitCode::failed);
    }
}

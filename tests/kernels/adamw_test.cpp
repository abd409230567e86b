// AdamW against the reference.
#include "kernels/adamw.h"

#include <cmath>
#include <limits>
#include <string>

#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Variant {
    DataType type;
    bool master, clips;
};

class AdamWOnDevice : public ::testing::TestWithParam<Variant> {
  protected:
    DataType type = GetParam().type, wide = type == DataType::fp64 ? type : DataType::fp32;
    DataType state = GetParam().master ? wide : type;

    AdamW op_of(std::vector<std::int64_t> sizes) const {
        return {std::move(sizes), GetParam().master, GetParam().clips};
    }

    std::vector<HostMatrix> operands_of(const AdamW& op, double multiplier = 0.5, double norm = 3) const {
        const double numbers[] = {0.01, 0.9, 0.95, 1e-8, 0.1, 0.271, 0.142625, multiplier, 1.0};
        std::vector<HostMatrix> made;
        HostMatrix& schedule = made.emplace_back(wide, 1, op.clips ? 9 : 8);
        for (std::int64_t i = 0; i < schedule.columns; ++i) schedule.set(0, i, numbers[i]);
        if (op.clips) made.emplace_back(wide, 1, 1).set(0, 0, norm);
        unsigned seed = 1;
        for (const std::int64_t size : op.sizes) {
            made.push_back(HostMatrix::normal(type, 1, size, seed++));
            made.push_back(HostMatrix::normal(type, 1, size, seed++));
            made.push_back(HostMatrix::normal(state, 1, size, seed++, 0.1));
            HostMatrix& v = made.emplace_back(HostMatrix::normal(state, 1, size, seed++, 0.1));
            for (std::int64_t i = 0; i < size; ++i) v.set(0, i, v(0, i) * v(0, i));
            if (op.master) made.push_back(HostMatrix::normal(wide, 1, size, seed++));
        }
        return made;
    }

    /// What becomes of the operands; `offset` elements past a boundary those of the last tensor lie.
    static std::vector<HostMatrix> run(const AdamW& op, const std::vector<HostMatrix>& operands,
                                       std::int64_t offset = 0) {
        std::vector<DeviceMatrix> on_device;
        std::vector<void*> pointers;
        for (std::size_t i = 0; i < operands.size(); ++i)
            on_device.emplace_back(operands[i], i + op.operands_each() >= operands.size() ? offset : 0);
        for (const DeviceMatrix& operand : on_device) pointers.push_back(operand.data());
        cuda::adamw(GetParam().type, op, pointers, nullptr);
        std::vector<HostMatrix> after;
        for (const DeviceMatrix& operand : on_device) after.push_back(operand.download());
        return after;
    }

    static void check(const AdamW& op, const std::vector<HostMatrix>& before, const std::vector<HostMatrix>& after,
                      std::size_t first, std::size_t last) {
        std::vector<reference::View> views;
        for (const HostMatrix& operand : before) views.push_back(operand.view());
        for (std::size_t i = first; i < last; ++i) {
            SCOPED_TRACE(testing::Message() << "operand " << i);
            if (i < op.first_operand() || (i - op.first_operand()) % op.operands_each() == 1) {
                EXPECT_EQ(after[i].bytes, before[i].bytes) << "is only read";
                continue;
            }
            const auto elements = elements_of(1, before[i].columns);
            expect_agrees(after[i], elements, reference::adamw(op, views, i, elements), precision_of(GetParam().type));
        }
    }
};

TEST_P(AdamWOnDevice, TensorsOfAnySizeAndAlignment) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t offset : {0, 1, 3}) {
        SCOPED_TRACE(offset);
        const AdamW op = op_of({1, 2, 7, 8, 9, 100, 1283, 16383, 16384, 16385, 100003, 1, 40001});
        const std::vector<HostMatrix> before = operands_of(op), after = run(op, before, offset);
        check(op, before, after, 0, before.size());
        const std::vector<HostMatrix> again = run(op, before, offset);
        for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(again[i].bytes, after[i].bytes) << "another run";
    }
}

TEST_P(AdamWOnDevice, MoreTensorsThanOneLaunchHolds) {
    KBENCH_NEEDS_DEVICE();
    std::vector<std::int64_t> sizes;
    for (std::int64_t i = 0; i < 1500; ++i) sizes.push_back(i % 37 + 1);
    const AdamW op = op_of(sizes);
    const std::vector<HostMatrix> before = operands_of(op);
    check(op, before, run(op, before), 0, before.size());
}

TEST_P(AdamWOnDevice, ALargeTensor) {
    KBENCH_NEEDS_DEVICE();
    const AdamW op = op_of({5, 20'000'003});
    const std::vector<HostMatrix> before = operands_of(op);
    check(op, before, run(op, before), 0, before.size());
}

TEST_P(AdamWOnDevice, AStepOfGradientsThatAreNotFiniteIsSkipped) {
    KBENCH_NEEDS_DEVICE();
    const AdamW op = op_of({100, 20000});
    const auto expect_unchanged = [&](const std::vector<HostMatrix>& before) {
        const std::vector<HostMatrix> after = run(op, before);
        for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i].bytes, before[i].bytes) << i;
    };
    for (const double multiplier : {0.0, infinity, -infinity, std::nan("")}) {
        SCOPED_TRACE(multiplier);
        expect_unchanged(operands_of(op, multiplier));
    }
    if (!op.clips) return;
    for (const double norm : {infinity, std::nan("")}) expect_unchanged(operands_of(op, 0.5, norm));
}

std::vector<Variant> variants() {
    std::vector<Variant> all;
    for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64})
        for (const bool master : {false, true})
            for (const bool clips : {false, true}) all.push_back({type, master, clips});
    return all;
}
INSTANTIATE_TEST_SUITE_P(Variants, AdamWOnDevice, ::testing::ValuesIn(variants()), [](const auto& parameter) {
    const Variant& variant = parameter.param;
    return std::string(name(variant.type)) + (variant.master ? "_master" : "") + (variant.clips ? "_clips" : "");
});

}  // namespace
}  // namespace kbench::test

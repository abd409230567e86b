// Provider `reference`: the oracle as a provider, every element in plain fp64 loops. For small shapes and for doubts.
#include "cpu/reference/reference.h"

#include "bench/plan/data/convert.h"
#include "bench/plan/evaluate.h"
#include "bench/plan/provider.h"

namespace kbench {
namespace {

class ReferenceComputation final : public Computation {
  public:
    ReferenceComputation(StepKind kind, Precision precision) : kind_(std::move(kind)), precision_(precision) {}
    std::string implementation() const override { return "fp64 loops"; }
    void run(std::span<void* const> pointers, void*, void*) const override {
        const std::vector<Operand> list = operands(kind_, precision_);
        std::vector<reference::View> views;
        for (std::size_t i = 0; i < list.size(); ++i)
            views.push_back({pointers[i], list[i].type, list[i].rows, list[i].columns, list[i].stride});
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (list[i].use != OperandUse::output && list[i].use != OperandUse::in_place) continue;
            std::vector<reference::Element> elements;
            for (std::int64_t r = 0; r < list[i].rows; ++r)
                for (std::int64_t c = 0; c < list[i].columns; ++c) elements.push_back({r, c});
            const std::vector<reference::Expected> expected = evaluate(kind_, i, views, elements);
            std::vector<double> values(expected.size());
            for (std::size_t e = 0; e < expected.size(); ++e) values[e] = expected[e].value;
            for (std::int64_t r = 0; r < list[i].rows; ++r)
                convert(DataType::fp64, values.data() + r * list[i].columns, list[i].type,
                        static_cast<std::byte*>(pointers[i]) +
                            r * list[i].stride * static_cast<std::int64_t>(size_of(list[i].type)),
                        list[i].columns);
        }
    }

  private:
    StepKind kind_;
    Precision precision_;
};

class Reference final : public Provider {
  public:
    std::string_view name() const override { return "reference"; }
    bool on_request_only() const override { return true; }
    std::string unsupported(const StepKind&, Precision precision) const override {
        return precision == Precision::tf32 ? "tf32 is a format of GPU tensor cores" : "";
    }
    std::unique_ptr<Computation> make(const StepKind& kind, Precision precision) override {
        return std::make_unique<ReferenceComputation>(kind, precision);
    }
};

}  // namespace

std::unique_ptr<Provider> make_reference(const ProviderContext&) { return std::make_unique<Reference>(); }

}  // namespace kbench

// Provider `reference`: the oracle as a provider, every element in plain fp64 loops. For small shapes and for doubts.
#include "cpu/reference/reference.h"

#include "bench/plan/data/convert.h"
#include "bench/plan/provider.h"
#include "models/ops/table.h"

namespace kbench {
namespace {

class ReferenceComputation final : public Computation {
  public:
    ReferenceComputation(Step step, Precision precision) : step_(std::move(step)), precision_(precision) {}
    std::string implementation() const override { return "fp64 loops"; }
    void run(const Call& call) const override {
        const std::vector<Operand> list = operands(step_, precision_);
        std::vector<reference::View> views;
        for (std::size_t i = 0; i < list.size(); ++i)
            views.push_back({call.operands[i], list[i].type, list[i].rows, list[i].columns, list[i].stride});
        // All before any is written: what is worked on in place is read by others, too.
        std::vector<std::vector<double>> values(list.size());
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (list[i].use != OperandUse::output && list[i].use != OperandUse::in_place) continue;
            std::vector<reference::Element> elements;
            for (std::int64_t r = 0; r < list[i].rows; ++r)
                for (std::int64_t c = 0; c < list[i].columns; ++c) elements.push_back({r, c});
            for (const reference::Expected& expected : reference::evaluate(step_, i, views, elements))
                values[i].push_back(expected.value);
        }
        for (std::size_t i = 0; i < list.size(); ++i)
            for (std::int64_t r = 0; r < list[i].rows && !values[i].empty(); ++r)
                convert(DataType::fp64, values[i].data() + r * list[i].columns, list[i].type,
                        static_cast<std::byte*>(call.operands[i]) +
                            r * list[i].stride * static_cast<std::int64_t>(size_of(list[i].type)),
                        list[i].columns);
    }

  private:
    Step step_;
    Precision precision_;
};

}  // namespace

/// Every kind has a reference, and so does whatever is fused to it.
std::unique_ptr<Provider> make_reference(const ProviderContext&) {
    Provider provider{.name = "reference", .ops = {}, .lacks = no_tf32, .on_request_only = true};
    for (const OpKind* kind : op_kinds())
        provider.ops.push_back({.kind = kind,
                                .directions = {kind->directions.begin(), kind->directions.end()},
                                .absorbs_anything = true,
                                .leaves_results = kind == &op_kind<Gemm>(),  // whose training wants it
                                .make = [](const Step& step, Precision precision) {
                                    return std::make_unique<ReferenceComputation>(step, precision);
                                }});
    return std::make_unique<Provider>(std::move(provider));
}

}  // namespace kbench

// Names are cut into words; a table says what a word means.
#include "analysis/program/kernel_precision.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "models/base/values.h"

namespace kbench {
namespace {

/// Words of letters and digits, in small letters.
std::vector<std::string> words_of(std::string_view name) {
    std::vector<std::string> words(1);
    for (const char c : lower(name)) {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0)
            words.back() += c;
        else if (!words.back().empty())
            words.emplace_back();
    }
    if (words.back().empty()) words.pop_back();
    return words;
}

enum class Where {
    whole,   ///< the word itself
    begin,   ///< how it begins
    within,  ///< anywhere in it
};

struct Meaning {
    std::string_view text;
    Where where;
    Precision precision;
};

/// What libraries call the inputs of tensor cores and of whole kernels. The first row that any word has decides: what
/// is multiplied comes before what is accumulated and stored.
constexpr Meaning meanings[] = {
    {"tf32", Where::within, Precision::tf32},     {"bf16", Where::within, Precision::bf16},
    {"bfloat16", Where::within, Precision::bf16}, {"f16f16", Where::begin, Precision::fp16},
    {"f16", Where::whole, Precision::fp16},       {"fp16", Where::whole, Precision::fp16},
    {"hgemm", Where::whole, Precision::fp16},     {"h884gemm", Where::whole, Precision::fp16},
    {"h1688gemm", Where::whole, Precision::fp16}, {"h16816gemm", Where::whole, Precision::fp16},
    {"hsh", Where::whole, Precision::fp16},  // nvjet: letters of inputs, arithmetic and output
    {"hhh", Where::whole, Precision::fp16},       {"tst", Where::whole, Precision::bf16},
    {"half", Where::whole, Precision::fp16},      {"dgemm", Where::whole, Precision::fp64},
    {"d884gemm", Where::whole, Precision::fp64},  {"f64f64", Where::begin, Precision::fp64},
    {"s1688gemm", Where::whole, Precision::tf32},  // tensor cores with fp32 inputs, where no word above says otherwise
    {"sgemm", Where::whole, Precision::fp32},     {"f32f32", Where::begin, Precision::fp32},
    {"f32", Where::whole, Precision::fp32},
};
/// Types of the language among template arguments: the first one, as later ones are those of sums and scalars.
constexpr std::pair<std::string_view, Precision> types[] = {{"double", Precision::fp64}, {"float", Precision::fp32}};

bool has(const std::string& word, const Meaning& meaning) {
    switch (meaning.where) {
        case Where::whole: return word == meaning.text;
        case Where::begin: return word.starts_with(meaning.text);
        case Where::within: return word.find(meaning.text) != word.npos;
    }
    return false;
}

/// Template arguments of the outermost name that holds `kernel`, apart; none where it has none.
std::vector<std::string_view> arguments_of(std::string_view name, std::string_view kernel) {
    std::vector<std::string_view> arguments;
    const std::size_t at = name.find(kernel);
    if (at == name.npos || at + kernel.size() >= name.size() || name[at + kernel.size()] != '<') return arguments;
    int depth = 0;
    for (std::size_t i = at + kernel.size(), begin = i + 1; i < name.size(); ++i) {
        const char c = name[i];
        if (c == '<' || c == '(') ++depth;
        if (c == '>' || c == ')') --depth;
        if ((c == ',' && depth == 1) || depth == 0) {
            arguments.push_back(name.substr(begin, i - begin));
            begin = i + 1;
        }
        if (depth == 0) break;
    }
    return arguments;
}

/// Where a kernel of fused attention has "Is_causal" among its template arguments.
struct CausalArgument {
    std::string_view kernel;
    std::size_t index;
};
constexpr CausalArgument causal_arguments[] = {
    {"flash_fwd_kernel", 2},
    {"flash_fwd_splitkv_kernel", 1},
    {"flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", 2},
};

}  // namespace

std::optional<Precision> named_precision(std::string_view demangled) {
    const std::vector<std::string> words = words_of(demangled);
    for (const Meaning& meaning : meanings)
        if (std::ranges::any_of(words, [&](const std::string& word) { return has(word, meaning); })) {
            // cuDNN's generated attention is called f16 for bf16, too.
            const bool is_either = demangled.starts_with("cudnn_generated") && meaning.precision == Precision::fp16;
            return is_either ? std::nullopt : std::optional(meaning.precision);
        }
    for (const std::string& word : words)
        for (const auto& [type, precision] : types)
            if (word == type) return precision;
    return std::nullopt;
}

std::optional<Precision> framework_precision(std::string_view dtype) {
    if (const std::size_t dot = dtype.rfind('.'); dot != dtype.npos) dtype.remove_prefix(dot + 1);
    constexpr std::pair<std::string_view, Precision> names[] = {{"float16", Precision::fp16},
                                                                {"bfloat16", Precision::bf16},
                                                                {"float32", Precision::fp32},
                                                                {"float64", Precision::fp64}};
    for (const auto& [name, precision] : names)
        if (dtype == name) return precision;
    return std::nullopt;
}

std::optional<bool> named_causal(std::string_view demangled) {
    for (const CausalArgument& row : causal_arguments) {
        const std::vector<std::string_view> arguments = arguments_of(demangled, row.kernel);
        if (row.index >= arguments.size()) continue;
        if (arguments[row.index].find("true") != std::string_view::npos) return true;
        if (arguments[row.index].find("false") != std::string_view::npos) return false;
    }
    return std::nullopt;
}

}  // namespace kbench

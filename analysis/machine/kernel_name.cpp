// Cuts a demangled name at its brackets; everything inside angle brackets belongs to the word before them.
#include "analysis/machine/kernel_name.h"

#include <cxxabi.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace kbench {
namespace {

constexpr std::size_t longest_arguments = 96;

/// "(anonymous namespace)" and "<unnamed>" would be taken for parameters and arguments.
std::string without_unnamed(std::string_view name) {
    std::string text(name);
    for (const std::string_view unnamed : {"(anonymous namespace)::", "<unnamed>::"})
        for (std::size_t at = text.find(unnamed); at != text.npos; at = text.find(unnamed, at))
            text.erase(at, unnamed.size());
    return text;
}

/// Every word of `text` without the namespaces in front of it.
std::string without_namespaces(std::string_view text) {
    std::string result;
    std::size_t word = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text.substr(i).starts_with("::")) {
            result.resize(word);
            ++i;
            continue;
        }
        result += text[i];
        const bool in_word = std::string_view("<>,() &*").find(text[i]) == std::string_view::npos;
        if (!in_word) word = result.size();
    }
    return result;
}

}  // namespace

std::string demangled(const std::string& name) {
    if (!name.starts_with("_Z")) return name;  // else "b" is bool
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                      std::free);
    return status == 0 && text ? std::string(text.get()) : name;
}

std::string short_kernel_name(std::string_view demangled) {
    const std::string name = without_unnamed(demangled);
    std::size_t begin = 0, arguments = name.npos, end = name.size();
    int depth = 0;
    for (std::size_t i = 0; i < end; ++i) {
        const char c = name[i];
        if (c == '<') {
            if (depth++ == 0 && arguments == name.npos) arguments = i;
        } else if (c == '>') {
            --depth;
        } else if (depth == 0 && c == '(') {
            end = i;
        } else if (depth == 0 && c == ' ') {  // what came before was the return type
            begin = i + 1;
            arguments = name.npos;
        } else if (depth == 0 && c == ':') {  // a namespace, or a class with arguments of its own
            begin = i + 1;
            arguments = name.npos;
        }
    }
    if (begin >= end) return std::string(demangled);
    const std::string whole = without_namespaces(std::string_view(name).substr(begin, end - begin));
    const std::size_t bracket = whole.find('<');
    if (bracket == whole.npos || whole.size() - bracket <= longest_arguments) return whole;
    return whole.substr(0, bracket) + "<...>";
}

}  // namespace kbench

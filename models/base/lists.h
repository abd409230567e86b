// Lists as one text, and lists in which everything stands once.
//
//     joined(point.steps, ", ", &StepResult::layer);            // "first, second, third"
//     entry(groups, &Group::name, step.layer).us += step.us;    // adds the group where it is new
#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kbench {

/// What `text_of` says of each element, with `separator` between; what is empty is left out.
template <class List, class TextOf = std::identity>
std::string joined(List&& list, std::string_view separator, TextOf text_of = {}) {
    std::string all;
    for (const auto& element : list) {
        const std::string text(std::invoke(text_of, element));
        if (text.empty()) continue;
        if (!all.empty()) all += separator;
        all += text;
    }
    return all;
}

template <class List, class Value>
bool contains(const List& list, const Value& value) {
    return std::ranges::find(list, value) != std::ranges::end(list);
}

/// Appends `value` unless the list holds it.
template <class Element, class Value>
requires std::constructible_from<Element, const Value&>
void add_once(std::vector<Element>& list, const Value& value) {
    if (!contains(list, value)) list.emplace_back(value);
}

/// The element whose `key` is `value`, which is appended where there is none.
template <class Element, class Key>
Element& entry(std::vector<Element>& list, Key Element::*key, const std::type_identity_t<Key>& value) {
    const auto found = std::ranges::find(list, value, key);
    if (found != list.end()) return *found;
    list.emplace_back().*key = value;
    return list.back();
}

}  // namespace kbench

// A figure with its origin, so that no report can show a number without saying where it comes from.
//
//     const auto clock_mhz = kbench::Quantity::measured(1755);
//     const auto power_w = kbench::Quantity::unavailable("this driver has no power reading");
//     std::cout << (power_w.value ? std::to_string(*power_w.value) : power_w.reason);
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kbench {

enum class Origin { measured, derived, estimated, unavailable };
inline constexpr std::string_view origin_names[] = {"measured", "derived", "estimated", "unavailable"};
constexpr std::string_view name(Origin origin) { return origin_names[static_cast<int>(origin)]; }

/// A value in the unit that the field's name gives, or the reason why there is none.
struct Quantity {
    std::optional<double> value;
    Origin origin = Origin::unavailable;
    std::string reason;  ///< why it is unavailable, or what an estimate rests on

    static Quantity measured(double value) { return {value, Origin::measured, {}}; }
    static Quantity derived(double value) { return {value, Origin::derived, {}}; }
    static Quantity unavailable(std::string why) { return {std::nullopt, Origin::unavailable, std::move(why)}; }
};

/// The value alone; nothing where there is none or where the quantity was not recorded.
inline std::optional<double> value_of(const std::optional<Quantity>& quantity) {
    return quantity ? quantity->value : std::nullopt;
}

}  // namespace kbench

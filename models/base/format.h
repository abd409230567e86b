// Numbers formatted for people. CSV and JSON keep full precision instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kbench {

/// At least `digits` significant digits in fixed notation, thousands separated by commas; the integer part is never
/// rounded: 0.00421, 4.21, 399, 243,200. A value that is not finite is "not finite".
std::string significant(double value, int digits = 3);

/// The number of decimals that `significant` would show for `value`, for numbers that share a column or a row.
int decimals_for(double value, int digits = 3);

/// The value with an SI prefix (powers of 1000): format_flop(1.68e12) is "1.68 TFLOP". Bytes stop at GB and FLOPs at
/// TFLOP, as the field quotes them.
std::string format_flop(double flops);
std::string format_flop_per_s(double flop_per_s);
std::string format_bytes(double bytes);
std::string format_bytes_per_s(double bytes_per_s);
std::string format_joules(double joules);
std::string format_seconds(double seconds);

/// A share without decimals: percent(0.374) is "37 %".
std::string percent(double share);

/// "1 thread", "2 threads".
std::string plural(std::int64_t count, std::string_view noun);

/// A unit of time, and how many of it make a millisecond.
struct TimeUnit {
    std::string_view name;
    double per_ms;
};

/// The unit (us, ms or s) in which `ms` has one to four digits before the point.
TimeUnit time_unit(double ms);

/// "12.3 us", "4.56 ms".
std::string format_ms(double ms);

/// Foreign text on one line: control characters, which could also command a terminal, become spaces.
std::string one_line(std::string_view text);

}  // namespace kbench

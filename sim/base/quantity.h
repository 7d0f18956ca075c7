// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace convoy::inline base {

/// Dimensions that a quantity in YAML can have. k/M/G/T are powers of 1000, Ki/Mi/Gi/Ti powers of 1024; `b`
/// is a bit and `B` a byte; one multiply-add is 2 FLOPs.
enum class Dimension {
  bytes,      ///< B          `25MiB`, `100MB`
  bandwidth,  ///< B/s        `10Gbps`, `12GB/s`
  time,       ///< s          `25us`, `3min`, `2h`
  flop_rate,  ///< FLOP/s     `15.7TFLOPS`
  power,      ///< W          `300W`
  price,      ///< USD/h      `1.00USD/h`
  fraction,   ///< 1          `0.9` or `90%`
  frequency,  ///< Hz         `1380MHz`
};

/// What a user may write for `dimension`, for error messages: "a size such as 25MiB or 100MB".
std::string_view quantity_help(Dimension dimension);

/// Parses a number with its unit into SI base units (bytes, bytes/s, s, FLOP/s, W, USD/h, Hz). For negative,
/// infinite and NaN values and for missing or wrong units, the result is nullopt, with a reason in `why`.
std::optional<double> parse_quantity(std::string_view text, Dimension dimension, std::string& why);

/// Parses a text that is a plain finite number as a whole ("1e9", "-3.5"); nullopt for anything else (hex,
/// NaN, trailing text).
std::optional<double> parse_number(std::string_view text);

/// The canonical spelling of a number: "16" for 16, 16.0, 1.6e1 and +16. It has the shortest decimals that
/// give exactly the value written, with an exponent only below 1e-6 and from 1e21 on. Nothing for text that
/// parse_number does not accept, nor for 010, which YAML readers interpret differently.
std::optional<std::string> number_spelling(std::string_view text);

/// For people: three significant digits with a prefix and unit, e.g. "97.5 MiB", "1.25 ms", "1.23 GB/s".
std::string format_bytes(double bytes);
std::string format_time(double seconds);
std::string format_bandwidth(double bytes_per_s);

}  // namespace convoy::base

// SPDX-License-Identifier: MIT
#include "sim/base/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>
#include <span>

#include "sim/base/spellings.h"

namespace convoy::inline base {
namespace {

struct Unit {
  std::string_view name;
  double factor;
  bool prefixed;  ///< takes SI prefixes (k, M, G, T; Ki, Mi, Gi, Ti where `binary`)
  bool binary;
};

std::span<const Unit> units_of(Dimension dimension) {
  static constexpr std::array bytes{Unit{"B", 1, true, true}};
  static constexpr std::array bandwidth{Unit{"B/s", 1, true, true}, Unit{"Bps", 1, true, true},
                                        Unit{"bps", 0.125, true, false}, Unit{"bit/s", 0.125, true, false},
                                        Unit{"b/s", 0.125, true, false}};
  static constexpr std::array time{Unit{"ns", 1e-9, false, false}, Unit{"us", 1e-6, false, false},
                                   Unit{"ms", 1e-3, false, false}, Unit{"s", 1, false, false},
                                   Unit{"min", 60, false, false},  Unit{"h", 3600, false, false},
                                   Unit{"d", 86400, false, false}};
  static constexpr std::array flop_rate{Unit{"FLOPS", 1, true, false}, Unit{"FLOP/s", 1, true, false}};
  static constexpr std::array power{Unit{"W", 1, true, false}, Unit{"mW", 1e-3, false, false}};
  static constexpr std::array price{Unit{"USD/h", 1, false, false}};
  static constexpr std::array fraction{Unit{"", 1, false, false}, Unit{"%", 0.01, false, false}};
  static constexpr std::array frequency{Unit{"Hz", 1, true, false}};
  switch (dimension) {
    case Dimension::bytes:
      return bytes;
    case Dimension::bandwidth:
      return bandwidth;
    case Dimension::time:
      return time;
    case Dimension::flop_rate:
      return flop_rate;
    case Dimension::power:
      return power;
    case Dimension::price:
      return price;
    case Dimension::fraction:
      return fraction;
    case Dimension::frequency:
      return frequency;
  }
  return {};
}

/// Bounds of quantities other than 0: far beyond anything that is built, but such that products and quotients
/// of a few of them are finite.
struct Bounds {
  double lowest, highest;
  std::string_view unit;
};

Bounds bounds_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return {1e-3, 1e18, "B"};
    case Dimension::bandwidth:
      return {1e-3, 1e18, "B/s"};
    case Dimension::time:
      return {1e-15, 1e12, "s"};
    case Dimension::flop_rate:
      return {1, 1e24, "FLOPS"};
    case Dimension::power:
      return {1e-6, 1e12, "W"};
    case Dimension::price:
      return {1e-9, 1e12, "USD/h"};
    case Dimension::frequency:
      return {1e-3, 1e15, "Hz"};
    case Dimension::fraction:
      return {1e-12, 1e12, ""};
  }
  return {};
}

std::optional<double> unit_factor(std::string_view unit, Dimension dimension) {
  struct Prefix {
    std::string_view name;
    double factor;
    bool binary;
  };
  static constexpr std::array prefixes{Prefix{"Ki", 1024.0, true},       Prefix{"Mi", 1048576.0, true},
                                       Prefix{"Gi", 1073741824.0, true}, Prefix{"Ti", 1099511627776.0, true},
                                       Prefix{"k", 1e3, false},          Prefix{"M", 1e6, false},
                                       Prefix{"G", 1e9, false},          Prefix{"T", 1e12, false},
                                       Prefix{"P", 1e15, false}};
  for (const Unit& u : units_of(dimension)) {
    if (unit == u.name) return u.factor;
    if (!u.prefixed || !unit.ends_with(u.name)) continue;
    const std::string_view prefix = unit.substr(0, unit.size() - u.name.size());
    for (const Prefix& p : prefixes)
      if (prefix == p.name && (!p.binary || u.binary)) return p.factor * u.factor;
  }
  return std::nullopt;
}

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

/// Units as people write them who do not mind capitals: "gbps", "gib", "tflops", "GHZ", and the Greek letter
/// of microseconds. The factor where all units that a text may be are the same; where they are not, `many`
/// lists them: "GBPS" may be gigabits or gigabytes. A small b among capitals is a bit, and no size.
std::optional<double> meant_unit(std::string_view unit, Dimension dimension, std::string& many) {
  for (const std::string_view micro : {"\xc2\xb5s", "\xce\xbcs"})  // the sign of micro, and the letter mu
    if (unit == micro) unit = "us";
  static constexpr std::array<std::string_view, 10> prefixes{"",  "k",  "M",  "G",  "T",
                                                             "P", "Ki", "Mi", "Gi", "Ti"};
  const bool bits = unit.find('b') != std::string_view::npos;
  const bool capitals = std::any_of(unit.begin(), unit.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  std::optional<double> factor;
  for (const Unit& base : units_of(dimension))
    for (const std::string_view prefix : prefixes) {
      const std::string name = std::string(prefix) + std::string(base.name);
      const std::optional<double> of_name = unit_factor(name, dimension);
      if (!of_name || !same_letters(name, unit)) continue;
      if (bits && (base.name == "Bps" || (base.name.front() == 'B' && capitals))) continue;
      many += (many.empty() ? "" : ", ") + name;
      if (factor && *factor != *of_name) return std::nullopt;
      factor = of_name;
    }
  return factor;
}

/// std::from_chars takes no plus sign.
std::string_view without_plus(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return text;
}

std::string with_prefix(double value, double base, std::span<const std::string_view> suffixes) {
  std::size_t i = 0;
  while (i + 1 < suffixes.size() && std::abs(value) >= base * 0.9995) {
    value /= base;
    ++i;
  }
  const double magnitude = std::abs(value);
  const int decimals = magnitude >= 99.95 || (i == 0 && value == std::floor(value)) ? 0
                       : magnitude >= 9.995                                         ? 1
                                                                                    : 2;
  return fmt::format("{:.{}f} {}", value, decimals, suffixes[i]);
}

}  // namespace

std::string_view quantity_help(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return "a size such as 25MiB or 100MB";
    case Dimension::bandwidth:
      return "a bandwidth such as 10Gbps or 12GB/s";
    case Dimension::time:
      return "a time such as 25us, 3ms or 1.5s";
    case Dimension::flop_rate:
      return "a rate such as 15.7TFLOPS";
    case Dimension::power:
      return "a power such as 300W";
    case Dimension::price:
      return "a price such as 1.00USD/h";
    case Dimension::fraction:
      return "a fraction such as 0.9 or 90%";
    case Dimension::frequency:
      return "a clock such as 1380MHz";
  }
  return "a quantity";
}

std::vector<std::string> unit_spellings(Dimension dimension) {
  static constexpr std::array<std::string_view, 10> prefixes{"",  "k",  "M",  "G",  "T",
                                                             "P", "Ki", "Mi", "Gi", "Ti"};
  std::set<std::string> spellings;
  const auto add_if_understood = [&](const std::string& unit) {
    std::string why;
    if (parse_quantity("1" + unit, dimension, why)) spellings.insert(unit);
  };
  for (const Unit& unit : units_of(dimension))
    for (const std::string_view prefix : prefixes) {
      std::string name = std::string(prefix) + std::string(unit.name);
      std::vector<std::size_t> letters;
      for (std::size_t i = 0; i < name.size(); ++i)
        if (std::isalpha(static_cast<unsigned char>(name[i]))) letters.push_back(i);
      for (std::size_t capitals = 0; capitals < std::size_t{1} << letters.size(); ++capitals) {
        for (std::size_t i = 0; i < letters.size(); ++i) {
          const auto letter = static_cast<unsigned char>(name[letters[i]]);
          name[letters[i]] =
              static_cast<char>(capitals >> i & 1 ? std::toupper(letter) : std::tolower(letter));
        }
        add_if_understood(name);
      }
    }
  for (const char* micro : {"\xc2\xb5s", "\xce\xbcs"}) add_if_understood(micro);
  return {spellings.begin(), spellings.end()};
}

std::optional<double> parse_number(std::string_view text) {
  text = without_plus(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::string> number_spelling(std::string_view text) {
  constexpr int least_exponent = -6, most_digits = 21;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!parse_number(text)) return std::nullopt;
  text = without_plus(text);
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.size() > 1 && text[0] == '0' && is_digit(text[1])) return std::nullopt;
  // The value is 0.DIGITS times 10^point.
  const std::size_t mantissa = std::min(text.find_first_of("eE"), text.size());
  const std::size_t dot = std::min(text.find('.'), mantissa);
  int point = static_cast<int>(dot), exponent = 0;
  if (mantissa < text.size()) {
    const std::string_view written = without_plus(text.substr(mantissa + 1));
    std::from_chars(written.data(), written.data() + written.size(), exponent);
  }
  std::string digits;
  for (const char c : text.substr(0, mantissa))
    if (is_digit(c)) digits += c;
  const std::size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return "0";
  point += exponent - static_cast<int>(first);
  digits = digits.substr(first, digits.find_last_not_of('0') + 1 - first);
  const auto count = static_cast<int>(digits.size());
  std::string spelling = negative ? "-" : "";
  if (point > most_digits || point <= least_exponent)
    return fmt::format("{}{}{}{}e{}", spelling, digits.substr(0, 1), count > 1 ? "." : "", digits.substr(1),
                       point - 1);
  if (point <= 0)
    return fmt::format("{}0.{}{}", spelling, std::string(static_cast<std::size_t>(-point), '0'), digits);
  const auto whole = static_cast<std::size_t>(point);
  if (point >= count) return spelling + digits + std::string(whole - digits.size(), '0');
  return fmt::format("{}{}.{}", spelling, digits.substr(0, whole), digits.substr(whole));
}

std::optional<double> parse_quantity(std::string_view text, Dimension dimension, std::string& why) {
  double value = 0;
  const std::string_view digits = without_plus(text);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) {
    why = fmt::format("'{}' is not {}", text, quantity_help(dimension));
    return std::nullopt;
  }
  std::string_view unit{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty() && dimension != Dimension::fraction) {
    why = fmt::format("'{}' lacks its unit; write {}", text, quantity_help(dimension));
    return std::nullopt;
  }
  std::optional<double> factor = unit_factor(unit, dimension);
  std::string many;
  if (!factor) factor = meant_unit(unit, dimension, many);
  if (!factor && !many.empty()) {
    why = fmt::format("unit '{}' may be any of {}; write one of them", unit, many);
    return std::nullopt;
  }
  if (!factor) {
    why = fmt::format("unit '{}' does not fit here; write {}", unit, quantity_help(dimension));
    return std::nullopt;
  }
  if (value < 0) {
    why = fmt::format("'{}' is negative; write {}", text, quantity_help(dimension));
    return std::nullopt;
  }
  const double result = value * *factor;
  const Bounds bounds = bounds_of(dimension);
  if (!(result <= bounds.highest) || (result < bounds.lowest && result != 0)) {
    why = fmt::format("'{}' is out of range: 0, or from {:g} to {:g}{}{}, is allowed", text, bounds.lowest,
                      bounds.highest, std::string_view(bounds.unit).empty() ? "" : " ", bounds.unit);
    return std::nullopt;
  }
  return result;
}

std::string format_bytes(double bytes) {
  static constexpr std::array<std::string_view, 6> suffixes{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return with_prefix(bytes, 1024.0, suffixes);
}

std::string format_time(double seconds) {
  if (seconds == 0) return "0 s";
  if (std::abs(seconds) >= 1.0) {
    static constexpr std::array<std::string_view, 1> suffix{"s"};
    return with_prefix(seconds, 1e300, suffix);
  }
  static constexpr std::array<std::string_view, 3> suffixes{"ns", "us", "ms"};
  return with_prefix(seconds * 1e9, 1000.0, suffixes);
}

std::string format_bandwidth(double bytes_per_s) {
  static constexpr std::array<std::string_view, 5> suffixes{"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  return with_prefix(bytes_per_s, 1000.0, suffixes);
}

}  // namespace convoy::base

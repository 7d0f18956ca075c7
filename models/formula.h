// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::inline models {

/// Arithmetic on whole numbers up to 2^53 in size, compiled once and evaluated for many values of its names:
/// `+ - *`, `/` (which must go without remainder), `//` (rounded down), `%` (from 0 up to the divisor), `**`,
/// parentheses, one comparison (`== != < <= > >=`: 1 or 0), and the functions min(a, b), max(a, b),
/// floor_log2(a) and ceil_log2(a). A name may have an index behind a dot: `stages.0`.
class Formula {
 public:
  /// Reports an error ("divides by zero") with the formula and its place; does not return.
  using Fail = std::function<void(const std::string& message)>;

  /// Reads `text` from `begin` up to where it cannot be continued (end()).
  /// @param fail is called for text that is no formula
  Formula(std::string_view text, std::size_t begin, const Fail& fail);

  std::size_t end() const { return end_; }                          ///< where reading stopped
  const std::vector<std::string>& names() const { return names_; }  ///< in the order of first use

  /// @param values of names(), in the same order
  /// @param fail is called for remainders, division by zero and what is too large
  std::int64_t value(std::span<const std::int64_t> values, const Fail& fail) const;

 private:
  class Parser;
  enum class Act : std::uint8_t {
    number,
    name,
    add,
    subtract,
    multiply,
    divide,
    divide_down,
    modulo,
    power,
    equal,
    unequal,
    less,
    less_or_equal,
    least,
    greatest,
    floor_log2,
    ceil_log2,
  };
  struct Step {
    Act act;
    std::int64_t operand = 0;  ///< the number, or the index of the name
  };
  static std::int64_t apply(Act act, std::int64_t left, std::int64_t right, const Fail& fail);

  std::vector<Step> steps_;  ///< operands before what is done with them
  std::vector<std::string> names_;
  std::size_t end_ = 0, depth_ = 0;  ///< depth: of the stack of operands
};

}  // namespace convoy::models

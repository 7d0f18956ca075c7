// SPDX-License-Identifier: MIT
#include "models/formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <utility>

#include "sim/base/yaml_map.h"

namespace convoy::inline models {
namespace {

std::int64_t checked(std::int64_t result, const Formula::Fail& fail) {
  if (result > YamlMap::max_integer || result < -YamlMap::max_integer) fail("is too large");
  return result;
}

std::int64_t product_of(std::int64_t a, std::int64_t b, const Formula::Fail& fail) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) fail("is too large");
  return checked(result, fail);
}

std::int64_t power_of(std::int64_t base, std::int64_t exponent, const Formula::Fail& fail) {
  if (exponent < 0) fail(fmt::format("raises {} to the power of {}", base, exponent));
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) result = product_of(result, base, fail);
  return result;
}

bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

/// Recursive descent.
class Formula::Parser {
 public:
  Parser(Formula& formula, std::string_view text, std::size_t at, const Fail& fail)
      : formula_(formula), text_(text), at_(at), fail_(fail) {}

  std::size_t read() {
    comparison();
    peek();
    return at_;
  }

 private:
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(std::string_view token) {
    peek();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void push(Act act, std::int64_t operand = 0) {
    formula_.steps_.push_back({act, operand});
    const bool is_operand = act == Act::number || act == Act::name;
    const bool is_unary = act == Act::floor_log2 || act == Act::ceil_log2;
    if (is_operand) formula_.depth_ = std::max(formula_.depth_, ++height_);
    if (!is_operand && !is_unary) --height_;
  }

  void comparison() {
    sum();
    constexpr std::array<std::pair<std::string_view, Act>, 4> plain{
        {{"==", Act::equal}, {"!=", Act::unequal}, {"<=", Act::less_or_equal}, {"<", Act::less}}};
    for (const auto& [token, act] : plain)
      if (take(token)) {
        sum();
        return push(act);
      }
    // a > b: not a <= b, and a >= b: not a < b.
    const bool or_equal = take(">=");
    if (!or_equal && !take(">")) return;
    sum();
    push(or_equal ? Act::less : Act::less_or_equal);
    push(Act::number, 0);
    push(Act::equal);
  }

  void sum() {
    product();
    for (;;) {
      if (take("+")) {
        product();
        push(Act::add);
      } else if (take("-")) {
        product();
        push(Act::subtract);
      } else {
        return;
      }
    }
  }

  void product() {
    power();
    for (;;) {
      const Act act = take("*")    ? Act::multiply
                      : take("//") ? Act::divide_down
                      : take("/")  ? Act::divide
                      : take("%")  ? Act::modulo
                                   : Act::number;
      if (act == Act::number) return;
      power();
      push(act);
    }
  }

  void power() {
    primary();
    if (!take("**")) return;
    power();
    push(Act::power);
  }

  void primary() {
    if (take("(")) {
      comparison();
      if (!take(")")) fail_("lacks a ')'");
    } else if (std::isdigit(static_cast<unsigned char>(peek()))) {
      push(Act::number, digits());
    } else {
      named();
    }
  }

  std::int64_t digits() {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc{}) fail_("needs a whole number here");
    at_ = static_cast<std::size_t>(end - text_.data());
    return checked(number, fail_);
  }

  void named() {
    peek();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_part(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) fail_("is none: write $name, $name.0 or $(2*name + 1)");
    if (at_ < text_.size() && text_[at_] == '(') return function(word);
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      digits();
    }
    const std::string name(text_.substr(begin, at_ - begin));
    const auto known = std::find(formula_.names_.begin(), formula_.names_.end(), name);
    push(Act::name, known - formula_.names_.begin());
    if (known == formula_.names_.end()) formula_.names_.push_back(name);
  }

  void function(std::string_view name) {
    struct Function {
      std::string_view name;
      Act act;
      int arguments;
    };
    constexpr std::array<Function, 4> functions{{{"min", Act::least, 2},
                                                 {"max", Act::greatest, 2},
                                                 {"floor_log2", Act::floor_log2, 1},
                                                 {"ceil_log2", Act::ceil_log2, 1}}};
    const auto* found =
        std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == name; });
    if (found == functions.end()) {
      fail_(fmt::format("uses the function '{}'; there are min, max, floor_log2 and ceil_log2", name));
      return;
    }
    take("(");
    comparison();
    if (found->arguments == 2) {
      if (!take(",")) fail_(fmt::format("gives {} one argument; it takes two", name));
      comparison();
    }
    if (!take(")")) fail_("lacks a ')'");
    push(found->act);
  }

  Formula& formula_;
  std::string_view text_;
  std::size_t at_, height_ = 0;
  const Fail& fail_;
};

Formula::Formula(std::string_view text, std::size_t begin, const Fail& fail) {
  end_ = Parser(*this, text, begin, fail).read();
}

std::int64_t Formula::apply(Act act, std::int64_t left, std::int64_t right, const Fail& fail) {
  const auto divisor = [&] {
    if (right == 0) fail("divides by zero");
    return right;
  };
  switch (act) {
    case Act::add:
      return checked(left + right, fail);
    case Act::subtract:
      return checked(left - right, fail);
    case Act::multiply:
      return product_of(left, right, fail);
    case Act::divide:
      if (left % divisor() != 0) fail(fmt::format("divides {} by {}, which leaves a remainder", left, right));
      return left / right;
    case Act::divide_down:
      return left / divisor() - (left % right != 0 && (left < 0) != (right < 0) ? 1 : 0);
    case Act::modulo:
      return (left % divisor() + right) % right;
    case Act::power:
      return power_of(left, right, fail);
    case Act::equal:
      return left == right;
    case Act::unequal:
      return left != right;
    case Act::less:
      return left < right;
    case Act::less_or_equal:
      return left <= right;
    case Act::least:
      return std::min(left, right);
    case Act::greatest:
      return std::max(left, right);
    case Act::floor_log2:
    case Act::ceil_log2: {
      if (left < 1) fail(fmt::format("takes the logarithm of {}", left));
      const auto from = static_cast<std::uint64_t>(left);
      return act == Act::floor_log2 ? std::bit_width(from) - 1 : std::bit_width(from - 1);
    }
    case Act::number:
    case Act::name:
      break;
  }
  return 0;
}

std::int64_t Formula::value(std::span<const std::int64_t> values, const Fail& fail) const {
  constexpr std::size_t most = 128;
  std::array<std::int64_t, most> stack;
  if (depth_ > most) fail("has too many operands");
  std::size_t height = 0;
  for (const Step& step : steps_) {
    if (step.act == Act::number) {
      stack[height++] = step.operand;
    } else if (step.act == Act::name) {
      stack[height++] = values[static_cast<std::size_t>(step.operand)];
    } else if (step.act == Act::floor_log2 || step.act == Act::ceil_log2) {
      stack[height - 1] = apply(step.act, stack[height - 1], 0, fail);
    } else {
      --height;
      stack[height - 1] = apply(step.act, stack[height - 1], stack[height], fail);
    }
  }
  return stack[0];
}

}  // namespace convoy::models

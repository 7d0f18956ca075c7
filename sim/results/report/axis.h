// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace convoy::inline results {

/// What an axis counts in.
struct Unit {
  double size = 1;        ///< in the unit of the values: 1e-3 for ms where they are s
  const char* name = "";  ///< "ms"; empty: a plain number
};

inline constexpr Unit plain{};
Unit time_unit(double largest_s);      ///< ns ... h, so that the largest value is at least 1
Unit byte_unit(double largest_bytes);  ///< B ... PiB

struct Tick {
  double value;
  std::string text;
};

/// What a chart asks of an axis.
struct AxisRequest {
  std::string title;
  Unit unit = {};
  bool log = false;              ///< done only where all values are above zero
  bool from_zero = true;         ///< of linear axes
  std::vector<Tick> ticks = {};  ///< at these places only, the values that occur; empty: at round ones
};

/// An axis laid over values: from pixel `from` on to pixel `to`.
class Axis {
 public:
  /// Round limits around low ... high. @pre both finite, low <= high
  Axis(const AxisRequest& request, double low, double high, double from, double to);
  double at(double value) const;  ///< its pixel
  const std::vector<Tick>& ticks() const { return ticks_; }
  std::string title() const;  ///< with its unit: "step time (ms)"
  bool log() const { return log_; }

 private:
  double position(double value) const;
  void lay_round_ticks();
  void keep_apart(bool along_text);

  std::string title_;
  Unit unit_;
  bool log_;
  double low_, high_, from_, to_;
  std::vector<Tick> ticks_;
};

/// "0.25", "1500", "25k", "1.5M".
std::string tick_text(double value);

}  // namespace convoy::results

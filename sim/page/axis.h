// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace convoy::inline page {

/// The unit in which an axis counts.
struct Unit {
  double size = 1;        ///< in the unit of the values: 1e-3 for ms if they are in s
  const char* name = "";  ///< "ms"; empty: a plain number
};

inline constexpr Unit plain{};
Unit time_unit(double largest_s);      ///< ns ... h, so that the largest value is at least 1
Unit byte_unit(double largest_bytes);  ///< B ... PiB

struct Tick {
  double value;
  std::string text;
};

/// What a chart requests of an axis.
struct AxisRequest {
  std::string title;
  Unit unit = {};
  bool log = false;              ///< only used if all values are positive
  bool from_zero = true;         ///< for linear axes
  std::vector<Tick> ticks = {};  ///< only at these places, the values that occur; if empty, at round ones
};

/// An axis for values, from pixel `from` to pixel `to`.
class Axis {
 public:
  /// Round limits around low ... high. @pre both finite, low <= high
  Axis(const AxisRequest& request, double low, double high, double from, double to);
  double at(double value) const;  ///< its position in pixels
  const std::vector<Tick>& ticks() const { return ticks_; }
  std::string title() const;  ///< with its unit: "step time (ms)"
  bool log() const { return log_; }
  double high() const { return high_; }  ///< the value at its end, which is round

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

}  // namespace convoy::page

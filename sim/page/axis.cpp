// SPDX-License-Identifier: MIT
#include "sim/page/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/page/svg.h"

namespace convoy::inline page {
namespace {

/// The smallest number of the form 1, 2 or 5 times a power of ten that is not below `value`.
double round_up(double value) {
  const double decade = std::pow(10, std::floor(std::log10(value)));
  for (const double digit : {1, 2, 5})
    if (digit * decade >= value * (1 - 1e-9)) return digit * decade;
  return 10 * decade;
}

/// The largest such number that is not above `value`.
double round_down(double value) {
  const double decade = std::pow(10, std::floor(std::log10(value)));
  for (const double digit : {5, 2, 1})
    if (digit * decade <= value * (1 + 1e-9)) return digit * decade;
  return decade / 2;
}

Unit pick(double largest, const auto& units) {
  Unit unit{units.front().first, units.front().second};
  for (const auto& [size, name] : units)
    if (largest >= size) unit = {size, name};
  return unit;
}

}  // namespace

Unit time_unit(double largest_s) {
  static constexpr std::array<std::pair<double, const char*>, 6> units{
      {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}, {60, "min"}, {3600, "h"}}};
  const Unit unit = pick(largest_s, units);
  return unit.size == 60 && largest_s < 300 ? Unit{1, "s"} : unit;
}

Unit byte_unit(double largest_bytes) {
  static constexpr std::array<std::pair<double, const char*>, 6> units{
      {{1, "B"}, {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"}, {0x1p40, "TiB"}, {0x1p50, "PiB"}}};
  return pick(largest_bytes, units);
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-4)) return fmt::format("{:.3g}", value);
  if (size >= 1e12) return fmt::format("{:g}T", value / 1e12);
  if (size >= 1e9) return fmt::format("{:g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

Axis::Axis(const AxisRequest& request, double low, double high, double from, double to)
    : title_(request.title),
      unit_(request.unit),
      log_(request.log && low > 0),
      low_(low),
      high_(high),
      from_(from),
      to_(to) {
  if (!log_ && request.from_zero) low_ = 0;
  if (!(high_ > low_)) high_ = low_ > 0 ? low_ * (log_ ? 2 : 1.25) : low_ + unit_.size;
  if (request.ticks.empty()) {
    lay_round_ticks();
  } else {
    ticks_ = request.ticks;
    if (log_) {  // leave space beside the first and the last value
      const double margin = std::pow(high_ / low_, 0.04);
      low_ /= margin;
      high_ *= margin;
    }
  }
  keep_apart(from_ < to_);
}

void Axis::lay_round_ticks() {
  const double low = low_ / unit_.size, high = high_ / unit_.size;
  std::vector<double> values;
  if (log_) {
    const double first = round_down(low), last = round_up(high);
    const bool decades = last / first > 1000;
    const double power = std::pow(10, std::floor(std::log10(first) + 1e-9));
    for (double decade = std::max(power, std::numeric_limits<double>::min()); decade <= last * (1 + 1e-9);
         decade *= 10)
      for (const double digit : {1, 2, 5})
        if (digit * decade >= first * (1 - 1e-9) && digit * decade <= last * (1 + 1e-9) &&
            (digit == 1 || !decades))
          values.push_back(digit * decade);
    low_ = first * unit_.size;
    high_ = last * unit_.size;
  } else {
    const double step = round_up((high - low) / 6);
    const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
    for (double i = first; i <= last; ++i) values.push_back(i * step);
    low_ = first * step * unit_.size;
    high_ = last * step * unit_.size;
  }
  for (const double value : values) ticks_.push_back({value * unit_.size, tick_text(value)});
}

/// Drops ticks whose texts would touch the one before.
void Axis::keep_apart(bool along_text) {
  std::vector<Tick> kept;
  double end = -1e300;
  for (const Tick& tick : ticks_) {
    const double middle = std::abs(at(tick.value) - from_);
    const double half = along_text ? text_width(tick.text, 11) / 2 + 4 : 7;
    if (middle - half < end) continue;
    end = middle + half;
    kept.push_back(tick);
  }
  ticks_ = std::move(kept);
}

double Axis::position(double value) const {
  if (!log_) return (value - low_) / (high_ - low_);
  return std::log(value / low_) / std::log(high_ / low_);
}

double Axis::at(double value) const { return from_ + position(value) * (to_ - from_); }

std::string Axis::title() const {
  return std::string_view(unit_.name).empty() ? title_ : fmt::format("{} ({})", title_, unit_.name);
}

}  // namespace convoy::page

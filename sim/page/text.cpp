// SPDX-License-Identifier: MIT
#include "sim/page/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/quantity.h"

namespace convoy::inline page {

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string shortened(std::string text, std::size_t longest) {
  if (width_of(text) <= longest) return text;
  std::size_t cut = 0;
  for (std::size_t columns = 0; columns < longest - 3; ++cut)
    if ((static_cast<unsigned char>(text[cut + 1]) & 0xc0) != 0x80) ++columns;
  return text.substr(0, cut) + "...";
}

std::string last_key(const std::string& path) {
  if (path.ends_with('"') && path.size() > 1) {
    const std::size_t quote = path.rfind('"', path.size() - 2);
    if (quote != std::string::npos) return path.substr(quote + 1, path.size() - quote - 2);
  }
  return path.substr(path.rfind('.') + 1);  // npos + 1: all of it
}

std::string number_text(double value) {
  const double size = std::abs(value);
  if (size > 0 && size < 0.0995) return fmt::format("{:.2g}", value);
  return fmt::format("{:.{}f}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

std::string digits_text(double value, int digits) {
  return value < std::pow(10, digits) - 0.5 ? fmt::format("{:.{}g}", value, digits)
                                            : fmt::format("{:.0f}", value);
}

std::string percent_text(double share) {
  return fmt::format("{:.{}f} %", 100 * share, share > 0 && share < 0.0995 ? 1 : 0);
}

std::string duration_text(double seconds) {
  if (seconds < 120) return format_time(seconds);
  if (seconds < 7200) return fmt::format("{} min", number_text(seconds / 60));
  if (seconds < 172'800) return fmt::format("{} h", number_text(seconds / 3600));
  return fmt::format("{} d", number_text(seconds / 86'400));
}

}  // namespace convoy::page

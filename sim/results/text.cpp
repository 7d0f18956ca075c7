// SPDX-License-Identifier: MIT
#include "sim/results/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/base/quantity.h"

namespace convoy::inline results {

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

std::string percent_text(double share) {
  return fmt::format("{:.{}f} %", 100 * share, share > 0 && share < 0.0995 ? 1 : 0);
}

std::string duration_text(double seconds) {
  if (seconds < 120) return format_time(seconds);
  if (seconds < 7200) return fmt::format("{} min", number_text(seconds / 60));
  if (seconds < 172'800) return fmt::format("{} h", number_text(seconds / 3600));
  return fmt::format("{} d", number_text(seconds / 86'400));
}

namespace {

/// The different values among those of all runs, the first one first: "nccl-tcp or zmq-tcp"; runs without a
/// value are ignored.
std::string values_of(const std::vector<RunResult>& runs, std::string SoftwareResult::*field) {
  std::vector<std::string> values;
  for (const RunResult& run : runs)
    if (!(run.software.*field).empty() &&
        std::find(values.begin(), values.end(), run.software.*field) == values.end())
      values.push_back(run.software.*field);
  return fmt::format("{}", fmt::join(values, " or "));
}

}  // namespace

std::vector<std::string> assumptions(const std::vector<RunResult>& runs) {
  if (runs.empty()) return {};
  using S = SoftwareResult;
  const std::string launches = values_of(runs, &S::launches);
  std::vector<std::string> lines{
      fmt::format("software: {}, {}, {}, {}, {} updates; transport {}{}; input {}",
                  values_of(runs, &S::framework), values_of(runs, &S::execution), values_of(runs, &S::layout),
                  values_of(runs, &S::precision), values_of(runs, &S::update), values_of(runs, &S::transport),
                  launches.empty() ? "" : ", launched " + launches, values_of(runs, &S::input))};
  for (const RunResult& run : runs)
    for (const std::string& warning : run.warnings)
      if (const std::string line = "note: " + warning;
          std::find(lines.begin(), lines.end(), line) == lines.end())
        lines.push_back(line);
  return lines;
}

std::string bottleneck_text(const Bottleneck& bottleneck) {
  const bool by_kind = bottleneck.kind == "compute" || bottleneck.kind == "issue" ||
                       bottleneck.kind == "latency" || bottleneck.kind == "input";
  return fmt::format("{} {}", by_kind ? bottleneck.kind : bottleneck.name,
                     percent_text(bottleneck.utilization));
}

}  // namespace convoy::results

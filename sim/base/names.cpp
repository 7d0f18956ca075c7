// SPDX-License-Identifier: MIT
#include "sim/base/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace convoy::inline base {
namespace {

/// Levenshtein distance, case-insensitive. Wagner & Fischer, J. ACM 21(1), 1974.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = std::tolower(static_cast<unsigned char>(a[i - 1])) ==
                        std::tolower(static_cast<unsigned char>(b[j - 1]));
      const std::size_t change = diagonal + (same ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string suggestion(std::string_view wrong, std::span<const std::string> known) {
  const std::string* best = nullptr;
  std::size_t best_distance = std::max<std::size_t>(2, wrong.size() / 4) + 1;
  if (wrong.size() > 64) return {};
  for (const std::string& name : known) {
    const std::size_t d = edit_distance(wrong, name);
    if (d < best_distance && d < name.size()) {
      best = &name;
      best_distance = d;
    }
  }
  // "v100" is taken to mean v100-pcie-16gb, however many letters are missing; "p3.16xlarge" means
  // aws-p3.16xlarge; "V100" and "v100" are the same.
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  const auto begins = [&](const std::string& each) {
    return each.size() >= wrong.size() && std::equal(wrong.begin(), wrong.end(), each.begin(), same);
  };
  const auto ends = [&](const std::string& each) {
    return each.size() >= wrong.size() && std::equal(wrong.rbegin(), wrong.rend(), each.rbegin(), same);
  };
  if (wrong.size() >= 3 && best_distance > 1) {
    const auto found = [&](auto part) { return std::find_if(known.begin(), known.end(), part); };
    auto name = found(begins);
    if (name == known.end() && !best) name = found(ends);
    if (name != known.end()) best = &*name;
  }
  return best ? fmt::format(" (did you mean '{}'?)", *best) : std::string{};
}

std::vector<std::string> texts_of_names(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

std::string list_of(std::span<const std::string> names, std::size_t limit) {
  if (names.size() <= limit) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.first(limit), ", "), names.size() - limit);
}

}  // namespace convoy::base

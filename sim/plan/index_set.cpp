// SPDX-License-Identifier: MIT
#include "sim/plan/index_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace convoy::inline plans {

IndexSet all_of(std::int64_t size) { return size > 0 ? IndexSet{{0, size}} : IndexSet{}; }

IndexSet set_of(const std::vector<std::int64_t>& sorted) {
  IndexSet set;
  for (const std::int64_t index : sorted)
    if (!set.empty() && set.back().end == index)
      ++set.back().end;
    else
      set.push_back({index, index + 1});
  return set;
}

IndexSet united(std::vector<IndexRange> ranges) {
  std::sort(ranges.begin(), ranges.end());
  IndexSet set;
  for (const IndexRange& range : ranges)
    if (!set.empty() && range.begin <= set.back().end)
      set.back().end = std::max(set.back().end, range.end);
    else
      set.push_back(range);
  return set;
}

IndexSet united(IndexSet a, const IndexSet& b) {
  a.insert(a.end(), b.begin(), b.end());
  return united(std::move(a));
}

IndexSet intersection(const IndexSet& a, const IndexSet& b) {
  IndexSet both;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size(); a[i].end < b[j].end ? ++i : ++j)
    if (const IndexRange range{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
        range.begin < range.end)
      both.push_back(range);
  return both;
}

IndexSet difference(const IndexSet& a, const IndexSet& b) {
  IndexSet left;
  auto gone = b.begin();
  for (const IndexRange& range : a) {
    std::int64_t begin = range.begin;
    while (gone != b.end() && gone->end <= begin) ++gone;
    // The last of those that reach into the range may reach into the next one.
    for (auto next = gone; next != b.end() && next->begin < range.end; ++next) {
      if (next->begin > begin) left.push_back({begin, next->begin});
      begin = next->end;
    }
    if (begin < range.end) left.push_back({begin, range.end});
  }
  return left;
}

std::int64_t count(const IndexSet& set) {
  std::int64_t sum = 0;
  for (const IndexRange& range : set) sum += range.end - range.begin;
  return sum;
}

bool contains(const IndexSet& set, std::int64_t index) {
  return std::any_of(set.begin(), set.end(),
                     [&](const IndexRange& range) { return range.begin <= index && index < range.end; });
}

std::string text_of(const IndexSet& set) {
  if (set.empty()) return "none";
  std::string text;
  for (const IndexRange& range : set) {
    if (!text.empty()) text += " and ";
    text += range.end == range.begin + 1 ? fmt::format("{}", range.begin)
                                         : fmt::format("{} to {}", range.begin, range.end - 1);
  }
  return text;
}

}  // namespace convoy::plans

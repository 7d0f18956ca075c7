// SPDX-License-Identifier: MIT
#include "sim/results/classes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <boost/container_hash/hash.hpp>
#include <cctype>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <unordered_set>

namespace convoy::inline results {
namespace {

std::uint64_t bits(double number) { return std::bit_cast<std::uint64_t>(number); }

/// What devices of one class have in common.
auto numbers_of(const DeviceResult& device) {
  std::array<std::uint64_t, 5 + memory_class_count> numbers{
      bits(device.busy_s), bits(device.sent_bytes), bits(device.received_bytes),
      bits(device.peak_memory_bytes), bits(device.energy_j)};
  std::transform(device.memory.begin(), device.memory.end(), numbers.begin() + 5, bits);
  return numbers;
}

/// What links of one class have in common beside their names without digits.
auto numbers_of(const LinkResult& link) { return std::array{bits(link.bytes), bits(link.utilization)}; }

/// A name without its digits.
auto family_of(const LinkResult& link) {
  return link.name | std::views::filter([](unsigned char c) { return !std::isdigit(c); });
}
auto family_of(const DeviceResult&) { return std::string_view{}; }

/// Merges what is of one class into its first entry.
template <class T>
void merge(std::vector<T>& entries) {
  std::vector<T> classes;
  const auto hash = [&](std::size_t c) {
    std::size_t sum = 0;
    for (const char letter : family_of(classes[c])) boost::hash_combine(sum, letter);
    for (const std::uint64_t number : numbers_of(classes[c])) boost::hash_combine(sum, number);
    return sum;
  };
  const auto equal = [&](std::size_t a, std::size_t b) {
    return numbers_of(classes[a]) == numbers_of(classes[b]) &&
           std::ranges::equal(family_of(classes[a]), family_of(classes[b]));
  };
  std::unordered_set<std::size_t, decltype(hash), decltype(equal)> known(0, hash, equal);
  for (T& entry : entries) {
    classes.push_back(std::move(entry));
    const auto [first, fresh] = known.insert(classes.size() - 1);
    if (fresh) continue;
    classes[*first].count += classes.back().count;
    classes.pop_back();
  }
  entries = std::move(classes);
}

}  // namespace

void merge_equal(RunResult& run) {
  merge(run.per_device);
  merge(run.per_link);
}

}  // namespace convoy::results

// SPDX-License-Identifier: MIT
#include "sim/results/classes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <ranges>

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

/// What names of one class have in common: those of links what is left without their digits, those of devices nothing.
auto family_of(std::string_view name, const LinkResult&) {
  return name | std::views::filter([](unsigned char c) { return !std::isdigit(c); });
}
auto family_of(std::string_view, const DeviceResult&) { return std::string_view{}; }

template <class Entry>
std::uint64_t hash_of(std::string_view name, const Entry& figures) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;
  std::uint64_t hash = odd;
  for (const char letter : family_of(name, figures)) hash = (hash ^ static_cast<unsigned char>(letter)) * odd;
  for (const std::uint64_t number : numbers_of(figures)) {
    hash = (hash ^ number) * odd;
    hash ^= hash >> 32;  // the low bits, which find the slot, depend on all of the number
  }
  return hash;
}

}  // namespace

template <class Entry>
void EntryList<Entry>::add(std::string_view name, const Entry& figures) {
  if (!by_class_) return append(name, figures);
  if (2 * hashes_.size() >= slots_.size()) widen();
  const std::uint64_t hash = hash_of(name, figures);
  std::uint32_t& entry = slot(hash, name, figures);
  if (entry != nobody) {
    entries_[entry].count += figures.count;
    return;
  }
  entry = static_cast<std::uint32_t>(entries_.size());
  hashes_.push_back(hash);
  append(name, figures);
}

template <class Entry>
void EntryList<Entry>::append(std::string_view name, const Entry& figures) {
  // Of a long list there are never two while it grows.
  constexpr std::size_t many = 1 << 16;
  if (entries_.size() == many) {
    entries_.reserve(most_);
    if (by_class_) hashes_.reserve(most_);
  }
  entries_.push_back(figures);
  entries_.back().name = name;
}

/// That of the class, or the free one for it.
template <class Entry>
std::uint32_t& EntryList<Entry>::slot(std::uint64_t hash, std::string_view name, const Entry& figures) {
  const auto is_of_class = [&](std::uint32_t entry) {
    return hashes_[entry] == hash && numbers_of(entries_[entry]) == numbers_of(figures) &&
           std::ranges::equal(family_of(entries_[entry].name, figures), family_of(name, figures));
  };
  std::size_t at = hash & (slots_.size() - 1);
  while (slots_[at] != nobody && !is_of_class(slots_[at])) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

template <class Entry>
void EntryList<Entry>::widen() {
  slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), nobody);
  for (std::uint32_t entry = 0; entry < hashes_.size(); ++entry) {
    std::size_t at = hashes_[entry] & (slots_.size() - 1);
    while (slots_[at] != nobody) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = entry;
  }
}

template class EntryList<DeviceResult>;
template class EntryList<LinkResult>;

}  // namespace convoy::results

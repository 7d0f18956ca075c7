// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <string>

#include "sim/results/classes.h"

using namespace convoy;

namespace {

/// What names of one class of links have in common.
std::string without_digits(std::string name) {
  std::erase_if(name, [](unsigned char c) { return std::isdigit(c); });
  return name;
}
bool is_of_class(DeviceResult a, const DeviceResult& b) {
  a.name = b.name, a.count = b.count;
  return a == b;
}
bool is_of_class(LinkResult a, const LinkResult& b) {
  if (without_digits(a.name) != without_digits(b.name)) return false;
  a.name = b.name, a.count = b.count;
  return a == b;
}

/// Compares each entry with all classes before it.
template <class Entry>
std::vector<Entry> classes_of(const std::vector<Entry>& entries) {
  std::vector<Entry> classes;
  for (const Entry& entry : entries) {
    const auto known = std::find_if(classes.begin(), classes.end(),
                                    [&](const Entry& other) { return is_of_class(entry, other); });
    if (known == classes.end())
      classes.push_back(entry);
    else
      ++known->count;
  }
  return classes;
}

template <class Entry>
std::vector<Entry> listed(const std::vector<Entry>& entries, bool by_class) {
  std::vector<Entry> result;
  EntryList<Entry> list(result, by_class, entries.size());
  for (Entry entry : entries) {
    const std::string name = std::exchange(entry.name, {});
    list.add(name, entry);
  }
  return result;
}

}  // namespace

TEST_CASE(
    "devices and links of results are listed by classes, as comparing each with each finds them [law]") {
  std::mt19937 random(20261128);
  const auto below = [&](int n) { return std::uniform_int_distribution(0, n - 1)(random); };
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    // From one class of all to each entry apart.
    const int values = 1 << below(8), count = 1 + below(400);
    const auto figure = [&] { return below(values) / 3.0; };
    std::vector<DeviceResult> devices;
    std::vector<LinkResult> links;
    for (int k = 0; k < count; ++k) {
      DeviceResult& device = devices.emplace_back();
      device.name = fmt::format("n{}.gpu{}", k / 8, k % 8);
      for (double* number : {&device.busy_s, &device.sent_bytes, &device.received_bytes,
                             &device.peak_memory_bytes, &device.energy_j, &device.memory.back()})
        if (below(4) == 0) *number = figure();
      constexpr const char* directions[]{"up", "down"};
      links.push_back({fmt::format("n{}.{}.{}", k / 2, below(5) == 0 ? "pcie" : "nic", directions[k % 2]),
                       figure(), below(4) == 0 ? figure() : 0});
    }
    CHECK(listed(devices, true) == classes_of(devices));
    CHECK(listed(links, true) == classes_of(links));
    CHECK(listed(devices, false) == devices);
    CHECK(listed(links, false) == links);
  }
}

// SPDX-License-Identifier: MIT
#include "sim/results/classes.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <unordered_map>

namespace convoy::inline results {
namespace {

void append_bits(std::string& key, double number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string class_key(const DeviceResult& device) {
  std::string key;
  for (const double number :
       {device.busy_s, device.sent_bytes, device.received_bytes, device.peak_memory_bytes, device.energy_j})
    append_bits(key, number);
  for (const double bytes : device.memory) append_bits(key, bytes);
  return key;
}

std::string class_key(const LinkResult& link) {
  std::string key;
  for (const char c : link.name)
    if (!std::isdigit(static_cast<unsigned char>(c))) key += c;
  append_bits(key, link.bytes);
  append_bits(key, link.utilization);
  return key;
}

template <class T>
void merge(std::vector<T>& entries) {
  std::unordered_map<std::string, std::size_t> first;
  std::vector<T> classes;
  for (T& entry : entries) {
    const auto [at, fresh] = first.emplace(class_key(entry), classes.size());
    if (fresh)
      classes.push_back(std::move(entry));
    else
      classes[at->second].count += entry.count;
  }
  entries = std::move(classes);
}

}  // namespace

void merge_equal(RunResult& run) {
  merge(run.per_device);
  merge(run.per_link);
}

}  // namespace convoy::results

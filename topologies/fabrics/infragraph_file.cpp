// SPDX-License-Identifier: MIT
#include "topologies/fabrics/infragraph_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "sim/base/names.h"
#include "sim/base/yaml_map.h"

namespace convoy::inline topologies {
namespace {

constexpr std::int64_t most_of_a_kind = 100'000;
constexpr std::size_t most_edges = 200'000;

/// The value of a `choice`: `{choice: us, us: 2}`. @param units in the order of `names`
double chosen_quantity(YamlMap map, const std::vector<std::string>& names, const std::vector<double>& units) {
  const std::size_t choice = map.choice("choice", names);
  const double value = units[choice] * map.number(names[choice], 0, 1e12);
  map.finish();
  return value;
}

InfraGraphFile::Link read_infra_link(YamlMap& map) {
  // The first are those of the schema, the others of older versions of it.
  static const std::vector<std::string> rates{"gigabits_per_second",  "gigabytes_per_second",
                                              "g_bits_per_second",    "g_bytes_per_second",
                                              "giga_bits_per_second", "giga_bytes_per_second"};
  static const std::vector<double> rate_units{1e9 / 8, 1e9, 1e9 / 8, 1e9, 1e9 / 8, 1e9};
  InfraGraphFile::Link link{{}, {}, map.pos()};
  const auto read = [&](YamlMap physical) {
    if (physical.find("bandwidth"))
      link.bandwidth_Bps = chosen_quantity(physical.map("bandwidth"), rates, rate_units);
    if (physical.find("latency"))
      link.latency_s = chosen_quantity(physical.map("latency"), {"ms", "us", "ns"}, {1e-3, 1e-6, 1e-9});
  };
  if (map.find("physical")) {
    YamlMap physical = map.map("physical");
    read(physical);
  } else {
    read(map);
  }
  return link;
}

struct InfraGraphDevice {
  bool is_host = false;
  std::map<std::string, std::uint32_t> components;
};

InfraGraphDevice read_infra_device(YamlMap& map) {
  InfraGraphDevice device;
  if (!map.find("components")) return device;
  for (YamlMap& component : map.maps("components")) {
    const std::string what = component.text_or("choice", component.text_or("type", ""));
    device.is_host = device.is_host || what == "xpu" || what == "npu" || what == "gpu";
    device.components[component.text("name")] =
        static_cast<std::uint32_t>(component.integer_or("count", 1, 1, most_of_a_kind));
  }
  return device;
}

/// `name`, `name[3]`, `name[0:4]`, `name[0:8:2]`: names and Python's slices.
struct Slice {
  std::string name;
  std::vector<std::uint32_t> indices;
};

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// @param count of what is named
Slice slice_of(const YamlNode& node, const std::string& key, const std::string& text, std::string name,
               std::uint32_t count) {
  const auto fail = [&] {
    throw InputError(
        node.pos, fmt::format("{}: '{}': expected NAME, NAME[i], NAME[from:to] or NAME[from:to:step], with "
                              "indices below {}",
                              key, text, count));
  };
  Slice slice{std::move(name), {}};
  if (slice.name.size() == text.size()) {
    for (std::uint32_t i = 0; i < count; ++i) slice.indices.push_back(i);
    return slice;
  }
  if (text.back() != ']') fail();
  std::vector<std::string> parts{""};
  for (const char c : text.substr(slice.name.size() + 1, text.size() - slice.name.size() - 2))
    c == ':' ? parts.emplace_back() : parts.back() += c;
  std::vector<std::int64_t> numbers;
  const std::vector<std::int64_t> otherwise{0, count, 1};
  if (parts.size() > 3 || (parts.size() == 1 && parts[0].empty())) fail();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::optional<std::int64_t> number = parts[i].empty() ? otherwise[i] : whole(parts[i]);
    if (!number) fail();
    numbers.push_back(*number);
  }
  if (parts.size() == 1) numbers.push_back(numbers[0] + 1);
  if (parts.size() < 3) numbers.push_back(1);
  if (numbers[0] >= numbers[1] || numbers[1] > count || numbers[2] < 1) fail();
  for (std::int64_t i = numbers[0]; i < numbers[1]; i += numbers[2])
    slice.indices.push_back(static_cast<std::uint32_t>(i));
  return slice;
}

std::string name_before_bracket(const std::string& text) { return text.substr(0, text.find('[')); }

class InfraGraphReader {
 public:
  explicit InfraGraphReader(YamlMap& map) : map_(map) {}

  InfraGraphFile read() {
    file_.name = map_.text_or("name", "");
    for (const char* told : {"description", "annotations"}) map_.find(told);
    std::map<std::string, InfraGraphDevice> devices;
    for (YamlMap& device : map_.maps("devices"))
      if (!devices.emplace(device.text("name"), read_infra_device(device)).second)
        device.fail("name", "a device of this name is there already");
    for (YamlMap& link : map_.maps("links"))
      if (!file_.links.emplace(link.text("name"), read_infra_link(link)).second)
        link.fail("name", "a link of this name is there already");
    for (YamlMap& instance : map_.maps("instances")) add_instance(instance, devices);
    for (YamlMap& edge : map_.maps("edges")) add_edges(edge);
    map_.finish();
    return std::move(file_);
  }

 private:
  template <class Named>
  static const Named& known(YamlMap& map, const char* key, const std::string& name,
                            const std::map<std::string, Named>& among) {
    const auto found = among.find(name);
    if (found != among.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [each, unused] : among) names.push_back(each);
    map.fail(key,
             fmt::format("there is no '{}'{}; there are {}", name, suggestion(name, names), list_of(names)));
  }

  void add_instance(YamlMap& map, const std::map<std::string, InfraGraphDevice>& devices) {
    const std::string device = map.text("device");
    const InfraGraphDevice& of = known(map, "device", device, devices);
    const std::string name = map.text_or("name", device);
    if (!numbers_.emplace(name, file_.instances.size()).second)
      map.fail("name", "an instance of this name is there already");
    file_.instances.push_back({name,
                               static_cast<std::uint32_t>(map.integer_or("count", 1, 1, most_of_a_kind)),
                               of.is_host, of.components});
    map.find("description");
    map.finish();
  }

  std::vector<InfraGraphFile::Endpoint> endpoints(YamlMap map) {
    const char* key = map.has("instance") || !map.has("device") ? "instance" : "device";
    const std::string instance = map.text(key), component = map.text("component");
    const std::string name = name_before_bracket(instance), part = name_before_bracket(component);
    const std::size_t number = known(map, key, name, numbers_);
    const InfraGraphFile::Instance& of = file_.instances[number];
    const std::uint32_t parts = known(map, "component", part, of.components);
    const Slice devices = slice_of(map.node(key), map.path_of(key), instance, name, of.count);
    const Slice components =
        slice_of(map.node("component"), map.path_of("component"), component, part, parts);
    std::vector<InfraGraphFile::Endpoint> result;
    for (const std::uint32_t i : devices.indices)
      for (const std::uint32_t c : components.indices) result.push_back({number, i, part, c});
    map.finish();
    return result;
  }

  void add_edges(YamlMap& map) {
    const std::vector<InfraGraphFile::Endpoint> first = endpoints(map.map("ep1")),
                                                second = endpoints(map.map("ep2"));
    const std::string link = map.text("link");
    known(map, "link", link, file_.links);
    const bool all = map.has("scheme") ? map.choice("scheme", {"one2one", "many2many"}) == 1
                                       : map.flag_or("many2many", false);
    map.find("description");
    map.finish();
    if (!all && first.size() != second.size())
      map.fail(fmt::format("one2one joins as many with as many: {} with {}", first.size(), second.size()));
    if (file_.edges.size() + (all ? first.size() * second.size() : first.size()) > most_edges)
      map.fail(fmt::format("with these there are more than {} edges", most_edges));
    for (std::size_t i = 0; i < first.size(); ++i)
      for (std::size_t j = all ? 0 : i; j < (all ? second.size() : i + 1); ++j)
        file_.edges.push_back({first[i], second[j], link, map.pos()});
  }

  YamlMap& map_;
  InfraGraphFile file_;
  std::map<std::string, std::size_t> numbers_;  ///< of instances
};

}  // namespace

InfraGraphFile read_infragraph_file(const std::string& file) {
  const YamlNode tree = load_yaml(file);
  YamlMap map(tree, "");
  if (map.has("infrastructure")) {
    YamlMap inner = map.map("infrastructure");
    return InfraGraphReader(inner).read();
  }
  return InfraGraphReader(map).read();
}

}  // namespace convoy::topologies

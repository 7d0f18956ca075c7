// SPDX-License-Identifier: MIT
#include "sim/planning/plan_constraints.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/planning/plan_lists.h"
#include "topologies/catalog.h"

namespace convoy::inline planning {
namespace {

void read_budget(YamlMap& map, PlanConstraints& constraints) {
  if (!map.find("budget")) return;
  const std::string text = read_text(map.node("budget"), map.path_of("budget"));
  const std::string_view unit = "USD";
  std::optional<double> value;
  if (text.ends_with(unit)) {
    std::string_view digits = std::string_view(text).substr(0, text.size() - unit.size());
    while (digits.ends_with(' ')) digits.remove_suffix(1);
    value = parse_number(digits);
  }
  if (!value || *value <= 0) map.fail("budget", fmt::format("'{}' is no sum above 0 such as 500USD", text));
  constraints.budget_usd = *value;
}

/// "aws" of "aws-p3.2xlarge": what the names of servers begin with.
void read_providers(YamlMap& map, PlanConstraints& constraints) {
  if (!map.find("providers")) return;
  std::vector<std::string> known;
  for (const std::string& name : server_names())
    if (const std::size_t dash = name.find('-'); dash != std::string::npos)
      known.push_back(name.substr(0, dash));
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (const std::size_t i : read_choices(map, "providers", known)) constraints.providers.push_back(known[i]);
  constraints.providers_pos = map.pos("providers");
}

}  // namespace

const Keys<PlanConstraints>& constraint_keys() {
  using Limits = PlanConstraints;
  static const Keys<Limits> keys{
      optional_quantity_key<Limits>("deadline", "none", Dimension::time, true, "until training is done",
                                    &Limits::deadline_s),
      custom_key<Limits>("budget", "none", forms::text("a sum such as 500USD"), "what it may cost",
                         &read_budget),
      optional_integer_key<Limits>("max_devices", "none", 1, YamlMap::max_integer, "devices at most",
                                   &Limits::max_devices),
      optional_integer_key<Limits>("max_global_batch", "none", 1, YamlMap::max_integer,
                                   "images of all devices and step at most", &Limits::max_global_batch),
      share_key<Limits>("memory", "100%", true, "of a device's memory that may be used", &Limits::memory),
      custom_key<Limits>("providers", "all of them",
                         forms::list(forms::text("a provider"), "a list such as [aws, gcp]", 1),
                         "what servers' names begin with", &read_providers)};
  return keys;
}

}  // namespace convoy::planning

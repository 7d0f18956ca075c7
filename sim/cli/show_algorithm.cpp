// SPDX-License-Identifier: MIT
#include "sim/cli/show_algorithm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <utility>

#include "sim/base/data_path.h"
#include "sim/base/input_error.h"
#include "sim/base/names.h"
#include "sim/collectives/schedule.h"
#include "sim/collectives/table.h"
#include "sim/collectives/write_schedule.h"
#include "sim/results/json_writer.h"

namespace convoy::inline cli {
namespace {

/// Algorithms and the files that do the same, where every device is as near to every other of its host.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> shipped{
    {{"ring", "ring.yaml"},
     {"tree", "tree.yaml"},
     {"halving_doubling", "halving_doubling.yaml"},
     {"hierarchical", "torus.yaml"}}};

std::string_view file_of(std::string_view name) {
  for (const auto& [algorithm, file] : shipped)
    if (algorithm == name) return file;
  return {};
}

/// @param schedule "": its rounds depend on the machine and the bytes
void print_algorithm(std::ostream& out, const ShowArguments& arguments, const std::string& schedule) {
  if (arguments.json) {
    JsonWriter json(out);
    json.begin_object();
    json.field("name", arguments.name);
    json.field("schedule", schedule);
    json.end_object();
    json.raw("\n");
  } else if (schedule.empty()) {
    out << fmt::format(
        "{}: {}; its rounds depend on the machine and the bytes, so that it is not written as a "
        "schedule\n",
        arguments.name, algorithm_line(arguments.name));
  } else {
    out << schedule;
  }
}

}  // namespace

std::vector<std::string> algorithm_names() { return all_reduce_algorithm_names(); }

std::string algorithm_line(const std::string& name) {
  const std::vector<std::string>& names = all_reduce_algorithm_names();
  const auto& row = collective_table()[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) -
                                                                names.begin())];
  const std::string_view file = file_of(name);
  return fmt::format("{}{}", row.half ? "all-reduce, reduce-scatter and all-gather" : "all-reduce",
                     file.empty() ? "" : fmt::format("; as a schedule: configs/collectives/{}", file));
}

void show_algorithm(std::ostream& out, const ShowArguments& arguments) {
  const SourcePos pos{"show algorithms", 1, 1};
  std::string file = arguments.name;
  if (!file.ends_with(".yaml") && !file.ends_with(".yml") && !file.ends_with(".xml")) {
    const std::vector<std::string> names = algorithm_names();
    if (std::find(names.begin(), names.end(), file) == names.end())
      throw InputError(pos, fmt::format("unknown algorithm '{}'{}; there are {}, and files of schedules",
                                        file, suggestion(file, names), list_of(names)));
    if (file_of(file).empty()) return print_algorithm(out, arguments, "");
    file = data_path("configs") + fmt::format("/collectives/{}", file_of(file));
  }
  const auto ranks = static_cast<std::uint32_t>(arguments.ranks);
  const auto per_host = static_cast<std::uint32_t>(arguments.ranks_per_host);
  if (ranks % per_host != 0)
    throw InputError(pos, fmt::format("--ranks {} is no multiple of --ranks-per-host {}", ranks, per_host));
  print_algorithm(out, arguments,
                  listed_schedule(*SumSchedule::load(file), {ranks, ranks / per_host, per_host}));
}

}  // namespace convoy::cli

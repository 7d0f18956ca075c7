// SPDX-License-Identifier: MIT
#include "sim/cli/show_framework.h"

#include <fmt/format.h>

#include <ostream>

#include "sim/cli/show_grades.h"
#include "sim/results/json_writer.h"
#include "strategies/framework_habits.h"

namespace convoy::inline cli {
namespace {

FrameworkHabit habit_to_show(const std::string& name) { return load_habit(name, {"show frameworks", 1, 1}); }

}  // namespace

std::vector<std::string> framework_names() { return habit_names(); }

std::string framework_line(const std::string& name) { return habit_to_show(name).title; }

void show_framework(std::ostream& out, const ShowArguments& arguments) {
  const FrameworkHabit habit = habit_to_show(arguments.name);
  if (!arguments.json) {
    out << fmt::format("{}: {}\n", arguments.name, habit.title);
    for (const auto& [key, value] : habit.keys) out << fmt::format("  {:<17}  {}\n", key, value);
    print_sources(out, habit.sources);
    return;
  }
  JsonWriter json(out);
  json.begin_object();
  json.field("name", arguments.name);
  json.field("title", habit.title);
  json.key("strategy");
  json.begin_object();
  for (const auto& [key, value] : habit.keys) json.field(key.c_str(), value);
  json.end_object();
  write_grades(json, habit.sources);
  json.end_object();
  json.raw("\n");
}

}  // namespace convoy::cli

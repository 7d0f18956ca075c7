// SPDX-License-Identifier: MIT
// Arguments that several commands have, and what may stand for their values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "sim/base/clean_text.h"
#include "sim/base/names.h"
#include "sim/cli/command_line.h"
#include "sim/cli/completion.h"
#include "sim/run/workers.h"

namespace convoy::inline cli {
namespace {

/// Takes one of the names; says which is the nearest where it is none.
CLI::Validator one_of(std::vector<std::string> names) {
  return {[names = std::move(names)](const std::string& value) -> std::string {
            if (std::find(names.begin(), names.end(), value) != names.end()) return {};
            return fmt::format("there is no '{}'{}; there are {}", excerpt(value), suggestion(value, names),
                               list_of(names));
          },
          ""};
}

/// Takes any text but the empty one, with which a script passes a variable that is not set.
CLI::Validator not_empty(const char* what) {
  return {[what](const std::string& value) -> std::string {
            return value.empty() ? fmt::format("is empty; give the name of a {}", what) : std::string{};
          },
          ""};
}

CLI::Option* takes(CLI::Option* option, const char* value) {
  return option->nonpositional() ? option->type_name(value) : option;
}

}  // namespace

void CommandLine::add_examples(CLI::App* of, std::vector<ExampleText> examples) {
  std::string text = "Examples:";
  for (const ExampleText& example : examples)
    text += fmt::format("\n  {}\n      {}", example.command, example.meaning);
  of->footer(text);
  examples_[of] = std::move(examples);
}

ArgumentValues::Names CommandLine::names_of(const std::string& subject) {
  return [subject](const std::vector<std::string>&, const std::string&) { return names_to_show(subject); };
}

ArgumentValues::Names CommandLine::fixed(std::vector<std::string> names) {
  return [names = std::move(names)](const std::vector<std::string>&, const std::string&) { return names; };
}

CLI::Option* CommandLine::takes_file(CLI::Option* option) {
  values_[option].files = true;
  return takes(option->check(not_empty("file")), "FILE");
}

CLI::Option* CommandLine::takes_folder(CLI::Option* option) {
  values_[option].folders = true;
  return takes(option->check(not_empty("folder")), "DIR");
}

CLI::Option* CommandLine::chooses(CLI::Option* option, const std::vector<std::string>& names) {
  values_[option].names = fixed(names);
  return option->check(one_of(names))->type_name(fmt::format("{}", fmt::join(names, "|")));
}

CLI::Option* CommandLine::offers(CLI::Option* option, const char* value, ArgumentValues::Names names) {
  values_[option].names = std::move(names);
  return takes(option, value);
}

void CommandLine::add_file(CLI::App* sub, std::string& file, const char* what) {
  takes_file(sub->add_option("FILE", file, what))->required();
}

void CommandLine::add_settings(CLI::App* sub, std::vector<std::string>& settings, const char* section) {
  CLI::Option* option = sub->add_option("--set", settings, "replace a value of the file (several times)")
                            ->expected(1)
                            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                            ->allow_extra_args(false);
  offers(option, "KEY.PATH=VALUE", [section](const std::vector<std::string>&, const std::string& word) {
    return setting_candidates(section, word);
  });
}

void CommandLine::add_jobs(CLI::App* sub, std::size_t& jobs) {
  jobs = all_cores();
  sub->add_option("--jobs", jobs, "processes at a time, 1 to 4096 (default: all cores)")
      ->check(CLI::Range(1, 4096).description(""))
      ->type_name("N");
}

void CommandLine::add_progress(CLI::App* sub, Progress::Style& style) {
  const auto choose = [&style](const std::string& name) {
    style = name == "plain"  ? Progress::Style::plain
            : name == "none" ? Progress::Style::none
                             : Progress::Style::automatic;
  };
  chooses(sub->add_option_function<std::string>(
              "--progress", choose, "auto (default): on a terminal; plain: a line a minute; none"),
          {"auto", "plain", "none"});
}

}  // namespace convoy::cli

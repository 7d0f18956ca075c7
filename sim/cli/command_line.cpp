// SPDX-License-Identifier: MIT
#include "sim/cli/command_line.h"

#include <fmt/format.h>

#include <utility>

#include "sim/cli/manual.h"
#include "sim/replay/engine.h"
#include "sim/run/manifest.h"
#include "sim/run/output_folder.h"

namespace convoy::inline cli {

CommandLine::CommandLine() {
  app.require_subcommand(1);
  app.set_version_flag("--version", [] {
    return fmt::format("convoy {} (SimGrid {})", version(), Engine::simgrid_version());
  });
  add_run();
  add_check();
  add_plan();
  add_study();
  add_show();
  add_calibrate();
  add_reproduce();
  add_validate();
  add_doctor();
  add_diagnose();
  add_from_torch();
  add_report();
  add_compare();
  add_merge();
  add_partition();
  add_manual();
  add_examples(&app, {{"convoy run lab.yaml", "simulate an experiment"},
                      {"convoy show devices", "what there is to write into one"},
                      {"convoy run --help", "options and examples of a command"}});
  std::string codes;
  for (const auto& [code, meaning] : exit_code_texts)
    codes += fmt::format("{}{} {}", codes.empty() ? "" : ", ", code, meaning);
  app.footer(fmt::format("{}\n\nExit codes: {}.", app.get_footer(), codes));
}

std::vector<const CLI::App*> CommandLine::commands() const {
  return app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

std::vector<CommandText> CommandLine::texts() const {
  std::vector<CommandText> texts{text_of(app, "")};
  for (const CLI::App* sub : commands()) texts.push_back(text_of(*sub, sub->get_name()));
  return texts;
}

CommandText CommandLine::text_of(const CLI::App& of, const std::string& name) const {
  CommandText text{name, of.get_description(), {}, {}, examples_.at(&of)};
  for (const CLI::Option* option : of.get_options()) {
    ArgumentText argument;
    const bool positional = option->get_positional();
    argument.name = positional ? option->get_name() : "--" + option->get_lnames().front();
    if (!positional && option->get_items_expected_max() > 0) argument.value = option->get_type_name();
    argument.meaning = option->get_description();
    argument.required = option->get_required();
    argument.repeated = option->get_items_expected_max() > 1;
    if (const auto found = values_.find(option); found != values_.end()) argument.values = found->second;
    (positional ? text.arguments : text.options).push_back(std::move(argument));
  }
  return text;
}

void CommandLine::add_manual() {
  CLI::App* sub = app.add_subcommand("manual", "write the manual pages into a folder")->group("");
  sub->add_option("DIR", manual, "folder that exists")->required();
  sub->callback([this] {
    command = [this] {
      for (const ManualPage& page : manual_pages(texts()))
        write_file(manual + '/' + page.file, [&](std::ostream& out) { out << page.text; });
      return Exit::done;
    };
  });
}

std::vector<CommandText> command_texts() { return CommandLine().texts(); }

}  // namespace convoy::cli

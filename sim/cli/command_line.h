// SPDX-License-Identifier: MIT
// Includes CLI11, which is slow to compile.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/cli/command_texts.h"
#include "sim/cli/commands.h"

namespace convoy::inline cli {

/// The sub-commands and their arguments; `command` is what the command line chose. The commands are added in
/// command_line_*.cpp, with arguments of command_arguments.cpp.
struct CommandLine {
  CLI::App app{"Simulates distributed training of convolutional networks.", "convoy"};
  std::function<Exit()> command;
  RunArguments run;
  CheckArguments check;
  PlanArguments plan;
  StudyArguments study;
  ShowArguments show;
  CalibrateArguments calibrate;
  ReproduceArguments reproduce;
  ValidateArguments validate;
  DoctorArguments doctor;
  DiagnoseArguments diagnose;
  FromTorchArguments from_torch;
  ReportArguments report;
  CompareArguments compare;
  MergeArguments merge;
  PartitionArguments partition;
  std::string manual;  ///< folder that the manual pages are written to

  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Those that people use, without what shells and packages call.
  std::vector<const CLI::App*> commands() const;
  /// The same as plain values, behind the program itself.
  std::vector<CommandText> texts() const;

 private:
  void add_run();
  void add_check();
  void add_plan();
  void add_study();
  void add_show();
  void add_calibrate();
  void add_reproduce();
  void add_validate();
  void add_doctor();
  void add_diagnose();
  void add_from_torch();
  void add_report();
  void add_compare();
  void add_merge();
  void add_partition();
  void add_manual();

  void add_file(CLI::App* sub, std::string& file, const char* what = "experiment (YAML)");
  void add_settings(CLI::App* sub, std::vector<std::string>& settings, const char* section = "experiment");
  static void add_jobs(CLI::App* sub, std::size_t& jobs);
  void add_progress(CLI::App* sub, Progress::Style& style);

  // What stands for an argument's value, in help and for completion.
  static ArgumentValues::Names names_of(const std::string& subject);  ///< of `convoy show`
  static ArgumentValues::Names fixed(std::vector<std::string> names);
  CLI::Option* takes_file(CLI::Option* option);
  CLI::Option* takes_folder(CLI::Option* option);
  /// Refuses what is not one of the names.
  CLI::Option* chooses(CLI::Option* option, const std::vector<std::string>& names);
  CLI::Option* offers(CLI::Option* option, const char* value, ArgumentValues::Names names);

  void add_examples(CLI::App* of, std::vector<ExampleText> examples);

  CommandText text_of(const CLI::App& of, const std::string& name) const;

  std::map<const CLI::Option*, ArgumentValues> values_;
  std::map<const CLI::App*, std::vector<ExampleText>> examples_;
};

}  // namespace convoy::cli

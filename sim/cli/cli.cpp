// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <new>
#include <ostream>
#include <string_view>

#include "sim/base/clean_text.h"
#include "sim/base/input_error.h"
#include "sim/base/names.h"
#include "sim/cli/command_line.h"
#include "sim/cli/completion.h"
#include "sim/cli/tell.h"
#include "sim/run/out_of_resources.h"
#include "sim/run/output_folder.h"

namespace convoy::inline cli {
namespace {

void complain(const std::string& message) {
  std::string line = message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  tell("{}\n", clean(line));
}

/// What is wrong with the first argument where it stands in the place of a command and is none; else "".
std::string unknown_command(const CommandLine& line, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  for (const CLI::App* command : line.app.get_subcommands([](const CLI::App*) { return true; }))
    if (command->get_name() == argv[1]) return {};
  std::vector<std::string> names;
  for (const CLI::App* command : line.commands()) names.push_back(command->get_name());
  return fmt::format("there is no command '{}'{}; commands are {}", excerpt(argv[1]),
                     suggestion(argv[1], names), list_of(names));
}

/// What is wrong where the chosen command has no such option; else "". CLI11 looks at values first, among
/// them that of the option that there is not.
std::string unknown_option(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands())
    for (const std::string& argument : command->remaining()) {
      if (!argument.starts_with("--") || argument == "--") continue;
      const std::string name = argument.substr(0, argument.find('='));
      std::vector<std::string> names;
      for (const CLI::Option* option : command->get_options())
        for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
      return fmt::format("`convoy {}` has no option '{}'{}; it has {}", command->get_name(), excerpt(name),
                         suggestion(name, names), list_of(names));
    }
  return {};
}

/// Keeps up to 1 GiB of freed memory for what is computed next. Otherwise lists of more than 32 MiB go back to the
/// kernel at once, which clears the pages of those that follow: a fifth of the CPU time of a ring of a million hosts.
void keep_freed_memory() {
  constexpr int kept_bytes = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, kept_bytes);
  ::mallopt(M_TRIM_THRESHOLD, kept_bytes);
}

}  // namespace

Exit convoy_main(int argc, char** argv) {
  open_standard_streams();
  keep_freed_memory();
  // A closed pipe, or a file that may not grow, is an error of the write, with a message.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  try {
    CommandLine line;
    if (argc > 2 && std::string_view(argv[1]) == "complete") {  // its words are no arguments of ours
      write_stdout([&](std::ostream& out) {
        for (const std::string& candidate : completions(line.texts(), {argv + 2, argv + argc}))
          out << candidate << '\n';
      });
      return Exit::done;
    }
    if (const std::string wrong = unknown_command(line, argc, argv); !wrong.empty()) {
      complain(fmt::format("convoy: {} (convoy --help says more)", wrong));
      return Exit::bad_input;
    }
    try {
      line.app.parse(argc, argv);
    } catch (const CLI::Success& wanted) {  // --help, --version
      write_stdout([&](std::ostream& out) { line.app.exit(wanted, out, out); });
      return Exit::done;
    } catch (const CLI::ParseError& error) {
      const std::string wrong = unknown_option(line.app);
      complain(fmt::format("convoy: {} (convoy --help says more)", wrong.empty() ? error.what() : wrong));
      return Exit::bad_input;
    }
    return line.command();
  } catch (const InputError& error) {
    complain(error.what());
    return Exit::bad_input;
  } catch (const OutputError& error) {
    complain(fmt::format("convoy: {}", error.what()));
    return Exit::bad_input;
  } catch (const OutOfResources& error) {
    complain(fmt::format("convoy: {}", error.what()));
    return Exit::out_of_resources;
  } catch (const std::bad_alloc&) {
    complain("convoy: out of memory");
    return Exit::out_of_resources;
  } catch (const std::filesystem::filesystem_error& error) {  // too few descriptors, a catalogue that is gone
    const std::string place = error.path1().string();
    complain(fmt::format("convoy: {}{}{}", place, place.empty() ? "" : ": ", error.code().message()));
    return Exit::out_of_resources;
  } catch (const std::exception& error) {
    complain(fmt::format("convoy: internal error: {}", error.what()));
    return Exit::bug;
  }
}

}  // namespace convoy::cli

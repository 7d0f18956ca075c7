// SPDX-License-Identifier: MIT
#include "sim/cli/manual.h"

#include <fmt/format.h>

#include <string_view>

#include "sim/cli/show_keys.h"
#include "sim/run/manifest.h"

namespace convoy::inline cli {
namespace {

/// Text as roff prints it: hyphens as they are typed, no line a request.
std::string plain(std::string_view text) {
  std::string result;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) result += "\\&";
    line_begins = c == '\n';
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", plain(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", plain(text)); }

/// @param section "1"
std::string head(const std::string& name, const char* section, const std::string& summary) {
  std::string title = name;
  for (char& c : title)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return fmt::format(".TH {} {} \"\" \"convoy {}\" \"convoy\"\n.SH NAME\n{} \\- {}\n", plain(title), section,
                     version(), plain(name), plain(summary));
}

std::string item(const std::string& label, std::string_view text) {
  return fmt::format(".TP\n{}\n{}\n", label, plain(text));
}

std::string argument_items(const char* title, const std::vector<ArgumentText>& arguments) {
  if (arguments.empty()) return {};
  std::string text = fmt::format(".SH {}\n", title);
  for (const ArgumentText& argument : arguments) {
    std::string label = argument.name.starts_with('-') ? bold(argument.name) : italic(argument.name);
    if (!argument.value.empty()) label += ' ' + italic(argument.value);
    text += item(label, argument.meaning);
  }
  return text;
}

/// "convoy run [OPTION]... FILE"
std::string synopsis(const CommandText& command) {
  std::string text =
      fmt::format(".SH SYNOPSIS\n{} [{}]...", bold("convoy " + command.name), italic("OPTION"));
  for (const ArgumentText& argument : command.arguments)
    text += fmt::format(" {}{}{}{}", argument.required ? "" : "[", italic(argument.name),
                        argument.required ? "" : "]", argument.repeated ? "..." : "");
  for (const ArgumentText& option : command.options)
    if (option.required) text += fmt::format(" {} {}", bold(option.name), italic(option.value));
  return text + '\n';
}

std::string example_items(const std::vector<ExampleText>& examples) {
  if (examples.empty()) return {};
  std::string text = ".SH EXAMPLES\n";
  for (const ExampleText& example : examples) text += item(bold(example.command), example.meaning);
  return text;
}

std::string exit_codes() {
  std::string text = ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : exit_code_texts) text += item(bold(code), meaning);
  return text;
}

/// @param pages "convoy(1)", without that of `self`
std::string see_also(const std::vector<std::string>& pages, const std::string& self) {
  std::string text;
  for (const std::string& page : pages)
    if (page != self)
      text += fmt::format("{}{}{}", text.empty() ? "" : ",\n", bold(page.substr(0, page.size() - 3)),
                          page.substr(page.size() - 3));
  return ".SH SEE ALSO\n" + text + '\n';
}

std::string program_page(const CommandText& program, const std::vector<CommandText>& commands) {
  std::string text = head("convoy", "1", "simulate distributed training of convolutional networks");
  text += fmt::format(".SH SYNOPSIS\n{} {} [{}]... [{}]...\n.SH DESCRIPTION\n{}\n", bold("convoy"),
                      italic("COMMAND"), italic("OPTION"), italic("ARGUMENT"), plain(program.summary));
  text +=
      "An experiment is a YAML file that describes a network, a cluster and a parallel strategy, whose keys "
      "are\n"
      "listed in \\fBconvoy\\fR(5). Each command has a page of its own.\n.SH COMMANDS\n";
  for (const CommandText& command : commands)
    if (!command.name.empty())
      text += item(fmt::format("{}(1)", bold("convoy-" + command.name)), command.summary);
  text += argument_items("OPTIONS", program.options) + exit_codes() + ".SH FILES\n";
  text +=
      item(italic("~/.config/convoy/catalog"),
           "devices, servers and clusters of your own ($XDG_CONFIG_HOME/convoy/catalog where that is set)");
  return text + example_items(program.examples);
}

/// One key a paragraph; keys of mappings by their paths.
std::string key_items(const std::vector<KeyText>& keys) {
  std::string text;
  for (const KeyText& key : by_path(keys))
    text += item(fmt::format("{}: {}", bold(key.name), plain(key.values)), key.meaning);
  return text;
}

std::string keys_page() {
  std::string text = head("convoy", "5", "keys of convoy's experiments, plans, models and clusters");
  text +=
      ".SH DESCRIPTION\nThe files are YAML. Quantities carry units: 25MiB, 10Gbps, 12GB/s, 25us, 300W. Of "
      "the "
      "values\nthat a key may have, its default comes first.\n";
  for (const std::string& name : key_section_names()) {
    const KeySection& section = key_section(name);
    text += fmt::format(".SH {}\n{}\n{}", plain(name), plain(section.summary), key_items(section.keys));
  }
  text += ".SH strategies\n";
  for (const KeySection& kind : key_section("strategy").variants)
    text += fmt::format(".SS kind: {}\n{}\n{}", plain(kind.name), plain(kind.summary), key_items(kind.keys));
  return text;
}

}  // namespace

std::vector<ManualPage> manual_pages(const std::vector<CommandText>& commands) {
  std::vector<std::string> all{"convoy(1)", "convoy(5)"};
  for (const CommandText& command : commands)
    if (!command.name.empty()) all.push_back(fmt::format("convoy-{}(1)", command.name));
  const std::vector<std::string> main_pages{"convoy(1)", "convoy(5)"};
  std::vector<ManualPage> pages;
  for (const CommandText& command : commands) {
    if (command.name.empty()) {
      pages.push_back({"convoy.1", program_page(command, commands) + see_also(all, "convoy(1)")});
      continue;
    }
    const std::string name = "convoy-" + command.name;
    pages.push_back({name + ".1", head(name, "1", command.summary) + synopsis(command) +
                                      argument_items("ARGUMENTS", command.arguments) +
                                      argument_items("OPTIONS", command.options) +
                                      example_items(command.examples) + exit_codes() +
                                      see_also(main_pages, "")});
  }
  pages.push_back({"convoy.5", keys_page() + see_also(all, "convoy(5)")});
  return pages;
}

}  // namespace convoy::cli

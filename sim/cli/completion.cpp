// SPDX-License-Identifier: MIT
#include "sim/cli/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/cli/commands.h"
#include "sim/cli/show_keys.h"

namespace convoy::inline cli {
namespace {

using Words = std::vector<std::string>;

const CommandText* command_named(const std::vector<CommandText>& commands, const std::string& name) {
  for (const CommandText& command : commands)
    if (command.name == name) return &command;
  return nullptr;
}

const ArgumentText* option_named(const CommandText& command, const std::string& name) {
  for (const ArgumentText& option : command.options)
    if (option.name == name) return &option;
  return nullptr;
}

/// Candidates for a value. @param head what stands before it in the same word, "--device="
Words of_values(const ArgumentValues& values, const Words& before, const std::string& word,
                const std::string& head) {
  Words lines;
  if (values.names)
    for (const std::string& name : values.names(before, word))
      if (name.starts_with(word)) lines.push_back(head + name);
  if (values.files && head.empty()) lines.emplace_back(":files");
  if (values.folders && head.empty()) lines.emplace_back(":folders");
  return lines;
}

Words of_texts(const std::vector<ArgumentText>& options, const std::string& word) {
  Words lines;
  for (const ArgumentText& option : options)
    if (option.name.starts_with(word)) lines.push_back(option.name + '\t' + option.meaning);
  return lines;
}

Words of_program(const std::vector<CommandText>& commands, const std::string& word) {
  Words lines;
  for (const CommandText& command : commands) {
    if (command.name.empty() && word.starts_with('-'))
      for (std::string& line : of_texts(command.options, word)) lines.push_back(std::move(line));
    if (!command.name.empty() && command.name.starts_with(word))
      lines.push_back(command.name + '\t' + command.summary);
  }
  return lines;
}

/// The keys that the value of a key may have.
void add_keys(const ValueForm& form, std::vector<KeyText>& keys) {
  if (form.kind == ValueForm::Kind::section)
    if (const KeySection* section = find_key_section(form.section))
      keys.insert(keys.end(), section->keys.begin(), section->keys.end());
  if (form.kind == ValueForm::Kind::either)
    for (const ValueForm& inner : form.inner) add_keys(inner, keys);
}

std::vector<KeyText> keys_below(const KeyText& key) {
  std::vector<KeyText> keys = key.parts;
  if (keys.empty()) add_keys(key.form, keys);
  return keys;
}

/// Whether something but a mapping may be the key's value.
bool takes_scalar(const ValueForm& form) {
  using Kind = ValueForm::Kind;
  if (form.kind == Kind::either) return std::any_of(form.inner.begin(), form.inner.end(), takes_scalar);
  return form.kind != Kind::section && form.kind != Kind::parts && form.kind != Kind::before &&
         form.kind != Kind::entries;
}

void add_names(const ValueForm& form, Words& names) {
  using Kind = ValueForm::Kind;
  if (form.kind == Kind::name) names.insert(names.end(), form.names.begin(), form.names.end());
  if (form.kind == Kind::text && !form.section.empty())
    for (std::string& name : names_to_show(form.section)) names.push_back(std::move(name));
  if (form.kind == Kind::either)
    for (const ValueForm& inner : form.inner) add_names(inner, names);
}

}  // namespace

std::vector<std::string> setting_candidates(const std::string& section, const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string path = word.substr(0, equals);
  std::vector<KeyText> keys = key_section(section).keys;
  std::size_t begin = 0;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
    const KeyText* key = find_key(keys, path.substr(begin, dot - begin));
    if (!key) return {};
    keys = keys_below(*key);
    begin = dot + 1;
  }
  Words lines;
  if (equals == std::string::npos) {
    for (const KeyText& key : keys) {
      const std::string whole = path.substr(0, begin) + key.name;
      if (takes_scalar(key.form)) lines.push_back(whole + '=');
      if (!keys_below(key).empty()) lines.push_back(whole + '.');
    }
    return lines;
  }
  if (const KeyText* key = find_key(keys, path.substr(begin))) {
    add_names(key->form, lines);
    for (std::string& line : lines) line.insert(0, path + '=');
  }
  return lines;
}

std::vector<std::string> completions(const std::vector<CommandText>& commands,
                                     const std::vector<std::string>& words) {
  if (words.empty()) return {};
  const std::string& word = words.back();
  if (words.size() == 1) return of_program(commands, word);
  const CommandText* command = command_named(commands, words.front());
  if (!command || command->name.empty()) return {};
  Words before;
  const ArgumentText* awaits = nullptr;  ///< option whose value the next word is
  bool only_arguments = false;           ///< behind "--"
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (awaits) {
      awaits = nullptr;
    } else if (!only_arguments && words[i] == "--") {
      only_arguments = true;
    } else if (!only_arguments && words[i].starts_with("--")) {
      awaits = option_named(*command, words[i]);
      if (awaits && awaits->value.empty()) awaits = nullptr;
    } else {
      before.push_back(words[i]);
    }
  }
  if (awaits) return of_values(awaits->values, before, word, "");
  if (!only_arguments && word.starts_with('-')) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return of_texts(command->options, word);
    const ArgumentText* option = option_named(*command, word.substr(0, equals));
    if (!option) return {};
    return of_values(option->values, before, word.substr(equals + 1), word.substr(0, equals + 1));
  }
  const std::vector<ArgumentText>& arguments = command->arguments;
  if (arguments.empty()) return {};
  const std::size_t place = std::min(before.size(), arguments.size() - 1);
  if (before.size() >= arguments.size() && !arguments[place].repeated) return {};
  return of_values(arguments[place].values, before, word, "");
}

}  // namespace convoy::cli

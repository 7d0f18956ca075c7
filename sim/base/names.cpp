// SPDX-License-Identifier: MIT
#include "sim/base/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "sim/base/spellings.h"

namespace convoy::inline base {
namespace {

/// Levenshtein distance, case-insensitive. Wagner & Fischer, J. ACM 21(1), 1974.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = std::tolower(static_cast<unsigned char>(a[i - 1])) ==
                        std::tolower(static_cast<unsigned char>(b[j - 1]));
      const std::size_t change = diagonal + (same ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

using Words = std::vector<std::string>;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Runs of letters and runs of digits in lower case: "GTX-1080Ti" is gtx, 1080, ti.
Words words_of(std::string_view text) {
  const auto kind = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isdigit(byte) ? 1 : std::isalpha(byte) ? 2 : 0;
  };
  Words words;
  int before = 0;
  for (const char c : text) {
    if (kind(c) != 0 && kind(c) != before) words.emplace_back();
    if (kind(c) != 0) words.back() += lower(c);
    before = kind(c);
  }
  return words;
}

std::string joined(const Words& words) { return fmt::format("{}", fmt::join(words, "")); }

bool is_part_of(const Words& part, const Words& whole) {
  return std::search(whole.begin(), whole.end(), part.begin(), part.end()) != whole.end();
}

/// Words of the field that are no spelling of a name here, without separators, and the names that they may
/// mean.
struct Alias {
  std::string_view words;
  std::array<std::string_view, 2> names;
};
constexpr std::array aliases{
    Alias{"ddp", {"data_parallel"}},
    Alias{"dp", {"data_parallel"}},
    Alias{"distributeddataparallel", {"data_parallel"}},
    Alias{"horovod", {"data_parallel"}},
    Alias{"ps", {"parameter_server"}},
    Alias{"amp", {"fp16", "bf16"}},
    Alias{"mixed", {"fp16", "bf16"}},
    Alias{"half", {"fp16"}},
    Alias{"float16", {"fp16"}},
    Alias{"bfloat16", {"bf16"}},
    Alias{"float32", {"fp32"}},
    Alias{"single", {"fp32"}},
    Alias{"tensorfloat32", {"tf32"}},
    Alias{"torch", {"pytorch"}},
    Alias{"tf", {"tensorflow"}},
    Alias{"channelsfirst", {"nchw"}},
    Alias{"channelslast", {"nhwc"}},
    Alias{"torchcompile", {"compiled"}},
    Alias{"xla", {"compiled"}},
    Alias{"cudagraphs", {"graph"}},
    Alias{"batchsize", {"batch_per_device", "global_batch"}},
    Alias{"batch", {"batch_per_device", "global_batch"}},
    Alias{"lr", {"learning_rate"}},
    Alias{"gradaccumulation", {"micro_batches"}},
    Alias{"gpus", {"devices", "devices_per_node"}},
    Alias{"dtype", {"precision"}},
    // timm's names, of networks that the zoo has by torchvision's and their papers' names
    Alias{"vittinypatch16224", {"deit_tiny"}},
    Alias{"vitsmallpatch16224", {"deit_small"}},
    Alias{"vitbasepatch16224", {"vit_b_16"}},
    Alias{"vitbasepatch32224", {"vit_b_32"}},
    Alias{"vitlargepatch16224", {"vit_l_16"}},
    Alias{"vitlargepatch32224", {"vit_l_32"}},
    Alias{"vithugepatch14224", {"vit_h_14"}},
    Alias{"deittinypatch16224", {"deit_tiny"}},
    Alias{"deitsmallpatch16224", {"deit_small"}},
    Alias{"deitbasepatch16224", {"deit_base"}},
    Alias{"swintinypatch4window7224", {"swin_t"}},
    Alias{"swinsmallpatch4window7224", {"swin_s"}},
    Alias{"swinbasepatch4window7224", {"swin_b"}},
    Alias{"swinlargepatch4window7224", {"swin_l"}},
    Alias{"swinv2tinywindow8256", {"swin_v2_t"}},
    Alias{"swinv2smallwindow8256", {"swin_v2_s"}},
    Alias{"swinv2basewindow8256", {"swin_v2_b"}},
    Alias{"vitsmallpatch32224", {"vit_s_32"}},
    Alias{"vitbasepatch8224", {"vit_b_8"}},
    Alias{"vitlargepatch14224", {"vit_l_14"}},
    Alias{"vitgiantpatch14224", {"vit_g_14"}},
    Alias{"deit3smallpatch16224", {"deit3_small"}},
    Alias{"deit3basepatch16224", {"deit3_base"}},
    Alias{"deit3largepatch16224", {"deit3_large"}},
    Alias{"mixers16224", {"mixer_s_16"}},
    Alias{"mixers32224", {"mixer_s_32"}},
    Alias{"mixerb16224", {"mixer_b_16"}},
    Alias{"mixerb32224", {"mixer_b_32"}},
    Alias{"mixerl16224", {"mixer_l_16"}},
    Alias{"mixerl32224", {"mixer_l_32"}},
    Alias{"resnetv250", {"resnet50_v2"}},
    Alias{"resnetv2101", {"resnet101_v2"}},
    Alias{"resnetv2152", {"resnet152_v2"}},
    // and GluonCV's
    Alias{"resnet50v1c", {"resnet50c"}},
    Alias{"resnet101v1c", {"resnet101c"}},
    Alias{"resnet152v1c", {"resnet152c"}},
    Alias{"resnet50v1d", {"resnet50d"}},
    Alias{"resnet101v1d", {"resnet101d"}},
    Alias{"resnet152v1d", {"resnet152d"}},
    Alias{"mobilenet10", {"mobilenet_v1"}},
};

/// What is a mapping here where others have one word.
struct Paraphrase {
  std::string_view words, name, text;
};
constexpr std::array paraphrases{
    Paraphrase{"fsdp", "data_parallel", "kind: data_parallel with zero: 3"},
    Paraphrase{"zero", "data_parallel", "kind: data_parallel with zero: 1, 2 or 3"},
    Paraphrase{"deepspeed", "data_parallel", "kind: data_parallel with zero: 1, 2 or 3"},
};

/// What makers put before the names of their products.
constexpr std::array<std::string_view, 5> makers_words{"nvidia", "tesla", "geforce", "gpu", "standard"};

std::vector<std::string> meanings_of(const Words& words, std::span<const std::string> known) {
  constexpr std::size_t least_part = 3;  // letters and digits: of fewer nearly anything is a part
  const std::string written = joined(words);
  std::vector<std::string> equal, larger;
  for (const std::string& name : known) {
    const Words of_name = words_of(name);
    if (joined(of_name) == written) equal.push_back(name);
    if (written.size() >= least_part && is_part_of(words, of_name)) larger.push_back(name);
  }
  return equal.empty() ? larger : equal;
}

}  // namespace

std::vector<std::string> meanings(std::string_view written, std::span<const std::string> known) {
  constexpr std::size_t longest = 64;
  if (std::find(known.begin(), known.end(), written) != known.end()) return {std::string(written)};
  Words words = words_of(written);
  if (words.empty() || written.size() > longest) return {};
  std::vector<std::string> found;
  for (const Alias& alias : aliases)
    if (alias.words == joined(words))
      for (const std::string_view name : alias.names)
        if (!name.empty() && std::find(known.begin(), known.end(), name) != known.end())
          found.emplace_back(name);
  if (found.empty()) found = meanings_of(words, known);
  if (!found.empty()) return found;
  std::erase_if(words, [](const std::string& word) {
    return std::find(makers_words.begin(), makers_words.end(), word) != makers_words.end();
  });
  return words.empty() ? found : meanings_of(words, known);
}

std::string meant(std::string_view written, std::span<const std::string> known) {
  const std::vector<std::string> names = meanings(written, known);
  return names.size() == 1 ? names.front() : std::string(written);
}

std::string any_capitals(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    pattern += std::isalpha(byte) ? fmt::format("[{}{}]", static_cast<char>(std::toupper(byte)), lower(c))
                                  : std::string(1, c);
  }
  return pattern;
}

std::vector<std::string> spelling_patterns(std::span<const std::string> known) {
  constexpr const char* separators = "[^A-Za-z0-9]*";
  const auto pattern_of = [&](const Words& words) {
    std::string pattern = separators;
    for (const std::string& word : words) pattern += any_capitals(word) + separators;
    return pattern;
  };
  std::vector<std::string> patterns;
  for (const std::string& name : known) {
    const Words words = words_of(name);
    std::string pattern;
    const auto add = [&](const Words& written) {
      if (meant(fmt::format("{}", fmt::join(written, " ")), known) == name)
        pattern += (pattern.empty() ? "^(" : "|") + pattern_of(written);
    };
    for (std::size_t begin = 0; begin < words.size(); ++begin)
      for (std::size_t end = words.size(); end > begin; --end)
        add({words.begin() + static_cast<std::ptrdiff_t>(begin),
             words.begin() + static_cast<std::ptrdiff_t>(end)});
    for (const Alias& alias : aliases) add(words_of(alias.words));
    patterns.push_back(pattern.empty() ? fmt::format("^{}$", name) : pattern + ")$");
  }
  return patterns;
}

std::string suggestion(std::string_view wrong, std::span<const std::string> known) {
  for (const Paraphrase& row : paraphrases)
    if (row.words == joined(words_of(wrong)) &&
        std::find(known.begin(), known.end(), row.name) != known.end())
      return fmt::format(" (write {})", row.text);
  if (const std::vector<std::string> names = meanings(wrong, known); names.size() == 1)
    return fmt::format(" (did you mean '{}'?)", names.front());
  else if (names.size() > 1)
    return fmt::format(" (did you mean one of {}?)", list_of(names, 12));
  const std::string* best = nullptr;
  std::size_t best_distance = std::max<std::size_t>(2, wrong.size() / 4) + 1;
  if (wrong.size() > 64) return {};
  for (const std::string& name : known) {
    const std::size_t d = edit_distance(wrong, name);
    if (d < best_distance && d < name.size()) {
      best = &name;
      best_distance = d;
    }
  }
  // A name that is not finished: "wide_res" is meant to be wide_resnet50_2, however few letters make it
  // another one.
  const auto begins = [&](const std::string& each) {
    return each.size() >= wrong.size() && std::equal(wrong.begin(), wrong.end(), each.begin(),
                                                     [](char a, char b) { return lower(a) == lower(b); });
  };
  if (wrong.size() >= 3 && best_distance > 1)
    if (const auto name = std::find_if(known.begin(), known.end(), begins); name != known.end())
      best = &*name;
  return best ? fmt::format(" (did you mean '{}'?)", *best) : std::string{};
}

std::vector<std::string> texts_of_names(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

std::string list_of(std::span<const std::string> names, std::size_t limit) {
  if (names.size() <= limit) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.first(limit), ", "), names.size() - limit);
}

}  // namespace convoy::base

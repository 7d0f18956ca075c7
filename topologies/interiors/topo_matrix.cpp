// SPDX-License-Identifier: MIT
#include "topologies/interiors/topo_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "sim/base/input_file.h"
#include "sim/base/names.h"

namespace convoy::inline topologies {
namespace {

constexpr std::size_t max_topo_places = 256;

struct TopoWord {
  std::string text;
  SourcePos pos;
};

/// Words of a line; terminal codes (the header is underlined) are left out.
std::vector<TopoWord> words_of(const std::string& line, const std::string& file, int number) {
  std::vector<TopoWord> words;
  bool in_word = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i < line.size() && !std::isalpha(static_cast<unsigned char>(line[i]))) ++i;
      continue;
    }
    const bool blank = std::isspace(static_cast<unsigned char>(line[i])) != 0;
    if (!blank && !in_word) words.push_back({"", {file, number, static_cast<int>(i) + 1}});
    if (!blank) words.back().text += line[i];
    in_word = !blank;
  }
  return words;
}

bool is_gpu(const std::string& name) {
  return name.size() > 3 && name.starts_with("GPU") &&
         std::all_of(name.begin() + 3, name.end(), [](unsigned char c) { return std::isdigit(c); });
}

/// The number of "NV12", or nothing.
std::optional<std::uint32_t> nvlinks_of(const std::string& word) {
  if (word.size() < 3 || word.size() > 4 || !word.starts_with("NV") ||
      !std::all_of(word.begin() + 2, word.end(), [](unsigned char c) { return std::isdigit(c); }))
    return std::nullopt;
  return static_cast<std::uint32_t>(std::stoul(word.substr(2)));
}

class TopoReader {
 public:
  explicit TopoReader(const std::string& file) : file_(file) {}

  TopoMatrix read() {
    std::ifstream stream = open_input(file_);
    if (!stream) throw InputError({file_, 0, 0}, "cannot be read");
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
      if (line.size() > 65'536) throw InputError({file_, number, 1}, "is no line of `nvidia-smi topo -m`");
      const std::vector<TopoWord> words = words_of(line, file_, number);
      if (names_.empty()) {
        if (!words.empty() && is_gpu(words[0].text)) read_header(words);
      } else if (!words.empty() && rows_ < names_.size() && words[0].text == names_[rows_]) {
        read_row(words);
      } else if (!words.empty() && rows_ < names_.size()) {
        throw InputError(words[0].pos,
                         fmt::format("expected the row of '{}', found '{}'", names_[rows_], words[0].text));
      }
    }
    if (names_.empty())
      throw InputError({file_, 1, 1}, "is no table of `nvidia-smi topo -m`: no line begins with GPU0");
    if (rows_ < names_.size())
      throw InputError({file_, 1, 1}, fmt::format("the row of '{}' is missing", names_[rows_]));
    check_symmetry();
    return std::move(matrix_);
  }

 private:
  void read_header(const std::vector<TopoWord>& words) {
    for (const TopoWord& word : words) {
      if (word.text == "CPU" || word.text == "NUMA" || word.text == "GPU") break;  // "CPU Affinity", ...
      if (std::find(names_.begin(), names_.end(), word.text) != names_.end())
        throw InputError(word.pos, fmt::format("'{}' is there twice", word.text));
      if (is_gpu(word.text) && matrix_.nics > 0)
        throw InputError(word.pos, fmt::format("'{}' comes after a NIC; GPUs come first", word.text));
      (is_gpu(word.text) ? matrix_.gpus : matrix_.nics) += 1;
      names_.push_back(word.text);
    }
    if (names_.size() > max_topo_places)
      throw InputError(words[0].pos,
                       fmt::format("{} columns; at most {} are allowed", names_.size(), max_topo_places));
    const std::size_t n = names_.size();
    matrix_.nearness.assign(n, std::vector<PcieNearness>(n, PcieNearness::unknown));
    matrix_.nvlinks.assign(matrix_.gpus, std::vector<std::uint32_t>(matrix_.gpus, 0));
    matrix_.cpu_affinity.resize(matrix_.gpus);
  }

  void read_row(const std::vector<TopoWord>& words) {
    if (words.size() < names_.size() + 1)
      throw InputError(words[0].pos, fmt::format("row '{}' has {} entries where the table has {} columns",
                                                 words[0].text, words.size() - 1, names_.size()));
    for (std::size_t c = 0; c < names_.size(); ++c) read_entry(c, words[c + 1]);
    if (rows_ < matrix_.gpus && words.size() > names_.size() + 1)
      matrix_.cpu_affinity[rows_] = words[names_.size() + 1].text;
    ++rows_;
  }

  void read_entry(std::size_t column, const TopoWord& word) {
    static const std::vector<std::string> kinds{"PIX", "PXB", "PHB", "NODE", "SYS"};
    if ((word.text == "X") != (column == rows_))
      throw InputError(word.pos, fmt::format("{} to {}: found '{}'; X stands on the diagonal alone",
                                             names_[rows_], names_[column], word.text));
    if (word.text == "X") return;
    const auto kind =
        std::find(kinds.begin(), kinds.end(), word.text == "SOC" ? "SYS" : word.text);  // SOC: of old
    if (kind != kinds.end()) {
      matrix_.nearness[rows_][column] = static_cast<PcieNearness>(kind - kinds.begin());
      return;
    }
    const std::optional<std::uint32_t> nvlinks = nvlinks_of(word.text);
    if (!nvlinks || *nvlinks == 0 || rows_ >= matrix_.gpus || column >= matrix_.gpus)
      throw InputError(word.pos,
                       fmt::format("{} to {}: unknown word '{}'; there are {}, and NV1 to NV99 between GPUs",
                                   names_[rows_], names_[column], word.text, list_of(kinds)));
    matrix_.nvlinks[rows_][column] = *nvlinks;
  }

  void check_symmetry() const {
    for (std::size_t a = 0; a < names_.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) {
        const bool gpus = a < matrix_.gpus;
        if (matrix_.nearness[a][b] != matrix_.nearness[b][a] ||
            (gpus && matrix_.nvlinks[a][b] != matrix_.nvlinks[b][a]))
          throw InputError({file_, 1, 1},
                           fmt::format("{} to {} is another way than back", names_[a], names_[b]));
      }
  }

  const std::string& file_;
  TopoMatrix matrix_;
  std::vector<std::string> names_;
  std::size_t rows_ = 0;
};

}  // namespace

TopoMatrix read_topo_matrix(const std::string& file) { return TopoReader(file).read(); }

}  // namespace convoy::topologies

// SPDX-License-Identifier: MIT
#include "sim/calibration/nccl_log.h"

#include <fmt/format.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "sim/base/input_error.h"
#include "sim/base/input_file.h"
#include "sim/base/quantity.h"

namespace convoy::inline calibration {
namespace {

constexpr std::uintmax_t max_file_bytes = 64u << 20;

struct Word {
  std::string_view text;
  int column = 0;
};

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    while (i < line.size() && line[i] != ' ' && line[i] != '\t' && line[i] != '\r') ++i;
    words.push_back({line.substr(begin, i - begin), static_cast<int>(begin) + 1});
  }
  return words;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Where the line itself begins, after "[1,0]<stdout>:" (Open MPI) or "0: " (Slurm).
std::size_t after_prefix(std::string_view line) {
  const std::size_t tag = line.find("<stdout>:");
  if (line.starts_with('[') && tag != std::string_view::npos) return tag + 9;
  const std::size_t colon = line.find(": ");
  return colon != std::string_view::npos && all_digits(line.substr(0, colon)) ? colon + 1 : 0;
}

// A row of results begins with bytes, elements and a type.
bool is_row(const std::vector<Word>& words) {
  return words.size() >= 3 && all_digits(words[0].text) && all_digits(words[1].text) &&
         !words[2].text.empty() && std::isalpha(static_cast<unsigned char>(words[2].text[0]));
}

class NcclLogReader {
 public:
  explicit NcclLogReader(const std::string& file) : file_(file) {}

  void line(const std::string& text, int number) {
    const std::size_t begin = after_prefix(text);
    std::vector<Word> words = words_of(std::string_view(text).substr(begin));
    for (Word& word : words) word.column += static_cast<int>(begin);
    if (words.size() >= 2 && words[0].text == "#" && words[1].text == "Rank") return rank(words);
    if (words.size() >= 3 && words[0].text == "#" && words[1].text == "size") {
      rooted_ = std::any_of(words.begin(), words.end(), [](const Word& w) { return w.text == "root"; });
      return;
    }
    if (is_row(words)) row(words, number, static_cast<int>(text.size()) + 1);
  }

  AllReduceLog finish() {
    if (log_.rows.empty()) throw InputError({file_, 0, 0}, "holds no result of nccl-tests' all_reduce_perf");
    log_.hosts = hosts_.size();
    const double n = 2 / (2 - factor_);  // of 2 (n - 1)/n
    if (log_.ranks == 0) {
      log_.ranks = static_cast<std::size_t>(std::lround(n));
      if (!(factor_ >= 1 && factor_ < 2) || std::abs(n - std::round(n)) > 0.05 * n)
        throw InputError(last_,
                         "busbw/algbw is not that of an all-reduce, and no line '#  Rank' tells the ranks");
    }
    if (log_.ranks < 2) throw InputError({file_, 0, 0}, "is of one rank: nothing is sent");
    const double expected = 2 * static_cast<double>(log_.ranks - 1) / static_cast<double>(log_.ranks);
    if (factor_ > 0 && std::abs(factor_ / expected - 1) > 0.05)
      throw InputError(last_,
                       fmt::format("busbw/algbw is {:.2f}, where an all-reduce of {} ranks has {:.2f}: is "
                                   "this all_reduce_perf's log?",
                                   factor_, log_.ranks, expected));
    return log_;
  }

 private:
  void rank(const std::vector<Word>& words) {
    ++log_.ranks;
    const auto on = std::find_if(words.begin(), words.end(), [](const Word& w) { return w.text == "on"; });
    if (on != words.end() && on + 1 != words.end()) hosts_.insert(std::string((on + 1)->text));
  }

  // size count type redop [root] time algbw busbw ...: the times out of place come first.
  void row(const std::vector<Word>& words, int number, int end) {
    const std::size_t time = rooted_ ? 5 : 4;
    if (words.size() < time + 3)
      throw InputError({file_, number, end},
                       "a row of results ends too early: expected its time, algbw and busbw");
    const double us = positive(words[time], "time", number, true);
    const double algbw = positive(words[time + 1], "algbw", number, false);
    const double busbw = positive(words[time + 2], "busbw", number, false);
    const double bytes = positive(words[0], "size", number, false);
    if (bytes <= 0) return;  // sizes that round to no element
    log_.rows.push_back({bytes, us * 1e-6});
    last_ = {file_, number, words[time + 2].column};
    // The largest rate has the most digits.
    if (algbw > best_) {
      best_ = algbw;
      factor_ = busbw / algbw;
    }
  }

  double positive(const Word& word, std::string_view name, int number, bool above_zero) const {
    const std::optional<double> value = parse_number(std::string(word.text));
    if (!value || *value < 0 || (above_zero && *value <= 0))
      throw InputError({file_, number, word.column}, fmt::format("{}: expected a number{}, found '{}'", name,
                                                                 above_zero ? " above zero" : "", word.text));
    return *value;
  }

  std::string file_;
  AllReduceLog log_;
  std::set<std::string> hosts_;
  bool rooted_ = true;  // nccl-tests print the root's column since version 2.12
  double best_ = 0, factor_ = 0;
  SourcePos last_;
};

}  // namespace

bool looks_like_nccl_log(const std::string& file) {
  std::ifstream stream = open_input(file);
  std::string line;
  for (int number = 0; number < 10000 && std::getline(stream, line); ++number) {
    const std::vector<Word> words = words_of(std::string_view(line).substr(after_prefix(line)));
    if (is_row(words)) return true;
    if (words.size() >= 2 && words[0].text == "#" &&
        (words[1].text == "nThread" || words[1].text == "Rank" || words[1].text == "size"))
      return true;
  }
  return false;
}

AllReduceLog read_all_reduce_log(const std::string& file) {
  const SourcePos whole{file, 0, 0};
  std::ifstream stream = open_input(file, std::ios::binary | std::ios::ate);
  if (!stream) throw InputError(whole, "cannot be read");
  if (static_cast<std::uintmax_t>(stream.tellg()) > max_file_bytes)
    throw InputError(whole, "is larger than 64 MiB");
  stream.seekg(0);
  NcclLogReader reader(file);
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) reader.line(line, number);
  return reader.finish();
}

LinkFit fit_link(const AllReduceLog& log, const std::string& file) {
  const double steps = 2 * static_cast<double>(log.ranks - 1);
  // Rows of unknowns (latency, seconds a byte), each divided by its time: relative errors.
  Eigen::MatrixXd a(static_cast<Eigen::Index>(log.rows.size()), 2);
  const Eigen::VectorXd ones = Eigen::VectorXd::Ones(a.rows());
  for (Eigen::Index i = 0; i < a.rows(); ++i) {
    const AllReduceLog::Row& row = log.rows[static_cast<std::size_t>(i)];
    a(i, 0) = steps / row.seconds;
    a(i, 1) = steps * row.bytes / static_cast<double>(log.ranks) / row.seconds;
  }
  Eigen::Vector2d x = a.colPivHouseholderQr().solve(ones);
  if (x[0] < 0) x = {0, a.col(1).dot(ones) / a.col(1).squaredNorm()};
  if (!(x[1] > 0) || !x.allFinite())
    throw InputError({file, 0, 0}, "its times do not grow with the size: no bandwidth can be told");
  LinkFit fit;
  fit.latency_s = x[0];
  fit.bandwidth_Bps = 1 / x[1];
  fit.mean_error = (a * x - ones).cwiseAbs().mean();
  return fit;
}

}  // namespace convoy::calibration

// SPDX-License-Identifier: MIT
#include "sim/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <utility>

#include "sim/base/clean_text.h"
#include "sim/cli/tell.h"

namespace convoy::inline cli {
namespace {

constexpr std::chrono::milliseconds between_drawings{100};
constexpr std::chrono::seconds between_lines{60};

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

}  // namespace

std::string clock_text(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(seconds));
  const long long h = whole / 3600, m = whole / 60 % 60, s = whole % 60;
  return h > 0 ? fmt::format("{}:{:02}:{:02}", h, m, s) : fmt::format("{}:{:02}", m, s);
}

Progress::Progress(Style style, std::string what)
    : terminal_(style == Style::automatic && ::isatty(STDERR_FILENO) == 1),
      plain_(style == Style::plain),
      what_(std::move(what)) {
  if (plain_) shown_ = begun_;
}

Progress::~Progress() {
  if (!drawn_) return;
  tell("\r\033[K");
}

void Progress::begin(const std::string& what) {
  if (what == what_) return;
  what_ = what;
  begun_ = Clock::now();
  if (terminal_) shown_ = {};  // a new part is shown at once
}

std::string Progress::line(std::size_t done, std::size_t all, const std::string& label) const {
  const double taken_s = std::chrono::duration<double>(Clock::now() - begun_).count();
  std::string text = fmt::format("{} {}/{}", what_, done, all);
  if (done > 0 && done <= all && taken_s > 0) {
    const double rate = static_cast<double>(done) / taken_s;
    text += rate >= 1 ? fmt::format(", {:.3g}/s", rate) : fmt::format(", one in {:.3g} s", 1 / rate);
    text += fmt::format(", {} left", clock_text(static_cast<double>(all - done) / rate));
  } else {
    text += fmt::format(", {} so far", clock_text(taken_s));
  }
  return label.empty() ? text : text + ": " + label;
}

void Progress::operator()(std::size_t done, std::size_t all, const std::function<std::string()>& label) {
  if (!terminal_ && !plain_) return;
  const Clock::time_point now = Clock::now();
  if (terminal_ ? now - shown_ < between_drawings : now - shown_ < between_lines) return;
  shown_ = now;
  std::string text = line(done, all, clean(label()));
  if (plain_) return tell("convoy: {}\n", text);
  if (const std::size_t width = terminal_width() - 1; text.size() > width) text.resize(width);
  tell("\r{}\033[K", text);
  drawn_ = true;
}

}  // namespace convoy::cli

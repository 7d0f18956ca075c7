// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/clean_text.h"
#include "sim/results/result.h"

namespace convoy::inline results {

// Words and numbers for people, which are the same in the table and in the report.

/// Number of columns on a terminal, not of bytes: UTF-8 continuation bytes take none.
std::size_t width_of(std::string_view text);

/// At most `longest` columns; a longer text ends in "...".
std::string shortened(std::string text, std::size_t longest = 40);

/// The last key of a dotted path, in which a key that itself contains dots is quoted: `fabric.bandwidth` of
/// `cluster.server."fabric.bandwidth"`.
std::string last_key(const std::string& path);

/// Three significant digits, or the whole number if it has more, and two below 0.1, so that nothing but 0 is
/// shown as 0: "0.0015", "0.12", "48.8", "1299".
std::string number_text(double value);

/// A share as text: "97 %", "9.7 %".
std::string percent_text(double share);

/// A time of any length: "12.3 ms", "3.20 h", "12.0 d".
std::string duration_text(double seconds);

/// What the runs were predicted for, including defaults, and what that rests on: a line of software
/// ("software: pytorch, eager, nchw, fp32; transport nccl-tcp; input synthetic"; several values if runs
/// differ), and a line for each of their warnings.
std::vector<std::string> assumptions(const std::vector<RunResult>& runs);

/// What a run waits for in a few words: "compute 98 %", "latency 91 %", "n0.nic 94 %".
std::string bottleneck_text(const Bottleneck& bottleneck);

}  // namespace convoy::results

// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/clean_text.h"
#include "sim/results/result.h"

namespace convoy::inline results {

// Words and numbers for people, the same in the table and in the report.

/// Columns on a terminal, not bytes: UTF-8 continuation bytes take none.
std::size_t width_of(std::string_view text);

/// At most `longest` columns; what is longer ends in "...".
std::string shortened(std::string text, std::size_t longest = 40);

/// The last key of a dotted path, in which a key with dots of its own is quoted: `fabric.bandwidth` of
/// `cluster.server."fabric.bandwidth"`.
std::string last_key(const std::string& path);

/// Three significant digits or all of the whole number: "0.12", "48.8", "1299".
std::string number_text(double value);

/// Of a share: "97 %", "9.7 %".
std::string percent_text(double share);

/// What the runs were predicted for, defaults included, and on what they rest: a line of software ("software:
/// pytorch, eager, nchw, fp32; transport nccl-tcp; input synthetic"; several values where runs differ), and a
/// line for each of their warnings.
std::vector<std::string> assumptions(const std::vector<RunResult>& runs);

/// What a run waits for in a few words: "compute 98 %", "latency 91 %", "n0.nic 94 %".
std::string bottleneck_text(const Bottleneck& bottleneck);

}  // namespace convoy::results

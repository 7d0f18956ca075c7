// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace convoy::inline calibration {

/// What nccl-tests' (or rccl-tests') all_reduce_perf printed.
struct AllReduceLog {
  struct Row {
    double bytes = 0, seconds = 0;  ///< of the buffer that is summed up; out of place
  };
  std::size_t ranks = 0;
  std::size_t hosts = 0;  ///< 0 where the log has no lines "#  Rank"
  std::vector<Row> rows;
};

/// Reads the log; what an MPI launcher puts before each line ("[1,0]<stdout>:", "0: ") and lines of other
/// programs are passed over. Ranks are counted from the lines "#  Rank"; where these are missing, they follow
/// from busbw/algbw, which is 2 (n - 1)/n.
/// @throws InputError for what is no such log, is cut in the middle of a row, or is of another collective.
AllReduceLog read_all_reduce_log(const std::string& file);

/// True where the text has nccl-tests' table head, or results of it.
bool looks_like_nccl_log(const std::string& file);

/// A link with latency and bandwidth under which a ring all-reduce takes the logged times:
///   t = 2 (n - 1) (latency + bytes/n / bandwidth)
struct LinkFit {
  double latency_s = 0, bandwidth_Bps = 0;
  double mean_error = 0;  ///< of |predicted/measured time - 1| over the rows
};

/// Least squares of the relative errors (Eigen), neither value below zero.
/// @throws InputError at `file` where the rows do not tell a bandwidth.
LinkFit fit_link(const AllReduceLog& log, const std::string& file);

}  // namespace convoy::calibration

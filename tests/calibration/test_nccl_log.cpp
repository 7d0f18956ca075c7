// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "sim/base/input_error.h"
#include "sim/calibration/nccl_log.h"
#include "tests/calibration/written_file.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

const std::string head =
    "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20\n"
    "#\n"
    "# Using devices\n";
const std::string columns =
    "#\n"
    "#                                                              out-of-place                       "
    "in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
    "busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
    "(GB/s)\n";

std::string ranks(int count, int a_host) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("#  Rank {:2} Group  0 Pid {} on  node{} device {:2} [0x10] NVIDIA A100-SXM4-40GB\n",
                        i, 1000 + i, i / a_host, i % a_host);
  return text;
}

// A row as nccl-tests would print it of a time in seconds.
std::string row(double bytes, double seconds, int ranks) {
  const double algbw = bytes / seconds * 1e-9, busbw = algbw * 2 * (ranks - 1) / ranks;
  return fmt::format(
      "{:12} {:12}     float     sum      -1 {:8.2f} {:7.2f} {:7.2f}      0 {:8.2f} {:7.2f} {:7.2f}"
      "      0\n",
      static_cast<long>(bytes), static_cast<long>(bytes / 4), seconds * 1e6, algbw, busbw, seconds * 2e6,
      algbw / 2, busbw / 2);
}

// A ring of `n` ranks over links of 20 us and 12 GB/s.
std::string ring_rows(int n) {
  std::string text;
  for (double bytes = 1024; bytes <= 134217728; bytes *= 4)
    text += row(bytes, 2.0 * (n - 1) * (20e-6 + bytes / n / 12e9), n);
  return text;
}

std::string log_error(const std::string& text) {
  const WrittenFile file(text, ".log");
  try {
    const AllReduceLog log = read_all_reduce_log(file.path());
    fit_link(log, file.path());
  } catch (const InputError& e) {
    const std::string message = e.what();
    return message.starts_with(file.path()) ? message.substr(file.path().size()) : message;
  }
  return "no error";
}

}  // namespace

TEST_CASE("a log of 64 MiB is read, and one byte more is refused before it is") {
  const WrittenFile file(head + ranks(8, 8) + columns + ring_rows(8), ".log");
  std::filesystem::resize_file(file.path(), 64u << 20);
  CHECK(read_all_reduce_log(file.path()).rows.size() == 9);
  std::filesystem::resize_file(file.path(), (64u << 20) + 1);
  CHECK_THROWS_WITH_AS(read_all_reduce_log(file.path()), (file.path() + ": is larger than 64 MiB").c_str(),
                       InputError);
}

TEST_CASE("an all-reduce log gives back the link that made its times") {
  const WrittenFile file(head + ranks(8, 8) + columns + ring_rows(8) + "# Out of bounds values : 0 OK\n",
                         ".log");
  CHECK(looks_like_nccl_log(file.path()));
  const AllReduceLog log = read_all_reduce_log(file.path());
  CHECK(log.ranks == 8);
  CHECK(log.hosts == 1);
  REQUIRE(log.rows.size() == 9);
  CHECK(log.rows[1].bytes == 4096);
  // out of place: 14 x (20 us + 4096 B/8 / 12 GB/s) = 280.60 us, as printed
  CHECK(log.rows[1].seconds == approx(280.60e-6).epsilon(1e-9));
  const LinkFit link = fit_link(log, file.path());
  CHECK(link.latency_s == approx(20e-6).epsilon(1e-3));
  CHECK(link.bandwidth_Bps == approx(12e9).epsilon(1e-3));
  CHECK(link.mean_error < 1e-3);
}

TEST_CASE("the order of a log's rows says nothing: ranks and link are the same [law]") {
  std::vector<std::string> lines;
  std::string text;
  for (const char c : ring_rows(6)) {
    text += c;
    if (c == '\n') lines.push_back(std::exchange(text, {}));
  }
  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) {
    std::string rows;
    for (const std::string& line : lines) rows += line;
    const WrittenFile file(rows, ".log");
    const AllReduceLog log = read_all_reduce_log(file.path());
    CHECK(log.ranks == 6);
    CHECK(fit_link(log, file.path()).bandwidth_Bps == approx(12e9).epsilon(1e-3));
    std::shuffle(lines.begin(), lines.end(), random);
  }
}

TEST_CASE("of all links that may be, the one that is told misses the log's times least [law]") {
  std::mt19937 random(5);
  std::uniform_real_distribution<> noise(0.7, 1.4);
  int without_latency = 0;
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    AllReduceLog log;
    log.ranks = 4;
    const double latency_s = i % 2 == 0 ? 0 : 5e-6;
    for (double bytes = 1 << 20; bytes <= 1 << 28; bytes *= 4)
      log.rows.push_back({bytes, 6 * (latency_s + bytes / 4 / 12e9) * noise(random)});
    const LinkFit link = fit_link(log, "log");
    CHECK(link.latency_s >= 0);
    without_latency += link.latency_s == 0;
    const auto misses = [&](double of_latency_s, double bandwidth_Bps) {
      double squares = 0;
      for (const AllReduceLog::Row& row : log.rows)
        squares += std::pow(6 * (of_latency_s + row.bytes / 4 / bandwidth_Bps) / row.seconds - 1, 2);
      return squares;
    };
    const double least = misses(link.latency_s, link.bandwidth_Bps);
    for (const double factor : {0.9, 0.99, 1.01, 1.1}) {
      CHECK(misses(link.latency_s, factor * link.bandwidth_Bps) > least);
      CHECK(misses(factor * link.latency_s, link.bandwidth_Bps) >= least * (1 - 1e-12));
    }
  }
  CHECK(without_latency > 5);
}

TEST_CASE("what launchers put before a line is passed over, and hosts are counted") {
  for (const std::string& prefix : {std::string("[1,0]<stdout>:"), std::string("0: ")}) {
    CAPTURE(prefix);
    const std::string text = head + ranks(16, 8) + columns + ring_rows(16);
    std::string prefixed(prefix);
    for (const char c : text) {
      prefixed += c;
      if (c == '\n') prefixed += prefix;
    }
    const WrittenFile file(prefixed + "\nsome other program's 12 34 words\n", ".log");
    const AllReduceLog log = read_all_reduce_log(file.path());
    CHECK(log.ranks == 16);
    CHECK(log.hosts == 2);
    CHECK(log.rows.size() == 9);
  }
}

TEST_CASE("without rank lines the ranks follow from busbw over algbw, older logs have no root") {
  const std::string rows = ring_rows(4);
  const WrittenFile file(rows, ".log");
  CHECK(read_all_reduce_log(file.path()).ranks == 4);
  std::string rootless;
  for (std::size_t from = 0, at = 0; from < rows.size(); from = at + 9) {
    at = std::min(rows.find("      -1 ", from), rows.size());
    rootless.append(rows, from, at - from).append(" ");
  }
  const WrittenFile old(
      fmt::format("{}{}", "#       size         count      type   redop     time   algbw   busbw  error\n",
                  rootless),
      ".log");
  const AllReduceLog log = read_all_reduce_log(old.path());
  CHECK(log.ranks == 4);
  CHECK(log.rows[0].bytes == 1024);
}

TEST_CASE("wrong and cut logs are refused with their place") {
  CHECK(log_error("") == ": holds no result of nccl-tests' all_reduce_perf");
  CHECK(log_error(head + ranks(8, 8) + columns) == ": holds no result of nccl-tests' all_reduce_perf");
  const std::string start = head + ranks(2, 2) + columns;  // 9 lines
  CHECK(log_error(start + "        1024          256     float     sum      -1    61.2") ==
        ":10:60: a row of results ends too early: expected its time, algbw and busbw");
  CHECK(log_error(start +
                  "        1024          256     float     sum      -1    fast    0.02    0.02      0\n") ==
        ":10:56: time: expected a number above zero, found 'fast'");
  CHECK(log_error(start +
                  "        1024          256     float     sum      -1       0    0.02    0.02      0\n") ==
        ":10:59: time: expected a number above zero, found '0'");
  // all_gather_perf: busbw is (n - 1)/n of algbw
  CHECK(
      log_error(start +
                "     1048576       262144     float    none      -1   100.0   10.49    5.24      0\n") ==
      ":10:72: busbw/algbw is 0.50, where an all-reduce of 2 ranks has 1.00: is this all_reduce_perf's log?");
  CHECK(log_error(head + ranks(1, 1) + columns + row(1e6, 1e-3, 2)) == ": is of one rank: nothing is sent");
  // larger messages that take less time
  CHECK(log_error(start + row(1048576, 2e-3, 2) + row(4194304, 1e-3, 2))
            .starts_with(": its times do not grow"));
  CHECK(log_error("     1048576       262144     float    none      -1   100.0   10.49    5.24      0\n") ==
        ":1:72: busbw/algbw is not that of an all-reduce, and no line '#  Rank' tells the ranks");
}

TEST_CASE("a log with any byte missing or turned is read or refused, never anything else") {
  const std::string whole = head + ranks(2, 1) + columns + ring_rows(2);
  for (std::size_t cut = 0; cut < whole.size(); cut += 7) log_error(whole.substr(0, cut));
  for (std::size_t at = 0; at < whole.size(); at += 11) {
    std::string turned = whole;
    turned[at] = static_cast<char>(turned[at] ^ 0x55);
    log_error(turned);
  }
}

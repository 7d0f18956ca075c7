// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sstream>

#include "sim/base/input_error.h"
#include "sim/results/read_trace.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

std::string written_trace(const std::vector<TraceProcess>& processes) {
  std::ostringstream out;
  {
    TraceWriter writer(out);
    for (const TraceProcess& process : processes) writer.add(process);
  }
  return out.str();
}

bool all(const std::string&) { return true; }

std::vector<TraceProcess> read_back(const std::string& text, bool (*wanted)(const std::string& name) = all) {
  std::istringstream in(text);
  return read_trace(in, "trace.json", wanted);
}

std::string trace_complaint(const std::string& events) {
  try {
    read_back(R"({"displayTimeUnit": "ms", "traceEvents": [)" + events + "]}");
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

std::vector<TraceProcess> two_hosts() {
  TraceProcess first{
      "run 1: n0",
      {{"gpu0 compute",
        {{"a.forward", 0, 1e-3 / 3}, {"a.update", 1e-3 / 3, 7e-3, 1e9 / 3, 2e6, 8, 4e6, true}}},
       {"idle", {}}},
      {{"gpu0 memory", {{0, {1, 2, 3, 4, 5, 6}}, {2e-3, {1, 2, 3, 1e9 / 3, 5, 6}}}},
       {"gpu1 memory", {{0, {}}}}},
      {{0, 1e9 / 3, 0}, {3e-3, 0, 0}}};
  first.threads[0].spans[1].shape = "3>64 7x7, 112x112";
  first.arrows = {{0, 0, 1e-4, true}, {0, 0, 2e-3, false}, {1, 1, 1e-3, true}};
  first.left_out = 17;
  return {first, {"run 2: n0", {{"\"odd\" name", {{"b", 1234.5678912345, 1234.6}}}}}};
}

}  // namespace

TEST_CASE("read trace: what was written, to the last byte") {
  const std::string text = written_trace(two_hosts());
  CHECK(written_trace(read_back(text)) == text);
  CHECK(written_trace(read_back(written_trace({}))) == written_trace({}));
}

TEST_CASE("read trace: only the processes that are wanted") {
  const std::vector<TraceProcess> second = read_back(
      written_trace(two_hosts()), [](const std::string& name) { return name.starts_with("run 2: "); });
  REQUIRE(second.size() == 1);
  CHECK(second[0].threads[0].name == "\"odd\" name");
  CHECK(second[0].threads[0].spans[0].start_s == approx(1234.567891235).epsilon(1e-14));  // to the ns
  CHECK(second[0].memory.empty());
}

TEST_CASE("read trace: what no trace of convoy holds is refused with its place") {
  const std::string process =
      R"({"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": "n0"}}, )";
  CHECK(trace_complaint("1") == "trace.json: traceEvents[0]: expected an object, not a number");
  CHECK(trace_complaint(process + R"({"ph": "X", "pid": 1, "tid": 1, "name": "a", "ts": 0, "dur": 1})") ==
        "trace.json: traceEvents[1]: a span of a thread that is not the last one named");
  CHECK(trace_complaint(R"({"ph": "X", "pid": 1, "tid": 1, "name": "a", "ts": 0, "dur": 1})") ==
        "trace.json: traceEvents[0]: a span before any process is named");
  CHECK(trace_complaint(process + R"({"ph": "X", "pid": 1, "tid": 1, "name": "a", "ts": -1, "dur": 1})") ==
        "trace.json: traceEvents[1].ts: expected a number that is not below zero");
  CHECK(trace_complaint(process + R"({"ph": "s", "pid": 1, "tid": 1, "name": "waits for", "ts": 1, "cat": "c",
                                     "id": 0})") ==
        "trace.json: traceEvents[1]: an arrow of a thread that is not named");
  CHECK(trace_complaint(process + R"({"ph": "i", "pid": 1, "tid": 1, "name": "a"})") ==
        "trace.json: traceEvents[1]: an event of kind 'i' is not convoy's");
  CHECK(trace_complaint(process +
                        R"({"ph": "C", "pid": 1, "tid": 0, "name": "m", "ts": 0, "args": {"weights": 1}})") ==
        "trace.json: traceEvents[1].args: 'gradients' is missing");
  CHECK(trace_complaint(process +
                        R"({"ph": "M", "pid": 1, "tid": 0, "name": "sort_index", "args": {"name": "x"}})") ==
        "trace.json: traceEvents[1]: unknown metadata 'sort_index'");
  const std::string text = written_trace(two_hosts());
  for (std::size_t size = 0; size < text.rfind('}'); size += 7)
    CHECK_THROWS_AS(read_back(text.substr(0, size)), InputError);
}

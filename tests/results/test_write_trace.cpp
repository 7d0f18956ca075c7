// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/results/write_trace.h"
#include "tests/support/approx.h"

using namespace convoy;
using nlohmann::json;

TEST_CASE("trace: processes and threads have names, spans are complete events in microseconds") {
  std::ostringstream out;
  {
    TraceWriter writer(out);
    writer.add({"n0", {{"gpu0 compute", {{"conv1.forward", 0, 1e-3}, {"conv1.update", 1e-3, 1.5e-3}}}}});
    writer.add({"n1", {}});
  }
  const json trace = json::parse(out.str());
  const json& events = trace["traceEvents"];
  REQUIRE(events.size() == 5);
  CHECK(events[0] ==
        json::parse(R"({"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": "n0"}})"));
  CHECK(events[1] ==
        json::parse(
            R"({"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "gpu0 compute"}})"));
  CHECK(events[2] ==
        json::parse(R"({"ph": "X", "pid": 1, "tid": 1, "name": "conv1.forward", "ts": 0, "dur": 1000})"));
  CHECK(events[3] ==
        json::parse(R"({"ph": "X", "pid": 1, "tid": 1, "name": "conv1.update", "ts": 1000, "dur": 500})"));
  CHECK(events[4]["pid"] == 2);
}

TEST_CASE("trace: memory is a counter with a series for each class") {
  std::ostringstream out;
  {
    TraceWriter writer(out);
    writer.add({"n0", {}, {{"gpu0 memory", {{2e-3, {1, 2, 3, 4, 5, 6}}}}}});
  }
  CHECK(
      json::parse(out.str())["traceEvents"][1] ==
      json::parse(R"({"ph": "C", "pid": 1, "tid": 0, "name": "gpu0 memory", "ts": 2000, "args": {"weights": 1,
            "gradients": 2, "optimizer": 3, "activations": 4, "workspace": 5, "reserved": 6}})"));
}

TEST_CASE("trace: traffic is a counter of what is sent and received") {
  std::ostringstream out;
  {
    TraceWriter writer(out);
    writer.add({"n0", {}, {}, {{2e-3, 1e9, 5e8}}});
  }
  CHECK(
      json::parse(out.str())["traceEvents"][1] ==
      json::parse(R"({"ph": "C", "pid": 1, "tid": 0, "name": "network", "ts": 2000, "args": {"sent_Bps": 1e9,
            "received_Bps": 5e8}})"));
}

TEST_CASE("trace: spans that touch do not overlap after rounding") {
  std::ostringstream out;
  {
    TraceWriter writer(out);
    TraceThread thread{"t", {}};
    double at = 0;
    for (int i = 0; i < 1000; ++i) {
      thread.spans.push_back({"s", at, at + 1e-3 / 7});
      at += 1e-3 / 7;
    }
    writer.add({"p", {thread}});
  }
  const json trace = json::parse(out.str());
  double end_ns = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double start_ns = event["ts"].get<double>() * 1000;
    CHECK(start_ns == approx(end_ns).epsilon(1e-12));
    end_ns = start_ns + event["dur"].get<double>() * 1000;
  }
}

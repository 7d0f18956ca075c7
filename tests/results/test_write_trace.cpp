// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

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

TEST_CASE("trace: arrows are flow events, whose ids differ from run to run") {
  std::ostringstream out;
  {
    TraceWriter writer(out);
    for (int run = 0; run < 2; ++run) {
      writer.begin_run();
      TraceProcess process{"n0", {{"gpu0 compute", {{"a", 0, 1e-3, 8}}}, {"gpu0 comm", {{"b", 1e-3, 2e-3}}}}};
      process.arrows = {{0, 0, 0.999e-3, true}, {0, 1, 1e-3, false}};
      writer.add(process);
    }
  }
  const json trace = json::parse(out.str());
  std::vector<json> flows;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "s" || event["ph"] == "f") flows.push_back(event);
  REQUIRE(flows.size() == 4);
  CHECK(flows[0] == json::parse(R"({"ph": "s", "pid": 1, "tid": 1, "name": "waits for", "ts": 999,
                                    "cat": "dependency", "id": 0})"));
  CHECK(flows[1] == json::parse(R"({"ph": "f", "pid": 1, "tid": 2, "name": "waits for", "ts": 1000,
                                    "cat": "dependency", "id": 0, "bp": "e"})"));
  CHECK(flows[2]["id"] == 1);
  CHECK(flows[3]["id"] == 1);
}

TEST_CASE("trace: of too many events the critical and the longest stay, and the largest changes") {
  TraceProcess process{"n0", {{"compute", {}}, {"comm", {}}}};
  for (int i = 0; i < 20; ++i)
    process.threads[0].spans.push_back({std::to_string(i), i * 1.0, i + 0.01 * (i + 1)});
  process.threads[0].spans[0].critical = true;  // the shortest
  process.threads[1].spans.push_back({"long", 0, 30});
  TraceMemory memory{"memory", {}};
  for (int i = 0; i < 20; ++i) memory.points.push_back({i * 1.0, {i == 7 ? 100.0 : 50.0 + 0.1 * i}});
  process.memory.push_back(memory);
  process.arrows = {{0, 0, 0.005, true}, {0, 1, 0.005, false},  // both ends are drawn
                    {1, 0, 19.0, true},  {1, 1, 19.0, false},   // the same
                    {2, 0, 3.0, true},   {2, 1, 3.0, false}};   // from a span that goes
  std::vector<TraceProcess> all{process}, kept{process};
  keep_largest(all, 1000);
  CHECK(all[0].left_out == 0);
  CHECK(all[0].threads[0].spans.size() == 20);
  keep_largest(kept, 16);  // 8 spans, 4 points, 4 ends of arrows
  std::vector<std::string> names;
  for (const TraceSpan& span : kept[0].threads[0].spans) names.push_back(span.name);
  CHECK(names == std::vector<std::string>{"0", "14", "15", "16", "17", "18", "19"});
  CHECK(kept[0].threads[1].spans.size() == 1);
  std::vector<double> times;
  for (const TraceMemoryPoint& point : kept[0].memory[0].points) times.push_back(point.time_s);
  CHECK(times.size() == 4);
  for (const double large : {0, 7, 8}) CHECK(std::count(times.begin(), times.end(), large) == 1);
  CHECK(kept[0].arrows.size() == 4);
  CHECK(kept[0].left_out == 13 + 16 + 2);
}

TEST_CASE("trace: of too many events of one size as many stay as may") {
  for (const bool critical : {false, true}) {
    std::vector<TraceProcess> kept;
    for (const char* name : {"n0", "n1"}) {
      TraceProcess process{name, {{"compute", {}}}};
      for (int i = 0; i < 20; ++i) process.threads[0].spans.push_back({"op", i * 1.0, i + 0.5});
      for (TraceSpan& span : process.threads[0].spans) span.critical = critical;
      kept.push_back(std::move(process));
    }
    keep_largest(kept, 60);  // 30 of 40 spans
    CHECK(kept[0].threads[0].spans.size() + kept[1].threads[0].spans.size() == 30);
    CHECK(kept[0].left_out + kept[1].left_out == 10);
  }
}

TEST_CASE("trace: of critical spans the longest stay") {
  TraceProcess process{"n0", {{"compute", {}}}};
  for (int i = 0; i < 20; ++i)
    process.threads[0].spans.push_back({std::to_string(i), i * 1.0, i + 0.01 * (i + 1)});
  for (TraceSpan& span : process.threads[0].spans) span.critical = true;
  std::vector<TraceProcess> kept{process};
  keep_largest(kept, 16);
  REQUIRE(kept[0].threads[0].spans.size() == 8);
  CHECK(kept[0].threads[0].spans.front().name == "12");
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

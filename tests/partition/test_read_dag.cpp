// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/base/input_error.h"
#include "strategies/partition/read_dag.h"

using namespace convoy;

namespace {

std::string error_of(const std::string& text) {
  try {
    parse_dag(text, "graph.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a graph is read as it stands in its file") {
  const DagFile file = parse_dag(
      R"({"name": "toy", "source": "a test", "notes": {"nodes": [{"id": [1, null]}], "b": {"c": -1}}, "nodes": [
           {"id": 7, "name": "b", "time_us": 2.5, "output_bytes": 10},
           {"id": 3, "name": "a", "time_us": 1, "memory_bytes": 4096, "colocate_with": 7}],
          "edges": [[3, 7]]})",
      "graph.json");
  CHECK(file.name == "toy");
  CHECK(file.node_names == std::vector<std::string>{"a", "b"});  // by id
  CHECK(file.listed == std::vector<NodeId>{1, 0});
  CHECK(file.dag.time_us(0) == 1);
  CHECK(file.dag.memory_bytes(0) == 4096);
  CHECK(file.dag.output_bytes(1) == 10);
  REQUIRE(file.dag.children(0).size() == 1);
  CHECK(file.dag.children(0)[0] == 1);
  CHECK(file.dag.unit_count() == 1);
}

TEST_CASE("what is no graph is one clear line") {
  const struct {
    const char* text;
    const char* error;
  } cases[] = {
      {"", "graph.json:1:1: the file ends too early: it is no whole JSON document"},
      {R"({"nodes": [{"id": 0, "time_us": 1)",
       "graph.json:1:34: the file ends too early: it is no whole JSON document"},
      {"nodes: 3", "graph.json:1:2: not JSON"},
      {"[]", "graph.json:1:1: expected an object with 'nodes' and 'edges', not a list"},
      {"{}", "graph.json:1:1: the graph has no 'nodes'"},
      {R"({"nodes": []})", "graph.json:1:1: the graph has no 'edges'"},
      {R"({"nodes": [], "edges": []})", "graph.json:1:1: the graph has no nodes"},
      {R"({"nodes": {}})", "graph.json:1:11: 'nodes' must be a list, not an object"},
      {R"({"nodes": [3]})", "graph.json:1:12: a node must be an object, not a number"},
      {R"({"nodes": [], "vertices": []})",
       "graph.json:1:15: unknown key 'vertices'; known: nodes, edges, name, source, notes"},
      {R"({"nodes": [], "nodes": []})", "graph.json:1:15: key 'nodes' is there twice"},
      {R"({"nodes": [{"id": 0, "time": 1}]})",
       "graph.json:1:22: unknown key 'time'; known: id, name, time_us, output_bytes, memory_bytes, "
       "colocate_with"},
      {R"({"nodes": [{"id": 0, "id": 1}]})", "graph.json:1:22: key 'id' is there twice"},
      {R"({"nodes": [{"id": 0}]})", "graph.json:1:12: node without 'time_us'"},
      {R"({"nodes": [{"time_us": 0}]})", "graph.json:1:12: node without 'id'"},
      {R"({"nodes": [{"id": 0.5, "time_us": 1}]})",
       "graph.json:1:19: 'id' must be a whole number, not a number such as this"},
      {R"({"nodes": [{"id": "0", "time_us": 1}]})", "graph.json:1:19: 'id' must be a whole number, not text"},
      {R"({"nodes": [{"id": 0, "time_us": "fast"}]})",
       "graph.json:1:33: 'time_us' must be a number, not text"},
      {R"({"nodes": [{"id": 0, "time_us": null}]})", "graph.json:1:33: 'time_us' must be a number, not null"},
      {R"({"nodes": [{"id": 0, "time_us": true}]})",
       "graph.json:1:33: 'time_us' must be a number, not a truth value"},
      {R"({"nodes": [{"id": 0, "time_us": -1}]})", "graph.json:1:33: 'time_us' must not be negative"},
      {R"({"nodes": [{"id": 0, "time_us": 1, "memory_bytes": -0.5}]})",
       "graph.json:1:52: 'memory_bytes' must not be negative"},
      {R"({"nodes": [{"id": 0, "time_us": NaN}]})", "graph.json:1:33: not JSON"},
      {R"({"nodes": [{"id": 0, "time_us": 1e999}]})", "graph.json:1:33: number too large"},
      {R"({"nodes": [{"id": 0, "name": 5, "time_us": 1}]})",
       "graph.json:1:30: 'name' must be text, not a number"},
      {"{\"nodes\": [{\"id\": 4, \"time_us\": 1},\n {\"id\": 4, \"time_us\": 1}], \"edges\": []}",
       "graph.json:2:2: id 4 is there twice"},
      {R"({"nodes": [{"id": 0, "time_us": 1}], "edges": [[0, 9]]})", "graph.json:1:48: no node has id 9"},
      {R"({"nodes": [{"id": 0, "time_us": 1, "colocate_with": 2}], "edges": []})",
       "graph.json:1:12: 'colocate_with': no node has id 2"},
      {R"({"nodes": [{"id": 0, "time_us": 1}], "edges": [[0]]})",
       "graph.json:1:48: an edge is two ids: [from, to]"},
      {R"({"nodes": [{"id": 0, "time_us": 1}], "edges": [[0, 0, 0]]})",
       "graph.json:1:48: an edge is two ids: [from, to]"},
      {R"({"nodes": [{"id": 0, "time_us": 1}], "edges": [["0", 0]]})",
       "graph.json:1:49: an edge's ends must be ids, which are whole numbers, not text"},
      {R"({"nodes": [{"id": 0, "time_us": 1}], "edges": [0]})",
       "graph.json:1:48: an edge is two ids: [from, to], not a number"},
      {R"({"nodes": [{"id": 0, "time_us": 1}, {"id": 1, "time_us": 1}], "edges": [[0, 1], [0, 1]]})",
       "graph.json:1:81: edge [0, 1] is there twice"},
      // Of several that are there twice: the one whose producer, then reader, has the smallest id.
      {"{\"nodes\": [{\"id\": 9, \"time_us\": 1}, {\"id\": 2, \"time_us\": 1}, {\"id\": 5, \"time_us\": 1}], "
       "\"edges\": [\n"
       "[5, 9], [2, 9],\n[5, 9], [2, 9], [2, 5],\n[2, 5], [2, 5]]}",
       "graph.json:4:1: edge [2, 5] is there twice"},
      {R"({"nodes": [{"id": 5, "time_us": 1}], "edges": [[5, 5]]})",
       "graph.json:1:12: the graph has a cycle through node 5"},
      {R"({"nodes": [{"id": 0, "time_us": 1}, {"id": 1, "time_us": 1}, {"id": 2, "time_us": 1}],
          "edges": [[0, 1], [1, 2], [2, 1]]})",
       "graph.json:1:62: the graph has a cycle through node 2"},
      {R"({"nodes": [{"id": 0, "time_us": 1}], "edges": []} {})", "graph.json:1:51: not JSON"},
  };
  for (const auto& [text, error] : cases) {
    CAPTURE(text);
    CHECK(error_of(text) == error);
  }
}

TEST_CASE("notes may be anything, once") {
  for (const char* notes :
       {"null", "3", "-0.5", "true", "\"text\"", "[]", "{}", "[[1, {\"id\": 2}], \"x\"]"}) {
    CAPTURE(notes);
    const std::string file =
        std::string("{\"notes\": ") + notes + R"(, "nodes": [{"id": 0, "time_us": 1}], "edges": []})";
    CHECK(error_of(file) == "no error");
  }
  CHECK(error_of(R"({"notes": [1], "notes": 2})") == "graph.json:1:16: key 'notes' is there twice");
}

TEST_CASE("files that cannot be read are errors") {
  CHECK_THROWS_WITH_AS(read_dag("no/such.json"), "no/such.json: cannot be read", InputError);
  CHECK_THROWS_WITH_AS(read_dag("."), ".: is a folder, not a graph", InputError);
}

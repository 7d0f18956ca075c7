// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>

#include "sim/results/write_csv.h"
#include "tests/results/results_fixture.h"

using namespace convoy;

TEST_CASE("csv: coordinates first, cells quoted where they must be, unknown values empty") {
  RunResult one = run_of("1", 1, 10), two = run_of("2", 2, 16);
  one.point = coordinates({{"cluster.nodes", "1"}, {"strategy", "{kind: single, n: 1}"}});
  two.point = coordinates({{"cluster.nodes", "2"}, {"strategy", "{kind: single, n: 1}"}});
  two.epoch_time_s = 0.1;
  two.cluster = "a \"lab\"";
  two.fits = false;
  std::ostringstream out;
  write_csv(demo({one, two}), out);
  CHECK(
      out.str() ==
      "cluster.nodes,point.strategy,id,model,cluster,servers,device_type,strategy,devices,global_batch,step_"
      "time_s,"
      "throughput_images_per_s,epoch_time_s,cost_usd_per_epoch,energy_j,compute_s,issue_wait_s,exposed_comm_"
      "s,idle_s,comm_"
      "bytes,"
      "load_imbalance,peak_memory_bytes,process_memory_bytes,device_memory_bytes,fits,software_framework,"
      "software_execution,software_layout,software_precision,software_update,software_transport,"
      "software_launches,software_input,bottleneck_kind,"
      "bottleneck_name,"
      "bottleneck_utilization,bottleneck_text,scaling_efficiency\n"
      "1,\"{kind: single, n: 1}\",1,toy,lab,box,k80,ring "
      "all-reduce,1,10,1,10,,,0.1,1,0,0,0,0,1,1048576,1572864,2097152,true,pytorch,eager,nchw,fp32,foreach,"
      "ideal,,synthetic,compute,n0,1,the k80 computes 100 % "
      "of the "
      "step,1\n"
      "2,\"{kind: single, n: 1}\",2,toy,\"a \"\"lab\"\"\",box,k80,ring "
      "all-reduce,2,20,1.25,16,0.1,,0.1,1.25,0,0,0,0,1,1048576,1572864,2097152,"
      "false,pytorch,eager,nchw,fp32,foreach,ideal,,synthetic,compute,n0,1,the k80 computes 100 % of the "
      "step,0.8\n");
}

TEST_CASE("csv: texts that a spreadsheet would take for formulas begin with an apostrophe, numbers do not") {
  const auto cell_of = [](const std::string& text) {
    CAPTURE(text);
    RunResult run = run_of("1", 1, 10);
    run.cluster = text;
    std::ostringstream out;
    write_csv(demo({run}), out);
    const std::string csv = out.str();
    const std::size_t begin = csv.find("toy,") + 4;
    return csv.substr(begin, csv.find(",box", begin) - begin);
  };
  for (const char* text : {"=1+1", "+1+cmd", "-2+3", "@SUM(A1)", "-", "-2.5e3x", "=", "- 3"})
    CHECK(cell_of(text) == std::string("'") + text);
  for (const char* text : {"-2.5e3", "+7", "lab", "3-2", "a=b"}) CHECK(cell_of(text) == text);
}

TEST_CASE("csv: what only some runs have is a column for all of them, empty for the others") {
  RunResult one = run_of("1", 1, 10), two = run_of("2", 2, 16);
  two.staleness = Staleness{1.5, 3};
  two.search = SearchSummary{"cost", 3, 2, 1, true, {{}, {}, {}}};
  std::ostringstream out;
  write_csv(demo({one, two}), out);
  std::istringstream lines(out.str());
  std::string header, first, second;
  std::getline(lines, header), std::getline(lines, first), std::getline(lines, second);
  CHECK(
      header.ends_with(",staleness_mean,staleness_max,auto_objective,auto_planned,auto_simulated,auto_pruned_"
                       "by_cost_table,auto_proven,auto_candidates,scaling_efficiency"));
  CHECK(first.ends_with("of the step,,,,,,,,,1"));
  CHECK(second.ends_with("of the step,1.5,3,cost,3,2,1,true,3,0.8"));
}

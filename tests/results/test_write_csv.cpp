// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

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
  write_csv({"demo", {one, two}, {}}, out);
  CHECK(out.str() ==
        "cluster.nodes,strategy,id,model,cluster,strategy,devices,global_batch,step_time_s,throughput_images_"
        "per_s,"
        "epoch_time_s,cost_usd_per_epoch,energy_j,compute_s,exposed_comm_s,idle_s,comm_bytes,load_imbalance,"
        "peak_memory_bytes,process_memory_bytes,fits,bottleneck_kind,bottleneck_name,bottleneck_utilization,"
        "scaling_efficiency\n"
        "1,\"{kind: single, n: 1}\",1,toy,lab,ring "
        "all-reduce,1,10,1,10,,,0.1,1,0,0,0,1,1048576,1572864,true,compute,n0,1,1\n"
        "2,\"{kind: single, n: 1}\",2,toy,\"a \"\"lab\"\"\",ring "
        "all-reduce,2,20,1.25,16,0.1,,0.1,1.25,0,0,0,1,1048576,1572864,"
        "false,compute,n0,1,0.8\n");
}

// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/approx.h"

namespace {

std::string plan_text(const std::string& constraints) {
  return "experiment: p\nmodel: alexnet\ntraining: {dataset: {samples: 1281167}}\ngoal: {epochs: 10}\n"
         "plan: {constraints: {" +
         constraints +
         "}, servers: [aws-p3.2xlarge, aws-p3.16xlarge], nodes: [1, 2], batch_per_device: [64, 128]}\n";
}

}  // namespace

TEST_CASE("plan: the order in words, and as JSON of schema convoy.plan/1") {
  const Workplace place;
  place.file("plan.yaml", plan_text("deadline: 48h"));
  const Finished words = place.convoy({"plan", "plan.yaml"});
  CAPTURE(words.err);
  REQUIRE(words.exit_code == 0);
  CHECK(words.out.find("rent 1 aws-p3.2xlarge on demand for ") != std::string::npos);
  CHECK(words.out.find("what would change it") != std::string::npos);
  const Finished printed = place.convoy({"plan", "plan.yaml", "--json"});
  REQUIRE(printed.exit_code == 0);
  CHECK(printed.out == place.read("runs/p/plan.json"));
  const nlohmann::json plan = nlohmann::json::parse(printed.out);
  CHECK(plan["schema"] == "convoy.plan/1");
  CHECK(plan["choice"]["servers"] == nlohmann::json{{"aws-p3.2xlarge", 1}});
  CHECK(plan["choice"]["strategy"]["kind"] == "data_parallel");
  CHECK(plan["choice"]["cost_usd"].get<double>() ==
        convoy::approx(plan["choice"]["usd_per_h"].get<double>() *
                       plan["choice"]["time_to_train_s"].get<double>() / 3600));
  std::int64_t all = plan["simulated"];
  for (const auto& [reason, count] : plan["pruned"].items()) all += count.get<std::int64_t>();
  CHECK(plan["candidates"] == all);
}

TEST_CASE("plan: nothing meets the constraints: exit 1, no choice, the nearest constraint") {
  const Workplace place;
  place.file("plan.yaml", plan_text("deadline: 1s"));
  const Finished printed = place.convoy({"plan", "plan.yaml", "--json"});
  CHECK(printed.exit_code == 1);
  const nlohmann::json plan = nlohmann::json::parse(printed.out);
  CHECK(plan["choice"].is_null());
  CHECK(plan["nearest_constraint"]["name"] == "deadline");
  CHECK(printed.err.find("nearest is deadline") != std::string::npos);
}

TEST_CASE("plan: check counts its candidates, run says where to go, wrong files end with 2") {
  const Workplace place;
  place.file("plan.yaml", plan_text("deadline: 1h"));
  CHECK(place.convoy({"check", "plan.yaml"}).out == "p: 8 candidates of 2 kinds of servers\n");
  const Finished run = place.convoy({"run", "plan.yaml"});
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("use `convoy plan FILE`") != std::string::npos);
  const Finished both = place.convoy({"plan", "plan.yaml", "--set", "goal.target=resnet50-imagenet-75.9"});
  CHECK(both.exit_code == 2);
  const Finished outside =
      place.convoy({"plan", "plan.yaml", "--set", "goal={target: resnet50-imagenet-75.9, optimizer: lars}",
                    "--set", "goal.extrapolate=false", "--set", "plan.batch_per_device=[8, 16]"});
  CHECK(outside.exit_code == 2);
  CHECK(outside.err.find(
            "epochs for global batches of 1632 to 67840; those of all candidates, 8 to 256, lie outside") !=
        std::string::npos);
  const Finished above =
      place.convoy({"plan", "plan.yaml", "--set", "goal={target: resnet50-imagenet-75.9, optimizer: lars}",
                    "--set", "plan.batch_per_device=[131072, 100000]"});
  CHECK(above.exit_code == 2);
  CHECK(above.err.find("epochs for global batches up to 67840; those of all candidates") !=
        std::string::npos);
}

TEST_CASE("plan: the task for SkyPilot replaces no file that is read, and there is none without a choice") {
  const Workplace place;
  place.file("plan.yaml", plan_text("deadline: 48h"));
  const std::string plan = place.read("plan.yaml");
  const Finished over = place.convoy({"plan", "plan.yaml", "--skypilot", "./plan.yaml"});
  CHECK(over.exit_code == 2);
  CHECK(over.err.find("./plan.yaml: cannot be written: it is read, as plan.yaml") != std::string::npos);
  CHECK(place.read("plan.yaml") == plan);
  REQUIRE(place.convoy({"plan", "plan.yaml", "--json", "--skypilot", "task.yaml"}).exit_code == 0);
  CHECK(place.read("task.yaml").find("\n  instance_type: p3.2xlarge\n") != std::string::npos);
  place.file("plan.yaml", plan_text("deadline: 1s"));
  const Finished none = place.convoy({"plan", "plan.yaml", "--json", "--skypilot", "none.yaml"});
  CHECK(none.exit_code == 1);
  CHECK(none.err.find("nearest is deadline") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(place.path() / "none.yaml"));
}

TEST_CASE(
    "plan: a noise scale is of the runs of one optimizer, and batches of a table that are no whole numbers "
    "are none to try") {
  const Workplace place;
  place.file("runs.csv", "batch,epochs,optimizer\n256,31,sgd\n2048,35,lars\n16384,62,lars\n");
  const Finished several = place.convoy({"calibrate", "runs.csv"});
  CHECK(several.exit_code == 2);
  CHECK(several.err ==
        "runs.csv: rows of several optimizers: a noise scale is that of one, so give a file for each\n");
  place.file("runs.csv", "batch,epochs,optimizer\n256,31,lars\n2048,35,lars\n16384,62,lars\n");
  CHECK(place.convoy({"calibrate", "runs.csv"}).exit_code == 0);
  place.file("runs.csv", "batch,epochs\n0.5,31\n2048,35\n16384,62\n1e30,90\n");
  place.file(
      "plan.yaml",
      "experiment: p\nmodel: alexnet\ntraining: {dataset: {samples: 100000}}\ngoal: {table: runs.csv}\n"
      "plan: {servers: [aws-p3.2xlarge]}\n");
  const Finished plan = place.convoy({"plan", "plan.yaml", "--json"});
  CAPTURE(plan.err);
  CHECK(plan.exit_code == 0);
}

TEST_CASE("plan: where no server is left the error names the constraint, or the market, that leaves none") {
  const Workplace place;
  place.file("plan.yaml", plan_text("providers: [gcp]"));
  CHECK(
      place.convoy({"plan", "plan.yaml"}).err ==
      "plan.yaml:5:33: plan.constraints.providers: none of plan.servers with a price is of gcp; add others, "
      "or leave out one of the two\n");
  place.file("all.yaml",
             "experiment: p\nmodel: alexnet\ntraining: {dataset: {samples: 1281167}}\ngoal: {epochs: 10}\n"
             "plan: {market: spot, batch_per_device: [64]}\n");
  place.file("vms.csv", "InstanceType,Price,Region\np3.2xlarge,3.06,us-east-1\n");
  CHECK(place.convoy({"plan", "all.yaml", "--prices", "vms.csv"}).err ==
        "all.yaml:5:16: plan.market: no server has a price there; add on_demand, or give --prices that have "
        "one\n");
}

TEST_CASE("plan: machines of one's own for nothing are a choice, and servers without a price are named") {
  const Workplace place;
  place.file("cfg/convoy/catalog/servers/our-box.yaml", "{base: dgx1-v100, title: ours, price: 0USD/h}\n");
  const auto plan = [&](const std::string& command, const std::string& servers, const std::string& more) {
    place.file("plan.yaml",
               "experiment: p\nmodel: alexnet\ntraining: {dataset: {samples: 1281167}}\ngoal: {epochs: 10}\n"
               "plan: {servers: [" +
                   servers + "], batch_per_device: [64], constraints: {budget: 100USD" + more + "}}\n");
    return place.shell("XDG_CONFIG_HOME=$PWD/cfg $CONVOY " + command);
  };
  const Finished own = plan("plan plan.yaml --json", "our-box, aws-p3.2xlarge, dgx2", "");
  CAPTURE(own.err);
  REQUIRE(own.exit_code == 0);
  const nlohmann::json answer = nlohmann::json::parse(own.out);
  CHECK(answer["choice"]["servers"] == nlohmann::json{{"our-box", 1}});
  CHECK(answer["choice"]["cost_usd"] == 0);
  CHECK(answer["choice"]["usd_per_h"] == 0);
  CHECK(answer["left_out"][0]["servers"] == nlohmann::json{"dgx2"});
  CHECK(own.err.find("convoy: left out: dgx2: no price on demand") != std::string::npos);
  const Finished words = plan("plan plan.yaml", "our-box, aws-p3.2xlarge, 'dgx*'", "");
  REQUIRE(words.exit_code == 0);
  CHECK(words.out.find("rent 1 our-box on demand for ") != std::string::npos);
  CHECK(words.out.find("left out: dgx-a100, dgx-h100, dgx1-p100, dgx1-v100, dgx2: no price on demand") !=
        std::string::npos);
  CHECK(words.out.find("inf") == std::string::npos);
  CHECK(words.out.find("nan") == std::string::npos);
  CHECK(plan("check plan.yaml", "our-box, dgx2", "").out.find("left out: dgx2: no price on demand") !=
        std::string::npos);
  CHECK(plan("plan plan.yaml --json", "our-box, aws-p3.2xlarge", ", providers: [aws]")
            .err.find("left out: our-box: plan.constraints.providers has aws only") != std::string::npos);
  const Finished none = plan("plan plan.yaml", "dgx2, dgx1-v100", "");
  CHECK(none.exit_code == 2);
  CHECK(none.err.starts_with("plan.yaml:5:17: plan.servers: dgx1-v100, dgx2: no price on demand; "));
}

TEST_CASE("plan: null is the default of constraints and other keys that may be left out") {
  const Workplace place;
  place.file("plan.yaml", plan_text("deadline: 48h, budget: null, max_devices: ~"));
  const Finished nulls = place.convoy({"plan", "plan.yaml", "--json"});
  CAPTURE(nulls.err);
  REQUIRE(nulls.exit_code == 0);
  nlohmann::json with = nlohmann::json::parse(nulls.out);
  place.file("plan.yaml", plan_text("deadline: 48h"));
  nlohmann::json without = nlohmann::json::parse(place.convoy({"plan", "plan.yaml", "--json"}).out);
  with.erase("manifest"), without.erase("manifest");
  CHECK(with == without);
}

TEST_CASE("plan: prices of the user's own, from a table with SkyPilot's header") {
  const Workplace place;
  place.file("plan.yaml", plan_text("deadline: 48h"));
  place.file("vms.csv",
             "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,"
             "AvailabilityZone\n"
             "p3.2xlarge,V100,1,8,61,,300.0,90.0,us-east-1,us-east-1a\n"
             "p3.16xlarge,V100,8,64,488,,24.48,7.0,us-east-1,us-east-1a\n");
  const Finished printed = place.convoy({"plan", "plan.yaml", "--json", "--prices", "vms.csv"});
  CAPTURE(printed.err);
  REQUIRE(printed.exit_code == 0);
  const nlohmann::json plan = nlohmann::json::parse(printed.out);
  CHECK(plan["choice"]["servers"] == nlohmann::json{{"aws-p3.16xlarge", 1}});
  CHECK(plan["choice"]["usd_per_h"] == 24.48);
  CHECK(plan["choice"]["region"] == "us-east-1");
  const nlohmann::json spot =
      nlohmann::json::parse(place
                                .convoy({"plan", "plan.yaml", "--json", "--prices", "vms.csv", "--set",
                                         "plan.market=[on_demand, spot]"})
                                .out);
  CHECK(spot["choice"]["market"] == "spot");
  CHECK(spot["choice"]["usd_per_h"] == 7.0);
  CHECK(spot["choice"]["interruptions"].get<double>() >= 0);
}

TEST_CASE("plan: written twice into the same folder, the report has the front") {
  const Workplace place;
  place.file("plan.yaml", plan_text("deadline: 48h"));
  REQUIRE(place.convoy({"plan", "plan.yaml", "--out", "o"}).exit_code == 0);
  const std::string report = place.read("o/report.html");
  CHECK(report.find("<svg") != std::string::npos);
  CHECK(report.find("What would change it") != std::string::npos);
  CHECK(place.convoy({"plan", "plan.yaml", "--out", "o"}).exit_code == 0);
  CHECK(place.read("o/report.html") == report);
  place.file("o/report.html", "gone");
  CHECK(place.convoy({"report", "o"}).exit_code == 0);
  CHECK(place.read("o/report.html") == report);
}

TEST_CASE("calibrate: a device that an experiment's cluster derives from one of the catalogue") {
  const Workplace place;
  place.file("mine.csv",
             "device,model,batch,precision,step,images_per_s,role\n"
             "mine,resnet50,128,fp32,train,412,fit\nmine,resnet50,64,fp32,train,395,fit\nmine,vgg16,64,fp32,"
             "train,230,test\n");
  place.file("lab.yaml",
             "experiment: lab\nmodel: resnet50\ntraining: {batch_per_device: 64}\ncluster:\n  server: box\n"
             "  servers: {box: {devices: [{device: mine, count: 1}]}}\n"
             "  devices: {mine: {base: v100-sxm2-16gb, peak.fp32: 14TFLOPS}}\n"
             "strategy: {kind: single}\n");
  CHECK(place.convoy({"calibrate", "mine.csv", "--device", "mine"})
            .err.starts_with("mine.csv: unknown device 'mine'"));
  const Finished fit =
      place.convoy({"calibrate", "mine.csv", "--device", "mine", "--experiment", "lab.yaml"});
  CHECK(fit.exit_code == 0);
  CHECK(fit.out.find("efficiency:") != std::string::npos);
  CHECK(fit.err.find("these keys replace those of the same names in devices.mine of lab.yaml") !=
        std::string::npos);
  // What is printed is taken where it says.
  std::string keys = fit.out;
  for (std::size_t at = 0; (at = keys.find('\n', at)) + 1 < keys.size(); at += 7)
    keys.insert(at + 1, "      ");
  place.file("fitted.yaml",
             "experiment: lab\nmodel: resnet50\ntraining: {batch_per_device: 64}\ncluster:\n  server: box\n"
             "  servers: {box: {devices: [{device: mine, count: 1}]}}\n"
             "  devices:\n    mine:\n      base: v100-sxm2-16gb\n      peak.fp32: 14TFLOPS\n      " +
                 keys + "strategy: {kind: single}\n");
  CHECK(place.convoy({"check", "fitted.yaml"}).exit_code == 0);
  CHECK(place.convoy({"calibrate", "mine.csv", "--device", "k80", "--experiment", "lab.yaml"}).err ==
        "lab.yaml:5:3: no server here has a device 'k80'; there are: mine\n");
  CHECK(place.convoy({"calibrate", "mine.csv", "--experiment", "lab.yaml"}).exit_code == 2);
}

TEST_CASE("calibrate: a noise scale from a table of batches and epochs") {
  const Workplace place;
  place.file("runs.csv", "batch,epochs\n1000,40\n3000,60\n7000,100\n");  // 30 (1 + B / 3000)
  const Finished fit = place.convoy({"calibrate", "runs.csv"});
  CHECK(fit.exit_code == 0);
  CHECK(fit.out == "goal: {noise_scale: 3000, epochs: 30}\n");
  place.file("falls.csv", "batch,epochs\n1000,40\n3000,30\n");
  CHECK(place.convoy({"calibrate", "falls.csv"}).exit_code == 2);
}

TEST_CASE("reproduce: MLPerf's times to train, with the epochs that were submitted") {
  const Workplace place;
  const Finished run = place.convoy({"reproduce", "mlperf", "--json"});
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  const nlohmann::json report = nlohmann::json::parse(run.out);
  std::vector<double> errors;
  for (const nlohmann::json& row : report["reproductions"][0]["rows"])
    if (row["table"] == "epochs as submitted") errors.push_back(std::abs(row["error"].get<double>()));
  REQUIRE(errors.size() == 16);
  std::sort(errors.begin(), errors.end());
  CHECK((errors[7] + errors[8]) / 2 < 0.12);
}

TEST_CASE("plan: a process forgets plans of candidates before they fill the memory") {
  const Workplace place;
  place.file(
      "p.yaml",
      "experiment: pipelines\nmodel: resnet18\ntraining: {dataset: {samples: 1281167}}\ngoal: {epochs: 1}\n"
      "plan:\n  objective: cost\n  servers: [aws-p3.16xlarge]\n  nodes: [1]\n  precision: [fp32]\n"
      "  batch_per_device: [8, 16, 24, 32, 40, 48, 56, 64]\n  strategies:\n"
      "    - {kind: pipeline, partition: even, micro_batches: 64}\n"
      "    - {kind: pipeline, partition: even, micro_batches: 64, schedule: gpipe}\n");
  const Finished plan = place.convoy({"plan", "p.yaml", "--jobs", "1", "--json"});
  REQUIRE(plan.exit_code == 0);
  CHECK(nlohmann::json::parse(plan.out)["planned"] == 16);
  rusage children{};
  REQUIRE(::getrusage(RUSAGE_CHILDREN, &children) == 0);
  // Each of the 16 takes a tenth of a gigabyte.
  CHECK(children.ru_maxrss < 500'000);  // kB
}

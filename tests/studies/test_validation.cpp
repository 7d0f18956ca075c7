// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sim/base/yaml_node.h"
#include "sim/studies/validation.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

class Rows {
 public:
  explicit Rows(const std::string& text)
      : path_((std::filesystem::temp_directory_path() / fmt::format("convoy-rows-{}.csv", ::getpid()))
                  .string()) {
    std::ofstream(path_) << text;
  }
  ~Rows() { std::filesystem::remove(path_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  Validation validate(std::size_t jobs = 2) const {
    return validate_rows(path_, jobs, [](std::size_t, std::size_t) {});
  }
  std::string error() const {
    try {
      validate();
    } catch (const InputError& error) {
      const std::string message = error.what();
      return message.substr(message.find(".csv:") + 5);
    }
    return "none";
  }

 private:
  std::string path_;
};

/// 3 GFLOP an image forward and backward at 10 TFLOPS: 3333.3 images/s on one device.
const char* const exact_columns = "device,model,batch_per_device,images_per_s,cluster.devices\n";
std::string exact_row(double images_per_s) {
  return fmt::format(
      "ideal,\"{{name: toy, input: [1], layers: [{{name: l, kind: custom, forward_flops: 1e9, "
      "backward_flops: 2e9, "
      "parameters: 0, output: [1], memory_bytes: 0}}]}}\",10,{},\"{{ideal: {{peak: {{fp32: 10TFLOPS}}, "
      "memory: 16GiB, "
      "memory_bandwidth: 500GB/s, efficiency: 1.0}}}}\"\n",
      images_per_s);
}

}  // namespace

TEST_CASE(
    "validation: rows of an exact device have the closed form's throughput, and errors are relative to what "
    "is measured") {
  const double exact = 1e4 / 3;
  const Rows rows(exact_columns + exact_row(exact) + exact_row(exact / 2) + exact_row(exact * 4));
  const Validation validation = rows.validate();
  REQUIRE(validation.rows.size() == 3);
  for (const ValidatedRow& row : validation.rows) {
    CHECK(row.predicted == approx(exact));
    CHECK_FALSE(row.interval.has_value());
  }
  CHECK(validation.rows[1].error() == approx(1.0));
  CHECK(validation.rows[2].error() == approx(-0.75));
  CHECK(validation.summary.rows == 3);
  CHECK(validation.summary.mean == approx(1.75 / 3));
  CHECK(validation.summary.bias == approx(0.25 / 3));
  CHECK_FALSE(validation.coverage.has_value());
}

TEST_CASE(
    "validation: the term that is off by a common factor is the one that mends the rows, and by that "
    "factor") {
  // All rows are computing alone: kernels that are half a power of two slower explain them; no other term has any part.
  const double measured = 1e4 / 3 / std::sqrt(2.0);
  const Validation validation = Rows(exact_columns + exact_row(measured) + exact_row(measured)).validate();
  REQUIRE(validation.terms.size() == 1);
  CHECK(validation.terms[0].term == "kernels");
  CHECK(validation.terms[0].factor == approx(1 / std::sqrt(2.0)));
  CHECK(validation.terms[0].before == approx(std::sqrt(2.0) - 1));
  CHECK(validation.terms[0].after < 1e-9);
}

TEST_CASE(
    "validation: the number of processes changes nothing, and several devices of a server have a network") {
  const std::string text =
      "server,model,framework,precision,batch_per_device,nodes,devices_per_node,images_per_s,cluster.fabric\n"
      "aws-p3.16xlarge,alexnet,pytorch,fp32,64,2,1,3000,\n"
      "aws-p3.16xlarge,alexnet,pytorch,fp32,64,2,1,3000,\"{kind: switch, bandwidth: 1Gbps, latency: 50us, "
      "protocol: tcp}\"\n";
  const Validation one = Rows(text).validate(1), two = Rows(text).validate(2);
  for (std::size_t r = 0; r < 2; ++r) CHECK(one.rows[r].predicted == two.rows[r].predicted);
  CHECK(one.rows[1].predicted < one.rows[0].predicted / 2);  // 244 MB of gradients over 1 Gbit/s
  REQUIRE(one.rows[0].interval.has_value());
  CHECK((*one.rows[0].interval)[0] < one.rows[0].predicted);
  const auto network = std::find_if(one.terms.begin(), one.terms.end(),
                                    [](const ValidatedTerm& term) { return term.term == "network"; });
  CHECK(network != one.terms.end());
}

namespace {

/// Images/s of a device of the catalogue with changes of its description, on a typical host.
double images_per_s(const std::string& device, const std::string& changes, const std::string& model,
                    int batch) {
  const std::string described = changes.empty() ? "" : fmt::format("\"{{{}: {{{}}}}}\"", device, changes);
  const Rows row("device,model,batch_per_device,precision,images_per_s,cluster.devices\n" +
                 fmt::format("{},{},{},fp32,1,{}\n", device, model, batch, described));
  return row.validate(1).rows[0].predicted;
}

}  // namespace

TEST_CASE("validation: a refit is judged on networks that it has not seen, and predicts another one better") {
  // The lab's card runs 3x3 convolutions at two thirds and normalizations at 60 % of what the catalogue says.
  const std::string lab = "efficiency.convolution_3x3: 0.4, efficiency.normalization: 0.45";
  std::string text = "device,model,batch_per_device,precision,images_per_s\n";
  for (const auto& [model, batch] : std::vector<std::pair<std::string, int>>{
           {"resnet18", 32}, {"resnet18", 64}, {"resnet34", 32}, {"vgg11_bn", 32}, {"resnet50", 16}})
    text += fmt::format("v100-sxm2-16gb,{},{},fp32,{}\n", model, batch,
                        images_per_s("v100-sxm2-16gb", lab, model, batch));
  const Validation validation = Rows(text).validate();
  REQUIRE(validation.refits.size() == 1);
  const ValidatedRefit& refit = validation.refits[0];
  CHECK(refit.rows == 5);
  CHECK(refit.networks == 4);
  CHECK(refit.before == approx(validation.summary.mean));  // of the same rows, by another way
  CHECK(refit.after < refit.before / 2);
  CHECK(refit.helps());
  CHECK(refit.yaml.find("base: v100-sxm2-16gb\n") == 0);

  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("convoy-refit-{}", ::getpid());
  const std::vector<std::string> files = write_validation_files(validation, folder.string());
  REQUIRE(files.size() == 3);
  CHECK(files[2] == (folder / "convoy/catalog/devices/v100-sxm2-16gb-here.yaml").string());
  const char* const before = std::getenv("XDG_CONFIG_HOME");
  const std::string kept = before ? before : "";
  ::setenv("XDG_CONFIG_HOME", folder.c_str(), 1);
  const double measured = images_per_s("v100-sxm2-16gb", lab, "wide_resnet50_2", 32);
  const double as_it_is = images_per_s("v100-sxm2-16gb", "", "wide_resnet50_2", 32);
  const double refitted = images_per_s("v100-sxm2-16gb-here", "", "wide_resnet50_2", 32);
  before ? ::setenv("XDG_CONFIG_HOME", kept.c_str(), 1) : ::unsetenv("XDG_CONFIG_HOME");
  std::filesystem::remove_all(folder);
  CAPTURE(measured);
  CAPTURE(as_it_is);
  CAPTURE(refitted);
  CHECK(std::abs(refitted / measured - 1) < std::abs(as_it_is / measured - 1) / 2);
}

TEST_CASE("validation: nothing is refitted to rows of one network, nor written where it helps no other one") {
  const std::string columns = "device,model,batch_per_device,precision,images_per_s\n";
  CHECK(Rows(columns + "k80,resnet50,16,fp32,30\nk80,resnet50,32,fp32,32\n").validate().refits.empty());
  // Two networks that are off the other way round: what mends one makes the other worse.
  const double one = images_per_s("k80", "", "resnet50", 16), other = images_per_s("k80", "", "resnet34", 16);
  const Validation validation =
      Rows(columns +
           fmt::format("k80,resnet50,16,fp32,{}\nk80,resnet34,16,fp32,{}\n", 1.3 * one, other / 1.3))
          .validate();
  REQUIRE(validation.refits.size() == 1);
  CHECK_FALSE(validation.refits[0].helps());
}

TEST_CASE("validation: nothing is refitted to steps in micro-batches, nor a device that the rows describe") {
  const std::string columns = "device,model,batch_per_device,precision,images_per_s,";
  const auto rows = [](const std::string& device, const std::string& cell) {
    return fmt::format("{0},resnet18,32,fp32,1000,{1}\n{0},resnet34,32,fp32,600,{1}\n", device, cell);
  };
  const auto refits = [&](const std::string& column, const std::string& device, const std::string& cell) {
    return Rows(columns + column + "\n" + rows(device, cell)).validate().refits.size();
  };
  CHECK(refits("strategy", "v100-sxm2-16gb", "{kind: single}") == 1);
  CHECK(refits("strategy", "v100-sxm2-16gb", "\"{kind: pipeline, stages: 1, micro_batches: 8}\"") == 0);
  CHECK(refits("cluster.devices", "card", "{card: {base: v100-sxm2-16gb}}") == 0);
}

TEST_CASE("validation: a refit is YAML, whatever its rows' file is called") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("convoy \"rows\\\n{}.csv", ::getpid());
  std::ofstream(file) << "device,model,batch_per_device,precision,images_per_s\n"
                         "k80,resnet18,16,fp32,80\nk80,resnet50,16,fp32,30\n";
  const Validation validation = validate_rows(file.string(), 1, [](std::size_t, std::size_t) {});
  std::filesystem::remove(file);
  REQUIRE(validation.refits.size() == 1);
  const YamlNode device = parse_yaml(validation.refits[0].yaml, "device.yaml");
  CHECK(find_path(device, "sources.evidence")->scalar.find(file.filename().string()) != std::string::npos);
}

TEST_CASE("validation: what is wrong is told at its cell") {
  const auto error = [](const std::string& row,
                        const std::string& columns =
                            "device,server,model,batch_per_device,precision,nodes,images_per_s") {
    return Rows(columns + "\n" + row + "\n").error();
  };
  CHECK(error("k80,,resnet50,64,fp32,1,") == "2:25: images_per_s: expected a number above zero, found ''");
  CHECK(error("k80,,resnet50,64,fp99,1,50").find("2:18: training.precision: ") == 0);
  CHECK(error("k80,,resnet50,64,fp32,2,50").find("2:23: nodes: several devices need a server") == 0);
  CHECK(error("k80,dgx1-v100,resnet50,64,fp32,1,50").find("2:1: expected a server or a device") == 0);
  CHECK(error(",,resnet50,64,fp32,1,50").find("expected a server or a device") != std::string::npos);
  CHECK(error("k80,,resnet51,64,fp32,1,50").find("2:6: model: ") == 0);
  CHECK(error("k80,resnet50,64,50", "devcie,model,batch_per_device,images_per_s")
            .find("1:1: unknown column 'devcie' (did you mean 'device'?)") == 0);
  CHECK(error("", "device,model,batch_per_device,images_per_s").find("has no rows") != std::string::npos);
}

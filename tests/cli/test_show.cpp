// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>

#include "sim/base/input_error.h"
#include "sim/cli/commands.h"
#include "tests/cli/program.h"
#include "tests/support/approx.h"

using nlohmann::json;

namespace {

/// What `convoy show` prints of one thing, without a process for it.
std::string shown(const std::string& subject, const std::string& name, bool as_json) {
  convoy::ShowArguments arguments;
  arguments.what = subject;
  arguments.name = name;
  arguments.json = as_json;
  std::ostringstream out;
  convoy::show(out, arguments);
  return out.str();
}

}  // namespace

namespace {

void add_numbers(const json& value, std::vector<double>& numbers, std::string& texts) {
  if (value.is_number()) numbers.push_back(value.get<double>());
  if (value.is_string()) texts += value.get<std::string>() + ' ';
  if (!value.is_structured()) return;
  for (const auto& [key, inner] : value.items()) {
    texts += key + ' ';
    add_numbers(inner, numbers, texts);
  }
}

/// Whether a number of the JSON, in some unit, is written like this: within half of its last digit.
/// @param numbers sorted
bool is_shown(const std::string& written, const std::vector<double>& numbers) {
  const double value = std::stod(written);
  const std::size_t point = written.find('.');
  const std::size_t decimals = point == std::string::npos ? 0 : written.size() - point - 1;
  // 512 may be 511.6, and 1.23e+03 is not written: three digits are shown where there are more.
  const double half = std::max(0.5 * std::pow(10.0, -static_cast<double>(decimals)), 0.005 * std::abs(value));
  const auto has_between = [&](double low, double high) {
    const auto from = std::lower_bound(numbers.begin(), numbers.end(), low);
    return from != numbers.end() && *from <= high;
  };
  for (const double unit : {1.0, 1e3, 1e6, 1e9, 1e12, 1e-3, 1e-6, 1e-9, 0.01, 1024.0, 1048576.0, 1073741824.0,
                            1099511627776.0, 1.25e8})
    if (has_between(unit * (value - 1.001 * half), unit * (value + 1.001 * half))) return true;
  return has_between(std::log1p((value - half) / 100), std::log1p((value + half) / 100));  // a spread, in %
}

/// Every number of a thing's text is in its JSON. @return how many there are
std::size_t check_numbers(const std::string& text, const json& value) {
  std::vector<double> numbers;
  std::string texts;
  add_numbers(value, numbers, texts);
  std::sort(numbers.begin(), numbers.end());
  static const std::regex number("(?:^|[ (+-])([0-9]+(?:[.][0-9]+)?)(?=[ ,)\n])");
  std::size_t checked = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), number), end; it != end; ++it, ++checked) {
    const std::string written = (*it)[1];
    if (texts.find(written) == std::string::npos && !is_shown(written, numbers))
      FAIL_CHECK(written << " of the text is not in the JSON: " << text.substr(0, 400));
  }
  return checked;
}

}  // namespace

TEST_CASE(
    "show: every subject lists what there is, and each thing of it in detail, as text and as JSON, which has "
    "every "
    "number of the text") {
  const Workplace place;
  std::size_t checked = 0;
  for (const std::string& subject : convoy::show_subjects()) {
    CAPTURE(subject);
    const Finished text = place.convoy({"show", subject});
    CHECK(text.exit_code == 0);
    CHECK(text.err.empty());
    const Finished list = place.convoy({"show", subject, "--json"});
    CHECK(list.exit_code == 0);
    const json names = json::parse(list.out);
    REQUIRE(names.size() > 1);
    const std::string first = names[0];
    CHECK(place.convoy({"show", subject, first}).out == shown(subject, first, false));
    CHECK(place.convoy({"show", subject, first, "--json"}).out == shown(subject, first, true));
    for (const std::string name : names) {
      CAPTURE(name);
      CHECK(text.out.find(name) != std::string::npos);
      if (name.find("DEPTH") != std::string::npos) continue;  // a pattern, not a model
      const std::string in_words = shown(subject, name, false), as_json = shown(subject, name, true);
      const json as_value = json::parse(as_json);
      CHECK(as_value.is_object());
      if (subject != "schema") checked += check_numbers(in_words, as_value);
      // The last line ends, and no empty one follows.
      for (const std::string& written : {in_words, as_json}) {
        REQUIRE(written.size() > 1);
        CHECK(written.back() == '\n');
        CHECK(written[written.size() - 2] != '\n');
      }
    }
  }
  CHECK(checked > 1000);
}

TEST_CASE("show: a name that there is not is refused in one line at the command, as text and as JSON") {
  for (const std::string& subject : convoy::show_subjects())
    for (const bool as_json : {false, true}) {
      CAPTURE(subject);
      std::string error;
      try {
        shown(subject, "no-such-thing", as_json);
      } catch (const convoy::InputError& refused) {
        error = refused.what();
      }
      CHECK(error.starts_with("show " + subject + ":1:1: "));
      CHECK(error.find("'no-such-thing'") != std::string::npos);
      CHECK(error.find('\n') == std::string::npos);
    }
}

TEST_CASE("show models: resnet50 as torchvision counts it") {
  const Workplace place;
  const json model = json::parse(place.convoy({"show", "models", "resnet50", "--json"}).out);
  CHECK(model["name"] == "resnet50");
  CHECK(model["parameters"] == 25557032);      // torchvision's documentation, ResNet50_Weights
  CHECK(model["parameter_tensors"] == 161);    // 53 convolutions, 53 x 2 of batch norms, 2 of the classifier
  CHECK(model["forward_macs"] == 4089184256);  // 4.09 G in torchvision's table
  CHECK(model["forward_flops"] == 2.0 * 4089184256);
  CHECK(model["layers"][0].size() == 6);
  double saved = 4.0 * 3 * 224 * 224;  // the image
  for (const json& layer : model["layers"]) saved += layer["saved_bytes"].get<double>();
  CHECK(saved == model["saved_activation_bytes"]);
  CHECK(model["layers"][0]["output_shape"] == json::array({64, 112, 112}));
}

TEST_CASE("show models: the times of the layers on a device add up to the step") {
  const Workplace place;
  const json model = json::parse(
      place.convoy({"show", "models", "resnet18", "--json", "--device", "k80", "--batch", "16"}).out);
  CHECK(model["device"] == "k80");
  CHECK(model["batch"] == 16);
  CHECK(model["precision"] == "fp32");
  double time_s = 0, share = 0;
  for (const json& layer : model["layers"]) {
    time_s += layer["time_s"].get<double>();
    share += layer["time_share"].get<double>();
  }
  CHECK(std::abs(time_s / model["step_time_s"].get<double>() - 1) < 1e-9);
  CHECK(std::abs(share - 1) < 1e-9);
  CHECK(place.convoy({"show", "models", "resnet18", "--device", "k80", "--precision", "fp8"}).err ==
        "show models:1:1: --precision: unknown precision 'fp8' (did you mean 'fp32'?); known: fp32, tf32, "
        "fp16, bf16\n");
  CHECK(place.convoy({"show", "devices", "--dot"}).err ==
        "show devices:1:1: --dot shows one model or cluster: convoy show models NAME, convoy show clusters "
        "NAME\n");
  CHECK(place.convoy({"show", "models", "resnet18", "--svg"}).err ==
        "show models:1:1: --svg shows one cluster: convoy show clusters NAME\n");
  CHECK(place.convoy({"show", "clusters", "--device", "k80"}).err ==
        "show clusters:1:1: --device shows one model: convoy show models NAME\n");
}

TEST_CASE("show clusters: bandwidth between devices, and the same as a drawing") {
  const Workplace place;
  place.file(
      "lab.yaml",
      "experiment: lab\ncluster:\n  name: lab\n  nodes: [{name: n, count: 2, server: box}]\n"
      "  fabric: {kind: switch, bandwidth: 10Gbps, latency: 20us}\n"
      "  servers: {box: {devices: [{device: k80, count: 2}], interconnect: {kind: pcie, bandwidth: 12GB/s, "
      "latency: 4us}}}\n");
  const json cluster = json::parse(place.convoy({"show", "clusters", "lab.yaml", "--json"}).out);
  CHECK(cluster["matrix_devices"] == json({"n0.gpu0", "n0.gpu1", "n1.gpu0", "n1.gpu1"}));
  CHECK(cluster["bandwidth_Bps"][0][0].is_null());
  CHECK(cluster["bandwidth_Bps"][0][1] == 12e9);
  CHECK(cluster["bandwidth_Bps"][0][2] == 1.25e9);
  CHECK(cluster["latency_s"][0][1].get<double>() == convoy::approx(4e-6));
  CHECK(cluster["latency_s"][3][0].get<double>() == convoy::approx(24e-6));

  const std::string dot = place.convoy({"show", "clusters", "lab.yaml", "--dot"}).out;
  CHECK(dot.starts_with("graph cluster {"));
  for (const char* name : {"n0.gpu1", "n1.nic", "n0.gpu0.pcie"}) CHECK(dot.find(name) != std::string::npos);
  // A device and its lanes, lanes beside lanes and the NIC, the two NICs.
  std::size_t joins = 0;
  for (std::size_t at = dot.find(" -- "); at != std::string::npos; at = dot.find(" -- ", at + 1)) ++joins;
  CHECK(joins == 4 + 2 + 4 + 1);
  const std::string svg = place.convoy({"show", "clusters", "lab.yaml", "--svg"}).out;
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  for (const char* name : {"n0.gpu1", "n1.nic", "12.0 GB/s"}) CHECK(svg.find(name) != std::string::npos);
  CHECK(svg == place.convoy({"show", "clusters", "lab.yaml", "--svg"}).out);
}

TEST_CASE("show clusters: a picture of four DGX-1 fits a page, and a cable between two devices is one line") {
  const Workplace place;
  const std::string svg = place.convoy({"show", "clusters", "dgx1-v100-x4", "--svg"}).out;
  const std::size_t at = svg.find(" width=\"");
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(svg.substr(at + 8)) <= 16 * 130);
  // 16 NVLink pairs a DGX-1: each of 8 devices has 4 neighbours (nvidia-smi topo -m).
  std::size_t bows = 0;
  for (std::size_t bow = svg.find("<title>"); bow != std::string::npos; bow = svg.find("<title>", bow + 1))
    ++bows;
  CHECK(bows == 4 * 16);
  const std::string dot = place.convoy({"show", "clusters", "dgx1-v100-x4", "--dot"}).out;
  CHECK(dot.find("label=\"n0.gpu0") != std::string::npos);
}

namespace {

struct PicturePoint {
  double x, y;
};

/// Numbers of an element's attributes or path, in the order written.
std::vector<double> numbers_in(const std::string& text) {
  std::vector<double> numbers;
  for (std::size_t at = 0; (at = text.find_first_of("0123456789.", at)) != std::string::npos;) {
    std::size_t read = 0;
    numbers.push_back(std::stod(text.substr(at), &read));
    at += read;
  }
  return numbers;
}

/// Corners of the straight lines of a picture: paths of M, L and H.
std::vector<std::vector<PicturePoint>> straight_lines(const std::string& svg) {
  std::vector<std::vector<PicturePoint>> lines;
  for (std::size_t at = svg.find("<path d=\""); at != std::string::npos;
       at = svg.find("<path d=\"", at + 1)) {
    const std::string path = svg.substr(at + 9, svg.find('"', at + 9) - at - 9);
    if (path.find('Q') != std::string::npos) continue;
    std::vector<double> numbers = numbers_in(path);
    if (path.find('H') != std::string::npos) numbers.push_back(numbers[1]);
    lines.emplace_back();
    for (std::size_t i = 0; i + 1 < numbers.size(); i += 2)
      lines.back().push_back({numbers[i], numbers[i + 1]});
  }
  return lines;
}

}  // namespace

TEST_CASE("show clusters: no line of a picture crosses a box that it does not lead to") {
  const Workplace place;
  place.file("rail.yaml", "cluster: {server: dgx-a100, nodes: 3}\n");
  std::size_t bent = 0;
  for (const char* name : {"dgx1-v100-x4", "tf-ec2-p2", "rail.yaml"}) {
    CAPTURE(name);
    const std::string svg = place.convoy({"show", "clusters", name, "--svg"}).out;
    const std::vector<std::vector<PicturePoint>> lines = straight_lines(svg);
    REQUIRE(lines.size() > 30);
    for (const std::vector<PicturePoint>& line : lines) bent += line.size() > 2 ? 1 : 0;
    std::size_t crossed = 0;
    for (std::size_t at = svg.find("<rect "); at != std::string::npos; at = svg.find("<rect ", at + 1)) {
      const std::vector<double> box = numbers_in(svg.substr(at, svg.find(" rx=", at) - at));
      const auto inside = [&](double x, double y, double margin) {
        return x > box[0] - margin && x < box[0] + box[2] + margin && y > box[1] - margin &&
               y < box[1] + box[3] + margin;
      };
      for (const std::vector<PicturePoint>& line : lines) {
        if (inside(line.front().x, line.front().y, 1) || inside(line.back().x, line.back().y, 1)) continue;
        for (std::size_t i = 0; i + 1 < line.size(); ++i)
          for (int step = 0; step <= 100; ++step) {
            const double share = step / 100.0;
            crossed += inside(line[i].x + share * (line[i + 1].x - line[i].x),
                              line[i].y + share * (line[i + 1].y - line[i].y), 0);
          }
      }
    }
    CHECK(crossed == 0);
  }
  CHECK(bent > 32);  // past the boxes of rows between
}

TEST_CASE("show: what is shown under a name as people write it is what there is under its own") {
  const Workplace place;
  for (const auto& [subject, written, own] : {std::array{"servers", "p4d", "aws-p4d.24xlarge"},
                                              {"servers", "AWS p3.16xlarge", "aws-p3.16xlarge"},
                                              {"devices", "Tesla T4", "t4"},
                                              {"devices", "1080ti", "gtx-1080-ti"},
                                              {"transports", "NCCL-TCP", "nccl-tcp"},
                                              {"models", "ResNet-50", "resnet50"},
                                              {"strategies", "ddp", "data_parallel"}})
    for (const bool as_json : {false, true}) {
      CAPTURE(written);
      std::vector<std::string> one{"show", subject, written}, other{"show", subject, own};
      if (as_json) one.emplace_back("--json"), other.emplace_back("--json");
      const Finished shown = place.convoy(one);
      CHECK(shown.exit_code == 0);
      CHECK(shown.out == place.convoy(other).out);
    }
}

TEST_CASE("show servers: every price has its date and region") {
  const Workplace place;
  const json server = json::parse(place.convoy({"show", "servers", "aws-p4d.24xlarge", "--json"}).out);
  CHECK(server["price_usd_per_h"] == 21.957642);
  CHECK(server["vcpus"] == 96);
  CHECK(server["prices"][0]["region"] == "us-east-1");
  CHECK(server["prices"][0]["from"] == "2025-06-23");
  CHECK(server["prices"].size() >= 4);
  const std::string text = place.convoy({"show", "servers", "azure-nc6"}).out;
  CHECK(text.find("0.9 USD/h, on demand, eastus, 2023-10-27 to 2024-12-13 (data_sheet): no longer offered") !=
        std::string::npos);
}

TEST_CASE("--set reaches an entry of the catalogue by a quoted key") {
  const Workplace place;
  place.file(
      "e.yaml",
      "experiment: e\nmodel: resnet18\ntraining: {batch_per_device: 8, optimizer: sgd, dataset: {samples: "
      "1000}}\n"
      "cluster: {server: aws-p3.16xlarge, nodes: 1}\nstrategy: {kind: data_parallel, sync: all_reduce}\n");
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"run", "e.yaml", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(place.convoy(words).out)["runs"];
  };
  const double usd = run({})[0]["cost_usd_per_epoch"];
  const double doubled =
      run({"--set", "cluster.servers.\"aws-p3.16xlarge\".price=48.96USD/h"})[0]["cost_usd_per_epoch"];
  CHECK(doubled == convoy::approx(2 * usd));
  const json swept =
      run({"--set", "sweep.cluster.servers.\"aws-p3.16xlarge\".price=[24.48USD/h, 12.24USD/h]"});
  REQUIRE(swept.size() == 2);
  CHECK(swept[0]["cost_usd_per_epoch"].get<double>() == convoy::approx(usd));
  CHECK(swept[1]["cost_usd_per_epoch"].get<double>() == convoy::approx(usd / 2));
}

TEST_CASE("show models: a drawing has a node a layer and an arrow an input") {
  const Workplace place;
  place.file("net.yaml",
             "name: net\ninput: [3, 8, 8]\nlayers:\n  - {name: a, kind: relu}\n  - {name: b, kind: relu}\n"
             "  - {name: 's\"x', kind: add, inputs: [a, b]}\n");
  CHECK(place.convoy({"show", "models", "net.yaml", "--dot"}).out ==
        "digraph \"net\" {\n  node [shape=box, fontname=\"sans-serif\"];\n  input [label=\"image\\n[3, 8, "
        "8]\"];\n"
        "  l0 [label=\"a\\nrelu [3, 8, 8]\"];\n  input -> l0;\n"
        "  l1 [label=\"b\\nrelu [3, 8, 8]\"];\n  l0 -> l1;\n"
        "  l2 [label=\"s\\\"x\\nadd [3, 8, 8]\"];\n  l0 -> l2;\n  l1 -> l2;\n}\n");
}

TEST_CASE("show models: a file beside the user") {
  const Workplace place;
  place.file("mine.yaml",
             "name: mine\ninput: [3, 8, 8]\nlayers:\n  - {name: flat, kind: flatten}\n"
             "  - {name: fc, kind: linear, out_features: 10}\n");
  const json model = json::parse(place.convoy({"show", "models", "mine.yaml", "--json"}).out);
  CHECK(model["parameters"] == 192 * 10 + 10);
  CHECK(model["forward_macs"] == 1920);
}

TEST_CASE("show algorithms: each in a line, its messages as a schedule that is read again, and wrong names") {
  const Workplace place;
  CHECK(place.convoy({"show", "algorithms"}).out.find("tree                all-reduce; as a schedule: ") !=
        std::string::npos);
  for (const std::string name : {"ring", "tree", "halving_doubling", "hierarchical"}) {
    CAPTURE(name);
    const Finished listed =
        place.convoy({"show", "algorithms", name, "--ranks", "4", "--ranks-per-host", "2"});
    REQUIRE_MESSAGE(listed.exit_code == 0, listed.err);
    place.file("listed.yaml", listed.out);
    CHECK(place.convoy({"show", "algorithms", "listed.yaml", "--ranks", "4"}).out == listed.out);
  }
  const Finished fewer = place.convoy({"show", "algorithms", "listed.yaml", "--ranks", "3"});
  CHECK(fewer.exit_code == 2);
  CHECK(fewer.err.find("listed.yaml needs at least 4 devices, found 3") != std::string::npos);
  const Finished wrong = place.convoy({"show", "algorithms", "rng"});
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.err.find("unknown algorithm 'rng' (did you mean 'ring'?)") != std::string::npos);
  const Finished keys = place.convoy({"show", "keys", "schedule"});
  CHECK(keys.exit_code == 0);
  CHECK(keys.out.find("rounds[].send.chunk") != std::string::npos);
}

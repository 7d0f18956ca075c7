// SPDX-License-Identifier: MIT
// Law: what is called by a name is known by nothing else than being the same name. Experiments whose hosts,
// devices, servers, layers, cables, switches and models have other names, chosen to look like the program's
// own, have the same results under those names, to the last bit.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "sim/results/write_json.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "tests/laws/random_experiment.h"
#include "tests/laws/strategy_rows.h"
#include "tests/topologies/machines.h"
#include "topologies/catalog.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// Texts that mean something in the program's own names: of links, transports, operations, buffers, phases of
/// collectives, hosts that it makes. The first half goes before what tells names apart, the second behind.
const std::vector<std::string>& beginnings() {
  static const std::vector<std::string> table{
      "pcie", "all-reduce", "reduce-scatter", "input", "decode", "aaa", "zzz",
      "gpu",  "nic",        "ideal",          "loss",  "ps"};
  return table;
}
const std::vector<std::string>& endings() {
  static const std::vector<std::string> table{
      ".up",     ".down",   ".nic",   "-rdma",         "-tcp",     ".output",        ".output_gradient",
      ".pcie",   " #1",     ".loss",  ".loss.forward", ".forward", ".data_gradient", " again",
      ".weight", ".update", ".copies"};
  return table;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// Names in the order in which they are asked for, under two readings: "q07_", and one with texts around it.
class Names {
 public:
  explicit Names(Dice& dice) : dice_(dice) {}

  /// A mark that stands for a name until `with` fills it in. @param plain letters, digits and - only: a host
  std::string make(bool plain = false) {
    const std::string core = fmt::format("q{:02}_", names_.size());
    std::string other = dice_.one_of(beginnings()) + "-" + core;
    if (!plain) other += dice_.one_of(endings());
    names_.push_back({core, std::move(other)});
    return fmt::format("@{}@", names_.size() - 1);
  }
  /// The text with all names in place. @param other the second reading
  std::string with(std::string text, bool other) const {
    for (std::size_t n = names_.size(); n-- > 0;)
      text = replaced(std::move(text), fmt::format("@{}@", n), other ? names_[n].second : names_[n].first);
    return text;
  }
  /// A result of the second reading with the names of the first.
  std::string back(std::string text) const {
    for (const auto& [core, other] : names_) text = replaced(std::move(text), other, core);
    return text;
  }

 private:
  Dice& dice_;
  std::vector<std::pair<std::string, std::string>> names_;
};

/// A random model with marks for the names of its layers and its own.
std::string marked_model(Dice& dice, Names& names) {
  const std::string model = random_model(dice);
  static const std::regex name(R"(\b((conv|bn|relu|left|right|sum|pool|body)[0-9]+|flat|fc|net|toy)\b)");
  std::map<std::string, std::string> marks;
  std::string text;
  std::size_t at = 0;
  for (std::sregex_iterator it(model.begin(), model.end(), name), end; it != end; ++it) {
    const auto [mark, fresh] = marks.emplace(it->str(), "");
    if (fresh) mark->second = "\"" + names.make() + "\"";
    text += model.substr(at, static_cast<std::size_t>(it->position()) - at) + mark->second;
    at = static_cast<std::size_t>(it->position() + it->length());
  }
  return text + model.substr(at);
}

/// A server's interior of four devices: written as a list of cables, or one of the other kinds.
std::string marked_interior(Dice& dice, Names& names) {
  if (dice.coin()) return dice.one_of(interconnects());
  const std::string hub = names.make();
  std::string links;
  const auto cable = [&](const std::string& from, const std::string& to) {
    links += fmt::format("{{from: {}, to: {}, bandwidth: 12GB/s, latency: 5us, name: \"{}\"}}, ", from, to,
                         names.make());
  };
  const bool ring = dice.coin();
  for (int d = 0; d < 4; ++d) {
    cable(fmt::format("gpu{}", d), "\"" + hub + "\"");
    if (ring) cable(fmt::format("gpu{}", d), fmt::format("gpu{}", (d + 1) % 4));
  }
  cable("\"" + hub + "\"", "host");
  return fmt::format("{{kind: custom, switches: [\"{}\"], links: [{}]}}", hub, links);
}

/// One or two kinds of servers on one of the fabrics, or on cables of its own between the hosts, which are on
/// two switches with two equally long ways between them.
std::string marked_cluster(Dice& dice, Names& names) {
  const std::string quick = names.make(), slow = names.make(), box = names.make(), other = names.make();
  const std::string a = names.make(true), b = names.make(true);
  const int of_a = dice.between(1, 3), of_b = dice.between(0, 2), devices = dice.coin() ? 4 : 1;
  const std::string share = dice.coin() ? "1.0" : "{default: 0.6, bandwidth: 0.8}";
  const std::string transport = dice.one_of<std::string>({"", ", protocol: tcp", ", protocol: rdma"});
  const auto device = [&](const std::string& name, int tflops) {
    return fmt::format(
        "\"{}\": {{peak: {{fp32: {}TFLOPS}}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: {}, sms: "
        "80, "
        "idle_power: 20W, peak_power: 200W}}",
        name, tflops, share);
  };
  const auto server = [&](const std::string& name, const std::string& of) {
    return fmt::format(
        "\"{}\": {{devices: [{{device: \"{}\", count: {}}}], interconnect: {}, peer_to_peer: {}, vcpus: 16, "
        "price: 2USD/h, host_power: 100W}}",
        name, of, devices, devices == 1 ? "{kind: none}" : marked_interior(dice, names), dice.coin());
  };
  std::string fabric;
  if (dice.coin()) {
    fabric = fmt::format("{{kind: {}, bandwidth: {}Gbps, latency: 10us{}}}", dice.one_of(fabrics()),
                         dice.between(1, 50), transport);
  } else {
    const std::string s = names.make(), t = names.make();
    std::string links;
    const auto cable = [&](const std::string& from, const std::string& to) {
      links += fmt::format("{{from: \"{}\", to: \"{}\", bandwidth: {}Gbps, latency: 3us, name: \"{}\"}}, ",
                           from, to, dice.between(1, 10), names.make());
    };
    for (int h = 0; h < of_a; ++h) cable(fmt::format("{}{}", a, h), h % 2 ? s : t);
    for (int h = 0; h < of_b; ++h) cable(fmt::format("{}{}", b, h), h % 2 ? t : s);
    for (const char* server_host : {"ps0", "ps1", "ps2"}) cable(server_host, s);
    cable(s, t);
    cable(t, s);
    fabric =
        fmt::format("{{kind: custom, switches: [\"{}\", \"{}\"], links: [{}]{}}}", s, t, links, transport);
  }
  std::string nodes = fmt::format("{{name: \"{}\", count: {}, server: \"{}\"}}", a, of_a, box);
  if (of_b > 0) nodes += fmt::format(", {{name: \"{}\", count: {}, server: \"{}\"}}", b, of_b, other);
  return fmt::format("{{name: \"{}\", nodes: [{}], fabric: {}, servers: {{{}, {}}}, devices: {{{}, {}}}}}",
                     names.make(), nodes, fabric, server(box, quick), server(other, slow), device(quick, 10),
                     device(slow, 7));
}

/// Everything that a run tells, as results.json has it with `--full`, and its trace.
std::string told(const std::string& experiment) {
  const YamlNode tree = parse_yaml(experiment, "names");
  Preparer preparer;
  const RunOutput output = simulate(preparer.prepare(read_point(tree), nullptr), true);
  Results results;
  results.runs.push_back(output.result);
  std::ostringstream text;
  write_json(results, text);
  for (const TraceProcess& process : output.trace) {
    text << process.name << '\n';
    for (const TraceThread& thread : process.threads) {
      text << "  " << thread.name << '\n';
      for (const TraceSpan& span : thread.spans)
        text << fmt::format("    {} {} {}\n", span.name, span.start_s, span.end_s);
    }
  }
  return text.str();
}

/// What is told, or the first line of what is wrong.
std::string told_or_wrong(const std::string& experiment) {
  try {
    return told(experiment);
  } catch (const InputError& error) {
    const std::string message = error.what();
    return "wrong: " + message.substr(message.find(": ") + 2);
  }
}

}  // namespace

TEST_CASE("names of hosts, devices, servers, layers, cables and switches decide nothing but names [law]") {
  int answered = 0, all = 0;
  for (const StrategyRow& row : strategy_rows())
    for (unsigned seed = 1; seed <= 6; ++seed) {
      unsigned of_row = 0;  // by its name, so that other rows change nothing
      for (const char letter : row.name) of_row = 31 * of_row + static_cast<unsigned>(letter);
      Dice dice(1000 * seed + of_row % 1000);
      Names names(dice);
      const std::string cluster = marked_cluster(dice, names);
      const std::string model = marked_model(dice, names);
      const Machine machine = machine_of(names.with(cluster, false));
      const auto devices = static_cast<int>(machine.devices.size());
      const std::string strategy = row.strategy(dice, {static_cast<int>(machine.hosts.size()), devices, 8});
      const std::string batch = row.global_batch ? fmt::format("global_batch: {}", 4 * devices)
                                                 : std::string("batch_per_device: 4");
      const std::string input =
          dice.between(0, 3) > 0
              ? ""
              : ", input: {kind: jpeg, library: " + dice.one_of<std::string>({"pil", "dali_gpu"}) +
                    ", cached: true}";
      const std::string recompute = dice.between(0, 3) > 0 ? "" : ", recompute: blocks";
      const std::string experiment = fmt::format(
          "experiment: e\nmodel: {}\ntraining: {{{}{}{}, dataset: {{samples: 100000}}}}\n"
          "cluster: {}\nstrategy: {}\n",
          model, batch, input, recompute, cluster, strategy);
      const std::string text = names.with(experiment, true);
      CAPTURE(row.name);
      CAPTURE(seed);
      CAPTURE(text);
      const std::string first = told_or_wrong(names.with(experiment, false));
      ++all;
      if (!first.starts_with("wrong: ")) ++answered;
      const std::string second = names.back(told_or_wrong(text));
      const auto differ = std::mismatch(first.begin(), first.end(), second.begin(), second.end());
      const auto at = static_cast<std::size_t>(differ.first - first.begin());
      const std::size_t from = at - std::min<std::size_t>(at, 100);
      CHECK_MESSAGE(first == second, first.substr(from, 300) << "\n--- and ---\n"
                                                             << second.substr(from, 300));
    }
  CHECK(answered > all / 2);
}

TEST_CASE("a machine of the catalogue that is written inline under other names is the same machine [law]") {
  const std::vector<std::string> strategies{
      "{kind: data_parallel, sync: all_reduce, algorithm: nccl}",
      "{kind: data_parallel, sync: all_reduce, algorithm: auto}",
      "{kind: data_parallel, sync: parameter_server, servers: 1}",
  };
  unsigned seed = 0;
  for (const std::string& server : server_names()) {
    Dice dice(++seed);
    Names names(dice);
    const ServerSpec spec = load_server(server, {});
    std::string devices, list;
    std::vector<std::pair<std::string, std::string>> inline_names;  // and those of the catalogue
    for (const auto& [type, count] : spec.devices) {
      const std::string name = names.make();
      inline_names.emplace_back(names.with(name, false), type.name);
      devices += fmt::format("\"{}\": {{base: {}}}, ", name, type.name);
      list += fmt::format("{{device: \"{}\", count: {}}}, ", name, count);
    }
    const std::string box = names.make();
    inline_names.emplace_back(names.with(box, false), server);
    const std::string experiment =
        "experiment: e\nmodel: alexnet\ntraining: {batch_per_device: 8}\nstrategy: " +
        dice.one_of(strategies) + "\ncluster: ";
    const std::string described = names.with(
        experiment +
            fmt::format("{{name: lab, nodes: [{{name: n, count: 2, server: \"{}\"}}], servers: {{\"{}\": "
                        "{{base: {}, devices: [{}]}}}}, devices: {{{}}}}}",
                        box, box, server, list, devices),
        true);
    CAPTURE(server);
    CAPTURE(described);
    std::string text = names.back(told(described));
    for (const auto& [own, of_catalogue] : inline_names) text = replaced(std::move(text), own, of_catalogue);
    CHECK(text == told(experiment +
                       fmt::format("{{name: lab, nodes: [{{name: n, count: 2, server: {}}}]}}", server)));
  }
}

// SPDX-License-Identifier: MIT
// All-reduces as files: equal to those that the program has, and refused where they are none.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>
#include <random>
#include <set>

#include "sim/base/data_path.h"
#include "sim/base/input_error.h"
#include "sim/collectives/collectives.h"
#include "sim/collectives/msccl.h"
#include "sim/collectives/schedule.h"
#include "sim/collectives/table.h"
#include "sim/collectives/write_schedule.h"
#include "tests/support/approx.h"
#include "tests/support/hand.h"
#include "tests/support/lab.h"
#include "tests/support/working_file.h"

using namespace convoy;

namespace {

using Part = SumSchedule::Part;

/// `hosts` hosts with so many devices each, and no links between them.
Machine equal_machine(std::uint32_t hosts, std::uint32_t per_host) {
  Machine machine = hand::devices(0);
  for (std::uint32_t h = 0; h < hosts; ++h) {
    machine.hosts.push_back({fmt::format("h{}", h), 0, h * per_host, per_host});
    for (std::uint32_t d = 0; d < per_host; ++d)
      machine.devices.push_back({fmt::format("h{}.gpu{}", h, d), 0, h, 1.0});
  }
  machine.router = std::make_shared<hand::TableRouter>();
  return machine;
}

std::vector<EndpointId> first(std::size_t n) {
  std::vector<EndpointId> ranks(n);
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

std::string shipped(const std::string& file) { return data_path("configs") + "/collectives/" + file; }

SumAlgorithm of_file(const std::string& file) {
  SumAlgorithm algorithm;
  algorithm.schedule = SumSchedule::load(shipped(file));
  return algorithm;
}

/// The same messages in the same rounds; the order of a round's messages does not matter, nor whether equal
/// rounds that follow one another are one that is repeated.
void check_same(const std::vector<Round>& a, const std::vector<Round>& b) {
  const auto sorted = [](const std::vector<Round>& rounds) {
    std::vector<std::pair<std::uint32_t, std::set<std::tuple<std::uint32_t, std::uint32_t, double>>>> result;
    for (const Round& round : rounds) {
      std::set<std::tuple<std::uint32_t, std::uint32_t, double>> messages;
      round.for_each_message([&](std::uint32_t from, std::uint32_t to, double share) {
        messages.insert({from, to, share});
      });
      if (result.empty() || result.back().second != messages) result.push_back({0, messages});
      result.back().first += round.repeat;
    }
    return result;
  };
  CHECK(sorted(a) == sorted(b));
}

/// Who has which parts of which chunk, counted apart from the program's own check: whether every rank ends
/// with each part once. Moves of a step take what was there before it.
bool sums_everything(const std::vector<std::vector<ChunkMove>>& steps, std::uint32_t ranks,
                     const SumSchedule::Buffer& buffer) {
  const std::size_t slots = buffer.chunks + buffer.scratch;
  using Counts = std::vector<int>;  // by chunk and rank
  std::vector<std::vector<Counts>> held(ranks, std::vector<Counts>(slots, Counts(buffer.chunks * ranks, 0)));
  for (std::uint32_t r = 0; r < ranks; ++r)
    for (std::uint32_t c = 0; c < buffer.chunks; ++c) held[r][c][c * ranks + r] = 1;
  for (const std::vector<ChunkMove>& moves : steps) {
    const auto before = held;
    for (const ChunkMove& move : moves)
      for (std::uint32_t k = 0; k < move.count; ++k) {
        Counts& to = held[move.to][move.into + k];
        const Counts& from = before[move.from][move.slot + k];
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i] + (move.adds ? to[i] : 0);
      }
  }
  for (std::uint32_t r = 0; r < ranks; ++r)
    for (std::uint32_t c = 0; c < buffer.chunks; ++c)
      for (std::uint32_t i = 0; i < buffer.chunks * ranks; ++i)
        if (held[r][c][i] != (i / ranks == c ? 1 : 0)) return false;
  return true;
}

std::vector<std::vector<ChunkMove>> steps_of(const SumSchedule& schedule, const SumSchedule::Size& size) {
  std::vector<std::vector<ChunkMove>> steps;
  schedule.for_each_step(size, [&](const SumSchedule::Step& step) { steps.push_back(step.moves); });
  return steps;
}

std::string listed(const std::vector<std::vector<ChunkMove>>& steps, std::uint32_t chunks) {
  std::string text = fmt::format("schedule: listed\nchunks: {}\nrounds:\n", chunks);
  for (const auto& moves : steps) {
    if (moves.empty()) continue;
    text += "  - send:\n";
    for (const ChunkMove& m : moves)
      text += fmt::format("      - {{from: {}, to: {}, chunk: {}, count: {}, op: {}}}\n", m.from, m.to,
                          m.slot, m.count, m.adds ? "reduce" : "copy");
  }
  return text;
}

/// The error of a schedule among so many ranks; "": none.
std::string error_of(const std::string& text, std::uint32_t ranks) {
  try {
    SumSchedule(parse_yaml(text, "s.yaml"), "s.yaml").check({ranks, ranks, 1});
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

std::string xml_step(int s, const std::string& type, const std::string& from, int at, const std::string& to,
                     int into, const std::string& more = "depid=\"-1\" deps=\"-1\" hasdep=\"0\"") {
  return fmt::format(
      "<step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" "
      "cnt=\"1\" {}/>\n",
      s, type, from, at, to, into, more);
}

/// MSCCL's ring: one block a GPU, which sends, receives and reduces on, and passes sums on.
std::string ring_xml(int n) {
  std::string text = fmt::format(
      "<algo name=\"ring\" nchannels=\"1\" nchunksperloop=\"{0}\" proto=\"Simple\" ngpus=\"{0}\" "
      "coll=\"allreduce\" inplace=\"1\">\n",
      n);
  for (int g = 0; g < n; ++g) {
    text += fmt::format(
        "<gpu id=\"{0}\" i_chunks=\"{1}\" o_chunks=\"{1}\" s_chunks=\"0\">\n<tb id=\"0\" "
        "send=\"{2}\" recv=\"{3}\" chan=\"0\">\n",
        g, n, (g + 1) % n, (g + n - 1) % n);
    text += xml_step(0, "s", "i", g, "i", g);
    for (int s = 1; s < 2 * n - 1; ++s) {
      const int chunk = (g + 2 * n - s) % n;
      const std::string type = s == 2 * n - 2 ? "r" : s < n - 1 ? "rrs" : s == n - 1 ? "rrcs" : "rcs";
      text += xml_step(s, type, "i", chunk, "i", chunk);
    }
    text += "</tb>\n</gpu>\n";
  }
  return text + "</algo>\n";
}

}  // namespace

TEST_CASE("schedules: the shipped files have the messages of the algorithms that they are named after") {
  using enum AllReduceAlgorithm;
  for (const auto& [hosts, per_host] : {std::pair{2u, 1u},
                                        {3u, 1u},
                                        {5u, 1u},
                                        {8u, 1u},
                                        {16u, 1u},
                                        {1u, 8u},
                                        {2u, 4u},
                                        {4u, 4u},
                                        {3u, 2u},
                                        {7u, 3u}}) {
    const Machine machine = equal_machine(hosts, per_host);
    const std::vector<EndpointId> ranks = first(machine.devices.size());
    CAPTURE(hosts);
    CAPTURE(per_host);
    for (const auto& [row, file] : {std::pair{ring, "ring.yaml"},
                                    {tree, "tree.yaml"},
                                    {halving_doubling, "halving_doubling.yaml"},
                                    {hierarchical, "torus.yaml"}}) {
      const SumAlgorithm algorithm = of_file(file);
      CAPTURE(std::string(file));
      if (!why_no_all_reduce(algorithm, ranks, machine).empty()) {
        CHECK(row == halving_doubling);
        continue;
      }
      check_same(all_reduce_pattern(algorithm, ranks, machine, 8).rounds,
                 all_reduce_pattern(row, ranks, machine, 8).rounds);
      CHECK(why_no_scatter(algorithm, ranks, machine).empty() == (row != tree));
      if (row == tree) continue;
      check_same(reduce_scatter_pattern(algorithm, ranks, machine, 8).rounds,
                 reduce_scatter_pattern(row, ranks, machine, 8).rounds);
      check_same(all_gather_pattern(algorithm, ranks, machine, 8).rounds,
                 all_gather_pattern(row, ranks, machine, 8).rounds);
    }
  }
}

TEST_CASE("schedules: the shipped files take the time and send the bytes of those algorithms") {
  const std::string cluster =
      "{nodes: [{name: n, count: 4, server: box}], fabric: {kind: switch, bandwidth: 10Gbps, latency: 25us}, "
      "servers: {box: {devices: [{device: ideal, count: 2}], interconnect: {kind: pcie, bandwidth: 12GB/s, "
      "latency: 5us}}}, devices: {ideal: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, "
      "efficiency: 1.0, launch_overhead: 0us}}}";
  for (const char* fidelity : {"chunk", "fluid"})
    for (const auto& [name, file] : {std::pair{"ring", "ring.yaml"},
                                     {"tree", "tree.yaml"},
                                     {"halving_doubling", "halving_doubling.yaml"},
                                     {"hierarchical", "torus.yaml"}})
      for (const char* more : {"", ", zero: 1", ", zero: 3"}) {
        if (std::string(name) == "tree" && *more != '\0') continue;
        CAPTURE(std::string(fidelity));
        CAPTURE(std::string(file));
        CAPTURE(std::string(more));
        const auto run = [&, fidelity = fidelity](const std::string& algorithm) {
          return lab::Experiment(
                     lab::custom_model(4, 3'000'001), cluster,
                     fmt::format("{{kind: data_parallel, sync: all_reduce, algorithm: {}, bucket: "
                                 "10MB, fidelity: {}{}}}",
                                 algorithm, fidelity, more),
                     8)
              .run();
        };
        const ReplayResult built_in = run(name), from_file = run(fmt::format("{{file: {}}}", shipped(file)));
        CHECK(from_file.step_time_s == approx(built_in.step_time_s).epsilon(1e-12));
        CHECK(from_file.comm_bytes == approx(built_in.comm_bytes).epsilon(1e-12));
      }
}

TEST_CASE("schedules: auto takes the quickest of the candidates it is given") {
  const Machine machine = hand::star(8, 1e9, 1e-5);
  SumAlgorithm automatic = AllReduceAlgorithm::automatic;
  automatic.candidates = {AllReduceAlgorithm::tree, of_file("ring.yaml")};
  CHECK(automatic.name() == "auto of tree, ring.yaml");
  CHECK(chosen_algorithm(automatic, first(8), machine, 1e9, RingOrder::mesh, false) == "ring.yaml");
  CHECK(chosen_algorithm(automatic, first(8), machine, 8, RingOrder::mesh, false) == "tree");
  CHECK(chosen_algorithm(automatic, first(8), machine, 8, RingOrder::mesh, true) == "ring.yaml");
  automatic.candidates = {of_file("halving_doubling.yaml")};
  CHECK(why_no_all_reduce(automatic, first(6), machine) ==
        "auto has no candidate: halving_doubling.yaml needs a power of two of devices, found 6");
}

TEST_CASE("schedules: what is listed is read back, and chunks may be passed in any order") {
  for (const char* file : {"ring.yaml", "tree.yaml", "halving_doubling.yaml", "torus.yaml"})
    for (const SumSchedule::Size size : {SumSchedule::Size{8, 8, 1}, {8, 2, 4}}) {
      const auto schedule = SumSchedule::load(shipped(file));
      const SumSchedule again(parse_yaml(listed_schedule(*schedule, size), "l.yaml"), "l.yaml");
      const Machine machine = equal_machine(size.hosts, size.ranks_per_host);
      check_same(again.pattern(first(8), machine, Part::all).rounds,
                 schedule->pattern(first(8), machine, Part::all).rounds);
      CHECK(again.has_halves() == schedule->has_halves());
    }
}

TEST_CASE("schedules: a rank sends all of its data, however unequal the chunks that follow one another are") {
  for (const char* rounds :
       {"chunks: [0.25, 0.6, 0.15], rounds: [{send: {from: 0, to: 1, chunk: 0, op: reduce}}, "
        "{send: {from: 0, to: 1, chunk: 1, op: reduce}}, {send: {from: 0, to: 1, chunk: 2, op: reduce}}, "
        "{send: {from: 1, to: 0, chunk: 0, op: copy}}, {send: {from: 1, to: 0, chunk: 1, op: copy}}, "
        "{send: {from: 1, to: 0, chunk: 2, op: copy}}]",
        "chunks: [0.25, 0.75], "
        "reduce_scatter: [{send: [{from: 0, to: 1, chunk: 1}, {from: 1, to: 0, chunk: 0}]}], "
        "all_gather: [{send: [{from: 0, to: 1, chunk: 0}, {from: 1, to: 0, chunk: 1}]}]"}) {
    CAPTURE(rounds);
    const SumSchedule schedule(
        parse_yaml(fmt::format("{{schedule: unequal, ranks: {{least: 2, most: 2}}, {}}}", rounds), "u.yaml"),
        "u.yaml");
    double sent[2]{};
    for (const Round& round : schedule.pattern(first(2), equal_machine(2, 1), Part::all).rounds)
      round.for_each_message(
          [&](std::uint32_t from, std::uint32_t, double share) { sent[from] += round.repeat * share; });
    CHECK(sent[0] == approx(1).epsilon(1e-12));
    CHECK(sent[1] == approx(1).epsilon(1e-12));
  }
}

TEST_CASE("schedules: random splits of rings and trees are all-reduces, and mutants of them are refused") {
  const std::uint32_t seed = 20261126;
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  int refused = 0, mutants = 0;
  for (int trial = 0; trial < 60; ++trial) {
    CAPTURE(trial);
    const auto n = static_cast<std::uint32_t>(2 + below(5));
    const auto schedule = SumSchedule::load(shipped(below(2) == 0 ? "ring.yaml" : "tree.yaml"));
    const SumSchedule::Size size{n, n, 1};
    const SumSchedule::Buffer buffer = schedule->buffer(size);
    // Independent messages of a step may go one after the other in two steps, in any order.
    std::vector<std::vector<ChunkMove>> steps;
    for (std::vector<ChunkMove> moves : steps_of(*schedule, size)) {
      std::shuffle(moves.begin(), moves.end(), random);
      const std::size_t cut = below(moves.size() + 1);
      steps.emplace_back(moves.begin(), moves.begin() + static_cast<std::ptrdiff_t>(cut));
      steps.emplace_back(moves.begin() + static_cast<std::ptrdiff_t>(cut), moves.end());
    }
    REQUIRE(sums_everything(steps, n, buffer));
    CHECK(error_of(listed(steps, buffer.chunks), n) == "");
    for (int mutant = 0; mutant < 10; ++mutant) {
      std::vector<std::vector<ChunkMove>> other = steps;
      std::vector<ChunkMove>& moves = other[below(other.size())];
      if (moves.empty()) continue;
      ChunkMove& move = moves[below(moves.size())];
      switch (below(4)) {
        case 0:
          move.adds = !move.adds;
          break;
        case 1:
          move.slot = move.into = static_cast<std::uint32_t>(below(buffer.chunks));
          break;
        case 2:
          move.to = static_cast<std::uint32_t>(below(n));
          break;
        default:
          std::swap(move, moves.back());
          moves.pop_back();
      }
      ++mutants;
      const std::string error = error_of(listed(other, buffer.chunks), n);
      const bool right = sums_everything(other, n, buffer);
      CAPTURE(error);
      if (error.empty()) CHECK(right);
      if (!error.empty()) ++refused;
      if (!right) CHECK(error.starts_with("s.yaml:"));
    }
  }
  CHECK(refused > mutants / 2);
}

TEST_CASE("schedules: errors name the place, the round, the rank and the chunk") {
  const auto rounds = [](const std::string& sends) { return "schedule: x\nchunks: 1\nrounds:\n" + sends; };
  CHECK(error_of(rounds("  - send: {from: 0, to: 1, chunk: 0, op: reduce}\n"), 2) ==
        "s.yaml:1:1: after the last round, rank 0 of 2 has chunk 0 without the part of rank 1");
  CHECK(error_of(rounds("  - repeat: 2\n    send: {from: 0, to: 1, chunk: 0, op: reduce}\n"), 2) ==
        "s.yaml:5:11: rounds[0].send, step 1: rank 1 adds the part of rank 0 to chunk 0 a second time");
  CHECK(error_of(rounds("  - send: {from: 0, to: 2, chunk: 0, op: reduce}\n"), 2) ==
        "s.yaml:4:25: rounds[0].send.to: '2' is 2; 0 to 1 are allowed here");
  CHECK(error_of(rounds("  - send: [{from: 0, to: 1, chunk: 0, op: copy}, {from: 0, to: 1, chunk: 0, op: "
                        "reduce}]\n"),
                 2)
            .find("written twice in the same step") != std::string::npos);
  CHECK(error_of(rounds("  - send: {from: $rnk, to: 1, chunk: 0, op: copy}\n"), 2) ==
        "s.yaml:4:18: rounds[0].send.from: '$rnk' uses 'rnk', which nothing defines here (did you mean "
        "'ranks'?); known: ranks, "
        "hosts, ranks_per_host, chunks, step");
  CHECK(error_of(rounds("  - send: {from: 0, to: 1, chunk: 0}\n"), 2) ==
        "s.yaml:4:11: rounds[0].send: key 'op' is missing; allowed: reduce, copy");
  CHECK(error_of("schedule: x\nchunks: [0.5, 0.4]\nrounds: []\n", 2) ==
        "s.yaml:2:9: chunks: the shares add up to 0.9; they have to make 1");
  CHECK(error_of("schedule: x\nchunks: 1\nrounds: []\nreduce_scatter: []\n", 2) ==
        "s.yaml:1:1: a schedule has rounds, or both reduce_scatter and all_gather");
  CHECK(error_of("schedule: x\nchunks: $(ranks / 2)\nrounds: []\n", 3) ==
        "s.yaml:2:9: chunks: '$(ranks / 2)' divides 3 by 2, which leaves a remainder");
  CHECK(error_of("schedule: x\nranks: {multiple_of: 4}\nchunks: 1\nrounds: []\n", 6) ==
        "s.yaml:1:1: s.yaml needs a multiple of 4 devices, found 6");
  // Chunks of different shares: two ranks exchange, each both.
  CHECK(
      error_of("schedule: x\nchunks: [0.75, 0.25]\nrounds:\n  - send: [{from: 0, to: 1, chunk: 0, count: 2, "
               "op: reduce}, {from: 1, to: 0, chunk: 0, count: 2, op: reduce}]\n",
               2) == "");
}

TEST_CASE("schedules: MSCCL's ring is the ring, and its all-pairs over scratch sends everything at once") {
  for (const int n : {2, 3, 8}) {
    CAPTURE(n);
    const WorkingFile file("ring.xml", ring_xml(n));
    const auto schedule = SumSchedule::load(file.name);
    const auto size = static_cast<std::uint32_t>(n);
    schedule->check({size, size, 1});
    const Machine machine = equal_machine(size, 1);
    check_same(schedule->pattern(first(size), machine, Part::all).rounds,
               ring_all_reduce(first(size), machine).rounds);
  }
  // Three GPUs: everyone sends its whole part to both others' scratch, and adds up what it gets.
  std::string text =
      "<algo name=\"pairs\" nchunksperloop=\"1\" ngpus=\"3\" coll=\"allreduce\" inplace=\"1\">\n";
  for (int g = 0; g < 3; ++g) {
    text += fmt::format("<gpu id=\"{}\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"3\">\n", g);
    int block = 0;
    for (int other = 0; other < 3; ++other) {
      if (other == g) continue;
      text += fmt::format("<tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"0\">\n", block, other, other);
      text += xml_step(0, "s", "i", 0, "s", g) + xml_step(1, "r", "i", 0, "s", other);
      text += xml_step(
          2, "re", "s", other, "i", 0,
          block == 0 ? "depid=\"1\" deps=\"1\" hasdep=\"0\"" : "depid=\"0\" deps=\"2\" hasdep=\"0\"");
      text += "</tb>\n";
      ++block;
    }
    text += "</gpu>\n";
  }
  text += "</algo>\n";
  const WorkingFile file("pairs.xml", text);
  const Pattern pattern = SumSchedule::load(file.name)->pattern(first(3), equal_machine(3, 1), Part::all);
  REQUIRE(pattern.rounds.size() == 1);
  CHECK(pattern.rounds[0].pairs.size() == 6);
  // Three places of scratch, and one for each of the two messages that come.
  const YamlNode read = read_msccl(file.name);
  CHECK(read.find("scratch")->scalar == "5");
  CHECK(read.find("chunks")->scalar == "1");
  CHECK(pattern.rounds[0].fractions == std::vector<double>{1.0});
  // An algorithm that is none: one GPU never sends.
  std::string broken = ring_xml(3);
  broken.replace(broken.find("type=\"rrcs\""), 11, "type=\"rrc\" ");
  const WorkingFile wrong("broken.xml", broken);
  CHECK_THROWS_AS(SumSchedule::load(wrong.name), InputError);
}

TEST_CASE("schedules: MSCCL's GPUs are counted from 0, and -1 is none") {
  for (const int peer : {3, -2}) {
    std::string numbered = ring_xml(3);
    numbered.replace(numbered.find("send=\"1\""), 8, fmt::format("send=\"{}\"", peer));
    const WorkingFile numbers("numbered.xml", numbered);
    std::string error;
    try {
      SumSchedule::load(numbers.name);
    } catch (const InputError& refused) {
      error = refused.what();
    }
    CHECK_MESSAGE(error.ends_with(fmt::format("send: expected a whole number from -1 to 2, found {}", peer)),
                  error);
  }
}

// SPDX-License-Identifier: MIT
#include "sim/collectives/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

#include "sim/base/input_error.h"
#include "sim/collectives/follow_chunks.h"
#include "sim/collectives/rings.h"

namespace convoy::inline collectives {
namespace {

constexpr std::int64_t most_slots = 1 << 20, most_repetitions = 1 << 24;
/// Of a whole schedule: what more would take is told before it is built.
constexpr std::size_t most_moves = std::size_t{1} << 26;

/// Makes rounds of steps: what one rank sends another in a step is one message.
class RoundMaker {
 public:
  explicit RoundMaker(const SumSchedule::Buffer& buffer) : buffer_(buffer) {}

  /// Pairs are in order, so that equal rounds are found whatever the order of their messages.
  void add(const SumSchedule::Step& step, std::vector<Round>& rounds) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint64_t, double>> sent;
    for (const ChunkMove& move : step.moves) {
      if (move.from == move.to) continue;
      auto& [chunks, share] = sent[{move.from, move.to}];
      chunks += move.count;
      if (!buffer_.shares.empty()) share += share_of(move);
    }
    if (sent.empty()) return;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    std::vector<double> shares;
    for (const auto& [pair, what] : sent) {
      pairs.push_back(pair);
      shares.push_back(buffer_.shares.empty()
                           ? static_cast<double>(what.first) / static_cast<double>(buffer_.chunks)
                           : what.second);
    }
    if (std::all_of(shares.begin(), shares.end(), [&](double share) { return share == shares[0]; }))
      shares.resize(1);
    if (!rounds.empty() && rounds.back().pairs == pairs && rounds.back().fractions == shares)
      ++rounds.back().repeat;
    else
      rounds.push_back({std::move(pairs), std::move(shares), 1});
  }

 private:
  /// A slot of scratch holds a chunk of the same size: there is none where chunks differ.
  double share_of(const ChunkMove& move) const {
    double share = 0;
    for (std::uint32_t k = 0; k < move.count; ++k) share += buffer_.shares[move.slot + k];
    return share;
  }

  const SumSchedule::Buffer& buffer_;
};

/// Rounds one after the other; where the last of one list is the first of the other they are one.
void append_rounds(std::vector<Round>& rounds, const std::vector<Round>& more) {
  for (const Round& round : more) {
    if (!rounds.empty() && rounds.back().pairs == round.pairs && rounds.back().fractions == round.fractions)
      rounds.back().repeat += round.repeat;
    else
      rounds.push_back(round);
  }
}

}  // namespace

SumSchedule::Size schedule_size(const std::vector<EndpointId>& ranks, const Machine& machine) {
  const std::vector<std::vector<std::uint32_t>> hosts = positions_by_host(ranks, machine);
  const bool equal = std::all_of(hosts.begin(), hosts.end(),
                                 [&](const auto& host) { return host.size() == hosts.front().size(); });
  return {static_cast<std::uint32_t>(ranks.size()), static_cast<std::uint32_t>(hosts.size()),
          equal && !hosts.empty() ? static_cast<std::uint32_t>(hosts.front().size()) : 0};
}

std::vector<std::int64_t> SumSchedule::names_of(const Size& size) const {
  std::vector<std::int64_t> values{
      size.ranks, size.hosts,
      size.ranks_per_host > 0 ? size.ranks_per_host : std::numeric_limits<std::int64_t>::min()};
  for (const Term& term : let_)
    values.push_back(term.value(values, -YamlMap::max_integer, YamlMap::max_integer));
  return values;
}

SumSchedule::Buffer SumSchedule::buffer(const Size& size) const {
  std::vector<std::int64_t> values = names_of(size);
  Buffer buffer;
  buffer.shares = shares_;
  buffer.chunks = static_cast<std::uint32_t>(shares_.empty() ? chunks_.value(values, 1, most_slots)
                                                             : static_cast<std::int64_t>(shares_.size()));
  values.push_back(buffer.chunks);
  if (scratch_) buffer.scratch = static_cast<std::uint32_t>(scratch_->value(values, 0, most_slots));
  if (buffer.scratch > 0 && !shares_.empty())
    throw InputError(scratch_->pos(), "scratch: goes with equal chunks only; give chunks as a number");
  return buffer;
}

void SumSchedule::for_each_step(const Size& size, const std::function<void(const Step&)>& visit) const {
  const Buffer buffer = this->buffer(size);
  const std::int64_t slots = std::int64_t{buffer.chunks} + buffer.scratch;
  std::vector<std::int64_t> base = names_of(size);
  base.push_back(buffer.chunks);
  std::size_t moves = 0;
  for (const RoundRule& rule : rules_) {
    const std::int64_t repeat = rule.repeat.value(base, 0, most_repetitions);
    for (std::int64_t s = 0; s < repeat; ++s) {
      Step step{rule, s, {}};
      for (std::uint32_t k = 0; k < rule.sends.size(); ++k) {
        const Send& send = rule.sends[k];
        std::vector<std::int64_t> values = base;
        values.push_back(s);
        const auto add = [&] {
          if (send.when && send.when->value(values, -YamlMap::max_integer, YamlMap::max_integer) == 0) return;
          if (++moves > most_moves)
            throw InputError(send.pos, fmt::format("{}: sends more than 2^26 messages", send.path));
          ChunkMove move{};
          move.rule = k;
          move.adds = send.adds;
          move.from = static_cast<std::uint32_t>(send.from.value(values, 0, size.ranks - 1));
          move.to = static_cast<std::uint32_t>(send.to.value(values, 0, size.ranks - 1));
          move.slot = static_cast<std::uint32_t>(send.chunk.value(values, 0, slots - 1));
          move.count = static_cast<std::uint32_t>(send.count.value(values, 1, slots - move.slot));
          move.into = send.into ? static_cast<std::uint32_t>(send.into->value(values, 0, slots - move.count))
                                : move.slot;
          step.moves.push_back(move);
        };
        const std::function<void(std::size_t)> loop = [&](std::size_t depth) {
          if (depth == send.loops.size()) return add();
          const std::int64_t count = send.loops[depth].value(values, 0, most_slots);
          for (std::int64_t i = 0; i < count; ++i) {
            values.push_back(i);
            loop(depth + 1);
            values.pop_back();
          }
        };
        loop(0);
      }
      visit(step);
    }
  }
}

SumSchedule::Rounds SumSchedule::make_rounds(const Size& size) const {
  const Buffer buffer = this->buffer(size);
  ChunkBuffers held(size, buffer, pos_);
  RoundMaker maker(buffer);
  Rounds rounds;
  bool gathers = false;
  const auto end_scatter = [&] {
    if (has_halves_ && !gathers) rounds.scatters_equally = held.are_scattered_equally(buffer.shares);
    gathers = true;
  };
  for_each_step(size, [&](const Step& step) {
    if (step.rule.is_gather) end_scatter();
    held.apply(step);
    maker.add(step, step.rule.is_gather ? rounds.gather : rounds.scatter);
  });
  end_scatter();
  held.check_all_summed(pos_);
  return rounds;
}

const SumSchedule::Rounds& SumSchedule::rounds(const Size& size) const {
  const auto it = made_.find(size);
  return it != made_.end() ? it->second : made_.emplace(size, make_rounds(size)).first->second;
}

void SumSchedule::check(const Size& size) const {
  if (const std::string reason = why_not(size); !reason.empty())
    throw InputError(pos_, fmt::format("{} {}", name_, reason));
  if (size.ranks > 1) rounds(size);
}

std::string SumSchedule::why_not(const std::vector<EndpointId>& ranks, const Machine& machine) const {
  return why_not(schedule_size(ranks, machine));
}

std::string SumSchedule::why_not(const Size& size) const {
  const Requirement& need = requirement_;
  if (size.ranks < 2) return {};
  std::string what;
  if (need.least > 0 && size.ranks < need.least) what = fmt::format("at least {} devices", need.least);
  if (need.most > 0 && size.ranks > need.most) what = fmt::format("at most {} devices", need.most);
  if (need.multiple_of > 0 && size.ranks % need.multiple_of != 0)
    what = fmt::format("a multiple of {} devices", need.multiple_of);
  if (need.power_of_two && !std::has_single_bit(size.ranks)) what = "a power of two of devices";
  if (!what.empty()) return fmt::format("needs {}, found {}", what, size.ranks);
  if (need.equal_hosts && size.ranks_per_host == 0)
    return "needs hosts of as many devices each, found different numbers";
  return {};
}

std::string SumSchedule::why_no_scatter(const std::vector<EndpointId>& ranks, const Machine& machine) const {
  if (!has_halves_) return "has rounds, and no reduce_scatter and all_gather";
  if (std::string reason = why_not(ranks, machine); !reason.empty()) return reason;
  if (ranks.size() < 2 || rounds(schedule_size(ranks, machine)).scatters_equally) return {};
  return fmt::format("leaves {} devices unequal shares after its reduce_scatter", ranks.size());
}

Pattern SumSchedule::pattern(const std::vector<EndpointId>& ranks, const Machine& machine, Part part) const {
  Pattern pattern{{ranks}, {}};
  if (ranks.size() < 2) return pattern;
  const Rounds& made = rounds(schedule_size(ranks, machine));
  if (part != Part::gather) pattern.rounds = made.scatter;
  if (part != Part::scatter) append_rounds(pattern.rounds, made.gather);
  std::vector<std::uint32_t> position;  // by rank of the schedule
  for (const std::vector<std::uint32_t>& host : positions_by_host(ranks, machine))
    position.insert(position.end(), host.begin(), host.end());
  for (Round& round : pattern.rounds)
    for (auto& [from, to] : round.pairs) from = position[from], to = position[to];
  return pattern;
}

}  // namespace convoy::collectives

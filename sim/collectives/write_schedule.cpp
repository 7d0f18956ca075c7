// SPDX-License-Identifier: MIT
#include "sim/collectives/write_schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace convoy::inline collectives {
namespace {

std::string listed_move(const ChunkMove& move, bool with_op) {
  std::string text = fmt::format("{{from: {}, to: {}, chunk: {}", move.from, move.to, move.slot);
  if (move.count != 1) text += fmt::format(", count: {}", move.count);
  if (move.into != move.slot) text += fmt::format(", into: {}", move.into);
  if (with_op) text += move.adds ? ", op: reduce" : ", op: copy";
  return text + "}";
}

}  // namespace

std::string listed_schedule(const SumSchedule& schedule, const SumSchedule::Size& size) {
  schedule.check(size);
  const SumSchedule::Buffer buffer = schedule.buffer(size);
  std::string summary = schedule.summary();
  for (std::size_t at = 0; (at = summary.find('\'', at)) != std::string::npos; at += 2)
    summary.insert(at, "'");
  std::string text =
      fmt::format("schedule: '{}'\nranks: {{least: {}, most: {}}}\n", summary, size.ranks, size.ranks);
  text += buffer.shares.empty() ? fmt::format("chunks: {}\n", buffer.chunks)
                                : fmt::format("chunks: [{}]\n", fmt::join(buffer.shares, ", "));
  if (buffer.scratch > 0) text += fmt::format("scratch: {}\n", buffer.scratch);
  std::string rounds, gather;
  schedule.for_each_step(size, [&](const SumSchedule::Step& step) {
    if (step.moves.empty()) return;
    std::string& into = step.rule.is_gather ? gather : rounds;
    into += "  - send:\n";
    for (const ChunkMove& move : step.moves)
      into += fmt::format("      - {}\n", listed_move(move, !schedule.has_halves()));
  });
  const auto list = [](const std::string& items) { return items.empty() ? " []\n" : "\n" + items; };
  text += (schedule.has_halves() ? "reduce_scatter:" : "rounds:") + list(rounds);
  if (schedule.has_halves()) text += "all_gather:" + list(gather);
  return text;
}

}  // namespace convoy::collectives

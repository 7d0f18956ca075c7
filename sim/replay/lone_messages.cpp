// SPDX-License-Identifier: MIT
#include "sim/replay/lone_messages.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace convoy::inline replays {
namespace {

constexpr std::uint32_t nobody = Folding::none;
constexpr int unused = -2, no_order = Task::no_stream;

/// The streams on which roles have the collectives of patterns.
class StreamsOfPatterns {
 public:
  explicit StreamsOfPatterns(const Plan& plan) {
    for (std::uint32_t r = 0; r < plan.roles.size(); ++r)
      for (const Task& task : plan.roles[r].program) {
        if (task.kind == Task::Kind::compute) continue;
        const int stream = task.kind == Task::Kind::collective ? task.stream : no_order;
        int& known = streams_.try_emplace({r, plan.communications[task.comm].pattern}, stream).first->second;
        if (known != stream) known = no_order;
      }
  }
  /// Task::no_stream: on several, or not in order.
  int operator()(std::uint32_t role, std::uint32_t pattern) const {
    const auto known = streams_.find({role, pattern});
    return known == streams_.end() ? no_order : known->second;
  }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> streams_;
};

/// What is known of a class of links from the flows that cross it.
class CrossedLinks {
 public:
  explicit CrossedLinks(const FoldedPlan& folded)
      : folding_(folded.folding), table_(folded.table), streams_(folded.plan), links_(folding_.links.size()) {
    std::uint32_t number = 0;  // of a round of a group
    for (std::uint32_t g = 0; g < folding_.groups.size(); ++g) {
      const std::uint32_t pattern = folded.table.groups[folding_.groups[g]].pattern;
      std::vector<std::vector<std::uint32_t>> rounds(folded.plan.patterns[pattern].rounds.size());
      for (const std::uint32_t f : folding_.group_flows[g])
        rounds[folding_.flow(table_, f).round].push_back(f);
      for (const std::vector<std::uint32_t>& flows : rounds) {
        for (const std::uint32_t f : flows) add(f, pattern, number);
        ++number;
      }
    }
  }

  bool are_for_one_message(std::uint32_t flow_class) const {
    const std::span<const LinkUse> route = folding_.route(flow_class);
    return std::all_of(route.begin(), route.end(),
                       [&](const LinkUse& use) { return !links_[use.link].shared; });
  }

 private:
  struct Crossed {
    std::uint32_t ends[2] = {nobody, nobody};  ///< endpoint classes that all flows so far have in common
    int streams[2] = {unused, unused};         ///< of each of them
    std::uint32_t round = nobody;              ///< the last that crosses it
    bool shared = false;
  };

  void add(std::uint32_t flow_class, std::uint32_t pattern, std::uint32_t round) {
    const FlowPath& path = folding_.path(table_, flow_class);
    const std::uint32_t from = folding_.endpoint_class[path.from], to = folding_.endpoint_class[path.to];
    for (const LinkUse& use : folding_.route(flow_class)) {
      Crossed& link = links_[use.link];
      if (link.round == nobody) link.ends[0] = from, link.ends[1] = to;
      if (link.round == round || use.multiplicity > 1 || !folding_.is_listed(flow_class)) link.shared = true;
      link.round = round;
      for (std::size_t i = 0; i < 2; ++i)
        if (link.ends[i] != nobody && !is_end(link, i, from, to, pattern)) link.ends[i] = nobody;
      link.shared = link.shared || (link.ends[0] == nobody && link.ends[1] == nobody);
    }
  }

  bool is_end(Crossed& link, std::size_t i, std::uint32_t from, std::uint32_t to, std::uint32_t pattern) {
    if (link.ends[i] != from && link.ends[i] != to) return false;
    const int stream = streams_(folding_.endpoint_role[link.ends[i]], pattern);
    if (link.streams[i] == unused) link.streams[i] = stream;
    return stream != no_order && link.streams[i] == stream;
  }

  const Folding& folding_;
  const FlowTable& table_;
  StreamsOfPatterns streams_;
  std::vector<Crossed> links_;  ///< by class
};

bool has_collectives_one_by_one(const FoldedPlan& folded) {
  return std::any_of(folded.plan.roles.begin(), folded.plan.roles.end(), [&](const Role& role) {
    const std::vector<Task>& program = role.program;
    return std::any_of(program.begin(), program.end(), [&](const Task& task) {
      return task.kind == Task::Kind::collective &&
             folded.one_by_one[folded.plan.communications[task.comm].pattern];
    });
  });
}

}  // namespace

std::vector<bool> has_lone_messages(const FoldedPlan& folded) {
  std::vector<bool> result = folded.one_by_one;
  if (!has_collectives_one_by_one(folded)) return std::vector<bool>(result.size(), false);
  const CrossedLinks links(folded);
  for (std::uint32_t f = 0; f < folded.folding.flow_class_count(); ++f) {
    const std::uint32_t pattern = folded.table.groups[folded.folding.path(folded.table, f).group].pattern;
    if (result[pattern] && !links.are_for_one_message(f)) result[pattern] = false;
  }
  return result;
}

}  // namespace convoy::replays

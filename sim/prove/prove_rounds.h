// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// What a pattern's messages can and cannot bring about. Patterns are looked at once for each kind of
/// communication that uses them.
class RoundRules {
 public:
  RoundRules(const Plan& plan, const Machine& machine);

  /// Messages from one to another carry what the sender has of its images to somebody with the same images.
  /// Everyone in `comm` who sends has a task that sends, and whoever receives one that receives.
  /// @throws Refuted
  void check_results(CommId comm);
  /// A collective over `members` devices, all of `roles`, which is what docs/proof.md asks of its kind.
  /// @throws Refuted, NotCovered
  void check_collective(CommId comm, const std::vector<std::uint32_t>& roles);
  /// The same of a collective of other results than a bucket, which each group does for itself.
  /// @param kind as which it is looked at: a sum, a scatter or a gather
  /// @param shares of its bytes that the members have before a gather, or after a scatter
  void check_shares(CommId comm, CommMeaning::Kind kind, const std::vector<double>& shares);
  /// The rounds alone. @return its groups
  const std::vector<std::vector<EndpointId>>& check_rounds_of(CommId comm);
  /// The same of what each of its groups does for itself, whoever is in it. @throws Refuted, NotCovered
  void check_groups(CommId comm);

 private:
  using Parts = std::map<std::uint32_t, std::uint32_t>;  ///< by role: how many members
  struct Pairs {
    Parts senders, receivers;
  };
  const Pairs& pairs_of(std::uint32_t pattern);
  void check_rounds_once(const Communication& of, CommMeaning::Kind kind);
  /// @param shares of the members; empty: all have the same
  void check_rounds(const Pattern& pattern, CommMeaning::Kind kind, const std::string& name,
                    const std::vector<double>& shares = {}) const;
  const std::vector<EndpointId>& group_of(const Pattern& pattern, EndpointId member) const;

  const Plan& plan_;
  const Machine& machine_;
  std::vector<std::uint32_t> role_of_;                                    ///< by endpoint
  std::vector<std::vector<std::pair<std::uint32_t, Task::Kind>>> users_;  ///< by communication
  std::map<std::uint32_t, Pairs> pairs_;                                  ///< by pattern
  std::map<std::pair<std::uint32_t, CommMeaning::Kind>, bool> rounds_;
  std::map<std::tuple<std::uint32_t, CommMeaning::Kind, std::vector<double>>, bool> shares_;
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, bool> groups_;
};

}  // namespace convoy::prove

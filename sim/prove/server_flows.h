// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/prove/prove_rounds.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// The communications that bring a bucket's gradients to its servers, and its parameters back.
struct BucketWays {
  std::optional<CommId> push{}, pull{};
  std::vector<CommId> collects, hand_outs;  ///< by size of nodes
  std::vector<CommId> scatters, gathers;    ///< the same
};

/// What of every worker's gradients comes to every server. A worker has the whole of its gradients. Whoever
/// collects those of a node has the whole of their sum; after a scatter among N, each has 1/N of it. Who has
/// something then sends every server the server's share of it, so that all servers together have all of every
/// worker's, each once. Parameters go the same ways back. Which part of a bucket a message has is not said,
/// and not looked at.
class ServerFlows {
 public:
  ServerFlows(const Plan& plan, const Machine& machine, RoundRules& rounds);

  /// Equal patterns are looked at once.
  /// @param servers endpoints that update the bucket's parameters; sorted
  /// @param name of the bucket, for people
  /// @throws Refuted, NotCovered
  void check(const BucketWays& ways, const std::vector<EndpointId>& servers, const std::string& name);

  /// Roles of which some member sends (receives) messages of a pattern.
  struct Ends {
    std::set<std::uint32_t> senders, receivers;
  };
  const Ends& ends_of(std::uint32_t pattern);

 private:
  /// What there is of gradients before they go to servers, by endpoint.
  struct Holders {
    std::vector<double> part;      ///< of the sum of its workers that it has; 0: nothing
    std::vector<EndpointId> with;  ///< of a worker: who has collected its gradients, or itself
  };
  Holders collected(const BucketWays& ways) const;
  void check_hand_outs(const BucketWays& ways, const Holders& holders) const;
  void check_rings(const BucketWays& ways) const;
  void check_way(CommId comm, bool back, const Holders& holders, const std::vector<EndpointId>& servers,
                 std::vector<double>& shares) const;
  void check_pairs(CommId comm, bool back, const Holders& holders, const std::vector<EndpointId>& servers,
                   std::vector<double>& shares) const;
  std::uint32_t pattern_of(CommId comm) const { return plan_.communications[comm].pattern; }
  const Round& round_of(CommId comm) const;
  std::string name_of_endpoint(EndpointId e) const { return machine_.endpoint_name(e); }

  const Plan& plan_;
  const Machine& machine_;
  RoundRules& rounds_;
  std::vector<std::uint32_t> role_of_;  ///< by endpoint
  std::set<std::vector<std::uint32_t>> known_;
  std::vector<std::optional<Ends>> ends_;  ///< by pattern
};

}  // namespace convoy::prove

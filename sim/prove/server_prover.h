// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/prove/prove_servers.h"
#include "sim/prove/served_role.h"
#include "sim/prove/server_flows.h"

namespace convoy::inline prove {
/// Of prove_servers() alone.
namespace servers {

using Kind = CommMeaning::Kind;
using Act = OpMeaning::Act;

/// Checks what workers and servers send each other. Buckets, images and messages are in prove_servers.cpp; what
/// each program does with a bucket, in server_tasks.cpp.
class ServerProver {
 public:
  ServerProver(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
               const HappensBefore& order, RoundRules& rounds);
  void prove();

 private:
  std::string at(std::uint32_t r, TaskId t) const { return name_of(plan_.roles[r], t, machine_); }
  std::string role_name(std::uint32_t r) const { return name_of(plan_.roles[r], machine_); }
  std::string bucket_name(std::uint32_t b) const;

  // What there is.

  void add_way(CommId id);

  // Rules of the whole plan.

  /// Each parameter is in one bucket, which goes there and back.
  void check_buckets() const;
  /// Who does a step is a client, once, with the images of its program, and what it exchanges are buckets.
  void check_service() const;
  double images_of_role(std::uint32_t r) const;
  /// All workers together have the gradients of all images, each once, of every layer.
  void check_images() const;

  // Rules of a bucket.

  void check_bytes(std::uint32_t b) const;
  /// Whoever has messages has a task for them.
  void check_tasks(std::uint32_t b);
  /// By a rule and not by a program.
  bool answers(std::uint32_t r) const { return plan_.service() && !roles_[r].works; }

  /// Who updates a bucket; sorted.
  std::vector<EndpointId> servers_of(std::uint32_t b);
  /// Whether parameters come at the beginning of a step, as the step before has left them. Then all workers
  /// wait for them (check_worker), and so does what updates them.
  bool pulls_first(std::uint32_t b) const;
  void need(std::uint32_t r, std::optional<TaskId> before, std::optional<TaskId> after) const;
  /// Gradients are complete, then compressed where they are, then sent; the old parameters are read no more;
  /// then the new ones come. At first use: parameters come, and then everything else.
  void check_worker(std::uint32_t r, std::uint32_t b, bool at_first_use) const;
  void check_gradients(std::uint32_t r, std::uint32_t b, TaskId leaves, bool is_late) const;
  /// Hosts that collect gradients of their devices, servers, and those that are both.
  void check_host(std::uint32_t r, std::uint32_t b, bool at_first_use) const;

  const Plan& plan_;
  const Meaning& meaning_;
  const TrainingGraph& graph_;
  const Machine& machine_;
  const HappensBefore& order_;
  ServerFlows flows_;
  std::vector<BucketWays> ways_;  ///< by bucket
  std::vector<ServedRole> roles_;
};

}  // namespace servers
}  // namespace convoy::prove

// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/prove/prove_gradients.h"

namespace convoy::inline prove {
/// Of prove_gradients() alone.
namespace gradients {

using Kind = CommMeaning::Kind;
using Act = OpMeaning::Act;

/// An operation of a role's program.
struct Event {
  TaskId task;
  std::uint32_t place;  ///< of its task among the compute tasks
  std::size_t number;   ///< among all operations of the program
  OpId operation = no_meaning;
  std::int64_t micro_batch = 0;
  ImageRange images{};
};

/// What a role's program does with a bucket of gradients or parameters.
struct BucketUse {
  std::array<std::vector<Event>, OpMeaning::act_count> acts;  ///< by Act
  std::vector<Event> forgets;
  std::vector<TaskId> sums, scatters, gathers;  ///< gathers of parameters
  std::vector<TaskId> factor_sums;              ///< of second factors
  std::vector<TaskId> averages;                 ///< of parameters, with all or with neighbours
};

/// What a role's program does with parameters.
struct RoleUse {
  std::map<std::uint32_t, std::vector<Event>> reads, gradients, updates;  ///< by layer
  std::map<std::uint32_t, BucketUse> buckets;
  std::map<std::size_t, std::set<std::uint32_t>> buckets_of;  ///< by parameter
};

/// Checks gradients, updates and what brings them to all replicas. Which images updates have, and which
/// version passes read, are in prove_gradients.cpp; what programs do with parameters, in gradient_uses.cpp;
/// replicas and buckets, in gradient_buckets.cpp; sums, in gradient_sums.cpp; shares of states, in
/// gradient_shares.cpp; averages, in gradient_averages.cpp.
class GradientProver {
 public:
  GradientProver(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
                 const Machine& machine, const HappensBefore& order, RoundRules& rounds,
                 ParameterParts* parts);

  void prove();

 private:
  // Text.

  std::string at(std::uint32_t r, TaskId t) const { return name_of(plan_.roles[r], t, machine_); }
  std::string comm_name(std::uint32_t r, TaskId t) const;
  std::string gradient_text(std::size_t p, const Event& event) const;
  std::string list_text(const BucketMeaning& bucket) const;
  static std::string count_of(std::size_t count, const char* what);

  // What programs do with parameters.

  const RoleOrder& order(std::uint32_t r) const { return order_.of(r); }
  RoleUse find_uses(std::uint32_t r) const;
  void add_event(RoleUse& use, const Event& event) const;
  void add_collective(RoleUse& use, TaskId t, const Communication& comm) const;
  /// Which update gets a gradient: that before which it was added up last.
  std::size_t update_of(std::uint32_t r, std::uint32_t layer, const Event& gradient);
  /// @pre the role updates the parameter's layer
  const std::vector<Event>& updates_of(std::uint32_t r, std::size_t p) const;
  std::vector<Event> gradients_of(std::uint32_t r, std::size_t p) const;
  /// Of devices that average parameters at their own pace: what an answer is the answer to.
  std::optional<CommId> request_of(CommId answer) const;
  std::vector<CommId> comms_of(std::uint32_t r, const BucketUse& use) const;
  static const std::vector<Event>& acts(const BucketUse& use, Act act);

  // Images and versions.

  /// All replicas together have, for one update after the other, the gradients of the images from where the
  /// update before has ended, each once: in a step the global batch. Of a run that goes on, what comes after
  /// the last update is left out.
  void check_images(std::uint32_t layer, const std::vector<std::uint32_t>& roles);
  /// A step has one update, after all that reads the old version. A run that goes on has many: forward and
  /// backward pass read one version of those kept, and no gradient is older than they are when it is used.
  void check_updates(std::uint32_t r, std::uint32_t layer, std::size_t updates_of_others);
  /// Numbers of the operations that change a layer's parameters: updates, and averages.
  std::vector<std::size_t> version_numbers(std::uint32_t r, std::uint32_t layer);

  // Averages.

  bool averages() const { return !meaning_.own_images.empty(); }
  std::vector<std::size_t> average_numbers(std::uint32_t r, std::uint32_t layer) const;
  std::size_t averages_before(std::uint32_t r, std::uint32_t layer, const Event& event) const;
  /// A parameter of which there are several replicas is averaged in one bucket, the same on all of them;
  /// gradients of it are summed over groups of them, if at all, and are the mean of all images of the group.
  void check_averaged(std::size_t p, const std::vector<std::uint32_t>& roles);
  /// Whether one sum of gradients is of all replicas of a parameter (the devices of the only host), so that there is nothing
  /// to average.
  bool is_summed_by_all(std::uint32_t r, std::size_t p, std::size_t replicas);
  /// Those who are together in messages with neighbours have the same parameters: they sum their gradients.
  void check_neighbours(std::size_t p, const std::vector<CommId>& comms,
                        const std::vector<std::uint32_t>& roles, const std::vector<EndpointId>& members);
  /// What a device updates with is the mean over the images of those whose gradients are summed.
  void check_own_images(std::uint32_t r, std::optional<CommId> sum);
  /// A step of a device, by the gradients of a layer that it has.
  double images_of(EndpointId endpoint) const;
  void check_average_bucket(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use);

  // Replicas and buckets.

  /// A parameter of which there are several replicas goes through one bucket, the same on all of them.
  void check_replicas(std::size_t p, const std::vector<std::uint32_t>& roles);
  /// The same where devices have parts of it: a role's members sum them in one bucket at most, with others
  /// that have the same part, and whose gradients are of all images between them.
  void check_parts(std::size_t p, const std::vector<std::uint32_t>& roles);
  void check_parts_of(std::uint32_t r, std::size_t p, std::uint32_t bucket);
  /// On each member of a role.
  double elements(std::uint32_t r, std::size_t p) const;
  void check_bucket(std::uint32_t r, std::uint32_t id, const BucketUse& use);
  /// Tensors that go together are updated together.
  void check_members(std::uint32_t r, const BucketMeaning& bucket) const;
  void check_bytes(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) const;
  void check_bytes_of(std::uint32_t r, CommId id, double bytes) const;
  void check_waits(std::uint32_t r, const Event& event, TaskId message, std::size_t p) const;

  // Sums.

  /// Second factors are made of the sum of the first ones, summed once for each update, and decompressed with
  /// it; where no tensor of the bucket is a matrix worth it, there are none.
  void check_factors(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) const;
  /// For each update gradients are complete, then made ready to be sent, then summed once, then put back,
  /// then used, and only then the next are begun.
  void check_sum(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use);
  void check_sum_of(std::uint32_t r, std::size_t p, const BucketUse& use, std::size_t k);
  /// What is done before a message is undone after it, each time.
  void check_pairs(std::uint32_t r, const BucketUse& use, Act before, Act after, std::size_t times);
  /// What is compressed is the bucket's copy.
  void check_copies(std::uint32_t r, const BucketUse& use, std::size_t times) const;

  // Shares of states.

  /// Each scatter takes the gradients that have been made since the one before; together they take all.
  void check_scatters(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use);
  /// New parameters go to all replicas, once: after the update, or in the next step before they are read.
  void check_gather_after(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use);
  /// Of a run that goes on, with shares of the optimizer's states: for each update gradients are complete,
  /// then scattered, then used, then the new parameters are gathered, and then the next micro-batches read
  /// them.
  void check_shared_states(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use);
  bool is_before_all_reads(std::uint32_t r, const BucketMeaning& bucket, TaskId gather);
  /// Parameters are gathered before they are read, again where they have gone, and before they are updated.
  void check_gathers_before(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use);

  const Plan& plan_;
  const Meaning& meaning_;
  const TrainingGraph& graph_;
  const Machine& machine_;
  const HappensBefore& order_;
  RoundRules& rounds_;
  ParameterParts* parts_;              ///< nullptr: devices have whole layers
  std::vector<bool> has_parameters_;   ///< by layer
  std::vector<bool> completes_;        ///< by operation of the graph: gradients of parameters
  std::vector<RoleUse> uses_;          ///< by role
  std::vector<std::size_t> versions_;  ///< by role: of the parameters that each member keeps
  const std::optional<GossipNeighbours> gossip_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> known_parts_;  ///< roles and buckets
  std::set<std::vector<double>> known_images_;
  std::set<std::vector<CommId>> known_averages_;
  std::set<std::pair<std::uint32_t, std::optional<CommId>>> known_sums_;
  /// By the roles that have a layer: up to which image each of their updates has gradients.
  std::map<std::vector<std::uint32_t>, std::vector<double>> ends_;
};

}  // namespace gradients
}  // namespace convoy::prove

// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/lowering/compute_tasks.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// Replicas that each update their own parameters with their own gradients, and keep near each other by
/// averaging the parameters.
///
/// all: of all devices, after every `every` steps. Local SGD (Stich, ICLR 2019; Lin, Stich, Patel & Jaggi,
/// ICLR 2020), and with `sums_in_hosts` its hierarchical form: the devices of a host sum their gradients in
/// every step (Lin et al., appendix). With `slow_momentum` b the average is where a momentum step of its own
/// leads (SlowMo: Wang, Tantia, Ballas & Rabbat, ICLR 2020, algorithm 1 with a slow learning rate of 1; BMUF:
/// Chen & Huo, ICASSP 2016): u = b u + (x - average), x = x - u, x the parameters at the end of the period
/// before.
///
/// The others average in every step, with their neighbours alone, and with equal weights for all of them.
/// `ring` is D-PSGD (Lian et al., NeurIPS 2017). With `exponential`, device i sends to i + 1, i + 2, i + 4
/// ... modulo N; with `one_peer`, to one of these at a time, to another one in each step (Assran, Loizou,
/// Ballas & Rabbat, "Stochastic Gradient Push", ICML 2019; its push-sum weights stay 1, since every device
/// has as many in-neighbours as out-neighbours). With `sums_in_hosts` the devices of a host have the same
/// parameters, as in that paper, and the neighbours are hosts: the first device of each host sends and
/// receives, adds up what it receives, and passes the sum on to the others.
struct Averaging {
  enum class With : std::uint8_t { all, ring, exponential, one_peer };
  With with = With::all;
  std::int64_t every = 1;
  bool sums_in_hosts = false;
  double slow_momentum = 0;
  bool asynchronous = false;  ///< on a ring

  bool is_gossip() const { return with != With::all; }
  bool active() const { return is_gossip() || every > 1; }
  bool operator==(const Averaging&) const = default;
  /// Steps after which everything repeats.
  std::int64_t period(const Machine& machine) const;
};

/// The pairs (sender, receiver) of devices, or hosts, between which parameters are sent in a step, by
/// position.
std::vector<std::pair<std::uint32_t, std::uint32_t>> neighbours(Averaging::With with, std::uint32_t devices,
                                                                std::int64_t step);

/// The averages of parameters in a plan. Parameters are averaged in fp32, in which the optimizer keeps them.
///
/// A message of several tensors is put together and taken apart by a copy, as PyTorch's average_parameters
/// does (model_averaging/utils.py), where the fabric has software at all; its buffer is workspace. The
/// average reads what has come and writes the parameters (8 bytes an element, with gossip of d neighbours 4
/// (d + 2) and a buffer for each; of hosts the sum of d, as if d were 1), and the half-precision copy where
/// there is one (2 more). Slow momentum reads and writes x, u and the parameters (24 bytes an element) and
/// keeps x and u (8).
///
/// Gossip with overlap sends the parameters with which a step begins while the step computes, and averages
/// them before the update (D-PSGD). Without overlap it sends and averages the updated parameters after the
/// update.
///
/// In asynchronous gossip (AD-PSGD: Lian, Zhang, Zhang & Liu, ICML 2018) no device waits for another's step.
/// A device sends the parameters s with which it begins a step to the next device on the ring. That one
/// averages them with its own parameters y, wherever it is in its own step, and answers with y. Before its
/// update the first device adds (y - s) / 2, so that the sum of both stays what it was. The plan has a
/// Service, of which every device is both a client and a server. A device takes two averages a step: one that
/// it asked for (16 bytes an element) and, on average, one that it is asked for (12 bytes).
class ParameterAverages {
 public:
  /// @param devices all replicas  @param elements of each parameter
  /// @throws InputError (at sync.algorithm_pos) where the algorithm has no all-reduce over the devices
  ParameterAverages(const Averaging& averaging, const GradientSync& sync, const TrainingGraph& graph,
                    const Machine& machine, std::vector<EndpointId> devices,
                    const std::vector<double>& elements, Plan& plan);

  std::int64_t steps() const { return steps_; }
  /// The exchanges of asynchronous gossip between several devices; none if all devices wait for each other.
  std::vector<Service::Exchange> exchanges() const;
  /// Bytes of states on each device beside those of its replica.
  double slow_bytes() const;

  /// Of step `step` of a device's program: before its passes, before its update, after it.
  void begin_step(Role& role, ComputeTasks& tasks, std::int64_t step);
  void before_update(ComputeTasks& tasks, std::int64_t step);
  void after_update(Role& role, ComputeTasks& tasks, std::int64_t step);

 private:
  struct Message {
    Bucket bucket;
    double elements = 0;
    bool is_copied = false;
    std::uint32_t meaning = no_meaning;  ///< index into Meaning::buckets
    std::vector<CommId> comms;           ///< by step of the period; of `all` one
    // Of the program under way.
    TaskId done = 0;
    std::size_t sent = 0, came = 0;  ///< tensors of ComputeTasks
  };

  bool is_alone() const { return devices_.size() == together_; }
  void add_communications();
  void add_exchanges();
  void add_communication(Message& message, std::string name, std::uint32_t pattern);
  std::vector<Round> exchange_rounds(std::int64_t step) const;
  double received(std::int64_t step) const;
  void send(Role& role, ComputeTasks& tasks, std::int64_t step);
  void average(ComputeTasks& tasks, std::int64_t step);
  void mean_act(ComputeTasks& tasks, OpMeaning::Act act, const Message& message) const;

  Averaging averaging_;
  const GradientSync& sync_;
  const TrainingGraph& graph_;
  const Machine& machine_;
  std::vector<EndpointId> devices_;  ///< host by host
  std::uint32_t together_ = 1;       ///< of a host, that sum gradients
  Plan& plan_;
  std::int64_t steps_;
  std::vector<Message> messages_;
};

}  // namespace convoy::lowering

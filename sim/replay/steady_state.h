// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/busy_clock.h"
#include "sim/replay/fold.h"

namespace convoy {

/// Watches the clients of a plan's Service step by step, between warm-up and the end of the measurement.
class SteadyState {
 public:
  /// What a client class did in whole steps of the measurement, the first of them begun at begin_s.
  struct Client {
    double images = 0, members = 0;
    std::uint64_t steps_done = 0;  ///< since the beginning of time
    bool measured = false;         ///< has begun a step of the measurement
    std::uint64_t steps = 0;
    double begin_s = 0, end_s = 0;
    double compute_s = 0, exposed_comm_s = 0;
    std::uint64_t first_version = 0, last_version = 0;
    double mean_step_s() const { return (end_s - begin_s) / static_cast<double>(steps); }
  };

  SteadyState(const Service& service, const Folding& folding);

  bool is_client(std::uint32_t c) const { return client_[c] != none; }
  const Client& client(std::uint32_t c) const { return clients_[client_[c]]; }
  /// @param version of the parameters that the step begins with (quorum)
  void step_begins(std::uint32_t c, double now_s, DeviceClock& clock, std::uint64_t version);
  void step_ends(std::uint32_t c, double now_s, DeviceClock& clock, std::uint64_t next_version);

  bool is_warm() const { return warm_left_ == 0; }
  bool is_over() const { return measuring_left_ == 0; }
  /// The mean time in which `images` images are learnt from; with a quorum the time from update to update.
  double step_time_s(double images) const;

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  struct Start {
    double compute_s = 0, exposed_comm_s = 0;
  };
  const Service& service_;
  std::vector<std::uint32_t> client_;  ///< by endpoint class: index into clients_
  std::vector<Client> clients_;
  std::vector<Start> starts_;
  std::size_t warm_left_, measuring_left_;
};

}  // namespace convoy

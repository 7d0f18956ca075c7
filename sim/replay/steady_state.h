// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/busy_clock.h"
#include "sim/replay/equal_steps.h"
#include "sim/replay/fold.h"

namespace convoy::inline replays {

/// Where the mean is that of several measurements, so many.
inline constexpr std::size_t measurements = 8;

/// One of several measurements: with random numbers of its own, and clients that begin within some time after each other.
struct Measurement {
  std::uint64_t number = 0;  ///< 0: clients begin when the plan says
  std::uint32_t longer = 1;  ///< so many times as many steps to warm up and to measure as the plan says
  double begin_within_s = 0;
};

/// Whether the mean of a step is that of several measurements (repeated_services.h). Where every push is answered and compute
/// times are drawn, who meets whom may last for hundreds of steps, and one measurement does not show how differently it
/// can go.
inline bool is_measured_repeatedly(const Service& service) {
  return service.quorum == 0 && service.is_random();
}

/// Watches the clients of a plan's Service step by step, from the warm-up to the end of the measurement.
///
/// Each client's measured steps are divided into blocks of Service::measured_steps (fewer if clients and tensors are so many
/// that 8 blocks have more than 2^21 messages), and when all clients have 8, 16, 32, ... blocks, these form 8 batches. The
/// difference between a batch's mean compute time and its known mean is a control variate for its mean step (coefficient:
/// least squares over the batches), so that a client that waits for nobody is measured exactly.
///
/// One of several measurements (is_measured_repeatedly) is over after 8 blocks. If clients drift, the measurement is over when
/// the 95 % interval of the mean step over batches (Student's t, 6 degrees of freedom) is within 1 %, or after 8,192 blocks or
/// 2^16 messages. With a quorum and random compute times, the batches are those of the client with the most steps; the mean is
/// the time between updates, as measured, and has to be known to 0.2 %. Where nothing is random and the steps of all clients
/// become equal (equal_steps.h) before the warm-up is over, it is over then, and one more whole step of each client is the
/// measurement. Source: Law, Simulation Modeling and Analysis, 5th ed. 2015, sections 9.5.3 (batch means) and 11.4 (control
/// variates).
class SteadyState {
 public:
  /// What a client class did in whole steps of the measurement, the first of which begins at begin_s.
  struct Client {
    double images = 0, members = 0;
    std::uint64_t steps_done = 0;  ///< since the beginning of time
    bool measured = false;         ///< has begun a step of the measurement
    std::uint64_t steps = 0;
    double begin_s = 0, end_s = 0;
    DeviceTimes times;   ///< of all measured steps
    double stretch = 0;  ///< sum over these steps of the factors on their compute times
    std::uint64_t first_version = 0, last_version = 0;
    std::vector<double> block_end_s, block_stretch;  ///< block_stretch: `stretch` at the block's end
    std::vector<std::uint64_t> block_version;        ///< `last_version` at the block's end
    double corrected_step_s = 0;                     ///< if positive, the mean with the control variate
    double mean_step_s() const {
      return corrected_step_s > 0 ? corrected_step_s : (end_s - begin_s) / static_cast<double>(steps);
    }
    double mean_stretch() const { return steps > 0 ? stretch / static_cast<double>(steps) : 1; }
  };

  /// @param undisturbed the steps of clients depend on each other only, and not on images that are made ready for them or
  ///        on what else happens to the machine
  SteadyState(const Service& service, const Folding& folding, bool undisturbed,
              const Measurement& measurement = {});

  bool is_client(std::uint32_t c) const { return client_[c] != none; }
  const Client& client(std::uint32_t c) const { return clients_[client_[c]]; }
  /// The factor on a client's compute time in its next step.
  double next_stretch(std::uint32_t c) const;
  /// In [0, 1), random: where in its step a client is at the beginning of time.
  double phase(std::uint32_t c) const;
  /// @param version version of the parameters with which the step begins (quorum)
  void step_begins(std::uint32_t c, double now_s, DeviceClock& clock, std::uint64_t version);
  void step_ends(std::uint32_t c, double now_s, DeviceClock& clock, std::uint64_t next_version);

  /// A step of a client that ends after the measurement: the next one gets a factor of its own.
  void count_step(std::uint32_t c) { ++clients_[client_[c]].steps_done; }

  bool is_warm() const { return warm_left_ == 0; }
  bool is_over() const { return measuring_left_ == 0; }
  /// The mean time in which `images` images are learnt from; with a quorum, the time from update to update.
  double step_time_s(double images) const;
  /// Half of the 95 % interval of that mean, as a share of it; 0: it was not measured in batches.
  double doubt() const { return doubt_; }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  void end_block(Client& client);
  bool is_known();
  bool are_steps_known();
  bool are_updates_known();
  const Client& fastest() const;
  double affordable_steps() const;
  const Service& service_;
  std::uint32_t warm_up_steps_;
  std::vector<std::uint32_t> client_;  ///< by endpoint class: index into clients_
  std::vector<Client> clients_;
  std::vector<DeviceTimes> starts_;   ///< by client: its clock when its measurement began
  std::vector<std::uint64_t> seeds_;  ///< by client: Service::Client::sequence, and nothing else of the run
  std::size_t warm_left_, measuring_left_;
  std::uint32_t steps_a_block_;
  std::size_t blocks_wanted_;  ///< of each client before the next check
  double doubt_ = 0;
  std::optional<EqualSteps> equal_;  ///< where steps can become equal
};

}  // namespace convoy::replays

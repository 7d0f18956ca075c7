// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/shared_value.h"
#include "sim/replay/replay.h"
#include "topologies/sources.h"

namespace convoy::inline runs {

struct PreparedRun;

/// A number on which the step of a run may hang and which is not known exactly.
struct Doubt {
  enum class Moves : std::uint8_t {
    computing,        ///< all that devices compute, and what hosts issue for it
    issuing,          ///< what hosts need to issue operations
    messages,         ///< the time of every message
    several_devices,  ///< the step itself, where several devices share it
    protocol,         ///< what hosts speak: this, or an ideal network
    network,          ///< the bandwidth between hosts
    loader,           ///< the rate of a core that makes images ready
    written,          ///< a number of the experiment that says its `spread`
  };
  Moves moves = Moves::computing;
  std::string key;    ///< of an experiment, through which a measurement goes back in
  std::string value;  ///< as it is, for people
  Source source;      ///< its spread is that of the number, or of the part of the step that it stands for
  /// Of `loader` and `written`: the same run with the number less and more by quantile_80 spreads.
  SharedValue<PreparedRun> less = nullptr, more = nullptr;
  std::string library = {};  ///< of `loader`: what makes images ready
  bool operator==(const Doubt&) const = default;
};

/// Standard deviations of the logarithms of the parts of a step (docs/cost_model.md, "Intervals"); 0 if nothing
/// is open.
struct StepSpreads {
  double compute = 0;
  double comm = 0;     ///< of every message
  double devices = 0;  ///< of a step of several devices, in addition to these
  bool all_exact() const { return compute == 0 && comm == 0 && devices == 0; }
};
/// @param of_device images that one device works on in a step
StepSpreads step_spreads(const PreparedRun& run, double of_device);

/// All doubts about a run, in the order of Moves: those that step_spreads() puts together, and those that are
/// simulated (PreparedRun::doubts).
std::vector<Doubt> doubts_of(const PreparedRun& run);

/// The steps of a run with the number of a doubt less and more by quantile_80 spreads, as replays give them.
/// What the run's strategy decided stays, except where the experiment itself is another (`written`). Of a
/// protocol: those of an ideal network, and of the one that is assumed.
using StepRange = std::array<double, 2>;
StepRange step_range_s(const PreparedRun& run, const Doubt& doubt);
/// The same, by a replay of the run as it is: what that tells is not replayed again.
StepRange step_range_s(const PreparedRun& run, const Doubt& doubt, const ReplayResult& replayed);

/// The step of a run with the numbers of all its doubts moved at once, by one replay: number i times
/// exp(deviations[i] x its spread). A protocol is the assumed one where its deviation is above 0, else none. What
/// the run's strategy decided stays. A `written` number, with which the experiment is another, acts by the power
/// law between its step_range_s(); a loader's images come at intervals by the power law between those of its ends.
/// @param doubts of the run, doubts_of() @param deviations one a doubt
/// @param written ranges of the doubts that are `written`, as step_range_s() gives them; those of others are not read
double drawn_step_s(const PreparedRun& run, const std::vector<Doubt>& doubts,
                    const std::vector<StepRange>& written, const std::vector<double>& deviations);

/// The parts of a run's network, devices and software that rest on no published figure, one sentence each.
std::vector<std::string> evidence_warnings(const PreparedRun& run);

/// Images that a device works on in a step: of the device that works on most.
double images_of_device(const PreparedRun& run);

/// Standard deviation of log(bandwidth) between hosts where a catalogue takes it from something like it and
/// says no spread: four of five are taken to be within a factor of two.
inline constexpr double assumed_bandwidth_spread = 0.54;

/// Standard deviation of log(rate) of the loaders of the catalogue on other hosts than those on which they
/// were measured (topologies/catalog/software/loaders.yaml). @throws InputError: a wrong file
double loader_spread();

}  // namespace convoy::runs

// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/planning/solo_steps.h"
#include "sim/planning/trial.h"

namespace convoy::inline planning {

/// Whose steps make up a step of the training.
enum class Pace : std::uint8_t {
  all,   ///< everybody's, who take one step together: it takes as long as the slowest
  each,  ///< everybody's, each at its own pace: rates add up
  some,  ///< those of the first that are done
};

/// What no simulation of a setup comes to less than, before it is planned: from the cost table, what hosts need to
/// make images ready, what devices wait for the last of them by chance, and what links need for sums of gradients from
/// when each bucket of them is there.
class SetupBounds {
 public:
  /// All must outlive it.
  SetupBounds(const PlanSpec& spec, const ServerTable& servers, const SoloTable& solos)
      : spec_(spec), servers_(servers), solos_(solos), bucketings_(bucketings_of(spec, servers)) {}

  /// Why a setup cannot run, as its bound says.
  const std::string& why_not(const Setup& setup) const;

  /// @param bandwidth factor on that of all links
  Trial bound(const Setup& setup, double bandwidth) const;

  /// No step in which all devices compute their batches is shorter: what the slowest host needs to make these
  /// ready. Hosts that do not say their `vcpus` have no limit.
  double waited_for_s(const Setup& setup, const InputSpec& input) const;

 private:
  /// What a strategy's mapping says of its steps.
  struct Traits {
    /// A replica a device, that runs the whole network on its equal share of the batch and is there all the step.
    bool whole_network = false;
    bool keeps_all_states = false;  ///< nothing of a replica's memory or update lies elsewhere
    bool accumulates = false;       ///< micro-batches
    bool sums_on_devices = false;   ///< the function of this name
    Pace pace = Pace::all;
    std::optional<std::size_t> bucketing;  ///< place in bucketings_; nothing: buckets are not known
  };
  const Traits& traits_of(const std::shared_ptr<const YamlNode>& strategy) const;
  double summing_s(const Setup& setup, const Traits& traits, const SoloStep& solo, double bandwidth) const;

  const PlanSpec& spec_;
  const ServerTable& servers_;
  const SoloTable& solos_;
  const std::vector<GradientSync> bucketings_;
  mutable std::map<std::shared_ptr<const YamlNode>, Traits>
      traits_;  ///< found out once: setups share strategies
};

}  // namespace convoy::planning

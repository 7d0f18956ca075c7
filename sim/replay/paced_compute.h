// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/replay/engine.h"

namespace convoy {

/// Compute tasks of endpoint classes. While collectives are under way on an endpoint they hold a share of its
/// processors, and its tasks go on at the rest of their rate.
class PacedCompute {
 public:
  /// @param taken by endpoint class: share of its processors that collectives hold, below 1
  PacedCompute(Engine& engine, std::vector<double> taken);

  /// @param alone_s how long the task takes with all processors
  void start(std::uint32_t endpoint_class, double alone_s, Callback done);
  void collective_begins(std::uint32_t endpoint_class);
  void collective_ends(std::uint32_t endpoint_class);
  bool computes(std::uint32_t endpoint_class) const { return !places_[endpoint_class].tasks.empty(); }

 private:
  struct Running {
    double left_s;  ///< at full rate, at Place::since_s
    std::uint64_t ticket;
    Callback done;
  };
  struct Place {
    double taken;
    std::uint32_t collectives = 0;
    double since_s = 0;
    std::vector<Running> tasks;
    double rate() const { return collectives > 0 ? 1 - taken : 1; }
  };

  void settle(Place& place);
  void schedule(std::uint32_t endpoint_class, Running& task);
  void end(std::uint32_t endpoint_class, std::uint64_t ticket);

  Engine& engine_;
  std::vector<Place> places_;
  std::uint64_t tickets_ = 0;
};

}  // namespace convoy

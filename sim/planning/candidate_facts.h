// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/planning/candidates.h"
#include "sim/planning/convergence.h"
#include "sim/run/faults.h"
#include "topologies/regions.h"

namespace convoy::inline planning {

inline constexpr double seconds_an_hour = 3600;

/// What is known of candidates whatever their steps take.
class CandidateFacts {
 public:
  /// All must outlive it.
  CandidateFacts(const PlanSpec& spec, const ServerTable& servers, const CandidateSpace& space);

  // By setup.
  const std::optional<EpochsNeeded>& epochs(std::size_t setup) const { return *epochs_[setup]; }
  double idle_w(std::size_t setup) const {
    return idle_w_[setup];
  }  ///< of its machines when nothing computes
  std::int64_t hosts(std::size_t setup) const { return hosts_[setup]; }
  const std::string& kinds(std::size_t setup) const { return *kinds_[setup]; }  ///< kinds_of its order
  /// Whether its strategy may need other epochs than plain sums of gradients.
  bool trains_otherwise(std::size_t setup) const { return !method_doubts_[setup]->empty(); }

  // By candidate.
  /// Why the choice should not rest on it; what speaks against the plan's goal is no part of it.
  std::vector<std::string> doubts(std::size_t candidate) const;
  bool doubtful(std::size_t candidate) const {
    return offers_[candidate]->doubtful || doubtful_setups_[space_.candidates[candidate].setup];
  }
  double usd_per_h(std::size_t candidate) const {
    return offers_[candidate]->usd_per_h;
  }  ///< infinite where not known
  /// What machines of one's own pay for the order's energy; 0: they are rented.
  double electricity_usd_per_j(std::size_t candidate) const {
    return offers_[candidate]->electricity_usd_per_j;
  }
  const GridRegion* grid(std::size_t candidate) const {
    return offers_[candidate]->grid;
  }  ///< nullptr where not known
  /// What takes hosts away, and for how long.
  struct Risk {
    Faults faults;
    double wait_s = 0;
    double least_rate = 1, most_rate = 1;  ///< as factors of that of the faults
  };
  /// Where machines may go and the rate is known.
  const std::optional<Risk>& risk(std::size_t candidate) const { return offers_[candidate]->risk; }

 private:
  /// What candidates with the same order, market, region and prices have in common.
  struct Offer {
    bool doubtful = false;
    double electricity_usd_per_j = 0, usd_per_h = 0;
    const GridRegion* grid = nullptr;
    std::optional<Risk> risk;
  };
  /// The addresses of the order and of the prices, which stand for what they are (SharedList), market and region.
  using OfferKey = std::tuple<const void*, const void*, Market, std::string>;

  void add_setup(const Setup& setup);
  void add_candidate(const Candidate& candidate);
  Offer offer_of(const Candidate& candidate);
  std::optional<Risk> risk_of(const Candidate& candidate, const Order& order) const;
  std::vector<std::string> price_doubts(const Candidate& candidate) const;
  std::vector<std::string> method_doubts(const Setup& setup, const std::string& of_strategy) const;
  std::vector<std::string> machine_doubts(const Candidate& candidate) const;

  const PlanSpec& spec_;
  const ServerTable& servers_;
  const CandidateSpace& space_;
  std::vector<const std::optional<EpochsNeeded>*> epochs_;
  std::vector<double> idle_w_;
  std::vector<std::int64_t> hosts_;
  std::set<std::string> all_kinds_;
  std::vector<const std::string*> kinds_;
  std::vector<const std::string*> method_doubts_;  ///< by setup; "": none
  std::map<std::int64_t, std::optional<EpochsNeeded>> epochs_of_batch_;
  std::map<const YamlNode*, std::string> doubts_of_strategies_;
  std::map<std::string, std::string> network_doubts_;    ///< by the order's kinds, of several hosts; "": none
  using Place = std::pair<std::string, std::string>;     ///< server and region
  std::map<Place, std::optional<SpotRisk>> spot_risks_;  ///< of the candidates on the spot market
  std::map<std::tuple<std::string, std::string, Market>, std::string> price_doubts_;  ///< "": none
  std::vector<bool> doubtful_setups_;  ///< whether there are method_doubts()
  std::map<OfferKey, Offer> all_offers_;
  std::vector<const Offer*> offers_;  ///< by candidate
};

}  // namespace convoy::planning

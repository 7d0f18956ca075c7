// SPDX-License-Identifier: MIT
// Policies that hand out GPUs of one kind one by one.
#include "sim/schedule/one_by_one.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>

#include "sim/schedule/afs_levels.h"
#include "sim/schedule/policies.h"

namespace convoy::inline schedule {

OfferCurve::OfferCurve(const Throughput& throughput) : reached(throughput.packed), best(reached.size(), 0) {
  for (std::uint32_t w = 1; w < reached.size(); ++w) {
    best[w] = reached[w] > reached[w - 1] ? w : best[w - 1];
    reached[w] = std::max(reached[w], reached[w - 1]);
  }
}

double Offer::length_s(std::uint32_t on) const {
  return on == 0 ? std::numeric_limits<double>::infinity() : left_images / reached(on);
}

std::vector<Offer> make_offers(const std::vector<ActiveJob>& jobs,
                               const std::function<double(const ActiveJob& job)>& left_images) {
  std::map<const Throughput*, std::shared_ptr<const OfferCurve>> curves;
  std::vector<Offer> offers;
  offers.reserve(jobs.size());
  for (const ActiveJob& job : jobs) {
    std::shared_ptr<const OfferCurve>& curve = curves[&job.job->on(0)];
    if (!curve) curve = std::make_shared<const OfferCurve>(job.job->on(0));
    offers.push_back({curve, left_images(job)});
  }
  return offers;
}

std::vector<Allocation> used(const std::vector<Offer>& offers) {
  std::vector<Allocation> given;
  given.reserve(offers.size());
  for (const Offer& offer : offers) given.push_back({0, offer.curve->best[offer.gpus]});
  return given;
}

namespace {

/// Gives each job all GPUs that are useful to it, if there are enough for all: then the order of giving does
/// not matter.
bool enough_for_all(std::vector<Offer>& offers, std::uint32_t gpus) {
  std::uint64_t wanted = 0;
  for (const Offer& offer : offers) wanted += offer.useful();
  if (wanted > gpus) return false;
  for (Offer& offer : offers) offer.gpus = offer.useful();
  return true;
}

class Afs : public Policy {
 public:
  Afs(const char* name, bool lengths_known) : name_(name), lengths_known_(lengths_known) {}
  std::string name() const override { return name_; }

  std::vector<Allocation> allocate(const std::vector<ActiveJob>& jobs, const std::vector<GpuPool>& pools,
                                   double /*now_s*/) const override {
    std::vector<Offer> offers = make_offers(jobs, [this](const ActiveJob& job) {
      return lengths_known_ ? job.left_images : std::max(1.0, job.job->images - job.left_images);
    });
    if (!enough_for_all(offers, pools[0].gpus)) AfsLevels(offers).share(pools[0].gpus);
    return used(offers);
  }

 private:
  std::string name_;
  bool lengths_known_;
};

class OptimusLike : public Policy {
 public:
  std::string name() const override { return "optimus-like"; }
  std::vector<Allocation> allocate(const std::vector<ActiveJob>& jobs, const std::vector<GpuPool>& pools,
                                   double /*now_s*/) const override {
    std::vector<Offer> offers = make_offers(jobs, [](const ActiveJob& job) { return job.left_images; });
    if (enough_for_all(offers, pools[0].gpus)) return used(offers);
    std::priority_queue<Gain> gains;
    for (std::size_t j = 0; j < offers.size(); ++j) gains.push(gain(offers[j], j));
    for (std::uint32_t left = pools[0].gpus; left > 0 && !gains.empty(); --left) {
      const std::size_t j = gains.top().job;
      gains.pop();
      ++offers[j].gpus;
      if (!offers[j].full()) gains.push(gain(offers[j], j));
    }
    return used(offers);
  }

 private:
  /// First jobs without a GPU, the shortest first, so that each can train; then by seconds gained; then by
  /// arrival.
  struct Gain {
    bool first = false;
    double gain_s = 0;
    std::size_t job = 0;
    bool operator<(const Gain& other) const {
      if (first != other.first) return other.first;
      if (gain_s != other.gain_s) return gain_s < other.gain_s;
      return job > other.job;
    }
  };
  static Gain gain(const Offer& offer, std::size_t job) {
    if (offer.gpus == 0) return {true, -offer.length_s(1), job};
    return {false, offer.length_s(offer.gpus) - offer.length_s(offer.gpus + 1), job};
  }
};

}  // namespace

std::unique_ptr<Policy> afs_l() { return std::make_unique<Afs>("afs-l", true); }
std::unique_ptr<Policy> afs_p_like() { return std::make_unique<Afs>("afs-p-like", false); }
std::unique_ptr<Policy> optimus_like() { return std::make_unique<OptimusLike>(); }

}  // namespace convoy::schedule

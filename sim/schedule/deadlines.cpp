// SPDX-License-Identifier: MIT
#include <algorithm>
#include <numeric>
#include <optional>

#include "sim/schedule/one_by_one.h"
#include "sim/schedule/policies.h"

namespace convoy::inline schedule {
namespace {

/// The time ahead, divided at deadlines, with the GPUs of each piece that nobody has reserved.
class Timeline {
 public:
  Timeline(const std::vector<ActiveJob>& jobs, const std::vector<std::size_t>& by_deadline,
           std::uint32_t gpus, double now_s) {
    double from_s = now_s;
    for (const std::size_t j : by_deadline) {
      pieces_.push_back({jobs[j].job->deadline_s - from_s, gpus});
      from_s = jobs[j].job->deadline_s;
    }
  }

  /// Reserves the fewest GPUs, up to a maximum at a time, with which `offer` ends within the first `pieces`.
  /// Returns how many it gets in the first piece; nothing if there are not enough.
  std::optional<std::uint32_t> reserve(const Offer& offer, std::size_t pieces) {
    const double images = offer.left_images * (1 - 1e-9);
    if (trained(offer, pieces, offer.useful()) < images) return std::nullopt;
    std::uint32_t few = 0, most = offer.useful();  // few are not enough, most are: more GPUs never train less
    while (most - few > 1) {
      const std::uint32_t middle = few + (most - few) / 2;
      (trained(offer, pieces, middle) < images ? few : most) = middle;
    }
    const std::uint32_t now = std::min(most, pieces_[0].free);
    double left = offer.left_images;
    for (std::size_t i = 0; i < pieces && left > 0; ++i) {
      const std::uint32_t here = std::min(most, pieces_[i].free);
      left -= pieces_[i].length_s * offer.reached(here);
      pieces_[i].free -= here;
    }
    return now;
  }

 private:
  struct Piece {
    double length_s = 0;
    std::uint32_t free = 0;
  };
  double trained(const Offer& offer, std::size_t pieces, std::uint32_t most) const {
    double images = 0;
    for (std::size_t i = 0; i < pieces; ++i)
      images += pieces_[i].length_s * offer.reached(std::min(most, pieces_[i].free));
    return images;
  }
  std::vector<Piece> pieces_;
};

class ElasticFlowLike : public DecidesAnew {
 public:
  std::string name() const override { return "elasticflow-like"; }

  bool admits(const ArrivedJobs& arrived, const std::vector<GpuPool>& pools, double now_s) const override {
    const std::vector<ActiveJob> jobs = arrived.list_present();
    std::vector<Offer> offers = offers_of(jobs);
    return reserve(jobs, offers, pools[0].gpus, now_s) && jobs.back().job->deadline_s > now_s;
  }

 protected:
  std::vector<Allocation> decide(const std::vector<ActiveJob>& jobs, const std::vector<GpuPool>& pools,
                                 double now_s) const override {
    std::vector<Offer> offers = offers_of(jobs);
    reserve(jobs, offers, pools[0].gpus, now_s);
    std::uint32_t left = pools[0].gpus;
    for (const Offer& offer : offers) left -= offer.gpus;
    for (; left > 0; --left) {
      Offer* best = nullptr;
      for (Offer& offer : offers)
        if (!offer.full() && (!best || gain(offer) > gain(*best))) best = &offer;
      if (!best) break;
      ++best->gpus;
    }
    return used(offers);
  }

 private:
  static std::vector<Offer> offers_of(const std::vector<ActiveJob>& jobs) {
    return make_offers(jobs, [](const ActiveJob& job) { return job.left_images; });
  }
  /// Throughput that one more GPU adds, relative to the throughput then: 1 for jobs that have none.
  static double gain(const Offer& offer) {
    return 1 - offer.reached(offer.gpus) / offer.reached(offer.gpus + 1);
  }

  /// Gives each admitted job whose deadline lies ahead what it needs now to keep it. Returns whether all of
  /// them can.
  static bool reserve(const std::vector<ActiveJob>& jobs, std::vector<Offer>& offers, std::uint32_t gpus,
                      double now_s) {
    std::vector<std::size_t> order;
    for (std::size_t j = 0; j < jobs.size(); ++j)
      if (jobs[j].admitted && jobs[j].job->deadline_s > now_s &&
          jobs[j].job->deadline_s < std::numeric_limits<double>::infinity())
        order.push_back(j);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return jobs[a].job->deadline_s < jobs[b].job->deadline_s;
    });
    Timeline timeline(jobs, order, gpus, now_s);
    bool all = true;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::optional<std::uint32_t> now = timeline.reserve(offers[order[i]], i + 1);
      offers[order[i]].gpus = now.value_or(0);
      all = all && now;
    }
    return all;
  }
};

}  // namespace

std::unique_ptr<Policy> elasticflow_like() { return std::make_unique<ElasticFlowLike>(); }

}  // namespace convoy::schedule

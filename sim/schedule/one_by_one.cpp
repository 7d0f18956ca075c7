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

/// Offers of the jobs that are present, kept from decision to decision.
class OfferSharing : public Sharing {
 public:
  OfferSharing(const ArrivedJobs& jobs, std::uint32_t gpus) : Sharing(jobs), gpus_(gpus) {}

  void arrive(std::size_t job) final {
    const ActiveJob& arrived = jobs_[job];
    std::shared_ptr<const OfferCurve>& curve = curves_[&arrived.job->on(0)];
    if (!curve) curve = std::make_shared<const OfferCurve>(arrived.job->on(0));
    offers_.resize(job + 1);
    offers_[job] = {curve, left_images(arrived)};
    wanted_ += curve->useful();
    insert(job);
  }
  void end(std::size_t job) final {
    wanted_ -= offers_[job].useful();
    erase(job);
  }

  std::vector<Grant> decide(double /*now_s*/) final {
    for (const std::size_t j : jobs_.holding)
      if (const double left = left_images(jobs_[j]); left != offers_[j].left_images) change(j, left);
    std::vector<Grant> grants;
    if (wanted_ <= gpus_) {  // enough for all: the order of giving does not matter
      for (const std::size_t j : jobs_.present) grants.push_back({j, {0, offers_[j].useful()}});
      return grants;
    }
    std::vector<std::size_t> given = share(gpus_);
    for (const std::size_t j : given) {
      grants.push_back({j, {0, offers_[j].curve->best[offers_[j].gpus]}});
      offers_[j].gpus = 0;
    }
    return grants;
  }

 protected:
  /// By which its length is computed.
  virtual double left_images(const ActiveJob& job) const { return job.left_images; }
  virtual void insert(std::size_t job) = 0;
  virtual void erase(std::size_t job) = 0;
  /// Its images left, in its offer too.
  virtual void change(std::size_t job, double left_images) = 0;
  /// Gives GPUs to offers that have none, until none is left, or none is useful. Returns the jobs that have
  /// some.
  virtual std::vector<std::size_t> share(std::uint32_t gpus) = 0;

  std::vector<Offer> offers_;  ///< by job

 private:
  std::uint32_t gpus_;
  std::uint64_t wanted_ = 0;  ///< GPUs that are useful to jobs present
  std::map<const Throughput*, std::shared_ptr<const OfferCurve>> curves_;
};

class AfsSharing : public OfferSharing {
 public:
  AfsSharing(const ArrivedJobs& jobs, std::uint32_t gpus, bool lengths_known)
      : OfferSharing(jobs, gpus), lengths_known_(lengths_known), levels_(offers_) {}

 protected:
  double left_images(const ActiveJob& job) const override {
    return lengths_known_ ? job.left_images : std::max(1.0, job.job->images - job.left_images);
  }
  void insert(std::size_t job) override { levels_.insert(job); }
  void erase(std::size_t job) override { levels_.erase(job); }
  void change(std::size_t job, double left_images) override { levels_.change(job, left_images); }
  std::vector<std::size_t> share(std::uint32_t gpus) override { return levels_.share(gpus); }

 private:
  bool lengths_known_;
  AfsLevels levels_;
};

class Afs : public Policy {
 public:
  Afs(const char* name, bool lengths_known) : name_(name), lengths_known_(lengths_known) {}
  std::string name() const override { return name_; }
  std::unique_ptr<Sharing> start(const ArrivedJobs& jobs, const std::vector<GpuPool>& pools) const override {
    return std::make_unique<AfsSharing>(jobs, pools[0].gpus, lengths_known_);
  }

 private:
  std::string name_;
  bool lengths_known_;
};

/// First a GPU for each job, the shortest first, so that each can train; then where most seconds are gained.
class OptimusSharing : public OfferSharing {
 public:
  using OfferSharing::OfferSharing;

 protected:
  void insert(std::size_t job) override { by_length_.insert({offers_[job].length_s(1), job}); }
  void erase(std::size_t job) override { by_length_.erase({offers_[job].length_s(1), job}); }
  void change(std::size_t job, double left_images) override {
    const double before_s = offers_[job].length_s(1);
    offers_[job].left_images = left_images;
    by_length_.change({before_s, job}, offers_[job].length_s(1));
  }

  std::vector<std::size_t> share(std::uint32_t gpus) override {
    std::vector<std::size_t> given;
    for (const JobOrder::Entry& entry : by_length_.entries()) {
      if (gpus == 0) break;
      --gpus;
      offers_[entry.job].gpus = 1;
      given.push_back(entry.job);
    }
    if (gpus > 0) share_by_gain(given, gpus);
    return given;
  }

 private:
  /// Equal ones by arrival.
  struct Gain {
    double gain_s = 0;
    std::size_t job = 0;
    bool operator<(const Gain& other) const {
      return gain_s < other.gain_s || (gain_s == other.gain_s && job > other.job);
    }
  };
  void share_by_gain(const std::vector<std::size_t>& jobs, std::uint32_t gpus) {
    std::priority_queue<Gain> gains;
    const auto push = [&](std::size_t j) {
      const Offer& offer = offers_[j];
      if (!offer.full()) gains.push({offer.length_s(offer.gpus) - offer.length_s(offer.gpus + 1), j});
    };
    for (const std::size_t j : jobs) push(j);
    for (; gpus > 0 && !gains.empty(); --gpus) {
      const std::size_t j = gains.top().job;
      gains.pop();
      ++offers_[j].gpus;
      push(j);
    }
  }

  JobOrder by_length_;
};

class OptimusLike : public Policy {
 public:
  std::string name() const override { return "optimus-like"; }
  std::unique_ptr<Sharing> start(const ArrivedJobs& jobs, const std::vector<GpuPool>& pools) const override {
    return std::make_unique<OptimusSharing>(jobs, pools[0].gpus);
  }
};

}  // namespace

std::unique_ptr<Policy> afs_l() { return std::make_unique<Afs>("afs-l", true); }
std::unique_ptr<Policy> afs_p_like() { return std::make_unique<Afs>("afs-p-like", false); }
std::unique_ptr<Policy> optimus_like() { return std::make_unique<OptimusLike>(); }

}  // namespace convoy::schedule

// SPDX-License-Identifier: MIT
#include "sim/schedule/policies.h"

namespace convoy::inline schedule {

std::vector<Allocation> Policy::allocate(const std::vector<ActiveJob>& jobs,
                                         const std::vector<GpuPool>& pools, double now_s) const {
  const ArrivedJobs arrived(jobs);
  const std::unique_ptr<Sharing> sharing = start(arrived, pools);
  for (const std::size_t j : arrived.present) sharing->arrive(j);
  std::vector<Allocation> given(jobs.size());
  for (const Grant& grant : sharing->decide(now_s)) given[grant.job] = grant.gpus;
  return given;
}

class DecidesAnew::Deciding : public Sharing {
 public:
  Deciding(const DecidesAnew& policy, const ArrivedJobs& jobs, const std::vector<GpuPool>& pools)
      : Sharing(jobs), policy_(policy), pools_(pools) {}
  void arrive(std::size_t /*job*/) override {}
  void end(std::size_t /*job*/) override {}
  std::vector<Grant> decide(double now_s) override {
    const std::vector<Allocation> given = policy_.decide(jobs_.list_present(), pools_, now_s);
    std::vector<Grant> grants;
    for (std::size_t i = 0; i < given.size(); ++i)
      if (given[i].gpus > 0) grants.push_back({jobs_.present[i], given[i]});
    return grants;
  }

 private:
  const DecidesAnew& policy_;
  std::vector<GpuPool> pools_;
};

std::unique_ptr<Sharing> DecidesAnew::start(const ArrivedJobs& jobs,
                                            const std::vector<GpuPool>& pools) const {
  return std::make_unique<Deciding>(*this, jobs, pools);
}

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{
      "afs-l",       "afs-p-like", "optimus-like",     "tiresias-l",  "srtf",
      "themis-like", "edf",        "elasticflow-like", "pollux-like", "sia-like"};
  return names;
}

std::unique_ptr<Policy> make_policy(const std::string& name) {
  for (auto make : {&afs_l, &afs_p_like, &optimus_like, &tiresias_l, &srtf, &themis_like, &edf,
                    &elasticflow_like, &pollux_like, &sia_like})
    if (std::unique_ptr<Policy> policy = make(); policy->name() == name) return policy;
  return nullptr;
}

}  // namespace convoy::schedule

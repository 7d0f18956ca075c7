// SPDX-License-Identifier: MIT
#include "sim/replay/side_by_side.h"

#include <algorithm>
#include <cstdint>

#include "sim/plan/repetition.h"
#include "sim/plan/validate.h"
#include "sim/replay/fidelity.h"
#include "sim/replay/flows.h"
#include "sim/replay/fold.h"
#include "sim/replay/side_by_side_run.h"

namespace convoy::inline replays {
namespace {

constexpr std::uint64_t warm_up_steps = 16;

/// The plans of several jobs as one, on the machine.
struct JointPlan {
  Plan plan;
  std::vector<JobInPlan> jobs;
  std::vector<std::uint32_t> owner;     ///< by pattern: the job
  std::vector<const CostModel*> costs;  ///< by role
};

std::vector<EndpointId> moved(const std::vector<EndpointId>& members, const JobBeside& job) {
  std::vector<EndpointId> result;
  for (const EndpointId member : members) result.push_back(job.endpoints[member]);
  return result;
}

void add_job(const JobBeside& job, JointPlan& joint) {
  Plan& plan = joint.plan;
  const Plan own = with_all_listed(job.plan);
  const auto first_pattern = static_cast<std::uint32_t>(plan.patterns.size());
  JobInPlan& in_plan = joint.jobs.emplace_back();
  in_plan.first_comm = static_cast<CommId>(plan.communications.size());
  for (Pattern pattern : own.patterns) {
    for (std::vector<EndpointId>& group : pattern.groups) group = moved(group, job);
    plan.patterns.push_back(std::move(pattern));
    joint.owner.push_back(static_cast<std::uint32_t>(joint.jobs.size()) - 1);
  }
  for (Communication comm : own.communications) {
    comm.pattern += first_pattern;
    comm.meaning = no_meaning;
    // Message by message, collectives of a hundred steps take minutes, and links are shared alike.
    if (comm.fidelity == Fidelity::automatic) comm.fidelity = Fidelity::fluid;
    plan.communications.push_back(std::move(comm));
  }
  for (Role role : own.roles) {
    role.members = moved(role.members, job);
    if (in_plan.first_comm > 0)
      for (Task& task : role.program.edit()) task.comm += in_plan.first_comm;
    plan.roles.push_back(std::move(role));
    joint.costs.push_back(&job.cost);
  }
  in_plan.past_last_role = static_cast<std::uint32_t>(plan.roles.size());
  in_plan.past_last_comm = static_cast<CommId>(plan.communications.size());
  plan.images += own.images;
  if (own.input)
    for (const double interval_s : own.input->interval_s)
      in_plan.input.emplace_back(own.steps * interval_s, own.input->prefetch);
}

JointPlan joint_plan(const std::vector<JobBeside>& jobs, const Machine& machine) {
  JointPlan joint;
  for (const JobBeside& job : jobs) add_job(job, joint);
  validate(joint.plan, machine);
  return joint;
}

/// The jobs together, or one of them alone, on flows that are expanded once.
class SideBySide {
 public:
  SideBySide(const std::vector<JobBeside>& jobs, const Machine& machine)
      : machine_(machine),
        joint_(joint_plan(jobs, machine)),
        table_(expand_flows(joint_.plan, machine, Listing::always, joint_.owner)),
        one_by_one_(ranks_go_one_by_one(joint_.plan, machine, table_)),
        folding_(fold(joint_.plan, machine, table_, one_by_one_, true)) {}

  JobInPlan& job(std::size_t number) { return joint_.jobs[number]; }

  std::vector<std::vector<double>> ends_s(std::uint64_t least_steps) {
    return SideBySideRun(
               {joint_.plan, machine_, *joint_.costs.front(), table_, one_by_one_, folding_, joint_.costs},
               {}, joint_.jobs, least_steps)
        .run();
  }

 private:
  const Machine& machine_;
  JointPlan joint_;
  FlowTable table_;
  std::vector<bool> one_by_one_;
  Folding folding_;
};

/// Of the steps after the warm-up.
double mean_step_s(const std::vector<double>& ends_s) {
  return (ends_s.back() - ends_s[warm_up_steps - 1]) / static_cast<double>(ends_s.size() - warm_up_steps);
}

std::uint64_t measured_steps(const std::vector<double>& step_s) {
  constexpr double least = 16, wanted = 128, most_of_fastest = 4096;
  const auto [fastest, slowest] = std::minmax_element(step_s.begin(), step_s.end());
  return static_cast<std::uint64_t>(std::clamp(most_of_fastest * *fastest / *slowest, least, wanted));
}

}  // namespace

std::string refuses_neighbours(const Plan& plan, const Machine& machine) {
  if (plan.service()) return "its devices have no common step";
  if (plan.endless()) return "its steps overlap";
  for (const Role& role : plan.roles)
    for (const EndpointId member : role.members)
      if (member >= machine.devices.size()) return "its hosts compute, and jobs may share hosts";
  const auto works = [](const Role& role) { return !role.program.empty(); };
  if (std::none_of(plan.roles.begin(), plan.roles.end(), works)) return "it computes nothing";
  return {};
}

std::vector<LinkId> links_of(const JobBeside& job, const Machine& machine) {
  const FlowTable table = expand_flows(joint_plan({job}, machine).plan, machine, Listing::always);
  std::vector<LinkId> links;
  for (const LinkId link : table.links)
    if (link < machine.links.size()) links.push_back(link);
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

std::vector<double> slowdowns_beside(const std::vector<JobBeside>& jobs, const Machine& machine) {
  std::vector<SideBySide> alone;
  std::vector<double> step_s;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    SideBySide& one = alone.emplace_back(std::vector{jobs[j]}, machine);
    one.job(0).sequence = j;
    step_s.push_back(one.ends_s(1)[0].front());
  }
  SideBySide together(jobs, machine);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    together.job(j).sequence = j;
    together.job(j).start_s = step_s[j] * static_cast<double>(j) / static_cast<double>(jobs.size());
  }
  const std::vector<std::vector<double>> ends_s = together.ends_s(warm_up_steps + measured_steps(step_s));
  std::vector<double> result;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    alone[j].job(0).most_steps = ends_s[j].size();
    result.push_back(mean_step_s(ends_s[j]) / mean_step_s(alone[j].ends_s(ends_s[j].size())[0]));
  }
  return result;
}

}  // namespace convoy::replays

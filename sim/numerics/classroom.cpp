// SPDX-License-Identifier: MIT
#include "sim/numerics/classroom.h"

#include <algorithm>
#include <utility>

namespace convoy::inline numerics {

template <class Real>
Classroom<Real>::Classroom(const Lesson& lesson, const Plan& plan, const Machine& machine)
    : lesson_(lesson),
      plan_(plan),
      members_(machine.endpoint_count()),
      role_of_(machine.endpoint_count(), 0),
      keepers_(plan.meaning->buckets.size()),
      owners_(lesson.graph.model.layers.size()) {
  for (const Pattern& pattern : plan.patterns) ends_.emplace_back(pattern, machine.endpoint_count());
  const ParameterValues<Real> first = first_parameters<Real>(lesson.graph, lesson.seed);
  for (std::uint32_t r = 0; r < plan.roles.size(); ++r)
    for (const EndpointId e : plan.roles[r].members) {
      role_of_[e] = r;
      members_[e] = std::make_unique<Member<Real>>(lesson, *plan.meaning, machine.endpoint_name(e), e, first);
      if (e < machine.devices.size()) devices_.push_back(e);
    }
  std::sort(devices_.begin(), devices_.end());
  for (const EndpointId e : devices_) {
    std::vector<bool> has(owners_.size(), false);
    for (const Task& task : plan.roles[role_of_[e]].program)
      for (const PlanOp& op : task.ops)
        if (op.meaning != no_meaning)
          if (const OpMeaning& means = plan.meaning->operations[op.meaning]; means.operation != no_meaning)
            has[lesson.graph.operations[means.operation].layer] = true;
    for (std::size_t l = 0; l < has.size(); ++l)
      if (has[l]) owners_[l].push_back(e);
  }
  share_out(*plan.meaning);
}

template <class Real>
void Classroom<Real>::share_out(const Meaning& meaning) {
  for (const Communication& comm : plan_.communications) {
    if (comm.meaning == no_meaning) continue;
    const CommMeaning& means = meaning.communications[comm.meaning];
    if (means.bucket == no_meaning || !keepers_[means.bucket].empty()) continue;
    if (means.kind == CommMeaning::Kind::push)
      share_on_servers(means.bucket, ends_[comm.pattern]);
    else if (const int zero = meaning.buckets[means.bucket].zero; zero > 0)
      share_in_group(means.bucket, plan_.patterns[comm.pattern], zero == 3);
  }
  for (const Communication& comm : plan_.communications)
    if (comm.meaning != no_meaning) join_nodes(meaning, meaning.communications[comm.meaning], comm.pattern);
}

/// Where gradients are added up in nodes before they go to servers.
template <class Real>
void Classroom<Real>::join_nodes(const Meaning& meaning, const CommMeaning& means, std::uint32_t pattern) {
  using InNode = typename Member<Real>::InNode;
  if (means.kind == CommMeaning::Kind::collect)
    for (const EndpointId e : ends_[pattern].receivers) {
      at(e).join_node(means.bucket,
                      std::binary_search(devices_.begin(), devices_.end(), e) ? InNode::owner : InNode::host,
                      {});
      for (const EndpointId sender : ends_[pattern].senders[e])
        at(sender).join_node(means.bucket, InNode::none, {});
    }
  if (means.kind == CommMeaning::Kind::scatter && meaning.buckets[means.bucket].zero == 0)
    for (const std::vector<EndpointId>& group : plan_.patterns[pattern].groups)
      for (std::size_t rank = 0; rank < group.size(); ++rank) {
        Member<Real>& member = at(group[rank]);
        member.join_node(means.bucket, InNode::ring,
                         part_of(member.elements(means.bucket), rank, group.size()));
      }
}

template <class Real>
void Classroom<Real>::share_in_group(std::uint32_t bucket, const Pattern& pattern, bool forgets) {
  for (const std::vector<EndpointId>& group : pattern.groups)
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      Member<Real>& member = at(group[rank]);
      member.share(bucket, part_of(member.elements(bucket), rank, group.size()), forgets && group.size() > 1);
    }
  keepers_[bucket] = pattern.groups.front();
}

template <class Real>
void Classroom<Real>::share_on_servers(std::uint32_t bucket, const PatternEnds& push) {
  for (std::size_t s = 0; s < push.receivers.size(); ++s) {
    Member<Real>& server = at(push.receivers[s]);
    server.share(bucket, part_of(server.elements(bucket), s, push.receivers.size()), false);
    for (const EndpointId worker : push.senders[push.receivers[s]]) at(worker).share(bucket, {}, false);
  }
  keepers_[bucket] = push.receivers;
}

template <class Real>
ParameterValues<Real> Classroom<Real>::parameters() const {
  ParameterValues<Real> all;
  for (const Parameter& parameter : lesson_.graph.parameters)
    all.push_back(plan_.meaning->own_images.empty()
                      ? members_[owners_[parameter.layer].front()]->all_parameters()[all.size()]
                      : mean_of(owners_[parameter.layer], all.size()));
  for (std::uint32_t bucket = 0; bucket < keepers_.size(); ++bucket)
    for (const EndpointId e : keepers_[bucket]) {
      const std::vector<Real> own = members_[e]->parameters(bucket);
      const BucketRange range = members_[e]->range(bucket);
      std::size_t place = 0;
      for (const std::size_t p : plan_.meaning->buckets[bucket].parameters)
        for (Real& value : all[p]) {
          if (place >= range.begin && place < range.end) value = own[place];
          ++place;
        }
    }
  return all;
}

template <class Real>
std::vector<Real> Classroom<Real>::mean_of(const std::vector<EndpointId>& owners,
                                           std::size_t parameter) const {
  std::vector<Real> mean(members_[owners.front()]->all_parameters()[parameter].size(), Real{0});
  for (const EndpointId e : owners)
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] += members_[e]->all_parameters()[parameter][i] / static_cast<Real>(owners.size());
  return mean;
}

template <class Real>
std::vector<RunningStatistics<Real>> Classroom<Real>::running() const {
  std::vector<RunningStatistics<Real>> all;
  for (std::size_t l = 0; l < owners_.size(); ++l)
    all.push_back(owners_[l].empty() ? RunningStatistics<Real>{}
                                     : members_[owners_[l].front()]->results().running()[l]);
  return all;
}

template class Classroom<double>;
template class Classroom<float>;

}  // namespace convoy::numerics

// SPDX-License-Identifier: MIT
#include "sim/numerics/classroom.h"

#include <algorithm>
#include <cmath>
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
  if (!plan.meaning->positions.empty()) begin_parts();
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

/// Of devices that have the same parts of layers, each has an equal share of what they have of a bucket.
template <class Real>
BucketRange Classroom<Real>::share_of(std::uint32_t bucket, const std::vector<EndpointId>& group,
                                      std::size_t rank) const {
  const Member<Real>& member = *members_[group[rank]];
  if (!parts_) return part_of(member.elements(bucket), rank, group.size());
  std::vector<std::size_t> own;  // places in the bucket
  std::size_t end = 0;
  for (const std::size_t p : plan_.meaning->buckets[bucket].parameters) {
    const std::optional<Box> part = updated_part(group[rank], lesson_.graph.parameters[p].layer);
    for (std::size_t i = 0; i < member.all_parameters()[p].size(); ++i, ++end)
      if (part && parts_->has_element(p, i, *part)) own.push_back(end);
  }
  const BucketRange share = part_of(own.size(), rank, group.size());
  const auto border = [&](std::size_t n) { return n == 0 ? 0 : n < own.size() ? own[n] : end; };
  return {border(share.begin), border(share.end)};
}

template <class Real>
std::optional<Box> Classroom<Real>::updated_part(EndpointId device, std::uint32_t layer) const {
  const auto update = updates_.find({device, layer});
  if (update == updates_.end()) return std::nullopt;
  return parts_->in_layout(update->second, device, parts_->maps.work(layer));
}

template <class Real>
void Classroom<Real>::share_in_group(std::uint32_t bucket, const Pattern& pattern, bool forgets) {
  for (const std::vector<EndpointId>& group : pattern.groups)
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      Member<Real>& member = at(group[rank]);
      member.share(bucket, share_of(bucket, group, rank), forgets && group.size() > 1);
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
  if (parts_) return joined_parameters();
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
  if (parts_) return joined_running();
  std::vector<RunningStatistics<Real>> all;
  for (std::size_t l = 0; l < owners_.size(); ++l)
    all.push_back(owners_[l].empty() ? RunningStatistics<Real>{}
                                     : members_[owners_[l].front()]->running()[l]);
  return all;
}

template <class Real>
void Classroom<Real>::begin_parts() {
  double images = 0;
  for (const EndpointId e : devices_)
    for (const Task& task : plan_.roles[role_of_[e]].program)
      for (const PlanOp& op : task.ops) {
        if (op.meaning == no_meaning) continue;
        const OpMeaning& means = plan_.meaning->operations[op.meaning];
        if (means.act != OpMeaning::Act::compute || means.operation == no_meaning) continue;
        const Operation& operation = lesson_.graph.operations[means.operation];
        if (operation.phase == Phase::update) {
          updates_[{e, operation.layer}] = means.layout;
          continue;
        }
        images = means.images.count;
        if (operation.phase == Phase::forward && operation.part == OperationPart::layer)
          forward_[{e, operation.layer}] = means.layout;
      }
  parts_.emplace(lesson_, *plan_.meaning, std::llround(images));
  for (const EndpointId e : devices_) at(e).work_on_parts(*parts_);
  for (const auto& [of, layout] : updates_)
    at(of.first).parts().keep_parameters(
        of.second,
        parts_->parameter_part(of.second, parts_->in_layout(layout, of.first, parts_->maps.work(of.second))));
}

/// Where states are shared out in a group, each element is that of whom has it alone.
template <class Real>
ParameterValues<Real> Classroom<Real>::joined_parameters() const {
  ParameterValues<Real> all = members_[devices_.front()]->all_parameters();
  for (const EndpointId e : devices_) {
    const Member<Real>& member = *members_[e];
    for (std::size_t p = 0; p < all.size(); ++p) {
      const std::optional<Box> part = updated_part(e, lesson_.graph.parameters[p].layer);
      if (!part) continue;
      const std::optional<BucketRange> range = member.own_range(p);
      for (std::size_t i = 0; i < all[p].size(); ++i) {
        if (range && (i < range->begin || i >= range->end)) continue;
        if (parts_->has_element(p, i, *part)) all[p][i] = member.all_parameters()[p][i];
      }
    }
  }
  return all;
}

/// Of each channel, those of the first device that has it.
template <class Real>
std::vector<RunningStatistics<Real>> Classroom<Real>::joined_running() const {
  std::vector<RunningStatistics<Real>> all(owners_.size());
  for (auto e = devices_.rbegin(); e != devices_.rend(); ++e)
    for (std::uint32_t l = 0; l < owners_.size(); ++l) {
      const auto forward = forward_.find({*e, l});
      const RunningStatistics<Real>& own = members_[*e]->running()[l];
      if (forward == forward_.end() || own.mean.empty()) continue;
      if (all[l].mean.empty()) all[l] = own;
      const Box part = parts_->in_layout(forward->second, *e, parts_->maps.work(l));
      for (std::size_t c = 0; c < own.mean.size(); ++c) {
        if (!contains(part[Box::channels], static_cast<std::int64_t>(c))) continue;
        all[l].mean[c] = own.mean[c], all[l].variance[c] = own.variance[c];
      }
    }
  return all;
}

template class Classroom<double>;
template class Classroom<float>;

}  // namespace convoy::numerics

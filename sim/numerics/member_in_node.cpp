// SPDX-License-Identifier: MIT
// What members do where gradients are added up in nodes before they go to servers.
#include <fmt/format.h>

#include <algorithm>

#include "sim/numerics/member.h"

namespace convoy::inline numerics {

template <class Real>
void Member<Real>::join_node(std::uint32_t bucket, InNode how, BucketRange part) {
  OfBucket& of = buckets_[bucket];
  of.in_node = how, of.part = part;
  for (const std::size_t p : meaning_.buckets[bucket].parameters) bucket_of_[p] = bucket;
}

template <class Real>
BucketRange Member<Real>::part(std::uint32_t bucket) const {
  const OfBucket& of = buckets_.at(bucket);
  return of.in_node == InNode::ring ? of.part : of.range;
}

template <class Real>
void Member<Real>::add_of_node(std::uint32_t bucket, const std::vector<Real>& values, std::uint64_t now) {
  OfBucket& of = buckets_.at(bucket);
  if (of.in_node == InNode::none) miss(fmt::format("gets gradients of {} to add up", name_of(bucket)));
  const BucketRange range = of.in_node == InNode::ring ? of.part : BucketRange{0, values.size()};
  of.node_sums.resize(values.size(), Real{0});
  for (std::size_t e = range.begin; e < range.end; ++e) of.node_sums[e] += values[e];
  of.node_sums_at = now;
}

template <class Real>
void Member<Real>::need_sums_of_node(std::uint32_t bucket, std::uint64_t began) const {
  const OfBucket& of = buckets_.at(bucket);
  if (of.node_sums.empty())
    miss(fmt::format("the gradients of {} of its node have not come", name_of(bucket)));
  if (of.node_sums_at > began)
    miss(fmt::format("does not wait for the gradients of {} of its node", name_of(bucket)));
}

template <class Real>
std::vector<Real> Member<Real>::pushed_gradients(std::uint32_t bucket, std::uint64_t now) {
  OfBucket& of = buckets_.at(bucket);
  std::vector<Real> pushed;
  if (of.in_node == InNode::none || of.in_node == InNode::owner) pushed = sent_gradients(bucket, true);
  if (of.in_node != InNode::none) {
    need_sums_of_node(bucket, now);
    pushed.resize(of.node_sums.size(), Real{0});
    for (std::size_t e = 0; e < pushed.size(); ++e) pushed[e] += of.node_sums[e];
  }
  of.is_whole = false;
  return pushed;
}

template <class Real>
void Member<Real>::update_for_node(std::uint32_t bucket, double learning_rate, std::uint64_t now) {
  add_to_range(bucket, sent_gradients(bucket, true), buckets_.at(bucket).came_at);
  serve(bucket, 1, learning_rate, now);
}

template <class Real>
std::vector<Real> Member<Real>::whole_parameters(std::uint32_t bucket) const {
  if (!buckets_.at(bucket).is_whole) miss(fmt::format("hands out {} before it has come", name_of(bucket)));
  return parameters(bucket);
}

// One by one: the class is instantiated in member.cpp.
template void Member<double>::join_node(std::uint32_t, InNode, BucketRange);
template BucketRange Member<double>::part(std::uint32_t) const;
template void Member<double>::add_of_node(std::uint32_t, const std::vector<double>&, std::uint64_t);
template void Member<double>::need_sums_of_node(std::uint32_t, std::uint64_t) const;
template std::vector<double> Member<double>::pushed_gradients(std::uint32_t, std::uint64_t);
template void Member<double>::update_for_node(std::uint32_t, double, std::uint64_t);
template std::vector<double> Member<double>::whole_parameters(std::uint32_t) const;
template void Member<float>::join_node(std::uint32_t, InNode, BucketRange);
template BucketRange Member<float>::part(std::uint32_t) const;
template void Member<float>::add_of_node(std::uint32_t, const std::vector<float>&, std::uint64_t);
template void Member<float>::need_sums_of_node(std::uint32_t, std::uint64_t) const;
template std::vector<float> Member<float>::pushed_gradients(std::uint32_t, std::uint64_t);
template void Member<float>::update_for_node(std::uint32_t, double, std::uint64_t);
template std::vector<float> Member<float>::whole_parameters(std::uint32_t) const;

}  // namespace convoy::numerics

// SPDX-License-Identifier: MIT
// What members send of their gradients, and make of the sums and averages that come.
#include <fmt/format.h>

#include <utility>

#include "sim/numerics/member.h"

namespace convoy::inline numerics {

template <class Real>
void Member<Real>::compress(std::uint32_t bucket) {
  OfBucket& of = buckets_[bucket];
  if (!of.code) of.code.emplace(lesson_.graph, meaning_.buckets[bucket], lesson_.seed, id_);
  of.compressed = of.code->sent(of.copy.empty() ? own_gradients(bucket) : of.copy);
}

template <class Real>
void Member<Real>::make_factors(std::uint32_t bucket, std::uint64_t began) {
  OfBucket& of = buckets_[bucket];
  if (of.came.empty()) miss(fmt::format("the sum of first factors of {} has not come", name_of(bucket)));
  if (of.came_at > began) miss(fmt::format("does not wait for the first factors of {}", name_of(bucket)));
  of.factors = of.code->second_factors(of.came);
}

template <class Real>
void Member<Real>::decompress(std::uint32_t bucket, std::uint64_t began) {
  OfBucket& of = buckets_[bucket];
  if (of.came.empty()) miss(fmt::format("decompresses the sum of {}, which has not come", name_of(bucket)));
  if (of.came_at > began || of.factors_came_at > began)
    miss(fmt::format("does not wait for the sum of {}", name_of(bucket)));
  if (!of.factors.empty() && of.factors_came.empty())
    miss(fmt::format("the sum of second factors of {} has not come", name_of(bucket)));
  of.came = of.code->decoded(std::move(of.came), of.factors_came, static_cast<double>(of.members));
  if (of.copy.empty())
    split(bucket, of.came, {0, of.came.size()}, gradients_);
  else
    of.copy = of.came;
}

template <class Real>
void Member<Real>::take_average(std::uint32_t bucket, std::vector<Real> sum, std::size_t members,
                                bool adds_own, std::uint64_t now) {
  OfBucket& of = buckets_[bucket];
  of.came = std::move(sum);
  of.members = members;
  of.adds_own = adds_own;
  of.came_at = now;
}

template <class Real>
void Member<Real>::make_mean(std::uint32_t bucket, std::uint64_t began) {
  OfBucket& of = buckets_[bucket];
  if (of.came.empty()) miss(fmt::format("averages {}, of which nothing has come", name_of(bucket)));
  if (of.came_at > began) miss(fmt::format("does not wait for {} to be averaged", name_of(bucket)));
  std::vector<Real> own = joined(bucket, parameters_);
  const auto count = static_cast<Real>(of.members + (of.adds_own ? 1 : 0));
  for (std::size_t e = 0; e < own.size(); ++e)
    own[e] = (of.came[e] + (of.adds_own ? own[e] : Real{0})) / count;
  split(bucket, own, {0, own.size()}, parameters_);
  of.came.clear();
}

/// u = b u + (x - average), x = x - u (Averaging).
template <class Real>
void Member<Real>::move_slowly(std::uint32_t bucket) {
  OfBucket& of = buckets_[bucket];
  const std::vector<Real> mean = joined(bucket, parameters_);
  if (of.before.empty())
    of.before = joined(
        bucket, trained_before_ ? *trained_before_ : first_parameters<Real>(lesson_.graph, lesson_.seed));
  of.slow.resize(mean.size(), Real{0});
  const auto momentum = static_cast<Real>(meaning_.buckets[bucket].slow_momentum);
  for (std::size_t e = 0; e < mean.size(); ++e) {
    of.slow[e] = momentum * of.slow[e] + (of.before[e] - mean[e]);
    of.before[e] -= of.slow[e];
  }
  split(bucket, of.before, {0, mean.size()}, parameters_);
}

template <class Real>
void Member<Real>::put_back(std::uint32_t bucket, std::uint64_t began) {
  const OfBucket& of = buckets_[bucket];
  if (of.copy.empty()) miss(fmt::format("copies back gradients of {} that are not there", name_of(bucket)));
  if (of.came_at > began) miss(fmt::format("does not wait for the sum of {}", name_of(bucket)));
  split(bucket, of.copy, {0, of.copy.size()}, gradients_);
}

template <class Real>
std::vector<Real> Member<Real>::sent_gradients(std::uint32_t bucket, bool takes) {
  OfBucket& of = buckets_[bucket];
  std::vector<Real> sent = !of.compressed.empty() ? of.compressed
                           : !of.copy.empty()     ? of.copy
                                                  : own_gradients(bucket);
  if (takes)
    for (const std::size_t p : meaning_.buckets[bucket].parameters) gradients_[p].clear();
  return sent;
}

template <class Real>
const std::vector<Real>& Member<Real>::sent_factors(std::uint32_t bucket) {
  const OfBucket& of = buckets_[bucket];
  if (of.factors.empty()) miss(fmt::format("has no second factors of {} to send", name_of(bucket)));
  return of.factors;
}

template <class Real>
void Member<Real>::take_factors(std::uint32_t bucket, std::vector<Real> sum, std::uint64_t now) {
  OfBucket& of = buckets_[bucket];
  of.factors_came = std::move(sum);
  of.factors_came_at = now;
}

template <class Real>
void Member<Real>::take_sum(std::uint32_t bucket, std::vector<Real> sum, std::size_t members,
                            std::uint64_t now) {
  OfBucket& of = buckets_[bucket];
  of.came_at = now;
  of.members = members;
  if (!of.compressed.empty())
    of.came = std::move(sum);
  else if (!of.copy.empty())
    of.copy = std::move(sum);
  else
    split(bucket, sum, {0, sum.size()}, gradients_);
}

template void Member<double>::compress(std::uint32_t);
template void Member<double>::make_factors(std::uint32_t, std::uint64_t);
template void Member<double>::decompress(std::uint32_t, std::uint64_t);
template void Member<double>::take_average(std::uint32_t, std::vector<double>, std::size_t, bool,
                                           std::uint64_t);
template void Member<double>::make_mean(std::uint32_t, std::uint64_t);
template void Member<double>::move_slowly(std::uint32_t);
template void Member<double>::put_back(std::uint32_t, std::uint64_t);
template std::vector<double> Member<double>::sent_gradients(std::uint32_t, bool);
template const std::vector<double>& Member<double>::sent_factors(std::uint32_t);
template void Member<double>::take_factors(std::uint32_t, std::vector<double>, std::uint64_t);
template void Member<double>::take_sum(std::uint32_t, std::vector<double>, std::size_t, std::uint64_t);
template void Member<float>::compress(std::uint32_t);
template void Member<float>::make_factors(std::uint32_t, std::uint64_t);
template void Member<float>::decompress(std::uint32_t, std::uint64_t);
template void Member<float>::take_average(std::uint32_t, std::vector<float>, std::size_t, bool,
                                          std::uint64_t);
template void Member<float>::make_mean(std::uint32_t, std::uint64_t);
template void Member<float>::move_slowly(std::uint32_t);
template void Member<float>::put_back(std::uint32_t, std::uint64_t);
template std::vector<float> Member<float>::sent_gradients(std::uint32_t, bool);
template const std::vector<float>& Member<float>::sent_factors(std::uint32_t);
template void Member<float>::take_factors(std::uint32_t, std::vector<float>, std::uint64_t);
template void Member<float>::take_sum(std::uint32_t, std::vector<float>, std::size_t, std::uint64_t);

}  // namespace convoy::numerics

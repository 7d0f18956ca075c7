// SPDX-License-Identifier: MIT
#include "sim/numerics/member.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace convoy::inline numerics {
BucketRange part_of(std::size_t elements, std::size_t number, std::size_t parts) {
  return {elements * number / parts, elements * (number + 1) / parts};
}

namespace {

template <class Real>
void add_to(std::vector<Real>& sum, const std::vector<Real>& values) {
  sum.resize(std::max(sum.size(), values.size()), Real{0});
  for (std::size_t e = 0; e < values.size(); ++e) sum[e] += values[e];
}

}  // namespace

template <class Real>
Member<Real>::Member(const Lesson& lesson, const Meaning& meaning, std::string name, EndpointId id,
                     const ParameterValues<Real>& parameters)
    : lesson_(lesson),
      meaning_(meaning),
      name_(std::move(name)),
      id_(id),
      values_(lesson, name_),
      parameters_(parameters),
      gradients_(parameters.size()),
      bucket_of_(parameters.size()) {
  for (const std::vector<Real>& parameter : parameters)
    states_.emplace_back(lesson.graph.options.optimizer, parameter.size());
}

template <class Real>
void Member<Real>::work_on_parts(const PartLesson& lesson) {
  parts_ = std::make_unique<PartValues<Real>>(lesson, name_, id_);
}

template <class Real>
void Member<Real>::go_on_with(ParameterValues<Real> parameters, std::vector<OptimizerState<Real>> states,
                              const std::vector<RunningStatistics<Real>>& running) {
  parameters_ = std::move(parameters);
  trained_before_ = parameters_;
  states_ = std::move(states);
  parts_ ? parts_->set_running(running) : values_.set_running(running);
}

template <class Real>
typename Member<Real>::CarriedPart Member<Real>::send_part(const CommMeaning::Result& result,
                                                           const CommMeaning& means, std::int64_t first,
                                                           std::uint64_t now) {
  CarriedPart carried;
  const bool of_images = result.operation == no_meaning;
  const Phase phase = of_images ? Phase::forward : lesson_.graph.operations[result.operation].phase;
  if (phase == Phase::forward || phase == Phase::data_gradient) {
    carried.result = parts_->send(result, means, first, now);
    return carried;
  }
  for (const std::size_t p : lesson_.index.parameters_of(result.layer)) {
    if (phase == Phase::update) {
      carried.values.push_back(parameters_[p]);
      continue;
    }
    const auto made = made_gradients_.find({means.micro_batch, p});
    if (made == made_gradients_.end())
      miss(fmt::format("the gradient of {} is not there", lesson_.graph.parameters[p].name));
    carried.values.push_back(made->second);
  }
  return carried;
}

template <class Real>
void Member<Real>::take_part(const CommMeaning::Result& result, const CommMeaning& means,
                             const std::vector<const CarriedPart*>& sent, bool in_group, std::uint64_t now) {
  const bool of_images = result.operation == no_meaning;
  const Phase phase = of_images ? Phase::forward : lesson_.graph.operations[result.operation].phase;
  if (phase == Phase::forward || phase == Phase::data_gradient) {
    std::vector<const typename PartValues<Real>::Carried*> results;
    for (const CarriedPart* each : sent) results.push_back(&each->result);
    parts_->receive(result, means, results, in_group, now);
    return;
  }
  const PartLesson& parts = parts_->lesson();
  const Box part = parts.in_layout(result.to, id_, parts.maps.work(result.layer));
  const std::vector<std::size_t>& of_layer = lesson_.index.parameters_of(result.layer);
  for (const CarriedPart* each : sent)
    for (std::size_t n = 0; n < of_layer.size(); ++n) {
      const std::size_t p = of_layer[n];
      std::vector<Real> own = each->values[n];  // of the member's part
      for (std::size_t e = 0; e < own.size(); ++e) {
        const bool is_own = parts.has_element(p, e, part);
        if (is_own && phase == Phase::update) parameters_[p][e] = own[e];
        if (!is_own) own[e] = 0;
      }
      if (phase != Phase::weight_gradient) continue;
      if (!parts.adds_gradients) {
        add_to(gradients_[p], own);
        continue;
      }
      ComeGradient& come = come_gradients_[{means.micro_batch, p}];
      add_to(come.values, own);
      come.since = now;
    }
  if (phase == Phase::update)
    parts_->take_parameters(result.layer, parts.parameter_part(result.layer, part), now);
}

/// Makes a micro-batch's gradient of a layer's parameters, which is kept where it is to be sent.
template <class Real>
void Member<Real>::make_gradient(const OpMeaning& means, std::int64_t first, std::uint64_t began,
                                 std::uint32_t layer) {
  if (!parts_->lesson().sends_gradients_of.contains(layer)) {
    parts_->run(means, first, began, version_of(means.micro_batch), gradients_);
    return;
  }
  ParameterValues<Real> made(gradients_.size());
  parts_->run(means, first, began, version_of(means.micro_batch), made);
  for (const std::size_t p : lesson_.index.parameters_of(layer)) {
    add_to(made_gradients_[{means.micro_batch, p}], made[p]);
    add_to(gradients_[p], made[p]);
  }
}

/// Adds the gradient of a layer's parameters that has come of a micro-batch to those that are there.
template <class Real>
void Member<Real>::take_in_gradient(const OpMeaning& means, std::uint64_t began) {
  for (const std::size_t p : lesson_.index.parameters_of(means.layer)) {
    const auto come = come_gradients_.find({means.micro_batch, p});
    if (come == come_gradients_.end() || come->second.since > began)
      miss(fmt::format("does not wait for the gradient of {}", lesson_.graph.parameters[p].name));
    add_to(gradients_[p], come->second.values);
    come_gradients_.erase(come);
  }
}

template <class Real>
void Member<Real>::share(std::uint32_t bucket, BucketRange range, bool forgets) {
  OfBucket& of = buckets_[bucket];
  of.range = range, of.forgets = forgets;
  for (const std::size_t p : meaning_.buckets[bucket].parameters) bucket_of_[p] = bucket;
}

template <class Real>
void Member<Real>::begin_step(std::int64_t step, std::int64_t position, double loss_scale) {
  values_.begin_step(step, position, loss_scale);
  if (parts_) parts_->begin_step(step, position, loss_scale);
  for (std::vector<Real>& gradient : gradients_) gradient.clear();
  made_gradients_.clear(), come_gradients_.clear();
  for (auto& [id, of] : buckets_) {
    of.copy.clear(), of.compressed.clear(), of.came.clear(), of.sums.clear();
    of.factors.clear(), of.factors_came.clear(), of.node_sums.clear();
    of.is_summed = false;
    of.updated = 0;
    of.whole_at = of.came_at = of.factors_came_at = of.node_sums_at = 0;
    of.gathered_at.clear();
    of.gone = 0;
  }
}

template <class Real>
void Member<Real>::keep_versions(const std::map<std::uint32_t, std::vector<double>>& images,
                                 std::map<std::int64_t, std::size_t> versions) {
  keeps_versions_ = true;
  images_of_updates_ = images;
  wanted_versions_ = std::move(versions);
}

template <class Real>
void Member<Real>::forget(std::int64_t micro_batch) {
  values_.forget(micro_batch);
  versions_.erase(micro_batch);
}

template <class Real>
const ParameterValues<Real>& Member<Real>::version_of(std::int64_t micro_batch) {
  if (!keeps_versions_) return parameters_;
  const auto [it, fresh] = versions_.try_emplace(micro_batch);
  const auto wanted = wanted_versions_.find(micro_batch);
  if (fresh && wanted != wanted_versions_.end()) {
    former_.erase(former_.begin(), former_.lower_bound(wanted->second));
    if (const auto kept = former_.find(wanted->second); kept != former_.end())
      return *(it->second = kept->second);
    for (const auto& [layer, updates] : updates_)
      if (updates != wanted->second)
        miss(fmt::format("micro-batch {} reads the parameters after {} updates, and {} are done", micro_batch,
                         wanted->second, updates));
  }
  if (fresh) {
    if (!newest_) newest_ = std::make_shared<ParameterValues<Real>>(parameters_);
    it->second = newest_;
  }
  return *it->second;
}

template <class Real>
void Member<Real>::miss(const std::string& what) const {
  throw MissingValue(fmt::format("{}: {}", name_, what));
}

template <class Real>
std::string Member<Real>::name_of(std::uint32_t bucket) const {
  const std::vector<std::size_t>& of = meaning_.buckets[bucket].parameters;
  return fmt::format("{}{}", lesson_.graph.parameters[of.front()].name,
                     of.size() > 1 ? fmt::format(" and {} more", of.size() - 1) : "");
}

template <class Real>
std::size_t Member<Real>::elements(std::uint32_t bucket) const {
  std::size_t count = 0;
  for (const std::size_t p : meaning_.buckets[bucket].parameters) count += parameters_[p].size();
  return count;
}

template <class Real>
std::vector<Real> Member<Real>::joined(std::uint32_t bucket, const ParameterValues<Real>& values) const {
  std::vector<Real> all;
  for (const std::size_t p : meaning_.buckets[bucket].parameters)
    all.insert(all.end(), values[p].begin(), values[p].end());
  return all;
}

template <class Real>
void Member<Real>::split(std::uint32_t bucket, const std::vector<Real>& from, BucketRange range,
                         ParameterValues<Real>& values) const {
  std::size_t place = 0;
  for (const std::size_t p : meaning_.buckets[bucket].parameters)
    for (Real& value : values[p]) {
      if (place >= range.begin && place < range.end) value = from[place];
      ++place;
    }
}

template <class Real>
std::vector<Real> Member<Real>::own_gradients(std::uint32_t bucket) const {
  for (const std::size_t p : meaning_.buckets[bucket].parameters)
    if (gradients_[p].empty())
      miss(fmt::format("the gradient of {} is not there", lesson_.graph.parameters[p].name));
  return joined(bucket, gradients_);
}

template <class Real>
void Member<Real>::need_parameters(std::uint32_t layer, std::uint64_t began) const {
  for (const std::size_t p : lesson_.index.parameters_of(layer)) {
    if (!bucket_of_[p]) continue;
    const OfBucket& of = buckets_.at(*bucket_of_[p]);
    const std::string& name = lesson_.graph.parameters[p].name;
    if (of.forgets ? of.gathered_at.size() <= of.gone : !of.is_whole)
      miss(fmt::format("needs {}, which is not there", name));
    if ((of.forgets ? of.gathered_at[of.gone] : of.whole_at) > began)
      miss(fmt::format("does not wait for {}", name));
  }
}

template <class Real>
void Member<Real>::run(const OpMeaning& means, std::int64_t first, std::uint64_t began,
                       double learning_rate) {
  switch (means.act) {
    case OpMeaning::Act::compute:
      if (means.operation == no_meaning) break;
      if (const Operation& operation = lesson_.graph.operations[means.operation];
          operation.phase == Phase::update) {
        update(operation.layer, learning_rate, began);
      } else {
        const ParameterValues<Real>& parameters = version_of(means.micro_batch);
        const bool is_newest = !keeps_versions_ || &parameters == newest_.get();
        if (operation.part == OperationPart::layer && is_newest) need_parameters(operation.layer, began);
        if (parts_ && operation.phase == Phase::weight_gradient)
          make_gradient(means, first, began, operation.layer);
        else if (parts_)
          parts_->run(means, first, began, parameters, gradients_);
        else
          values_.run(means, first, began, parameters, gradients_);
      }
      break;
    case OpMeaning::Act::fill:
      buckets_[means.bucket].copy = own_gradients(means.bucket);
      break;
    case OpMeaning::Act::empty:
      put_back(means.bucket, began);
      break;
    case OpMeaning::Act::compress:
      compress(means.bucket);
      break;
    case OpMeaning::Act::decompress:
      decompress(means.bucket, began);
      break;
    case OpMeaning::Act::factor:
      make_factors(means.bucket, began);
      break;
    case OpMeaning::Act::mean:
      make_mean(means.bucket, began);
      break;
    case OpMeaning::Act::slow:
      move_slowly(means.bucket);
      break;
    case OpMeaning::Act::add:
      if (means.operation != no_meaning &&
          lesson_.graph.operations[means.operation].phase == Phase::weight_gradient)
        take_in_gradient(means, began);
      else
        parts_->add(means, began);
      break;
    case OpMeaning::Act::serve:  // of hosts, whose tasks have no operations
    case OpMeaning::Act::collect:
      break;
  }
  if (means.forgets != no_meaning) ++buckets_[means.forgets].gone;
}

template <class Real>
std::size_t Member<Real>::place_of(std::size_t parameter) const {
  std::size_t first = 0;
  for (const std::size_t other : meaning_.buckets[*bucket_of_[parameter]].parameters) {
    if (other == parameter) break;
    first += parameters_[other].size();
  }
  return first;
}

template <class Real>
std::optional<BucketRange> Member<Real>::own_range(std::size_t parameter) const {
  if (!bucket_of_[parameter]) return std::nullopt;
  const BucketRange of = range(*bucket_of_[parameter]);
  const std::size_t first = place_of(parameter), end = first + parameters_[parameter].size();
  return BucketRange{std::clamp(of.begin, first, end) - first, std::clamp(of.end, first, end) - first};
}

/// With the gradients that are there, or the sums of the member's own range.
template <class Real>
void Member<Real>::update(std::uint32_t layer, double learning_rate, std::uint64_t began) {
  if (!wanted_versions_.empty() && !former_.contains(updates_[layer]))
    former_[updates_[layer]] = newest_ ? newest_ : std::make_shared<ParameterValues<Real>>(parameters_);
  newest_.reset();
  const double images = keeps_versions_ ? images_of_updates_.at(layer).at(updates_[layer]++) : 1;
  for (const std::size_t p : lesson_.index.parameters_of(layer)) {
    const std::string& name = lesson_.graph.parameters[p].name;
    states_[p].begin();
    if (!bucket_of_[p]) {
      if (gradients_[p].empty()) miss(fmt::format("the gradient of {} is not there", name));
      if (keeps_versions_)
        for (Real& value : gradients_[p]) value /= static_cast<Real>(images);
      states_[p].update(parameters_[p], gradients_[p], 0, gradients_[p].size(), learning_rate);
      gradients_[p].clear();
      continue;
    }
    OfBucket& of = buckets_.at(*bucket_of_[p]);
    if (!of.is_summed) miss(fmt::format("the sum of the gradients of {} is not there", name));
    if (of.came_at > began) miss(fmt::format("does not wait for the sum of the gradients of {}", name));
    const std::size_t size = parameters_[p].size();
    const auto begin = of.sums.begin() + static_cast<std::ptrdiff_t>(place_of(p));
    std::vector<Real> gradient(begin, begin + static_cast<std::ptrdiff_t>(size));
    for (Real& value : gradient) value /= static_cast<Real>(images);
    const BucketRange own = *own_range(p);
    states_[p].update(parameters_[p], gradient, own.begin, own.end, learning_rate);
    if (own.end - own.begin < size) of.is_whole = false;
    if (++of.updated < meaning_.buckets[*bucket_of_[p]].parameters.size()) continue;
    of.sums.clear();
    of.is_summed = false;
    of.updated = 0;
  }
}

template <class Real>
void Member<Real>::serve(std::uint32_t bucket, double scale, double learning_rate, std::uint64_t began) {
  OfBucket& of = buckets_.at(bucket);
  if (of.in_node == InNode::host && !of.node_sums.empty()) {
    need_sums_of_node(bucket, began);
    add_to_range(bucket, of.node_sums, of.came_at);
  }
  if (!of.is_summed) miss(fmt::format("updates {} without gradients", name_of(bucket)));
  if (of.came_at > began) miss(fmt::format("does not wait for the gradients of {}", name_of(bucket)));
  std::size_t first = 0;
  for (const std::size_t p : meaning_.buckets[bucket].parameters) {
    const std::size_t size = parameters_[p].size();
    std::vector<Real> gradient(of.sums.begin() + static_cast<std::ptrdiff_t>(first),
                               of.sums.begin() + static_cast<std::ptrdiff_t>(first + size));
    for (Real& value : gradient) value *= static_cast<Real>(scale);
    states_[p].begin();
    states_[p].update(parameters_[p], gradient, std::clamp(of.range.begin, first, first + size) - first,
                      std::clamp(of.range.end, first, first + size) - first, learning_rate);
    first += size;
  }
  of.sums.clear();
  of.is_summed = false;
}

template <class Real>
void Member<Real>::add_to_range(std::uint32_t bucket, const std::vector<Real>& values, std::uint64_t now) {
  OfBucket& of = buckets_.at(bucket);
  of.sums.resize(values.size(), Real{0});
  for (std::size_t e = of.range.begin; e < of.range.end; ++e) of.sums[e] += values[e];
  of.is_summed = true;
  of.came_at = now;
}

template <class Real>
std::vector<Real> Member<Real>::parameters(std::uint32_t bucket) const {
  return joined(bucket, parameters_);
}

template <class Real>
void Member<Real>::take_parameters(std::uint32_t bucket, BucketRange range,
                                   const std::vector<Real>& of_bucket) {
  split(bucket, of_bucket, range, parameters_);
}

template <class Real>
void Member<Real>::complete_parameters(std::uint32_t bucket, std::uint64_t now) {
  OfBucket& of = buckets_.at(bucket);
  of.is_whole = true;
  of.whole_at = now;
  if (of.forgets) of.gathered_at.push_back(now);
  if (newest_)  // of which the micro-batches that have begun since the update may have read other buckets
    for (const std::size_t p : meaning_.buckets[bucket].parameters) (*newest_)[p] = parameters_[p];
}

template class Member<double>;
template class Member<float>;

}  // namespace convoy::numerics

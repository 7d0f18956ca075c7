// SPDX-License-Identifier: MIT
#include "sim/costs/issue_queue.h"

#include <bit>

namespace convoy::inline costs {

QueuedTime QueuedTime::operation(double issue_s, double device_s) {
  if (device_s <= 0) return {.device_s = 0, .issue_s = issue_s};
  return {device_s, issue_s, issue_s + device_s};
}

void QueuedTime::then(const QueuedTime& next) {
  alone_s = std::max(alone_s + next.device_s, issue_s + next.alone_s);
  device_s += next.device_s;
  issue_s += next.issue_s;
}

QueuedSequence::QueuedSequence(const std::vector<QueuedTime>& parts, Order order) : order_(order) {
  for (const QueuedTime& part : parts) {
    device_before_s_.push_back(device_before_s_.back() + part.device_s);
    issue_before_s_.push_back(issue_before_s_.back() + part.issue_s);
  }
  std::vector<double> lag_s;
  for (std::size_t p = 0; p < parts.size(); ++p)
    lag_s.push_back(order == Order::ascending
                        ? parts[p].alone_s + issue_before_s_[p] - device_before_s_[p + 1]
                        : parts[p].alone_s - issue_before_s_[p + 1] + device_before_s_[p]);
  for (std::size_t width = 1; !lag_s.empty(); width *= 2) {
    largest_lag_s_.push_back(lag_s);
    if (lag_s.size() <= width) break;
    for (std::size_t p = 0; p + width < lag_s.size(); ++p) lag_s[p] = std::max(lag_s[p], lag_s[p + width]);
    lag_s.resize(lag_s.size() - width);
  }
}

QueuedTime QueuedSequence::of(std::size_t begin, std::size_t end) const {
  if (begin == end) return {};
  const std::size_t power = std::bit_width(end - begin) - 1;
  const std::vector<double>& lag_s = largest_lag_s_[power];
  const double latest_s = std::max(lag_s[begin], lag_s[end - (std::size_t{1} << power)]);
  return {device_before_s_[end] - device_before_s_[begin], issue_before_s_[end] - issue_before_s_[begin],
          latest_s + (order_ == Order::ascending ? device_before_s_[end] - issue_before_s_[begin]
                                                 : issue_before_s_[end] - device_before_s_[begin])};
}

void IssuedStretch::add(double issue_s, double device_s) {
  issued_s_ += issue_s;
  if (device_s <= 0) return;
  if (issued_s_ > 0) issued_.push_back({issued_s_, device_s_});
  device_s_ += device_s;
}

std::vector<IssuedStretch::Operation>::const_iterator IssuedStretch::first_after(double done_s) const {
  return std::lower_bound(issued_.begin(), issued_.end(), done_s,
                          [](const Operation& operation, double done) { return operation.before_s < done; });
}

double IssuedStretch::end_s(double start_s, double slowness, double done_s) const {
  double end_s = start_s + (device_s_ - done_s) * slowness;
  for (auto operation = first_after(done_s); operation != issued_.end(); ++operation)
    end_s = std::max(end_s, operation->issued_s + (device_s_ - operation->before_s) * slowness);
  return end_s;
}

double IssuedStretch::done_s(double start_s, double done_s, double until_s, double slowness) const {
  for (auto operation = first_after(done_s); operation != issued_.end(); ++operation) {
    const double there_s = start_s + (operation->before_s - done_s) * slowness;
    if (there_s > until_s) break;
    done_s = operation->before_s;
    start_s = std::max(there_s, operation->issued_s);
    if (start_s >= until_s) return done_s;
  }
  return std::min(device_s_, done_s + (until_s - start_s) / slowness);
}

}  // namespace convoy::costs

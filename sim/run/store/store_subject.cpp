// SPDX-License-Identifier: MIT
#include "sim/run/store/store_subject.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "sim/base/digest.h"

namespace convoy::inline runs {
namespace {

/// Whether both programs are one, and files that both have read were the same.
bool agree(const Origin& a, const Origin& b) {
  const std::map<std::string, std::string> files(a.files.begin(), a.files.end());
  return a.build == b.build && std::ranges::all_of(b.files, [&](const auto& file) {
           const auto same = files.find(file.first);
           return same == files.end() || same->second == file.second;
         });
}

}  // namespace

const SweepPoint* StoreSubject::at(std::size_t position) const {
  const auto found = std::ranges::lower_bound(points, position, {}, &SweepPoint::position);
  return found != points.end() && found->position == position ? &*found : nullptr;
}

SubjectDifference difference_of(const StoreSubject& a, const StoreSubject& b) {
  if (a.experiment != b.experiment || a.size != b.size) return SubjectDifference::sweep;
  if (!a.origin || !b.origin || !agree(*a.origin, *b.origin) || a.options != b.options ||
      to_yaml(a.origin->experiment) != to_yaml(b.origin->experiment))
    return SubjectDifference::inputs;
  return a.manifest.config_sha256 == b.manifest.config_sha256 ? SubjectDifference::none
                                                              : SubjectDifference::sweep;
}

StoreSubject united(std::vector<StoreSubject> parts) {
  StoreSubject whole = std::move(parts.back());
  parts.pop_back();
  std::vector<SweepPoint> points;
  for (StoreSubject& part : parts) {
    std::ranges::move(part.points, std::back_inserter(points));
    if (part.origin && whole.origin)
      std::ranges::move(part.origin->files, std::back_inserter(whole.origin->files));
  }
  std::ranges::move(whole.points, std::back_inserter(points));
  // Of equal ones the last stays: reversed, the first.
  std::ranges::reverse(points);
  std::ranges::stable_sort(points, {}, &SweepPoint::position);
  points.erase(std::ranges::unique(points, {}, &SweepPoint::position).begin(), points.end());
  whole.points = std::move(points);
  if (whole.origin) {
    auto& files = whole.origin->files;
    std::ranges::sort(files);
    files.erase(std::ranges::unique(files).begin(), files.end());
  }
  return whole;
}

std::string digest_of(const StoreSubject& subject, const std::string& manifest, const std::string& origin) {
  Sha256 digest;
  digest.add_field(subject.experiment).add_field(manifest).add_field(subject.jobs);
  for (const SweepPoint& point : subject.points)
    digest.add_field(std::to_string(point.position)).add_field(point.text).add_field(point.key);
  digest.add_field(std::to_string(subject.size)).add_field(subject.options).add_field(origin);
  return digest.text();
}

}  // namespace convoy::runs

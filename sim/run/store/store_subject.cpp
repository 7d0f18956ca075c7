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
  if (a.experiment != b.experiment || a.sweep->size() != b.sweep->size()) return SubjectDifference::sweep;
  if (!a.origin || !b.origin || !agree(*a.origin, *b.origin) || a.options != b.options ||
      to_flow(a.origin->experiment) != to_flow(b.origin->experiment))
    return SubjectDifference::inputs;
  return a.manifest.config_sha256 == b.manifest.config_sha256 ? SubjectDifference::none
                                                              : SubjectDifference::sweep;
}

StoreSubject united(std::vector<StoreSubject> parts) {
  std::vector<SweepPoint> listed;
  StoreSubject whole = parts.back();
  for (StoreSubject& part : parts) {
    std::ranges::move(part.points, std::back_inserter(listed));
    if (part.origin && whole.origin)
      std::ranges::move(part.origin->files, std::back_inserter(whole.origin->files));
  }
  // Of equal ones the last stays: reversed, the first.
  std::ranges::reverse(listed);
  std::ranges::stable_sort(listed, {}, &SweepPoint::position);
  listed.erase(std::ranges::unique(listed, {}, &SweepPoint::position).begin(), listed.end());
  whole.points = std::move(listed);
  if (whole.origin) {
    auto& files = whole.origin->files;
    std::ranges::sort(files);
    files.erase(std::ranges::unique(files).begin(), files.end());
  }
  return whole;
}

std::string digest_of(const StoreSubject& subject, const std::string& manifest, const std::string& sweep,
                      const std::string& origin) {
  Sha256 digest;
  for (const std::string* part :
       {&subject.experiment, &manifest, &subject.jobs, &sweep, &subject.options, &origin})
    digest.add_field(*part);
  for (const SweepPoint& point : subject.points)
    digest.add_field(std::to_string(point.position)).add(point.key.bytes());
  return digest.text();
}

}  // namespace convoy::runs

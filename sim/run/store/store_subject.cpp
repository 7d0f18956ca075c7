// SPDX-License-Identifier: MIT
#include "sim/run/store/store_subject.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

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
      to_flow(a.origin->experiment) != to_flow(b.origin->experiment))
    return SubjectDifference::inputs;
  return a.manifest.config_sha256 == b.manifest.config_sha256 ? SubjectDifference::none
                                                              : SubjectDifference::sweep;
}

StoreSubject united(std::vector<StoreSubject> parts) {
  struct Listed {
    SweepPoint point;
    std::uint32_t part;
  };
  std::vector<Listed> listed;
  auto texts = std::make_shared<std::vector<StoreSubject::TextOfPoint>>();
  StoreSubject whole = parts.back();
  for (StoreSubject& part : parts) {
    for (const SweepPoint& point : part.points)
      listed.push_back({point, static_cast<std::uint32_t>(texts->size())});
    texts->push_back(std::move(part.text));
    if (part.origin && whole.origin)
      std::ranges::move(part.origin->files, std::back_inserter(whole.origin->files));
  }
  // Of equal ones the last stays: reversed, the first.
  std::ranges::reverse(listed);
  const auto position = [](const Listed& one) { return one.point.position; };
  std::ranges::stable_sort(listed, {}, position);
  listed.erase(std::ranges::unique(listed, {}, position).begin(), listed.end());
  whole.points.clear();
  for (const Listed& one : listed) whole.points.push_back(one.point);
  whole.text = [position, texts,
                all = std::make_shared<const std::vector<Listed>>(std::move(listed))](std::size_t wanted) {
    return (*texts)[std::ranges::lower_bound(*all, wanted, {}, position)->part](wanted);
  };
  if (whole.origin) {
    auto& files = whole.origin->files;
    std::ranges::sort(files);
    files.erase(std::ranges::unique(files).begin(), files.end());
  }
  return whole;
}

StoreSubject with_texts_in_memory(StoreSubject subject) {
  auto texts = std::make_shared<std::map<std::size_t, std::string>>();
  for (const SweepPoint& point : subject.points) texts->emplace(point.position, subject.text(point.position));
  subject.text = [texts](std::size_t position) { return texts->at(position); };
  return subject;
}

SubjectDigest::SubjectDigest(const std::string& experiment, const std::string& manifest,
                             const std::string& jobs) {
  digest_.add_field(experiment).add_field(manifest).add_field(jobs);
}

void SubjectDigest::add(const SweepPoint& point, std::string_view text) {
  digest_.add_field(std::to_string(point.position)).add_field(text).add_field(point.key.text());
}

std::string SubjectDigest::text(std::size_t size, const std::string& options, const std::string& origin) {
  return digest_.add_field(std::to_string(size)).add_field(options).add_field(origin).text();
}

std::string digest_of(const StoreSubject& subject, const std::string& manifest, const std::string& origin) {
  SubjectDigest digest(subject.experiment, manifest, subject.jobs);
  for (const SweepPoint& point : subject.points) digest.add(point, subject.text(point.position));
  return digest.text(subject.size, subject.options, origin);
}

}  // namespace convoy::runs

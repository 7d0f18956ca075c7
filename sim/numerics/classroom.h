// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/numerics/member.h"
#include "sim/numerics/twin_order.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline numerics {

/// All devices and servers of a plan, with what each of them has of the network's parameters.
template <class Real>
class Classroom {
 public:
  Classroom(const Lesson& lesson, const Plan& plan, const Machine& machine);

  /// @pre the endpoint has a role
  Member<Real>& at(EndpointId endpoint) { return *members_[endpoint]; }
  std::uint32_t role_of(EndpointId endpoint) const { return role_of_[endpoint]; }
  const PatternEnds& ends_of(CommId comm) const { return ends_[plan_.communications[comm].pattern]; }
  const std::vector<PatternEnds>& ends() const { return ends_; }
  const std::vector<EndpointId>& devices() const { return devices_; }

  /// The parameters as they are now, each where it is kept, or in parts by who has them: of parameters of which several devices have
  /// replicas, those of the first; of those that average their parameters, the mean.
  ParameterValues<Real> parameters() const;
  /// Running statistics, by layer, of the first device that has the layer.
  std::vector<RunningStatistics<Real>> running() const;

 private:
  // Of devices that have parts of layers between them.
  void begin_parts();
  ParameterValues<Real> joined_parameters() const;
  std::vector<RunningStatistics<Real>> joined_running() const;

  std::vector<Real> mean_of(const std::vector<EndpointId>& owners, std::size_t parameter) const;
  void share_out(const Meaning& meaning);
  void join_nodes(const Meaning& meaning, const CommMeaning& means, std::uint32_t pattern);
  BucketRange share_of(std::uint32_t bucket, const std::vector<EndpointId>& group, std::size_t rank) const;
  /// What of a layer's work has the parameters that a device updates; nothing: it updates none.
  std::optional<Box> updated_part(EndpointId device, std::uint32_t layer) const;
  void share_in_group(std::uint32_t bucket, const Pattern& pattern, bool forgets);
  void share_on_servers(std::uint32_t bucket, const PatternEnds& push);

  const Lesson& lesson_;
  const Plan& plan_;
  std::optional<PartLesson> parts_;
  std::map<std::pair<EndpointId, std::uint32_t>, std::uint32_t> forward_, updates_;  ///< layouts, by layer
  std::vector<PatternEnds> ends_;                       ///< by pattern
  std::vector<std::unique_ptr<Member<Real>>> members_;  ///< by endpoint
  std::vector<std::uint32_t> role_of_;                  ///< by endpoint
  std::vector<EndpointId> devices_;
  std::vector<std::vector<EndpointId>> keepers_;  ///< by bucket: of whom each has a range of its own
  std::vector<std::vector<EndpointId>> owners_;   ///< by layer: devices that read its parameters
};

}  // namespace convoy::numerics

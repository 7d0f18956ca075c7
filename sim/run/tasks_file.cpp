// SPDX-License-Identifier: MIT
#include "sim/run/tasks_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/repetition.h"
#include "sim/replay/fidelity.h"
#include "sim/replay/flows.h"
#include "sim/results/json_writer.h"
#include "sim/run/simulate.h"
#include "sim/run/task_regions.h"

namespace convoy::inline runs {
namespace {

using Style = JsonWriter::Style;

class TasksWriter {
 public:
  TasksWriter(const Plan& plan, const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
              std::ostream& out)
      : plan_(plan),
        machine_(machine),
        cost_(cost),
        flows_(expand_flows(plan, machine, Listing::always)),
        // Decided as for the replay, which need not list the messages of an all-to-all.
        one_by_one_(ranks_go_one_by_one(plan, machine, expand_flows(plan, machine, Listing::where_needed))),
        json_(out) {
    for (const Device& device : machine.devices) kind_of_.push_back(kind_of(device));
    if (plan.meaning) regions_.emplace(plan, graph);
  }

  void write(const ReplayResult& replayed) {
    json_.begin_object();
    json_.field("schema", "convoy.tasks/1");
    list("endpoints", machine_.endpoint_count(),
         [&](std::size_t e) { endpoint(static_cast<EndpointId>(e)); });
    list("links", machine_.links.size(), [&](std::size_t l) {
      json_.field("name", machine_.links[l].name);
      bandwidth(machine_.links[l].bandwidth_Bps);
    });
    list("connections", flows_.connections_Bps.size(),
         [&](std::size_t c) { bandwidth(flows_.connections_Bps[c]); });
    list("patterns", plan_.patterns.size(), Style::lines, [&](std::size_t p) { pattern(p); });
    list("communications", plan_.communications.size(), [&](std::size_t c) {
      const Communication& comm = plan_.communications[c];
      json_.field("name", comm.name);
      integer("pattern", comm.pattern);
      json_.field("bytes", comm.bytes);
      json_.field("overhead_s", comm.overhead_s);
      if (!regions_ || comm.meaning == no_meaning) return;
      json_.key("carries");
      regions_->write_carried(json_, comm);
    });
    if (regions_) {
      json_.key("graph");
      regions_->write_graph(json_);
    }
    list("roles", plan_.roles.size(), Style::lines, [&](std::size_t r) {
      role_ = static_cast<std::uint32_t>(r);
      role(plan_.roles[r]);
    });
    if (plan_.steps > 1) json_.field("steps", plan_.steps);
    if (plan_.endless()) endless(*plan_.endless());
    if (plan_.input) input(*plan_.input);
    result(replayed);
    json_.end_object();
    json_.raw("\n");
  }

 private:
  /// Devices on which the same operation takes as long, and which their hosts issue it to as fast.
  struct Kind {
    std::uint32_t type;     ///< index into Machine::device_types
    std::uint32_t of_host;  ///< number of devices of its host
    std::string name;       ///< no other kind's
  };

  std::uint32_t kind_of(const Device& device) {
    const std::uint32_t of_host = devices_of_host(machine_, device);
    const auto known = std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& kind) {
      return kind.type == device.type && kind.of_host == of_host;
    });
    if (known != kinds_.end()) return static_cast<std::uint32_t>(known - kinds_.begin());
    const std::string& type = machine_.device_types[device.type].name;
    const auto taken = [&](const std::string& name) {
      return std::any_of(kinds_.begin(), kinds_.end(), [&](const Kind& kind) { return kind.name == name; });
    };
    std::string name = type;
    for (int number = 2; taken(name); ++number) name = fmt::format("{} ({})", type, number);
    kinds_.push_back({device.type, of_host, std::move(name)});
    return static_cast<std::uint32_t>(kinds_.size() - 1);
  }

  void integer(std::string_view name, std::uint64_t number) {
    json_.field(name, static_cast<std::int64_t>(number));
  }
  /// Copies within a host may have no limit, for which JSON has no number.
  void bandwidth(double bandwidth_Bps) {
    json_.key("bandwidth_Bps");
    std::isfinite(bandwidth_Bps) ? json_.value(bandwidth_Bps) : json_.null();
  }
  template <class Numbers>
  void integers(std::string_view name, const Numbers& numbers) {
    json_.key(name);
    json_.begin_array(Style::compact);
    for (const auto number : numbers) json_.value(static_cast<std::int64_t>(number));
    json_.end_array();
  }
  void numbers(std::string_view name, std::span<const double> numbers) {
    json_.key(name);
    json_.begin_array(Style::compact);
    for (const double number : numbers) json_.value(number);
    json_.end_array();
  }
  /// A list of `count` objects whose fields `fields(i)` writes.
  template <class Fields>
  void list(std::string_view name, std::size_t count, Style style, Fields fields) {
    json_.key(name);
    json_.begin_array();
    for (std::size_t i = 0; i < count; ++i) {
      json_.begin_object(style);
      fields(i);
      json_.end_object();
    }
    json_.end_array();
  }
  template <class Fields>
  void list(std::string_view name, std::size_t count, Fields fields) {
    list(name, count, Style::compact, fields);
  }

  void endpoint(EndpointId e) {
    const bool device = e < machine_.devices.size();
    const Host& host = machine_.hosts[machine_.host_of(e)];
    json_.field("name", machine_.endpoint_name(e));
    json_.field("kind", device ? "device" : "host");
    json_.field("host", host.name);
    if (regions_) regions_->write_endpoint(json_, e);
    if (!device) {
      json_.field("type", machine_.host_types[host.type].server);
      return;
    }
    const DeviceType& type = machine_.device_types[machine_.devices[e].type];
    json_.field("type", kinds_[kind_of_[e]].name);
    json_.field("speed", machine_.devices[e].speed);
    json_.field("processors_taken", machine_.processors_taken(type));
    if (const double begin_s = cost_.begin_s(type); begin_s > 0) json_.field("begin_s", begin_s);
  }

  void pattern(std::size_t p) {
    json_.field("one_by_one", static_cast<bool>(one_by_one_[p]));
    std::vector<std::uint32_t> repeat;
    for (const Round& round : plan_.patterns[p].rounds) repeat.push_back(round.repeat);
    integers("repeat", repeat);
    const std::uint32_t first = flows_.first_group[p];
    list("groups", flows_.first_group[p + 1] - first, Style::lines, [&](std::size_t g) {
      const FlowGroup& group = flows_.groups[first + g];
      integers("members", plan_.patterns[p].groups[group.index]);
      list("flows", group.flow_count, [&](std::size_t f) {
        const Flow& it = flows_.flows[group.first_flow + f];
        const FlowPath& path = flows_.path(it);
        flow(it, path);
        if (plan_.patterns[p].in_order && machine_.host_of(path.from) != machine_.host_of(path.to))
          json_.field("in_order", true);
      });
    });
  }

  void flow(const Flow& flow, const FlowPath& path) {
    integer("round", flow.round);
    integer("from", path.from);
    integer("to", path.to);
    json_.field("fraction", flow.fraction);
    json_.field("latency_s", path.latency_s);
    std::span<const LinkId> links = flows_.route(path);
    const auto own = static_cast<LinkId>(machine_.links.size());
    const bool connected = !links.empty() && links.back() >= own;
    if (connected) links = links.first(links.size() - 1);
    integers("links", links);
    if (connected) integer("connection", flows_.route(path).back() - own);
  }

  void role(const Role& role) {
    json_.field("name", role.name);
    integers("members", role.members);
    json_.key("streams");
    json_.begin_array(Style::compact);
    for (const std::string& stream : role.streams) json_.value(stream);
    json_.end_array();
    json_.field("slowdown", role.slowdown);
    json_.key("resident_bytes");
    json_.begin_object(Style::compact);
    for (std::size_t c = 0; c < memory_class_count; ++c)
      if (role.resident_bytes[c] > 0) json_.field(memory_class_names[c], role.resident_bytes[c]);
    json_.end_object();
    std::vector<std::uint32_t> kinds;  // of the members
    if (role.members.front() < machine_.devices.size()) {
      for (const EndpointId e : role.members) kinds.push_back(kind_of_[e]);
      std::sort(kinds.begin(), kinds.end());
      kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
    }
    list("program", role.program.size(), Style::lines, [&](std::size_t t) { task(role.program[t], kinds); });
  }

  /// @param kinds of the role's members; none: they are hosts
  void task(const Task& task, const std::vector<std::uint32_t>& kinds) {
    static constexpr const char* names[] = {"compute", "collective", "send", "receive"};
    json_.field("name", task.name);
    json_.field("kind", names[static_cast<std::size_t>(task.kind)]);
    if (task.stream != Task::no_stream) integer("stream", static_cast<std::uint64_t>(task.stream));
    if (task.begins_step) json_.field("begins_step", true);
    integers("after", task.after);
    if (task.kind != Task::Kind::compute)
      integer("communication", task.comm);
    else if (kinds.empty())
      json_.field("seconds", task.seconds), does(task.meaning);
    else
      list("ops", task.ops.size(), [&](std::size_t i) { operation(task, task.ops[i], kinds); });
  }

  void operation(const Task& task, const PlanOp& op, const std::vector<std::uint32_t>& kinds) {
    json_.field("name", name_of(task, op));
    json_.field("images", op.images);
    const auto by_kind = [&](std::string_view name, const auto& seconds) {
      json_.key(name);
      if (kinds.size() == 1) return json_.value(seconds(kinds_[kinds.front()]));
      json_.begin_object();
      for (const std::uint32_t kind : kinds) json_.field(kinds_[kind].name, seconds(kinds_[kind]));
      json_.end_object();
    };
    by_kind("issue_s", [&](const Kind& kind) {
      return cost_.issue_s(op.work, op.images, machine_.device_types[kind.type], kind.of_host);
    });
    by_kind("time_s", [&](const Kind& kind) {
      return cost_.time_s(op.work, op.images, machine_.device_types[kind.type]);
    });
    deltas("allocates", op.allocates);
    deltas("frees", op.frees);
    does(op.meaning);
  }

  void does(std::uint32_t meaning) {
    if (!regions_) return;
    if (meaning == no_meaning) return TaskRegions::write_nothing(json_);
    regions_->write_operation(json_, role_, plan_.meaning->operations[meaning]);
  }

  void deltas(std::string_view name, const std::vector<MemoryDelta>& deltas) {
    if (deltas.empty()) return;
    list(name, deltas.size(), [&](std::size_t i) {
      json_.field("class", memory_class_names[static_cast<std::size_t>(deltas[i].memory_class)]);
      json_.field("bytes", deltas[i].bytes);
    });
  }

  void endless(const EndlessRun& run) {
    json_.key("endless");
    json_.begin_object();
    json_.key("steps");
    json_.begin_array();
    for (const std::vector<EndlessRun::End>& step : run.steps) {
      json_.begin_array(Style::compact);
      for (const EndlessRun::End& end : step) {
        json_.begin_object();
        integer("role", end.role);
        integer("task", end.task);
        json_.end_object();
      }
      json_.end_array();
    }
    json_.end_array();
    integer("steady_steps", run.steady_steps);
    numbers("uses_per_step", run.uses_per_step);
    json_.end_object();
  }

  void input(const InputFeed& feed) {
    json_.key("input");
    json_.begin_object();
    numbers("interval_s", feed.interval_s);
    integer("prefetch", feed.prefetch);
    json_.end_object();
  }

  void result(const ReplayResult& replayed) {
    json_.key("result");
    json_.begin_object();
    json_.field("step_time_s", replayed.step_time_s);
    std::vector<double> bytes;
    for (const LinkUsage& link : replayed.links) bytes.push_back(link.bytes);
    numbers("link_bytes", bytes);
    std::vector<double> peaks;
    for (const EndpointUsage endpoint : replayed.endpoints) peaks.push_back(endpoint.peak_memory_bytes);
    numbers("peak_memory_bytes", peaks);
    json_.end_object();
  }

  const Plan& plan_;
  const Machine& machine_;
  const CostModel& cost_;
  FlowTable flows_;
  std::vector<bool> one_by_one_;  ///< by pattern
  std::vector<Kind> kinds_;
  std::vector<std::uint32_t> kind_of_;  ///< by device: index into kinds_
  std::optional<TaskRegions> regions_;  ///< if the plan says what its tasks mean
  std::uint32_t role_ = 0;              ///< which is being written
  JsonWriter json_;
};

}  // namespace

std::string_view refuses_tasks(const PreparedRun& run) {
  if (run.network_model != NetworkModel::convoy) return "SimGrid's network model has other rules of sharing";
  if (run.phased) return "its plan changes during the run";
  if (run.plan.service())
    return "what its devices send is answered by a rule, and they have no common step (asynchronous or stale "
           "synchronous training, backup workers, or asynchronous gossip)";
  return {};
}

void write_tasks(const Plan& plan, const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                 const ReplayResult& replayed, std::ostream& out) {
  TasksWriter(plan, graph, machine, cost, out).write(replayed);
}

void write_tasks(const PreparedRun& prepared, std::ostream& out) {
  const PreparedRun run = with_every_task(prepared);
  write_tasks(run.plan, *run.graph, run.machine, run.cost,
              replay(run.plan, run.machine, run.cost, {true, run.network_model}), out);
}

}  // namespace convoy::runs

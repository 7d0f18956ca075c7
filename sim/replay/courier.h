// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>

#include "sim/replay/busy_clock.h"
#include "sim/replay/engine.h"
#include "sim/replay/flows.h"
#include "sim/replay/fold.h"

namespace convoy {

/// Hears what happens to the tasks of endpoint classes.
class MessageListener {
 public:
  virtual void messages_begin(std::uint32_t endpoint_class,
                              TaskId task) = 0;  ///< the task's first message or overhead
  virtual void message_begins(std::uint32_t endpoint_class) = 0;
  virtual void message_ends(std::uint32_t endpoint_class) = 0;
  virtual void task_done(std::uint32_t endpoint_class, TaskId task) = 0;
  virtual void after_event() = 0;  ///< everything that one moment's events mean has been said

 protected:
  ~MessageListener() = default;
};

/// Takes messages of flow classes from end to end: latency, then a share of the links.
class Courier {
 public:
  Courier(const FlowTable& table, const Folding& folding, Engine& engine, LinkClock& link_clock,
          MessageListener& listener)
      : table_(table), folding_(folding), engine_(engine), link_clock_(link_clock), listener_(listener) {}

  /// One message a flow, or `repeat` of them one after the other as one.
  void launch(std::uint32_t flow_class, double bytes, double repeat, std::function<void()> delivered);

  /// The message counts as under way at both its ends until it is delivered; `delivered` gets their classes.
  void launch_for_ends(std::uint32_t flow_class, double bytes,
                       std::function<void(std::uint32_t, std::uint32_t)> delivered);

 private:
  const FlowTable& table_;
  const Folding& folding_;
  Engine& engine_;
  LinkClock& link_clock_;
  MessageListener& listener_;
};

}  // namespace convoy

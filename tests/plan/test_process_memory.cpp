// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>

#include "models/caching_allocator.h"
#include "sim/base/memo.h"
#include "sim/plan/ledger.h"
#include "sim/plan/process_memory.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

constexpr double mib = 1024 * 1024;

/// A card of a catalogue: 80 multiprocessors, 16160 of 16384 MiB for processes.
DeviceType card() {
  DeviceType device;
  device.name = "card";
  device.generation = "volta";
  device.sms = 80;
  device.framework_reserves = true;
  device.memory_bytes = 16384 * mib;
  device.usable_memory_bytes = 16160 * mib;
  return device;
}

TrainingOptions with(Framework framework, Precision precision = Precision::fp32) {
  return {precision, Optimizer::sgd, Recomputation::none, framework};
}

PlanOp op(std::vector<double> allocates_mib, std::vector<double> frees_mib) {
  PlanOp result{"op", Work{}, 1, {}, {}};
  for (const double m : allocates_mib) result.allocates.push_back({MemoryClass::activations, m * mib});
  for (const double m : frees_mib) result.frees.push_back({MemoryClass::activations, m * mib});
  return result;
}

Role role_of(std::vector<PlanOp> ops) {
  Role role;
  role.members = {0};
  Task task;
  task.ops = std::move(ops);
  role.program.push_back(std::move(task));
  return role;
}

/// What the process takes beside its tensors.
double fixed_mib(Framework framework) {
  return process_memory(role_of({}), card(), with(framework)).bytes / mib;
}

}  // namespace

TEST_CASE("process memory: a context by the multiprocessors and the libraries") {
  CHECK(fixed_mib(Framework::pytorch) == approx(13.5 * 80 + 320));
  // Measured with PyTorch 1.3 on a Titan V, which has 80 multiprocessors: 1007 MiB before any library is
  // used.
  CHECK(fixed_mib(Framework::pytorch1) - 320 == approx(1007).epsilon(0.02));
  CHECK(fixed_mib(Framework::mxnet) == approx(350.0 * 80 / 24));
}

TEST_CASE("process memory: tensors in segments of PyTorch's allocator, elsewhere as they are") {
  const Role role = role_of({op({11, 0.5}, {}), op({}, {11, 0.5})});
  CHECK(process_memory(role, card(), with(Framework::pytorch)).bytes / mib ==
        approx(fixed_mib(Framework::pytorch) + 12 + 2));
  CHECK(process_memory(role, card(), with(Framework::mxnet)).bytes / mib ==
        approx(fixed_mib(Framework::mxnet) + 11.5));
}

TEST_CASE("process memory: buffers that are freed together or in part are found") {
  // 30 + 40 freed as one 70, and 50 freed as 20 and 30: as much is live as the ledger says.
  const Role role = role_of({op({30, 40}, {}), op({50}, {70}), op({}, {20}), op({}, {30}), op({100}, {100})});
  const double bytes = process_memory(role, card(), with(Framework::pytorch)).bytes / mib;
  CHECK(bytes >= fixed_mib(Framework::pytorch) + peak_memory(role).bytes / mib);
  CHECK(bytes <= fixed_mib(Framework::pytorch) + 30 + 40 + 50 + 100);
}

TEST_CASE("process memory: fragments count, until the device is full") {
  // 30 pieces of 200 MiB, all freed, then one of 6000: the pieces stay reserved while there is room.
  std::vector<PlanOp> ops{op(std::vector<double>(30, 200), std::vector<double>(30, 200)), op({6000}, {6000})};
  const double fixed = fixed_mib(Framework::pytorch);
  const ProcessMemory roomy = process_memory(role_of(ops), card(), with(Framework::pytorch));
  CHECK(roomy.bytes / mib == approx(fixed + 12000));
  CHECK(roomy.fits());
  DeviceType small = card();
  small.usable_memory_bytes = (fixed + 6100) * mib;
  const ProcessMemory tight = process_memory(role_of(ops), small, with(Framework::pytorch));
  CHECK(tight.bytes / mib == approx(fixed + 6000));
  CHECK(tight.fits());
  small.usable_memory_bytes = (fixed + 5900) * mib;
  CHECK(!process_memory(role_of(ops), small, with(Framework::pytorch)).fits());
}

TEST_CASE("process memory: devices of any size have what an allocator of their own says [law]") {
  const double fixed = fixed_mib(Framework::pytorch);
  int full = 0, roomy = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<PlanOp> ops;
    for (int i = 0; i < 30; ++i) {
      const double m = 1 + static_cast<double>(random() % 3000) / 10;
      ops.push_back(op({m}, {m}));
    }
    const Role role = role_of(ops);
    for (const double size_mib : {300.0, 1000.0, 3000.0, 30000.0}) {
      CAPTURE(size_mib);
      DeviceType device = card();
      device.usable_memory_bytes = (fixed + size_mib) * mib;
      CachingAllocator allocator(device.usable_memory_bytes - fixed * mib);
      for (int step = 0; step < 2; ++step)
        for (const PlanOp& each : ops) allocator.free(allocator.allocate(each.allocates.front().bytes));
      const double bytes = process_memory(role, device, with(Framework::pytorch)).bytes;
      CHECK(bytes == approx(fixed * mib + allocator.most_reserved_bytes()));
      (bytes < process_memory(role, card(), with(Framework::pytorch)).bytes ? full : roomy) += 1;
    }
  }
  CHECK(full > 20);
  CHECK(roomy > 20);
}

TEST_CASE("process memory: what sends between operations does not matter, whether figures are kept or not") {
  int different = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<PlanOp> ops;
    for (int i = 0; i < 40; ++i) {
      const double m = 1 + static_cast<double>(random() % 300) / 10;
      ops.push_back(random() % 2 == 0 ? op({m, 2 * m}, {m}) : op({m}, {m}));
    }
    Role apart;  // the same operations, each in a task of its own
    apart.members = {0};
    for (const PlanOp& each : ops) {
      Task task;
      task.ops = {each};
      apart.program.push_back(std::move(task));
    }
    const double together = process_memory(role_of(ops), card(), with(Framework::pytorch)).bytes;
    CHECK(process_memory(apart, card(), with(Framework::pytorch)).bytes == together);
    ops.front().allocates.front().bytes += 700 * mib;  // one request differs
    ops.front().frees.front().bytes += 700 * mib;
    const double other = process_memory(role_of(ops), card(), with(Framework::pytorch)).bytes;
    different += other != together ? 1 : 0;
    const WithoutMemos without;
    CHECK(process_memory(apart, card(), with(Framework::pytorch)).bytes == together);
    CHECK(process_memory(role_of(ops), card(), with(Framework::pytorch)).bytes == other);
  }
  CHECK(different > 5);
}

TEST_CASE("process memory: workspaces of convolutions") {
  const auto bytes = [](Phase phase, std::int64_t kernel, Precision precision) {
    PlanOp conv{"conv", Work{}, 2, {}, {}};
    conv.work.kind = KernelKind::convolution;
    conv.work.phase = phase;
    conv.work.kernel_h = conv.work.kernel_w = kernel;
    conv.work.stride = conv.work.groups = 1;
    conv.work.bytes_per_image = 100 * mib;
    return process_memory(role_of({conv}), card(), with(Framework::pytorch, precision)).bytes / mib -
           fixed_mib(Framework::pytorch);
  };
  // 6x6 values for a tile of 4x4.
  CHECK(bytes(Phase::weight_gradient, 3, Precision::fp32) == approx(450));
  CHECK(bytes(Phase::weight_gradient, 1, Precision::fp32) == 0);
  CHECK(bytes(Phase::forward, 3, Precision::fp32) == 0);
  CHECK(bytes(Phase::forward, 3, Precision::fp16) == approx(200));
}

TEST_CASE("process memory: collectives bring NCCL's buffers and the buckets") {
  Role role = role_of({});
  role.resident_bytes[static_cast<std::size_t>(MemoryClass::gradients)] = 100 * mib;
  const double alone = process_memory(role, card(), with(Framework::pytorch)).bytes;
  Task collective;
  collective.kind = Task::Kind::collective;
  role.program.push_back(collective);
  CHECK(process_memory(role, card(), with(Framework::pytorch)).bytes - alone == approx((200 + 100) * mib));
}

TEST_CASE("process memory: a device that names its own reserve has none but the ledger's peak") {
  const Role role = role_of({op({11, 0.5}, {}), op({}, {11, 0.5})});
  DeviceType own = card();
  own.framework_reserves = false;
  CHECK(process_memory(role, own, with(Framework::pytorch)).bytes == peak_memory(role).bytes);
}

// SPDX-License-Identifier: MIT
#include "sim/plan/process_memory.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "models/caching_allocator.h"
#include "sim/plan/ledger.h"
#include "sim/plan/program_key.h"

namespace convoy::inline plans {
namespace {

constexpr double mib = 1024 * 1024;

/// Context and the kernels that it loads, a multiprocessor: the driver keeps stacks and queues for every
/// thread that a multiprocessor can hold. results/published/process_memory.csv, rows `context`:
///   PyTorch 1: 1007 MiB on a Titan V (80 multiprocessors) and 879 on an RTX 2080 Ti (68) with CUDA 10,
///   1488 on an RTX 3090 (82) and 1823 on an A100 (108) with CUDA 11: 12.6, 12.9, 18.1, 16.9 MiB each. CUDA
///   10 knows no GPU after Turing, so Ampere and later take CUDA 11's 17.5. PyTorch 2: 1461 MiB on an
///   A100, 13.5 MiB each. MXNet: 350 MiB on a Titan X (Maxwell, 24), fitted to ResNet-50 in
///   results/published/memory.yaml.
double context_bytes(const DeviceType& device, Framework framework) {
  const std::vector<std::string>& names = generation_names();
  const auto age = [&](const std::string& name) { return std::find(names.begin(), names.end(), name); };
  const bool cuda11 = age(device.generation) >= age("ampere");
  switch (framework) {
    case Framework::pytorch:
      return 13.5 * mib * device.sms;
    case Framework::pytorch1:
      return (cuda11 ? 17.5 : 12.7) * mib * device.sms;
    default:
      return 350.0 / 24 * mib * device.sms;
  }
}

/// cuDNN's and cuBLAS's handles and kernels, which load with the first layers: fitted to MobileNet-v2 and
/// EfficientNet-B0 on the A100 (results/published/memory.yaml, table nvidia-smi).
constexpr double library_bytes = 320 * mib;

/// NCCL's buffers of its channels: fitted to ResNet-50 in fp32 on one and on eight RTX 2080 Ti, which take
/// 296 MiB more, 98 of them the buckets (results/published/memory.yaml).
constexpr double nccl_bytes = 200 * mib;

/// Scratch memory of a convolution's kernel while it runs. Weight gradients of 3x3 convolutions in fp32 and
/// tf32 take the non-fused Winograd algorithm: 36 transformed values for each 4x4 tile of what they read
/// (Lavin and Gray, arXiv:1509.09308, section 4). Tensor cores read channels last: fp16 and bf16 tensors with
/// channels first are turned around into a copy before the kernel, and its result after it.
double workspace_bytes(const PlanOp& op, Precision precision) {
  const Work& work = op.work;
  if (work.kind != KernelKind::convolution || work.phase == Phase::update) return 0;
  if (precision == Precision::fp16 || precision == Precision::bf16) return work.bytes_per_image * op.images;
  constexpr double transformed = 36.0 / 16;
  const bool winograd = work.phase == Phase::weight_gradient && work.kernel_h == 3 && work.kernel_w == 3 &&
                        work.stride == 1 && work.groups == 1;
  return winograd ? transformed * work.bytes_per_image * op.images : 0;
}

/// The tensors of a role in PyTorch's allocator.
class TensorStore {
 public:
  explicit TensorStore(double capacity_bytes) : allocator_(capacity_bytes) {}

  void allocate(const MemoryDelta& delta) {
    live_[static_cast<std::size_t>(delta.memory_class)][delta.bytes].push_back(
        allocator_.allocate(delta.bytes));
  }

  /// A plan names a buffer that it frees by class and size; of equal ones the latest goes. Where it frees
  /// several at once that have been allocated apart (or the other way round), the largest that are not larger
  /// go, and the rest of what is freed is kept back.
  void free(const MemoryDelta& delta) {
    auto& sizes = live_[static_cast<std::size_t>(delta.memory_class)];
    double bytes = delta.bytes;
    while (bytes >= 1 && !sizes.empty()) {
      auto found = sizes.upper_bound(bytes);
      if (found == sizes.begin()) {
        const double rest = found->first - bytes;
        release(sizes, found);
        return allocate({delta.memory_class, rest});
      }
      --found;
      bytes -= found->first;
      release(sizes, found);
    }
  }

  void free_all() {
    for (auto& sizes : live_)
      while (!sizes.empty()) release(sizes, sizes.begin());
  }

  CachingAllocator& allocator() { return allocator_; }

 private:
  using Sizes = std::map<double, std::vector<CachingAllocator::Handle>>;

  void release(Sizes& sizes, Sizes::iterator entry) {
    allocator_.free(entry->second.back());
    entry->second.pop_back();
    if (entry->second.empty()) sizes.erase(entry);
  }

  CachingAllocator allocator_;
  std::array<Sizes, memory_class_count> live_;
};

/// What a step asks of the allocator, in order.
struct Request {
  enum class Kind : std::uint8_t { allocate, scratch, free } kind = Kind::allocate;
  MemoryClass memory_class = MemoryClass::workspace;
  double bytes = 0;
  bool operator==(const Request&) const = default;
};

std::vector<Request> requests_of(const Role& role, Precision precision) {
  std::vector<Request> requests;
  for (const Task& task : role.program)
    for (const PlanOp& op : task.ops) {
      for (const MemoryDelta& delta : op.allocates)
        requests.push_back({Request::Kind::allocate, delta.memory_class, delta.bytes});
      if (const double workspace = workspace_bytes(op, precision); workspace > 0)
        requests.push_back({Request::Kind::scratch, MemoryClass::workspace, workspace});
      for (const MemoryDelta& delta : op.frees)
        requests.push_back({Request::Kind::free, delta.memory_class, delta.bytes});
    }
  return requests;
}

/// All that the allocator sees of a process. Programs that differ only in what they send, as with other sizes
/// of buckets, have it in common.
struct AllocatorKey {
  std::vector<double> resident_bytes;
  std::vector<Request> requests;
  double capacity_bytes = 0;

  bool operator==(const AllocatorKey&) const = default;
  std::size_t hash() const {
    std::size_t hash = std::hash<double>()(capacity_bytes);
    for (const Request& request : requests) hash = hash_with(hash, std::hash<double>()(request.bytes));
    return hash;
  }
  std::size_t weight() const { return 1 + requests.size(); }
};

double most_reserved_bytes(const AllocatorKey& of) {
  TensorStore store(of.capacity_bytes);
  for (const double bytes : of.resident_bytes) store.allocator().allocate(bytes);
  for (int step = 0; step < 2; ++step) {
    for (const auto& [kind, memory_class, bytes] : of.requests)
      if (kind == Request::Kind::allocate)
        store.allocate({memory_class, bytes});
      else if (kind == Request::Kind::free)
        store.free({memory_class, bytes});
      else
        store.allocator().free(store.allocator().allocate(bytes));
    store.free_all();
  }
  return store.allocator().most_reserved_bytes();
}

double usable_bytes(const DeviceType& device) {
  return device.usable_memory_bytes > 0 ? device.usable_memory_bytes : device.memory_bytes;
}

/// @param fixed_bytes of the process beside the allocator's
double pytorch_bytes(const Role& role, const DeviceType& device, Precision precision, double fixed_bytes) {
  constexpr std::size_t most_kept_requests = 4 * most_kept_operations;
  static thread_local Memo<AllocatorKey, double> memo(most_kept_requests);
  AllocatorKey key{{}, requests_of(role, precision), std::numeric_limits<double>::infinity()};
  for (std::size_t c = 0; c < memory_class_count; ++c)
    if (role.resident_bytes[c] > 0 && static_cast<MemoryClass>(c) != MemoryClass::reserved)
      key.resident_bytes.push_back(role.resident_bytes[c]);
  // The allocator looks at the device's size only where it would reserve more: devices with room have one answer.
  const double room_bytes = usable_bytes(device) - fixed_bytes, wanted_bytes = memo.of(key, most_reserved_bytes);
  if (wanted_bytes <= room_bytes) return fixed_bytes + wanted_bytes;
  key.capacity_bytes = room_bytes;
  return fixed_bytes + memo.of(std::move(key), most_reserved_bytes);
}

bool takes_part_in_collectives(const Role& role) {
  return std::any_of(role.program.begin(), role.program.end(),
                     [](const Task& task) { return task.kind == Task::Kind::collective; });
}

}  // namespace

bool has_process(const DeviceType& device) { return device.framework_reserves && device.sms > 0; }

namespace {

ProcessMemory process_of(const Role& role, const DeviceType& device, const TrainingOptions& options) {
  const double usable = usable_bytes(device);
  if (!has_process(device)) return {peak_memory(role).bytes, usable};
  const auto resident = [&](MemoryClass c) { return role.resident_bytes[static_cast<std::size_t>(c)]; };
  double fixed_bytes = context_bytes(device, options.framework);
  if (options.framework != Framework::pytorch && options.framework != Framework::pytorch1)
    return {fixed_bytes + peak_memory(role).bytes - resident(MemoryClass::reserved), usable};
  fixed_bytes += library_bytes;
  if (takes_part_in_collectives(role)) fixed_bytes += nccl_bytes + resident(MemoryClass::gradients);
  return {pytorch_bytes(role, device, options.precision, fixed_bytes), usable};
}

struct ProcessKey : ProgramKey {
  std::array<double, memory_class_count> resident_bytes;
  DeviceType device;
  TrainingOptions options;
  bool operator==(const ProcessKey&) const = default;
};

}  // namespace

ProcessMemory process_memory(const Role& role, const DeviceType& device, const TrainingOptions& options) {
  static thread_local ProgramMemo<ProcessKey, ProcessMemory> memo;
  return memo.of({{role.program}, role.resident_bytes, device, options}, [](const ProcessKey& of) {
    Role program;
    program.program = of.program;
    program.resident_bytes = of.resident_bytes;
    return process_of(program, of.device, of.options);
  });
}

std::vector<ProcessMemory> process_memories(const Plan& plan, const Machine& machine,
                                            const TrainingOptions& options,
                                            const std::function<double(std::size_t)>& peak_bytes) {
  std::vector<ProcessMemory> memories(machine.devices.size());
  for (std::size_t d = 0; d < memories.size(); ++d) {
    const DeviceType& device = machine.device_types[machine.devices[d].type];
    memories[d] = {has_process(device) ? 0 : peak_bytes(d), usable_bytes(device)};
  }
  for (const Role& role : plan.roles) {
    std::vector<std::optional<ProcessMemory>> of_type(machine.device_types.size());
    for (const EndpointId d : role.members) {
      if (d >= machine.devices.size()) break;  // hosts, which have no devices' memory
      const std::uint32_t type = machine.devices[d].type;
      if (!has_process(machine.device_types[type])) continue;
      if (!of_type[type]) of_type[type] = process_memory(role, machine.device_types[type], options);
      memories[d] = *of_type[type];
    }
  }
  return memories;
}

}  // namespace convoy::plans

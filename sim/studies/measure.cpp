// SPDX-License-Identifier: MIT
#include "sim/studies/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "models/model.h"
#include "sim/costs/cost_model.h"

namespace convoy::inline studies {
namespace {

bool is_torch(Framework framework) {
  return framework == Framework::pytorch || framework == Framework::pytorch1;
}

/// Images of a step on one device, whole.
std::int64_t images_of_one(const PreparedRun& run) {
  return std::max<std::int64_t>(1, std::llround(images_of_device(run)));
}

/// Whether torchvision.models.get_model makes the network that the zoo has by this name.
bool in_torchvision(const std::string& name) {
  static const std::set<std::string> elsewhere{"cifar_two_conv",
                                               "dcgan_discriminator",
                                               "dcgan_generator",
                                               "inception_v4",
                                               "lenet5",
                                               "ssd300_vgg16",
                                               "unet",
                                               "vgg16_cifar10",
                                               "regnet_x_12gf",
                                               "regnet_x_200mf",
                                               "regnet_x_600mf",
                                               "regnet_x_6_4gf",
                                               "regnet_y_12gf"};
  const std::vector<std::string> zoo = zoo_names();
  return std::binary_search(zoo.begin(), zoo.end(), name) && !elsewhere.contains(name);
}

/// Whether torch_loop() can measure a run's network on its first device.
bool can_paste(const PreparedRun& run) {
  const DeviceType& type = run.machine.device_types[run.machine.devices.front().type];
  return is_torch(run.graph->options.framework) && !type.kind->in_process &&
         in_torchvision(run.graph->model.name);
}

std::string torch_optimizer(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return "SGD(net.parameters(), lr=0.01)";
    case Optimizer::momentum:
      return "SGD(net.parameters(), lr=0.01, momentum=0.9)";
    case Optimizer::adam:
      return "Adam(net.parameters())";
  }
  return {};
}

/// A loop of training steps in PyTorch; `result` prints what is wanted of `seconds`, the time of a step.
/// @pre can_paste(run)
std::string torch_loop(const PreparedRun& run, std::int64_t batch, const std::string& result) {
  const TrainingOptions& options = run.graph->options;
  const bool half = options.precision == Precision::fp16 || options.precision == Precision::bf16;
  const std::string dtype = options.precision == Precision::fp16 ? "float16" : "bfloat16";
  return fmt::format(
      "python3 - <<'END'\n"
      "import time, torch, torchvision\n"
      "torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = {}\n"
      "net = torchvision.models.get_model('{}').cuda().to(memory_format=torch.{})\n"
      "opt = torch.optim.{}\n"
      "{}"
      "x, y = torch.randn({}, {}, device='cuda'), torch.randint(10, ({},), device='cuda')\n"
      "def step():\n"
      "    with torch.autocast('cuda', torch.{}, enabled={}):\n"
      "        out = net(x); out = getattr(out, 'logits', out)\n"
      "        loss = torch.nn.functional.cross_entropy(out, y)\n"
      "    opt.zero_grad(); loss.backward(); opt.step()\n"
      "for i in range(70):\n"
      "    if i == 20: torch.cuda.synchronize(); start = time.time()\n"
      "    step()\n"
      "torch.cuda.synchronize(); seconds = (time.time() - start) / 50\n"
      "{}\n"
      "END",
      options.precision == Precision::tf32 ? "True" : "False", run.graph->model.name,
      options.layout == Layout::nhwc ? "channels_last" : "contiguous_format",
      torch_optimizer(options.optimizer),
      options.execution == ExecutionMode::compiled ? "net = torch.compile(net)\n" : "", batch,
      fmt::join(run.graph->model.input, ", "), batch, dtype, half ? "True" : "False", result);
}

std::string measure_step(const PreparedRun& run) {
  if (run.cost.is_anchored())
    return fmt::format(
        "measure the step of the anchor again, with {} images, on the machine that will be used",
        images_of_one(run));
  const std::int64_t batch = images_of_one(run);
  const TrainingOptions& options = run.graph->options;
  if (can_paste(run))
    return torch_loop(
        run, batch,
        fmt::format("print('anchor: {{images_per_s: %.1f, batch: {}}}' % ({} / seconds))", batch, batch));
  return fmt::format(
      "train {} with {} on one device alone, {} images a step, {}, images made up: seconds of 50 steps after "
      "the first "
      "20; then anchor: {{images_per_s: {} x 50 / seconds, batch: {}}}",
      run.graph->model.name, to_string(options.framework), batch, to_string(options.precision), batch, batch);
}

std::string measure_issue(const PreparedRun& run) {
  const double step_s = step_time_s(*run.graph, 1, run.cost, run.machine, run.machine.devices.front());
  if (can_paste(run))
    return "steps of one image wait for the host:\n" +
           torch_loop(run, 1,
                      fmt::format("print('host: {{issue_factor: %.2f}}' % (seconds / {:.6g}))", step_s));
  return fmt::format(
      "time 50 steps of one image on one device, which wait for the host; issue_factor is seconds of a step "
      "/ {:.6g}",
      step_s);
}

std::string measure_messages(const PreparedRun& run) {
  const std::size_t hosts = run.machine.hosts.size();
  const std::uint32_t devices = run.machine.hosts.front().device_count;
  const std::string ranks =
      hosts > 1 ? fmt::format("mpirun -np {} -npernode 1 all_reduce_perf -g {}", hosts, std::max(1U, devices))
                : fmt::format("all_reduce_perf -g {}", devices);
  return fmt::format(
      "{} -b 64K -e 512M -f 2 > all_reduce.log && convoy calibrate all_reduce.log\n"
      "(nccl-tests; the line that it prints holds what software adds: write it with protocol: ideal)",
      ranks);
}

std::string measure_written(const std::string& path) {
  const auto about = [&](const char* word) { return path.find(word) != std::string::npos; };
  if (about("storage"))
    return "fio --name=read --rw=read --bs=1M --size=8G --numjobs=4 --direct=1 --group_reporting "
           "--directory=DATA";
  if (about("fabric.bandwidth") || about("nic_bandwidth"))
    return "iperf3 -s on one host, iperf3 -c THAT-HOST -P 8 -t 20 on another";
  if (about("latency")) return "sockperf ping-pong -i THAT-HOST (half of it is one way), or ib_write_lat";
  return fmt::format("measure {} and write it with the spread that is left", path);
}

std::string measure_loader(const std::string& library) {
  if (library != "pil" && library != "pillow_simd")
    return "read images with the loader alone, no training: images/s by the cores that it keeps busy";
  return "DATA is a folder of images by class:\n"
         "python3 - <<'END'\n"
         "import time, torch, torchvision as tv, torchvision.transforms as T\n"
         "change = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor()])\n"
         "files = tv.datasets.ImageFolder('DATA', change); workers = 2\n"
         "start = images = 0\n"
         "for i, (x, y) in enumerate(torch.utils.data.DataLoader(files, 64, shuffle=True, "
         "num_workers=workers)):\n"
         "    if i == 10: start = time.time()\n"
         "    if i > 10: images += len(x)\n"
         "    if i == 60: break\n"
         "print('core_images_per_s: %.1f' % (images / (time.time() - start) / workers))\n"
         "END";
}

}  // namespace

std::string measurement_of(const PreparedRun& run, const Doubt& doubt) {
  switch (doubt.moves) {
    case Doubt::Moves::computing:
      return measure_step(run);
    case Doubt::Moves::issuing:
      return measure_issue(run);
    case Doubt::Moves::messages:
      return measure_messages(run);
    case Doubt::Moves::several_devices:
      return "time 50 steps of all devices, and put the row beside its prediction: convoy validate ROWS.csv "
             "(no key "
             "takes it)";
    case Doubt::Moves::protocol:
      return "NCCL_DEBUG=INFO of any run prints NET/Socket (protocol: tcp) or NET/IB (protocol: rdma); "
             "ibv_devices "
             "lists what a host has";
    case Doubt::Moves::network:
      return measure_written("fabric.bandwidth");
    case Doubt::Moves::loader:
      return measure_loader(doubt.library);
    case Doubt::Moves::written:
      return measure_written(doubt.key);
  }
  return {};
}

}  // namespace convoy::studies

// SPDX-License-Identifier: MIT
// Layers split by rows and columns.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sim/base/input_error.h"
#include "sim/lowering/halo.h"
#include "tests/laws/random_experiment.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// A convolution or pooling layer of random shape, and its input's size.
struct RandomWindow {
  Size2 input, kernel, stride, padding, dilation;
  bool is_pool;

  explicit RandomWindow(Dice& dice) : is_pool(dice.coin()) {
    input = {dice.between(9, 25), dice.between(9, 25)};
    kernel = {dice.between(1, 5), dice.between(1, 5)};
    stride = {dice.between(1, 3), dice.between(1, 3)};
    padding = {dice.between(0, static_cast<int>(kernel.h / 2)),
               dice.between(0, static_cast<int>(kernel.w / 2))};
    dilation = is_pool ? Size2{1, 1} : Size2{dice.between(1, 2), dice.between(1, 2)};
  }
  std::string text() const {
    std::string keys = fmt::format("kernel: [{}, {}], stride: [{}, {}], padding: [{}, {}]", kernel.h,
                                   kernel.w, stride.h, stride.w, padding.h, padding.w);
    keys += is_pool
                ? ", kind: max_pool"
                : fmt::format(", kind: conv2d, out_channels: 1, dilation: [{}, {}]", dilation.h, dilation.w);
    return fmt::format("{{name: m, input: [1, {}, {}], layers: [{{name: l, {}}}]}}", input.h, input.w, keys);
  }
};

/// Which part of so many consecutive ones an index belongs to; the first parts have one more.
std::int64_t part_of(std::int64_t index, std::int64_t size, std::int64_t parts) {
  std::int64_t end = 0;
  for (std::int64_t part = 0;; ++part)
    if (index < (end += size / parts + (part < size % parts ? 1 : 0))) return part;
}

using Position = std::pair<std::int64_t, std::int64_t>;

/// Positions of the input that a device's positions of the output are computed from, one by one.
std::set<Position> receptive_field(const RandomWindow& w, const Shape& out, Size2 grid, std::int64_t device) {
  std::set<Position> field;
  for (std::int64_t y = 0; y < out[1]; ++y)
    for (std::int64_t x = 0; x < out[2]; ++x) {
      if (part_of(y, out[1], grid.h) * grid.w + part_of(x, out[2], grid.w) != device) continue;
      for (std::int64_t i = 0; i < w.kernel.h; ++i)
        for (std::int64_t j = 0; j < w.kernel.w; ++j) {
          const std::int64_t row = y * w.stride.h - w.padding.h + i * w.dilation.h;
          const std::int64_t column = x * w.stride.w - w.padding.w + j * w.dilation.w;
          if (row >= 0 && row < w.input.h && column >= 0 && column < w.input.w) field.insert({row, column});
        }
    }
  return field;
}

std::string grid_error(const std::string& layout, int devices) {
  try {
    Experiment::with_global_batch("alexnet", star(devices, "1GB/s", "0us"),
                                  "{kind: hybrid, conv: " + layout + "}", 8);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("grids: devices get the positions that their outputs are computed from, found one by one") {
  int compared = 0, exact = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Dice dice(seed);
    const RandomWindow window(dice);
    const Size2 grid{dice.between(1, 3), dice.between(1, 3)};
    CAPTURE(seed);
    CAPTURE(window.text());
    Layer layer;
    try {
      layer = read_model(parse_yaml(window.text(), "m")).layers.front();
    } catch (const InputError&) {  // a kernel that is larger than its input
      continue;
    }
    if (layer.output[1] < grid.h || layer.output[2] < grid.w) continue;
    const auto rows = static_cast<std::size_t>(grid.h), columns = static_cast<std::size_t>(grid.w);
    const Sharding in = split_on_grid(window.input.h, window.input.w, rows, columns);
    const Sharding out = split_on_grid(layer.output[1], layer.output[2], rows, columns);
    const Halo got = halo(layer, *in.grid, *out.grid);
    for (std::int64_t reader = 0; reader < grid.h * grid.w; ++reader) {
      // With whole rows and columns of what it has: these, where strides pass over some of its own.
      std::set<std::int64_t> ys, xs;
      const std::set<Position> field = receptive_field(window, layer.output, grid, reader);
      for (const auto& [y, x] : field) ys.insert(y), xs.insert(x);
      const std::size_t reached = ys.size() * xs.size();
      std::vector<double> from(rows * columns, 0.0);
      std::size_t own = 0, others = 0;
      for (std::int64_t y = 0; y < window.input.h; ++y)
        for (std::int64_t x = 0; x < window.input.w; ++x) {
          const std::int64_t owner =
              part_of(y, window.input.h, grid.h) * grid.w + part_of(x, window.input.w, grid.w);
          const bool in_rows = ys.count(y) > 0 || part_of(y, window.input.h, grid.h) == reader / grid.w;
          const bool in_columns = xs.count(x) > 0 || part_of(x, window.input.w, grid.w) == reader % grid.w;
          if (owner != reader && in_rows && in_columns) from[static_cast<std::size_t>(owner)] += 1;
          if (owner == reader) own += field.count({y, x}) == 0;
          if (owner != reader) others += field.count({y, x});
        }
      CHECK(reached == field.size());
      double sum = 0;
      for (std::size_t owner = 0; owner < from.size(); ++owner) {
        CHECK(got.positions[owner][static_cast<std::size_t>(reader)] == from[owner]);
        sum += from[owner];
      }
      CHECK(static_cast<double>(got.counts[static_cast<std::size_t>(reader)]) == sum);
      CHECK(sum >= static_cast<double>(others));
      if (own == 0) {  // it reads all that it has: then exactly what it reads is sent
        CHECK(sum == static_cast<double>(others));
        ++exact;
      }
    }
    ++compared;
  }
  CHECK(compared >= 200);
  CHECK(exact >= 200);
}

TEST_CASE("grids: halos by the closed form, corners included") {
  // Reach q on R x C devices of an image H x W: across each of R - 1 horizontal borders 2 q rows of all W
  // columns, across each vertical one 2 q columns of H, and at each crossing of the two four corners of q x
  // q.
  for (const int kernel : {1, 3, 5})
    for (const Size2 grid : {Size2{2, 2}, Size2{2, 3}, Size2{3, 4}, Size2{1, 4}}) {
      const std::int64_t q = kernel / 2, h = 36, w = 48;
      const Layer layer =
          read_model(
              parse_yaml(fmt::format("{{name: m, input: [1, {}, {}], layers: [{{name: l, kind: conv2d, "
                                     "out_channels: 1, kernel: {}, padding: {}}}]}}",
                                     h, w, kernel, q),
                         "m"))
              .layers.front();
      const Sharding split =
          split_on_grid(h, w, static_cast<std::size_t>(grid.h), static_cast<std::size_t>(grid.w));
      std::int64_t sum = 0;
      for (const std::int64_t count : halo(layer, *split.grid, *split.grid).counts) sum += count;
      CHECK(sum ==
            2 * q * (grid.h - 1) * w + 2 * q * (grid.w - 1) * h + 4 * q * q * (grid.h - 1) * (grid.w - 1));
    }
}

TEST_CASE("grids: half the border is sent where four devices have quarters and not strips") {
  // 64 x 64 positions of 8 channels, 16 images on 4 devices: strips have 3 borders of 64, quarters 2, and
  // four corners. 3x3: 2 rows a border. The gradients go back the same ways.
  const std::string model =
      "{name: two, input: [3, 64, 64], layers: [{name: conv1, kind: conv2d, out_channels: 8, kernel: 3, "
      "padding: "
      "1}, {name: conv2, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}]}";
  const auto halos = [&](const std::string& layout) {
    const Experiment experiment(model, star(4, "1GB/s", "1us"), "{kind: hybrid, conv: " + layout + "}", 4);
    const double weights = (3 * 9 + 1 + 8 * 9 + 1) * 8;
    return experiment.run().comm_bytes - 2 * 3 * 4 * weights;
  };
  const double position = 16 * 8 * 4;  // bytes of all images
  CHECK(halos("height") == approx(2 * 3 * 2 * 64 * position));
  CHECK(halos("{height: 2, width: 2}") == approx(2 * (2 * 2 * 64 + 4) * position));
}

TEST_CASE("grids: with one column they are rows, with one row columns") {
  for (const std::string model : {"alexnet", "resnet18", "unet"})
    for (const bool rows : {true, false}) {
      const std::string grid = rows ? "{height: 4, width: 1}" : "{height: 1, width: 4}";
      const auto run = [&](const std::string& layout) {
        return Experiment(model, star(4, "1GB/s", "1us"), "{kind: hybrid, conv: " + layout + "}", 2).run();
      };
      const ReplayResult strips = run(rows ? "height" : "width"), result = run(grid);
      CHECK(result.step_time_s == strips.step_time_s);
      CHECK(result.comm_bytes == strips.comm_bytes);
      for (std::size_t d = 0; d < 4; ++d)
        CHECK(result.endpoints[d].peak_memory_bytes == strips.endpoints[d].peak_memory_bytes);
    }
}

TEST_CASE("grids: strips become quarters by sending what changes its owner") {
  // 8 x 8 in rows of 2 becomes quarters: device 0 keeps 2 x 4 positions and gets 2 x 4 of device 1; its other
  // half-rows go to device 1, and so on: each of four keeps 8 or none.
  const Sharding strips = split_on_grid(8, 8, 4, 1), quarters = split_on_grid(8, 8, 2, 2);
  double sent = 0;
  for (const Round& round : split_anew(strips, quarters, 4))
    round.for_each_message([&](auto, auto, double fraction) { sent += fraction; });
  // Device 0 has rows 0, 1 and keeps their left half; 1 has rows 2, 3 and keeps the right; 2 and 3 likewise.
  CHECK(sent == approx(0.5));
  CHECK(!crosses(strips, quarters));
  CHECK(crosses(strips, split_on_grid(8, 8, 1, 4)));
  CHECK(!same(strips, quarters));
  CHECK(same(quarters, split_on_grid(8, 8, 2, 2)));
}

TEST_CASE("grids: layers that follow keep it, and tell it") {
  const Experiment experiment("resnet18", star(4, "1GB/s", "1us"),
                              "{kind: hybrid, conv: {height: 2, width: 2}, fc: replicated}", 2);
  const std::vector<LayerGroup>& layouts = experiment.report().layouts;
  REQUIRE(layouts.size() == 2);
  CHECK(layouts[0].layout == "height 2 x width 2");
  CHECK(layouts[0].layers.size() > 60);  // convolutions, normalizations, sums, pools
  CHECK(layouts[1].layout == "replicated");
  CHECK(read_strategy(parse_yaml("{kind: hybrid, conv: {height: 2, width: 2}}", "s"))->label() ==
        "hybrid: conv height 2 x width 2");
}

TEST_CASE("grids: what does not fit is an error with its place") {
  CHECK(grid_error("{height: 2, width: 3}", 8) ==
        "strategy:1:22: strategy.conv: a grid of 2 x 3 parts is not one of the 8 devices of a group; their "
        "product must be 8, such as {height: 2, width: 4}");
  CHECK(grid_error("{height: 8, width: 1}", 8) ==
        "strategy:1:22: strategy.conv: layer 'pool5' has 6 rows, too few for 8 devices");
  CHECK(grid_error("{height: 2}", 2) == "strategy:1:22: strategy.conv: key 'width' is missing");
  CHECK(grid_error("{height: 2, width: 0}", 2).starts_with("strategy:1:41: strategy.conv.width: "));
  CHECK(grid_error("{height: 2, width: 1, depth: 1}", 2).find("unknown key") != std::string::npos);
}

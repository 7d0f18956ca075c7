// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "sim/lowering/halo.h"
#include "sim/lowering/sharding.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// Bytes, as a share of the tensor, that each device gets in the rounds.
std::vector<double> received(const std::vector<Round>& rounds, std::size_t devices) {
  std::vector<double> sum(devices, 0.0);
  for (const Round& round : rounds)
    round.for_each_message(
        [&](auto, std::uint32_t to, double fraction) { sum[to] += fraction * round.repeat; });
  return sum;
}

Layer layer_of(const std::string& keys, const std::string& input) {
  return read_model(
             parse_yaml(fmt::format("{{name: m, input: {}, layers: [{{name: l, {}}}]}}", input, keys), "m"))
      .layers.front();
}

using Rows = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("sharding: what does not divide gives the first devices one more") {
  CHECK(even_shards(10, 4).counts == Rows{3, 3, 2, 2});
  CHECK(even_shards(10, 4).owner == std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1, 2, 2, 3, 3});
  CHECK(even_images(7, 3).counts == Rows{3, 2, 2});
  CHECK(even_shards(8, 4).share(3) == 0.25);
}

TEST_CASE("sharding: in a ring all-gather each device gets what others have, whatever the shares") {
  for (const std::int64_t size : {12, 13, 15}) {
    const Shards shards = even_shards(size, 4);
    for (const std::vector<std::vector<std::uint32_t>>& rings :
         {std::vector<std::vector<std::uint32_t>>{{0, 1, 2, 3}}, {{0, 2, 1, 3}, {3, 1, 2, 0}}}) {
      const std::vector<double> got = received(ring_all_gather(rings, shards), 4);
      const std::vector<double> sums = received(ring_reduce_scatter(rings, shards), 4);
      double gathered = 0, scattered = 0;
      for (std::size_t d = 0; d < 4; ++d) {
        CHECK(got[d] == approx(1 - shards.share(d)));
        gathered += got[d];
        scattered += sums[d];
      }
      CHECK(gathered == approx(3));  // (n - 1) of the tensor
      CHECK(scattered == approx(3));
    }
  }
}

TEST_CASE("sharding: of equal shares a ring is one round, repeated") {
  const std::vector<Round> rounds = ring_all_gather({{0, 1, 2, 3}}, even_shards(8, 4));
  REQUIRE(rounds.size() == 1);
  CHECK(rounds[0].repeat == 3);
  CHECK(rounds[0].fractions == std::vector<double>{0.25});
  CHECK(rounds[0].pairs ==
        std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 1}, {1, 2}, {2, 3}, {3, 0}});
}

TEST_CASE("sharding: every share of a reduce-scatter goes once through all devices and ends at its owner") {
  // Shares of 3, 2 and 2 of 7: the messages of each round, by hand. Round 0: device i sends what ends at i
  // - 1.
  const std::vector<Round> rounds = ring_reduce_scatter({{0, 1, 2}}, even_shards(7, 3));
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[0].fractions == std::vector<double>{2.0 / 7, 3.0 / 7, 2.0 / 7});  // of 2, 0, 1
  CHECK(rounds[1].fractions ==
        std::vector<double>{2.0 / 7, 2.0 / 7, 3.0 / 7});  // of 1, 2, 0, each to its owner
}

TEST_CASE("sharding: shares that rotate are the rounds of the ring, and carry as much in the mean") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::size_t devices = 2 + random() % 7;
    std::vector<std::uint32_t> owner, ring(devices);
    for (std::size_t index = 0, size = 1 + random() % 20; index < size; ++index)
      owner.push_back(static_cast<std::uint32_t>(random() % devices));
    owner.push_back(owner.front());  // seldom equal shares
    const Shards shards = shards_of(owner, devices);
    std::iota(ring.begin(), ring.end(), 0u);
    std::vector<std::vector<std::uint32_t>> rings;
    for (std::size_t count = 1 + random() % 3; rings.size() < count;) {
      std::rotate(ring.begin(), ring.begin() + 1, ring.end());
      rings.push_back(ring);
      std::swap(ring[random() % devices], ring[random() % devices]);
    }
    for (auto* make : {&ring_all_gather, &ring_reduce_scatter}) {
      const std::vector<Round> listed = make(rings, shards, false), rotating = make(rings, shards, true);
      if (listed.size() == 1 && devices > 2) continue;  // equal shares
      REQUIRE(rotating.size() == 1);
      if (!rotating[0].rotation) continue;
      std::vector<Round> rounds = rotating[0].listed();
      REQUIRE(rounds.size() == listed.size());
      for (std::size_t r = 0; r < rounds.size(); ++r) CHECK(rounds[r] == listed[r]);
      const std::vector<double> got = received(rotating, devices), wanted = received(listed, devices);
      for (std::size_t d = 0; d < devices; ++d) CHECK(std::abs(got[d] - wanted[d]) < 1e-12);
      CHECK(rotating[0].largest_fraction() ==
            std::ranges::max(listed, {}, &Round::largest_fraction).largest_fraction());
    }
  }
}

TEST_CASE("sharding: changes of split move what changes its owner") {
  const Sharding images{Sharding::Over::batch, std::make_shared<Shards>(even_images(6, 2))};
  const Sharding channels{Sharding::Over::channel, std::make_shared<Shards>(even_shards(3, 2))};
  const auto sent = [](const std::vector<Round>& rounds) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> result;
    REQUIRE(rounds.size() == 1);
    rounds[0].for_each_message([&](auto from, auto to, double part) { result[{from, to}] = part; });
    return result;
  };
  auto swapped = sent(split_anew(images, channels, 2));
  CHECK(swapped.size() == 2);
  CHECK(swapped[{0, 1}] == approx(0.5 * 1.0 / 3));  // half the images of channel 2
  CHECK(swapped[{1, 0}] == approx(0.5 * 2.0 / 3));
  const Sharding other{Sharding::Over::channel, std::make_shared<Shards>(shards_of({0, 1, 0}, 2))};
  auto same_axis = sent(split_anew(channels, other, 2));
  CHECK(same_axis.size() == 2);
  CHECK(same_axis[{0, 1}] == approx(1.0 / 3));  // channel 1
  CHECK(same_axis[{1, 0}] == approx(1.0 / 3));  // channel 2
  // Nobody has anything for anybody else: one device has all of it before and after.
  const Sharding first{Sharding::Over::channel, std::make_shared<Shards>(shards_of({0, 0}, 2))},
      images_of_first{Sharding::Over::batch, std::make_shared<Shards>(shards_of({0, 0, 0}, 2))};
  CHECK(split_anew(first, images_of_first, 2).empty());
}

TEST_CASE("windows: rows that a row of the output is made of, by hand") {
  const std::string image = "[1, 10, 10]";
  CHECK(rows_read(layer_of("kind: conv2d, out_channels: 1, kernel: 3, padding: 1", image), ImageAxis::height,
                  10, 0) == Rows{0, 1});
  CHECK(rows_read(
            layer_of("kind: conv2d, out_channels: 1, kernel: 3, stride: 2, padding: 2, dilation: 2", image),
            ImageAxis::height, 10, 2) == Rows{2, 4, 6});
  CHECK(rows_read(layer_of("kind: conv2d, out_channels: 1, kernel: [1, 5], stride: [2, 1]", image),
                  ImageAxis::width, 10, 3) == Rows{3, 4, 5, 6, 7});
  CHECK(rows_read(layer_of("kind: conv2d, out_channels: 1, kernel: [1, 5], stride: [2, 1]", image),
                  ImageAxis::height, 10, 3) == Rows{6});
  CHECK(rows_read(layer_of("kind: max_pool, kernel: 3, stride: 2, padding: 1", image), ImageAxis::height, 10,
                  4) == Rows{7, 8, 9});
  CHECK(rows_read(layer_of("kind: upsample, scale: 2", image), ImageAxis::height, 10, 7) == Rows{3});
  CHECK(
      rows_read(layer_of("kind: pad, top: 2, left: 2, bottom: 2, right: 2", image), ImageAxis::height, 10, 1)
          .empty());
  CHECK(rows_read(layer_of("kind: pad, top: 2, left: 2, bottom: 2, right: 2", image), ImageAxis::height, 10,
                  5) == Rows{3});
  CHECK(rows_read(layer_of("kind: slice, axis: 1, first: 2, last: 9, step: 3", image), ImageAxis::height, 10,
                  1) == Rows{5});
  CHECK(rows_read(layer_of("kind: slice, axis: 2, first: 2, last: 9", image), ImageAxis::height, 10, 1) ==
        Rows{1});
  CHECK(rows_read(layer_of("kind: relu", image), ImageAxis::height, 10, 5) == Rows{5});
}

TEST_CASE("windows: a transposed convolution reads where the convolution it is the transpose of writes") {
  for (const int kernel : {1, 2, 3, 4})
    for (const int stride : {1, 2, 3})
      for (const int padding : {0, 1})
        for (const int dilation : {1, 2}) {
          if (padding > dilation * (kernel - 1)) continue;
          const Layer layer = layer_of(fmt::format("kind: conv_transpose2d, out_channels: 1, kernel: {}, "
                                                   "stride: {}, padding: {}, dilation: {}",
                                                   kernel, stride, padding, dilation),
                                       "[1, 6, 6]");
          CAPTURE(kernel);
          CAPTURE(stride);
          CAPTURE(padding);
          CAPTURE(dilation);
          for (std::int64_t out = 0; out < layer.output[1]; ++out) {
            // Row i of the input is added to rows i stride - padding + t dilation of the output.
            std::set<std::int64_t> expected;
            for (std::int64_t i = 0; i < 6; ++i)
              for (int t = 0; t < kernel; ++t)
                if (i * stride - padding + t * dilation == out) expected.insert(i);
            const Rows rows = rows_read(layer, ImageAxis::height, 6, out);
            CHECK(rows == Rows(expected.begin(), expected.end()));
          }
        }
}

TEST_CASE(
    "windows: halos of a convolution that keeps the height are (k - 1)/2 rows on each side, times dilation") {
  for (const int kernel : {1, 3, 5, 7})
    for (const int dilation : {1, 2})
      for (const int devices : {2, 3, 4}) {
        const int reach = dilation * (kernel - 1) / 2;
        const Layer layer =
            layer_of(fmt::format("kind: conv2d, out_channels: 1, kernel: {}, padding: {}, dilation: {}",
                                 kernel, reach, dilation),
                     "[1, 48, 48]");
        const Sharding by_rows = split_on_grid(48, 48, static_cast<std::size_t>(devices), 1);
        const Halo rows = halo(layer, *by_rows.grid, *by_rows.grid);
        std::int64_t all = 0;
        for (const std::int64_t count : rows.counts) all += count;
        CHECK(all == 48 * 2 * (devices - 1) * reach);
        CHECK(rows.counts.front() == 48 * reach);
        CHECK(rows.counts.back() == 48 * reach);
        for (std::size_t d = 0; d + 1 < static_cast<std::size_t>(devices); ++d) {
          CHECK(rows.positions[d][d + 1] == 48 * reach);
          CHECK(rows.positions[d + 1][d] == 48 * reach);
        }
        CHECK(rows.empty() == (kernel == 1));
      }
}

TEST_CASE("windows: halos may come from further than the next device, and from one side only") {
  // 4 rows on 4 devices, kernel 5: device 0 needs rows 1 and 2, device 1 rows 0, 2, 3, and so on.
  const Layer wide = layer_of("kind: conv2d, out_channels: 1, kernel: 5, padding: 2", "[1, 4, 4]");
  const Sharding four = split_on_grid(4, 4, 4, 1);
  CHECK(halo(wide, *four.grid, *four.grid).counts == Rows{4 * 2, 4 * 3, 4 * 3, 4 * 2});
  // Kernel 2, stride 2 from 8 rows to 4 on 2 devices: nothing. Kernel 3: row 2 of the output reads rows 3
  // to 5.
  const Layer pool = layer_of("kind: max_pool, kernel: 2, stride: 2", "[1, 8, 8]");
  const Sharding input = split_on_grid(8, 8, 2, 1), output = split_on_grid(4, 4, 2, 1);
  CHECK(halo(pool, *input.grid, *output.grid).empty());
  const Layer conv = layer_of("kind: conv2d, out_channels: 1, kernel: 3, stride: 2, padding: 1", "[1, 8, 8]");
  CHECK(halo(conv, *input.grid, *output.grid).counts == Rows{0, 8});
}

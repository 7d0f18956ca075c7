// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <random>

#include "sim/base/quantity.h"
#include "sim/base/spellings.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

double parsed(std::string_view text, Dimension dimension) {
  std::string why;
  const std::optional<double> value = parse_quantity(text, dimension, why);
  REQUIRE_MESSAGE(value, why);
  return *value;
}

std::string refusal(std::string_view text, Dimension dimension) {
  std::string why;
  REQUIRE_FALSE(parse_quantity(text, dimension, why));
  return why;
}

}  // namespace

TEST_CASE("quantity: k, M, G, T are powers of 1000 and Ki, Mi, Gi, Ti powers of 1024") {
  CHECK(parsed("1B", Dimension::bytes) == 1);
  CHECK(parsed("25MiB", Dimension::bytes) == 25 * 1048576.0);
  CHECK(parsed("100MB", Dimension::bytes) == 1e8);
  CHECK(parsed("1.5KiB", Dimension::bytes) == 1536);
  CHECK(parsed("2TiB", Dimension::bytes) == 2199023255552.0);
  CHECK(parsed("3kB", Dimension::bytes) == 3000);
  CHECK(parsed("16 GiB", Dimension::bytes) == 17179869184.0);
}

TEST_CASE("quantity: bits and bytes a second") {
  CHECK(parsed("10Gbps", Dimension::bandwidth) == 1.25e9);
  CHECK(parsed("10Gbit/s", Dimension::bandwidth) == 1.25e9);
  CHECK(parsed("12GB/s", Dimension::bandwidth) == 12e9);
  CHECK(parsed("12GBps", Dimension::bandwidth) == 12e9);
  CHECK(parsed("1GiB/s", Dimension::bandwidth) == 1073741824.0);
}

TEST_CASE("quantity: times, rates, powers, prices, fractions") {
  CHECK(parsed("25us", Dimension::time) == approx(25e-6).epsilon(1e-15));
  CHECK(parsed("3min", Dimension::time) == 180);
  CHECK(parsed("2h", Dimension::time) == 7200);
  CHECK(parsed("1d", Dimension::time) == 86400);
  CHECK(parsed("15.7TFLOPS", Dimension::flop_rate) == 15.7e12);
  CHECK(parsed("1PFLOP/s", Dimension::flop_rate) == 1e15);
  CHECK(parsed("1.2kW", Dimension::power) == 1200);
  CHECK(parsed("0.9USD/h", Dimension::price) == 0.9);
  CHECK(parsed("90%", Dimension::fraction) == approx(0.9).epsilon(1e-15));
  CHECK(parsed("0.9", Dimension::fraction) == 0.9);
}

TEST_CASE("quantity: what is refused, and why") {
  CHECK(refusal("25", Dimension::bytes) == "'25' lacks its unit; write a size such as 25MiB or 100MB");
  CHECK(refusal("25Mb", Dimension::bytes) ==
        "unit 'Mb' does not fit here; write a size such as 25MiB or 100MB");
  CHECK(refusal("10", Dimension::bandwidth) ==
        "'10' lacks its unit; write a bandwidth such as 10Gbps or 12GB/s");
  CHECK(refusal("10Gibps", Dimension::bandwidth) ==
        "unit 'Gibps' does not fit here; write a bandwidth such as 10Gbps or 12GB/s");
  CHECK(refusal("25ks", Dimension::time) ==
        "unit 'ks' does not fit here; write a time such as 25us, 3ms or 1.5s");
  CHECK(refusal("-1s", Dimension::time) == "'-1s' is negative; write a time such as 25us, 3ms or 1.5s");
  CHECK(refusal("nan", Dimension::power) == "'nan' is not a power such as 300W");
  CHECK(refusal("infW", Dimension::power) == "'infW' is not a power such as 300W");
  CHECK(refusal("fast", Dimension::flop_rate) == "'fast' is not a rate such as 15.7TFLOPS");
  CHECK(refusal("1e308TB", Dimension::bytes) ==
        "'1e308TB' is out of range: 0, or from 0.001 to 1e+18 B, is allowed");
  CHECK(refusal("1EUR/h", Dimension::price) ==
        "unit 'EUR/h' does not fit here; write a price such as 1.00USD/h");
  CHECK(refusal("", Dimension::fraction) == "'' is not a fraction such as 0.9 or 90%");
  CHECK(refusal("1e999B", Dimension::bytes) == "'1e999B' is not a size such as 25MiB or 100MB");
}

TEST_CASE("number: plain finite decimal numbers only") {
  CHECK(parse_number("1e9") == 1e9);
  CHECK(parse_number("-3.5") == -3.5);
  CHECK(parse_number("+7") == 7);
  for (const char* text :
       {"", "0x10", "1 000", "1,000", "nan", ".inf", "inf", "1e999", "12a", "--1", "+-1", "++1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number(text));
  }
}

TEST_CASE("format: three digits and a prefix") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1024) == "1.00 KiB");
  CHECK(format_bytes(25.0 * 1048576) == "25.0 MiB");
  CHECK(format_bytes(102.4 * 1048576) == "102 MiB");
  CHECK(format_time(0) == "0 s");
  CHECK(format_time(1.25e-3) == "1.25 ms");
  CHECK(format_time(999.4e-6) == "999 us");
  CHECK(format_time(0.9999) == "1000 ms");
  CHECK(format_time(12.34) == "12.3 s");
  CHECK(format_bandwidth(1.25e9) == "1.25 GB/s");
}

TEST_CASE("quantity: bounds of every dimension, at both edges") {
  struct Case {
    Dimension dimension;
    const char *lowest, *below, *highest, *above;
  };
  for (const Case& c : {Case{Dimension::bytes, "0.001B", "0.0009B", "1000PB", "1001PB"},
                        Case{Dimension::bandwidth, "0.001B/s", "1e-300Gbps", "1000PB/s", "1e300Gbps"},
                        Case{Dimension::time, "1e-6ns", "1e-7ns", "1e12s", "1.1e12s"},
                        Case{Dimension::flop_rate, "1FLOPS", "0.9FLOPS", "1e9PFLOPS", "1.1e9PFLOPS"},
                        Case{Dimension::power, "0.001mW", "0.0009mW", "1TW", "1.1TW"},
                        Case{Dimension::price, "1e-9USD/h", "1e-10USD/h", "1e12USD/h", "1.1e12USD/h"},
                        Case{Dimension::frequency, "0.001Hz", "0.0009Hz", "1e6GHz", "1.1e6GHz"},
                        Case{Dimension::fraction, "1e-12", "1e-13", "1e12", "1.1e12"}}) {
    CAPTURE(c.lowest);
    std::string why;
    CHECK(parse_quantity(c.lowest, c.dimension, why).has_value());
    CHECK(parse_quantity(c.highest, c.dimension, why).has_value());
    for (const char* wrong : {c.below, c.above}) {
      CHECK_FALSE(parse_quantity(wrong, c.dimension, why).has_value());
      CHECK(why.find("is out of range: 0, or from ") != std::string::npos);
    }
  }
}

TEST_CASE("number: however it is written it has one spelling, of the same value") {
  const auto spelling = [](std::string_view text) { return number_spelling(text).value_or("no number"); };
  for (const char* text : {"16", "16.0", "1.6e1", "+16", "160e-1", "0.16E+2", "16.", "1600e-2"})
    CHECK(spelling(text) == "16");
  for (const char* text : {"0", "-0", "0.0", "+0e9", "0e999999999999"}) CHECK(spelling(text) == "0");
  for (const char* text : {".5", "0.5", "+0.50", "5e-1"}) CHECK(spelling(text) == "0.5");
  CHECK(spelling("-2.50") == "-2.5");
  CHECK(spelling("1e6") == "1000000");
  CHECK(spelling("18446744073709551616") == "18446744073709551616");  // 2^64, which no double shortens
  CHECK(spelling("1e20") == "100000000000000000000");
  CHECK(spelling("1e21") == "1e21");
  CHECK(spelling("123456e20") == "1.23456e25");
  CHECK(spelling("0.0000012") == "0.0000012");
  CHECK(spelling("0.00000012") == "1.2e-7");
  for (const char* text :
       {"010", "00", "-010", "0x10", "1_000", "ten", "", "+", "1e999", "nan", "-inf", "25MiB", "1 "})
    CHECK(spelling(text) == "no number");
  // What is spelled is read as the same double, and keeps its spelling.
  for (int i = 0; i < 2000; ++i) {
    const int mantissa = (i * 7919) % 100'003, exponent = i % 61 - 30;
    const std::string text = (i % 2 ? "-" : "") + std::to_string(mantissa) + "." + std::to_string(i % 10) +
                             "e" + std::to_string(exponent);
    CAPTURE(text);
    CHECK(parse_number(spelling(text)) == parse_number(text));
    CHECK(spelling(spelling(text)) == spelling(text));
  }
}

TEST_CASE("quantity: units are understood without their capitals where they can be one thing only") {
  CHECK(parsed("25mib", Dimension::bytes) == parsed("25MiB", Dimension::bytes));
  CHECK(parsed("16gb", Dimension::bytes) == 16e9);
  CHECK(parsed("10gbps", Dimension::bandwidth) == parsed("10Gbps", Dimension::bandwidth));
  CHECK(parsed("10gbit/s", Dimension::bandwidth) == parsed("10Gbps", Dimension::bandwidth));
  CHECK(parsed("10Gb/s", Dimension::bandwidth) == parsed("10Gbps", Dimension::bandwidth));
  CHECK(parsed("50\xc2\xb5s", Dimension::time) == parsed("50us", Dimension::time));
  CHECK(parsed("50\xce\xbcs", Dimension::time) == parsed("50us", Dimension::time));
  CHECK(parsed("15.7tflops", Dimension::flop_rate) == 15.7e12);
  CHECK(parsed("1380mhz", Dimension::frequency) == 1.38e9);
  CHECK(parsed("1usd/h", Dimension::price) == 1);
  CHECK(refusal("10GBPS", Dimension::bandwidth).find("may be any of GBps, Gbps") != std::string::npos);
  CHECK(refusal("10gb/s", Dimension::bandwidth).find("may be any of GB/s, Gb/s") != std::string::npos);
  CHECK(refusal("3mw", Dimension::power).find("may be any of MW, mW") != std::string::npos);
}

TEST_CASE("quantity: a unit in other capitals is read as the unit itself, or as nothing") {
  const std::vector<std::pair<Dimension, std::vector<std::string>>> units{
      {Dimension::bytes, {"B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"}},
      {Dimension::bandwidth,
       {"MB/s", "Mb/s", "GB/s", "Gb/s", "MBps", "Mbps", "GBps", "Gbps", "Gbit/s", "GiB/s"}},
      {Dimension::time, {"ns", "us", "ms", "s", "min", "h", "d"}},
      {Dimension::flop_rate, {"GFLOPS", "TFLOP/s"}},
      {Dimension::power, {"W", "kW", "MW", "mW"}},
      {Dimension::frequency, {"MHz", "GHz"}}};
  for (const auto& [dimension, names] : units)
    for (const std::string& name : names)
      for (unsigned capitals = 0; capitals < 1u << name.size(); ++capitals) {
        std::string other = "3";
        for (std::size_t i = 0; i < name.size(); ++i)
          other += static_cast<char>(capitals >> i & 1u ? std::toupper(name[i]) : std::tolower(name[i]));
        // "mW" is one thing, "MW" another: what is a unit as it is written is read as that.
        bool unit = false;
        for (const std::string& each : names) unit = unit || other == "3" + each;
        if (unit) continue;
        CAPTURE(other);
        std::string why;
        const std::optional<double> value = parse_quantity(other, dimension, why);
        double least = INFINITY, most = 0;  // of all units of the same letters
        for (const std::string& each : names) {
          const bool same = std::equal(each.begin(), each.end(), other.begin() + 1, other.end(),
                                       [](char a, char b) { return std::tolower(a) == std::tolower(b); });
          if (!same) continue;
          least = std::min(least, parsed("3" + each, dimension));
          most = std::max(most, parsed("3" + each, dimension));
        }
        if (value) CHECK((*value == least || *value == most));
        if (value && dimension != Dimension::bandwidth) CHECK(least == most);
        // Of bits and bytes only those that a small b tells.
        if (value && least != most) CHECK((*value == least && other.find('B') == std::string::npos));
        CHECK((value || !why.empty()));
      }
}

TEST_CASE("unit spellings are the units that are understood, and no others of the same letters") {
  const std::string letters = "kMGTPiBbps/WHzmunFLOPSUDhdin% ";
  std::array<std::vector<std::string>, 8> spellings_of;
  for (std::size_t d = 0; d < spellings_of.size(); ++d)
    spellings_of[d] = unit_spellings(static_cast<Dimension>(d));
  std::size_t understood = 0;
  for (unsigned seed = 1; seed <= 4000; ++seed) {
    std::mt19937 engine(seed);
    const auto dimension = static_cast<Dimension>(engine() % spellings_of.size());
    const std::vector<std::string>& spellings = spellings_of[static_cast<std::size_t>(dimension)];
    std::string unit = spellings[engine() % spellings.size()];
    if (engine() % 2 && !unit.empty()) unit[engine() % unit.size()] = letters[engine() % letters.size()];
    if (unit.starts_with(' ') || unit.ends_with(' ')) continue;
    CAPTURE(seed);
    CAPTURE(unit);
    std::string why;
    const bool is_unit = parse_quantity("1" + unit, dimension, why).has_value();
    CHECK(is_unit == std::binary_search(spellings.begin(), spellings.end(), unit));
    understood += is_unit ? 1 : 0;
  }
  CHECK(understood > 1500);
}

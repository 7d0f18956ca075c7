// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <utility>

#include "sim/base/data_path.h"
#include "tests/support/approx.h"
#include "tests/support/working_file.h"
#include "topologies/catalog.h"
#include "topologies/prices.h"

using namespace convoy;

namespace {

const PriceTable& table() { return PriceTable::shipped(); }

std::string refusal(const std::string& text) {
  const WorkingFile file("prices.csv", text);
  try {
    PriceTable::read(file.name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the latest price is used, and an earlier day has that day's") {
  // AWS cut the price of P4 and P5 in June 2025 (results of two lists of the provider).
  CHECK(table().find("aws-p4d.24xlarge", Market::on_demand)->usd_per_hour == 21.957642);
  CHECK(table().find("aws-p4d.24xlarge", Market::on_demand, "", "2024-01-01")->usd_per_hour == 32.7726);
  CHECK_FALSE(table().find("aws-p4d.24xlarge", Market::on_demand, "us-east-1", "2021-01-01"));
  CHECK(table().find("aws-p3.16xlarge", Market::on_demand)->usd_per_hour == 24.48);
  CHECK(table().find("azure-nc24rs-v3", Market::on_demand)->region == "eastus");
  CHECK(table().find("azure-nc24rs-v3", Market::on_demand, "westeurope")->usd_per_hour == 16.821);
  CHECK_FALSE(table().find("aws-p3.16xlarge", Market::on_demand, "mars-1"));
  CHECK_FALSE(table().find("aws-p3", Market::on_demand));
  // One K80 (0.45) in an n1-standard-8 (0.38).
  CHECK(table().find("gcp-n1-standard-8-k80", Market::on_demand)->usd_per_hour == approx(0.83));
}

TEST_CASE("prices: of random histories in random order the price that was seen last counts") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    // A price a year in each region, listed until some day of the next one; the last is the newest.
    std::vector<std::string> rows;
    std::map<std::string, double> newest, of_2023;
    double usd = 0;
    for (const char* region : {"r1", "r2"})
      for (unsigned year = 2021, end = 2022 + random() % 5; year <= end; ++year) {
        const unsigned month = 1 + random() % 9, last = month + random() % (10 - month);
        usd += 1 + random() % 9;
        rows.push_back(random() % 3 == 0
                           ? fmt::format("box,p,{},on_demand,{},{}-0{},\n", region, usd, year, month)
                           : fmt::format("box,p,{},on_demand,{},{}-0{}-05,{}-0{}-20\n", region, usd, year,
                                         month, year, last));
        newest[region] = usd;
        if (year <= 2022) of_2023[region] = usd;
      }
    // A short sale in the middle of a long listing is history once the listing was seen after it.
    rows.push_back("box,p,r3,on_demand,50,2021-01-01,2026-01-01\n");
    rows.push_back("box,p,r3,on_demand,40,2023-01-01,2023-02-01\n");
    newest["r3"] = of_2023["r3"] = 50;
    std::shuffle(rows.begin(), rows.end(), random);
    std::string text = "server,provider,region,market,usd_per_hour,from,until\n";
    for (const std::string& row : rows) text += row;
    const WorkingFile file("prices.csv", text);
    const PriceTable prices = PriceTable::read(file.name);
    CHECK(prices.regions("box", Market::on_demand).size() == 3);
    for (const Price& price : prices.regions("box", Market::on_demand))
      CHECK(price.usd_per_hour == newest.at(price.region));
    for (const auto& [region, price] : newest)
      CHECK(prices.find("box", Market::on_demand, region)->usd_per_hour == price);
    for (const auto& [region, price] : of_2023)
      CHECK(prices.find("box", Market::on_demand, region, "2022-12-31")->usd_per_hour == price);
  }
}

TEST_CASE("prices: a table as of a day is the table as it was written on that day [law]") {
  int changed = 0;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto day_of = [](unsigned day) {
      return fmt::format("2024-{:02}-{:02}", 1 + day / 28, 1 + day % 28);
    };
    struct Listing {
      unsigned from, until;  ///< days
      std::string market;
      double usd;
    };
    // Listings of all lengths that overlap; no two begin on one day.
    std::vector<Listing> listings;
    std::vector<unsigned> begins(300);
    std::iota(begins.begin(), begins.end(), 0u);
    std::shuffle(begins.begin(), begins.end(), random);
    for (unsigned i = 0; i < 8; ++i)
      listings.push_back({begins[i], begins[i] + static_cast<unsigned>(random() % 200),
                          i % 3 ? "on_demand" : "spot", static_cast<double>(i + 1)});
    // What a table written on a day has: what began by then, seen no later than then.
    const auto written_on = [&](unsigned day) {
      std::string text = "server,provider,region,market,usd_per_hour,from,until\n";
      for (const Listing& it : listings)
        if (it.from <= day)
          text += fmt::format("box,p,r,{},{},{},{}\n", it.market, it.usd, day_of(it.from),
                              day_of(std::min(it.until, day)));
      const WorkingFile file("prices.csv", text);
      return PriceTable::read(file.name);
    };
    const PriceTable whole = written_on(1000);
    for (int i = 0; i < 6; ++i) {
      const auto day = static_cast<unsigned>(random() % 330);
      CAPTURE(day);
      const PriceTable then = written_on(day);
      for (const Market market : {Market::on_demand, Market::spot}) {
        const std::optional<Price> as_of = whole.find("box", market, "r", day_of(day)),
                                   was = then.find("box", market, "r"), now = whole.find("box", market, "r");
        REQUIRE(as_of.has_value() == was.has_value());
        if (!was) continue;
        CHECK(as_of->usd_per_hour == was->usd_per_hour);
        changed += was->usd_per_hour != now->usd_per_hour;
      }
    }
  }
  CHECK(changed > 0);
}

TEST_CASE("prices: of the catalogue's the row that was seen last counts, by looking through the file") {
  std::ifstream in(data_path("topologies/catalog") + "/prices.csv");
  std::map<std::string, std::pair<std::string, double>> newest;  // by server, region and market
  std::string line;
  std::size_t rows = 0;
  while (std::getline(in, line)) {
    if (line.starts_with('#') || line.starts_with("server,")) continue;
    std::vector<std::string> cells;
    std::istringstream cut(line);
    for (std::string cell; cells.size() < 7 && std::getline(cut, cell, ',');) cells.push_back(cell);
    const std::string last = cells[6].empty() ? cells[5] : cells[6],
                      key = cells[0] + " " + cells[2] + " " + cells[3];
    auto& [day, usd] = newest[key];
    if (last >= day) day = last, usd = std::stod(cells[4]);
    ++rows;
  }
  CHECK(rows == table().prices().size());
  CHECK(newest.size() < rows);
  for (const Price& price : table().prices()) {
    CAPTURE(price.server);
    CHECK(table().find(price.server, price.market, price.region)->usd_per_hour ==
          newest.at(price.server + " " + price.region + " " + std::string(to_string(price.market))).second);
  }
  CHECK(table().find("lambda-gpu_4x_a100", Market::on_demand)->usd_per_hour == 7.96);
  CHECK(table().find("lambda-gpu_8x_a100", Market::on_demand)->usd_per_hour == 15.92);
}

TEST_CASE("every region is told once, with its latest price, and the provider's home first") {
  std::set<std::string> servers;
  for (const Price& price : table().prices()) servers.insert(price.server);
  for (const std::string& server : servers)
    for (const Market market : {Market::on_demand, Market::spot}) {
      CAPTURE(server);
      std::set<std::string> regions;
      for (const Price& price : table().regions(server, market)) {
        CHECK(regions.insert(price.region).second);
      }
      if (const auto first = table().find(server, market))
        CHECK(first->region == table().regions(server, market).front().region);
    }
}

TEST_CASE("every price has a date, a region and a source, and spot costs no more than on demand") {
  CHECK(table().prices().size() > 300);
  for (const Price& price : table().prices()) {
    CAPTURE(price.server);
    CAPTURE(price.from);
    CHECK(price.from >= "2022");
    CHECK(price.source.size() > 10);
    CHECK(price.source.find("recalled") == std::string::npos);
    if (price.market == Market::spot)
      if (const auto listed = table().find(price.server, Market::on_demand, price.region))
        CHECK(price.usd_per_hour <= listed->usd_per_hour);
  }
}

TEST_CASE("a price of a type that the provider lists no longer says so") {
  const auto doubt = [](const std::string& server) {
    return table().doubt(*table().find(server, Market::on_demand));
  };
  CHECK(doubt("azure-nc6") ==
        "no longer offered: last listed on 2024-12-13, and not in the provider's list of 2026-06-18");
  CHECK(doubt("aws-p2.xlarge") == "still listed, but new ones may no longer launch");
  CHECK(doubt("azure-nc24s-v3").starts_with("still listed, but retired on 2025-09-30"));
  CHECK(doubt("azure-nc24rs-v3") == "");
  CHECK(doubt("aws-p5.48xlarge") == "");
  CHECK(table().doubt(*table().find("aws-p3.8xlarge", Market::spot)) ==
        "still listed, but new ones may no longer launch");
}

TEST_CASE("servers of the catalogue have the table's price and say its region and date") {
  const ServerSpec server = load_server("aws-p4d.24xlarge", {});
  CHECK(server.host.price_usd_per_h == 21.957642);
  CHECK(price_text(server.host) == "21.96 USD/h (on demand, us-east-1, 2025-06-23 to 2026-07-20)");
  CHECK(server.bare_price_usd_per_h == 21.957642);
  CHECK(load_server("gcp-n1-standard-8-k80", {}).bare_price_usd_per_h == 0.38);
  CHECK(price_text(load_server("dgx1-v100", {}).host) == "no price");
}

TEST_CASE("SkyPilot's vms.csv is read as prices") {
  const WorkingFile file(
      "vms.csv",
      "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,GpuInfo,"
      "AvailabilityZone,Arch\n"
      "p3.16xlarge,V100,8.0,64.0,488.0,24.48,9.5,us-west-2,\"{'Gpus': [{'Name': 'V100', 'Count': 8}]}\","
      "us-west-2a,x86_64\n"
      "p3.16xlarge,V100,8.0,64.0,488.0,24.48,7.25,us-west-2,,us-west-2b,x86_64\n"
      "p3.16xlarge,V100,8.0,64.0,488.0,25.00,,us-east-1,,us-east-1a,x86_64\n"
      "m5.large,,,2.0,8.0,0.096,0.03,us-east-1,,us-east-1a,x86_64\n"
      "Standard_NC24rs_v3,V100,4,24,448,13.5,,eastus,,,\n"
      "n1-standard-8,,,8,30,0.38,0.08,us-central1,,us-central1-a,\n"
      ",K80,2,,,0.9,0.075,us-central1,,us-central1-a,\n"
      ",K80,4,,,1.8,,us-central1,,us-central1-a,\n");
  const PriceTable prices = PriceTable::read(file.name);
  CHECK(prices.find("aws-p3.16xlarge", Market::on_demand)->usd_per_hour == 25.00);  // at home
  CHECK(prices.find("aws-p3.16xlarge", Market::on_demand, "us-west-2")->usd_per_hour == 24.48);
  CHECK(prices.find("aws-p3.16xlarge", Market::spot)->usd_per_hour == 7.25);  // the cheapest zone
  CHECK(prices.find("azure-nc24rs-v3", Market::on_demand)->usd_per_hour == 13.5);
  CHECK(prices.find("gcp-n1-standard-8-k80x2", Market::on_demand)->usd_per_hour == approx(1.28));
  CHECK(prices.find("gcp-n1-standard-8-k80x2", Market::spot)->usd_per_hour == approx(0.155));
  CHECK_FALSE(prices.find("gcp-n1-standard-8-k80", Market::on_demand));  // no row of one K80
  CHECK_FALSE(prices.find("aws-p3.2xlarge", Market::on_demand));
  CHECK(prices.find("aws-p3.16xlarge", Market::spot)->from.size() == 10);
  CHECK(prices.doubt(*prices.find("aws-p3.16xlarge", Market::spot)) == "");
}

TEST_CASE("SkyPilot's list of Google Cloud has the GPUs of every machine in rows of their own") {
  // Lines of catalogs/v8/gcp/vms.csv (github:skypilot-org/skypilot-catalog@006059e0); a price that it does
  // not know is 0.
  const std::string header =
      "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,"
      "SpotPrice\n";
  const WorkingFile file("vms.csv",
                         header +
                             "a2-highgpu-8g,96.0,680.0,,,,us-west4,us-west4-b,6.66236,2.66448\n"
                             "a2-ultragpu-8g,96.0,1360.0,,,,us-east5,us-east5-a,8.79698,2.49544\n"
                             "a3-highgpu-8g,208.0,1872.0,,,,us-east4,us-east4-a,9.46006,2.15966\n"
                             "a3-highgpu-8g,208.0,1872.0,,,,europe-west1,europe-west1-b,10.41647,2.38181\n"
                             "a4-highgpu-8g,224.0,3968.0,,,,us-east1,us-east1-b,0.0,0.0\n"
                             ",,,A100,8,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 40960}}]},us-west4,us-west4-b,"
                             "24.81248,9.9248\n"
                             ",,,A100-80GB,8,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 81920}}]},us-east5,"
                             "us-east5-a,35.39358,10.6848\n"
                             ",,,H100,8,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 81920}}]},us-east4,us-east4-a,"
                             "78.3724,17.8848\n");
  const PriceTable prices = PriceTable::read(file.name);
  const auto usd = [&](const char* server, Market market) {
    return prices.find(server, market)->usd_per_hour;
  };
  CHECK(usd("gcp-a2-highgpu-8g", Market::on_demand) == approx(6.66236 + 24.81248));
  CHECK(usd("gcp-a2-ultragpu-8g", Market::spot) == approx(2.49544 + 10.6848));
  CHECK(usd("gcp-a3-highgpu-8g", Market::on_demand) == approx(87.83246));
  // As in the program's own table; and none where the list has no price of the GPUs.
  CHECK(table().find("gcp-a3-highgpu-8g", Market::on_demand)->usd_per_hour == approx(87.83246));
  CHECK(table().find("gcp-a3-highgpu-8g", Market::spot)->usd_per_hour == approx(20.04446));
  CHECK_FALSE(prices.find("gcp-a3-highgpu-8g", Market::on_demand, "europe-west1"));
  CHECK_FALSE(prices.find("gcp-a2-highgpu-8g", Market::on_demand, "us-east5"));
  CHECK(prices.prices().size() == 6);
}

TEST_CASE("machines of SkyPilot's list have the devices of the catalogue's servers, and as many") {
  struct Known {
    const char *instance, *server, *accelerator;
    int count;
  };
  // Count and kind of GPU as the providers tell them (github:vantage-sh/ec2instances.info@fc22b985 for AWS;
  // learn.microsoft.com, virtual machine sizes, for Azure).
  const std::vector<Known> all{{"p2.xlarge", "aws-p2.xlarge", "K80", 1},
                               {"p2.8xlarge", "aws-p2.8xlarge", "K80", 8},
                               {"p2.16xlarge", "aws-p2.16xlarge", "K80", 16},
                               {"p3.2xlarge", "aws-p3.2xlarge", "V100", 1},
                               {"p3.8xlarge", "aws-p3.8xlarge", "V100", 4},
                               {"p3.16xlarge", "aws-p3.16xlarge", "V100", 8},
                               {"p3dn.24xlarge", "aws-p3dn.24xlarge", "V100-32GB", 8},
                               {"p4d.24xlarge", "aws-p4d.24xlarge", "A100", 8},
                               {"p4de.24xlarge", "aws-p4de.24xlarge", "A100-80GB", 8},
                               {"p5.48xlarge", "aws-p5.48xlarge", "H100", 8},
                               {"p5.4xlarge", "aws-p5.4xlarge", "H100", 1},
                               {"p5en.48xlarge", "aws-p5en.48xlarge", "H200", 8},
                               {"p6-b200.48xlarge", "aws-p6-b200.48xlarge", "B200", 8},
                               {"g3.16xlarge", "aws-g3.16xlarge", "M60", 4},
                               {"g4dn.12xlarge", "aws-g4dn.12xlarge", "T4", 4},
                               {"g4dn.metal", "aws-g4dn.metal", "T4", 8},
                               {"g5.48xlarge", "aws-g5.48xlarge", "A10G", 8},
                               {"g6.48xlarge", "aws-g6.48xlarge", "L4", 8},
                               {"g6e.12xlarge", "aws-g6e.12xlarge", "L40S", 4},
                               {"Standard_NC6", "azure-nc6", "K80", 1},
                               {"Standard_NC24r", "azure-nc24r", "K80", 4},
                               {"Standard_NC12s_v2", "azure-nc12s-v2", "P100", 2},
                               {"Standard_NC24rs_v3", "azure-nc24rs-v3", "V100", 4},
                               {"Standard_NC64as_T4_v3", "azure-nc64as-t4-v3", "T4", 4},
                               {"Standard_NC48ads_A100_v4", "azure-nc48ads-a100-v4", "A100-80GB", 2},
                               {"Standard_NC80adis_H100_v5", "azure-nc80adis-h100-v5", "H100", 2},
                               {"Standard_ND24rs", "azure-nd24rs", "P40", 4},
                               {"Standard_ND40rs_v2", "azure-nd40rs-v2", "V100-32GB", 8},
                               {"Standard_ND96asr_v4", "azure-nd96asr-v4", "A100", 8},
                               {"Standard_ND96amsr_A100_v4", "azure-nd96amsr-a100-v4", "A100-80GB", 8},
                               {"Standard_ND96isr_H100_v5", "azure-nd96isr-h100-v5", "H100", 8},
                               {"Standard_ND96isr_H200_v5", "azure-nd96isr-h200-v5", "H200", 8},
                               {"gpu_8x_v100", "lambda-gpu_8x_v100", "V100", 8},
                               {"gpu_4x_a6000", "lambda-gpu_4x_a6000", "A6000", 4}};
  const std::string header = "InstanceType,AcceleratorName,AcceleratorCount,Price,Region\n";
  std::string rows;
  for (const Known& known : all)
    rows += fmt::format("{},{},{}.0,7,somewhere\n", known.instance, known.accelerator, known.count);
  const PriceTable prices = [&] {
    const WorkingFile file("vms.csv", header + rows);
    return PriceTable::read(file.name);
  }();
  for (const Known& known : all) {
    CAPTURE(known.server);
    CHECK(load_server(known.server, {}).device_count() == static_cast<std::uint32_t>(known.count));
    REQUIRE(prices.find(known.server, Market::on_demand));
    CHECK(prices.find(known.server, Market::on_demand)->usd_per_hour == 7);
  }
  // Another device, and another number of them.
  CHECK(refusal(header + "p4d.24xlarge,A100-80GB,8,7,us-east-1\n") ==
        "prices.csv:2:14: AcceleratorName: the catalogue's aws-p4d.24xlarge has 8 x A100, not 8 x A100-80GB");
  CHECK(refusal(header + "p3.8xlarge,V100,8,7,us-east-1\n") ==
        "prices.csv:2:12: AcceleratorName: the catalogue's aws-p3.8xlarge has 4 x V100, not 8 x V100");
}

TEST_CASE("every server of a provider has devices that SkyPilot's lists have a name for") {
  int servers = 0;
  for (const std::string& name : server_names()) {
    const bool rented = name.starts_with("aws-") || name.starts_with("azure-") || name.starts_with("gcp-") ||
                        name.starts_with("lambda-");
    if (!rented) continue;
    CAPTURE(name);
    ++servers;
    // A count that no server has: the error names the device.
    const std::string instance = name.substr(name.find('-') + 1);
    const std::string error = refusal(
        fmt::format("InstanceType,AcceleratorName,AcceleratorCount,Price,Region\n{},X,99,7,r\n", instance));
    CHECK(error.find(fmt::format("the catalogue's {} has {} x ", name,
                                 load_server(name, {}).device_count())) != std::string::npos);
  }
  CHECK(servers > 100);
}

TEST_CASE("a wrong price table is refused with its place") {
  const std::string header = "server,provider,region,market,usd_per_hour,from,until\n";
  CHECK(refusal(header + "a,b,c,spot,1.5,2025-01-01,\n") == "");
  CHECK(refusal(header + "a,b,c,cheap,1.5,2025-01-01,\n") ==
        "prices.csv:2:1: market: expected on_demand or spot, found 'cheap'");
  CHECK(refusal(header + "a,b,c,spot,free,2025-01-01,\n") ==
        "prices.csv:2:12: usd_per_hour: expected a number that is not below zero, found 'free'");
  CHECK(refusal(header + "a,b,c,spot,1,01.02.2025,\n") ==
        "prices.csv:2:14: from: expected a day such as 2025-06-23 (or 2025-06, or 2025), found '01.02.2025'");
  CHECK(refusal(header + "a,b,c,spot,1,2025-01-01,2024-01-01\n") ==
        "prices.csv:2:1: until: 2024-01-01 is before from: 2025-01-01");
  CHECK(refusal(header + "a,b,c,spot,0,2025-01-01,\n") == "");  // a price too
  CHECK(
      refusal(header + "a,b,c,spot,2,2025,\na,b,d,spot,3,2025,\na,b,c,spot,2,2025,\na,b,c,spot,4,2025,\n") ==
      "prices.csv:5:12: usd_per_hour: 4 for a spot, c, 2025, but line 2 has 2 for the same days");
  CHECK(refusal(header + "a,,c,spot,1,2025,\n") == "prices.csv:2:1: provider is empty");
  CHECK(refusal("server,market\n") == "prices.csv:1:1: column 'provider' is missing");
  CHECK(refusal("name,cost\n").starts_with("prices.csv:1:1: expected the header of a price table (server, "));
  CHECK(refusal("InstanceType,Price,Region\nm5.large,1,us-east-1\n") ==
        "prices.csv:1:1: no row is of a machine that the catalogue has (`convoy show servers` lists them)");
  CHECK(refusal("InstanceType,Price\n") == "prices.csv:1:1: column 'Region' is missing");
  CHECK(refusal("InstanceType,Price,Region\np3.2xlarge,x,us-east-1\n") ==
        "prices.csv:2:12: Price: expected a number that is not below zero, found 'x'");
}

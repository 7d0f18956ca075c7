// SPDX-License-Identifier: MIT
#include "topologies/skypilot.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <map>
#include <tuple>

#include "sim/base/quantity.h"
#include "topologies/catalog.h"

namespace convoy {
namespace {

struct Provider {
  std::string_view name, home;
};
constexpr std::array providers{Provider{"aws", "us-east-1"}, Provider{"azure", "eastus"},
                               Provider{"gcp", "us-central1"}, Provider{"lambda", "all"}};

/// "Standard_NC24rs_v3" -> "nc24rs-v3": Azure's names as the catalogue writes them; others stay.
std::string catalogue_spelling(std::string instance) {
  constexpr std::string_view prefix = "Standard_";
  if (!instance.starts_with(prefix)) return instance;
  instance.erase(0, prefix.size());
  std::transform(instance.begin(), instance.end(), instance.begin(),
                 [](unsigned char c) { return c == '_' ? '-' : static_cast<char>(std::tolower(c)); });
  return instance;
}

std::string day_of_last_change(const std::string& file) {
  struct stat status {};
  std::tm day{};
  if (stat(file.c_str(), &status) != 0 || !gmtime_r(&status.st_mtime, &day)) return "";
  return fmt::format("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

/// Prices of machines, and of GPUs that are rented beside one, by name and region: the cheapest zone's.
struct Rates {
  using Key = std::tuple<std::string, std::string, Market>;
  std::map<Key, double> usd_per_hour;

  void add(const std::string& name, const std::string& region, Market market, double usd) {
    const auto [known, is_new] = usd_per_hour.emplace(Key{name, region, market}, usd);
    if (!is_new) known->second = std::min(known->second, usd);
  }
};

class SkypilotReader {
 public:
  SkypilotReader(const CsvTable& table, const std::string& file)
      : table_(table), file_(file), day_(day_of_last_change(file)) {
    for (const char* column : {"Price", "Region"})
      if (!table.has(column)) throw InputError(table.header(), fmt::format("column '{}' is missing", column));
    for (const CsvRow& row : table.rows()) read_row(row);
  }

  std::vector<Price> prices() const {
    std::vector<Price> prices;
    for (const std::string& server : known_servers())
      for (const Provider& provider : providers)
        if (server.starts_with(fmt::format("{}-", provider.name))) append(server, provider, prices);
    if (prices.empty())
      throw InputError(table_.header(),
                       "no row is of a machine that the catalogue has (`convoy show servers` lists them)");
    return prices;
  }

 private:
  static std::vector<std::string> known_servers() {
    std::vector<std::string> names = server_names();
    for (const Price& price : PriceTable::shipped().prices()) names.push_back(price.server);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }

  void read_row(const CsvRow& row) {
    std::string name = catalogue_spelling(table_.text(row, "InstanceType"));
    if (name.empty()) {
      std::string gpu = table_.text(row, "AcceleratorName");
      if (gpu.empty()) return;
      std::transform(gpu.begin(), gpu.end(), gpu.begin(), [](unsigned char c) { return std::tolower(c); });
      const double count = table_.number(row, "AcceleratorCount", true);
      name = fmt::format("{} x {}", count, gpu);
    }
    const std::string region = table_.text(row, "Region");
    for (const auto& [column, market] : {std::pair{"Price", Market::on_demand}, {"SpotPrice", Market::spot}})
      if (table_.find(row, column)) rates_.add(name, region, market, table_.number(row, column, true));
  }

  void append(const std::string& server, const Provider& provider, std::vector<Price>& prices) const {
    const std::string instance = server.substr(provider.name.size() + 1);
    const auto [machine, gpus] = parts(instance);
    const std::size_t first = prices.size();
    for (const auto& [key, usd] : rates_.usd_per_hour) {
      const auto& [name, region, market] = key;
      if (name != machine) continue;
      Price price{server, std::string(provider.name), region, market, usd, day_, day_, file_, ""};
      if (!gpus.empty()) {
        const auto beside = rates_.usd_per_hour.find({gpus, region, market});
        if (beside == rates_.usd_per_hour.end()) continue;
        price.usd_per_hour += beside->second;
        price.note = fmt::format("sum of {} {:g} and {} {:g} USD/h", machine, usd, gpus, beside->second);
      }
      prices.push_back(std::move(price));
    }
    std::stable_partition(prices.begin() + static_cast<std::ptrdiff_t>(first), prices.end(),
                          [&](const Price& price) { return price.region == provider.home; });
  }

  /// "n1-standard-8-k80x2" -> {"n1-standard-8", "2 x k80"}; a machine with GPUs of its own has "" there.
  static std::pair<std::string, std::string> parts(const std::string& instance) {
    if (!instance.starts_with("n1-")) return {instance, ""};
    const std::size_t dash = instance.rfind('-');
    const std::string last = instance.substr(dash + 1);
    if (std::isdigit(static_cast<unsigned char>(last[0]))) return {instance, ""};  // the machine alone
    const std::size_t x = last.rfind('x');
    const bool several = x != std::string::npos && x + 1 < last.size();
    return {instance.substr(0, dash),
            fmt::format("{} x {}", several ? last.substr(x + 1) : "1", several ? last.substr(0, x) : last)};
  }

  const CsvTable& table_;
  const std::string& file_;
  std::string day_;
  Rates rates_;
};

}  // namespace

std::vector<Price> read_skypilot_prices(const CsvTable& table, const std::string& file) {
  return SkypilotReader(table, file).prices();
}

}  // namespace convoy

// SPDX-License-Identifier: MIT
#include "topologies/skypilot.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <map>
#include <set>
#include <tuple>

#include "sim/base/quantity.h"
#include "topologies/catalog.h"

namespace convoy::inline topologies {
namespace {

struct Provider {
  std::string_view name, home;
};
constexpr std::array providers{Provider{"aws", "us-east-1"}, Provider{"azure", "eastus"},
                               Provider{"gcp", "us-central1"}, Provider{"lambda", "all"}};

/// What SkyPilot calls the devices that providers' servers have: without a size the smaller, or the only one.
struct Accelerator {
  std::string_view device, name;
};
constexpr std::array accelerators{
    Accelerator{"a100-pcie-80gb", "A100-80GB"},
    Accelerator{"a100-sxm4-40gb", "A100"},
    Accelerator{"a100-sxm4-80gb", "A100-80GB"},
    Accelerator{"a10g", "A10G"},
    Accelerator{"b200-sxm-180gb", "B200"},
    Accelerator{"h100-nvl-94gb", "H100"},
    Accelerator{"h100-sxm5-80gb", "H100"},
    Accelerator{"h200-sxm-141gb", "H200"},
    Accelerator{"k80", "K80"},
    Accelerator{"l4", "L4"},
    Accelerator{"l40s", "L40S"},
    Accelerator{"m60", "M60"},
    Accelerator{"p100-pcie-16gb", "P100"},
    Accelerator{"p40", "P40"},
    Accelerator{"rtx-a6000", "A6000"},
    Accelerator{"t4", "T4"},
    Accelerator{"v100-pcie-16gb", "V100"},
    Accelerator{"v100-sxm2-16gb", "V100"},
    Accelerator{"v100-sxm2-32gb", "V100-32GB"},
};

/// "8 x H100" of a server of the catalogue; "" where it has no devices, or is not in the catalogue.
std::string gpus_of(const std::string& server, const std::vector<std::string>& catalogue) {
  if (!std::binary_search(catalogue.begin(), catalogue.end(), server)) return "";
  const ServerSpec spec = load_server(server, {});
  if (spec.devices.empty()) return "";
  const auto known = std::find_if(accelerators.begin(), accelerators.end(), [&](const Accelerator& one) {
    return one.device == spec.devices.front().first.name;
  });
  return known == accelerators.end() ? "" : fmt::format("{} x {}", spec.device_count(), known->name);
}

/// "Standard_NC24rs_v3" -> "nc24rs-v3": Azure's names as the catalogue writes them; others stay.
std::string catalogue_spelling(std::string instance) {
  constexpr std::string_view prefix = "Standard_";
  if (!instance.starts_with(prefix)) return instance;
  instance.erase(0, prefix.size());
  std::transform(instance.begin(), instance.end(), instance.begin(),
                 [](unsigned char c) { return c == '_' ? '-' : static_cast<char>(std::tolower(c)); });
  return instance;
}

/// "nc24rs-v3" -> "Standard_NC24rs_v3", "nc40ads-h100-v5" -> "Standard_NC40ads_H100_v5": the letters before the
/// number of vCPUs and the names of devices are capitals.
std::string azure_spelling(const std::string& instance) {
  std::string text = "Standard_";
  const auto upper = [](char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); };
  const std::size_t number = instance.find_first_of("0123456789");
  for (std::size_t i = 0; i < instance.size(); ++i) {
    const std::size_t dash = instance.rfind('-', i);
    const bool of_device =
        dash != std::string::npos && dash + 1 < instance.size() && instance[dash + 1] != 'v';
    text += instance[i] == '-' ? '_' : i < number || of_device ? upper(instance[i]) : instance[i];
  }
  return text;
}

/// "n1-standard-8-k80x2" -> "n1-standard-8": of machines that are named after the GPUs beside them.
std::string without_gpus(const std::string& instance) {
  return instance.starts_with("n1-") ? instance.substr(0, instance.rfind('-')) : instance;
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
      : table_(table), file_(file), day_(day_of_last_change(file)), catalogue_(server_names()) {
    std::sort(catalogue_.begin(), catalogue_.end());
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
  std::vector<std::string> known_servers() const {
    std::vector<std::string> names = catalogue_;
    for (const Price& price : PriceTable::shipped().prices()) names.push_back(price.server);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }

  void read_row(const CsvRow& row) {
    std::string name = catalogue_spelling(table_.text(row, "InstanceType"));
    std::string gpus = table_.text(row, "AcceleratorName");
    if (!gpus.empty()) gpus = fmt::format("{} x {}", table_.number(row, "AcceleratorCount", true), gpus);
    if (name.empty() && gpus.empty()) return;
    if (!name.empty() && !gpus.empty()) require_gpus(row, name, gpus);
    if (name.empty()) name = gpus;
    const std::string region = table_.text(row, "Region");
    for (const auto& [column, market] : {std::pair{"Price", Market::on_demand}, {"SpotPrice", Market::spot}})
      if (table_.find(row, column))  // a price of 0 is one that SkyPilot does not know
        if (const double usd = table_.number(row, column, false); usd > 0)
          rates_.add(name, region, market, usd);
  }

  /// That a machine of the list is the one of the catalogue, and that its price is that with its GPUs.
  void require_gpus(const CsvRow& row, const std::string& instance, const std::string& gpus) {
    if (!complete_.insert(instance).second) return;
    for (const Provider& provider : providers) {
      const std::string server = fmt::format("{}-{}", provider.name, instance);
      const std::string ours = gpus_of(server, catalogue_);
      if (!ours.empty() && ours != gpus)
        throw InputError(
            table_.find(row, "AcceleratorName")->pos,
            fmt::format("AcceleratorName: the catalogue's {} has {}, not {}", server, ours, gpus));
    }
  }

  void append(const std::string& server, const Provider& provider, std::vector<Price>& prices) const {
    const std::string instance = server.substr(provider.name.size() + 1);
    if (!lists(instance) && !lists(without_gpus(instance))) return;  // before the server is read
    const auto [machine, gpus] = parts(server, instance);
    const std::size_t first = prices.size();
    for (const auto& [key, usd] : rates_.usd_per_hour) {
      const auto& [name, region, market] = key;
      if (name != machine) continue;
      Price price{server, std::string(provider.name), region, market, usd, day_, day_, file_, Grade::given,
                  ""};
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

  bool lists(const std::string& name) const {
    const auto row = rates_.usd_per_hour.lower_bound({name, "", Market::on_demand});
    return row != rates_.usd_per_hour.end() && std::get<0>(row->first) == name;
  }

  /// The machine whose row has a server's price, and the GPUs beside it that have one of their own:
  /// "gcp-n1-standard-8-k80x2" -> {"n1-standard-8", "2 x K80"}, "gcp-a3-highgpu-8g" -> {"a3-highgpu-8g",
  /// "8 x H100"}, "aws-p3.2xlarge" -> {"p3.2xlarge", ""}. Where the list names the GPUs of a machine, or of
  /// none, its price is that of all.
  std::pair<std::string, std::string> parts(const std::string& server, const std::string& instance) const {
    if (complete_.contains(instance) || !table_.has("AcceleratorName")) return {instance, ""};
    const std::string gpus = gpus_of(server, catalogue_);
    return {gpus.empty() ? instance : without_gpus(instance), gpus};
  }

  const CsvTable& table_;
  const std::string& file_;
  std::string day_;
  std::vector<std::string> catalogue_;  ///< its servers, in order
  std::set<std::string> complete_;      ///< instances whose rows name their GPUs
  Rates rates_;
};

}  // namespace

std::optional<SkypilotMachine> skypilot_machine(const std::string& server) {
  const auto provider = std::find_if(providers.begin(), providers.end(), [&](const Provider& one) {
    return server.starts_with(fmt::format("{}-", one.name));
  });
  if (provider == providers.end()) return std::nullopt;
  SkypilotMachine machine{std::string(provider->name), server.substr(provider->name.size() + 1), ""};
  if (machine.cloud == "azure") machine.instance_type = azure_spelling(machine.instance_type);
  if (machine.cloud != "gcp") return machine;
  machine.instance_type = without_gpus(machine.instance_type);
  const std::string gpus = gpus_of(server, server_names());  // "8 x V100"
  const std::size_t times = gpus.find(" x ");
  if (times != std::string::npos) machine.accelerators = gpus.substr(times + 3) + ":" + gpus.substr(0, times);
  return machine;
}

std::vector<Price> read_skypilot_prices(const CsvTable& table, const std::string& file) {
  return SkypilotReader(table, file).prices();
}

}  // namespace convoy::topologies

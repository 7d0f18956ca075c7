// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/sources.h"

namespace convoy::inline topologies {

/// How a machine is rented: kept until it is given back, or cheaper and taken away when others pay more.
enum class Market : std::uint8_t { on_demand, spot };
std::string_view to_string(Market market);

/// What a provider listed for an hour of one server.
struct Price {
  std::string server;    ///< name in the catalogue: "aws-p4d.24xlarge"
  std::string provider;  ///< "aws", "azure", "gcp", "lambda"
  std::string region;    ///< as the provider writes it; "all" where it makes no difference
  Market market = Market::on_demand;
  double usd_per_hour = 0;
  /// First and last day that it was seen listed, as far as they are known: "2025", "2025-09" or "2025-09-01".
  /// `until` is empty where it was seen once, on a day not known.
  std::string from, until;
  std::string source;  ///< where it is from
  Grade grade = Grade::given;
  std::string note;  ///< what else there is to know ("sum of n1-standard-8 0.38 and ..."), or ""

  /// "on demand, us-east-1, 2025-06-23 to 2026-07-20"
  std::string origin() const;
};

/// Dated prices of servers: topologies/catalog/prices.csv, or a file of the user's. Of a server, region and
/// market the newest counts, which is the one that was seen listed last; older ones are history. Immutable.
class PriceTable {
 public:
  /// The one that comes with the program.
  static const PriceTable& shipped();

  /// A user's table, with the header of prices.csv (server, provider, region, market, usd_per_hour, from and,
  /// optional, until, source, note, grade) or of SkyPilot's catalogue of machines, vms.csv (InstanceType,
  /// Price, Region and, optional, SpotPrice, AcceleratorName, AcceleratorCount, AvailabilityZone; other
  /// columns are left alone, and so are machines that the catalogue does not have). Of a region's zones the
  /// cheapest counts. SkyPilot's rows have no date; they get the day of the file's last change (UTC). On
  /// Google Cloud the machine and its GPUs are two rows, which are added up.
  /// @throws InputError: another header, a price that is no number, two prices of one server, region and
  /// market for the same days, no machine of the catalogue
  static PriceTable read(const std::string& file);

  const std::vector<Price>& prices() const { return prices_; }

  /// The latest price of a server. @param region "" for the first one the table lists, which is the
  /// provider's home (us-east-1, eastus, us-central1) where it has a price there. @param day where given,
  /// the latest that was listed on that day or before ("2023-06-01").
  std::optional<Price> find(std::string_view server, Market market, std::string_view region = "",
                            std::string_view day = "") const;

  /// The latest price in every region, in the order of the table.
  std::vector<Price> regions(std::string_view server, Market market) const;

  /// Why a choice should not rest on a price: "no longer offered: last listed on 2024-12-13, and not in the
  /// provider's list of 2026-06-18", or a note such as "still listed, but new ones may no longer launch"; ""
  /// where nothing speaks against it.
  std::string doubt(const Price& price) const;

 private:
  explicit PriceTable(std::vector<Price> prices) : prices_(std::move(prices)) {}
  std::vector<Price> prices_;
};

}  // namespace convoy::topologies

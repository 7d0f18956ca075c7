// SPDX-License-Identifier: MIT
#include "topologies/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "sim/base/names.h"
#include "topologies/skypilot.h"
#include "topologies/table_grade.h"

namespace convoy::inline topologies {
namespace {

const std::vector<std::string> price_columns{"server", "provider", "region", "market", "usd_per_hour",
                                             "from",   "until",    "source", "note",   "grade"};

/// "2025", "2025-09", "2025-09-01"
bool is_day(std::string_view text) {
  constexpr std::string_view shape = "0000-00-00";
  if (text.size() != 4 && text.size() != 7 && text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (shape[i] == '-' ? text[i] != '-' : !std::isdigit(static_cast<unsigned char>(text[i]))) return false;
  return true;
}

std::string read_day(const CsvTable& table, const CsvRow& row, std::string_view column) {
  const CsvCell* cell = table.find(row, column);
  if (cell && !is_day(cell->text))
    throw InputError(cell->pos,
                     fmt::format("{}: expected a day such as 2025-06-23 (or 2025-06, or 2025), found '{}'",
                                 column, cell->text));
  return cell ? cell->text : "";
}

Price read_row(const CsvTable& table, const CsvRow& row) {
  Price price;
  for (const auto& [column, field] :
       {std::pair{"server", &price.server}, {"provider", &price.provider}, {"region", &price.region}}) {
    *field = table.text(row, column);
    if (field->empty()) throw InputError(row.front().pos, fmt::format("{} is empty", column));
  }
  const std::string market = table.text(row, "market");
  if (market != "on_demand" && market != "spot")
    throw InputError(row.front().pos, fmt::format("market: expected on_demand or spot, found '{}'", market));
  price.market = market == "spot" ? Market::spot : Market::on_demand;
  price.usd_per_hour = table.number(row, "usd_per_hour", false);
  price.from = read_day(table, row, "from");
  price.until = read_day(table, row, "until");
  if (!price.until.empty() && price.until < price.from)
    throw InputError(row.front().pos, fmt::format("until: {} is before from: {}", price.until, price.from));
  price.source = table.text(row, "source");
  price.note = table.text(row, "note");
  price.grade = read_grade(table, row);
  return price;
}

/// The last day on which a price was seen listed, that far: "" for today, whatever it is.
std::string_view last_seen(const Price& price, std::string_view day) {
  const std::string_view last = price.until.empty() ? price.from : price.until;
  return day.empty() || last < day ? last : day;
}

/// Whether of two prices of one server, region and market the first is the newer one: it was seen last, or,
/// where both were seen then, it came later.
bool is_later(const Price& a, const Price& b, std::string_view day = {}) {
  return std::pair{last_seen(a, day), std::string_view(a.from)} >
         std::pair{last_seen(b, day), std::string_view(b.from)};
}

/// Two prices of one thing for the same days: neither is the newer one.
bool contradict(const Price& a, const Price& b) {
  return a.server == b.server && a.region == b.region && a.market == b.market && a.from == b.from &&
         a.until == b.until && a.usd_per_hour != b.usd_per_hour;
}

}  // namespace

std::string_view to_string(Market market) { return market == Market::spot ? "spot" : "on_demand"; }

std::string Price::origin() const {
  const std::string since = until.empty()   ? from
                            : from == until ? until
                                            : fmt::format("{} to {}", from, until);
  return fmt::format("{}, {}, {}", market == Market::spot ? "spot" : "on demand", region, since);
}

const PriceTable& PriceTable::shipped() {
  static const PriceTable table = read(data_path("topologies/catalog") + "/prices.csv");
  return table;
}

PriceTable PriceTable::read(const std::string& file) {
  const CsvTable table(file, {}, {});
  if (table.has("InstanceType")) return PriceTable(read_skypilot_prices(table, file));
  if (!table.has("server"))
    throw InputError(table.header(),
                     fmt::format("expected the header of a price table ({}) or of SkyPilot's vms.csv "
                                 "(InstanceType, Price, SpotPrice, Region, ...)",
                                 list_of(price_columns)));
  table.expect(price_columns, {"server", "provider", "region", "market", "usd_per_hour", "from"});
  std::vector<Price> prices;
  for (const CsvRow& row : table.rows()) {
    Price price = read_row(table, row);
    const auto other = std::find_if(prices.begin(), prices.end(),
                                    [&](const Price& before) { return contradict(before, price); });
    if (other != prices.end())
      throw InputError(
          table.find(row, "usd_per_hour")->pos,
          fmt::format("usd_per_hour: {:g} for {} {}, but line {} has {:g} for the same days",
                      price.usd_per_hour, price.server, price.origin(),
                      table.rows()[static_cast<std::size_t>(other - prices.begin())].front().pos.line,
                      other->usd_per_hour));
    prices.push_back(std::move(price));
  }
  return PriceTable(std::move(prices));
}

std::optional<Price> PriceTable::find(std::string_view server, Market market, std::string_view region,
                                      std::string_view day) const {
  const Price* found = nullptr;
  for (const Price& price : prices_) {
    if (price.server != server || price.market != market) continue;
    if (!day.empty() && price.from > day) continue;
    if (!region.empty() ? price.region != region : found && found->region != price.region) continue;
    if (!found || is_later(price, *found, day)) found = &price;
  }
  return found ? std::optional(*found) : std::nullopt;
}

std::vector<Price> PriceTable::regions(std::string_view server, Market market) const {
  std::vector<Price> found;
  for (const Price& price : prices_) {
    if (price.server != server || price.market != market) continue;
    const auto same = std::find_if(found.begin(), found.end(),
                                   [&](const Price& other) { return other.region == price.region; });
    if (same == found.end())
      found.push_back(price);
    else if (is_later(price, *same))
      *same = price;
  }
  return found;
}

std::string PriceTable::doubt(const Price& price) const {
  std::string last_of_provider, last;
  for (const Price& other : prices_) {
    if (other.provider != price.provider || other.market != Market::on_demand) continue;
    last_of_provider = std::max(last_of_provider, other.until);
    if (other.server == price.server && other.region == price.region) last = std::max(last, other.until);
  }
  if (!last.empty() && last < last_of_provider)
    return fmt::format("no longer offered: last listed on {}, and not in the provider's list of {}", last,
                       last_of_provider);
  const std::optional<Price> listed = find(price.server, Market::on_demand, price.region);
  return listed && listed->note.starts_with("still listed") ? listed->note : "";
}

}  // namespace convoy::topologies

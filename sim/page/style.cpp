// SPDX-License-Identifier: MIT
#include "sim/page/style.h"

namespace convoy::inline page {

std::string_view report_style() {
  return R"css(
:root { color-scheme: light dark;
  --page: #ffffff; --card: #f6f7f9; --ink: #1c2430; --soft: #566170; --grid: #e3e6ea; --axis: #9aa3ae; --limit: #b3261e;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b65c96; --c4: #d18f00; --c5: #3f9bd1; --c6: #8a8000; --c7: #5b6675;
  --idle: #c9ced6; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14181e; --card: #1d232b; --ink: #e8ebef; --soft: #a3adba; --grid: #2b323c; --axis: #66707d; --limit: #ff8a80;
  --c0: #4da6e6; --c1: #ff8a4c; --c2: #2fc79a; --c3: #e39ac4; --c4: #f2b83b; --c5: #8ccbf5; --c6: #d9cb4a; --c7: #a5b0be;
  --idle: #4a535f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 28px 24px 48px; }
h1 { font-size: 27px; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 40px 0 6px; padding-top: 14px; border-top: 1px solid var(--grid); }
h3 { font-size: 15px; margin: 22px 0 4px; }
p { margin: 6px 0 10px; max-width: 860px; overflow-wrap: anywhere; }
p.sub, .small, figcaption { color: var(--soft); font-size: 13.5px; }
figure { margin: 12px 0 18px; }
.charts { display: flex; flex-wrap: wrap; gap: 8px 20px; align-items: flex-start; }
svg { max-width: 100%; height: auto; font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; overflow: visible; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(235px, 1fr)); gap: 12px; margin: 18px 0; }
.card { background: var(--card); border-radius: 8px; padding: 12px 16px; }
.card .name { color: var(--soft); font-size: 13px; }
.card .big { font-size: 25px; font-weight: 650; line-height: 1.3; font-variant-numeric: tabular-nums; }
.card .big span { font-size: 14px; font-weight: 400; color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 12px; line-height: 1.35; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); border-bottom: 1px solid var(--axis); padding: 4px 8px; vertical-align: bottom; }
td { border-bottom: 1px solid var(--grid); padding: 3px 8px; vertical-align: top; }
th.n, td.n { text-align: right; } td.n { white-space: nowrap; }
tr.best td { font-weight: 650; }
tr.over td { color: var(--limit); }
td.hash { overflow-wrap: anywhere; font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12px; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12.5px; background: var(--card); padding: 1px 5px;
  border-radius: 4px; overflow-wrap: anywhere; }
.grid { stroke: var(--grid); } .axis { stroke: var(--axis); } .limit { stroke: var(--limit); stroke-width: 2; }
.ideal { stroke: var(--soft); stroke-width: 1.3; stroke-dasharray: 6 4; } .leader { stroke: var(--axis); stroke-width: 0.7; }
.tick, .note { fill: var(--soft); font-size: 11px; } .title { fill: var(--soft); font-size: 12px; }
.label, .value { fill: var(--ink); font-size: 12px; } .heading { fill: var(--ink); font-weight: 650; font-size: 13px; }
.line { fill: none; stroke: var(--c); stroke-width: 1.9; stroke-linejoin: round; } .mark, .bar, .area { fill: var(--c); }
.mark { stroke: var(--page); stroke-width: 0.8; } .mark.many { stroke: none; opacity: 0.5; } .faint { opacity: 0.45; }
.range { stroke: var(--c); stroke-width: 3; opacity: 0.25; }
.over-time { vector-effect: non-scaling-stroke; }
.tools { display: flex; flex-wrap: wrap; gap: 6px 12px; align-items: center; margin: 8px 0; font-size: 13px; }
.tools input[type=search] { flex: 0 1 300px; min-width: 0; }
input, select, button, summary { font: inherit; color: inherit; }
input[type=search], select, .tools button, section > button { background: var(--page); border: 1px solid var(--axis); border-radius: 5px; padding: 3px 8px;
  min-height: 26px; max-width: 100%; }
button:disabled { opacity: 0.5; }
button.sort { all: unset; cursor: pointer; } button.sort:focus-visible { outline: 2px solid var(--c0); }
th[aria-sort=ascending] button::after { content: " \2191"; } th[aria-sort=descending] button::after { content: " \2193"; }
#runs-table td { white-space: nowrap; }
tr[aria-current] td { background: var(--card); outline: 1px solid var(--c1); }
.wrong { color: var(--limit); } .choose { position: relative; } .choose label { display: block; }
.choose[open] { background: var(--card); border-radius: 5px; padding: 4px 8px; }
.sliders { display: flex; flex-wrap: wrap; gap: 6px 24px; } .slider { display: flex; gap: 8px; align-items: center; flex-wrap: wrap; font-size: 13px; }
.paper { display: none; } canvas { display: block; width: 100%; touch-action: pan-y; }
.d1 { stroke-dasharray: 7 3; } .d2 { stroke-dasharray: 2 3; } .d3 { stroke-dasharray: 9 3 2 3; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); } .c4 { --c: var(--c4); }
.c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); } .idle { --c: var(--idle); }
@media screen and (max-width: 720px) { main { padding: 16px 12px 32px; } figure { overflow-x: auto; } svg { max-width: none; } h1 { font-size: 22px; } }
@page { size: A4; margin: 12mm; }
@media print { main { max-width: none; padding: 0; } .scroll, figure { overflow: visible; } .tools, .worked { display: none; } .paper { display: block; }
  table { font-size: 8px; width: 100%; } th, td { padding: 2px 3px; overflow-wrap: anywhere; } td.n, #runs-table td { white-space: normal; }
  th.n, td.n { overflow-wrap: normal; } td:not(.n), th:not(.n) { min-width: 4.2em; }
  figure, .card, tr, svg { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .card { border: 1px solid var(--grid); } }
)css";
}

}  // namespace convoy::page

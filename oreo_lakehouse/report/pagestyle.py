"""The report's own style sheet: light and dark by the reader's preference, narrow and wide by the room there is."""

STYLE = """
:root { color-scheme: light dark; --bg: #ffffff; --panel: #f5f6f8; --ink: #1a1f26; --dim: #57616e; --line: #d8dde4;
  --actual: #0b63c5; --never: #7b838e; --fixed: #b35900; --good: #14713f; --warn: #9a5200; --heat: 11 99 197;
  --l0: #9aa1ab; --l1: #0b63c5; --l2: #b35900; --l3: #14713f; --l4: #8b3fb0; --l5: #b3304c; --l6: #0f7f86;
  --l7: #7a6a00; }
@media (prefers-color-scheme: dark) {
  :root { --bg: #0e1319; --panel: #161d26; --ink: #e7ebf1; --dim: #9ba8b7; --line: #2b3542;
    --actual: #63b3ff; --never: #8f9aa8; --fixed: #f2a65a; --good: #5fd093; --warn: #f3b968; --heat: 99 179 255;
    --l0: #66717f; --l1: #63b3ff; --l2: #f2a65a; --l3: #5fd093; --l4: #c792ea; --l5: #ff7d94; --l6: #4fd1d9;
    --l7: #d8c547; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); line-height: 1.5;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main, header, footer { max-width: 1080px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 36px; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 4px; }
p { margin: 6px 0 0; max-width: 75ch; }
.dim, figcaption, footer { color: var(--dim); font-size: .9rem; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .92em; overflow-wrap: anywhere; }
section { margin: 40px 0 0; }
details { margin: 40px 0 0; border-top: 1px solid var(--line); } details + details { margin-top: 0; }
summary { padding: 12px 0; font-size: 1.3rem; font-weight: 600; cursor: pointer; overflow-wrap: anywhere; }
a { color: var(--actual); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px; margin-top: 24px; }
.tile { background: var(--panel); border-radius: 12px; padding: 14px 16px; }
.tile b { display: block; font-size: 1.55rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tile span { color: var(--dim); font-size: .88rem; }
.good { color: var(--good); } .warn { color: var(--warn); }
figure { margin: 14px 0 0; display: flow-root; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 10px 0 8px; padding: 0; list-style: none;
  font-size: .92rem; }
.legend svg { width: 26px; height: 10px; vertical-align: middle; margin-right: 6px; }
.plot { position: relative; margin: 30px 0 44px 58px; height: 300px; }
.plot.low { height: 200px; }
.plot > svg, .band > svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
.y, .x, .mark { position: absolute; color: var(--dim); font-size: .8rem; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.y { right: 100%; margin-right: 8px; transform: translateY(50%); }
.x { top: 100%; margin-top: 6px; transform: translateX(-50%); }
.x.last { transform: translateX(-100%); } .x.first { transform: none; }
.x.title { left: 50%; margin-top: 24px; }
.mark { bottom: 100%; transform: translateX(-50%); background: var(--ink); color: var(--bg); border-radius: 9px;
  min-width: 18px; text-align: center; padding: 0 5px; line-height: 18px; font-size: .72rem; }
.grid { stroke: var(--line); stroke-width: 1; }
.move { stroke: var(--dim); stroke-width: 1; stroke-dasharray: 2 3; }
.line { fill: none; stroke-width: 2.25; stroke-linejoin: round; }
.actual { stroke: var(--actual); } .never { stroke: var(--never); stroke-dasharray: 7 4; }
.fixed { stroke: var(--fixed); stroke-dasharray: 2 3; }
.area { fill: var(--actual); fill-opacity: .10; stroke: none; }
line, polyline, polygon { vector-effect: non-scaling-stroke; }
.band { position: relative; height: 34px; margin: 14px 0 6px; border-radius: 8px; overflow: hidden; }
.heat { position: relative; margin: 14px 0 8px; background: var(--panel); border-radius: 8px; overflow: hidden; }
.heat svg { display: block; width: 100%; height: 260px; }
.heat rect { fill: rgb(var(--heat)); shape-rendering: crispEdges; }
.ends { display: flex; justify-content: space-between; gap: 16px; }
.scale { display: inline-block; width: 120px; height: 10px; border-radius: 5px; vertical-align: middle; margin: 0 6px;
  background: linear-gradient(90deg, rgb(var(--heat) / .04), rgb(var(--heat))); }
.wide { overflow-x: auto; margin-top: 12px; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th { text-align: left; color: var(--dim); font-weight: 600; font-size: .82rem; }
th, td { padding: 7px 14px 7px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.t { white-space: nowrap; }
.swatch { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 8px;
  vertical-align: -1px; }
footer { margin-top: 48px; padding-bottom: 40px; }
@media (max-width: 620px) {
  body { font-size: 15px; } h1 { font-size: 1.35rem; } .plot { height: 240px; margin-left: 46px; }
  .tile b { font-size: 1.3rem; } .tiles { grid-template-columns: repeat(2, 1fr); gap: 8px; }
  .tile { padding: 10px 12px; } .tile:last-child:nth-child(odd) { grid-column: 1 / -1; }
  table.cards thead { position: absolute; clip-path: inset(50%); } table.cards tr { display: block; padding: 8px 0;
    border-bottom: 1px solid var(--line); } table.cards td { display: flex; justify-content: space-between; gap: 16px;
    border: 0; padding: 2px 0; text-align: right; white-space: normal; }
  table.cards td::before { content: attr(data-name); color: var(--dim); text-align: left; white-space: nowrap; }
  table.cards td.wrap { display: block; text-align: left; } table.cards td.wrap::before { display: block; }
}
@media print { .wide { overflow: visible; } section { break-inside: avoid; } }
"""

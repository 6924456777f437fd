"""The style sheet of the report page: light, dark, and in print."""

CSS = """
:root { --ink: #1f2933; --soft: #52606d; --line: #d9e2ec; --ground: #ffffff; --band: #f5f7fa; --ours: #0072b2;
  --no: #a4450a; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --soft: #9aa5b1; --line: #3e4c59; --ground: #171c22;
  --band: #1f2730; --ours: #6cb8e6; --no: #f0a070; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); margin: 0 auto;
  max-width: 78rem; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; overflow-wrap: anywhere; } h2 { margin: 2.5rem 0 .5rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; list-style: none; padding: 0; margin: 0; }
a { color: var(--ours); }
.scroll { overflow-x: auto; margin: 1.5rem 0 .5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
caption { text-align: left; font-weight: 600; padding-bottom: .4rem; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th[scope=row], thead tr:last-child th:nth-child(-n+2):not(.ours, .diff) { text-align: left; }
th[scope=row] { font-weight: 400; white-space: normal; } th[scope=colgroup] { text-align: center; }
tbody tr:nth-child(even) { background: var(--band); } .mean { font-weight: 600; }
td.ours { color: var(--ours); font-weight: 600; } td.diff { color: var(--soft); }
.note, figcaption, footer { color: var(--soft); font-size: .85rem; }
figure { margin: 1.5rem 0; } img { max-width: 100%; height: auto; background: #fff; border: 1px solid var(--line); }
details { border-bottom: 1px solid var(--line); } summary { padding: .35rem 0; cursor: pointer; }
summary span { margin-right: .8rem; } .what { font-weight: 600; } .terms, .value { color: var(--soft); }
.proof.yes { color: var(--ours); } .proof.no { color: var(--no); }
pre { overflow-x: auto; background: var(--band); padding: .8rem; font-size: .8rem; line-height: 1.35; }
footer { margin-top: 3rem; }
@media print { nav { display: none; } .scroll { overflow: visible; } section { break-inside: auto; } }
"""

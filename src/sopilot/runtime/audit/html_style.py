"""The style sheet of the HTML report, in light and dark."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{--ground:#f6f7f9;--card:#fff;--ink:#1b2430;--soft:#5d6b7c;--line:#dfe4ea;--accent:#2257c4;
--good:#17703a;--good-ground:#e5f4ea;--bad:#b3261e;--bad-ground:#fdeceb;--warn:#8a5a00;
--warn-ground:#fdf3dd;--note-ground:#e9eef7}
@media (prefers-color-scheme:dark){:root{--ground:#10151c;--card:#18202a;--ink:#e4e9f0;
--soft:#93a1b3;--line:#2a3542;--accent:#86aefc;--good:#6fd598;--good-ground:#143021;--bad:#ff9b93;
--bad-ground:#3a1a19;--warn:#f1c262;--warn-ground:#352810;--note-ground:#1e2a3b}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
main{max-width:980px;margin:0 auto;padding:32px 20px 64px}
header{display:flex;justify-content:space-between;align-items:flex-start;gap:16px}
h1{font-size:26px;line-height:1.2;margin:0}
h2{font-size:13px;letter-spacing:.06em;text-transform:uppercase;color:var(--soft);
margin:36px 0 12px}
.session{margin:4px 0 0;color:var(--soft);font-size:13px;overflow-wrap:anywhere}
.verdict{margin:0;padding:6px 14px;border-radius:999px;font-weight:600;white-space:nowrap}
.verdict.good{background:var(--good-ground);color:var(--good)}
.verdict.bad{background:var(--bad-ground);color:var(--bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:10px;
margin:24px 0 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px}
.tile dt{font-size:12px;color:var(--soft)}
.tile dd{margin:2px 0 0;font-size:20px;font-weight:600}
.tile.bad dd{color:var(--bad)}
.tile.good dd{color:var(--good)}
.findings,.timeline{list-style:none;margin:0;padding:0}
.findings>li,.refusal{background:var(--card);border:1px solid var(--line);
border-left:4px solid var(--soft);border-radius:10px;padding:12px 16px;margin:0 0 10px}
.findings>li.error{border-left-color:var(--bad)}
.findings>li.warning{border-left-color:var(--warn)}
.line{display:flex;gap:10px;align-items:baseline;flex-wrap:wrap}
.findings p,.refusal p{margin:4px 0 0}
blockquote{margin:8px 0 0;padding:0 0 0 12px;border-left:2px solid var(--line);color:var(--soft)}
.where,.place{font:12px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
color:var(--soft);overflow-wrap:anywhere}
.refusal ul{margin:8px 0 0;padding-left:20px}
.remedy{color:var(--soft)}
.seq{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color:var(--accent);
text-decoration:none;padding:1px 6px;border-radius:6px;background:var(--note-ground);
margin-right:4px}
a.seq:hover,a.seq:focus{text-decoration:underline}
code{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.none{color:var(--soft)}
.timeline{background:var(--card);border:1px solid var(--line);border-radius:10px;overflow:hidden}
.timeline>li{display:grid;grid-template-columns:44px 84px 1fr;gap:10px;padding:9px 14px;
border-top:1px solid var(--line);align-items:start}
.timeline>li:first-child{border-top:0}
.timeline>li:target{outline:2px solid var(--accent);outline-offset:-2px}
.timeline>li.error{background:var(--bad-ground)}
.timeline>li.warning{background:var(--warn-ground)}
.number{font:12px/1.9 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color:var(--soft);
text-align:right}
.actor{font-size:12px;line-height:1.9;color:var(--soft)}
.actor.user,.actor.operator{color:var(--accent)}
.what{padding-left:calc(var(--depth)*18px);min-width:0}
.kind{font-weight:600;font-size:13px}
.says{overflow-wrap:anywhere}
.says.good{color:var(--good)}
.says.bad{color:var(--bad)}
.note{margin:6px 0 0;font-size:13px;font-weight:600}
.note q{font-weight:400}
.note.error{color:var(--bad)}
.note.warning{color:var(--warn)}
.checks{width:100%;border-collapse:collapse;font-size:14px}
.checks th{text-align:left;font-size:12px;color:var(--soft);font-weight:600}
.checks th,.checks td{padding:7px 12px 7px 0;border-bottom:1px solid var(--line);vertical-align:top}
.people{font-size:14px}
@media (max-width:640px){.timeline>li{grid-template-columns:34px 1fr}.actor{display:none}
header{flex-direction:column}.what{padding-left:calc(var(--depth)*8px)}}
@media print{body{background:#fff}.timeline,.tile,.findings>li{break-inside:avoid}}
"""

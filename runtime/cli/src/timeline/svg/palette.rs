//! Colours, light and dark, in one table.

use std::fmt::Write;

/// Class, property, on a light ground, on a dark ground.
const COLOURS: &[(&str, &str, &str, &str)] = &[
    ("ground", "fill", "#ffffff", "#0d1117"),
    ("ground", "stroke", "#d8dee4", "#30363d"),
    ("title", "fill", "#1f2328", "#f0f6fc"),
    ("name", "fill", "#1f2328", "#e6edf3"),
    ("soft", "fill", "#656d76", "#8d96a0"),
    ("tag", "fill", "#8c959f", "#6e7681"),
    ("tick", "fill", "#656d76", "#8d96a0"),
    ("grid", "stroke", "#eaeef2", "#1c2129"),
    ("axis", "stroke", "#afb8c1", "#484f58"),
    ("split", "stroke", "#d8dee4", "#30363d"),
    ("cut", "stroke", "#cf222e", "#f85149"),
    ("gone", "stroke", "#8c959f", "#6e7681"),
    ("cut-label", "fill", "#cf222e", "#f85149"),
    ("phase-pending", "fill", "#d3dae2", "#373e47"),
    ("phase-running", "fill", "#b6dcff", "#1b3f66"),
    ("phase-succeeded", "fill", "#a8e6b8", "#1a4d2b"),
    ("phase-failed", "fill", "#ffc1bc", "#67211e"),
    ("phase-unknown", "fill", "#d8b9ff", "#3c1e70"),
    ("on-phase", "fill", "#24292f", "#e6edf3"),
    ("not-ready", "fill", "#eaeef2", "#21262d"),
    ("s-waiting", "fill", "#eaeef2", "#21262d"),
    ("s-pulling", "fill", "#c5b3f6", "#5b4593"),
    ("s-backoff", "fill", "#fbe7a8", "#43340a"),
    ("hatch", "stroke", "#d9a61f", "#a37c18"),
    ("s-starting", "fill", "#a5d3ff", "#26517d"),
    ("s-running", "fill", "#4b9fee", "#1f6feb"),
    ("s-ready", "fill", "#3fb45f", "#2a9a46"),
    ("s-stopping", "fill", "#f5a25d", "#b3601a"),
    ("s-succeeded", "fill", "#cdeed5", "#16331f"),
    ("s-failed", "fill", "#ffd3cf", "#431a1b"),
    ("on-soft", "fill", "#57606a", "#a8b1bb"),
    ("on-strong", "fill", "#ffffff", "#ffffff"),
    ("event", "fill", "#8c959f", "#6e7681"),
    ("event-label", "fill", "#656d76", "#8d96a0"),
    ("warn", "fill", "#bf5b04", "#db8a2f"),
    ("warn-label", "fill", "#a04c00", "#e09b4d"),
    ("bad", "fill", "#cf222e", "#f85149"),
    ("bad-label", "fill", "#cf222e", "#ff7b72"),
    ("well", "fill", "#1a7f37", "#3fb950"),
    ("well-label", "fill", "#1a7f37", "#56d364"),
    ("probe-ok", "fill", "#3fb45f", "#2ea043"),
    ("probe-bad", "stroke", "#cf222e", "#ff6a61"),
];

/// What doesn't depend on the ground.
const SHAPES: &str = "
text{font-family:ui-sans-serif,-apple-system,'Segoe UI','Noto Sans','DejaVu Sans',Helvetica,Arial,sans-serif;font-size:11px}
.title{font-size:17px;font-weight:600}
.name{font-size:13px;font-weight:600}
.soft{font-size:12px}
.tag,.tick{font-size:10.5px}
.on-soft,.on-strong,.on-phase{font-size:10.5px;font-weight:500}
.event-label,.warn-label,.bad-label,.well-label,.cut-label{font-size:10px}
.bad-label,.well-label,.cut-label{font-weight:600}
.grid,.split{stroke-width:1}
.axis{stroke-width:1}
.gone{stroke-width:1.2;stroke-dasharray:1.5 3}
.cut{stroke-width:1.4;stroke-dasharray:4 3}
.hatch{stroke-width:3;fill:none}
.probe-bad{stroke-width:1.6;fill:none;stroke-linecap:round}
.s-hatched{fill:url(#backoff)}
";

/// Patterns.
pub(super) const DEFS: &str = r#"<defs><pattern id="backoff" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" class="s-backoff"/><path d="M-2 2L2 -2M0 8L8 0M6 10L10 6" class="hatch"/></pattern></defs>"#;

/// The style sheet.
pub(super) fn style() -> String {
    let mut out = SHAPES.to_owned();
    for (class, property, light, _) in COLOURS {
        let _ = writeln!(out, ".{class}{{{property}:{light}}}");
    }
    out.push_str("@media (prefers-color-scheme:dark){\n");
    for (class, property, _, dark) in COLOURS {
        let _ = writeln!(out, ".{class}{{{property}:{dark}}}");
    }
    out.push_str("}\n");
    out
}

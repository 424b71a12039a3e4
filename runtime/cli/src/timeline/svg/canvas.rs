//! Writes SVG elements.

use std::fmt::Write;

use super::palette;

/// A picture in the making.
pub(super) struct Canvas {
    width: f64,
    body: String,
}

/// How a text is set.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    class: &'a str,
    anchor: &'a str,
}

impl<'a> Text<'a> {
    /// Starts at its point.
    pub(super) const fn class(class: &'a str) -> Self {
        Self { class, anchor: "start" }
    }

    /// Ends at its point.
    pub(super) const fn end(self) -> Self {
        Self { anchor: "end", ..self }
    }

    /// Has its middle at its point.
    pub(super) const fn middle(self) -> Self {
        Self { anchor: "middle", ..self }
    }
}

impl Canvas {
    /// An empty picture.
    pub(super) const fn new(width: f64) -> Self {
        Self { width, body: String::new() }
    }

    /// A text.
    pub(super) fn text(&mut self, x: f64, y: f64, text: &str, set: Text<'_>) {
        let anchor = if set.anchor == "start" { String::new() } else { format!(r#" text-anchor="{}""#, set.anchor) };
        let (class, text) = (set.class, escape(text));
        let _ = writeln!(self.body, r#"<text x="{x:.1}" y="{y:.1}" class="{class}"{anchor}>{text}</text>"#);
    }

    /// A filled stretch with a title that browsers show when it is pointed at.
    pub(super) fn bar(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str, title: &str) {
        let radius = (height / 5.0).min(width / 2.0).min(4.0);
        let title = escape(title);
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.2}" y="{y:.1}" width="{width:.2}" height="{height:.1}" rx="{radius:.1}" class="{class}"><title>{title}</title></rect>"#
        );
    }

    /// A line.
    pub(super) fn line(&mut self, x1: f64, y1: f64, x2: f64, y2: f64, class: &str) {
        let _ = writeln!(self.body, r#"<line x1="{x1:.2}" y1="{y1:.1}" x2="{x2:.2}" y2="{y2:.1}" class="{class}"/>"#);
    }

    /// A dot.
    pub(super) fn dot(&mut self, x: f64, y: f64, radius: f64, class: &str) {
        let _ = writeln!(self.body, r#"<circle cx="{x:.2}" cy="{y:.1}" r="{radius:.1}" class="{class}"/>"#);
    }

    /// A cross.
    pub(super) fn cross(&mut self, x: f64, y: f64, size: f64, class: &str) {
        let (l, r, t, b) = (x - size, x + size, y - size, y + size);
        let _ = writeln!(
            self.body,
            r#"<path d="M{l:.2} {t:.1}L{r:.2} {b:.1}M{r:.2} {t:.1}L{l:.2} {b:.1}" class="{class}"/>"#
        );
    }

    /// A small triangle that points down to its place.
    pub(super) fn pointer(&mut self, x: f64, y: f64, class: &str, title: &str) {
        let (l, r, t) = (x - 3.5, x + 3.5, y - 5.0);
        let title = escape(title);
        let _ = writeln!(
            self.body,
            r#"<path d="M{x:.2} {y:.1}L{l:.2} {t:.1}H{r:.2}Z" class="{class}"><title>{title}</title></path>"#
        );
    }

    /// The document.
    pub(super) fn finish(self, height: f64, title: &str) -> String {
        let (width, title) = (self.width, escape(title));
        let (style, defs, body) = (palette::style(), palette::DEFS, self.body);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img" aria-label="{title}">
<title>{title}</title>
<style>{style}</style>
{defs}
<rect x="0.5" y="0.5" width="{:.0}" height="{:.0}" rx="10" class="ground"/>
{body}</svg>
"#,
            width - 1.0,
            height - 1.0
        )
    }
}

fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            // Other control characters can't stand in XML at all.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
        out
    })
}

//! The live view: what happens scrolls by as usual, and at the bottom stands what is.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use husk_agent::ContainerView;
use husk_api::k8s;
use husk_core::Instant;
use husk_core::status::{ContainerState, ContainerStatus, Phase, PodStatus};
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use ratatui::{Terminal, TerminalOptions, Viewport};

use super::happening::{Ends, Reporter, What, Who, containers, lost};
use crate::manifest::Found;
use crate::out::{self, out};

/// Most rows of the view, so that there is room for what scrolls above it.
const MOST_ROWS: u16 = 16;
/// Most rows that are written above it in one go.
const ROWS_AT_ONCE: usize = 20;
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Draws at the bottom of the terminal.
pub(crate) struct Live {
    terminal: Terminal<CrosstermBackend<io::Stdout>>,
    pods: Vec<Option<Pod>>,
    ends: Ends,
    /// Roles of the containers of each pod.
    roles: Vec<HashMap<String, &'static str>>,
    ticks: usize,
    last: Duration,
    footer: String,
    /// From the node's epoch to the beginning of the run.
    offset: Duration,
}

struct Pod {
    name: Arc<str>,
    status: Arc<PodStatus>,
    views: Arc<[ContainerView]>,
    gone: bool,
}

impl Pod {
    fn is_over(&self) -> bool {
        self.gone || self.status.phase.is_terminal()
    }
}

impl Live {
    /// On standard output; `epoch` is the wall-clock time of the node's beginning.
    pub(crate) fn new(found: &[Found], epoch: SystemTime) -> io::Result<Self> {
        let roles: Vec<_> = found.iter().map(|found| roles(&found.pod)).collect();
        let wanted = 2 + roles.iter().map(|roles| 1 + roles.len()).sum::<usize>();
        let rows = u16::try_from(wanted).unwrap_or(MOST_ROWS).min(MOST_ROWS);
        let terminal = terminal(rows)?;
        Ok(Self {
            terminal,
            pods: found.iter().map(|_| None).collect(),
            ends: Ends::default(),
            roles,
            ticks: 0,
            last: Duration::ZERO,
            footer: "Ctrl-C stops gracefully".to_owned(),
            // The run begins as soon as there is somebody to show it.
            offset: SystemTime::now().duration_since(epoch).unwrap_or_default(),
        })
    }

    /// Writes a line above the view.
    fn above(&mut self, line: Line<'_>) {
        let width = usize::from(self.terminal.size().map_or(80, |size| size.width)).max(20);
        for rows in wrapped(&line, width).chunks(ROWS_AT_ONCE) {
            // A terminal that can't be written to is no reason to end the pods.
            let _ = self.terminal.insert_before(rows.len() as u16, |buffer: &mut Buffer| {
                let area = buffer.area;
                for (row, y) in rows.iter().zip(area.y..area.bottom()) {
                    row.render(Rect { y, height: 1, ..area }, buffer);
                }
            });
        }
    }

    fn draw(&mut self, after: Duration) {
        let height = usize::from(self.terminal.get_frame().area().height);
        let rows = self.view(after, height);
        self.last = after;
        let _ = self.terminal.draw(|frame| {
            let area = frame.area();
            for (row, y) in rows.into_iter().zip(area.y..area.bottom()) {
                frame.render_widget(row, Rect { y, height: 1, ..area });
            }
        });
    }

    /// What stands in a view of so many rows: an empty one, the pods, the footer.
    fn view(&self, after: Duration, height: usize) -> Vec<Line<'static>> {
        let room = height.saturating_sub(2);
        let mut rows = self.pods(after, |_| true);
        if rows.len() > room {
            // Who is at an end has nothing to say that wasn't said above.
            rows = self.pods(after, |pod| !pod.is_over());
        }
        if rows.len() > room {
            let more = rows.len() - room.saturating_sub(1);
            rows.truncate(room.saturating_sub(1));
            rows.push(Line::styled(format!("  … {more} more"), faint()));
        }
        rows.insert(0, Line::default());
        rows.push(Line::styled(format!("  {}", self.footer), faint()));
        rows
    }

    fn pods(&self, after: Duration, shown: impl Fn(&Pod) -> bool) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        for (place, pod) in self.pods.iter().enumerate() {
            let Some(pod) = pod.as_ref().filter(|pod| shown(pod)) else { continue };
            rows.push(self.header(pod, after));
            if pod.gone {
                continue;
            }
            for container in containers(&pod.status) {
                let view = pod.views.iter().find(|view| view.name == container.name);
                let role = self.roles[place].get(&container.name).copied().unwrap_or_default();
                rows.push(self.container(container, view, after, role));
            }
        }
        rows
    }

    fn header(&self, pod: &Pod, after: Duration) -> Line<'static> {
        let phase = pod.status.phase;
        let color = match phase {
            Phase::Pending => Color::Yellow,
            Phase::Running => Color::Blue,
            Phase::Succeeded => Color::Green,
            Phase::Failed => Color::Red,
            Phase::Unknown => Color::Magenta,
        };
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let ip = pod.status.pod_ips.first().map(|ip| format!("  {ip}")).unwrap_or_default();
        let seconds = husk_sim::Span(Duration::from_secs(after.as_secs()));
        let word = if pod.gone { format!("{}, gone", phase.as_str()) } else { phase.as_str().to_owned() };
        Line::from(vec![
            Span::styled("● ", color),
            Span::styled(pod.name.to_string(), bold),
            Span::raw("  "),
            Span::styled(word, Style::new().fg(color).add_modifier(Modifier::BOLD)),
            Span::styled(format!("  {seconds}{ip}"), faint()),
        ])
    }

    fn container(
        &self,
        container: &ContainerStatus,
        view: Option<&ContainerView>,
        after: Duration,
        role: &str,
    ) -> Line<'static> {
        let spinner = SPINNER[self.ticks % SPINNER.len()];
        let retry = view.and_then(|view| view.back_off_until);
        let (mark, color, text) = match &container.state {
            ContainerState::Running { .. } if container.ready => ("●", Color::Green, "ready".to_owned()),
            ContainerState::Running { .. } => ("●", Color::Blue, "running".to_owned()),
            ContainerState::Terminated(end) if end.exit_code == 0 => {
                ("✔", Color::Green, format!("exit 0 {}", end.reason))
            }
            ContainerState::Terminated(end) => ("✘", Color::Red, format!("exit {} {}", end.exit_code, end.reason)),
            ContainerState::Waiting { reason, .. } => match retry.map(|at| left(at, self.offset + after)) {
                Some(left) => ("↻", Color::Yellow, format!("{reason}, again in {left}")),
                None if reason == "PodInitializing" => ("○", Color::DarkGray, reason.to_string()),
                None => (spinner, Color::Yellow, reason.to_string()),
            },
        };
        let mut spans = vec![
            Span::raw("  "),
            Span::styled(format!("{mark} "), color),
            Span::raw(format!("{:<20}", container.name)),
            Span::styled(format!("{role:<9}"), faint()),
            Span::styled(format!("{text:<32}"), color),
        ];
        if container.restart_count > 0 {
            spans.push(Span::styled(format!("restarts {}  ", container.restart_count), Color::Yellow));
        }
        for (kind, verdict) in view.map(|view| view.verdicts.as_slice()).unwrap_or_default() {
            let (mark, color) = match verdict {
                Some(true) => ("✔", Color::Green),
                Some(false) => ("✘", Color::Red),
                None => ("·", Color::DarkGray),
            };
            spans.push(Span::styled(format!("{} ", kind.as_str().to_lowercase()), faint()));
            spans.push(Span::styled(format!("{mark}  "), color));
        }
        Line::from(spans)
    }
}

impl Reporter for Live {
    fn happened(&mut self, after: Duration, who: &Who, what: &What) -> io::Result<()> {
        let pod = &mut self.pods[who.place];
        match what {
            What::Status(status, views) => {
                let (status, views) = (status.clone(), views.clone());
                for (name, end) in self.ends.new_in(who.place, &status) {
                    let color = if end.exit_code == 0 { Color::Green } else { Color::Red };
                    let text = format!("exit {} ({})", end.exit_code, end.reason);
                    let line = prefixed(after, name, Span::styled(text, color));
                    self.above(line);
                }
                let gone = self.pods[who.place].as_ref().is_some_and(|pod| pod.gone);
                self.pods[who.place] = Some(Pod { name: who.name.clone(), status, views, gone });
            }
            What::Gone => {
                if let Some(pod) = pod {
                    pod.gone = true;
                }
            }
            What::Event(event) => {
                let warning = event.kind == husk_core::event::EventKind::Warning;
                let style = if warning { Style::new().fg(Color::Yellow) } else { faint() };
                let text = format!("{}: {}", event.reason, printable(&event.message));
                let name = event.container().unwrap_or("pod").to_owned();
                self.above(prefixed(after, &name, Span::styled(text, style)));
            }
            What::Lost(container, lines) => {
                self.above(prefixed(after, container, Span::styled(lost(*lines), Color::Yellow)));
            }
            What::Log(container, line) => {
                let mut row = prefixed(after, container, Span::styled("│ ", faint()));
                row.spans.push(Span::raw(printable(&line.text)));
                self.above(row);
            }
        }
        self.draw(after);
        Ok(())
    }

    fn note(&mut self, after: Duration, text: &str) -> io::Result<()> {
        self.footer = text.to_owned();
        // The terminal has written ^C into the view.
        let _ = self.terminal.clear();
        self.draw(after);
        Ok(())
    }

    fn tick(&mut self, after: Duration) -> io::Result<()> {
        self.ticks += 1;
        self.draw(after);
        Ok(())
    }

    fn finish(&mut self) {
        self.footer.clear();
        self.draw(self.last);
        // The shell's prompt comes below the view.
        let bottom = self.terminal.get_frame().area().bottom().saturating_sub(1);
        let _ = self.terminal.set_cursor_position((0, bottom));
        let _ = self.terminal.show_cursor();
        out("");
    }
}

/// What its containers are for, by name.
fn roles(pod: &k8s::Pod) -> HashMap<String, &'static str> {
    let Some(spec) = &pod.spec else { return HashMap::new() };
    let init = spec.init_containers.iter().flatten().map(|container| {
        let stays = container.restart_policy.as_deref() == Some("Always");
        (container.name.clone(), if stays { "sidecar" } else { "init" })
    });
    init.chain(spec.containers.iter().map(|container| (container.name.clone(), "app"))).collect()
}

fn terminal(rows: u16) -> io::Result<Terminal<CrosstermBackend<io::Stdout>>> {
    let backend = CrosstermBackend::new(io::stdout());
    Terminal::with_options(backend, TerminalOptions { viewport: Viewport::Inline(rows) })
}

fn prefixed(after: Duration, name: &str, text: Span<'static>) -> Line<'static> {
    let time = Span::styled(format!("{:>7.1}s ", after.as_secs_f64()), faint());
    Line::from(vec![time, Span::styled(format!("{name:<14} "), Style::new().fg(Color::Cyan)), text])
}

/// A tab has no width of its own here.
fn printable(text: &str) -> String {
    out::printable(text).replace('\t', "    ")
}

/// Cuts a line into rows: at any character, so that none is lost whatever its width.
fn wrapped(line: &Line<'_>, width: usize) -> Vec<Line<'static>> {
    let (mut rows, mut used) = (vec![Line::default()], 0);
    for part in line.styled_graphemes(Style::default()) {
        let part = Span::styled(part.symbol.to_owned(), part.style);
        if used + part.width() > width {
            rows.push(Line::default());
            used = 0;
        }
        used += part.width();
        if let Some(row) = rows.last_mut() {
            row.spans.push(part);
        }
    }
    rows
}

fn left(at: Instant, now: Duration) -> husk_sim::Span {
    let left = at.since_epoch().saturating_sub(now);
    husk_sim::Span(Duration::from_secs(left.as_secs_f64().ceil() as u64))
}

fn faint() -> Style {
    Style::new().fg(Color::DarkGray)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_loses_no_character() {
        for text in ["", "short", "one word-that-is-longer-than-a-row and more", "漢字漢字漢字漢字漢字漢字"]
        {
            let rows = wrapped(&Line::raw(text), 7);
            assert!(rows.iter().all(|row| row.width() <= 7), "{rows:?}");
            assert_eq!(rows.iter().map(ToString::to_string).collect::<String>(), text);
        }
    }
}

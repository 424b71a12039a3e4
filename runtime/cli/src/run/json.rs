//! A JSON object on a line for each thing that happens. docs/run-output.md describes them.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use husk_agent::ContainerView;
use husk_api::{Wall, status_object};
use husk_core::event::EventKind;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::happening::{Reporter, What, Who, lost};

/// Writes JSON lines.
pub(crate) struct Json {
    wall: Wall,
    /// Wall-clock time of the run's beginning.
    began: Timestamp,
}

impl Json {
    /// To standard output; `epoch` is the wall-clock time of the node's beginning.
    pub(crate) fn new(epoch: SystemTime) -> Result<Self> {
        let epoch = Timestamp::try_from(epoch).context("the machine's clock is out of range")?;
        Ok(Self { wall: Wall(epoch), began: Timestamp::now() })
    }

    fn write(&self, after: Duration, kind: &str, who: Option<&Who>, rest: Value) -> io::Result<()> {
        let time = self.began.saturating_add(after).unwrap_or(self.began);
        let mut object = json!({ "type": kind, "time": time.to_string() });
        if let (Some(object), Value::Object(rest)) = (object.as_object_mut(), rest) {
            if let Some((namespace, name)) = who.and_then(|who| who.name.split_once('/')) {
                object.insert("namespace".into(), namespace.into());
                object.insert("pod".into(), name.into());
            }
            object.extend(rest);
        }
        let mut out = io::stdout().lock();
        writeln!(out, "{object}")?;
        out.flush()
    }
}

impl Reporter for Json {
    fn happened(&mut self, after: Duration, who: &Who, what: &What) -> io::Result<()> {
        let (kind, rest) = match what {
            What::Event(event) => {
                let kind = match event.kind {
                    EventKind::Normal => "Normal",
                    EventKind::Warning => "Warning",
                };
                let rest = json!({
                    "container": event.container(),
                    "eventType": kind,
                    "reason": event.reason,
                    "message": event.message,
                    "count": event.count,
                });
                ("event", rest)
            }
            What::Status(status, views) => {
                let mut status = status_object(status, &self.wall);
                ContainerView::complete(views, &mut status);
                ("status", json!({ "status": status }))
            }
            What::Log(container, line) => {
                let rest = json!({
                    "container": &**container,
                    "stream": line.stream.name(),
                    "text": &*line.text,
                    "partial": line.partial,
                });
                ("log", rest)
            }
            What::Lost(container, lines) => ("note", json!({ "container": &**container, "text": lost(*lines) })),
            What::Gone => ("gone", json!({})),
        };
        self.write(after, kind, Some(who), rest)
    }

    fn note(&mut self, after: Duration, text: &str) -> io::Result<()> {
        self.write(after, "note", None, json!({ "text": text }))
    }
}

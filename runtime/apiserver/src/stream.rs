//! Watches: what changes, one frame a line.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::api::{Api, Ask};
use crate::changes::{Change, Watch};
use crate::negotiate::Form;
use crate::objects::api_error;
use crate::respond::{self, Response};
use crate::selection::Selection;
use crate::status::ApiError;
use crate::storage::{Shared, StorageError, set_revision};
use crate::table::{Include, metadata_only, table};

/// So many frames may wait for a client, each as large as an object; beyond that it falls behind, and is told so when what it
/// misses is forgotten.
const FRAMES: usize = 1;
/// How long a watch lasts if its client doesn't say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(45 * 60);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a client is told how far it is.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// In the bookmark after everything that was there at the beginning.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Answers with what changes.
pub(crate) async fn watch(api: &Api, ask: &Ask) -> Result<Response, ApiError> {
    let resource = ask.place.resource;
    let selection = Selection::of(resource, &ask.query)?;
    let include = Include::of(&ask.query)?;
    let scope = resource.scope(ask.place.namespace.as_deref());
    let storage = api.objects().storage(&scope.resource);
    let asked = ask.query.get("resourceVersion").unwrap_or("0");
    let since: u64 = asked
        .parse()
        .map_err(|_| ApiError::bad_request(format!("Invalid value: {asked:?}: resourceVersion is not a number")))?;
    let bookmarks = ask.query.flag("allowWatchBookmarks");
    let initial = ask.query.get("sendInitialEvents").map(|_| ask.query.flag("sendInitialEvents"));
    if initial == Some(true) && ask.query.get("resourceVersionMatch") != Some("NotOlderThan") {
        let message = "sendInitialEvents is forbidden unless resourceVersionMatch is set to NotOlderThan";
        return Err(ApiError::new(422, "Invalid", message));
    }
    if since > storage.revision() {
        let error = StorageError::Future { asked: since, current: storage.revision() };
        return Err(api_error(error, resource, ""));
    }
    // Without a revision to go on from, a client gets what is there first.
    let (first, since) = if initial == Some(true) || (since == 0 && initial != Some(false)) {
        let page = storage.list(&scope, None).await.map_err(|error| api_error(error, resource, ""))?;
        (page.items, page.revision)
    } else if since == 0 {
        (Vec::new(), storage.revision())
    } else {
        (Vec::new(), since)
    };
    let watch = storage.watch(scope, since);
    let (frames, receiver) = mpsc::channel(FRAMES);
    let writer = Writer { frames, form: ask.form, include, resource, selection, columns_sent: false };
    let timeout = ask.query.count("timeoutSeconds")?.filter(|seconds| *seconds > 0).map(Duration::from_secs);
    let end = Instant::now() + timeout.unwrap_or(DEFAULT_TIMEOUT).min(LONGEST_TIMEOUT);
    let feed = Feed { writer, first, since, end, bookmarks, marks_initial: initial == Some(true) && bookmarks };
    let api = api.clone();
    tokio::spawn(async move {
        tokio::select! {
            // An end is the client gone or the time over: there is nobody to tell.
            _ = feed.run(watch) => {}
            () = api.ended() => {}
        }
    });
    Ok(respond::stream("application/json", receiver))
}

/// The client is gone.
struct Gone;

struct Feed {
    writer: Writer,
    first: Vec<Shared>,
    since: u64,
    end: Instant,
    bookmarks: bool,
    marks_initial: bool,
}

impl Feed {
    async fn run(mut self, watch: Result<Watch, StorageError>) -> Result<(), Gone> {
        for object in std::mem::take(&mut self.first) {
            if self.writer.selection.has(&object) {
                self.writer.object("ADDED", &object).await?;
            }
        }
        if self.marks_initial {
            self.writer.bookmark(self.since, true).await?;
        }
        let mut watch = match watch {
            Ok(watch) => watch,
            Err(error) => return self.writer.error(error).await,
        };
        let mut next_bookmark = Instant::now() + BOOKMARK_PERIOD;
        loop {
            let wake = next_bookmark.min(self.end);
            let frames = self.writer.frames.clone();
            tokio::select! {
                change = watch.next() => match change {
                    Ok(change) => self.writer.change(&change).await?,
                    Err(error) => return self.writer.error(error).await,
                },
                () = sleep_until(wake) => {
                    if self.bookmarks {
                        self.writer.bookmark(watch.revision(), false).await?;
                    }
                    if Instant::now() >= self.end {
                        return Ok(());
                    }
                    next_bookmark = Instant::now() + BOOKMARK_PERIOD;
                }
                () = frames.closed() => return Err(Gone),
            }
        }
    }
}

struct Writer {
    frames: mpsc::Sender<Bytes>,
    form: Form,
    include: Include,
    resource: &'static crate::resource::Resource,
    selection: Selection,
    columns_sent: bool,
}

impl Writer {
    async fn change(&mut self, change: &Change) -> Result<(), Gone> {
        let fits = |object: Option<&Shared>| object.is_some_and(|object| self.selection.has(object));
        match (fits(change.before.as_ref()), &change.after, fits(change.after.as_ref())) {
            (false, Some(after), true) => self.object("ADDED", &after.clone()).await,
            (true, Some(after), true) => self.object("MODIFIED", &after.clone()).await,
            (true, after, false) => {
                // Gone, or not what the client watches any more: it gets what it knew, with the revision of now.
                let removed = change.removed.as_ref().filter(|_| after.is_none());
                let known = match (removed, &change.before) {
                    (Some(removed), _) => (**removed).clone(),
                    (None, Some(before)) => {
                        let mut known = (**before).clone();
                        set_revision(&mut known, change.revision);
                        known
                    }
                    (None, None) => return Ok(()),
                };
                self.object("DELETED", &known).await
            }
            _ => Ok(()),
        }
    }

    async fn object(&mut self, kind: &str, object: &Value) -> Result<(), Gone> {
        match self.form {
            Form::Table => {
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let rows = std::iter::once(object);
                let table = table(self.resource, metadata, rows, self.include, !self.columns_sent);
                self.columns_sent = true;
                self.frame(kind, &table).await
            }
            Form::Metadata => self.frame(kind, &metadata_only(object)).await,
            Form::Json | Form::Yaml => self.frame(kind, object).await,
        }
    }

    async fn bookmark(&mut self, revision: u64, ends_initial: bool) -> Result<(), Gone> {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if ends_initial {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let object =
            json!({"kind": self.resource.kind, "apiVersion": self.resource.api_version(), "metadata": metadata});
        match self.form {
            Form::Table => {
                let metadata = object["metadata"].clone();
                let mut table = table(self.resource, metadata, std::iter::empty(), self.include, !self.columns_sent);
                if ends_initial {
                    // Only an object can carry the annotation.
                    table["rows"] = json!([{"cells": [], "object": metadata_only(&object)}]);
                }
                self.frame("BOOKMARK", &table).await
            }
            Form::Metadata => self.frame("BOOKMARK", &metadata_only(&object)).await,
            Form::Json | Form::Yaml => self.frame("BOOKMARK", &object).await,
        }
    }

    async fn error(&mut self, error: StorageError) -> Result<(), Gone> {
        let status = api_error(error, self.resource, "").status();
        self.frame("ERROR", &status).await
    }

    async fn frame(&mut self, kind: &str, object: &Value) -> Result<(), Gone> {
        let mut bytes = format!("{{\"type\":\"{kind}\",\"object\":").into_bytes();
        // Writing to a vector can't fail.
        let _ = serde_json::to_writer(&mut bytes, object);
        bytes.extend_from_slice(b"}\n");
        self.frames.send(bytes.into()).await.map_err(|_| Gone)
    }
}

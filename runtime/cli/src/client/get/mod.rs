//! `husk get`: objects as a table, YAML, JSON or names.

mod rows;

use std::collections::BTreeSet;

use clap::Args;
use serde_json::Value;

use self::rows::Rows;
use crate::client::choice::{Choice, Placed};
use crate::client::connection::{Agent, Ask, Connection};
use crate::client::failure::Failure;
use crate::client::output::{Form, Printer, line, text};
use crate::client::query::Query;
use crate::client::resources::{Resource, Resources, items};
use crate::client::stream::Watch;
use crate::client::target::Target;
use crate::out::err;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
/// So many objects come in one answer.
const PAGE: usize = 500;

/// What `husk get` is asked.
#[derive(Args, Debug)]
pub(crate) struct Get {
    #[command(flatten)]
    choice: Choice,
    /// The form: json, yaml, name, wide, jsonpath=TEMPLATE, custom-columns=HEADING:PATH,…
    #[arg(short, long, value_name = "FORM", value_parser = Form::parse, default_value = "", hide_default_value = true)]
    output: Form,
    /// Go on and show what changes
    #[arg(short, long)]
    watch: bool,
    /// Show what changes, but not what there is
    #[arg(long)]
    watch_only: bool,
    /// Say of each change what it is: ADDED, MODIFIED or DELETED
    #[arg(long)]
    output_watch_events: bool,
    /// With the labels in a column
    #[arg(long)]
    show_labels: bool,
    /// With columns for these labels
    #[arg(short = 'L', long, value_name = "LABELS", value_delimiter = ',')]
    label_columns: Vec<String>,
    /// With the resource before each name
    #[arg(long)]
    show_kind: bool,
    /// Without the line above the table
    #[arg(long)]
    no_headers: bool,
    /// An object that isn't there is no error
    #[arg(long)]
    ignore_not_found: bool,
    /// With `metadata.managedFields` in YAML and JSON
    #[arg(long)]
    show_managed_fields: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Get {
    /// Shows it.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let agent = self.connection.agent();
        let resources = Resources::of(&agent).await?;
        let targets = self.choice.targets(&resources)?;
        if !self.choice.selectors.is_empty() && targets.iter().any(|(target, _)| target.name.is_some()) {
            return Err(Failure::other("name cannot be provided when a selector is specified"));
        }
        if self.watch || self.watch_only {
            return self.watch(&agent, &targets).await;
        }
        match &self.output {
            Form::Table { is_wide } => self.tables(&agent, &targets, *is_wide).await,
            _ => self.objects(&agent, targets).await,
        }
    }

    fn printer(&self) -> Printer {
        Printer::new(self.output.clone()).keep_managed_fields(self.show_managed_fields).no_headers(self.no_headers)
    }

    fn ask<'a>(&self, target: &Target, own: &Option<String>, query: Query) -> Ask<'a> {
        Ask::get(target.path(own.as_deref())).query(query)
    }

    /// Whether an error is one to go on after: told at the end.
    fn missing(&self, error: Failure) -> Result<Option<Failure>, Failure> {
        match error {
            error if !error.is_not_found() => Err(error),
            _ if self.ignore_not_found => Ok(None),
            error => Ok(Some(error)),
        }
    }

    async fn objects(&self, agent: &Agent, targets: Vec<Placed>) -> Result<(), Failure> {
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for (target, own) in &targets {
            let resource = target.resource.as_ref();
            if target.name.is_some() {
                match agent.json(self.ask(target, own, Query::default())).await {
                    Ok(object) => found.push((object, resource)),
                    Err(error) => missing.extend(self.missing(error)?),
                }
                continue;
            }
            for page in self.pages(agent, target, own, "application/json").await? {
                found.extend(items(&page["items"]).iter().map(|object| (object.clone(), resource)));
            }
        }
        let mut printer = self.printer();
        let is_one = targets.len() == 1 && targets[0].0.name.is_some();
        match found.as_slice() {
            [(object, resource)] if is_one => printer.object(object, resource)?,
            [] if is_one || !missing.is_empty() => {}
            _ => printer.list(found)?,
        }
        told(missing)
    }

    /// All pages of a list.
    async fn pages(
        &self,
        agent: &Agent,
        target: &Target,
        own: &Option<String>,
        accept: &str,
    ) -> Result<Vec<Value>, Failure> {
        let mut pages: Vec<Value> = Vec::new();
        loop {
            let next = pages.last().map(|page| text(&page["metadata"]["continue"])).filter(|next| !next.is_empty());
            let query = match next {
                Some(next) => self.choice.selectors.query().with("limit", PAGE).with("continue", next),
                None if pages.is_empty() => self.choice.selectors.query().with("limit", PAGE),
                None => return Ok(pages),
            };
            pages.push(agent.json(self.ask(target, own, query).accept(accept)).await?);
        }
    }

    async fn tables(&self, agent: &Agent, targets: &[Placed], is_wide: bool) -> Result<(), Failure> {
        let kinds: BTreeSet<String> = targets.iter().map(|(target, _)| target.resource.qualified()).collect();
        let shows_kind = self.show_kind || kinds.len() > 1;
        let mut missing = Vec::new();
        // Objects of one resource share a table.
        let mut tables: Vec<(&Resource, Rows)> = Vec::new();
        for (target, own) in targets {
            let pages = match &target.name {
                Some(_) => {
                    agent.json(self.ask(target, own, Query::default()).accept(TABLE)).await.map(|page| vec![page])
                }
                None => self.pages(agent, target, own, TABLE).await,
            };
            let pages = match pages {
                Ok(pages) => pages,
                Err(error) => {
                    missing.extend(self.missing(error)?);
                    continue;
                }
            };
            let resource = target.resource.as_ref();
            let is_same = tables.last().is_some_and(|(last, _)| *last == resource);
            if !is_same {
                tables.push((resource, Rows::new(self, resource, is_wide, shows_kind)));
            }
            if let Some((_, rows)) = tables.last_mut() {
                pages.iter().for_each(|page| rows.add(page));
            }
        }
        tables.retain(|(_, rows)| !rows.is_empty());
        if tables.is_empty() && missing.is_empty() && !self.ignore_not_found {
            err(self.choice.nothing(targets.iter().any(|(target, _)| target.resource.is_namespaced)));
        }
        for (index, (_, mut rows)) in tables.into_iter().enumerate() {
            if index > 0 {
                line("")?;
            }
            rows.write()?;
        }
        told(missing)
    }

    async fn watch(&self, agent: &Agent, targets: &[Placed]) -> Result<(), Failure> {
        let [(target, own)] = targets else {
            return Err(Failure::Other(format!(
                "watch is only supported on individual resources and resource collections - {} resources were found",
                targets.len()
            )));
        };
        let accept = if matches!(self.output, Form::Table { .. }) { TABLE } else { "application/json" };
        let mut shown = Shown::new(self, &target.resource);
        // A watch is one of a collection.
        let selectors = match &target.name {
            Some(name) => Query::default().with("fieldSelector", format!("metadata.name={name}")),
            None => self.choice.selectors.query(),
        };
        let first = match &target.name {
            Some(_) => vec![agent.json(self.ask(target, own, Query::default()).accept(accept)).await?],
            None => self.pages(agent, target, own, accept).await?,
        };
        let revision = first.last().map(|page| text(&page["metadata"]["resourceVersion"]).to_owned());
        if !self.watch_only {
            for page in &first {
                shown.first(page, target.name.is_some())?;
            }
        }
        let collection = Target { name: None, ..target.clone() };
        let query = selectors.maybe("resourceVersion", revision);
        let mut watch = Watch::begin(agent, self.ask(&collection, own, query).accept(accept)).await?;
        while let Some((happened, object)) = watch.next().await? {
            shown.change(happened.word(), &object)?;
        }
        Ok(())
    }
}

/// Tells what is missing; that there is something is a failure.
fn told(missing: Vec<Failure>) -> Result<(), Failure> {
    missing.iter().for_each(Failure::tell);
    if missing.is_empty() { Ok(()) } else { Err(Failure::Told) }
}

/// What a watch has shown.
enum Shown<'a> {
    Rows(Rows<'a>),
    Objects { printer: Printer, resource: &'a Resource, with_events: bool },
}

impl<'a> Shown<'a> {
    fn new(get: &'a Get, resource: &'a Resource) -> Self {
        match &get.output {
            Form::Table { is_wide } => Self::Rows(Rows::new(get, resource, *is_wide, get.show_kind)),
            _ => Self::Objects { printer: get.printer(), resource, with_events: get.output_watch_events },
        }
    }

    /// What is there at the beginning.
    fn first(&mut self, page: &Value, is_one: bool) -> Result<(), Failure> {
        match self {
            Self::Rows(rows) => {
                rows.happened = "ADDED";
                rows.add(page);
                if rows.is_empty() { Ok(()) } else { rows.write() }
            }
            Self::Objects { .. } if is_one => self.change("ADDED", page),
            Self::Objects { .. } => items(&page["items"]).iter().try_for_each(|object| self.change("ADDED", object)),
        }
    }

    fn change(&mut self, happened: &'static str, object: &Value) -> Result<(), Failure> {
        match self {
            _ if happened == "BOOKMARK" => Ok(()),
            Self::Rows(rows) => {
                rows.happened = happened;
                rows.add(object);
                rows.write()
            }
            Self::Objects { printer, resource, with_events } => {
                if *with_events {
                    return printer.event(happened, object, resource);
                }
                printer.object(object, resource)
            }
        }
    }
}

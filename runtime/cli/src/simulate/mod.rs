//! `husk simulate`: plays a pod's life in virtual time, and shows it as a table and as a picture.

mod recorders;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use husk_sim::play::End;
use husk_sim::{Scenario, Span, Subject};
use husk_timeline::{Document, Timeline};

use self::recorders::Recorders;
use crate::manifest::{self, Found};
use crate::out::{err, out};
use crate::timeline::{Output, svg, table};
use crate::{BAD_INPUT, INTERNAL, check, style};

/// If neither the command line nor the scenario says where the picture ends.
const UNTIL: Span = Span::secs(600);

/// What `husk simulate` is asked.
#[derive(Args)]
pub(crate) struct Simulate {
    /// A manifest with pods (or a Job, Deployment, …; its pod is taken); `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What happens and when; without it all goes well
    #[arg(short, long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Virtual time that is played at most, as in 90s or 1h
    #[arg(short, long, value_name = "TIME")]
    until: Option<Span>,
    /// Draw a picture: a lane for each container
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// How the timeline is printed
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    output: Output,
}

impl Simulate {
    /// Plays, prints and draws.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let manifests = manifest::read(std::slice::from_ref(&self.file));
        check::report(&manifests);
        if !manifests.errors.is_empty() {
            return Ok(ExitCode::from(BAD_INPUT));
        }
        if self.svg.is_some() && manifests.pods.len() > 1 {
            let (file, pods) = (self.file.display(), manifests.pods.len());
            err(format_args!("{file}: has {pods} pods: a picture shows one"));
            return Ok(ExitCode::from(BAD_INPUT));
        }
        let pods =
            manifests.pods.iter().map(|found| (husk_api::core_meta(&found.pod), husk_api::core_spec(&found.pod)));
        let subjects = Subject::cast(pods);
        let scenario = match &self.scenario {
            Some(path) => match Scenario::read(path, &subjects) {
                Ok(scenario) => scenario,
                Err(error) => {
                    err(format_args!("{}: {error:#}", style::red("error")));
                    return Ok(ExitCode::from(BAD_INPUT));
                }
            },
            None => Scenario::default(),
        };
        let until = self.until.or(scenario.until).unwrap_or(UNTIL);
        let mut recorders = Recorders::new(&subjects);
        let (end, broken) = match husk_sim::play(&subjects, &scenario, until.0, &mut recorders) {
            Ok(end) => (end, None),
            Err(broken) => (End::Cut(broken.at), Some(broken)),
        };
        let timelines = recorders.timelines(end);
        match self.output {
            Output::Table => match timelines.as_slice() {
                [timeline] => out(table::table(timeline).trim_end_matches('\n')),
                several => {
                    let table = |timeline: &Timeline| format!("{}\n{}", timeline.pod, table::table(timeline));
                    out(several.iter().map(table).collect::<Vec<_>>().join("\n").trim_end_matches('\n'));
                }
            },
            Output::Json => match timelines.as_slice() {
                [timeline] => out(serde_json::to_string_pretty(&Document::of(timeline))?),
                several => {
                    let documents: Vec<Document> = several.iter().map(Document::of).collect();
                    out(serde_json::to_string_pretty(&documents)?);
                }
            },
            Output::None => {}
        }
        if let (Some(path), [found], [timeline]) = (&self.svg, manifests.pods.as_slice(), timelines.as_slice()) {
            let picture = svg::draw(timeline, &self.about(found, timeline));
            std::fs::write(path, picture).with_context(|| format!("can't write the picture {}", path.display()))?;
        }
        let Some(broken) = broken else { return Ok(ExitCode::SUCCESS) };
        err(format_args!("{}: {broken}", style::red("error")));
        err("this is a fault of Husk: please report it with the manifest and the scenario");
        Ok(ExitCode::from(INTERNAL))
    }

    /// The line under the picture's title.
    fn about(&self, found: &Found, timeline: &Timeline) -> String {
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let policy = found.pod.spec.as_ref().and_then(|spec| spec.restart_policy.clone()).unwrap_or_default();
        let mut parts = vec![name(&self.file), format!("restartPolicy {policy}")];
        if let Some(scenario) = &self.scenario {
            parts[0] = format!("{} with {}", parts[0], name(scenario));
        }
        let end = timeline.duration();
        let end = if end.as_secs() < 10 { end } else { Duration::from_secs_f64(end.as_secs_f64().round()) };
        parts.push(format!("{} of virtual time", Span(end)));
        parts.join("  ·  ")
    }
}

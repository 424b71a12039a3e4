//! The verbs that talk to an agent: what `kubectl` has for a cluster, for one device.
//!
//! One verb, one file. [`connection`] is the way to the agent, [`output`] and [`table`] are forms of output.

mod apply;
mod choice;
mod connection;
mod containers;
mod create;
mod debug;
mod delete;
mod describe;
mod duration;
mod events;
mod exec;
mod failure;
mod files;
mod follow;
mod get;
mod happenings;
mod help;
mod images;
mod jsonpath;
mod logs;
mod output;
mod process;
mod query;
mod resources;
mod stream;
mod table;
mod target;
mod terminal;
mod timeline;
mod top;
mod wait;
mod websocket;

use std::process::ExitCode;

use clap::Subcommand;

use self::failure::Failure;

/// What can be asked of an agent.
#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// Show objects of an agent: pods, configmaps, events, …
    #[command(after_help = help::GET)]
    Get(get::Get),
    /// Make objects as manifests say
    #[command(after_help = help::APPLY)]
    Apply(apply::Apply),
    /// Create objects that aren't there yet
    #[command(after_help = help::CREATE)]
    Create(create::Create),
    /// Say everything about an object, for people
    #[command(after_help = help::DESCRIBE)]
    Describe(describe::Describe),
    /// Show the output of containers
    #[command(after_help = help::LOGS)]
    Logs(logs::Logs),
    /// Run a program in a container
    #[command(after_help = help::EXEC)]
    Exec(exec::Exec),
    /// Connect to the program that a container runs
    #[command(after_help = help::ATTACH)]
    Attach(exec::Attach),
    /// Delete objects
    #[command(after_help = help::DELETE)]
    Delete(delete::Delete),
    /// Show what happened
    #[command(after_help = help::EVENTS)]
    Events(events::Events),
    /// Show what really happened to a pod: a table, and a picture
    #[command(after_help = help::TIMELINE)]
    Timeline(timeline::Show),
    /// Show what pods and the node use
    #[command(after_help = help::TOP)]
    Top(top::Top),
    /// Add a container to a pod that runs, to look into it
    #[command(after_help = help::DEBUG)]
    Debug(debug::Debug),
    /// Wait until objects are as they should be
    #[command(after_help = help::WAIT)]
    Wait(wait::Wait),
}

impl Verb {
    /// Does it; what goes wrong is told.
    pub(crate) fn run(self) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let done = match runtime {
            Ok(runtime) => runtime.block_on(self.done()),
            Err(error) => Err(Failure::from(error)),
        };
        let Err(failure) = done else { return ExitCode::SUCCESS };
        failure.tell();
        match failure {
            Failure::Exit(code) => ExitCode::from(code),
            Failure::NobodyReads => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }

    async fn done(self) -> Result<(), Failure> {
        match self {
            Self::Get(get) => get.run().await,
            Self::Apply(apply) => apply.run().await,
            Self::Create(create) => create.run().await,
            Self::Describe(describe) => describe.run().await,
            Self::Logs(logs) => logs.run().await,
            Self::Exec(exec) => exec.run().await,
            Self::Attach(attach) => attach.run().await,
            Self::Delete(delete) => delete.run().await,
            Self::Events(events) => events.run().await,
            Self::Timeline(show) => show.run().await,
            Self::Top(top) => top.run().await,
            Self::Debug(debug) => debug.run().await,
            Self::Wait(wait) => wait.run().await,
        }
    }
}

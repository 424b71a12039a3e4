//! A container instance that runs.

use std::sync::Arc;

use husk_core::io::Outcome;
use husk_engine::Container;

/// So much of an exec's output goes into a message.
const MOST_OUTPUT: usize = 10 * 1024;

/// A container instance that runs; clones are the same one.
#[derive(Clone)]
pub(crate) struct Running(Arc<Container>);

impl Running {
    pub(crate) fn new(container: Container) -> Self {
        Self(Arc::new(container))
    }

    /// Delivers a stop signal.
    pub(crate) fn signal(&self, name: &str) {
        if let Err(error) = self.0.signal(name) {
            // Validation lets no unknown name through; if one came, TERM is what the pod's owner means.
            tracing::warn!(%error, "stop signal");
            let _ = self.0.signal("SIGTERM");
        }
    }

    /// Ends it now.
    pub(crate) fn kill(&self) {
        self.0.kill();
    }

    /// How it ended.
    pub(crate) async fn wait(&self) -> Outcome {
        self.0.wait().await
    }

    /// Runs a command in the container's context: exit code and output. Dropping the future ends the command.
    pub(crate) async fn exec(&self, command: &[String]) -> Result<(i32, String), String> {
        let exec = self.0.exec(command).await.map_err(|error| error.to_string())?;
        let done = exec.wait().await;
        let mut output = done.output.trim_end().to_owned();
        if output.len() > MOST_OUTPUT {
            let cut = (0..=MOST_OUTPUT).rev().find(|at| output.is_char_boundary(*at)).unwrap_or(0);
            output.truncate(cut);
        }
        Ok((done.exit_code, output))
    }
}

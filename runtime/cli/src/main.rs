//! The `husk` binary: runs Kubernetes Pods of WebAssembly modules, checks their manifests, and plays their lives in virtual time.

mod agent;
mod check;
mod client;
mod compile;
mod image;
mod install;
mod manifest;
mod out;
mod run;
mod simulate;
mod style;
mod timeline;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

/// Exit code for input that can't be used: nothing was started.
const BAD_INPUT: u8 = 2;
/// Exit code for what is our own fault, as `docker run` has it.
const INTERNAL: u8 = 125;

/// Kubernetes Pods of WebAssembly modules, without a cluster
#[derive(Parser)]
#[command(name = "husk", version, after_help = HELP, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const HELP: &str = "\
A first tour:
  husk check pod.yaml                       what is wrong with this manifest?
  husk simulate pod.yaml                    what will the kubelet's rules make of it?
  husk run pod.yaml                         run it, here, now
  husk apply -f pod.yaml                    have it run by an agent
  husk get pods                             what does the agent run?";

#[derive(Subcommand)]
enum Verb {
    /// Run pods here and now, in the foreground
    #[command(after_help = RUN_HELP)]
    Run(run::Run),
    /// Run pods from files and from the API, for years
    #[command(after_help = AGENT_HELP)]
    Agent(agent::Agent),
    /// Write the systemd unit that starts the agent at boot and looks after it
    Install(install::Install),
    /// Say what is wrong with manifests, all of it at once
    #[command(after_help = CHECK_HELP)]
    Check(check::Check),
    /// Play a pod's life in virtual time: a table, and a picture
    #[command(after_help = SIMULATE_HELP)]
    Simulate(simulate::Simulate),
    /// The images of this device: list, import, inspect, remove
    #[command(after_help = IMAGE_HELP)]
    Image(image::Image),
    #[command(flatten)]
    Client(client::Verb),
    /// Compile the module of standard input, as an agent says
    #[command(name = compile::VERB, hide = true)]
    CompileAsTold {
        /// Its bounds, in one word
        bounds: String,
    },
    /// Write completions for a shell
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// Your shell
        shell: Shell,
    },
}

const RUN_HELP: &str = "\
Images are files beside the manifest (`image: ./app.wasm`), folders with modules and files, or names: busybox and alpine
are a Wasm shell with the usual commands, nginx a web server, whatever their registry and tag.

Ctrl-C deletes the pods as `kubectl delete` would: preStop hooks, then TERM to the apps, then to the sidecars. A second
Ctrl-C shortens the grace, a third kills.

Exit code: 0 all pods Succeeded, 1 one Failed, 2 bad input (nothing was started), 124 time was up, 125 husk itself failed.

Examples:
  husk run pod.yaml
  husk run job.yaml --timeout 10m
  husk run web.yaml --image nginx=./my-server.wasm
  husk run pod.yaml -o json | jq -r 'select(.type == \"log\").text'";

const AGENT_HELP: &str = "\
The agent serves the Kubernetes API on a Unix socket that only you can use; with --listen also on a loopback address, where
kubectl finds it (kubectl --server http://127.0.0.1:8001 get pods). It needs no root and no network.

Pods outlive it: after a crash, a power cut or an upgrade they go on as their records say. TERM and INT end it in good order:
pods end within shutdownGracePeriod, critical ones last. HUP looks at the folder of static pods at once.

Examples:
  husk agent --static-pods ./pods --listen 127.0.0.1:8001
  husk agent --config /etc/husk/config.yaml --log-format json";

const CHECK_HELP: &str = "\
Each problem is a line `file:line: error: field: what is wrong and what to do`. Warnings name fields that Kubernetes
has and Husk doesn't honour yet. The exit code is 2 if there are errors.

Examples:
  husk check pod.yaml
  husk check examples/pods/*.yaml
  kubectl get pod web -o yaml | husk check -";

const SIMULATE_HELP: &str = "\
The same engine that runs pods decides here too, only time is virtual: five minutes of back-off take no time at all. A
scenario says what the containers do. Everything in it is optional:

  until: 5m                              # the picture ends here
  delete: [{at: 2m}]                     # kubectl delete after two minutes
  containers:
    app:
      image: {takes: 3s, fails: 1}       # the first pull fails
      runs:                              # one per attempt, the last for all that follow
      - {for: 30s, exit: 1}
      - {for: 1m, trap: OutOfMemory}     # or Unreachable, Arithmetic, Fault, OutOfFuel
      - {}                               # runs until it is stopped
      onStop: {takes: 4s}                # on TERM; {ignores: true} waits for KILL
      probes:
        liveness: {fails: [{from: 60s, to: 90s}]}
        readiness: {fails: [{to: 5s, since: start}]}
      hooks:
        preStop: {takes: 2s}

Examples:
  husk simulate pod.yaml
  husk simulate pod.yaml --scenario bad-day.yaml --svg bad-day.svg
  husk simulate pod.yaml --until 1h -o json | jq '.changes[] | select(.warning)'";

const IMAGE_HELP: &str = "\
Works on the agent's store of images, whether the agent runs or not. Images that a pod uses can't be removed.

Examples:
  husk image import web.tar                          an OCI image layout, as `skopeo copy … oci-archive:web.tar` makes it
  husk image import ./app.wasm --name app:1.0
  husk image ls
  husk image rm app:1.0
  husk image gc --all";

const COMPLETIONS_HELP: &str = "\
Examples:
  husk completions bash > ~/.local/share/bash-completion/completions/husk
  husk completions zsh > ~/.zfunc/_husk
  husk completions fish > ~/.config/fish/completions/husk.fish";

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Run(run) => run.run(),
        Verb::Agent(agent) => agent.run(),
        Verb::Install(install) => install.run(),
        Verb::Check(check) => Ok(check.run()),
        Verb::Simulate(simulate) => simulate.run(),
        Verb::Image(image) => image.run(),
        Verb::Client(verb) => Ok(verb.run()),
        Verb::CompileAsTold { bounds } => Ok(husk_engine::compile_as_told(&bounds)),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "husk", &mut script);
            out::out(String::from_utf8_lossy(&script).trim_end());
            Ok(ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|error| {
        out::err(format_args!("{}: {error:#}", style::red("error")));
        ExitCode::from(BAD_INPUT)
    })
}

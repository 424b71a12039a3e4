//! One attack: a row of a table.

use std::path::Path;

use serde_json::{Value, json};

/// Bytes that the agent may grow by while it is attacked, beyond what the guest itself may have.
const GROWTH: u64 = 64 << 20;

/// What a guest is made of.
pub(crate) enum Guest {
    /// A module or component as text.
    Text(String),
    /// What is in the file, whatever that is.
    Bytes(Vec<u8>),
    /// The guest in Rust (`tests/guests/intruder`), with these arguments.
    Intruder(Vec<String>),
    /// The guest in C (`tests/guests/vandal`), with this argument.
    Vandal(&'static str),
}

impl From<String> for Guest {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Guest {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// How an attack has to end.
pub(crate) enum End {
    /// With this exit code; what attacks a host call exits with the error that it got.
    Exits(i64),
    /// With this exit code and this message.
    Says(i64, fn(&str) -> bool),
    /// With reason OOMKilled.
    OomKilled,
    /// It never runs: its image is none, for a reason that has this in it.
    Refused(&'static str),
    /// It never runs: no container can be made of its image, for a reason that has this in it.
    NotCreated(&'static str),
    /// It goes on, to no effect.
    GoesOn,
    /// It goes on after it has written this.
    Writes(&'static str),
    /// It is started again, but not at once; it ended with this reason and exit code.
    BacksOff(&'static str, i64),
    /// Its pod is evicted, with a message that has this in it.
    Evicted(&'static str),
}

/// A guest, the limits it runs against, and its end.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) end: End,
    /// Bytes that the agent may grow by.
    pub(crate) growth: u64,
    guest: Guest,
    /// Others in the same pod.
    beside: Vec<Guest>,
    limits: Value,
    spec: fn(&mut Value),
}

impl Attack {
    /// An attack that goes on, unless another end is said.
    pub(crate) fn new(name: &'static str, guest: impl Into<Guest>) -> Self {
        let guest = guest.into();
        Self { name, end: End::GoesOn, growth: GROWTH, guest, beside: Vec::new(), limits: json!({}), spec: |_| {} }
    }

    pub(crate) fn exits(self, code: i64) -> Self {
        Self { end: End::Exits(code), ..self }
    }

    pub(crate) fn says(self, code: i64, is_right: fn(&str) -> bool) -> Self {
        Self { end: End::Says(code, is_right), ..self }
    }

    pub(crate) fn oom_killed(self) -> Self {
        Self { end: End::OomKilled, ..self }
    }

    pub(crate) fn refused(self, message: &'static str) -> Self {
        Self { end: End::Refused(message), ..self }
    }

    pub(crate) fn not_created(self, message: &'static str) -> Self {
        Self { end: End::NotCreated(message), ..self }
    }

    pub(crate) fn writes(self, text: &'static str) -> Self {
        Self { end: End::Writes(text), ..self }
    }

    pub(crate) fn backs_off(self, reason: &'static str, code: i64) -> Self {
        Self { end: End::BacksOff(reason, code), ..self }
    }

    pub(crate) fn evicted(self, message: &'static str) -> Self {
        Self { end: End::Evicted(message), ..self }
    }

    /// With so many MiB of memory.
    pub(crate) fn memory(mut self, mib: u64) -> Self {
        self.limits["memory"] = format!("{mib}Mi").into();
        self.growth = GROWTH + (mib << 20);
        self
    }

    /// With so much of a processor.
    pub(crate) fn cpu(mut self, amount: &str) -> Self {
        self.limits["cpu"] = amount.into();
        self
    }

    /// For what the agent itself needs memory for: so many MiB at most.
    pub(crate) fn grows(self, mib: u64) -> Self {
        Self { growth: mib << 20, ..self }
    }

    /// Another container of the pod.
    pub(crate) fn beside(mut self, guest: impl Into<Guest>) -> Self {
        self.beside.push(guest.into());
        self
    }

    /// Whatever else its pod is to have.
    pub(crate) fn with(self, spec: fn(&mut Value)) -> Self {
        Self { spec, ..self }
    }

    /// The pod's spec; its guests are written into a folder.
    pub(crate) fn pod(&self, folder: &Path, number: usize) -> Value {
        let guests = std::iter::once(&self.guest).chain(&self.beside);
        let containers = guests.zip(0..).map(|(guest, n): (_, usize)| {
            let file = folder.join(format!("guest-{number}-{n}"));
            let (image, args) = guest.put(&file);
            json!({"name": format!("app-{n}"), "image": image, "args": args, "resources": {"limits": self.limits}})
        });
        let mut spec = json!({
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": containers.collect::<Vec<_>>(),
        });
        (self.spec)(&mut spec);
        spec
    }
}

impl Guest {
    /// Writes it into a file. Its image and its arguments.
    fn put(&self, file: &Path) -> (String, Vec<String>) {
        let write = |extension: &str, bytes: &[u8]| {
            let file = file.with_extension(extension);
            std::fs::write(&file, bytes).expect("written");
            file.display().to_string()
        };
        match self {
            Self::Text(text) => (write("wat", text.as_bytes()), Vec::new()),
            Self::Bytes(bytes) => (write("wasm", bytes), Vec::new()),
            Self::Intruder(args) => (built("intruder.wasm"), args.clone()),
            Self::Vandal(way) => (built("vandal.p1.wasm"), vec![(*way).to_owned()]),
        }
    }
}

/// A module that `cargo xtask guests` compiles next to this test's own target directory.
fn built(name: &str) -> String {
    let module = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guests").join(name);
    assert!(module.is_file(), "{} is missing: run `cargo xtask guests` first", module.display());
    module.display().to_string()
}

/// Gives a pod a volume `data`, which its containers see at `/data`.
pub(crate) fn with_data(spec: &mut Value) {
    spec["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    for container in spec["containers"].as_array_mut().into_iter().flatten() {
        container["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    }
}

//! What Husk's agent knows, so that it outlives crashes and power cuts (NODE-04).
//!
//! # What is in it
//! * **Pod records**: the bytes of [`husk_core::PodRecord`], by pod uid.
//! * **API objects** of any resource, by resource, namespace and name, with one counter of versions for all of them
//!   (`resourceVersion`) that never goes back, compare and swap, and a bounded history for watches.
//! * **Facts** of the node, by name: addresses of pods, references to images.
//!
//! # What is promised
//! * [`Store::commit`]: one batch is one transaction, and when it returns it is durable. After a power cut at any moment the store
//!   opens, what was acknowledged is there, and what was not is there wholly or not at all.
//! * [`Store::open`] never fails for what is in the file: what can't be used is set aside with a reason, and the agent goes on with
//!   what it has from elsewhere. It fails if another agent has the store or the directory can't be used; a full disk is no reason.
//! * What is in memory stands whatever the disk does. After a failure the next transaction writes a new file with everything.
//!
//! # What is in memory only
//! Statuses ([`Object::status`]) and objects of volatile resources (events): both change often and can be found out again. Their
//! versions are reserved on the disk by the million, so a version is never given twice all the same.
//!
//! # What the agent does
//! 1. [`Store::open`] before anything else; log and show what it says. Node time goes on from [`Opened::now`] with the clock that
//!    [`Boot::uptime`] is of. Hand [`Opened::records`] to the node with [`Opened::interruption`], then compare with the pods in
//!    [`Store::list`]: who has no record is new, a record without an object is of a static pod or of one that is ending.
//! 2. What a client asks for is a [`Store::commit`] on a thread that may block; answer when it returns.
//! 3. `Persist` is [`Store::persist`], `Forget` is
//!    [`Store::forget`], or goes into the batch that deletes the object. `StatusChanged` is a [`Store::post`]. Who shows restarts
//!    only once nothing is pending will never see them fall.
//! 4. Sleep until [`Store::next_wake`], then [`Store::advance`]; [`Store::close`] at the end.
//! 5. Volatile objects are not bounded here: delete events when they are old.
//!
//! # What it costs
//! A transaction brings about 24 KiB to the disk with few pods and 32 KiB with a thousand, since redb writes whole pages on the way
//! from a leaf to the root; ten records in one are 104 KiB. `cargo run -p husk-store --example figures` measures it. That is why
//! records wait for each other.
//!
//! # Time
//! It is handed in, as to [`husk_core`]: [`Store::persist`] takes a record, [`Store::next_wake`] says when [`Store::advance`] has
//! to be called to write it. [`Limits`] say how often that is, and so how much flash wears.
//!
//! ```
//! use husk_core::Instant;
//! use husk_store::{Batch, Boot, Expect, ObjectKey, Options, Scope, Store};
//!
//! let dir = tempfile::tempdir()?;
//! let boot = Boot { id: "b1".into(), uptime: std::time::Duration::from_secs(9) };
//! let opened = Store::open(&dir.path().join("state.redb"), Options::new(boot))?;
//! let web = ObjectKey::new("pods", "default", "web");
//! let create = Batch::new().put(web.clone(), "u1", br#"{"kind":"Pod"}"#.to_vec(), Expect::Absent);
//! let version = opened.store.commit(opened.now, create)?.version;
//! opened.store.post(Batch::new().status(web, br#"{"phase":"Running"}"#.to_vec(), Expect::Any))?;
//! let pods = Scope { resource: "pods", namespace: None };
//! assert_eq!(opened.store.changes(pods, version, 100)?.changes.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod disk;
mod error;
mod history;
mod key;
mod medium;
mod meter;
mod object;
mod opening;
mod overlay;
mod pending;
mod state;
mod store;

pub use batch::{Batch, Expect};
pub use error::{CommitError, Conflict, DiskError, InvalidWrite, OpenError, WatchError};
pub use husk_core::io::Urgency;
pub use key::ObjectKey;
pub use medium::{Medium, RawFile};
pub use meter::Written;
pub use object::{Change, ChangeKind, Object};
pub use opening::{Boot, Opened, Options, SetAside, Unreadable};
pub use pending::Limits;
pub use store::{Changes, Committed, List, Scope, Store};

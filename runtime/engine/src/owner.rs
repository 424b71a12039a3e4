//! On whose behalf a guest's files are opened and made (META-06, META-07).
//!
//! A guest has no user, but its files have an owner, and the kernel asks who wants them. What a guest asks of the file system is done by
//! threads that wait for the disk in its place, so those threads are who the guest is said to be: they have its user and its groups, and
//! none of root's capabilities unless they are user 0. Everything else a guest does on the threads that all guests share. No thread is
//! ever begun from an owner's: those who ask for one are guests, on the shared threads.

use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::threads::Threads;

/// A user and its groups, as the machine knows them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Owns what the guest makes.
    pub user: u32,
    /// Its group.
    pub group: u32,
    /// More groups whose files the guest may use.
    pub groups: Vec<u32>,
}

/// Why nobody can act as an owner.
#[derive(Debug, thiserror::Error)]
#[error(
    "can't use files as user {} and group {}: {source}; only a node that runs as root, with CAP_SETUID and CAP_SETGID, can",
    owner.user, owner.group
)]
pub(crate) struct OwnerError {
    owner: Owner,
    source: io::Error,
}

impl Owner {
    /// Makes the calling thread act for this owner from now on. To others the thread stays root's: no user may signal it.
    fn become_this(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
        set_thread_groups(&groups)?;
        set_thread_res_gid(None, Gid::from_raw(self.group), None)?;
        set_thread_res_uid(None, Uid::from_raw(self.user), None)?;
        Ok(())
    }

    /// Whether a thread can.
    fn check(&self) -> io::Result<()> {
        let owner = self.clone();
        let tried = std::thread::Builder::new().name("husk-owner".into()).spawn(move || owner.become_this())?;
        tried.join().unwrap_or_else(|_| Err(io::Error::other("the attempt broke off")))
    }
}

/// The threads of owners that have containers.
#[derive(Debug, Default)]
pub(crate) struct Owners(Mutex<HashMap<Owner, Weak<Threads>>>);

/// An owner's threads; they end with the last that has them.
#[derive(Clone, Debug)]
pub(crate) struct ActsAs(Arc<Threads>);

impl Owners {
    /// Threads that act for an owner.
    pub(crate) fn of(&self, owner: &Owner) -> Result<ActsAs, OwnerError> {
        let failed = |source| OwnerError { owner: owner.clone(), source };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(threads) = known.get(owner).and_then(Weak::upgrade) {
            return Ok(ActsAs(threads));
        }
        owner.check().map_err(failed)?;
        known.retain(|_, threads| threads.strong_count() > 0);
        let acts = owner.clone();
        let threads = Threads::start(1, move || {
            if let Err(error) = acts.become_this() {
                // It could a moment ago. A thread that is still root does nothing for this owner, ever.
                tracing::error!("a thread can't act as user {}: {error}", acts.user);
                loop {
                    std::thread::park();
                }
            }
        });
        let threads = Arc::new(threads.map_err(failed)?);
        known.insert(owner.clone(), Arc::downgrade(&threads));
        Ok(ActsAs(threads))
    }
}

impl ActsAs {
    /// Runs a guest: whatever it waits for that is no computation is done by the owner's threads.
    pub(crate) async fn run<T>(&self, guest: impl Future<Output = T>) -> T {
        let mut guest = pin!(guest);
        std::future::poll_fn(|context| {
            let _entered = self.0.handle().enter();
            guest.as_mut().poll(context)
        })
        .await
    }
}

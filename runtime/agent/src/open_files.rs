//! How many files the agent may have open: as many as it is allowed to.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For the store, the API and its clients.
const OF_ITS_OWN: u64 = 256;
/// A pod has a socket for its address, its images and what its containers opened.
const OF_A_POD: u64 = 8;

/// Raises the soft limit to the hard one, as Go programs do at their start. Says so if that may not be enough for `max_pods`.
pub fn raise_open_files(max_pods: u32) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // None is no limit.
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, ?current, "the limit of open files can't be raised");
    }
    let wanted = OF_ITS_OWN + OF_A_POD * u64::from(max_pods);
    let limit = getrlimit(Resource::Nofile).current;
    if let Some(limit) = limit.filter(|limit| *limit < wanted) {
        tracing::warn!(
            "maxPods: {max_pods} pods may need {wanted} open files, and the hard limit is {limit}: \
             raise it (LimitNOFILE= of the unit, ulimit -Hn), or set a lower maxPods"
        );
    }
}

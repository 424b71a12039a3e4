//! Whether the agent may have as many files open as its pods may need. The engine raises the limit to what is allowed.

use rustix::process::{Resource, getrlimit};

/// For the store, the API and its clients.
const OF_ITS_OWN: u64 = 256;
/// A pod has a socket for its address, its images, what its containers opened, and threads that act as its users.
const OF_A_POD: u64 = 12;

/// Says so if the hard limit may not be enough for `max_pods`.
pub fn check_open_files(max_pods: u32) {
    let wanted = OF_ITS_OWN + OF_A_POD * u64::from(max_pods);
    // None is no limit.
    let limit = getrlimit(Resource::Nofile).maximum;
    if let Some(limit) = limit.filter(|limit| *limit < wanted) {
        tracing::warn!(
            "maxPods: {max_pods} pods may need {wanted} open files, and the hard limit is {limit}: \
             raise it (LimitNOFILE= of the unit, ulimit -Hn), or set a lower maxPods"
        );
    }
}

//! What pods may have on the disk: `limits.ephemeral-storage`.

use serde_json::{Value, json};

use crate::world::{World, shell};

/// Writes 2 MiB to its root directory and goes on.
fn writer(limit: &str) -> Value {
    let fill = "x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do x=$x$x; done
        n=0; while [ $n -lt 32 ]; do echo $x >> /much; n=$((n + 1)); done; echo written; sleep 100000";
    let mut spec = shell(fill);
    spec["containers"][0]["resources"] = json!({"limits": {"ephemeral-storage": limit}});
    spec
}

// spec: RES-06
#[test]
fn who_writes_more_than_he_may_have_is_evicted() {
    let mut world = World::new(&[]);
    world.create("modest", &writer("10Mi"));
    world.until("all is written", |world| world.written_by("modest", "app").filter(|log| log.contains("written")));
    world.create("greedy", &writer("1Mi"));
    let pod = world.pod_until("greedy", |pod| pod["status"]["phase"] == "Failed");
    let status = &pod["status"];
    assert_eq!(status["reason"], "Evicted", "{status}");
    let message = "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ";
    assert_eq!(status["message"], message, "{status}");
    let modest = world.pod("modest").expect("there");
    assert_eq!(modest["status"]["phase"], "Running", "{}", modest["status"]);
    world.event("greedy", "Evicted", message);
}

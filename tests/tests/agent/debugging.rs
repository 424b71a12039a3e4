//! Ephemeral containers that look into another one (EPH-04).

use serde_json::{Value, json};

use crate::world::{PODS, World};

/// Waits until a container has written such a line.
fn says(world: &mut World, container: &str, line: &str) {
    world.until(line, |world| {
        let log = world.get(&format!("{PODS}/web/log?container={container}"))?;
        (log.code == 200 && log.body.lines().any(|known| known == line)).then_some(())
    });
}

fn debugger(name: &str, script: &str) -> Value {
    json!({"spec": {"ephemeralContainers": [
        {"name": name, "image": "busybox", "targetContainerName": "app", "command": ["sh", "-c", script]},
    ]}})
}

// spec: EPH-04
#[test]
fn a_debugger_sees_volumes_environment_logs_and_the_process_of_its_target() {
    let mut world = World::new(&[]);
    // It ends when it is told to by a file, and isn't restarted.
    let app = "echo of-the-app > /data/file; echo first; while [ ! -e /data/end ]; do sleep 0.1; done; echo last";
    world.create(
        "web",
        &json!({
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {"name": "app", "image": "busybox", "command": ["sh", "-c", app],
                 "env": [{"name": "COLOUR", "value": "green"}],
                 "volumeMounts": [{"name": "data", "mountPath": "/data"}]},
                {"name": "beside", "image": "busybox", "command": ["sh", "-c", "while true; do sleep 1; done"]},
            ],
            "volumes": [{"name": "data", "emptyDir": {}}],
        }),
    );
    world.running("web");
    let look = "echo $COLOUR; cat /data/file; ls /proc; cat /proc/1/comm; cat /proc/1/cmdline | tr '\\000' ' '; echo; \
                cat /proc/1/environ | tr '\\000' '\\n'; \
                until grep -q 'stdout F first' /var/log/containers/app.log; do sleep 0.1; done; echo log-seen; \
                touch /data/end; \
                until grep -q 'stdout F last' /var/log/containers/app.log; do sleep 0.1; done; echo end-seen; \
                while [ -e /proc/1 ]; do sleep 0.1; done; echo process-gone; \
                touch /proc/1 || echo read-only; while true; do sleep 1; done";
    world.send("PATCH", &format!("{PODS}/web/ephemeralcontainers"), &debugger("debugger", look)).ok();
    for line in ["green", "of-the-app", "1", "sh", &format!("sh -c {app} "), "COLOUR=green"] {
        says(&mut world, "debugger", line);
    }
    // What the target writes comes, and when it has ended it has no process.
    for line in ["log-seen", "end-seen", "process-gone", "read-only"] {
        says(&mut world, "debugger", line);
    }
    world.delete("web");
    world.gone("web");
}

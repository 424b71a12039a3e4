//! Whom files of pods belong to. A node that isn't root is one user, and so are all its pods.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::world::{World, shell};

/// Ids of a pod that has its own.
const IDS: u32 = 65_536;

fn owner(path: &Path) -> (u32, u32) {
    let about = fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (about.uid(), about.gid())
}

/// The user and the group of this test, which its agent has as well.
fn own() -> (u32, u32) {
    // (The link `/proc/self` itself is root's.)
    owner(Path::new("/proc/self/stat"))
}

fn is_root() -> bool {
    own().0 == 0
}

fn volume(world: &World, pod: &Value, name: &str) -> PathBuf {
    let uid = pod["metadata"]["uid"].as_str().expect("a uid");
    world.path(&format!("data/pods/{uid}/volumes/{name}"))
}

/// Mounts an `emptyDir` at `/data`.
fn with_data(mut spec: Value) -> Value {
    spec["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    spec
}

#[test]
fn modes_are_the_same_whatever_umask_the_agent_was_started_with() {
    let mut world = World::without_agent(&[]);
    world.under = &["sh", "-c", "umask 077; exec \"$0\" \"$@\""];
    world.start();
    let mut spec = with_data(shell("cat /etc/hosts > /data/hosts && cat /etc/hostname > /data/hostname; sleep 1000"));
    spec["securityContext"] = json!({"runAsUser": 1000, "fsGroup": 3000});
    world.create("web", &spec);
    let pod = world.running("web");
    let name = volume(&world, &pod, "data").join("hostname");
    let read = |_: &World| fs::read_to_string(&name).ok().filter(|read| read == "web\n");
    world.until("it has read what it was given", read);
    assert_eq!(fs::metadata(&name).expect("it is there").permissions().mode() & 0o777, 0o644);
}

// spec: META-06
#[test]
fn files_are_made_and_opened_as_whom_the_pod_runs_as() {
    let mut world = World::new(&[]);
    let host = world.path("host");
    fs::create_dir(&host).expect("a folder");
    fs::set_permissions(&host, Permissions::from_mode(0o777)).expect("everybody's");
    for (name, group) in [("root-only", 0), ("of-the-group", 3000), ("of-another", 4000)] {
        let path = host.join(name);
        fs::write(&path, "read\n").expect("written");
        if is_root() {
            chown(&path, None, Some(group)).expect("given away");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("closed");
    }
    let script = "mkdir /host/folder && echo x > /host/folder/file && echo x > /data/made && echo x > /tmp/x
        for name in root-only of-the-group of-another; do cat /host/$name > /data/$name 2> /dev/null || echo no > /data/$name; done
        rm -f /host/root-only; echo done > /dev/termination-log; echo x > /data/done; sleep 1000";
    let mut spec = with_data(shell(script));
    spec["securityContext"] = json!({"runAsUser": 1000, "runAsGroup": 2000, "fsGroup": 3000});
    spec["volumes"] = json!([spec["volumes"][0], {"name": "host", "hostPath": {"path": host}}]);
    let mounts = &mut spec["containers"][0]["volumeMounts"];
    *mounts = json!([mounts[0], {"name": "host", "mountPath": "/host"}]);
    let ready =
        json!({"exec": {"command": ["sh", "-c", "test -f /data/done && echo x > /host/probed"]}, "periodSeconds": 1});
    spec["containers"][0]["readinessProbe"] = ready;
    // What it can't open it can't have read by the node either.
    fs::write(world.path("closed"), "secret").expect("written");
    fs::set_permissions(world.path("closed"), Permissions::from_mode(0o600)).expect("closed");
    let mut mounts = vec![json!({"name": "data", "mountPath": "/sub", "subPath": "sub/folder"})];
    for (name, read_only) in [("closed", false), ("read-only", true)] {
        let volumes = spec["volumes"].as_array_mut().expect("volumes");
        volumes.push(json!({"name": name, "hostPath": {"path": world.path("closed"), "type": "File"}}));
        mounts.push(json!({"name": name, "mountPath": format!("/{name}"), "readOnly": read_only}));
    }
    let script = "for name in closed read-only; do cat /$name > /sub/$name 2> /dev/null || echo no > /sub/$name; done
        mv /closed /dev/termination-log; true";
    spec["initContainers"] =
        json!([{"name": "thief", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mounts}]);
    world.create("web", &spec);
    let pod = world.running("web");
    let data = volume(&world, &pod, "data");
    let read = |name: &str| fs::read_to_string(data.join(name)).expect("it is there");
    if !is_root() {
        assert_eq!([owner(&host.join("folder/file")), owner(&data.join("made"))], [own(); 2]);
        return;
    }
    let of_pod = (1000, 2000);
    for made in ["folder", "folder/file", "probed"] {
        assert_eq!(owner(&host.join(made)), of_pod, "{made}");
    }
    // As everywhere, what is made in the folder of a group is the group's.
    assert_eq!((owner(&data), owner(&data.join("made"))), ((0, 3000), (1000, 3000)));
    assert_eq!([read("root-only"), read("of-the-group"), read("of-another")], ["no\n", "read\n", "no\n"]);
    assert_eq!([read("sub/folder/closed"), read("sub/folder/read-only")], ["no\n"; 2]);
    assert_eq!([owner(&data.join("sub/folder")), owner(&data.join("sub/folder/closed"))], [(0, 3000), (1000, 3000)]);
    let ended = &pod["status"]["initContainerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["exitCode"], &ended["message"]), (&json!(0), &Value::Null), "{ended}");
    assert!(
        !host.join("root-only").exists(),
        "the folder is everybody's, so who it belongs to is nothing to its removal"
    );
}

// spec: META-06
#[test]
fn who_is_not_to_be_root_and_names_nobody_is_nobody() {
    let mut world = World::new(&[]);
    let mut spec = with_data(shell("echo x > /data/made; sleep 1000"));
    spec["securityContext"] = json!({"runAsNonRoot": true});
    world.create("web", &spec);
    let pod = world.running("web");
    let made = volume(&world, &pod, "data").join("made");
    world.until("it has written", |_| made.exists().then_some(()));
    assert_eq!(owner(&made), if is_root() { (65_534, 65_534) } else { own() });
}

/// `user.linux` and `volumeMounts` of a container.
fn shown(pod: &Value, list: &str, n: usize) -> (Value, Value) {
    let status = &pod["status"][list][n];
    (status["user"]["linux"].clone(), status["volumeMounts"].clone())
}

// spec: STATE-05
#[test]
fn a_status_says_whom_a_container_acts_as_and_what_it_mounts() {
    let mut world = World::new(&[]);
    let mut spec = with_data(shell("sleep 1000"));
    spec["securityContext"] =
        json!({"runAsUser": 1000, "runAsGroup": 2000, "fsGroup": 3000, "supplementalGroups": [4000]});
    spec["containers"][0]["volumeMounts"] = json!([
        {"name": "data", "mountPath": "/data"},
        {"name": "data", "mountPath": "/plain", "readOnly": true},
        {"name": "data", "mountPath": "/all", "readOnly": true, "recursiveReadOnly": "IfPossible"},
    ]);
    // It waits for an image that nobody has: nobody is it, and what it would mount is known.
    let waiting = json!({
        "name": "waiting", "image": "nobody-has-it", "imagePullPolicy": "Never",
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    });
    let once = json!({"name": "once", "image": "busybox", "command": ["true"], "securityContext": {"runAsUser": 7}});
    spec["initContainers"] = json!([once]);
    spec["containers"] = json!([spec["containers"][0], waiting]);
    world.create("web", &spec);
    let runs = |pod: &Value| !pod["status"]["containerStatuses"][0]["state"]["running"].is_null();
    let pod = world.pod_until("web", runs);
    let (user, group) = own();
    let mounted = json!({"name": "data", "mountPath": "/data"});
    let expected = |mine: Value, own_group: u32| match is_root() {
        true => mine,
        false => json!({"uid": user, "gid": own_group}),
    };
    let without_more = |mut linux: Value| {
        if !is_root() {
            linux.as_object_mut().expect("a user").remove("supplementalGroups").expect("some groups");
        }
        linux
    };
    let check = |pod: &Value| {
        let (linux, mounts) = shown(pod, "containerStatuses", 0);
        let mine = json!({"uid": 1000, "gid": 2000, "supplementalGroups": [2000, 3000, 4000]});
        assert_eq!(without_more(linux), expected(mine, group));
        let plain = json!({"name": "data", "mountPath": "/plain", "readOnly": true, "recursiveReadOnly": "Disabled"});
        let all = json!({"name": "data", "mountPath": "/all", "readOnly": true, "recursiveReadOnly": "Enabled"});
        assert_eq!(mounts, json!([mounted, plain, all]));
        assert_eq!(shown(pod, "containerStatuses", 1), (Value::Null, json!([mounted])));
        let (linux, mounts) = shown(pod, "initContainerStatuses", 0);
        let mine = json!({"uid": 7, "gid": 2000, "supplementalGroups": [2000, 3000, 4000]});
        assert_eq!((without_more(linux), mounts), (expected(mine, group), Value::Null));
    };
    check(&pod);
    // What an init container was is not forgotten by an agent that never saw it.
    world.kill();
    world.start();
    check(&world.pod_until("web", runs));
}

// spec: META-07
#[test]
fn a_pod_without_the_machine_s_users_has_a_range_of_its_own() {
    let mut world = World::new(&[]);
    let script = "echo x > /data/made; echo x > /data/done; sleep 1000";
    let mut spec = with_data(shell(script));
    spec["hostUsers"] = false.into();
    world.create("first", &spec);
    spec["securityContext"] = json!({"runAsUser": 1000, "runAsGroup": 2000});
    world.create("second", &spec);
    let range = |world: &mut World, name: &str| {
        let pod = world.running(name);
        let data = volume(world, &pod, "data");
        world.until("it has written", |_| data.join("done").exists().then_some(()));
        if is_root() {
            let asked = json!(pod["spec"]["securityContext"]["runAsUser"].as_i64().unwrap_or(0));
            assert_eq!(shown(&pod, "containerStatuses", 0).0["uid"], asked, "the pod's own ids are shown");
        }
        (owner(&data), owner(&data.join("made")))
    };
    let (first, second) = (range(&mut world, "first"), range(&mut world, "second"));
    if !is_root() {
        assert_eq!([first.0, first.1, second.0, second.1], [own(); 4]);
        return;
    }
    for (uid, gid) in [first.0, second.0] {
        assert!(uid == gid && uid >= IDS && uid % IDS == 0, "{uid} {gid}");
    }
    assert_ne!(first.0, second.0);
    assert_eq!(first.1, first.0);
    assert_eq!(second.1, (second.0.0 + 1000, second.0.1 + 2000));

    // They keep their ranges, and what they wrote, and nobody else has them.
    world.kill();
    world.start();
    assert_eq!((range(&mut world, "first"), range(&mut world, "second")), (first, second));
    world.create("third", &spec);
    let third = range(&mut world, "third");
    assert!(![first.0, second.0].contains(&third.0), "{third:?}");
    let figure = |world: &World, name: &str| {
        let text = world.get("/metrics").expect("an answer").body;
        let text = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        text.unwrap_or_else(|| panic!("no {name}"))
    };
    assert_eq!(figure(&world, "kubelet_started_user_namespaced_pods_total"), 3.0);
    assert_eq!(figure(&world, "kubelet_started_user_namespaced_pods_errors_total"), 0.0);

    // Its range is all that a pod has.
    spec["securityContext"]["runAsUser"] = IDS.into();
    world.create("beyond", &spec);
    let waits = |pod: &Value| {
        pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    };
    let pod = world.pod_until("beyond", waits);
    let message = &pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"];
    assert_eq!(message, "runAsUser: 65536 is none of the 65536 ids that a pod with hostUsers: false has");
}

// spec: META-07
#[test]
fn how_many_ids_a_pod_has_is_configured() {
    let mut world = World::configured("userNamespaces: {idsPerPod: 131072}\n");
    let mut spec = with_data(shell("echo x > /data/made; sleep 1000"));
    spec["hostUsers"] = false.into();
    spec["securityContext"] = json!({"runAsUser": 100_000});
    world.create("web", &spec);
    let pod = world.running("web");
    let made = volume(&world, &pod, "data").join("made");
    world.until("it has written", |_| made.exists().then_some(()));
    let expected = if is_root() { (2 * IDS + 100_000, 2 * IDS) } else { own() };
    assert_eq!(owner(&made), expected);
    world.end();
    world.configure("userNamespaces: {idsPerPod: 1000}\n");
    assert_eq!(world.ends(), Some(2));
    assert!(world.log().contains("userNamespaces.idsPerPod: must be a multiple of 65536"), "{}", world.log());
}

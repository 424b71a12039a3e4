//! Volumes as guests see them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::json;

use crate::husk::{BAD_INPUT, Ended, FAILED, SUCCEEDED, run_text};

const OBJECTS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {app.yaml: \"a: 1\\n\", other: o}
binaryData: {bytes: AAEC}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
data: {password: aHVudGVyMg==}
stringData: {user: edge}
---
";

/// A pod with these volumes, mounts and script, beside a ConfigMap and a Secret.
fn pod(volumes: &str, mounts: &str, script: &str, more: &str) -> String {
    let script = serde_json::to_string(script).expect("text");
    format!(
        "{OBJECTS}apiVersion: v1
kind: Pod
metadata: {{name: p, labels: {{app: web, tier: \"1\"}}, annotations: {{note: 'it \"is\"'}}}}
spec:
  restartPolicy: Never
  volumes:
{volumes}
  containers:
  - name: app
    image: busybox
    command: [sh, -c, {script}]
    resources: {{limits: {{cpu: 250m, memory: 64Mi}}}}
    volumeMounts:
{mounts}{more}
"
    )
}

fn said(ended: &Ended) -> Vec<&str> {
    assert_eq!(ended.code, Some(SUCCEEDED), "{} {:?}", ended.stderr, ended.log("app"));
    ended.log("app")
}

// spec: META-05
// spec: META-02
// spec: META-03
#[test]
fn files_made_from_objects_are_where_the_spec_wants_them() {
    let volumes = "
  - {name: conf, configMap: {name: conf}}
  - {name: some, configMap: {name: conf, items: [{key: app.yaml, path: deep/er.yaml}], optional: true}}
  - {name: none, configMap: {name: none, optional: true}}
  - {name: key, secret: {secretName: key}}
  - name: down
    downwardAPI:
      items:
      - {path: labels, fieldRef: {fieldPath: metadata.labels}}
      - {path: id/name, fieldRef: {fieldPath: metadata.name}}
      - {path: memory, resourceFieldRef: {containerName: app, resource: limits.memory, divisor: 1Mi}}
      - {path: cpu, resourceFieldRef: {containerName: app, resource: limits.cpu, divisor: 1m}}
  - name: all
    projected:
      sources:
      - {configMap: {name: conf, items: [{key: other, path: o}]}}
      - {secret: {name: key, items: [{key: user, path: secret/user}]}}
      - {downwardAPI: {items: [{path: notes, fieldRef: {fieldPath: metadata.annotations}}]}}
      - {secret: {name: none, optional: true}}";
    let mounts = "
    - {name: conf, mountPath: /conf}
    - {name: some, mountPath: /some}
    - {name: none, mountPath: /none}
    - {name: key, mountPath: /key}
    - {name: down, mountPath: /down}
    - {name: all, mountPath: /all}
    - {name: conf, mountPath: /etc/app/app.yaml, subPath: app.yaml}
    - {name: some, mountPath: /etc/deep, subPath: deep}";
    let script = "ls /conf /some /none /key /down /all
cat /conf/app.yaml /some/deep/er.yaml /key/password; echo; cat /key/user; echo
cat /down/labels; echo; cat /down/id/name; echo; cat /down/memory; echo; cat /down/cpu; echo
cat /all/o; echo; cat /all/secret/user; echo; cat /all/notes; echo
cat /etc/app/app.yaml /etc/deep/er.yaml; wc -c < /conf/bytes
for file in /conf/app.yaml /key/new /all/o /conf/..data/other; do echo x > $file || echo refused; done
rm /conf/other || echo refused; mkdir /all/d || echo refused";
    let ended = run_text(&pod(volumes, mounts, script, ""), &[]);
    let log: Vec<&str> = said(&ended)
        .into_iter()
        .filter(|line| !line.starts_with("sh:") && !line.starts_with("rm:") && !line.starts_with("mkdir:"))
        .collect();
    let wanted = [
        "/conf:",
        "app.yaml",
        "bytes",
        "other",
        "",
        "/some:",
        "deep",
        "",
        "/none:",
        "",
        "/key:",
        "password",
        "user",
        "",
        "/down:",
        "cpu",
        "id",
        "labels",
        "memory",
        "",
        "/all:",
        "notes",
        "o",
        "secret",
        "a: 1",
        "a: 1",
        "hunter2",
        "edge",
        "app=\"web\"",
        "tier=\"1\"",
        "p",
        "64",
        "250",
        "o",
        "edge",
        "note=\"it \\\"is\\\"\"",
        "a: 1",
        "a: 1",
        "3",
        "refused",
        "refused",
        "refused",
        "refused",
        "refused",
        "refused",
    ];
    assert_eq!(log, wanted);
}

// spec: META-05
#[test]
fn modes_and_owners_are_as_asked_for() {
    let data = tempfile::tempdir().expect("a folder");
    let seen = tempfile::tempdir().expect("a folder");
    let volumes = format!(
        "
  - {{name: conf, configMap: {{name: conf, defaultMode: 0440, items: [{{key: other, path: a}}, {{key: other, path: b, mode: 0600}}]}}}}
  - {{name: data, emptyDir: {{}}}}
  - {{name: seen, hostPath: {{path: {}}}}}",
        seen.path().display()
    );
    let mounts = "
    - {name: conf, mountPath: /conf}
    - {name: data, mountPath: /data}
    - {name: seen, mountPath: /seen}";
    let manifest = pod(
        &volumes,
        mounts,
        "echo x > /data/made; touch /seen/up; while ! [ -e /seen/done ]; do sleep 0.05; done",
        "",
    )
    .replace("  restartPolicy: Never", "  restartPolicy: Never\n  securityContext: {fsGroup: 4321}");
    let path = data.path().join("pod.yaml");
    fs::write(&path, manifest).expect("written");
    let place = data.path().join("data");
    let mut run = crate::husk::start(&path, &["--data-dir", place.to_str().expect("text")]);
    run.wait_for(|o| o["status"]["phase"] == "Running");
    while !seen.path().join("up").exists() {
        std::thread::yield_now();
    }
    let pods: Vec<_> = fs::read_dir(place.join("pods")).expect("pods").flatten().collect();
    let volumes = pods[0].path().join("volumes");
    let about = |path: &str| fs::metadata(volumes.join(path)).expect(path);
    let mode = |path: &str| about(path).permissions().mode() & 0o7777;
    // A group that may use the volume can read what is in it.
    assert_eq!([mode("conf/a"), mode("conf/b"), mode("data")], [0o440, 0o640, 0o2777]);
    assert_eq!(fs::metadata(&volumes).expect("there").permissions().mode() & 0o777, 0o700);
    if about("data").uid() == 0 {
        assert_eq!(["conf/a", "data", "data/made"].map(|path| about(path).gid()), [4321; 3]);
    }
    fs::write(seen.path().join("done"), "").expect("written");
    assert_eq!(run.finish().code, Some(SUCCEEDED));
}

// spec: META-05, STATE-05
#[test]
fn paths_of_the_host_are_what_their_type_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = folder.path().display().to_string();
    fs::write(folder.path().join("file"), "of the host\n").expect("written");
    let volumes = format!(
        "
  - {{name: folder, hostPath: {{path: {host}, type: Directory}}}}
  - {{name: made, hostPath: {{path: {host}/made/deep, type: DirectoryOrCreate}}}}
  - {{name: file, hostPath: {{path: {host}/file, type: File}}}}
  - {{name: new, hostPath: {{path: {host}/new, type: FileOrCreate}}}}"
    );
    let mounts = "
    - {name: folder, mountPath: /folder, readOnly: true, recursiveReadOnly: Enabled}
    - {name: made, mountPath: /made}
    - {name: file, mountPath: /etc/one/file}
    - {name: new, mountPath: /new}
    - {name: file, mountPath: /etc/two/file, readOnly: true}";
    let script = "cat /folder/file /etc/one/file /etc/two/file; echo x > /folder/made/deep/x || echo refused
echo by the guest > /made/guest; echo changed > /etc/one/file; echo new > /new; echo lost > /etc/two/file; true";
    let path = folder.path().join("pod.yaml");
    fs::write(&path, pod(&volumes, mounts, script, "")).expect("written");
    // On one disk with what is mounted.
    let ended = crate::husk::run(&path, &["--data-dir", folder.path().join("data").to_str().expect("text")]);
    let log: Vec<&str> = said(&ended).into_iter().filter(|line| !line.starts_with("sh:")).collect();
    assert_eq!(log, ["of the host", "of the host", "of the host", "refused"]);
    let mounted = json!({"name": "folder", "mountPath": "/folder", "readOnly": true, "recursiveReadOnly": "Enabled"});
    assert_eq!(ended.container("app")["volumeMounts"][0], mounted);
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).expect("there");
    assert_eq!(
        (text("file"), text("new"), text("made/deep/guest")),
        ("changed\n".into(), "new\n".into(), "by the guest\n".into())
    );

    for (path, kind, wanted) in [
        ("file", "Directory", "is not a directory"),
        ("made", "File", "is not a file"),
        ("none", "File", "does not exist"),
        ("none", "Directory", "does not exist"),
        ("none", "\"\"", "does not exist"),
        ("file", "Socket", "is not supported"),
    ] {
        let volumes = format!("  - {{name: v, hostPath: {{path: {host}/{path}, type: {kind}}}}}");
        let ended = run_text(&pod(&volumes, "    - {name: v, mountPath: /v}", "true", ""), &[]);
        assert_eq!(ended.code, Some(BAD_INPUT), "{kind}");
        assert!(ended.stderr.contains(wanted), "{kind}: {}", ended.stderr);
    }
    assert!(!folder.path().join("none").exists());
}

// spec: META-05
#[test]
fn a_sub_path_is_part_of_a_volume_by_name_or_by_variables() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("volume");
    fs::create_dir_all(data.join("here/deep")).expect("made");
    symlink("here", data.join("link")).expect("linked");
    fs::write(data.join("file"), "filed\n").expect("written");
    let volumes = format!("  - {{name: data, hostPath: {{path: {}}}}}", data.display());
    let manifest = pod(
        &volumes,
        "
    - {name: data, mountPath: /whole}
    - {name: data, mountPath: /by/name, subPath: here/deep}
    - {name: data, mountPath: /by/variable, subPathExpr: $(WHERE)/$(NAME)}
    - {name: data, mountPath: /by/link, subPath: link/deep, readOnly: true}
    - {name: data, mountPath: /by/file, subPath: file}",
        "echo named > /by/name/x; echo varied > /by/variable/x; cat /whole/here/deep/x /whole/there/p/x /by/link/x /by/file
echo more > /by/file; cat /whole/file; echo x > /by/link/y || echo refused",
        "
    env: [{name: WHERE, value: there}, {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
    );
    let path = folder.path().join("pod.yaml");
    fs::write(&path, manifest).expect("written");
    let ended = crate::husk::run(&path, &["--data-dir", folder.path().join("data").to_str().expect("text")]);
    let log: Vec<&str> = said(&ended).into_iter().filter(|line| !line.starts_with("sh:")).collect();
    assert_eq!(log, ["named", "varied", "named", "filed", "more", "refused"]);

    let unknown = pod(&volumes, "    - {name: data, mountPath: /v, subPathExpr: $(WHERE)}", "true", "");
    fs::write(&path, unknown).expect("written");
    let mut run = crate::husk::start(&path, &[]);
    run.wait_for(|o| {
        let waiting = &o["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"] == "CreateContainerConfigError"
            && waiting["message"].as_str().is_some_and(|message| message.contains("missing value for \"WHERE\""))
    });
    run.interrupt();
    run.finish();
}

// spec: META-05
#[test]
fn nothing_leaves_a_volume() {
    let folder = tempfile::tempdir().expect("a folder");
    let (volume, outside) = (folder.path().join("volume"), folder.path().join("outside"));
    fs::create_dir(&volume).expect("made");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("secret"), "of the host\n").expect("written");
    symlink("../outside", volume.join("relative")).expect("linked");
    symlink(&outside, volume.join("absolute")).expect("linked");
    symlink("../outside/secret", volume.join("file")).expect("linked");
    symlink("/", volume.join("slash")).expect("linked");
    let volumes = format!(
        "
  - {{name: host, hostPath: {{path: {}}}}}
  - {{name: data, emptyDir: {{}}}}",
        volume.display()
    );
    let mounts = "
    - {name: host, mountPath: /host}
    - {name: data, mountPath: /data}";
    let script = "cd /host
for path in relative/secret absolute/secret file slash/etc/passwd ../outside/secret ../../etc/passwd; do cat /host/$path 2>/dev/null && echo LEFT $path; done
for path in relative/made absolute/made file slash/tmp/made ../made; do (echo x > /host/$path) 2>/dev/null && echo LEFT $path; done
mv /host/relative /host/moved; cat /host/moved/secret 2>/dev/null && echo LEFT renamed
mv /host/relative /data/moved 2>/dev/null; cat /data/moved/secret 2>/dev/null && echo LEFT moved
rm -rf /host/absolute/ /host/slashOUTSIDE/secret 2>/dev/null; echo done";
    let script = script.replace("OUTSIDE", outside.to_str().expect("text"));
    let ended = run_text(&pod(&volumes, mounts, &script, ""), &[]);
    assert_eq!(said(&ended), ["done"]);
    let left: Vec<_> = fs::read_dir(&outside).expect("there").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["secret"]);
    assert_eq!(fs::read_to_string(outside.join("secret")).expect("there"), "of the host\n");

    // The guest may have moved its links.
    for (name, target) in [("relative", "../outside"), ("absolute", outside.to_str().expect("text")), ("slash", "/")] {
        let _ = fs::remove_file(volume.join(name));
        symlink(target, volume.join(name)).expect("linked");
    }
    // Nor does the host when it looks for a subPath, or for variables, in a volume whose links lead elsewhere.
    for sub_path in ["relative", "absolute", "file", "relative/new", "slash/tmp/new"] {
        let mounts = format!("    - {{name: host, mountPath: /v, subPath: {sub_path}}}");
        let path = folder.path().join("pod.yaml");
        fs::write(&path, pod(&volumes, &mounts, "cat /v/secret", "")).expect("written");
        let mut run = crate::husk::start(&path, &[]);
        run.wait_for(|o| {
            o["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CreateContainerConfigError"
        });
        run.interrupt();
        assert_eq!(run.finish().code, Some(FAILED));
    }
    assert_eq!(fs::read_dir(&outside).expect("there").count(), 1);
}

// spec: META-05
#[test]
fn a_guest_that_swaps_folders_and_links_leads_no_other_out() {
    // One container swaps a folder with a link out of the volume while others start, and mount what is there by subPath.
    let folder = tempfile::tempdir().expect("a folder");
    let (volume, outside) = (folder.path().join("volume"), folder.path().join("outside"));
    fs::create_dir_all(volume.join("real/deep")).expect("made");
    fs::create_dir_all(outside.join("deep")).expect("made");
    fs::write(outside.join("deep/secret"), "of the host").expect("written");
    symlink("../outside", volume.join("trap")).expect("linked");
    let manifest = format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: race}}
spec:
  restartPolicy: Never
  volumes: [{{name: v, hostPath: {{path: {}}}}}]
  initContainers:
  - name: swap
    image: busybox
    restartPolicy: Always
    command: [sh, -c, 'cd /v; while true; do mv /v/real /v/a; mv /v/a /v/real; mv /v/trap /v/a; mv /v/a /v/trap; done 2>/dev/null']
    volumeMounts: [{{name: v, mountPath: /v}}]
  containers:
{}",
        volume.display(),
        (0..40)
            .map(|n| format!(
                "  - {{name: c{n}, image: busybox, command: [sh, -c, 'cat /m/secret 2>/dev/null; touch /m/made{n}'], \
                 volumeMounts: [{{name: v, mountPath: /m, subPath: a/deep}}]}}\n"
            ))
            .collect::<String>()
    );
    // Some find the link in their way and wait: time is up for them.
    let ended = run_text(&manifest, &["--timeout", "5s"]);
    for n in 0..40 {
        assert_eq!(ended.log(&format!("c{n}")).join(""), "", "c{n} read what isn't in the volume");
    }
    let left: Vec<_> = fs::read_dir(outside.join("deep")).expect("there").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["secret"]);
}

// spec: META-05
#[test]
fn the_files_of_an_image_can_be_mounted() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("site/css")).expect("made");
    fs::write(folder.path().join("site/index.html"), "hello\n").expect("written");
    fs::write(folder.path().join("site/css/a.css"), "css\n").expect("written");
    let manifest = pod(
        "  - {name: site, image: {reference: ./site}}",
        "
    - {name: site, mountPath: /site}
    - {name: site, mountPath: /css, subPath: css}",
        "cat /site/index.html /css/a.css; echo x > /site/x || echo refused; mkdir /css/x || echo refused",
        "",
    );
    let path = folder.path().join("pod.yaml");
    fs::write(&path, manifest).expect("written");
    let ended = crate::husk::run(&path, &[]);
    let log: Vec<&str> =
        said(&ended).into_iter().filter(|line| !line.starts_with("sh:") && !line.starts_with("mkdir:")).collect();
    assert_eq!(log, ["hello", "css", "refused", "refused"]);
    assert_eq!(fs::read_dir(folder.path().join("site")).expect("there").count(), 2);
}

// spec: INIT-08
#[test]
fn an_init_container_may_read_what_app_containers_can_not() {
    let manifest = pod(
        "
  - {name: key, secret: {secretName: key}}
  - {name: data, emptyDir: {}}",
        "    - {name: data, mountPath: /data}",
        "cat /data/hash; ls /key 2>/dev/null || echo no key; echo ${PASSWORD-no variable}",
        "",
    )
    .replace(
        "  containers:\n",
        "  initContainers:
  - name: prepare
    image: busybox
    command: [sh, -c, 'echo made with $(wc -c < /key/password) bytes and $PASSWORD > /data/hash']
    env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: key, key: user}}}]
    volumeMounts: [{name: key, mountPath: /key}, {name: data, mountPath: /data}]
  containers:\n",
    );
    let ended = run_text(&manifest, &[]);
    assert_eq!(said(&ended), ["made with 7 bytes and edge", "no key", "no variable"]);
}

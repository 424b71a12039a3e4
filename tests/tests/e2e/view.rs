//! What a container is told about itself: names, environment, and what its security context leaves it.

use crate::husk::{BAD_INPUT, Ended, SUCCEEDED, run_text, start};

/// A pod named `web` in the namespace `edge`.
fn pod(spec: &str, container: &str, script: &str) -> String {
    let script = serde_json::to_string(script).expect("text");
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: web, namespace: edge, labels: {{app: shop}}, annotations: {{team: \"a b\"}}}}
spec:
  restartPolicy: Never
{spec}  containers:
  - name: app
    image: busybox
    command: [sh, -c, {script}]
{container}"
    )
}

fn said(ended: &Ended) -> Vec<&str> {
    assert_eq!(ended.code, Some(SUCCEEDED), "{} {:?}", ended.stderr, ended.log("app"));
    ended.log("app")
}

// spec: META-01
#[test]
fn a_pod_knows_its_name_as_the_table_says() {
    let script =
        "hostname; cat /etc/hostname; echo $HOSTNAME; grep -v localhost /etc/hosts | grep $(hostname | cut -d. -f1)";
    for (spec, name, host) in [
        ("", "web", "web"),
        ("  hostname: shop\n", "shop", "shop"),
        ("  subdomain: sub\n", "web", "web.sub.edge.svc.cluster.local\tweb"),
        ("  hostname: shop\n  subdomain: sub\n", "shop", "shop.sub.edge.svc.cluster.local\tshop"),
        (
            "  hostname: shop\n  subdomain: sub\n  setHostnameAsFQDN: true\n",
            "shop.sub.edge.svc.cluster.local",
            "shop.sub.edge.svc.cluster.local\tshop",
        ),
        ("  setHostnameAsFQDN: true\n", "web", "web"),
        ("  hostname: shop\n  subdomain: sub\n  hostnameOverride: over.ride\n", "over.ride", "over.ride"),
    ] {
        let ended = run_text(&pod(spec, "", script), &[]);
        let log = said(&ended);
        assert_eq!(log[..3], [name; 3], "{spec}");
        let (ip, rest) = log[3].split_once('\t').expect("an address");
        assert!(ip.starts_with("127.") && rest == host, "{spec}: {log:?}");
    }
    let ended = run_text(&pod("  hostnameOverride: o\n  setHostnameAsFQDN: true\n", "", script), &[]);
    assert_eq!(ended.code, Some(BAD_INPUT), "{}", ended.stderr);
}

// spec: META-01
#[test]
fn aliases_of_hosts_are_in_the_file_and_resolve() {
    let spec =
        "  hostAliases: [{ip: 127.0.0.1, hostnames: [here.local, there.local]}, {ip: 10.1.2.3, hostnames: [far]}]\n";
    let script = "cat /etc/hosts; wget -q -O - http://here.local:8080/ || true; nslookup there.local | tail -1; echo > /etc/hosts; \
                  cat /var/run/secrets/kubernetes.io/serviceaccount/namespace";
    let ended = run_text(&pod(spec, "", script), &[]);
    let log = said(&ended);
    let wanted = [
        "# Kubernetes-managed hosts file.",
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost ip6-localhost ip6-loopback",
        "fe00::0\tip6-localnet",
        "fe00::0\tip6-mcastprefix",
        "fe00::1\tip6-allnodes",
        "fe00::2\tip6-allrouters",
    ];
    assert_eq!(log[..7], wanted);
    assert_eq!(
        log[8..12],
        ["", "# Entries added by HostAliases.", "127.0.0.1\there.local\tthere.local", "10.1.2.3\tfar"]
    );
    assert_eq!(log.last(), Some(&"edge"));

    let none = pod("  automountServiceAccountToken: false\n", "", "ls /var/run/secrets 2>/dev/null || echo none");
    assert_eq!(said(&run_text(&none, &[])), ["none"]);
}

// spec: META-02
// spec: META-03
// spec: META-04
#[test]
fn the_environment_is_what_the_pod_the_node_and_its_objects_say() {
    let objects = "
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: edge}
data: {A: from-conf, B: b}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: edge}
stringData: {A: from-key, TOKEN: t}
---
";
    let container = "    args: [unused, $(A)-$(NAME)-$$(A)-$(NONE)]
    resources: {limits: {memory: 64Mi}, requests: {cpu: 125m}}
    envFrom:
    - {configMapRef: {name: conf}}
    - {secretRef: {name: key}, prefix: S_}
    - {secretRef: {name: none, optional: true}}
    env:
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
    - {name: UID_, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
    - {name: LABEL, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['app']\"}}}
    - {name: NOTE, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['team']\"}}}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: SA, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
    - {name: HOST, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
    - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: IPS, valueFrom: {fieldRef: {fieldPath: status.podIPs}}}
    - {name: MEM, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
    - {name: CPU, valueFrom: {resourceFieldRef: {resource: requests.cpu, divisor: 1m}}}
    - {name: CPUS, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
    - {name: DISK, valueFrom: {resourceFieldRef: {resource: limits.ephemeral-storage, divisor: 1Mi}}}
    - {name: PAGES, valueFrom: {resourceFieldRef: {resource: requests.hugepages-2Mi}}}
    - {name: TOKEN, valueFrom: {secretKeyRef: {name: key, key: TOKEN}}}
    - {name: NOT, valueFrom: {configMapKeyRef: {name: conf, key: none, optional: true}}}
    - {name: BOTH, value: \"$(TOKEN)/$(B)/$(LATER)/$$(B)\"}
    - {name: A, value: own}
    - {name: LATER, value: l}
";
    let script = "echo $1; env; exit 0";
    let ended = run_text(&format!("{objects}{}", pod("", container, script)), &[]);
    let log = said(&ended);
    let value = |name: &str| log.iter().find_map(|line| line.strip_prefix(&format!("{name}=")));
    assert_eq!(log[0], "own-web-$(A)-$(NONE)");
    let wanted = [
        ("NAME", "web"),
        ("NS", "edge"),
        ("LABEL", "shop"),
        ("NOTE", "a b"),
        ("NODE", "husk"),
        ("SA", "default"),
        ("HOST", "127.0.0.1"),
        ("MEM", "64"),
        ("CPU", "125"),
        ("PAGES", "0"),
        ("TOKEN", "t"),
        ("B", "b"),
        ("A", "own"),
        ("S_A", "from-key"),
        ("S_TOKEN", "t"),
        ("BOTH", "t/b/$(LATER)/$(B)"),
        ("LATER", "l"),
    ];
    for (name, text) in wanted {
        assert_eq!(value(name), Some(text), "{name}");
    }
    assert_eq!(value("NOT"), None);
    assert_eq!(value("IP"), value("IPS"));
    assert!(value("IP").is_some_and(|ip| ip.starts_with("127.")));
    assert_eq!(value("UID_").map(str::len), Some(36));
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).to_string();
    assert_eq!(value("CPUS"), Some(cpus.as_str()), "all that the node has");
    assert!(value("DISK").and_then(|disk| disk.parse::<u64>().ok()).is_some_and(|disk| disk > 1));
}

// spec: META-04
#[test]
fn what_is_referred_to_and_never_there_is_said_before_anything_starts() {
    for (container, wanted) in [
        ("    env: [{name: A, valueFrom: {secretKeyRef: {name: key, key: a}}}]\n", "\"key\" not found"),
        ("    envFrom: [{configMapRef: {name: conf}}]\n", "\"conf\" not found"),
    ] {
        let ended = run_text(&pod("", container, "true"), &[]);
        assert_eq!(ended.code, Some(BAD_INPUT));
        assert!(ended.stderr.contains(wanted), "{}", ended.stderr);
    }
}

#[test]
fn what_is_wrong_with_a_secret_is_said_without_its_words() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\ntype: kubernetes.io/dockerconfigjson\n\
                  stringData: {.dockerconfigjson: 'hunter2', 'bad key': hunter2}\n---\n\
                  apiVersion: v1\nkind: Secret\nmetadata: {name: pin}\nstringData: {pin: 12345}\n---\n";
    let ended = run_text(&format!("{secret}{}", pod("", "", "true")), &[]);
    assert_eq!(ended.code, Some(BAD_INPUT));
    assert!(!ended.stderr.contains("hunter2") && !ended.stderr.contains("12345"), "{}", ended.stderr);
    assert!(ended.stderr.contains("stringData[pin]: expected a string"), "{}", ended.stderr);
    assert!(ended.stderr.contains("bad key"), "{}", ended.stderr);
}

// spec: META-06
#[test]
fn a_read_only_root_stays_as_it_is() {
    let container =
        "    securityContext: {readOnlyRootFilesystem: true}\n    volumeMounts: [{name: data, mountPath: /data}]\n";
    let script = "for path in /x /tmp/x /etc/hosts /data/x; do (echo x > $path) 2>/dev/null && echo wrote $path; done; cat /etc/hostname";
    let ended = run_text(&pod("  volumes: [{name: data, emptyDir: {}}]\n", container, script), &[]);
    assert_eq!(said(&ended), ["wrote /data/x", "web"]);
}

// spec: META-06
#[test]
fn who_is_not_to_be_root_may_not_be_said_to_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pod.yaml");
    for (shared, own, starts) in [
        ("{runAsNonRoot: true, runAsUser: 0}", "{}", false),
        ("{runAsNonRoot: true}", "{runAsUser: 0}", false),
        ("{runAsUser: 0}", "{runAsNonRoot: true}", false),
        ("{runAsNonRoot: true, runAsUser: 0}", "{runAsUser: 1000}", true),
        ("{runAsNonRoot: true}", "{}", true),
    ] {
        let spec = format!("  securityContext: {shared}\n");
        std::fs::write(&path, pod(&spec, &format!("    securityContext: {own}\n"), "echo up")).expect("written");
        let mut run = start(&path, &[]);
        if starts {
            assert_eq!(run.finish().log("app"), ["up"], "{shared} {own}");
            continue;
        }
        run.wait_for(|o| {
            let waiting = &o["status"]["containerStatuses"][0]["state"]["waiting"];
            let message = waiting["message"].as_str().unwrap_or_default();
            waiting["reason"] == "CreateContainerConfigError"
                && message.starts_with("container's runAsUser breaks non-root policy (pod: \"web_edge(")
                && message.ends_with("container: app)")
        });
        run.interrupt();
        run.finish();
    }
}

// spec: META-06
#[test]
fn who_drops_all_capabilities_has_its_volumes_and_its_output() {
    let script =
        "echo up; echo x > /data/x && cat /data/x; wget -q -O - http://localhost:9/ 2>&1 | grep -c refused; true";
    let spec = "  volumes: [{name: data, emptyDir: {}}]\n";
    let mounts = "    volumeMounts: [{name: data, mountPath: /data}]\n";
    // Refused is what a network says where nobody listens.
    for (context, ports, has_network) in [
        ("{}", "", true),
        ("{capabilities: {drop: [ALL]}}", "", false),
        ("{capabilities: {drop: [NET_RAW]}}", "", true),
        ("{capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}", "", true),
        ("{capabilities: {drop: [ALL]}}", "    ports: [{containerPort: 8080}]\n", true),
    ] {
        let container = format!("{mounts}{ports}    securityContext: {context}\n");
        let ended = run_text(&pod(spec, &container, script), &[]);
        let log = said(&ended);
        assert_eq!(log[..2], ["up", "x"]);
        assert_eq!(log.get(2) == Some(&"1"), has_network, "{context} {ports}: {log:?}");
    }
}

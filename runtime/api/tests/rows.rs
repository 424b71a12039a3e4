//! Rows of the contract that are about what a manifest may say.

use husk_api::{check, core_spec, default_pod, pod_of};

/// A pod with a container `c` and an init container `i`, whose further fields are given in flow style.
fn manifest(container: &str, init: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  containers:\n  - {{name: c, image: i{container}}}\n  \
         initContainers:\n  - {{name: i, image: i{init}}}\n"
    )
}

/// Field and message of each error.
fn errors(text: &str) -> Vec<(String, String)> {
    check(text, "pod.yaml").errors.into_iter().map(|problem| (problem.path, problem.message)).collect()
}

/// The fields that are wrong.
fn fields(text: &str) -> Vec<String> {
    errors(text).into_iter().map(|(field, _)| field).collect()
}

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const ACTIONS: [&str; 4] = ["exec: {command: [x]}", "httpGet: {port: 80}", "tcpSocket: {port: 80}", "grpc: {port: 80}"];

// spec: INIT-03
#[test]
fn hooks_and_probes_are_for_containers_that_stay() {
    let mut table = vec![("lifecycle", ", lifecycle: {preStop: {exec: {command: [x]}}}".to_owned())];
    table.extend(PROBES.map(|probe| (probe, format!(", {probe}: {{exec: {{command: [x]}}}}"))));
    for (field, written) in table {
        let found = errors(&manifest("", &written));
        let rule = "Forbidden: may not be set for init containers without restartPolicy=Always";
        assert_eq!(found, [(format!("spec.initContainers[0].{field}"), rule.to_owned())]);
        let policies = [("Never", 1), ("OnFailure", 1), ("Always", 0)];
        for (policy, wrong) in policies {
            let with_policy = format!("{written}, restartPolicy: {policy}");
            assert_eq!(errors(&manifest("", &with_policy)).len(), wrong, "{with_policy}");
        }
        assert_eq!(errors(&manifest(&written, "")), []);
    }
}

// spec: PROBE-01
#[test]
fn a_probe_has_exactly_one_action() {
    for probe in PROBES {
        let of = |actions: &str| manifest(&format!(", {probe}: {{{actions}}}"), "");
        let path = format!("spec.containers[0].{probe}");
        for action in ACTIONS {
            assert_eq!(errors(&of(action)), [], "{probe} {action}");
        }
        let none = (path.clone(), "Required value: must specify a handler type".to_owned());
        assert_eq!(errors(&of("periodSeconds: 5")), [none]);
        let two = (format!("{path}.grpc"), "Forbidden: may not specify more than 1 handler type".to_owned());
        assert_eq!(errors(&of(&ACTIONS[2..].join(", "))), [two]);
        assert_eq!(fields(&of(&ACTIONS.join(", "))).len(), 3);
        assert_eq!(fields(&of("http: {port: 80}")), [format!("{path}.http"), path.clone()]);
    }
}

// spec: PROBE-11
#[test]
fn http2_is_for_the_clear_only() {
    let of = |more: &str| errors(&manifest(&format!(", livenessProbe: {{httpGet: {{path: /, port: 80{more}}}}}"), ""));
    let field = "spec.containers[0].livenessProbe.httpGet.protocol";
    for well in ["", ", protocol: HTTP1", ", protocol: HTTP2", ", protocol: HTTP1, scheme: HTTPS"] {
        assert_eq!(of(well), [], "{well}");
    }
    for ill in [", protocol: HTTP2, scheme: HTTPS", ", protocol: HTTP3"] {
        assert!(matches!(&of(ill)[..], [(path, _)] if path == field), "{ill}: {:?}", of(ill));
    }
}

// spec: PROBE-02
#[test]
fn probes_have_the_documented_defaults_and_bounds() {
    let decoded = check(&manifest(", livenessProbe: {exec: {command: [x]}}", ""), "pod.yaml");
    let mut pod = pod_of(&decoded.documents[0].object).unwrap();
    default_pod(&mut pod);
    let probe = pod.spec.as_ref().unwrap().containers[0].liveness_probe.clone().unwrap();
    assert_eq!(
        [probe.period_seconds, probe.timeout_seconds, probe.success_threshold, probe.failure_threshold],
        [Some(10), Some(1), Some(1), Some(3)]
    );
    assert_eq!(probe.initial_delay_seconds.unwrap_or_default(), 0);
    let seen = core_spec(&pod).containers[0].liveness_probe.clone().unwrap();
    assert_eq!((seen.initial_delay_seconds, seen.period_seconds, seen.timeout_seconds), (0, 10, 1));
    assert_eq!((seen.success_threshold, seen.failure_threshold), (1, 3));

    for probe in PROBES {
        let of = |more: &str| manifest(&format!(", {probe}: {{exec: {{command: [x]}}, {more}}}"), "");
        let path = format!("spec.containers[0].{probe}");
        for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            let found = errors(&of(&format!("{field}: -1")));
            let rule = "Invalid value -1: must be greater than or equal to 0".to_owned();
            assert!(found.contains(&(format!("{path}.{field}"), rule)), "{found:?}");
        }
        let twice = fields(&of("successThreshold: 2"));
        let only_readiness = probe == "readinessProbe";
        assert_eq!(twice.is_empty(), only_readiness, "{probe}: {twice:?}");
        let grace = fields(&of("terminationGracePeriodSeconds: 5"));
        assert_eq!(grace.is_empty(), !only_readiness, "{probe}: {grace:?}");
    }
}

// spec: RESTART-08
#[test]
fn restart_rules_are_bounded_and_need_a_policy() {
    let rule = |codes: usize| {
        let codes: Vec<String> = (0..codes).map(|code| (code % 256).to_string()).collect();
        format!("{{action: Restart, exitCodes: {{operator: In, values: [{}]}}}}", codes.join(", "))
    };
    let of =
        |policy: &str, rules: &[String]| manifest(&format!("{policy}, restartPolicyRules: [{}]", rules.join(", ")), "");
    let never = ", restartPolicy: Never";
    assert_eq!(errors(&of(never, &vec![rule(1); 20])), []);
    assert_eq!(errors(&of(never, &[rule(255)])), []);
    assert_eq!(fields(&of("", &[rule(1)])), ["spec.containers[0].restartPolicy"]);
    assert_eq!(fields(&of(never, &vec![rule(1); 21])), ["spec.containers[0].restartPolicyRules"]);
    assert_eq!(fields(&of(never, &[rule(256)])), ["spec.containers[0].restartPolicyRules[0].exitCodes.values"]);
}

// spec: RES-01
#[test]
fn requests_default_to_limits_and_stay_within_them() {
    let of = |resources: &str| manifest(&format!(", resources: {{{resources}}}"), "");
    let decoded = check(&of("limits: {cpu: 100m, memory: 123Mi}, requests: {cpu: 0.05}"), "pod.yaml");
    assert_eq!(decoded.errors, []);
    let mut pod = pod_of(&decoded.documents[0].object).unwrap();
    default_pod(&mut pod);
    let resources = core_spec(&pod).containers[0].resources.clone();
    let bytes = |list: &husk_core::spec::ResourceList| list["memory"].value();
    assert_eq!((bytes(&resources.requests), bytes(&resources.limits)), (128_974_848, 128_974_848));
    assert_eq!(resources.requests["cpu"].milli_value(), 50);
    let found = errors(&of("limits: {memory: 129M}, requests: {memory: 129000001}"));
    let rule = "Invalid value: must be less than or equal to memory limit of 129M".to_owned();
    assert_eq!(found, [("spec.containers[0].resources.requests".to_owned(), rule)]);
}

//! Changes of pods.

use husk_api::{Gates, Subresource, validate_pod_update};
use serde_json::{Value, json};

use super::{assert_begin, container, lines, pod, spec};

type Row<'a> = (&'a str, Value, Value, &'a [&'a str]);

fn check(subresource: Subresource, rows: &[Row<'_>]) {
    for (function, old, new, expected) in rows {
        let errors = validate_pod_update(&pod(old), &pod(new), subresource, &Gates::UPSTREAM);
        assert_begin(function, new, &lines(&errors), expected);
    }
}

#[test]
fn of_the_pod_itself() {
    let requests = |cpu: &str| container(json!({"resources": {"requests": {"cpu": cpu}}}));
    let gated = |more: Value| {
        let mut spec = more;
        spec["schedulingGates"] = json!([{"name": "g"}]);
        json!({"spec": spec})
    };
    let term = |key: &str| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
    let affinity = |terms: Value| {
        let required = json!({"nodeSelectorTerms": terms});
        gated(json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}))
    };
    let annotated = |annotations: Value| json!({"metadata": {"annotations": annotations}, "spec": {"nodeName": "n"}});
    let cost = "Invalid metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: must be a 32bit integer";
    check(
        Subresource::None,
        &[
            ("Semantic.DeepEqual: an amount is an amount", requests("1e3"), requests("1k"), &[]),
            ("Semantic.DeepEqual", spec(json!({})), spec(json!({"nodeSelector": {}})), &[]),
            (
                "Semantic.DeepEqual",
                container(json!({"livenessProbe": {"exec": {"command": ["x"]}}})),
                container(json!({"livenessProbe": {"exec": {"command": ["x"]}, "initialDelaySeconds": 0}})),
                &[],
            ),
            (
                "validateOnlyDeletedSchedulingGates: once for a name",
                spec(json!({})),
                spec(json!({"schedulingGates": [{"name": "g"}, {"name": "g"}]})),
                &[
                    "Duplicate spec.schedulingGates[1]: ",
                    "Forbidden spec.schedulingGates[1].name: only deletion is allowed, but found new scheduling gate 'g'",
                ],
            ),
            (
                "validateNodeAffinityMutation",
                affinity(json!([term("a")])),
                affinity(json!([term("a"), term("b")])),
                &[
                    "Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: no \
                   additions/deletions to non-empty NodeSelectorTerms list are allowed",
                ],
            ),
            (
                "validateNodeAffinityMutation",
                affinity(json!([term("a")])),
                affinity(json!([term("b")])),
                &[
                    "Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: \
                   only additions are allowed (no mutations or deletions)",
                ],
            ),
            (
                "ValidateObjectMetaUpdate: looked at twice",
                json!({}),
                json!({"metadata": {"finalizers": ["x"]}}),
                &["Invalid metadata.finalizers[0]: name is neither a standard finalizer name nor is it fully qualified";
                    2],
            ),
            (
                "ValidatePodSpecificAnnotationUpdates",
                annotated(json!({"container.apparmor.security.beta.kubernetes.io/c": "unconfined"})),
                annotated(json!({"kubernetes.io/config.mirror": "x"})),
                &[
                    "Forbidden metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: may not remove or",
                    "Forbidden metadata.annotations[kubernetes.io/config.mirror]: may not add mirror pod annotation",
                ],
            ),
            (
                "ValidatePodSpecificAnnotationUpdates: looked at twice",
                annotated(json!({})),
                annotated(json!({"controller.kubernetes.io/pod-deletion-cost": "x"})),
                &[cost, cost],
            ),
        ],
    );
}

#[test]
fn of_resources() {
    let both = |cpu: &str| json!({"requests": {"cpu": cpu}});
    let names = |first: &str, second: &str| {
        spec(json!({"containers": [{"name": first, "image": "i"}, {"name": second, "image": "i"}]}))
    };
    let init = |cpu: &str, policy: &str, more: Value| {
        let mut container = more;
        container["name"] = "i".into();
        container["image"] = "i".into();
        container["resources"] = json!({"requests": {"cpu": cpu, "ephemeral-storage": policy}});
        spec(json!({"initContainers": [container]}))
    };
    let running = |resources: Value| {
        let status = json!({"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "resources": resources, "state": {"running": {}}});
        json!({"spec": {"containers": [{"resources": both("1")}]}, "status": {"containerStatuses": [status]}})
    };
    let stated = json!({
        "spec": {"containers": [{"resources": both("1")}]},
        "status": {"qosClass": "Guaranteed"},
    });
    let claims = |cpu: &str| {
        let claim = json!([{"name": "r", "resourceClaimName": "x"}]);
        spec(json!({"resourceClaims": claim, "containers": [
            {"resources": {"claims": [{"name": "r"}], "requests": {"cpu": cpu}}},
        ]}))
    };
    check(
        Subresource::Resize,
        &[
            (
                "validatePodResizeContainerOrdering",
                names("a", "b"),
                names("b", "a"),
                &[
                    "Forbidden spec.containers[0].name: containers may not be renamed or reordered on resize",
                    "Forbidden spec.containers[1].name: containers may not be renamed or reordered on resize",
                ],
            ),
            (
                "ValidatePodResize",
                init("1", "1Gi", json!({"restartPolicy": "Always"})),
                init("2", "2Gi", json!({"restartPolicy": "Always"})),
                &[
                    "Forbidden spec.initContainers[0]: only cpu and memory resources for init or sidecar containers are mutable",
                ],
            ),
            (
                "validateContainerResize: anything that is gone counts",
                container(json!({"resources": {"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}}})),
                container(json!({"resources": both("1")})),
                &[
                    "Forbidden spec.containers[0].resources.requests: resource requests cannot be removed",
                    "Forbidden spec: only cpu and memory resources are mutable",
                ],
            ),
            (
                "validatePodLevelResourcesResize",
                spec(
                    json!({"resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}}}),
                ),
                spec(
                    json!({"resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}}),
                ),
                &["Forbidden spec: only cpu and memory resources are mutable at pod-level"],
            ),
            (
                "isPodResizeRequestSupported",
                running(Value::Null),
                running(Value::Null),
                &["Forbidden spec: Pod running on node without support for resize"],
            ),
            ("isPodResizeRequestSupported", running(json!({})), running(json!({})), &[]),
            (
                "GetPodQOS: what the status says counts",
                stated.clone(),
                stated,
                &["Invalid spec: Pod QOS Class may not change as a result of resizing"],
            ),
            (
                "dropCPUMemoryResourcesFromContainer: claims get lost",
                claims("1"),
                claims("2"),
                &["Forbidden spec: only cpu and memory resources are mutable"],
            ),
        ],
    );
}

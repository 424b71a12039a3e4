//! Pods as they are created.

use husk_api::{Gate, Gates};
use serde_json::{Value, json};

use super::{check, container, spec};

fn file_ref(volume: &str, source: Value) -> Value {
    let reference = json!({"volumeName": volume, "path": "../e", "key": "K"});
    let mut patch = container(json!({"env": [{"name": "A", "valueFrom": {"fileKeyRef": reference}}]}));
    patch["spec"]["volumes"] = json!([source]);
    patch
}

#[test]
fn environment() {
    let at = "spec.containers[0].env[0].valueFrom.fileKeyRef";
    check(
        &[
            (
                "validateFileKeySelector, validateFileKeyRefVolumes",
                file_ref("V", json!({"name": "v", "emptyDir": {}})),
                &[
                    &format!("Invalid {at}.path: must not contain '..'"),
                    &format!("Invalid {at}.volumeName: a lowercase RFC 1123 label"),
                    &format!("NotFound {at}.volumeName: "),
                ],
            ),
            (
                "validateFileKeyRefVolumes",
                file_ref("v", json!({"name": "v", "configMap": {"name": "m"}})),
                &[
                    &format!("Invalid {at}.path: must not contain '..'"),
                    &format!("Invalid {at}.volumeName: referenced volume must be of type emptyDir"),
                ],
            ),
            (
                "validateConfigMapEnvSource, validateSecretEnvSource: a dash may end the name",
                container(json!({"envFrom": [{"configMapRef": {"name": "a-"}}, {"secretRef": {"name": "a_"}}]})),
                &["Invalid spec.containers[0].envFrom[1].secretRef.name: a lowercase RFC 1123 subdomain"],
            ),
            (
                "validateContainerResourceDivisor: only for resources that exist",
                container(json!({"env": [{"name": "A", "valueFrom": {
                    "resourceFieldRef": {"resource": "x.cpu", "divisor": "7"},
                }}]})),
                &["NotSupported spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: supported values"],
            ),
        ],
        &Gates::UPSTREAM,
    );
}

#[test]
fn containers() {
    let init = |container: Value| {
        let mut container = container;
        container["name"] = "i".into();
        container["image"] = "i".into();
        spec(json!({"initContainers": [container]}))
    };
    let never = {
        let mut patch =
            container(json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}));
        patch["spec"]["restartPolicy"] = "Never".into();
        patch
    };
    check(
        &[
            (
                "validateInitContainerRestartPolicy: without a policy the rules are not looked at",
                init(json!({"restartPolicyRules": [{"action": "X"}]})),
                &[
                    "Required spec.initContainers[0].restartPolicy: must specify restartPolicy when restart rules are used",
                ],
            ),
            (
                "validateInitContainers",
                init(json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]})),
                &[
                    "Invalid spec.initContainers[0].resizePolicy[0].restartPolicy: must not be set to 'RestartContainer' for \
                   non-sidecar initContainers",
                ],
            ),
            (
                "validateResizePolicy",
                never,
                &["Invalid spec.containers[0].resizePolicy: must be 'NotRequired' when pod `restartPolicy` is 'Never'"],
            ),
            (
                "validateInitContainers: no name is a name here",
                spec(json!({"containers": [{"name": ""}], "initContainers": [{"name": "", "image": "i"}]})),
                &[
                    "Duplicate spec.initContainers[0].name: ",
                    "Required spec.containers[0].name: ",
                    "Required spec.initContainers[0].name: ",
                ],
            ),
            (
                "validateResourceName",
                container(json!({"resources": {"limits": {"cpu": "1", "requests.hugepages-2Mi": "2Mi"}}})),
                &[
                    "Invalid spec.containers[0].resources.limits[requests.hugepages-2Mi]: must be a standard resource for",
                    "Invalid spec.containers[0].resources.requests[requests.hugepages-2Mi]: must be a standard resource for",
                ],
            ),
            (
                "validateResourceClaimNames: once for each part that was there before",
                {
                    let claims = json!([{"name": "r", "request": "a"}, {"name": "r", "request": "b"}, {"name": "r"}]);
                    let mut patch = container(json!({"resources": {"claims": claims}}));
                    patch["spec"]["resourceClaims"] = json!([{"name": "r", "resourceClaimName": "x"}]);
                    patch
                },
                &["Duplicate spec.containers[0].resources.claims[2]: "; 2],
            ),
        ],
        &Gates::UPSTREAM,
    );
    let signal = |os: Value| {
        let mut patch = container(json!({"lifecycle": {"stopSignal": "X"}}));
        patch["spec"]["os"] = os;
        patch
    };
    let gates = Gates::UPSTREAM.with(Gate::ContainerStopSignals, true);
    check(
        &[
            ("validateStopSignal", signal(json!({"name": ""})), &["Required spec.os.name: "]),
            ("validateStopSignal", signal(json!({"name": "bsd"})), &["NotSupported spec.os: supported values"]),
        ],
        &gates,
    );
}

#[test]
fn resources_of_the_pod() {
    check(
        &[
            (
                "validatePodResources: an empty list is one",
                spec(json!({"resources": {"claims": []}})),
                &["Forbidden spec.resources.claims: claims may not be set for Resources at pod-level"],
            ),
            (
                "validatePodResourceName: names are looked at first",
                spec(json!({"resources": {"requests": {"foo": "1", "pods": "1"}}})),
                &[
                    "Invalid spec.resources.requests[foo]: must be a standard resource type or fully qualified",
                    "NotSupported spec.resources.requests[pods]: supported values: \"cpu\", \"hugepages-\", \"memory\"",
                ],
            ),
            (
                "validatePodResourceConsistency",
                {
                    let huge = json!({"cpu": "1", "hugepages-2Mi": "4Mi"});
                    let mut patch = container(json!({"resources": {"limits": huge}}));
                    let pages = json!({"cpu": "1", "hugepages-2Mi": "2Mi"});
                    patch["spec"]["resources"] = json!({"requests": pages, "limits": pages});
                    patch
                },
                &[
                    "Invalid spec.resources.containers[0][hugepages-2Mi].limits: must be less than or equal to pod limits",
                    "Invalid spec.resources.limits[hugepages-2Mi]: must be greater than or equal to aggregate container \
                     limits of 4Mi",
                    "Invalid spec.resources.requests[hugepages-2Mi]: must be greater than or equal to aggregate container \
                     requests of 4Mi",
                ],
            ),
        ],
        &Gates::UPSTREAM,
    );
}

#[test]
fn security() {
    check(
        &[
            (
                "validateSELinuxChangePolicy: only one value without the gate SELinuxMount",
                spec(json!({"securityContext": {"seLinuxChangePolicy": "MountOption"}})),
                &["NotSupported spec.securityContext.seLinuxChangePolicy: supported values: \"Recursive\""],
            ),
            (
                "ValidateHostSysctl",
                spec(json!({"hostIPC": true, "securityContext": {"sysctls": [
                    {"name": "fs/mqueue/x", "value": ""}, {"name": "fs.mqueue/x", "value": ""},
                ]}})),
                &["Invalid spec.securityContext.sysctls[0].name: may not be specified when 'hostIPC' is true"],
            ),
            (
                "validateWindowsSecurityContextOptions",
                container(json!({"securityContext": {"windowsOptions": {"runAsUserName": "a?\\.."}}})),
                &[
                    "Invalid spec.containers[0].securityContext.windowsOptions.runAsUserName: runAsUserName's Domain doesn't",
                    "Invalid spec.containers[0].securityContext.windowsOptions.runAsUserName: runAsUserName's User cannot \
                     contain only periods or spaces",
                ],
            ),
            (
                "validateWindows",
                spec(json!({"os": {"name": "windows"}, "securityContext": {"seLinuxChangePolicy": "Recursive"}})),
                &["Forbidden spec.securityContext.seLinuxChangePolicy: cannot be set for a windows pod"],
            ),
        ],
        &Gates::UPSTREAM,
    );
}

#[test]
fn placement() {
    let spread = |more: Value| {
        let mut constraint = more;
        constraint["maxSkew"] = 1.into();
        constraint["whenUnsatisfiable"] = "DoNotSchedule".into();
        spec(json!({"topologySpreadConstraints": [constraint]}))
    };
    let selector = json!({
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
    });
    let toleration = |value: &str| spec(json!({"tolerations": [{"key": "k", "operator": "Lt", "value": value}]}));
    let gates = Gates::UPSTREAM.with(Gate::TaintTolerationComparisonOperators, true);
    let not_canonical = "Invalid spec.tolerations[0].value: must be a valid decimal integer in canonical form";
    check(
        &[
            ("ValidateTopologyKey: it only has to be there", spread(json!({"topologyKey": "a b"})), &[]),
            (
                "ValidateMatchLabelKeysAndMismatchLabelKeys",
                spread(json!({"topologyKey": "z", "matchLabelKeys": ["b", "a"], "labelSelector": selector})),
                &["Invalid spec.topologySpreadConstraints[0][1]: exists in both matchLabelKeys and labelSelector"],
            ),
            (
                "ValidateMatchLabelKeysAndMismatchLabelKeys",
                spec(json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "z", "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"], "labelSelector": selector},
                ]}}})),
                &[
                    "Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[0]: \
                     exists in both matchLabelKeys and mismatchLabelKeys",
                    "Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0][0]: exists in both",
                ],
            ),
            (
                "IsValidIPForLegacyField",
                spec(json!({"hostAliases": [{"ip": "::ffff:1.2.3.4"}, {"ip": "fe80::1%e"}]})),
                &[
                    "Invalid spec.hostAliases[0].ip: must not be an IPv4-mapped IPv6 address",
                    "Invalid spec.hostAliases[1].ip: must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                ],
            ),
            ("ValidateTolerations", toleration("-5"), &[]),
            ("ValidateTolerations", toleration("05"), &[not_canonical]),
            (
                "ValidateTolerations",
                toleration("x"),
                &[not_canonical, "Invalid spec.tolerations[0].value: strconv.ParseInt: parsing \"x\": invalid syntax"],
            ),
            (
                "ValidateTolerations",
                toleration("9223372036854775808"),
                &[
                    "Invalid spec.tolerations[0].value: strconv.ParseInt: parsing \"9223372036854775808\": value out of range",
                ],
            ),
        ],
        &gates,
    );
}

#[test]
fn annotations() {
    let metadata = |annotations: Value| json!({"metadata": {"annotations": annotations}});
    let mut profiles = metadata(json!({
        "container.seccomp.security.alpha.kubernetes.io/c": "localhost/a",
        "container.apparmor.security.beta.kubernetes.io/c": "unconfined",
    }));
    profiles["spec"] = json!({
        "containers": [{"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "b"}}}],
        "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}},
    });
    check(
        &[
            (
                "GetDeletionCostFromPodAnnotations",
                metadata(json!({"controller.kubernetes.io/pod-deletion-cost": "-08"})),
                &[],
            ),
            (
                "GetDeletionCostFromPodAnnotations",
                metadata(json!({"controller.kubernetes.io/pod-deletion-cost": "08"})),
                &["Invalid metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: must be a 32bit integer"],
            ),
            (
                "ValidateSeccompPodAnnotations",
                metadata(json!({"seccomp.security.alpha.kubernetes.io/pod": "x"})),
                &[
                    "Invalid metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: must be a valid seccomp profile",
                ],
            ),
            (
                "ValidateAppArmorPodAnnotations",
                metadata(json!({"container.apparmor.security.beta.kubernetes.io/d": "x"})),
                &[
                    "Invalid metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: container not found",
                    "Invalid metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: invalid AppArmor \
                     profile name: \"x\"",
                ],
            ),
            (
                "ValidateTolerationsInPodAnnotations",
                metadata(json!({"scheduler.alpha.kubernetes.io/tolerations": "[{\"key\":\"k\",\"operator\":\"X\"}]"})),
                &["NotSupported metadata.annotations.scheduler.alpha.kubernetes.io/tolerations[0].operator: supported"],
            ),
            (
                "validateSeccompAnnotationsAndFields, validateAppArmorAnnotationsAndFieldsMatchOnCreate",
                profiles,
                &[
                    "Forbidden spec.containers[0].securityContext.appArmorProfile.type: apparmor type in annotation and",
                    "Forbidden spec.containers[0].securityContext.seccompProfile.localhostProfile: seccomp profile in",
                ],
            ),
            (
                "validatePodResourceClaim",
                {
                    let mut patch = metadata(json!({"kubernetes.io/config.mirror": ""}));
                    patch["spec"] = json!({"nodeName": "n", "resourceClaims": [{"name": ""}]});
                    patch
                },
                &["Forbidden : static pods do not support resource claims"],
            ),
        ],
        &Gates::UPSTREAM,
    );
}

#[test]
fn managed_fields() {
    let managed = |entry: Value| json!({"metadata": {"managedFields": [entry]}});
    let at = "metadata.managedFields[0]";
    let long = json!({"operation": "Apply", "manager": "m".repeat(129), "subresource": "s".repeat(257)});
    check(
        &[
            (
                "ValidateManagedFields",
                managed(json!({"operation": "x", "fieldsType": "y"})),
                &[
                    &format!("Invalid {at}.fieldsType: must be `FieldsV1`"),
                    &format!("Invalid {at}.operation: must be `Apply` or `Update`"),
                ],
            ),
            (
                "ValidateManagedFields: lengths",
                managed(long),
                &[
                    &format!("TooLong {at}.manager: may not be more than 128 bytes"),
                    &format!("TooLong {at}.subresource: may not be more than 256 bytes"),
                ],
            ),
            (
                "ValidateFieldManager",
                managed(json!({"operation": "Update", "fieldsType": "FieldsV1", "manager": "a\tb"})),
                &[&format!("Invalid {at}.manager: should only contain printable characters (at position 1)")],
            ),
        ],
        &Gates::UPSTREAM,
    );
}

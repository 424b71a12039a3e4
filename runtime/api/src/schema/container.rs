//! Containers, their environment, probes, hooks and mounts.

use super::Support::Warned;
use super::Type::*;
use super::security::SECURITY_CONTEXT;
use super::{Object, field, object};

pub(super) static CONTAINER: Object = object(
    "Container",
    &[
        field("args", List(&Str)),
        field("command", List(&Str)),
        field("env", List(&Object(&ENV_VAR))),
        field("envFrom", List(&Object(&ENV_FROM_SOURCE))),
        field("image", Str),
        field("imagePullPolicy", Str),
        field("lifecycle", Object(&LIFECYCLE)),
        field("livenessProbe", Object(&PROBE)),
        field("name", Str),
        field("ports", List(&Object(&CONTAINER_PORT))),
        field("readinessProbe", Object(&PROBE)),
        field("resizePolicy", List(&Object(&CONTAINER_RESIZE_POLICY)))
            .warned_alone("resources are not resized in place"),
        field("resources", Object(&RESOURCE_REQUIREMENTS)),
        field("restartPolicy", Str),
        field("restartPolicyRules", List(&Object(&CONTAINER_RESTART_RULE))),
        field("securityContext", Object(&SECURITY_CONTEXT)),
        field("startupProbe", Object(&PROBE)),
        field("stdin", Bool),
        field("stdinOnce", Bool),
        field("terminationMessagePath", Str),
        field("terminationMessagePolicy", Str),
        field("tty", Bool),
        field("volumeDevices", List(&Object(&VOLUME_DEVICE)))
            .rejected("block devices cannot be given to a module; use volumeMounts"),
        field("volumeMounts", List(&Object(&VOLUME_MOUNT))),
        field("workingDir", Str),
    ],
);
pub(super) static EPHEMERAL_CONTAINER: Object = object(
    "EphemeralContainer",
    &[
        field("args", List(&Str)),
        field("command", List(&Str)),
        field("env", List(&Object(&ENV_VAR))),
        field("envFrom", List(&Object(&ENV_FROM_SOURCE))),
        field("image", Str),
        field("imagePullPolicy", Str),
        field("lifecycle", Object(&LIFECYCLE)),
        field("livenessProbe", Object(&PROBE)),
        field("name", Str),
        field("ports", List(&Object(&CONTAINER_PORT))),
        field("readinessProbe", Object(&PROBE)),
        field("resizePolicy", List(&Object(&CONTAINER_RESIZE_POLICY)))
            .warned_alone("resources are not resized in place"),
        field("resources", Object(&RESOURCE_REQUIREMENTS)),
        field("restartPolicy", Str),
        field("restartPolicyRules", List(&Object(&CONTAINER_RESTART_RULE))),
        field("securityContext", Object(&SECURITY_CONTEXT)),
        field("startupProbe", Object(&PROBE)),
        field("stdin", Bool),
        field("stdinOnce", Bool),
        field("targetContainerName", Str),
        field("terminationMessagePath", Str),
        field("terminationMessagePolicy", Str),
        field("tty", Bool),
        field("volumeDevices", List(&Object(&VOLUME_DEVICE)))
            .rejected("block devices cannot be given to a module; use volumeMounts"),
        field("volumeMounts", List(&Object(&VOLUME_MOUNT))),
        field("workingDir", Str),
    ],
);
pub(super) static ENV_VAR: Object =
    object("EnvVar", &[field("name", Str), field("value", Str), field("valueFrom", Object(&ENV_VAR_SOURCE))]);
pub(super) static ENV_VAR_SOURCE: Object = object(
    "EnvVarSource",
    &[
        field("configMapKeyRef", Object(&CONFIG_MAP_KEY_SELECTOR)),
        field("fieldRef", Object(&OBJECT_FIELD_SELECTOR)),
        field("fileKeyRef", Object(&FILE_KEY_SELECTOR)),
        field("resourceFieldRef", Object(&RESOURCE_FIELD_SELECTOR)),
        field("secretKeyRef", Object(&SECRET_KEY_SELECTOR)),
    ],
);
pub(super) static CONFIG_MAP_KEY_SELECTOR: Object =
    object("ConfigMapKeySelector", &[field("key", Str), field("name", Str), field("optional", Bool)]);
pub(super) static OBJECT_FIELD_SELECTOR: Object =
    object("ObjectFieldSelector", &[field("apiVersion", Str), field("fieldPath", Str)]);
pub(super) static FILE_KEY_SELECTOR: Object = object(
    "FileKeySelector",
    &[field("key", Str), field("optional", Bool), field("path", Str), field("volumeName", Str)],
);
pub(super) static RESOURCE_FIELD_SELECTOR: Object =
    object("ResourceFieldSelector", &[field("containerName", Str), field("divisor", Quantity), field("resource", Str)]);
pub(super) static SECRET_KEY_SELECTOR: Object =
    object("SecretKeySelector", &[field("key", Str), field("name", Str), field("optional", Bool)]);
pub(super) static ENV_FROM_SOURCE: Object = object(
    "EnvFromSource",
    &[
        field("configMapRef", Object(&CONFIG_MAP_ENV_SOURCE)),
        field("prefix", Str),
        field("secretRef", Object(&SECRET_ENV_SOURCE)),
    ],
);
pub(super) static CONFIG_MAP_ENV_SOURCE: Object =
    object("ConfigMapEnvSource", &[field("name", Str), field("optional", Bool)]);
pub(super) static SECRET_ENV_SOURCE: Object = object("SecretEnvSource", &[field("name", Str), field("optional", Bool)]);
pub(super) static LIFECYCLE: Object = object(
    "Lifecycle",
    &[
        field("postStart", Object(&LIFECYCLE_HANDLER)),
        field("preStop", Object(&LIFECYCLE_HANDLER)),
        field("stopSignal", Str),
    ],
);
pub(super) static LIFECYCLE_HANDLER: Object = object(
    "LifecycleHandler",
    &[
        field("exec", Object(&EXEC_ACTION)),
        field("httpGet", Object(&HTTP_GET_ACTION)),
        field("sleep", Object(&SLEEP_ACTION)),
        field("tcpSocket", Object(&TCP_SOCKET_ACTION))
            .rejected("lifecycle hooks cannot use it; use exec, httpGet or sleep"),
    ],
);
pub(super) static EXEC_ACTION: Object = object("ExecAction", &[field("command", List(&Str))]);
pub(super) static HTTP_GET_ACTION: Object = object(
    "HTTPGetAction",
    &[
        field("host", Str),
        field("httpHeaders", List(&Object(&HTTP_HEADER))),
        field("path", Str),
        field("port", IntOrString),
        field("protocol", Str),
        field("scheme", Str),
    ],
);
pub(super) static HTTP_HEADER: Object = object("HTTPHeader", &[field("name", Str), field("value", Str)]);
pub(super) static SLEEP_ACTION: Object = object("SleepAction", &[field("seconds", Int64)]);
pub(super) static TCP_SOCKET_ACTION: Object =
    object("TCPSocketAction", &[field("host", Str), field("port", IntOrString)]);
pub(super) static PROBE: Object = object(
    "Probe",
    &[
        field("exec", Object(&EXEC_ACTION)),
        field("failureThreshold", Int32),
        field("grpc", Object(&GRPC_ACTION)),
        field("httpGet", Object(&HTTP_GET_ACTION)),
        field("initialDelaySeconds", Int32),
        field("periodSeconds", Int32),
        field("successThreshold", Int32),
        field("tcpSocket", Object(&TCP_SOCKET_ACTION)),
        field("terminationGracePeriodSeconds", Int64),
        field("timeoutSeconds", Int32),
    ],
);
pub(super) static GRPC_ACTION: Object =
    object("GRPCAction", &[field("mode", Str), field("port", Int32), field("service", Str)]);
pub(super) static CONTAINER_PORT: Object = object(
    "ContainerPort",
    &[
        field("containerPort", Int32),
        field("hostIP", Str).warned("the port is not published on the host; connect to the pod's address"),
        field("hostPort", Int32).warned("the port is not published on the host; connect to the pod's address"),
        field("name", Str),
        field("protocol", Str),
    ],
);
pub(super) static CONTAINER_RESIZE_POLICY: Object =
    object("ContainerResizePolicy", &[field("resourceName", Str), field("restartPolicy", Str)]);
/// Resources of which limits are enforced.
const LIMITS: &[&str] = &["cpu", "memory", "husk.dev/fuel"];
pub(super) static RESOURCE_REQUIREMENTS: Object = object(
    "ResourceRequirements",
    &[
        field("claims", List(&Object(&RESOURCE_CLAIM))).warned("no devices are allocated"),
        field("limits", Map(&Quantity))
            .only(LIMITS, Warned("only the limits of cpu, memory and husk.dev/fuel are enforced")),
        field("requests", Map(&Quantity)),
    ],
);
pub(super) static RESOURCE_CLAIM: Object = object("ResourceClaim", &[field("name", Str), field("request", Str)]);
pub(super) static CONTAINER_RESTART_RULE: Object = object(
    "ContainerRestartRule",
    &[field("action", Str), field("exitCodes", Object(&CONTAINER_RESTART_RULE_ON_EXIT_CODES))],
);
pub(super) static CONTAINER_RESTART_RULE_ON_EXIT_CODES: Object =
    object("ContainerRestartRuleOnExitCodes", &[field("operator", Str), field("values", List(&Int32))]);
pub(super) static VOLUME_DEVICE: Object = object("VolumeDevice", &[field("devicePath", Str), field("name", Str)]);
pub(super) static VOLUME_MOUNT: Object = object(
    "VolumeMount",
    &[
        field("bindMountOptions", List(&Str)).warned("it is ignored"),
        field("mountPath", Str),
        field("mountPropagation", Str).warned("mounts are not propagated").but(&["None"]),
        field("name", Str),
        field("readOnly", Bool),
        field("recursiveReadOnly", Str)
            .warned("a read-only mount is so all the way down")
            .but(&["Enabled", "IfPossible"]),
        field("subPath", Str),
        field("subPathExpr", Str),
    ],
);

//! Objects with a pod template.

use super::Type::*;
use super::meta::{LABEL_SELECTOR, OBJECT_META};
use super::pod::POD_SPEC;
use super::volumes::PERSISTENT_VOLUME_CLAIM;
use super::{Object, field, object};

pub(super) static JOB: Object = object(
    "Job",
    &[
        field("apiVersion", Str),
        field("kind", Str),
        field("metadata", Object(&OBJECT_META)),
        field("spec", Object(&JOB_SPEC)),
        field("status", Any).warned("it is ignored"),
    ],
);
pub(super) static JOB_SPEC: Object = object(
    "JobSpec",
    &[
        field("activeDeadlineSeconds", Int64).warned("the template is run as one pod"),
        field("backoffLimit", Int32).warned("the template is run as one pod"),
        field("backoffLimitPerIndex", Int32).warned("the template is run as one pod"),
        field("completionMode", Str).warned("the template is run as one pod"),
        field("completions", Int32).warned("the template is run as one pod").but(&["1"]),
        field("managedBy", Str).warned("the template is run as one pod"),
        field("manualSelector", Bool).warned("the template is run as one pod"),
        field("maxFailedIndexes", Int32).warned("the template is run as one pod"),
        field("parallelism", Int32).warned("the template is run as one pod").but(&["1"]),
        field("podFailurePolicy", Object(&POD_FAILURE_POLICY)).warned("the template is run as one pod"),
        field("podReplacementPolicy", Str).warned("the template is run as one pod"),
        field("scheduling", Object(&JOB_SCHEDULING_CONFIGURATION)).warned("the template is run as one pod"),
        field("selector", Object(&LABEL_SELECTOR)),
        field("successPolicy", Object(&SUCCESS_POLICY)).warned("the template is run as one pod"),
        field("suspend", Bool).warned("the template is run as one pod"),
        field("template", Object(&POD_TEMPLATE_SPEC)),
        field("ttlSecondsAfterFinished", Int32).warned("the template is run as one pod"),
    ],
);
pub(super) static POD_FAILURE_POLICY: Object =
    object("PodFailurePolicy", &[field("rules", List(&Object(&POD_FAILURE_POLICY_RULE)))]);
pub(super) static POD_FAILURE_POLICY_RULE: Object = object(
    "PodFailurePolicyRule",
    &[
        field("action", Str),
        field("onExitCodes", Object(&POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT)),
        field("onPodConditions", List(&Object(&POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN))),
    ],
);
pub(super) static POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT: Object = object(
    "PodFailurePolicyOnExitCodesRequirement",
    &[field("containerName", Str), field("operator", Str), field("values", List(&Int32))],
);
pub(super) static POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN: Object =
    object("PodFailurePolicyOnPodConditionsPattern", &[field("status", Str), field("type", Str)]);
pub(super) static JOB_SCHEDULING_CONFIGURATION: Object = object(
    "JobSchedulingConfiguration",
    &[
        field("disruptionMode", Object(&WORKLOAD_POD_GROUP_DISRUPTION_MODE)),
        field("resourceClaims", List(&Object(&WORKLOAD_POD_GROUP_RESOURCE_CLAIM))),
        field("schedulingConstraints", Object(&WORKLOAD_POD_GROUP_SCHEDULING_CONSTRAINTS)),
        field("schedulingPolicy", Object(&WORKLOAD_POD_GROUP_SCHEDULING_POLICY)),
    ],
);
pub(super) static WORKLOAD_POD_GROUP_DISRUPTION_MODE: Object = object(
    "WorkloadPodGroupDisruptionMode",
    &[
        field("all", Object(&WORKLOAD_POD_GROUP_ALL_DISRUPTION_MODE)),
        field("single", Object(&WORKLOAD_POD_GROUP_SINGLE_DISRUPTION_MODE)),
    ],
);
pub(super) static WORKLOAD_POD_GROUP_ALL_DISRUPTION_MODE: Object = object("WorkloadPodGroupAllDisruptionMode", &[]);
pub(super) static WORKLOAD_POD_GROUP_SINGLE_DISRUPTION_MODE: Object =
    object("WorkloadPodGroupSingleDisruptionMode", &[]);
pub(super) static WORKLOAD_POD_GROUP_RESOURCE_CLAIM: Object = object(
    "WorkloadPodGroupResourceClaim",
    &[field("name", Str), field("resourceClaimName", Str), field("resourceClaimTemplateName", Str)],
);
pub(super) static WORKLOAD_POD_GROUP_SCHEDULING_CONSTRAINTS: Object =
    object("WorkloadPodGroupSchedulingConstraints", &[field("topology", List(&Object(&TOPOLOGY_CONSTRAINT)))]);
pub(super) static TOPOLOGY_CONSTRAINT: Object = object("TopologyConstraint", &[field("key", Str)]);
pub(super) static WORKLOAD_POD_GROUP_SCHEDULING_POLICY: Object = object(
    "WorkloadPodGroupSchedulingPolicy",
    &[
        field("basic", Object(&WORKLOAD_POD_GROUP_BASIC_SCHEDULING_POLICY)),
        field("gang", Object(&WORKLOAD_POD_GROUP_GANG_SCHEDULING_POLICY)),
    ],
);
pub(super) static WORKLOAD_POD_GROUP_BASIC_SCHEDULING_POLICY: Object =
    object("WorkloadPodGroupBasicSchedulingPolicy", &[]);
pub(super) static WORKLOAD_POD_GROUP_GANG_SCHEDULING_POLICY: Object =
    object("WorkloadPodGroupGangSchedulingPolicy", &[field("minCount", Int32)]);
pub(super) static SUCCESS_POLICY: Object =
    object("SuccessPolicy", &[field("rules", List(&Object(&SUCCESS_POLICY_RULE)))]);
pub(super) static SUCCESS_POLICY_RULE: Object =
    object("SuccessPolicyRule", &[field("succeededCount", Int32), field("succeededIndexes", Str)]);
pub(super) static POD_TEMPLATE_SPEC: Object =
    object("PodTemplateSpec", &[field("metadata", Object(&OBJECT_META)), field("spec", Object(&POD_SPEC))]);
pub(super) static DEPLOYMENT: Object = object(
    "Deployment",
    &[
        field("apiVersion", Str),
        field("kind", Str),
        field("metadata", Object(&OBJECT_META)),
        field("spec", Object(&DEPLOYMENT_SPEC)),
        field("status", Any).warned("it is ignored"),
    ],
);
pub(super) static DEPLOYMENT_SPEC: Object = object(
    "DeploymentSpec",
    &[
        field("minReadySeconds", Int32).warned("the template is run as one pod"),
        field("paused", Bool).warned("the template is run as one pod"),
        field("progressDeadlineSeconds", Int32).warned("the template is run as one pod"),
        field("replicas", Int32).warned("the template is run as one pod").but(&["1"]),
        field("revisionHistoryLimit", Int32).warned("the template is run as one pod"),
        field("selector", Object(&LABEL_SELECTOR)),
        field("strategy", Object(&DEPLOYMENT_STRATEGY)).warned("the template is run as one pod"),
        field("template", Object(&POD_TEMPLATE_SPEC)),
    ],
);
pub(super) static DEPLOYMENT_STRATEGY: Object =
    object("DeploymentStrategy", &[field("rollingUpdate", Object(&ROLLING_UPDATE_DEPLOYMENT)), field("type", Str)]);
pub(super) static ROLLING_UPDATE_DEPLOYMENT: Object =
    object("RollingUpdateDeployment", &[field("maxSurge", IntOrString), field("maxUnavailable", IntOrString)]);
pub(super) static REPLICA_SET: Object = object(
    "ReplicaSet",
    &[
        field("apiVersion", Str),
        field("kind", Str),
        field("metadata", Object(&OBJECT_META)),
        field("spec", Object(&REPLICA_SET_SPEC)),
        field("status", Any).warned("it is ignored"),
    ],
);
pub(super) static REPLICA_SET_SPEC: Object = object(
    "ReplicaSetSpec",
    &[
        field("minReadySeconds", Int32).warned("the template is run as one pod"),
        field("replicas", Int32).warned("the template is run as one pod").but(&["1"]),
        field("selector", Object(&LABEL_SELECTOR)),
        field("template", Object(&POD_TEMPLATE_SPEC)),
    ],
);
pub(super) static DAEMON_SET: Object = object(
    "DaemonSet",
    &[
        field("apiVersion", Str),
        field("kind", Str),
        field("metadata", Object(&OBJECT_META)),
        field("spec", Object(&DAEMON_SET_SPEC)),
        field("status", Any).warned("it is ignored"),
    ],
);
pub(super) static DAEMON_SET_SPEC: Object = object(
    "DaemonSetSpec",
    &[
        field("minReadySeconds", Int32).warned("the template is run as one pod"),
        field("revisionHistoryLimit", Int32).warned("the template is run as one pod"),
        field("selector", Object(&LABEL_SELECTOR)),
        field("template", Object(&POD_TEMPLATE_SPEC)),
        field("updateStrategy", Object(&DAEMON_SET_UPDATE_STRATEGY)).warned("the template is run as one pod"),
    ],
);
pub(super) static DAEMON_SET_UPDATE_STRATEGY: Object = object(
    "DaemonSetUpdateStrategy",
    &[field("rollingUpdate", Object(&ROLLING_UPDATE_DAEMON_SET)), field("type", Str)],
);
pub(super) static ROLLING_UPDATE_DAEMON_SET: Object =
    object("RollingUpdateDaemonSet", &[field("maxSurge", IntOrString), field("maxUnavailable", IntOrString)]);
pub(super) static STATEFUL_SET: Object = object(
    "StatefulSet",
    &[
        field("apiVersion", Str),
        field("kind", Str),
        field("metadata", Object(&OBJECT_META)),
        field("spec", Object(&STATEFUL_SET_SPEC)),
        field("status", Any).warned("it is ignored"),
    ],
);
pub(super) static STATEFUL_SET_SPEC: Object = object(
    "StatefulSetSpec",
    &[
        field("minReadySeconds", Int32).warned("the template is run as one pod"),
        field("ordinals", Object(&STATEFUL_SET_ORDINALS)).warned("the template is run as one pod"),
        field("persistentVolumeClaimRetentionPolicy", Object(&STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY))
            .warned("the template is run as one pod"),
        field("podManagementPolicy", Str).warned("the template is run as one pod"),
        field("replicas", Int32).warned("the template is run as one pod").but(&["1"]),
        field("revisionHistoryLimit", Int32).warned("the template is run as one pod"),
        field("selector", Object(&LABEL_SELECTOR)),
        field("serviceName", Str).warned("the template is run as one pod"),
        field("template", Object(&POD_TEMPLATE_SPEC)),
        field("updateStrategy", Object(&STATEFUL_SET_UPDATE_STRATEGY)).warned("the template is run as one pod"),
        field("volumeClaimTemplates", List(&Object(&PERSISTENT_VOLUME_CLAIM))).warned("the template is run as one pod"),
    ],
);
pub(super) static STATEFUL_SET_ORDINALS: Object = object("StatefulSetOrdinals", &[field("start", Int32)]);
pub(super) static STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY: Object =
    object("StatefulSetPersistentVolumeClaimRetentionPolicy", &[field("whenDeleted", Str), field("whenScaled", Str)]);
pub(super) static STATEFUL_SET_UPDATE_STRATEGY: Object = object(
    "StatefulSetUpdateStrategy",
    &[field("rollingUpdate", Object(&ROLLING_UPDATE_STATEFUL_SET_STRATEGY)), field("type", Str)],
);
pub(super) static ROLLING_UPDATE_STATEFUL_SET_STRATEGY: Object =
    object("RollingUpdateStatefulSetStrategy", &[field("maxUnavailable", IntOrString), field("partition", Int32)]);

//! `Pod` and `PodSpec`, but for containers, volumes and security.

use super::Type::*;
use super::container::{CONTAINER, EPHEMERAL_CONTAINER, RESOURCE_REQUIREMENTS};
use super::meta::{LABEL_SELECTOR, LOCAL_OBJECT_REFERENCE, OBJECT_META};
use super::security::POD_SECURITY_CONTEXT;
use super::volumes::VOLUME;
use super::{Object, field, object};

pub(super) static POD: Object = object(
    "Pod",
    &[
        field("apiVersion", Str),
        field("kind", Str),
        field("metadata", Object(&OBJECT_META)),
        field("spec", Object(&POD_SPEC)),
        field("status", Any).warned("it is ignored; the node writes status itself"),
    ],
);
pub(super) static POD_SPEC: Object = object(
    "PodSpec",
    &[
        field("activeDeadlineSeconds", Int64),
        field("affinity", Object(&AFFINITY)).warned_alone("placement is not evaluated: the pod runs on this node"),
        field("automountServiceAccountToken", Bool)
            .warned("there are no service accounts: the file `namespace` is mounted, a token is not")
            .but(&["false"]),
        field("containers", List(&Object(&CONTAINER))),
        field("dnsConfig", Object(&POD_DNS_CONFIG)).warned("only the pod's own names and localhost resolve"),
        field("dnsPolicy", Str)
            .warned("only the pod's own names and localhost resolve")
            .but(&["ClusterFirst", "Default"]),
        field("enableServiceLinks", Bool),
        field("ephemeralContainers", List(&Object(&EPHEMERAL_CONTAINER))),
        field("evictionResponders", List(&Object(&EVICTION_RESPONDER))).warned("they are not asked"),
        field("hostAliases", List(&Object(&HOST_ALIAS))),
        field("hostIPC", Bool).warned("WebAssembly modules have no IPC namespace"),
        field("hostNetwork", Bool).warned("the pod keeps its own loopback address"),
        field("hostPID", Bool).warned("WebAssembly modules have no process namespace"),
        field("hostUsers", Bool),
        field("hostname", Str),
        field("hostnameOverride", Str),
        field("imagePullSecrets", List(&Object(&LOCAL_OBJECT_REFERENCE)))
            .warned("images come from files and folders, which ask nobody for a password"),
        field("initContainers", List(&Object(&CONTAINER))),
        field("nodeName", Str).warned("the pod runs on this node"),
        field("nodeSelector", Map(&Str)).warned_alone("placement is not evaluated: the pod runs on this node"),
        field("os", Object(&POD_OS)),
        field("overhead", Map(&Quantity)).warned_alone("it is not counted"),
        field("preemptionPolicy", Str).warned_alone("pods do not preempt each other").but(&["PreemptLowerPriority"]),
        field("priority", Int32).warned_alone("pods do not preempt each other"),
        field("priorityClassName", Str).warned("there are no priority classes; an agent looks at `priority`"),
        field("readinessGates", List(&Object(&POD_READINESS_GATE))),
        field("resourceClaims", List(&Object(&POD_RESOURCE_CLAIM))).warned("no devices are allocated"),
        field("resources", Object(&RESOURCE_REQUIREMENTS)),
        field("restartPolicy", Str),
        field("runtimeClassName", Str).warned("there is one runtime"),
        field("schedulerName", Str).warned("the pod runs on this node").but(&["default-scheduler"]),
        field("schedulingGates", List(&Object(&POD_SCHEDULING_GATE))).warned_alone("the pod starts at once"),
        field("schedulingGroup", Object(&POD_SCHEDULING_GROUP)).warned("the pod starts alone"),
        field("securityContext", Object(&POD_SECURITY_CONTEXT)),
        field("serviceAccount", Str).warned("there are no service accounts"),
        field("serviceAccountName", Str).warned("there are no service accounts"),
        field("setHostnameAsFQDN", Bool),
        field("shareProcessNamespace", Bool).warned("WebAssembly modules have no process namespace"),
        field("subdomain", Str),
        field("terminationGracePeriodSeconds", Int64),
        field("tolerations", List(&Object(&TOLERATION))).warned_alone("the node has no taints"),
        field("topologySpreadConstraints", List(&Object(&TOPOLOGY_SPREAD_CONSTRAINT)))
            .warned_alone("placement is not evaluated: the pod runs on this node"),
        field("volumes", List(&Object(&VOLUME))),
    ],
);
pub(super) static AFFINITY: Object = object(
    "Affinity",
    &[
        field("nodeAffinity", Object(&NODE_AFFINITY)),
        field("podAffinity", Object(&POD_AFFINITY)),
        field("podAntiAffinity", Object(&POD_ANTI_AFFINITY)),
    ],
);
pub(super) static NODE_AFFINITY: Object = object(
    "NodeAffinity",
    &[
        field("preferredDuringSchedulingIgnoredDuringExecution", List(&Object(&PREFERRED_SCHEDULING_TERM))),
        field("requiredDuringSchedulingIgnoredDuringExecution", Object(&NODE_SELECTOR)),
    ],
);
pub(super) static PREFERRED_SCHEDULING_TERM: Object =
    object("PreferredSchedulingTerm", &[field("preference", Object(&NODE_SELECTOR_TERM)), field("weight", Int32)]);
pub(super) static NODE_SELECTOR_TERM: Object = object(
    "NodeSelectorTerm",
    &[
        field("matchExpressions", List(&Object(&NODE_SELECTOR_REQUIREMENT))),
        field("matchFields", List(&Object(&NODE_SELECTOR_REQUIREMENT))),
    ],
);
pub(super) static NODE_SELECTOR_REQUIREMENT: Object =
    object("NodeSelectorRequirement", &[field("key", Str), field("operator", Str), field("values", List(&Str))]);
pub(super) static NODE_SELECTOR: Object =
    object("NodeSelector", &[field("nodeSelectorTerms", List(&Object(&NODE_SELECTOR_TERM)))]);
pub(super) static POD_AFFINITY: Object = object(
    "PodAffinity",
    &[
        field("preferredDuringSchedulingIgnoredDuringExecution", List(&Object(&WEIGHTED_POD_AFFINITY_TERM))),
        field("requiredDuringSchedulingIgnoredDuringExecution", List(&Object(&POD_AFFINITY_TERM))),
    ],
);
pub(super) static WEIGHTED_POD_AFFINITY_TERM: Object =
    object("WeightedPodAffinityTerm", &[field("podAffinityTerm", Object(&POD_AFFINITY_TERM)), field("weight", Int32)]);
pub(super) static POD_AFFINITY_TERM: Object = object(
    "PodAffinityTerm",
    &[
        field("labelSelector", Object(&LABEL_SELECTOR)),
        field("matchLabelKeys", List(&Str)),
        field("mismatchLabelKeys", List(&Str)),
        field("namespaceSelector", Object(&LABEL_SELECTOR)),
        field("namespaces", List(&Str)),
        field("topologyKey", Str),
    ],
);
pub(super) static POD_ANTI_AFFINITY: Object = object(
    "PodAntiAffinity",
    &[
        field("preferredDuringSchedulingIgnoredDuringExecution", List(&Object(&WEIGHTED_POD_AFFINITY_TERM))),
        field("requiredDuringSchedulingIgnoredDuringExecution", List(&Object(&POD_AFFINITY_TERM))),
    ],
);
pub(super) static POD_DNS_CONFIG: Object = object(
    "PodDNSConfig",
    &[
        field("nameservers", List(&Str)),
        field("options", List(&Object(&POD_DNS_CONFIG_OPTION))),
        field("searches", List(&Str)),
    ],
);
pub(super) static POD_DNS_CONFIG_OPTION: Object =
    object("PodDNSConfigOption", &[field("name", Str), field("value", Str)]);
pub(super) static EVICTION_RESPONDER: Object =
    object("EvictionResponder", &[field("name", Str), field("priority", Int32)]);
pub(super) static HOST_ALIAS: Object = object("HostAlias", &[field("hostnames", List(&Str)), field("ip", Str)]);
pub(super) static POD_OS: Object = object("PodOS", &[field("name", Str)]);
pub(super) static POD_READINESS_GATE: Object = object("PodReadinessGate", &[field("conditionType", Str)]);
pub(super) static POD_RESOURCE_CLAIM: Object = object(
    "PodResourceClaim",
    &[field("name", Str), field("resourceClaimName", Str), field("resourceClaimTemplateName", Str)],
);
pub(super) static POD_SCHEDULING_GATE: Object = object("PodSchedulingGate", &[field("name", Str)]);
pub(super) static POD_SCHEDULING_GROUP: Object = object("PodSchedulingGroup", &[field("podGroupName", Str)]);
pub(super) static TOLERATION: Object = object(
    "Toleration",
    &[
        field("effect", Str),
        field("key", Str),
        field("operator", Str),
        field("tolerationSeconds", Int64),
        field("value", Str),
    ],
);
pub(super) static TOPOLOGY_SPREAD_CONSTRAINT: Object = object(
    "TopologySpreadConstraint",
    &[
        field("labelSelector", Object(&LABEL_SELECTOR)),
        field("matchLabelKeys", List(&Str)),
        field("maxSkew", Int32),
        field("minDomains", Int32),
        field("nodeAffinityPolicy", Str),
        field("nodeTaintsPolicy", Str),
        field("topologyKey", Str),
        field("whenUnsatisfiable", Str),
    ],
);

//! Condition types, reasons and messages, as upstream spells them.

/// Condition: the pod's sandbox has an address and can take containers.
pub const POD_READY_TO_START_CONTAINERS: &str = "PodReadyToStartContainers";
/// Condition: all init containers are done.
pub const INITIALIZED: &str = "Initialized";
/// Condition: all containers and readiness gates are ready.
pub const READY: &str = "Ready";
/// Condition: all containers are ready.
pub const CONTAINERS_READY: &str = "ContainersReady";
/// Condition: the pod has a node.
pub const POD_SCHEDULED: &str = "PodScheduled";
/// Condition: every container of the pod is restarted in place (RESTART-09).
pub const ALL_CONTAINERS_RESTARTING: &str = "AllContainersRestarting";
/// The name that the documents have for the same.
pub const POD_RESTART_IN_PLACE: &str = "PodRestartInPlace";
/// Condition: a resize waits (COND-07).
pub const POD_RESIZE_PENDING: &str = "PodResizePending";
/// Condition: a resize is being carried out (COND-07).
pub const POD_RESIZE_IN_PROGRESS: &str = "PodResizeInProgress";
/// Condition: the pod ends because of a disruption (COND-06). Shared with others than the node.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// All of the above: the node writes these, clients can't (COND-05).
pub const BUILT_IN_CONDITIONS: [&str; 10] = [
    POD_SCHEDULED,
    POD_READY_TO_START_CONTAINERS,
    INITIALIZED,
    CONTAINERS_READY,
    READY,
    DISRUPTION_TARGET,
    POD_RESIZE_PENDING,
    POD_RESIZE_IN_PROGRESS,
    ALL_CONTAINERS_RESTARTING,
    POD_RESTART_IN_PLACE,
];

/// Condition reason: nothing is known of the containers.
pub const UNKNOWN_CONTAINER_STATUSES: &str = "UnknownContainerStatuses";
/// Condition reason: the pod's phase is Succeeded.
pub const POD_COMPLETED: &str = "PodCompleted";
/// Condition reason: the pod's phase is Failed.
pub const POD_FAILED: &str = "PodFailed";
/// Condition reason: some init container isn't done.
pub const CONTAINERS_NOT_INITIALIZED: &str = "ContainersNotInitialized";
/// Condition reason: some container isn't ready.
pub const CONTAINERS_NOT_READY: &str = "ContainersNotReady";
/// Condition reason: some readiness gate isn't True.
pub const READINESS_GATES_NOT_READY: &str = "ReadinessGatesNotReady";
/// Condition reason: an exit code asked for a restart of all containers.
pub const RESTART_ALL_CONTAINERS_STARTED: &str = "RestartAllContainersStarted";
/// Message of that condition.
pub const RESTART_ALL_CONTAINERS_STARTED_MESSAGE: &str = "container exited with restart policy rule";

/// Waiting reason: to be started.
pub const CONTAINER_CREATING: &str = "ContainerCreating";
/// Waiting reason: to be started, in a pod with init containers.
pub const POD_INITIALIZING: &str = "PodInitializing";
/// Waiting reason: the back-off runs (RESTART-04).
pub const CRASH_LOOP_BACK_OFF: &str = "CrashLoopBackOff";
/// Waiting reason: the image could not be fetched.
pub const ERR_IMAGE_PULL: &str = "ErrImagePull";
/// Waiting reason: the image could not be fetched and will be tried again later.
pub const IMAGE_PULL_BACK_OFF: &str = "ImagePullBackOff";
/// Waiting reason: no image can have that name.
pub const INVALID_IMAGE_NAME: &str = "InvalidImageName";
/// Waiting reason: the image is on the node but can't be used.
pub const IMAGE_INSPECT_ERROR: &str = "ImageInspectError";
/// Waiting reason: not on the node, and `imagePullPolicy` is Never.
pub const ERR_IMAGE_NEVER_PULL: &str = "ErrImageNeverPull";
/// Waiting reason: what the definition refers to isn't there.
pub const CREATE_CONTAINER_CONFIG_ERROR: &str = "CreateContainerConfigError";
/// Waiting reason: the instance could not be made.
pub const CREATE_CONTAINER_ERROR: &str = "CreateContainerError";
/// Waiting reason: its postStart hook failed.
pub const POST_START_HOOK_ERROR: &str = "PostStartHookError";
/// Waiting reason: the instance could not be started.
pub const RUN_CONTAINER_ERROR: &str = "RunContainerError";

/// Terminated reason: exit code 0.
pub const COMPLETED: &str = "Completed";
/// Terminated reason: another exit code.
pub const ERROR: &str = "Error";
/// Terminated reason: the memory limit was crossed.
pub const OOM_KILLED: &str = "OOMKilled";
/// Terminated reason: it could not be started.
pub const START_ERROR: &str = "StartError";
/// Terminated reason: nobody knows how it ended.
pub const CONTAINER_STATUS_UNKNOWN: &str = "ContainerStatusUnknown";
/// Message when a container that ran is nowhere to be found.
pub const LOST_WHILE_RUNNING: &str =
    "The container could not be located when the pod was deleted.  The container used to be Running";
/// Message when nothing says how a container of an ended pod ended.
pub const LOST_AT_TERMINATION: &str = "The container could not be located when the pod was terminated";
/// Waiting and terminated reason: removed because every container restarts.
pub const RESTARTING_ALL_CONTAINERS: &str = "RestartingAllContainers";
/// Message of that reason.
pub const REMOVED_TO_RESTART_ALL: &str = "The container is removed because RestartAllContainers in place";

/// Terminated reason: it ended with the agent and is started again (TERM-11).
pub const AGENT_RESTARTED: &str = "AgentRestarted";
/// Message of that reason.
pub const ENDED_WITH_THE_AGENT: &str = "The container ended with the agent and is started again";
/// Terminated reason: it ended with the board and is started again.
pub const NODE_REBOOTED: &str = "NodeRebooted";
/// Message of that reason.
pub const ENDED_WITH_THE_NODE: &str = "The container ended with the node and is started again";

/// Pod and terminated reason: `activeDeadlineSeconds` is over (POD-09).
pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
/// Message of that pod reason.
pub const DEADLINE_EXCEEDED_MESSAGE: &str = "Pod was active on the node longer than the specified deadline";

/// Condition reason: the pod has no place yet.
pub const UNSCHEDULABLE: &str = "Unschedulable";
/// Condition reason: the pod is not to be placed yet.
pub const SCHEDULING_GATED: &str = "SchedulingGated";
/// Message of that condition.
pub const SCHEDULING_GATED_MESSAGE: &str = "Scheduling is blocked due to non-empty scheduling gates";

/// Pod reason: the node needed what it used, or it used too much (RES-09).
pub const EVICTED: &str = "Evicted";
/// Pod reason: the node shut down (TERM-10).
pub const TERMINATED: &str = "Terminated";
/// Message of that pod reason.
pub const TERMINATED_MESSAGE: &str = "Pod was terminated in response to imminent node shutdown.";
/// Pod reason: the node takes nobody any more, it shuts down.
pub const NODE_SHUTDOWN: &str = "NodeShutdown";
/// Message of that pod reason.
pub const NODE_SHUTDOWN_MESSAGE: &str = "Pod was rejected as the node is shutting down.";
/// Pod reason: it is for another operating system (POD-10).
pub const POD_OS_NOT_SUPPORTED: &str = "PodOSNotSupported";
/// Message of that pod reason.
pub const POD_OS_NOT_SUPPORTED_MESSAGE: &str = "Failed to admit pod as the OS field doesn't match node OS";

/// Exit code of a container of which nobody knows how it ended.
pub const EXIT_CODE_UNKNOWN: i32 = 137;

/// Condition types that belong to the node: nobody else sets them.
pub fn is_owned_by_node(condition: &str) -> bool {
    matches!(
        condition,
        POD_READY_TO_START_CONTAINERS
            | INITIALIZED
            | READY
            | CONTAINERS_READY
            | POD_SCHEDULED
            | ALL_CONTAINERS_RESTARTING
            | POD_RESTART_IN_PLACE
            | POD_RESIZE_PENDING
            | POD_RESIZE_IN_PROGRESS
    )
}

/// Condition types that the node sets beside others.
pub fn is_shared_by_node(condition: &str) -> bool {
    condition == DISRUPTION_TARGET
}

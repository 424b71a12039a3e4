//! Security contexts.

use super::Type::*;
use super::{Object, field, object};

pub(super) static POD_SECURITY_CONTEXT: Object = object(
    "PodSecurityContext",
    &[
        field("appArmorProfile", Object(&APP_ARMOR_PROFILE)),
        field("fsGroup", Int64),
        field("fsGroupChangePolicy", Str),
        field("runAsGroup", Int64),
        field("runAsNonRoot", Bool),
        field("runAsUser", Int64),
        field("seLinuxChangePolicy", Str),
        field("seLinuxOptions", Object(&SE_LINUX_OPTIONS)),
        field("seccompProfile", Object(&SECCOMP_PROFILE)),
        field("supplementalGroups", List(&Int64)),
        field("supplementalGroupsPolicy", Str),
        field("sysctls", List(&Object(&SYSCTL))),
        field("windowsOptions", Object(&WINDOWS_SECURITY_CONTEXT_OPTIONS)),
    ],
);
pub(super) static SECURITY_CONTEXT: Object = object(
    "SecurityContext",
    &[
        field("allowPrivilegeEscalation", Bool),
        field("appArmorProfile", Object(&APP_ARMOR_PROFILE)),
        field("capabilities", Object(&CAPABILITIES)),
        field("privileged", Bool),
        field("procMount", Str),
        field("readOnlyRootFilesystem", Bool),
        field("runAsGroup", Int64),
        field("runAsNonRoot", Bool),
        field("runAsUser", Int64),
        field("seLinuxOptions", Object(&SE_LINUX_OPTIONS)),
        field("seccompProfile", Object(&SECCOMP_PROFILE)),
        field("windowsOptions", Object(&WINDOWS_SECURITY_CONTEXT_OPTIONS)),
    ],
);
pub(super) static APP_ARMOR_PROFILE: Object =
    object("AppArmorProfile", &[field("localhostProfile", Str), field("type", Str)]);
pub(super) static CAPABILITIES: Object = object("Capabilities", &[field("add", List(&Str)), field("drop", List(&Str))]);
pub(super) static SE_LINUX_OPTIONS: Object =
    object("SELinuxOptions", &[field("level", Str), field("role", Str), field("type", Str), field("user", Str)]);
pub(super) static SECCOMP_PROFILE: Object =
    object("SeccompProfile", &[field("localhostProfile", Str), field("type", Str)]);
pub(super) static WINDOWS_SECURITY_CONTEXT_OPTIONS: Object = object(
    "WindowsSecurityContextOptions",
    &[
        field("gmsaCredentialSpec", Str),
        field("gmsaCredentialSpecName", Str),
        field("hostProcess", Bool),
        field("runAsUserName", Str),
    ],
);
pub(super) static SYSCTL: Object = object("Sysctl", &[field("name", Str), field("value", Str)]);

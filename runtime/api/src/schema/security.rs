//! Security contexts.

use super::Type::*;
use super::{Object, field, object};

pub(super) static POD_SECURITY_CONTEXT: Object = object(
    "PodSecurityContext",
    &[
        field("appArmorProfile", Object(&APP_ARMOR_PROFILE))
            .warned("a WebAssembly module makes no system calls: there is nothing to confine"),
        field("fsGroup", Int64),
        field("fsGroupChangePolicy", Str)
            .warned("volumes of the node's own are made with their group")
            .but(&["Always", "OnRootMismatch"]),
        field("runAsGroup", Int64),
        field("runAsNonRoot", Bool),
        field("runAsUser", Int64),
        field("seLinuxChangePolicy", Str)
            .warned("a WebAssembly module makes no system calls: there is nothing to confine"),
        field("seLinuxOptions", Object(&SE_LINUX_OPTIONS))
            .warned("a WebAssembly module makes no system calls: there is nothing to confine"),
        field("seccompProfile", Object(&SECCOMP_PROFILE)),
        field("supplementalGroups", List(&Int64)),
        field("supplementalGroupsPolicy", Str)
            .warned("groups that an image gives its users are not looked at")
            .but(&["Strict"]),
        field("sysctls", List(&Object(&SYSCTL))).warned("a WebAssembly module has no kernel to set"),
        field("windowsOptions", Object(&WINDOWS_SECURITY_CONTEXT_OPTIONS)).warned("this is no Windows node"),
    ],
);
pub(super) static SECURITY_CONTEXT: Object = object(
    "SecurityContext",
    &[
        field("allowPrivilegeEscalation", Bool).warned("a WebAssembly module has no privileges").but(&["false"]),
        field("appArmorProfile", Object(&APP_ARMOR_PROFILE))
            .warned("a WebAssembly module makes no system calls: there is nothing to confine"),
        field("capabilities", Object(&CAPABILITIES)),
        field("privileged", Bool).warned("a WebAssembly module has no privileges").but(&["false"]),
        field("procMount", Str).warned("there is no /proc").but(&["Default"]),
        field("readOnlyRootFilesystem", Bool),
        field("runAsGroup", Int64),
        field("runAsNonRoot", Bool),
        field("runAsUser", Int64),
        field("seLinuxOptions", Object(&SE_LINUX_OPTIONS))
            .warned("a WebAssembly module makes no system calls: there is nothing to confine"),
        field("seccompProfile", Object(&SECCOMP_PROFILE)),
        field("windowsOptions", Object(&WINDOWS_SECURITY_CONTEXT_OPTIONS)).warned("this is no Windows node"),
    ],
);
pub(super) static APP_ARMOR_PROFILE: Object =
    object("AppArmorProfile", &[field("localhostProfile", Str), field("type", Str)]);
pub(super) static CAPABILITIES: Object = object("Capabilities", &[field("add", List(&Str)), field("drop", List(&Str))]);
pub(super) static SE_LINUX_OPTIONS: Object =
    object("SELinuxOptions", &[field("level", Str), field("role", Str), field("type", Str), field("user", Str)]);
pub(super) static SECCOMP_PROFILE: Object = object(
    "SeccompProfile",
    &[
        field("localhostProfile", Str),
        field("type", Str)
            .warned("a WebAssembly module makes no system calls: there is nothing to confine")
            .but(&["RuntimeDefault"]),
    ],
);
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

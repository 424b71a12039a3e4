//! Feature gates: what of Kubernetes people turn on and off (NODE-06).
//!
//! Names and defaults are upstream's. A gate that Husk knows either switches something, or is fixed at what Husk always does.

mod disabled;

use std::collections::BTreeMap;

pub use disabled::{drop_disabled_fields, gates_with_used};

/// A feature that can be turned on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are upstream's names; what each does stands in the table")]
pub enum Gate {
    ClusterTrustBundleProjection,
    ContainerRestartRules,
    ContainerStopSignals,
    EnvFiles,
    GenericWorkload,
    H2CContainerProbe,
    HostnameOverride,
    ImageVolume,
    KubeletCrashLoopBackOffMax,
    MemoryQoS,
    PodCertificateRequest,
    PodLevelResources,
    ReduceDefaultCrashLoopBackOffDecay,
    RestartAllContainersOnContainerExits,
    TaintTolerationComparisonOperators,
    UserNamespacesHostNetworkSupport,
    UserNamespacesSupport,
}

/// A row of the table of switches.
struct Switch {
    gate: Gate,
    name: &'static str,
    /// By default, in Kubernetes.
    upstream: bool,
    /// By default, here.
    here: bool,
    /// What it turns on.
    turns_on: &'static str,
}

const fn switch(gate: Gate, name: &'static str, upstream: bool, turns_on: &'static str) -> Switch {
    Switch { gate, name, upstream, here: upstream, turns_on }
}

/// Something new in Kubernetes that has always been there in Husk.
const fn on_here(gate: Gate, name: &'static str, turns_on: &'static str) -> Switch {
    Switch { gate, name, upstream: false, here: true, turns_on }
}

/// In the order of [`Gate`].
const SWITCHES: [Switch; 17] = [
    switch(
        Gate::ClusterTrustBundleProjection,
        "ClusterTrustBundleProjection",
        false,
        "`clusterTrustBundle` in projected volumes",
    ),
    switch(
        Gate::ContainerRestartRules,
        "ContainerRestartRules",
        true,
        "`restartPolicy` and `restartPolicyRules` of containers; sidecars stay what they are",
    ),
    on_here(Gate::ContainerStopSignals, "ContainerStopSignals", "`lifecycle.stopSignal`"),
    switch(Gate::EnvFiles, "EnvFiles", true, "`fileKeyRef` in `env`"),
    switch(Gate::GenericWorkload, "GenericWorkload", false, "`schedulingGroup`"),
    on_here(Gate::H2CContainerProbe, "H2CContainerProbe", "`protocol` of `httpGet`"),
    switch(Gate::HostnameOverride, "HostnameOverride", true, "`hostnameOverride`"),
    switch(Gate::ImageVolume, "ImageVolume", true, "`image` volumes"),
    switch(
        Gate::KubeletCrashLoopBackOffMax,
        "KubeletCrashLoopBackOffMax",
        true,
        "`crashLoopBackOff.maxContainerRestartPeriod` of this configuration",
    ),
    on_here(
        Gate::MemoryQoS,
        "MemoryQoS",
        "`memoryThrottlingFactor` and `memoryReservationPolicy` of this configuration",
    ),
    switch(Gate::PodCertificateRequest, "PodCertificateRequest", false, "`podCertificate` in projected volumes"),
    switch(Gate::PodLevelResources, "PodLevelResources", true, "`resources` of a pod"),
    switch(
        Gate::ReduceDefaultCrashLoopBackOffDecay,
        "ReduceDefaultCrashLoopBackOffDecay",
        false,
        "a back-off of 1s, 2s … 60s in place of 10s, 20s … 300s",
    ),
    switch(
        Gate::RestartAllContainersOnContainerExits,
        "RestartAllContainersOnContainerExits",
        true,
        "the action `RestartAllContainers` in `restartPolicyRules`",
    ),
    switch(
        Gate::TaintTolerationComparisonOperators,
        "TaintTolerationComparisonOperators",
        false,
        "the operators `Lt` and `Gt` of tolerations",
    ),
    switch(
        Gate::UserNamespacesHostNetworkSupport,
        "UserNamespacesHostNetworkSupport",
        false,
        "`hostNetwork` together with `hostUsers: false`",
    ),
    switch(Gate::UserNamespacesSupport, "UserNamespacesSupport", true, "`hostUsers`"),
];

/// Gates that people find in documents and can't change here: on if what they turn on is always there.
const FIXED: [(&str, bool); 14] = [
    ("ChangeContainerStatusOnKubeletRestart", false),
    ("CompositePodGroup", false),
    ("GangScheduling", false),
    ("InPlacePodLevelResourcesVerticalScaling", true),
    ("InPlacePodVerticalScaling", true),
    ("InPlacePodVerticalScalingInitContainers", true),
    ("PodLifecycleSleepAction", true),
    ("PodLifecycleSleepActionAllowZero", true),
    ("PodObservedGenerationTracking", true),
    ("PodReadyToStartContainersCondition", true),
    ("PodSchedulingReadiness", true),
    ("RecursiveReadOnlyMounts", true),
    ("RelaxedEnvironmentVariableValidation", true),
    ("SidecarContainers", true),
];

impl Gate {
    /// As it is written in a configuration.
    pub fn name(self) -> &'static str {
        SWITCHES[self as usize].name
    }
}

/// Which features are on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Gates(u32);

impl Gates {
    /// As Kubernetes has them by default.
    pub const UPSTREAM: Self = Self::by_default(true);

    /// Everything is on.
    pub const ALL: Self = Self((1 << SWITCHES.len()) - 1);

    const fn by_default(upstream: bool) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < SWITCHES.len() {
            let Switch { gate, upstream: there, here, .. } = &SWITCHES[index];
            assert!(*gate as usize == index, "the table is in the order of the gates");
            if if upstream { *there } else { *here } {
                bits |= 1 << index;
            }
            index += 1;
        }
        Self(bits)
    }

    /// Is the feature on?
    pub const fn has(self, gate: Gate) -> bool {
        self.0 & (1 << gate as u32) != 0
    }

    /// The same with one feature on or off.
    #[must_use]
    pub const fn with(self, gate: Gate, on: bool) -> Self {
        let bit = 1 << gate as u32;
        Self(if on { self.0 | bit } else { self.0 & !bit })
    }

    /// Turns on the gate of that name; false if there is none that switches something here.
    pub fn enable(&mut self, name: &str) -> bool {
        let found = SWITCHES.iter().find(|switch| switch.name == name);
        found.map(|switch| *self = self.with(switch.gate, true)).is_some()
    }

    /// As a configuration wants them: `wishes` over the defaults. Gives what there is to warn about too.
    ///
    /// # Errors
    /// A gate that isn't known.
    pub fn configured(wishes: &BTreeMap<String, bool>) -> Result<(Self, Vec<String>), String> {
        let (mut gates, mut warnings) = (Self::default(), Vec::new());
        for (name, on) in wishes {
            if let Some(switch) = SWITCHES.iter().find(|switch| switch.name == name) {
                gates = gates.with(switch.gate, *on);
            } else if let Some((_, fixed)) = FIXED.iter().find(|(known, _)| known == name) {
                if on != fixed {
                    warnings.push(format!("featureGates.{name}: it stays {fixed}: Husk has it no other way"));
                }
            } else {
                let known = SWITCHES.iter().map(|switch| switch.name).chain(FIXED.iter().map(|(name, _)| *name));
                let nearest = crate::suggest::nearest(name, known);
                let hint = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
                return Err(format!("featureGates.{name}: unknown feature gate{hint}"));
            }
        }
        Ok((gates, warnings))
    }
}

impl Default for Gates {
    /// As Husk runs.
    fn default() -> Self {
        const HERE: Gates = Gates::by_default(false);
        HERE
    }
}

impl std::fmt::Debug for Gates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(SWITCHES.iter().filter(|switch| self.has(switch.gate)).map(|switch| switch.name)).finish()
    }
}

/// The page of feature gates, as Markdown.
pub fn gate_table_markdown() -> String {
    let word = |on: bool| if on { "on" } else { "off" };
    let mut table = String::from(HEAD);
    for Switch { name, upstream, here, turns_on, .. } in &SWITCHES {
        table.push_str(&format!("| `{name}` | {} | {} | {turns_on} |\n", word(*upstream), word(*here)));
    }
    let fixed = |on: bool| {
        let names = FIXED.iter().filter(|(_, fixed)| *fixed == on).map(|(name, _)| format!("`{name}`"));
        names.collect::<Vec<_>>().join(", ")
    };
    table + &format!("\nAlways on: {}.\n\nAlways off: {}.\n", fixed(true), fixed(false))
}

const HEAD: &str = "# Feature gates

<!-- Made by `cargo run -p husk-api --example feature_gates > docs/feature-gates.md`; a test compares. -->

`featureGates` in the [configuration of an agent](agent.md#configuration) turns features on and off, under Kubernetes' names; the defaults of
Kubernetes are those of 1.36. A gate that isn't here is an error. A field of a feature that is off is taken as if it had not been written, and
the client is warned; a pod that uses it already keeps it. A change takes effect when the agent starts again.

| gate | Kubernetes | Husk | turns on |
|---|---|---|---|
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_go_over_the_defaults() {
        let wishes = |list: &[(&str, bool)]| list.iter().map(|(name, on)| ((*name).to_owned(), *on)).collect();
        let (gates, warnings) =
            Gates::configured(&wishes(&[("EnvFiles", false), ("GenericWorkload", true)])).expect("known");
        assert!(!gates.has(Gate::EnvFiles) && gates.has(Gate::GenericWorkload) && gates.has(Gate::ImageVolume));
        assert_eq!(warnings, [""; 0]);
        let (gates, warnings) = Gates::configured(&wishes(&[("SidecarContainers", false)])).expect("known");
        assert_eq!(gates, Gates::default());
        assert_eq!(warnings, ["featureGates.SidecarContainers: it stays true: Husk has it no other way"]);
        assert_eq!(
            Gates::configured(&wishes(&[("EnvFile", true)])),
            Err("featureGates.EnvFile: unknown feature gate; did you mean `EnvFiles`?".into())
        );
    }

    #[test]
    fn names_are_sorted_and_those_of_the_gates() {
        let names: Vec<_> = SWITCHES.iter().map(|switch| switch.name).collect();
        assert!(names.is_sorted() && FIXED.is_sorted());
        assert!(SWITCHES.iter().all(|switch| format!("{:?}", switch.gate) == switch.gate.name()));
    }
}

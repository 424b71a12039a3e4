//! Does a pod suit the node and the pods on it? (META-10)

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::scheduling::{self, NodeDemand, Taint, Toleration};
use crate::selector::{Labels, Selector};

/// Label that stands for the name of a namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// What a pod wants of its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// `nodeSelector` and the required node affinity.
    pub demand: NodeDemand,
    /// `tolerations`.
    pub tolerations: Vec<Toleration>,
    /// Required terms of `podAffinity`: it wants to be where such pods are.
    pub affinity: Vec<PodTerm>,
    /// Required terms of `podAntiAffinity`: it does not want to be where such pods are.
    pub anti_affinity: Vec<PodTerm>,
    /// `topologySpreadConstraints` that must hold.
    pub spread: Vec<SpreadConstraint>,
    /// `schedulingGates`: it isn't placed as long as there are any.
    pub gates: Vec<String>,
    /// `schedulingGroup.podGroupName` (META-11).
    pub group: Option<String>,
    /// `preemptionPolicy: Never`.
    pub never_preempts: bool,
}

/// Other pods, and how near.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodTerm {
    /// `topologyKey`: label of the node.
    pub topology_key: String,
    /// `labelSelector`.
    pub selector: Selector,
    /// `namespaces`; the pod's own if this and the selector are missing.
    pub namespaces: Vec<String>,
    /// `namespaceSelector`, as far as it goes by name.
    pub namespace_selector: Option<Selector>,
}

/// One of `topologySpreadConstraints` with `whenUnsatisfiable: DoNotSchedule`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpreadConstraint {
    /// `topologyKey`: label of the node.
    pub topology_key: String,
    /// `labelSelector`.
    pub selector: Selector,
    /// `maxSkew`.
    pub max_skew: u32,
    /// `minDomains`, 1 if not set.
    pub min_domains: u32,
}

/// The node, as far as pods care.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a Labels,
    /// Its taints.
    pub taints: &'a [Taint],
    /// `spec.unschedulable`.
    pub cordoned: bool,
}

/// A pod, as far as other pods care.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// `metadata.namespace`.
    pub namespace: &'a str,
    /// `metadata.labels`.
    pub labels: &'a Labels,
    /// What it wants of its place.
    pub placement: &'a Placement,
}

/// Why the node itself is the wrong place, as the scheduler says it.
pub fn node_obstacle(placement: &Placement, site: Site<'_>) -> Option<String> {
    if site.cordoned && !tolerates_cordon(placement) {
        return Some("node(s) were unschedulable".to_string());
    }
    // A malformed term matches nothing.
    if !placement.demand.matches(site.name, site.labels).unwrap_or(false) {
        return Some("node(s) didn't match Pod's node affinity/selector".to_string());
    }
    let taint = scheduling::first_untolerated(site.taints, &placement.tolerations)?;
    Some(alloc::format!("node(s) had untolerated taint {{{}: {}}}", taint.key, taint.value))
}

fn tolerates_cordon(placement: &Placement) -> bool {
    let taint = Taint {
        key: "node.kubernetes.io/unschedulable".to_string(),
        value: String::new(),
        effect: "NoSchedule".to_string(),
    };
    placement.tolerations.iter().any(|toleration| toleration.tolerates(&taint))
}

/// Why the pods on the node make it the wrong place. `peers` are all pods that have their place on it.
pub fn peer_obstacle<'a>(
    pod: Peer<'_>,
    site: Site<'_>,
    peers: impl Iterator<Item = Peer<'a>> + Clone,
) -> Option<&'static str> {
    let has = |key: &str| site.labels.contains_key(key);
    let forbids = |theirs: Peer<'_>| {
        let terms = &theirs.placement.anti_affinity;
        terms.iter().any(|term| has(&term.topology_key) && term.matches(theirs.namespace, pod))
    };
    if peers.clone().any(forbids) {
        return Some("node(s) didn't satisfy existing pods anti-affinity rules");
    }
    for term in &pod.placement.affinity {
        let company = peers.clone().any(|peer| term.matches(pod.namespace, peer));
        // The first of pods that want to be together has to begin somewhere.
        let may_begin = || pod.placement.affinity.iter().all(|term| term.matches(pod.namespace, pod));
        if !has(&term.topology_key) || !(company || may_begin()) {
            return Some("node(s) didn't match pod affinity rules");
        }
    }
    let unwanted =
        |term: &PodTerm| has(&term.topology_key) && peers.clone().any(|peer| term.matches(pod.namespace, peer));
    if pod.placement.anti_affinity.iter().any(unwanted) {
        return Some("node(s) didn't match pod anti-affinity rules");
    }
    pod.placement.spread.iter().find_map(|constraint| constraint.obstacle(pod, site, peers.clone()))
}

impl PodTerm {
    /// Is that a pod this term is about, as a term of a pod in that namespace?
    fn matches(&self, own_namespace: &str, peer: Peer<'_>) -> bool {
        let listed = self.namespaces.iter().any(|namespace| namespace == peer.namespace);
        let selected = self.namespace_selector.as_ref().is_some_and(|selector| {
            let name = Labels::from([(NAMESPACE_NAME.to_string(), peer.namespace.to_string())]);
            selector.matches(&name)
        });
        let own = self.namespaces.is_empty() && self.namespace_selector.is_none() && own_namespace == peer.namespace;
        (listed || selected || own) && self.selector.matches(peer.labels)
    }
}

impl SpreadConstraint {
    /// With one node there is one domain, the fullest and the emptiest at once; only `minDomains` asks for more.
    fn obstacle<'a>(
        &self,
        pod: Peer<'_>,
        site: Site<'_>,
        peers: impl Iterator<Item = Peer<'a>>,
    ) -> Option<&'static str> {
        if !site.labels.contains_key(&self.topology_key) {
            return Some("node(s) didn't match pod topology spread constraints (missing required label)");
        }
        let counts = |peer: &Peer<'_>| peer.namespace == pod.namespace && self.selector.matches(peer.labels);
        let own = u32::from(self.selector.matches(pod.labels));
        let skew = match self.min_domains {
            0 | 1 => own,
            _ => u32::try_from(peers.filter(counts).count()).unwrap_or(u32::MAX).saturating_add(own),
        };
        (skew > self.max_skew).then_some("node(s) didn't match pod topology spread constraints")
    }
}

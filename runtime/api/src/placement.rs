//! Selectors, taints and affinity of objects, as the core decides on them.

use husk_core::placement::{Placement, PodTerm, SpreadConstraint};
use husk_core::scheduling::{
    NodeDemand, NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration, TolerationOperator,
};
use husk_core::selector::{Operator, Requirement, Selector, SelectorError};
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// A label selector of an object. An absent one matches nothing, an empty one everything.
///
/// # Errors
/// If a key, operator or value can't be one.
pub fn label_selector(written: Option<&LabelSelector>) -> Result<Selector, SelectorError> {
    let Some(written) = written else { return Ok(Selector::nothing()) };
    let exactly = written.match_labels.iter().flatten();
    let exactly = exactly.map(|(key, value)| Requirement::new(key, Operator::Equals, vec![value.clone()]));
    let expressions = written.match_expressions.iter().flatten().map(|expression| {
        let operator = match expression.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => return Err(SelectorError::new(format!("{other:?} is not a label selector operator"))),
        };
        Requirement::new(&expression.key, operator, expression.values.clone().unwrap_or_default())
    });
    exactly.chain(expressions).collect::<Result<_, _>>().map(Selector::new)
}

/// A taint.
pub fn taint(written: &k8s::Taint) -> Taint {
    Taint { key: written.key.clone(), value: written.value.clone().unwrap_or_default(), effect: written.effect.clone() }
}

/// A toleration.
pub fn toleration(written: &k8s::Toleration) -> Toleration {
    Toleration {
        key: written.key.clone().unwrap_or_default(),
        operator: match written.operator.as_deref() {
            None | Some("" | "Equal") => TolerationOperator::Equal,
            Some("Exists") => TolerationOperator::Exists,
            Some(_) => TolerationOperator::Unknown,
        },
        value: written.value.clone().unwrap_or_default(),
        effect: written.effect.clone().unwrap_or_default(),
        seconds: written.toleration_seconds,
    }
}

/// Everything that a pod wants of its place. A selector that can't be one matches nothing.
pub(crate) fn placement(spec: &k8s::PodSpec) -> Placement {
    let affinity = spec.affinity.as_ref();
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let near = near.and_then(|near| near.required_during_scheduling_ignored_during_execution.as_ref());
    let away = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let away = away.and_then(|away| away.required_during_scheduling_ignored_during_execution.as_ref());
    let must_hold = |constraint: &&k8s::TopologySpreadConstraint| constraint.when_unsatisfiable == "DoNotSchedule";
    Placement {
        demand: node_demand(spec),
        tolerations: spec.tolerations.iter().flatten().map(toleration).collect(),
        affinity: near.into_iter().flatten().map(pod_term).collect(),
        anti_affinity: away.into_iter().flatten().map(pod_term).collect(),
        spread: spec.topology_spread_constraints.iter().flatten().filter(must_hold).map(spread).collect(),
        gates: spec.scheduling_gates.iter().flatten().map(|gate| gate.name.clone()).collect(),
        group: spec.scheduling_group.as_ref().and_then(|group| group.pod_group_name.clone()),
        never_preempts: spec.preemption_policy.as_deref() == Some("Never"),
    }
}

fn pod_term(written: &k8s::PodAffinityTerm) -> PodTerm {
    let or_nothing = |selector| label_selector(selector).unwrap_or_else(|_| Selector::nothing());
    PodTerm {
        topology_key: written.topology_key.clone(),
        selector: or_nothing(written.label_selector.as_ref()),
        namespaces: written.namespaces.clone().unwrap_or_default(),
        namespace_selector: written.namespace_selector.as_ref().map(|selector| or_nothing(Some(selector))),
    }
}

fn spread(written: &k8s::TopologySpreadConstraint) -> SpreadConstraint {
    let number = |number: i32| u32::try_from(number).unwrap_or(0);
    SpreadConstraint {
        topology_key: written.topology_key.clone(),
        selector: label_selector(written.label_selector.as_ref()).unwrap_or_else(|_| Selector::nothing()),
        max_skew: number(written.max_skew),
        min_domains: written.min_domains.map_or(1, number),
    }
}

/// What a pod wants of its node: `nodeSelector` and the required node affinity.
pub fn node_demand(spec: &k8s::PodSpec) -> NodeDemand {
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    NodeDemand {
        node_selector: spec.node_selector.clone().unwrap_or_default(),
        required_terms: required.map(|required| required.node_selector_terms.iter().map(term).collect()),
    }
}

fn term(written: &k8s::NodeSelectorTerm) -> NodeSelectorTerm {
    let requirements =
        |list: &Option<Vec<k8s::NodeSelectorRequirement>>| list.iter().flatten().map(requirement).collect::<Vec<_>>();
    NodeSelectorTerm {
        expressions: requirements(&written.match_expressions),
        fields: requirements(&written.match_fields),
    }
}

fn requirement(written: &k8s::NodeSelectorRequirement) -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key: written.key.clone(),
        operator: written.operator.clone(),
        values: written.values.clone().unwrap_or_default(),
    }
}

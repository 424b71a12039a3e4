//! Who goes first under pressure.

use husk_core::eviction::{Candidate, Pressure, rank};
use husk_core::quantity::{Notation, Quantity};

/// A pod: priority, usage, request.
type Pod = (i32, i64, i64);

/// "Pod selection for kubelet eviction": 1. whether usage exceeds requests, 2. priority, 3. usage relative to requests.
/// Each of the tables is in the order in which pods go.
const MEMORY: [&[Pod]; 5] = [
    // Overuse comes before priority: an important glutton goes before a modest nobody.
    &[(1_000_000, 11, 10), (-1, 10, 10)],
    // Among those above their request the less important go first, however little it is.
    &[(0, 11, 10), (1, 900, 10), (2, 11, 10)],
    // With the same priority, by how much usage exceeds the request, not by usage.
    &[(0, 60, 10), (0, 120, 80), (0, 12, 10)],
    // BestEffort pods requested nothing: all that they use is too much. Guaranteed ones within theirs go last.
    &[(0, 50, 0), (0, 30, 10), (0, 1, 0), (0, 30, 30), (5, 10, 100)],
    // Those within their request go by priority too.
    &[(0, 5, 10), (1, 9, 10), (2, 10, 10)],
];

fn candidate<T>(pod: T, (priority, usage, request): Pod) -> Candidate<T> {
    let bytes = |bytes| Quantity::new(bytes, Notation::Binary);
    Candidate { pod, priority, usage: Some(bytes(usage)), request: bytes(request) }
}

// spec: RES-09
#[test]
fn the_tables_order_holds_whatever_order_they_come_in() {
    for (table, pressure) in MEMORY.iter().flat_map(|table| [(table, Pressure::Memory), (table, Pressure::Disk)]) {
        for order in permutations(table.len()) {
            let mut pods: Vec<_> = order.iter().map(|&place| candidate(place, table[place])).collect();
            rank(&mut pods, pressure);
            let ranked: Vec<_> = pods.into_iter().map(|candidate| candidate.pod).collect();
            assert_eq!(ranked, (0..table.len()).collect::<Vec<_>>(), "{table:?} came as {order:?}");
        }
    }
}

/// A pod of which nobody may know what it uses.
type Known = (i32, Option<i64>, i64);

// spec: RES-09
#[test]
fn any_two_pods_go_in_the_order_of_the_criteria_of_each_shortage() {
    let usages = [None, Some(0), Some(1), Some(10), Some(11)];
    let all: Vec<Known> = [-1, 0, 7]
        .into_iter()
        .flat_map(|priority| {
            usages.into_iter().flat_map(move |usage| [0, 1, 10, 11].map(|request| (priority, usage, request)))
        })
        .collect();
    for pressure in [Pressure::Memory, Pressure::Disk, Pressure::Pid] {
        let goes_before = if pressure == Pressure::Pid { goes_before_for_processes } else { goes_before };
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
            let one = |name, (priority, usage, request): Known| Candidate {
                usage: usage.map(|usage| Quantity::new(usage, Notation::Binary)),
                ..candidate(name, (priority, 0, request))
            };
            let mut pods = [one('a', a), one('b', b)];
            rank(&mut pods, pressure);
            let expected = if goes_before(b, a) { ['b', 'a'] } else { ['a', 'b'] };
            assert_eq!(pods.map(|candidate| candidate.pod), expected, "{pressure:?}: {a:?} and {b:?}");
        }
    }
}

/// "Pod selection for kubelet eviction", the three criteria. Pods without figures go before all others (upstream's answers, family
/// `eviction_rank`); among them priority decides.
fn goes_before(one: Known, other: Known) -> bool {
    let excess = |(_, usage, request): Known| usage.map(|usage| usage - request);
    match (excess(one), excess(other)) {
        (None, None) => one.0 < other.0,
        (None, Some(_)) => true,
        (Some(_), None) => false,
        (Some(mine), Some(theirs)) if (mine > 0) != (theirs > 0) => mine > 0,
        (Some(_), Some(_)) if one.0 != other.0 => one.0 < other.0,
        (Some(mine), Some(theirs)) => mine > theirs,
    }
}

/// The same section: "inodes and PIDs have no requests", so the pods' relative priority decides, and then how many it uses; those
/// without figures first.
fn goes_before_for_processes(one: Known, other: Known) -> bool {
    if one.0 != other.0 {
        return one.0 < other.0;
    }
    match (one.1, other.1) {
        (mine, Some(theirs)) => mine.is_none_or(|mine| mine > theirs),
        (_, None) => false,
    }
}

fn permutations(length: usize) -> Vec<Vec<usize>> {
    if length == 0 {
        return vec![vec![]];
    }
    let insert = |shorter: &Vec<usize>, at: usize| {
        let mut longer = shorter.clone();
        longer.insert(at, length - 1);
        longer
    };
    permutations(length - 1).iter().flat_map(|shorter| (0..length).map(move |at| insert(shorter, at))).collect()
}

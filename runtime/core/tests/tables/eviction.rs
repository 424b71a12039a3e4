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

// spec: RES-09
#[test]
fn any_two_pods_go_in_the_order_of_the_three_criteria() {
    let numbers = [0, 1, 10, 11];
    let all: Vec<Pod> = [-1, 0, 7]
        .into_iter()
        .flat_map(|priority| {
            numbers.into_iter().flat_map(move |usage| numbers.map(|request| (priority, usage, request)))
        })
        .collect();
    for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
        let mut pods = [candidate('a', a), candidate('b', b)];
        rank(&mut pods, Pressure::Memory);
        let expected = if goes_before(b, a) { ['b', 'a'] } else { ['a', 'b'] };
        assert_eq!(pods.map(|candidate| candidate.pod), expected, "{a:?} and {b:?}");
    }
}

fn goes_before(one: Pod, other: Pod) -> bool {
    let exceeds = |(_, usage, request): Pod| usage > request;
    if exceeds(one) != exceeds(other) {
        return exceeds(one);
    }
    if one.0 != other.0 {
        return one.0 < other.0;
    }
    one.1 - one.2 > other.1 - other.2
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

//! Shares and limits of processors, with processors that are only thought of.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use husk_core::Instant;
use husk_core::cpu::{CpuShare, Member, Pod, QUANTUM, RunQueue, Turn, Usage};
use proptest::prelude::*;

const SLICE: Duration = Duration::from_micros(70);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn request(request: u64) -> CpuShare {
    CpuShare { request, limit: None }
}

fn limit(limit: u64) -> CpuShare {
    CpuShare { request: limit, limit: Some(limit) }
}

/// What a program does: it computes for so long and sleeps for so long, again and again.
#[derive(Clone, Copy)]
struct Program {
    computes: Duration,
    sleeps: Duration,
}

const BUSY: Program = Program { computes: Duration::MAX, sleeps: Duration::ZERO };

/// A program at work.
struct Running {
    program: Program,
    member: Member,
    left: Duration,
    /// It wants to compute since then.
    wants: Instant,
    longest_wait: Duration,
}

/// What comes next: a program wakes up, or a processor is done with a slice of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Wakes(usize),
    /// How much of the turn is used, with this slice.
    Done(usize, Duration, Duration),
    Refill,
}

struct Machine {
    queue: RunQueue<usize>,
    now: Instant,
    idle: usize,
    programs: Vec<Running>,
    next: BinaryHeap<Reverse<(Instant, Next)>>,
}

impl Machine {
    fn new(processors: usize) -> Self {
        Self {
            queue: RunQueue::default(),
            now: Instant::ZERO,
            idle: processors,
            programs: Vec::new(),
            next: BinaryHeap::new(),
        }
    }

    fn pod(&mut self, share: CpuShare) -> Pod {
        self.queue.add_pod(self.now, share)
    }

    /// A container, with a program that begins now.
    fn run(&mut self, pod: Pod, share: CpuShare, program: Program) -> Member {
        let member = self.queue.add(self.now, pod, share).expect("the pod is there");
        self.begin(member, program);
        member
    }

    fn begin(&mut self, member: Member, program: Program) {
        let left = program.computes;
        self.programs.push(Running { program, member, left, wants: self.now, longest_wait: Duration::ZERO });
        self.next.push(Reverse((self.now, Next::Wakes(self.programs.len() - 1))));
    }

    /// A pod with one container and the same for both.
    fn single(&mut self, share: CpuShare, program: Program) -> Member {
        let pod = self.pod(share);
        self.run(pod, share, program)
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(Reverse((at, next))) = self.next.peek().copied() {
            if at > end {
                break;
            }
            self.next.pop();
            self.now = at;
            match next {
                Next::Wakes(number) => self.wants(number),
                Next::Done(number, slice, turn) => self.done(number, slice, turn),
                Next::Refill => {}
            }
            self.fill();
        }
        self.now = end;
    }

    fn wants(&mut self, number: usize) {
        self.programs[number].wants = self.now;
        self.queue.wait(self.now, self.programs[number].member, number);
    }

    fn done(&mut self, number: usize, slice: Duration, turn: Duration) {
        let running = &mut self.programs[number];
        running.left = running.left.saturating_sub(slice);
        self.queue.spend(self.now, running.member, slice);
        if running.left.is_zero() {
            running.left = running.program.computes;
            let wakes = self.now + running.program.sleeps;
            self.next.push(Reverse((wakes, Next::Wakes(number))));
        } else if self.queue.may_go_on(self.now, running.member, turn) {
            return self.slice(number, turn);
        } else {
            self.wants(number);
        }
        self.idle += 1;
    }

    fn slice(&mut self, number: usize, turn: Duration) {
        let slice = SLICE.min(self.programs[number].left);
        self.next.push(Reverse((self.now + slice, Next::Done(number, slice, turn + slice))));
    }

    fn fill(&mut self) {
        while self.idle > 0 {
            let Some(Turn { task: number, .. }) = self.queue.next(self.now) else { break };
            self.idle -= 1;
            let running = &mut self.programs[number];
            running.longest_wait = running.longest_wait.max(self.now - running.wants);
            self.slice(number, Duration::ZERO);
        }
        if self.idle > 0
            && let Some(wake) = self.queue.next_wake()
        {
            self.next.push(Reverse((wake, Next::Refill)));
        }
    }

    fn usage(&self, member: Member) -> Usage {
        self.queue.usage(member).expect("it is there")
    }

    /// Percent of one processor that each has used in the time that follows.
    fn shares<const N: usize>(&mut self, members: [Member; N], time: Duration) -> [f64; N] {
        let before = members.map(|member| self.usage(member).cpu);
        self.run_for(time);
        let mut before = before.into_iter();
        members.map(|member| {
            let used = self.usage(member).cpu - before.next().expect("as many");
            used.as_secs_f64() / time.as_secs_f64() * 100.0
        })
    }
}

#[track_caller]
fn near(shares: &[f64], wanted: &[f64], points: f64) {
    let is_near =
        shares.len() == wanted.len() && shares.iter().zip(wanted).all(|(is, want)| (is - want).abs() <= points);
    assert!(is_near, "{shares:?} is not {wanted:?}");
}

#[test]
fn weights_and_quotas_are_those_of_a_cgroup() {
    let weights = [(0, 2), (1, 2), (100, 102), (1000, 1024), (4000, 4096), (u64::MAX, 262_144)];
    for (millis, weight) in weights {
        assert_eq!(request(millis).weight(), weight, "{millis}m");
    }
    let quotas = [(50, Some(ms(5))), (1000, Some(ms(100))), (2500, Some(ms(250))), (1, Some(ms(1))), (0, None)];
    for (millis, quota) in quotas {
        assert_eq!(limit(millis).quota(), quota, "{millis}m");
    }
    assert_eq!(request(100).quota(), None);
}

#[test]
fn who_competes_has_the_processors_in_proportion_to_his_requests() {
    for processors in [1, 2] {
        let mut machine = Machine::new(processors);
        let members = [100, 200, 400, 300].map(|millis| machine.single(request(millis), BUSY));
        let all = 100.0 * processors as f64;
        near(&machine.shares(members, ms(10_000)), &[10.0, 20.0, 40.0, 30.0].map(|part| part * all / 100.0), 0.6);
    }
}

#[test]
fn within_a_pod_containers_share_what_the_pod_has() {
    let mut machine = Machine::new(1);
    let pod = machine.pod(request(200));
    let other = machine.single(request(200), BUSY);
    let first = machine.run(pod, request(50), BUSY);
    let second = machine.run(pod, request(150), Program { computes: ms(3), sleeps: ms(9_000) });
    machine.run_for(ms(1000));
    // What one leaves is first of all its pod's.
    near(&machine.shares([other, first, second], ms(5000)), &[50.0, 50.0, 0.0], 0.5);
    machine.begin(second, BUSY);
    near(&machine.shares([other, first, second], ms(10_000)), &[50.0, 12.5, 37.5], 0.5);
}

#[test]
fn who_requests_nothing_has_what_is_left_and_a_little_always() {
    let mut machine = Machine::new(1);
    let least = machine.single(request(0), BUSY);
    near(&machine.shares([least], ms(1000)), &[100.0], 0.1);
    let other = machine.single(request(1000), BUSY);
    let shares = machine.shares([least, other], ms(60_000));
    near(&shares, &[0.2, 99.8], 0.1);
    assert!(shares[0] > 0.1, "{shares:?}");
}

#[test]
fn a_limit_holds_whoever_else_computes() {
    for millis in [10, 50, 100, 250, 500, 900, 1000] {
        for busy in [0, 1, 3] {
            for processors in [1, 2] {
                let mut machine = Machine::new(processors);
                // Enough for the limited one to come to its limit.
                let others: Vec<_> = (0..busy).map(|_| machine.single(request(10), BUSY)).collect();
                let member = machine.single(CpuShare { request: 100_000, limit: Some(millis) }, BUSY);
                let wanted = millis as f64 / 10.0;
                // Who needs all of a processor and has to leave it for a moment has it again after a quantum.
                near(&machine.shares([member], ms(10_000)), &[wanted], 1.0);
                // What it may not use is the others'.
                let of_others: Duration = others.iter().map(|other| machine.usage(*other).cpu).sum();
                let rest = (100.0 * processors.min(busy + 1) as f64 - wanted).min(100.0 * busy as f64);
                near(&[of_others.as_secs_f64() * 10.0], &[rest], 1.0);
            }
        }
    }
}

#[test]
fn who_used_up_his_limit_is_seen_to_wait() {
    let mut machine = Machine::new(1);
    let limited = machine.single(limit(250), BUSY);
    let modest = machine.single(limit(500), Program { computes: ms(2), sleeps: ms(48) });
    let free = machine.single(request(100), Program { computes: ms(2), sleeps: ms(48) });
    machine.run_for(ms(10_050));
    let Usage { cpu, quota } = machine.usage(limited);
    near(&[cpu.as_secs_f64()], &[2.525], 0.03);
    assert!((100..=101).contains(&quota.periods) && (100..=101).contains(&quota.throttled_periods), "{quota:?}");
    near(&[quota.throttled.as_secs_f64()], &[7.1], 0.2);
    let quota = machine.usage(modest).quota;
    assert!(quota.periods >= 99 && quota.throttled_periods == 0 && quota.throttled.is_zero(), "{quota:?}");
    assert_eq!(machine.usage(free).quota, Default::default());
}

#[test]
fn a_pods_limit_bounds_all_its_containers_together() {
    let mut machine = Machine::new(2);
    let pod = machine.pod(limit(600));
    let members = [machine.run(pod, request(100), BUSY), machine.run(pod, request(200), BUSY)];
    let other = machine.single(request(1), BUSY);
    let [first, second, other] = machine.shares([members[0], members[1], other], ms(10_000));
    near(&[first + second], &[60.0], 0.5);
    assert!(first > 15.0 && second > 15.0, "{first} {second}");
    // For as long as both compute it has to wait, and has all of a processor then.
    near(&[other], &[70.0], 1.0);
    let usage = machine.queue.usage_of_pod(pod).expect("it is there");
    assert!(usage.quota.throttled_periods >= 99, "{usage:?}");
}

#[test]
fn a_change_holds_from_then_on() {
    let mut machine = Machine::new(1);
    let pod = machine.pod(limit(100));
    let member = machine.run(pod, limit(100), BUSY);
    near(&machine.shares([member], ms(5000)), &[10.0], 0.3);
    machine.queue.change_pod(machine.now, pod, limit(400));
    machine.queue.change(machine.now, member, limit(400));
    near(&machine.shares([member], ms(5000)), &[40.0], 0.5);
    machine.queue.change_pod(machine.now, pod, request(100));
    machine.queue.change(machine.now, member, request(100));
    machine.begin(member, BUSY);
    near(&machine.shares([member], ms(5000)), &[100.0], 0.1);
    let other = machine.single(request(100), BUSY);
    near(&machine.shares([member, other], ms(5000)), &[50.0, 50.0], 0.5);
    machine.queue.change(machine.now, other, request(300));
    let pod = machine.pod(request(300));
    let third = machine.run(pod, request(1), BUSY);
    near(&machine.shares([member, other, third], ms(10_000)), &[20.0, 20.0, 60.0], 0.5);
}

#[test]
fn who_wakes_up_does_not_wait_behind_those_who_compute() {
    let mut machine = Machine::new(1);
    for _ in 0..10 {
        machine.single(request(100), BUSY);
    }
    machine.single(request(100), Program { computes: Duration::from_micros(200), sleeps: ms(20) });
    let web = machine.programs.len() - 1;
    // In the beginning all are equal.
    machine.run_for(ms(1000));
    machine.programs[web].longest_wait = Duration::ZERO;
    machine.run_for(ms(20_000));
    let longest = machine.programs[web].longest_wait;
    assert!(longest <= QUANTUM * 2, "{longest:?}");
}

#[test]
fn who_is_away_for_moments_has_his_share_all_the_same() {
    let micros = Duration::from_micros;
    for (computes, sleeps) in
        [(ms(1), micros(10)), (micros(200), micros(50)), (micros(50), micros(10)), (ms(5), micros(1))]
    {
        for others in [10, 100, 400] {
            let mut machine = Machine::new(1);
            let busy = machine.single(request(others), BUSY);
            let blocks = machine.single(request(400), Program { computes, sleeps });
            machine.run_for(ms(1000));
            // What the other began meanwhile it finishes.
            let could = computes.as_secs_f64() / (computes + sleeps.max(SLICE)).as_secs_f64() * 100.0;
            let wanted = (400.0 / (400.0 + others as f64) * 100.0_f64).min(could);
            let [blocks, busy] = machine.shares([blocks, busy], ms(10_000));
            assert!(
                blocks > wanted * 0.9 && blocks < wanted * 1.05,
                "{computes:?} {sleeps:?} {others}m: {blocks} {busy}"
            );
            // Whoever has something to do keeps the processor at work.
            near(&[blocks + busy], &[100.0], 0.2);
        }
    }
}

#[test]
fn nobody_saves_up_what_he_could_not_use() {
    // Each computes one thing, so the first can use half of the processors at most, though he could have more.
    let mut machine = Machine::new(2);
    let members = [4000, 200, 100].map(|millis| machine.single(request(millis), BUSY));
    near(&machine.shares(members, ms(60_000)), &[100.0, 66.7, 33.3], 0.5);
    // Who sleeps saves nothing up either.
    let sleeper = machine.single(request(100), Program { computes: ms(1), sleeps: ms(100_000) });
    machine.run_for(ms(90_000));
    let late = machine.single(request(100), BUSY);
    machine.begin(sleeper, BUSY);
    let [first, second, third] = members;
    near(&machine.shares([first, second, third, sleeper, late], ms(1000)), &[100.0, 40.0, 20.0, 20.0, 20.0], 2.0);
}

#[test]
fn several_of_one_container_take_turns_in_its_share() {
    let mut machine = Machine::new(1);
    let member = machine.single(request(100), BUSY);
    machine.begin(member, BUSY);
    machine.begin(member, Program { computes: ms(1), sleeps: ms(10) });
    let other = machine.single(request(100), BUSY);
    near(&machine.shares([member, other], ms(10_000)), &[50.0, 50.0], 0.5);
    let longest = machine.programs.iter().map(|program| program.longest_wait).max();
    assert!(longest.is_some_and(|longest| longest < ms(20)), "{longest:?}");
}

/// What somebody does with a queue.
#[derive(Clone, Debug)]
enum Step {
    AddPod(CpuShare),
    Add(usize, CpuShare),
    Remove(usize),
    RemovePod(usize),
    Change(usize, CpuShare),
    ChangePod(usize, CpuShare),
    Wait(usize),
    Next,
    Spend(usize, Duration),
    Pass(Duration),
}

fn share() -> impl Strategy<Value = CpuShare> {
    let millis = || prop_oneof![Just(0), 1..50_u64, 50..4000_u64, Just(u64::MAX)];
    (millis(), proptest::option::of(millis())).prop_map(|(request, limit)| CpuShare { request, limit })
}

fn step() -> impl Strategy<Value = Step> {
    let time = || prop_oneof![4 => 0..3_000_000_u64, 1 => 0..400_000_000_u64].prop_map(Duration::from_nanos);
    prop_oneof![
        1 => share().prop_map(Step::AddPod),
        2 => (any::<usize>(), share()).prop_map(|(pod, share)| Step::Add(pod, share)),
        1 => any::<usize>().prop_map(Step::Remove),
        1 => any::<usize>().prop_map(Step::RemovePod),
        1 => (any::<usize>(), share()).prop_map(|(member, share)| Step::Change(member, share)),
        1 => (any::<usize>(), share()).prop_map(|(pod, share)| Step::ChangePod(pod, share)),
        8 => any::<usize>().prop_map(Step::Wait),
        8 => Just(Step::Next),
        6 => (any::<usize>(), time()).prop_map(|(member, used)| Step::Spend(member, used)),
        4 => time().prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn who_waits_has_a_turn_once(steps in proptest::collection::vec(step(), 1..120)) {
        let mut queue = RunQueue::default();
        let (mut now, mut tasks) = (Instant::ZERO, 0_u64);
        let (mut pods, mut members) = (Vec::new(), Vec::<(Pod, Member)>::new());
        let mut waiting = BTreeMap::<u64, Member>::new();
        for step in steps {
            match step {
                Step::AddPod(share) => pods.push(queue.add_pod(now, share)),
                Step::Add(pod, share) if !pods.is_empty() => {
                    let pod = pods[pod % pods.len()];
                    members.push((pod, queue.add(now, pod, share).expect("it is there")));
                }
                Step::Remove(which) if !members.is_empty() => {
                    let (_, member) = members.swap_remove(which % members.len());
                    queue.remove(member);
                    waiting.retain(|_, of| *of != member);
                }
                Step::RemovePod(which) if !pods.is_empty() => {
                    let gone = pods.swap_remove(which % pods.len());
                    queue.remove_pod(gone);
                    let of_it: Vec<_> = members.extract_if(.., |(pod, _)| *pod == gone).map(|(_, member)| member).collect();
                    waiting.retain(|_, of| !of_it.contains(of));
                    prop_assert_eq!(queue.add(now, gone, CpuShare::default()), None);
                }
                Step::Change(which, share) if !members.is_empty() => queue.change(now, members[which % members.len()].1, share),
                Step::ChangePod(which, share) if !pods.is_empty() => queue.change_pod(now, pods[which % pods.len()], share),
                Step::Wait(which) if !members.is_empty() => {
                    let (_, member) = members[which % members.len()];
                    tasks += 1;
                    prop_assert!(queue.wait(now, member, tasks));
                    waiting.insert(tasks, member);
                }
                Step::Next => {
                    if let Some(turn) = queue.next(now) {
                        prop_assert_eq!(waiting.remove(&turn.task), Some(turn.member));
                    } else if !waiting.is_empty() {
                        prop_assert!(queue.next_wake().is_some_and(|wake| wake > now), "{:?} wait for nothing", waiting);
                    }
                }
                Step::Spend(which, used) if !members.is_empty() => queue.spend(now, members[which % members.len()].1, used),
                Step::Pass(time) => now = now + time,
                _ => {}
            }
        }
        // Time goes on, and all have their turns. Who is deep in debt waits for longer than this, but for no more than he owes.
        for _ in 0..200_000 {
            while let Some(turn) = queue.next(now) {
                prop_assert_eq!(waiting.remove(&turn.task), Some(turn.member));
            }
            match queue.next_wake() {
                Some(wake) if !waiting.is_empty() => now = now.max(wake),
                _ => break,
            }
        }
        prop_assert!(waiting.is_empty(), "{:?}", waiting);
    }
}

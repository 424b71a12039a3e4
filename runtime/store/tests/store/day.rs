//! A day in the life of crashing pods, with a power cut or the end of the agent each hour: the core and the store together.

use husk_core::record::Interruption;
use husk_store::{Options, Store};

use crate::support::pods::Pods;
use crate::support::sim::Random;
use crate::support::{Machine, boot, options, secs};

const PODS: usize = 10;

// spec: NODE-04
// spec: STATE-04
#[test]
fn an_interruption_each_hour_loses_no_pod_and_no_restart() {
    let machine = Machine::default();
    let mut random = Random(11);
    let (mut boots, mut uptime) = (1, secs(100));
    let mut opened = Store::open_on(machine.medium(), options()).expect("open");
    let mut pods = Pods::new(opened.now, Some(secs(20)));
    (0..PODS).for_each(|i| pods.apply(&i.to_string()));
    let mut bytes = 0;
    for hour in 0..24 {
        let began = opened.now;
        let end = began + secs(3600 + random.below(600) as u64);
        assert!(pods.run_until(end, &opened.store), "the disk is well");
        let power_cut = hour % 3 != 0;
        if power_cut {
            // In one of the next transactions; the pods see no more of it than that.
            machine.cut_after(random.below(60) as u64);
            assert!(!pods.run_until(end + secs(3600), &opened.store), "the power went");
        }
        let before = pods.durable_restarts;
        bytes += opened.store.written().flash_bytes;
        drop(opened.store);
        machine.boot(hour);
        (boots, uptime) = match power_cut {
            true => (boots + 1, secs(3)),
            false => (boots, uptime + pods.now.saturating_since(began)),
        };
        let boot = boot(&format!("boot-{boots}"), uptime.as_secs());
        opened = Store::open_on(machine.medium(), Options { boot, ..options() }).expect("it always opens");
        let after = if power_cut { Interruption::Reboot } else { Interruption::AgentRestart };
        assert_eq!((opened.interruption, opened.records.len(), &opened.set_aside), (Some(after), PODS, &None));
        let records = std::mem::take(&mut opened.records);
        pods = Pods::restored(opened.now, Some(secs(20)), records, after);
        assert!(pods.run_until(opened.now + secs(5), &opened.store));
        for (uid, count) in pods.restarts() {
            let before = before[&uid];
            // The next one may be there as well, and who ran was started again.
            assert!((before..=before + 2).contains(&count), "hour {hour}: {count} restarts of {uid}, {before} before");
        }
    }
    let restarts: u32 = pods.restarts().values().sum();
    assert!(restarts > 24 * 10 * PODS as u32, "{restarts} restarts");
    let per_pod_hour = bytes / 24 / PODS as u64;
    assert!(per_pod_hour < 1 << 20, "{per_pod_hour} bytes for a pod and hour");
}

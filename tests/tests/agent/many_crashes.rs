//! kill -9 at moments that nobody chose, while clients write and look: what they were told stays true.
//!
//! `HUSK_KILLS` says how often (20), `HUSK_SEED` repeats what was asked and for how long.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::client::ask;
use crate::world::{World, is_ready, shell};

const KILLS: usize = 20;
/// Clients that write at once, each to names of its own.
const CLIENTS: usize = 3;
/// Names of each client: so many pods, and so many ConfigMaps.
const NAMES: usize = 5;
/// An agent lives for so long at most, in milliseconds, and as briefly as this when it is killed as it starts.
const LIFE: u64 = 800;
const START: u64 = 150;

/// Randomness that can be repeated: SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn wait(&mut self, milliseconds: u64) {
        thread::sleep(Duration::from_millis(self.below(milliseconds)));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Pod,
    ConfigMap,
}

/// What a client was told of a name.
#[derive(Clone, Debug, PartialEq)]
enum Known {
    Nothing,
    There { uid: Value, mark: Value },
    Leaving { uid: Value },
}

#[derive(Clone, Debug, PartialEq)]
enum Request {
    Create { mark: Value },
    Change { mark: Value },
    Delete,
    Look,
}

/// Writes until the agent is gone.
struct Client {
    dice: Dice,
    objects: BTreeMap<(Kind, String), Known>,
    /// What it was not told the end of: it happened, or it didn't.
    in_flight: Option<((Kind, String), Request)>,
    requests: u64,
}

impl Kind {
    fn path(self, name: &str) -> String {
        let resource = if self == Self::Pod { "pods" } else { "configmaps" };
        format!("/api/v1/namespaces/default/{resource}/{name}").trim_end_matches('/').to_owned()
    }

    /// What is changed about an object, and how it is recognised.
    fn marked(self, mark: &Value) -> Value {
        match self {
            Self::Pod => json!({"metadata": {"labels": {"mark": mark}}}),
            Self::ConfigMap => json!({"data": {"mark": mark}}),
        }
    }

    fn object(self, name: &str, mark: &Value) -> Value {
        let mut object = self.marked(mark);
        (object["apiVersion"], object["kind"]) = ("v1".into(), format!("{self:?}").into());
        object["metadata"]["name"] = name.into();
        if self == Self::Pod {
            object["spec"] = spec(name);
        }
        object
    }

    fn known(self, object: &Value) -> Known {
        let uid = object["metadata"]["uid"].clone();
        let mark = match self {
            Self::Pod => &object["metadata"]["labels"]["mark"],
            Self::ConfigMap => &object["data"]["mark"],
        };
        match &object["metadata"]["deletionTimestamp"] {
            Value::Null => Known::There { uid, mark: mark.clone() },
            _ => Known::Leaving { uid },
        }
    }
}

/// One that crashes, one that is slow to end, and some that prepare something once.
fn spec(name: &str) -> Value {
    let mut spec = match name.as_bytes().last() {
        Some(b'0') => shell("sleep 0.2; exit 1"),
        Some(b'1') => shell("trap '' TERM; while true; do sleep 1; done"),
        _ => shell("sleep 100000"),
    };
    spec["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    spec["initContainers"] = json!([{
        "name": "setup", "image": "busybox", "command": ["sh", "-c", "echo done >> /data/count"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }]);
    spec
}

impl Client {
    fn new(number: usize, dice: Dice) -> Self {
        let names = |kind, letter| (0..NAMES).map(move |n| ((kind, format!("{letter}{number}-{n}")), Known::Nothing));
        let objects = names(Kind::Pod, 'p').chain(names(Kind::ConfigMap, 'c')).collect();
        Self { dice, objects, in_flight: None, requests: 0 }
    }

    fn write(&mut self, socket: &Path) {
        while self.request(socket).is_some() {}
    }

    /// One request. None if its end was not told.
    fn request(&mut self, socket: &Path) -> Option<()> {
        let place = usize::try_from(self.dice.below(2 * NAMES as u64)).expect("it is small");
        let ((kind, name), known) = self.objects.iter().nth(place).expect("a name");
        let (key, kind, path) = ((*kind, name.clone()), *kind, kind.path(name));
        self.requests += 1;
        let mark = Value::from(self.requests.to_string());
        let request = match known {
            Known::Nothing => Request::Create { mark },
            Known::There { .. } if self.dice.below(4) == 0 => Request::Delete,
            Known::There { .. } => Request::Change { mark },
            Known::Leaving { .. } => Request::Look,
        };
        self.in_flight = Some((key.clone(), request.clone()));
        let answer = match &request {
            Request::Create { mark } => ask(socket, "POST", &kind.path(""), Some(&kind.object(&key.1, mark))),
            Request::Change { mark } => ask(socket, "PATCH", &path, Some(&kind.marked(mark))),
            Request::Delete => ask(socket, "DELETE", &path, Some(&json!({}))),
            Request::Look => ask(socket, "GET", &path, None),
        }?;
        // Half of an answer is none.
        let object: Value = serde_json::from_str(&answer.body).ok()?;
        let known = match (answer.code, &request) {
            (404, Request::Look) => Known::Nothing,
            (200, Request::Delete) if kind == Kind::ConfigMap => Known::Nothing,
            (200, Request::Delete) => Known::Leaving { uid: object["metadata"]["uid"].clone() },
            (200 | 201, _) => kind.known(&object),
            _ => panic!("{request:?} of {key:?}: {answer:?}"),
        };
        self.objects.insert(key, known);
        self.in_flight = None;
        Some(())
    }

    /// How many objects it knows to be there.
    fn known(&self) -> usize {
        self.objects.values().filter(|known| **known != Known::Nothing).count()
    }

    /// Compares what it was told with what there is, which it knows from then on.
    fn compare(&mut self, there: &BTreeMap<(Kind, String), Value>) {
        let in_flight = self.in_flight.take();
        for (key, known) in &mut self.objects {
            let request = in_flight.as_ref().filter(|(of, _)| of == key).map(|(_, request)| request);
            let now = there.get(key).map_or(Known::Nothing, |object| key.0.known(object));
            assert!(may_follow(known, request, &now), "{key:?} was {known:?}, then {request:?}, and is {now:?}");
            *known = now;
        }
    }
}

/// Whether what was known, and maybe asked for, can have led to this.
fn may_follow(known: &Known, request: Option<&Request>, now: &Known) -> bool {
    let was_carried_out = match (known, request, now) {
        (Known::Nothing, Some(Request::Create { mark }), Known::There { mark: new, .. }) => new == mark,
        (Known::There { uid, .. }, Some(Request::Change { mark }), Known::There { uid: same, mark: new }) => {
            (same, new) == (uid, mark)
        }
        (Known::There { uid, .. }, Some(Request::Delete), Known::Leaving { uid: same }) => same == uid,
        (Known::There { .. }, Some(Request::Delete), Known::Nothing) => true,
        (Known::Leaving { .. }, _, Known::Nothing) => true,
        _ => false,
    };
    was_carried_out || now == known
}

/// What somebody has seen of a pod.
struct Seen {
    ip: Value,
    restarts: BTreeMap<String, i64>,
    /// How often it had been set up when that was over.
    setups: Option<usize>,
}

/// All pods that were ever seen, by uid.
#[derive(Default)]
struct Reader(BTreeMap<String, Seen>);

impl Reader {
    /// Looks until the agent is gone.
    fn read(&mut self, socket: &Path, data: &Path) {
        while let Some(pods) = list(socket, Kind::Pod) {
            pods.iter().for_each(|pod| self.look(pod, data));
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn look(&mut self, pod: &Value, data: &Path) {
        let uid = pod["metadata"]["uid"].as_str().expect("a uid");
        let status = &pod["status"];
        let fresh = Seen { ip: Value::Null, restarts: BTreeMap::new(), setups: None };
        let seen = self.0.entry(uid.to_owned()).or_insert(fresh);
        assert!(seen.ip.is_null() || seen.ip == status["podIP"], "it was {}: {pod}", seen.ip);
        seen.ip = status["podIP"].clone();
        let lists = [&status["initContainerStatuses"], &status["containerStatuses"]];
        for container in lists.into_iter().filter_map(Value::as_array).flatten() {
            let name = container["name"].as_str().expect("a name");
            let (count, before) = (container["restartCount"].as_i64().expect("a count"), seen.restarts.get(name));
            assert!(before.is_none_or(|before| *before <= count), "{name} had {before:?} restarts: {pod}");
            seen.restarts.insert(name.to_owned(), count);
        }
        let is_set_up = status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0;
        assert!(is_set_up || seen.setups.is_none() || is_over(pod), "it was set up: {pod}");
        // Who is deleted takes its volumes along.
        let count = std::fs::read_to_string(data.join(format!("pods/{uid}/volumes/data/count")));
        if let (true, Ok(count)) = (is_set_up, count) {
            let count = count.lines().count();
            assert_eq!(*seen.setups.get_or_insert(count), count, "it was set up again: {pod}");
        }
    }
}

fn is_over(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_null()
}

fn list(socket: &Path, kind: Kind) -> Option<Vec<Value>> {
    let answer = ask(socket, "GET", &kind.path(""), None)?;
    let list: Value = serde_json::from_str(&answer.body).ok()?;
    Some(list["items"].as_array().unwrap_or_else(|| panic!("{answer:?}")).clone())
}

fn everything(socket: &Path) -> BTreeMap<(Kind, String), Value> {
    let of = |kind| list(socket, kind).expect("an answer").into_iter().map(move |object| (kind, object));
    let named =
        |(kind, object): (Kind, Value)| ((kind, object["metadata"]["name"].as_str().unwrap().to_owned()), object);
    of(Kind::Pod).chain(of(Kind::ConfigMap)).map(named).collect()
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

// spec: TERM-11, NODE-04
#[test]
fn kills_at_random_moments_lose_nothing() {
    let now = || u64::from(SystemTime::now().duration_since(UNIX_EPOCH).expect("now").subsec_nanos());
    let seed = from_environment("HUSK_SEED").unwrap_or_else(now);
    let kills = from_environment("HUSK_KILLS").map_or(KILLS, |kills| usize::try_from(kills).expect("not so many"));
    println!("HUSK_SEED={seed}");
    let mut dice = Dice(seed);
    let mut world = World::configured("crashLoopBackOff: {maxContainerRestartPeriod: 1s}\n");
    let (socket, data) = (world.path("husk.sock"), world.data.clone());
    let mut clients: Vec<_> = (0..CLIENTS).map(|n| Client::new(n, Dice(seed + 1 + n as u64))).collect();
    let mut reader = Reader::default();
    for kill in 1..=kills {
        if dice.below(4) == 0 {
            world.kill();
            world.launch();
            dice.wait(START);
            world.kill();
            world.start();
        }
        thread::scope(|scope| {
            clients.iter_mut().for_each(|client| drop(scope.spawn(|| client.write(&socket))));
            scope.spawn(|| reader.read(&socket, &data));
            dice.wait(LIFE);
            world.kill();
        });
        world.start();
        let there = everything(&socket);
        clients.iter_mut().for_each(|client| client.compare(&there));
        let known: usize = clients.iter().map(Client::known).sum();
        assert_eq!(known, there.len(), "nothing else is there: {:?}", there.keys());
        there.iter().filter(|((kind, _), _)| *kind == Kind::Pod).for_each(|(_, pod)| reader.look(pod, &data));
        println!("kill {kill}: {} objects are as they were", there.len());
    }
    // And all of them go on.
    let stay = |(key, known): (&(Kind, String), &Known)| {
        let is_to_run = key.0 == Kind::Pod && matches!(known, Known::There { .. }) && !key.1.ends_with('0');
        is_to_run.then(|| key.1.clone())
    };
    let names: Vec<String> = clients.iter().flat_map(|client| client.objects.iter().filter_map(stay)).collect();
    for name in names {
        world.pod_until(&name, is_ready);
    }
    assert!(!world.log().contains("corrupt"), "{}", world.log());
    let requests: u64 = clients.iter().map(|client| client.requests).sum();
    println!("{requests} requests, {} pods", reader.0.len());
}

//! Measures how late probes are against their schedule: so many pods, each probed over HTTP every second.
//!
//! `cargo run --release --workspace --example probes [PODS] [SECONDS] [BUSY]`, beside so many pods that compute all the time

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use husk_agent::{AgentConfig, ImageTable, ImagesConfig, LocalNode, MemoryReferences, NodeLimits};

/// Sleeps for a year.
const IDLE: &str = r#"(module
    (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (func (export "_start")
        (i32.store (i32.const 16) (i32.const 1))
        (i64.store (i32.const 24) (i64.const 31536000000000000))
        (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))))"#;

/// Computes for ever.
const BUSY: &str = r#"(module (memory (export "memory") 1) (func (export "_start") (loop $l (br $l))))"#;

const PERIOD: Duration = Duration::from_secs(1);

/// When each pod was asked, by its number.
type Arrivals = Arc<Mutex<Vec<Vec<Instant>>>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pods: usize = arguments.next().map_or(Ok(500), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(30), |text| text.parse())?;
    let busy: usize = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let arrivals: Arrivals = Arc::new(Mutex::new(vec![Vec::new(); pods]));
    let port = serve(arrivals.clone())?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("idle.wat"), IDLE)?;
    std::fs::write(folder.path().join("busy.wat"), BUSY)?;
    let node = LocalNode::start(AgentConfig {
        data_dir: folder.path().join("data"),
        cache_dir: None,
        images: ImageTable::new([]),
        images_config: ImagesConfig::default(),
        references: Arc::new(MemoryReferences::default()),
        node_name: "bench".into(),
        limits: NodeLimits::default(),
    })?;
    let apply = |name: String, container: String| -> Result<(), Box<dyn std::error::Error>> {
        let manifest = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, uid: {name}}}\nspec:\n  \
             containers:\n  - {{name: app, {container}}}\n"
        );
        let decoded = husk_api::check(&manifest, "pod.yaml");
        let document = decoded.documents.first().ok_or("the pod is wrong")?;
        let mut pod = husk_api::pod_of(&document.object).ok_or("no pod")?;
        husk_api::default_pod(&mut pod);
        node.apply(pod, folder.path().to_owned());
        Ok(())
    };
    for number in 0..busy {
        apply(format!("b{number}"), "image: busy.wat".into())?;
    }
    for number in 0..pods {
        let probe = format!("{{periodSeconds: 1, httpGet: {{host: 127.0.0.1, port: {port}, path: /{number}}}}}");
        apply(format!("p{number}"), format!("image: idle.wat, livenessProbe: {probe}"))?;
        // As they would come, and not all at once.
        tokio::time::sleep(PERIOD / u32::try_from(pods)?).await;
    }
    // What they take to start is not what is measured.
    let of = |arrivals: &Arrivals| arrivals.lock().unwrap_or_else(PoisonError::into_inner).clone();
    while of(&arrivals).iter().any(|all| all.len() < 2) {
        tokio::time::sleep(PERIOD / 10).await;
    }
    let begin = Instant::now();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let mut late = Vec::new();
    let mut missed = 0;
    for all in of(&arrivals) {
        let all: Vec<_> = all.into_iter().filter(|at| *at >= begin).collect();
        let Some(first) = all.first() else { continue };
        missed += seconds.saturating_sub(all.len() as u64);
        for (number, at) in (0..).zip(&all) {
            // The schedule is that of the first: who drifts is later and later.
            late.push(at.duration_since(*first).as_secs_f64() - f64::from(number));
        }
    }
    late.sort_by(f64::total_cmp);
    let at =
        |part: f64| late.get((late.len() as f64 * part) as usize).or(late.last()).copied().unwrap_or_default() * 1e3;
    println!("  {pods} pods, a probe a second each, for {seconds} s: {} probes, {missed} missed", late.len());
    println!(
        "  late against the schedule   p1 {:.2} ms, p50 {:.2} ms, p99 {:.2} ms, most {:.2} ms",
        at(0.01),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    node.shutdown().await?;
    Ok(())
}

/// Answers everybody, in a thread that has nothing to do with the agent's; the path is the number of the pod.
fn serve(arrivals: Arrivals) -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let at = Instant::now();
            let mut request = [0; 1024];
            let read = stream.read(&mut request).unwrap_or_default();
            let request = String::from_utf8_lossy(&request[..read]);
            let number = request.strip_prefix("GET /").and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(all) = number.and_then(|number| arrivals.get_mut(number)) {
                all.push(at);
            }
        }
    });
    Ok(port)
}
